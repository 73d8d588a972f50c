//! The interactive session: what is known of it, and what a key means in it.
//!
//! The caller hands in keys and what the agent says; what has to be done outside comes out as
//! [`Effect`]s.

mod questions;

use std::collections::VecDeque;

use crate::editor::Editor;
use crate::keys::{DoublePress, Key, Moment, Press, name_of};
use crate::menu::{Marks, Menu, Outcome, What};
use crate::slash::{self, SlashCommand};
use crate::theme::Theme;
use crate::transcript::{Item, Tone, Transcript};

pub(crate) use questions::Questions;
pub use questions::{Answer, Question};

/// A second Ctrl-C within this leaves.
const LEAVE_MS: u64 = 2000;

/// So long the hint at a second press of the rewind key is shown, and such a press counts.
const HINT_MS: u64 = 1500;

pub struct Chat {
    pub transcript: Transcript,
    pub editor: Editor,
    pub status: Status,
    pub theme: Theme,
    /// What a turn or other work is doing, while it goes on.
    pub activity: Activity,
    pub(crate) questions: Questions,
    /// Prompts that were typed while a turn ran.
    pub queued: VecDeque<String>,
    pub menu: Option<Menu>,
    pub(crate) commands: &'static [SlashCommand],
    rewind: DoublePress,
    /// A press of the rewind key that did nothing else: until then a second one counts.
    again_until: Option<Moment>,
    leave: DoublePress,
}

/// The foot of the screen.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Status {
    pub agent: String,
    pub session: String,
    /// `None`: nothing is recorded.
    pub points: Option<usize>,
    /// Whether there is anything to go back to, also of other sessions.
    pub can_rewind: bool,
    /// Since the last prompt.
    pub files: usize,
    /// Lines that came and went; `None`: nobody has counted them.
    pub lines: Option<(usize, usize)>,
    /// How to go back: `esc esc rewinds`.
    pub hint: String,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Activity {
    Idle,
    /// A turn, since when.
    Turn(Moment),
    /// A turn that was asked to end.
    Ending(Moment),
    /// Going back, forth, or making a point.
    Working(Moment),
}

/// What has to be done outside.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Effect {
    Prompt(String),
    /// A line that begins with a slash.
    Slash(String),
    Interrupt,
    Answer(String, Answer),
    OpenMenu,
    /// The menu was left without a choice.
    MenuLeft,
    /// The menu wants to show what going to this point would do.
    Look(String),
    /// The same for this execution.
    LookExecution(String),
    Restore {
        id: String,
        what: What,
        /// Only these.
        paths: Option<Vec<String>>,
        /// Whose work some of them are, as the person says.
        marks: Marks,
    },
    RestoreExecution(String),
    Undo,
    Leave,
}

/// How the session is to behave.
pub struct ChatOptions {
    pub commands: &'static [SlashCommand],
    pub theme: Theme,
    pub rewind_key: Key,
    pub double_ms: u64,
    /// What was entered before, oldest first.
    pub history: Vec<String>,
}

impl Chat {
    #[must_use]
    pub fn new(options: ChatOptions, status: Status) -> Self {
        Self {
            transcript: Transcript::new(options.theme),
            editor: Editor::new(options.history),
            status,
            theme: options.theme,
            activity: Activity::Idle,
            questions: Questions::default(),
            queued: VecDeque::new(),
            menu: None,
            commands: options.commands,
            rewind: DoublePress::new(options.rewind_key, options.double_ms),
            again_until: None,
            leave: DoublePress::new(Key::Ctrl('c'), LEAVE_MS),
        }
    }

    #[must_use]
    pub fn is_in_turn(&self) -> bool {
        matches!(self.activity, Activity::Turn(_) | Activity::Ending(_))
    }

    /// The agent waits for an answer, which comes as an [`Effect::Answer`]. It is not yes before the
    /// question has been on the screen for a while, nor before its last line has.
    pub fn ask(&mut self, question: Question, at: Moment) {
        self.questions.push(question, at);
    }

    /// What the agent waits for, the oldest first.
    pub fn questions(&self) -> impl Iterator<Item = &Question> {
        self.questions.iter()
    }

