//! The second stage: the files of one row with ticks, a diff, and what is to go back. An execution goes
//! back as a whole: its files have no ticks.

use super::{FilePreview, Mark, Marks, Preview, Subject, What};
use crate::keys::Key;
use std::collections::{HashMap, HashSet};

pub(super) struct Detail {
    subject: Subject,
    conversation: bool,
    file: usize,
    /// Paths that are to stay as they are.
    unticked: HashSet<String>,
    can_mark: bool,
    /// By path.
    ///
    /// A mark makes no new preview: that scans the tree, and the other rows would move under the cursor
    /// at each key. The receipt shows what a mark came to.
    marks: HashMap<String, Mark>,
    /// The first line of the diff that is shown; drawing keeps it within the diff.
    pub(super) scroll: usize,
    /// How many lines there was room for.
    pub(super) page: usize,
    /// Which of the choices is selected, once they are shown. A preview that comes meanwhile may leave
    /// fewer of them, but never puts another one under the cursor.
    choosing: Option<Choice>,
    notice: Option<&'static str>,
}

#[derive(Debug, PartialEq, Eq)]
pub(super) enum Outcome {
    Stay,
    Back,
    Restore(super::Outcome),
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Choice {
    Of(What),
    /// Of an execution.
    StateAndFiles,
}

impl Choice {
    pub(super) fn words(self) -> &'static str {
        match self {
            Self::Of(what) => what.words(),
            Self::StateAndFiles => "State and files",
        }
    }

    /// Chooses it at once.
    pub(super) fn key(self) -> char {
        match self {
            Self::Of(what) => what.key(),
            Self::StateAndFiles => 's',
        }
    }
}

type Known<'a> = Option<&'a Result<Preview, String>>;

impl Detail {
    pub(super) fn of_point(id: String, conversation: bool, can_mark: bool) -> Self {
        Self { can_mark, ..Self::new(Subject::Point(id), conversation) }
    }

    pub(super) fn of_execution(execution: String) -> Self {
        Self::new(Subject::Execution(execution), false)
    }

    fn new(subject: Subject, conversation: bool) -> Self {
        Self {
            subject,
            conversation,
            file: 0,
            unticked: HashSet::new(),
            can_mark: false,
            marks: HashMap::new(),
            scroll: 0,
            page: 10,
            choosing: None,
            notice: None,
        }
    }

    pub(super) fn subject(&self) -> &Subject {
        &self.subject
    }

    pub(super) fn has_ticks(&self) -> bool {
        matches!(self.subject, Subject::Point(_))
    }

    pub(super) fn file(&self) -> usize {
        self.file
    }

    pub(super) fn choosing(&self) -> Option<Choice> {
        self.choosing
    }

