//! The interactive session: its state, and what each key does.
//!
//! The caller feeds keys and the agent's messages, and applies the [`Effect`]s that it returns.

mod questions;
#[cfg(test)]
mod tests;
mod view;

use std::collections::VecDeque;

use crate::editor::Editor;
use crate::keys::{DoublePress, Key, Moment, Press, key_name};
use crate::menu::{Menu, MenuAction};
use crate::slash::{self, Candidate, SlashCommand};
use crate::theme::Theme;
use crate::transcript::{Item, Tone, Transcript};

use questions::Questions;
pub use questions::{Answer, Question};
pub(crate) use view::format_counts;

/// A second Ctrl-C within this time exits.
const EXIT_MS: u64 = 2000;

/// How long the hint about a second press of the rewind key is shown, and such a press counts.
const HINT_MS: u64 = 1500;

/// The state of the session's screen.
pub struct Chat {
    /// Everything that was said and done.
    pub transcript: Transcript,
    /// The input line.
    pub editor: Editor,
    /// The foot of the screen.
    pub status: StatusLine,
    /// The styles of the screen.
    pub theme: Theme,
    /// What the session is busy with.
    pub activity: Activity,
    questions: Questions,
    /// Prompts that were typed while a turn ran.
    pub queued: VecDeque<String>,
    /// The rewind menu, while it is open.
    pub menu: Option<Menu>,
    commands: &'static [SlashCommand],
    rewind: DoublePress,
    /// After a press of the rewind key that did nothing else: until when a second one counts.
    hint_until: Option<Moment>,
    exit: DoublePress,
}

/// The foot of the screen.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct StatusLine {
    /// The agent's name.
    pub agent: String,
    /// The session's id.
    pub session: String,
    /// How many points there are; `None` if nothing is recorded.
    pub points: Option<usize>,
    /// Whether there is any point to go back to, including those of other sessions.
    pub can_rewind: bool,
    /// Files changed since the last prompt.
    pub files: usize,
    /// Lines added and removed since then; `None` if they were not counted.
    pub lines: Option<(usize, usize)>,
    /// How to go back: `esc esc rewinds`.
    pub hint: String,
}

/// What the session is busy with, and since when.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Activity {
    /// Nothing: prompts are sent at once.
    Idle,
    /// A turn.
    Turn(Moment),
    /// A turn that was interrupted and has not ended.
    Stopping(Moment),
    /// Restoring, or loading a conversation.
    Working(Moment),
}

/// What the caller must do after a key.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Effect {
    /// Send this prompt to the agent.
    Prompt(String),
    /// Run this line, which starts with a slash.
    Slash(String),
    /// Interrupt the turn.
    Interrupt,
    /// Answer the question with this request id.
    Answer(String, Answer),
    /// Open the rewind menu.
    OpenMenu,
    /// Carry out what the menu returned; never [`MenuAction::Stay`].
    Menu(MenuAction),
    /// End the session.
    Exit,
}

/// How a session behaves.
pub struct ChatOptions {
    /// The slash commands, in the order in which they are offered.
    pub commands: &'static [SlashCommand],
    /// The styles of the screen.
    pub theme: Theme,
    /// The key that opens the menu when pressed twice.
    pub rewind_key: Key,
    /// The longest time between the two presses.
    pub double_ms: u64,
    /// Earlier input, oldest first.
    pub history: Vec<String>,
}