    pub fn press(&mut self, press: &Press) -> Vec<Effect> {
        if self.menu.is_some() {
            self.again_until = None;
            return self.press_in_menu(&press.key);
        }
        let leaves = self.leave.press(press);
        let is_rewind = press.key == *self.rewind.key();
        let again = is_rewind && self.is_hinted(press.at);
        self.again_until = None;
        if self.rewind.press(press) || again {
            self.rewind.forget();
            return vec![Effect::OpenMenu];
        }
        if !is_rewind {
            return self.press_once(press, leaves);
        }
        let before = (self.editor.text().to_owned(), self.transcript.len());
        let effects = self.press_once(press, leaves);
        let is_same = self.editor.text() == before.0 && self.transcript.len() == before.1;
        if effects.is_empty() && is_same && self.status.can_rewind {
            self.again_until = Some(press.at.plus(HINT_MS));
        }
        effects
    }

    /// What a second press of the rewind key would do, for a while after the first.
    #[must_use]
    pub fn rewind_hint(&self, now: Moment) -> Option<String> {
        self.is_hinted(now).then(|| format!("{} again to rewind", name_of(self.rewind.key())))
    }

    /// When the screen is to be drawn without the hint.
    #[must_use]
    pub fn hint_ends(&self) -> Option<Moment> {
        self.again_until
    }

    /// The hint is over: nothing is to be waited for.
    pub fn end_hint(&mut self, now: Moment) -> bool {
        let over = self.again_until.is_some_and(|until| now >= until);
        self.again_until = self.again_until.filter(|_| !over);
        over
    }

    /// A question is answered by Esc, so that is what the key means while one is there.
    fn is_hinted(&self, now: Moment) -> bool {
        self.questions.first().is_none() && self.again_until.is_some_and(|until| now < until)
    }

    fn press_once(&mut self, press: &Press, leaves: bool) -> Vec<Effect> {
        match &press.key {
            Key::Esc => self.stop(press.at),
            Key::Ctrl('c') if !self.editor.is_empty() => {
                self.editor.set_text("");
                Vec::new()
            }
            Key::Ctrl('c') if leaves => vec![Effect::Leave],
            Key::Ctrl('c') if self.is_in_turn() => self.stop(press.at),
            Key::Ctrl('c') => {
                self.transcript.say(Tone::Hint, "ctrl-c again leaves, /exit too");
                Vec::new()
            }
            Key::Ctrl('d') if self.editor.is_empty() => vec![Effect::Leave],
            _ => self.press_key(press),
        }
    }

    fn press_key(&mut self, Press { key, at }: &Press) -> Vec<Effect> {
        if self.editor.is_empty() && self.questions.first().is_some() {
            if self.questions.scroll(key) {
                return Vec::new();
            }
            match questions::answer_of(key) {
                Some(Answer::Yes | Answer::Always) if !self.questions.may_allow(*at) => {
                    return Vec::new();
                }
                Some(answer) => return self.answer(answer, *at),
                None => {}
            }
        }
        match key {
            Key::Ctrl('o') => self.transcript.fold_or_unfold(),
            Key::PageUp => self.transcript.scroll_up(self.transcript.page()),
            Key::PageDown => self.transcript.scroll_down(self.transcript.page()),
            Key::Tab => {
                let line = slash::completed(&self.candidates());
                if let Some(line) = line {
                    self.editor.set_text(&line);
                }
            }
            Key::Enter => return self.enter(),
            key => {
                self.editor.press(key);
            }
        }
        Vec::new()
    }

    fn press_in_menu(&mut self, key: &Key) -> Vec<Effect> {
        let Some(menu) = &mut self.menu else { return Vec::new() };
        match menu.press(key) {
            Outcome::Stay => Vec::new(),
            Outcome::Look(id) => vec![Effect::Look(id)],
            Outcome::LookExecution(execution) => vec![Effect::LookExecution(execution)],
            Outcome::Cancel => {
                self.menu = None;
                vec![Effect::MenuLeft]
            }
            Outcome::Restore { id, what, paths, marks } => {
                self.menu = None;
                vec![Effect::Restore { id, what, paths, marks }]
            }
            Outcome::RestoreExecution(id) => {
                self.menu = None;
                vec![Effect::RestoreExecution(id)]
            }
            Outcome::Undo => {
                self.menu = None;
                vec![Effect::Undo]
            }
        }
    }