    pub(super) fn notice(&self) -> Option<&'static str> {
        self.notice
    }

    pub(super) fn can_mark(&self) -> bool {
        self.can_mark
    }

    pub(super) fn mark_of(&self, file: &FilePreview) -> Option<Mark> {
        self.marks.get(&file.path).copied()
    }

    /// Whether it can be ticked: its mark decides for a marked file.
    pub(super) fn has_tick(&self, file: &FilePreview) -> bool {
        file.fate.changes() && !self.marks.contains_key(&file.path)
    }

    pub(super) fn is_ticked(&self, file: &FilePreview) -> bool {
        self.has_tick(file) && !self.unticked.contains(&file.path)
    }

    /// What can go back: without a tick or a mark no files, and without a preview that works neither.
    pub(super) fn choices(&self, known: Known) -> Vec<Choice> {
        if let Subject::Execution(_) = self.subject {
            // Its state goes back also where no file would change.
            let possible = !matches!(known, Some(Err(_)));
            return possible.then_some(Choice::StateAndFiles).into_iter().collect();
        }
        let files = match known {
            None => true,
            Some(Err(_)) => false,
            Some(Ok(preview)) => {
                preview.files.iter().any(|file| self.is_ticked(file)) || !self.marks.is_empty()
            }
        };
        let mut choices = Vec::new();
        if files && self.conversation {
            choices.push(Choice::Of(What::FilesAndConversation));
        }
        if files {
            choices.push(Choice::Of(What::Files));
        }
        if self.conversation {
            choices.push(Choice::Of(What::Conversation));
        }
        choices
    }

    pub(super) fn press(&mut self, key: &Key, known: Known) -> Outcome {
        self.notice = None;
        match self.choosing {
            Some(selected) => self.press_choosing(selected, key, known),
            None => self.press_looking(key, known),
        }
    }

    fn press_looking(&mut self, key: &Key, known: Known) -> Outcome {
        let files = match known {
            Some(Ok(preview)) => preview.files.as_slice(),
            _ => &[],
        };
        let last = files.len().saturating_sub(1);
        match key {
            Key::Esc | Key::Char('q' | 'h') | Key::Left => return Outcome::Back,
            Key::Up | Key::Char('k') => self.go(self.file.saturating_sub(1)),
            Key::Down | Key::Char('j') => self.go((self.file + 1).min(last)),
            Key::Home => self.go(0),
            Key::End => self.go(last),
            Key::PageDown | Key::Ctrl('d') => self.scroll += self.page.max(1),
            Key::PageUp | Key::Ctrl('u') => {
                self.scroll = self.scroll.saturating_sub(self.page.max(1));
            }
            Key::Char(' ' | 'a' | 't' | 'm') if !self.has_ticks() => {
                self.notice = Some("An execution goes back as a whole.");
            }
            Key::Char(' ') => self.tick(files.get(self.file)),
            Key::Char('t') => self.mark(files.get(self.file), Mark::Take),
            Key::Char('m') => self.mark(files.get(self.file), Mark::Mine),
            Key::Char('a') => {
                let changing = files.iter().filter(|file| file.fate.changes());
                if self.unticked.is_empty() {
                    self.unticked = changing.map(|file| file.path.clone()).collect();
                } else {
                    self.unticked.clear();
                }
            }
            Key::Enter | Key::Right | Key::Char('l') => {
                self.choosing = self.choices(known).first().copied();
                if self.choosing.is_none() {
                    self.notice = Some("There is nothing to restore.");
                }
            }
            _ => {}
        }
        Outcome::Stay
    }

    fn press_choosing(&mut self, selected: Choice, key: &Key, known: Known) -> Outcome {
        let choices = self.choices(known);
        let at = choices.iter().position(|what| *what == selected);
        let chosen = match key {
            Key::Esc | Key::Char('q' | 'h') | Key::Left => {
                self.choosing = None;
                return Outcome::Stay;
            }
            Key::Up | Key::Char('k') => {
                let above = at.map_or(0, |at| at.saturating_sub(1));
                self.choosing = choices.get(above).copied();
                return Outcome::Stay;
            }
            Key::Down | Key::Char('j') => {
                let below = at.map_or(0, |at| (at + 1).min(choices.len() - 1));
                self.choosing = choices.get(below).copied();
                return Outcome::Stay;
            }
            Key::Enter => selected,
            Key::Char(c) => match choices.iter().find(|what| what.key() == *c) {
                Some(what) => *what,
                None => return Outcome::Stay,
            },
            _ => return Outcome::Stay,
        };
        if choices.contains(&chosen) {
            return Outcome::Restore(self.outcome(chosen, known));
        }
        self.choosing = choices.first().copied();
        self.notice = Some("That is not possible here.");
        Outcome::Stay
    }

    fn tick(&mut self, file: Option<&FilePreview>) {
        let Some(file) = file else { return };
        if self.marks.contains_key(&file.path) {
            self.notice = Some("This file is marked; the same key again removes the mark.");
        } else if !file.fate.changes() {
            self.notice = Some("This file stays as it is.");
        } else if !self.unticked.remove(&file.path) {
            self.unticked.insert(file.path.clone());
        }
    }

    fn mark(&mut self, file: Option<&FilePreview>, mark: Mark) {
        let Some(file) = file else { return };
        if !self.can_mark {
            self.notice = Some("With --exact every file goes back.");
        } else if self.mark_of(file) == Some(mark) {
            self.marks.remove(&file.path);
        } else if let Some(refusal) = mark.refusal(file.fate) {
            self.notice = Some(refusal);
        } else {
            self.marks.insert(file.path.clone(), mark);
        }
    }

    fn go(&mut self, file: usize) {
        self.file = file;
        self.scroll = 0;
    }

    fn outcome(&self, chosen: Choice, known: Known) -> super::Outcome {
        match (&self.subject, chosen) {
            (Subject::Point(id), Choice::Of(what)) => {
                let paths = self.paths(what, known);
                let marks = self.marks(what, known);
                super::Outcome::Restore { id: id.clone(), what, paths, marks }
            }
            (Subject::Execution(id), Choice::StateAndFiles) => {
                super::Outcome::RestoreExecution(id.clone())
            }
            (Subject::Point(_), Choice::StateAndFiles) | (Subject::Execution(_), Choice::Of(_)) => {
                super::Outcome::Stay
            }
        }
    }

    fn paths(&self, what: What, known: Known) -> Option<Vec<String>> {
        let Some(Ok(preview)) = known else { return None };
        if what == What::Conversation || self.unticked.is_empty() {
            return None;
        }
        let ticked = preview.files.iter().filter(|file| self.is_ticked(file));
        Some(ticked.map(|file| file.path.clone()).collect())
    }

    fn marks(&self, what: What, known: Known) -> Marks {
        let mut marks = Marks::default();
        let Some(Ok(preview)) = known.filter(|_| what != What::Conversation) else { return marks };
        let mut seen = HashSet::new();
        // A file of which only a part is unclear has two rows.
        for file in preview.files.iter().filter(|file| seen.insert(&file.path)) {
            match self.mark_of(file) {
                Some(Mark::Take) => marks.take.push(file.path.clone()),
                Some(Mark::Mine) => marks.mine.push(file.path.clone()),
                None => {}
            }
        }
        marks
    }
}