impl Chat {
    /// An idle session with an empty transcript.
    #[must_use]
    pub fn new(options: ChatOptions, status: StatusLine) -> Self {
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
            hint_until: None,
            exit: DoublePress::new(Key::Ctrl('c'), EXIT_MS),
        }
    }

    /// Whether a turn is running or stopping.
    #[must_use]
    pub fn is_in_turn(&self) -> bool {
        matches!(self.activity, Activity::Turn(_) | Activity::Stopping(_))
    }

    /// Asks a question; the answer comes as an [`Effect::Answer`]. It cannot be allowed before its last
    /// line was visible, nor in the first moment after it appeared.
    pub fn ask(&mut self, question: Question, at: Moment) {
        self.questions.push(question, at);
    }

    /// Open questions, oldest first.
    pub fn questions(&self) -> impl Iterator<Item = &Question> {
        self.questions.iter()
    }

    /// Handles a key.
    pub fn press(&mut self, press: &Press) -> Vec<Effect> {
        if self.menu.is_some() {
            self.hint_until = None;
            return self.press_in_menu(&press.key);
        }
        let exits = self.exit.press(press);
        let is_rewind = press.key == *self.rewind.key();
        let is_second = is_rewind && self.shows_hint(press.at);
        self.hint_until = None;
        if self.rewind.press(press) || is_second {
            self.rewind.reset();
            return vec![Effect::OpenMenu];
        }
        if !is_rewind {
            return self.press_once(press, exits);
        }
        let before = (self.editor.text().to_owned(), self.transcript.len());
        let effects = self.press_once(press, exits);
        let is_same = self.editor.text() == before.0 && self.transcript.len() == before.1;
        if effects.is_empty() && is_same && self.status.can_rewind {
            self.hint_until = Some(press.at.plus(HINT_MS));
        }
        effects
    }

    /// What a second press of the rewind key would do, for a moment after the first.
    #[must_use]
    pub fn rewind_hint(&self, now: Moment) -> Option<String> {
        self.shows_hint(now).then(|| format!("{} again to rewind", key_name(self.rewind.key())))
    }

    /// When to call [`Self::expire_hint`].
    #[must_use]
    pub fn hint_deadline(&self) -> Option<Moment> {
        self.hint_until
    }

    /// Removes the hint once its time is over; whether it did.
    pub fn expire_hint(&mut self, now: Moment) -> bool {
        self.hint_until.take_if(|until| now >= *until).is_some()
    }

    /// Not while there is a question: there, Esc means no.
    fn shows_hint(&self, now: Moment) -> bool {
        self.questions.first().is_none() && self.hint_until.is_some_and(|until| now < until)
    }

    fn press_once(&mut self, press: &Press, exits: bool) -> Vec<Effect> {
        match &press.key {
            Key::Esc => self.stop(press.at),
            Key::Ctrl('c') if !self.editor.is_empty() => {
                self.editor.set_text("");
                Vec::new()
            }
            Key::Ctrl('c') if exits => vec![Effect::Exit],
            Key::Ctrl('c') if self.is_in_turn() => self.stop(press.at),
            Key::Ctrl('c') => {
                self.transcript.say(Tone::Hint, "Press ctrl-c again to exit.");
                Vec::new()
            }
            Key::Ctrl('d') if self.editor.is_empty() => vec![Effect::Exit],
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
            Key::Ctrl('o') => self.transcript.toggle_fold(),
            Key::PageUp => self.transcript.scroll_up(self.transcript.page()),
            Key::PageDown => self.transcript.scroll_down(self.transcript.page()),
            Key::Tab => {
                if let Some(line) = slash::complete(&self.candidates()) {
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
        let action = menu.press(key);
        if action == MenuAction::Stay {
            return Vec::new();
        }
        if !matches!(action, MenuAction::Preview(_) | MenuAction::Ask(_)) {
            self.menu = None;
        }
        vec![Effect::Menu(action)]
    }

    /// Esc: denies the question and interrupts the turn.
    fn stop(&mut self, at: Moment) -> Vec<Effect> {
        let mut effects = self.answer(Answer::No, at);
        if let Activity::Turn(_) = self.activity {
            self.activity = Activity::Stopping(at);
            effects.push(Effect::Interrupt);
        }
        effects
    }

    fn answer(&mut self, answer: Answer, at: Moment) -> Vec<Effect> {
        let Some(question) = self.questions.take(at) else { return Vec::new() };
        if answer == Answer::No {
            self.transcript.say(Tone::Warning, format!("denied: {}", question.title));
        }
        vec![Effect::Answer(question.request, answer)]
    }

    fn enter(&mut self) -> Vec<Effect> {
        if self.editor.text().trim().is_empty() {
            return Vec::new();
        }
        let line = self.editor.take();
        self.transcript.scroll_down(usize::MAX);
        if slash::split_slash(&line).is_some() {
            return vec![Effect::Slash(line.trim().to_owned())];
        }
        if self.activity == Activity::Idle {
            return vec![Effect::Prompt(line)];
        }
        self.queued.push_back(line);
        Vec::new()
    }

    /// Completions of the slash command that is being typed.
    fn candidates(&self) -> Vec<Candidate> {
        slash::candidates(self.commands, self.editor.text())
    }

    /// Starts a turn with this prompt.
    pub fn begin_turn(&mut self, prompt: &str, at: Moment) {
        self.transcript.push(Item::Prompt(prompt.to_owned()));
        self.activity = Activity::Turn(at);
    }

    /// Ends the turn: the session is idle and its questions are gone.
    pub fn end_turn(&mut self) {
        self.transcript.end_text();
        self.activity = Activity::Idle;
        self.questions.clear();
    }
}