    /// Esc: what runs is to end, and what is asked is not allowed.
    fn stop(&mut self, at: Moment) -> Vec<Effect> {
        let mut effects = self.answer(Answer::No, at);
        if let Activity::Turn(_) = self.activity {
            self.activity = Activity::Ending(at);
            effects.push(Effect::Interrupt);
        }
        effects
    }

    fn answer(&mut self, answer: Answer, at: Moment) -> Vec<Effect> {
        let Some(question) = self.questions.take(at) else { return Vec::new() };
        if answer == Answer::No {
            self.transcript.say(Tone::Care, format!("not allowed: {}", question.title));
        }
        vec![Effect::Answer(question.request, answer)]
    }

    fn enter(&mut self) -> Vec<Effect> {
        if self.editor.text().trim().is_empty() {
            return Vec::new();
        }
        let line = self.editor.take();
        self.transcript.scroll_down(usize::MAX);
        if slash::split(&line).is_some() {
            return vec![Effect::Slash(line.trim().to_owned())];
        }
        if self.activity == Activity::Idle {
            return vec![Effect::Prompt(line)];
        }
        self.queued.push_back(line);
        Vec::new()
    }

    /// What the slash that is being typed may become.
    #[must_use]
    pub fn candidates(&self) -> Vec<(&'static str, &'static SlashCommand)> {
        slash::candidates(self.commands, self.editor.text())
    }

    /// A turn begins with this prompt.
    pub fn begin_turn(&mut self, prompt: &str, at: Moment) {
        self.transcript.push(Item::Person(prompt.to_owned()));
        self.activity = Activity::Turn(at);
    }

    pub fn end_turn(&mut self) {
        self.transcript.end_text();
        self.activity = Activity::Idle;
        self.questions.clear();
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    static COMMANDS: [SlashCommand; 1] =
        [SlashCommand { name: "rewind", aliases: &[], arguments: "[point]", help: "" }];

    fn chat() -> Chat {
        let options = ChatOptions {
            commands: &COMMANDS,
            theme: Theme::plain(),
            rewind_key: Key::Esc,
            double_ms: 300,
            history: Vec::new(),
        };
        Chat::new(options, Status::default())
    }

    fn typed(chat: &mut Chat, keys: &[(Key, u64)]) -> Vec<Effect> {
        let press = |(key, at): &(Key, u64)| Press { key: key.clone(), at: Moment(*at) };
        keys.iter().flat_map(|key| chat.press(&press(key))).collect()
    }

    #[test]
    fn esc_twice_opens_the_menu_if_it_is_quick() {
        let mut chat = chat();
        assert_eq!(typed(&mut chat, &[(Key::Esc, 0), (Key::Esc, 300)]), [Effect::OpenMenu]);
        assert_eq!(typed(&mut chat, &[(Key::Esc, 1000), (Key::Esc, 1350)]), []);
        chat.begin_turn("go", Moment(0));
        let effects = typed(&mut chat, &[(Key::Esc, 2000), (Key::Esc, 2100)]);
        assert_eq!(effects, [Effect::Interrupt, Effect::OpenMenu]);
    }

    fn recorded() -> Chat {
        let mut chat = chat();
        chat.status.can_rewind = true;
        chat
    }

    #[test]
    fn a_second_esc_counts_while_the_hint_shows() {
        let mut chat = recorded();
        assert_eq!(typed(&mut chat, &[(Key::Esc, 1000)]), []);
        let hint = Some("Esc again to rewind".to_owned());
        assert_eq!((chat.rewind_hint(Moment(1000)), chat.rewind_hint(Moment(2500))), (hint, None));
        assert_eq!(chat.hint_ends(), Some(Moment(2500)));
        assert_eq!(typed(&mut chat, &[(Key::Esc, 2499)]), [Effect::OpenMenu]);
        assert_eq!((chat.rewind_hint(Moment(2499)), chat.hint_ends()), (None, None));
        assert_eq!(typed(&mut chat, &[(Key::Esc, 2600)]), [], "a third is a first one");
        assert_eq!(typed(&mut chat, &[(Key::Esc, 4100)]), [], "the hint is gone");
        assert_eq!(typed(&mut chat, &[(Key::Esc, 5599)]), [Effect::OpenMenu]);
    }

    #[test]
    fn another_key_takes_the_hint_away() {
        let mut chat = recorded();
        assert_eq!(typed(&mut chat, &[(Key::Esc, 0), (Key::Char('x'), 100)]), []);
        assert_eq!(chat.rewind_hint(Moment(100)), None);
        assert_eq!(typed(&mut chat, &[(Key::Esc, 200)]), [], "it begins anew");
        assert!(chat.rewind_hint(Moment(200)).is_some(), "also with a text that is written");
    }

    #[test]
    fn an_esc_that_does_something_else_hints_at_nothing() {
        let mut chat = recorded();
        chat.begin_turn("go", Moment(0));
        assert_eq!(typed(&mut chat, &[(Key::Esc, 1000)]), [Effect::Interrupt]);
        assert_eq!(chat.rewind_hint(Moment(1000)), None);
        assert_eq!(typed(&mut chat, &[(Key::Esc, 1400)]), [], "later than a double press");
        let (request, title, detail) = ("1".to_owned(), "Write a".to_owned(), String::new());
        chat.end_turn();
        let question =
            || Question { request: request.clone(), title: title.clone(), detail: detail.clone() };
        chat.ask(question(), Moment(1500));
        assert_eq!(chat.rewind_hint(Moment(1500)), None, "esc means no now");
        let no = [Effect::Answer(request.clone(), Answer::No)];
        assert_eq!(typed(&mut chat, &[(Key::Esc, 1900)]), no);
        assert_eq!(chat.rewind_hint(Moment(1900)), None);
        chat.status.can_rewind = false;
        assert_eq!(typed(&mut chat, &[(Key::Esc, 9000)]), []);
        assert_eq!(chat.rewind_hint(Moment(9000)), None, "there is nothing to go back to");
        assert_eq!(typed(&mut chat, &[(Key::Esc, 9400)]), []);
    }

    #[test]
    fn the_hint_names_the_key_and_waits_for_one_that_does_nothing_else() {
        let mut chat = recorded();
        chat.rewind = DoublePress::new(Key::Tab, 300);
        typed(&mut chat, &[(Key::Paste("/rew".into()), 0), (Key::Tab, 0)]);
        assert_eq!((chat.editor.text(), chat.rewind_hint(Moment(0))), ("/rewind ", None));
        typed(&mut chat, &[(Key::Tab, 1000)]);
        assert_eq!(chat.rewind_hint(Moment(1000)), Some("Tab again to rewind".to_owned()));
    }

    #[test]
    fn esc_interrupts_a_turn_once() {
        let mut chat = chat();
        assert_eq!(typed(&mut chat, &[(Key::Esc, 0)]), [], "there is nothing to interrupt");
        chat.begin_turn("go", Moment(0));
        assert_eq!(typed(&mut chat, &[(Key::Esc, 1000)]), [Effect::Interrupt]);
        assert_eq!(typed(&mut chat, &[(Key::Esc, 2000)]), [], "it is ending already");
    }

    #[test]
    fn a_prompt_waits_for_the_turn_before_it() {
        let mut chat = chat();
        let go = [(Key::Paste("go".into()), 0), (Key::Enter, 0)];
        assert_eq!(typed(&mut chat, &go), [Effect::Prompt("go".into())]);
        chat.begin_turn("go", Moment(0));
        assert_eq!(typed(&mut chat, &go), []);
        chat.end_turn();
        assert_eq!(chat.queued, ["go"]);
    }

    #[test]
    fn leaving() {
        let mut chat = chat();
        assert_eq!(typed(&mut chat, &[(Key::Ctrl('c'), 0)]), []);
        assert_eq!(typed(&mut chat, &[(Key::Ctrl('c'), 5000)]), [], "too late");
        assert_eq!(typed(&mut chat, &[(Key::Ctrl('c'), 6000)]), [Effect::Leave]);
        assert_eq!(typed(&mut chat, &[(Key::Ctrl('d'), 9000)]), [Effect::Leave]);
    }
}
