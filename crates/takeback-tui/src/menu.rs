//! The rewind menu: a list of points, what going to one would do, and what is to go back.
//!
//! [`Menu::press`] takes a key and says what the caller has to do; [`Menu::draw`] shows what is known.
//! Previews are made by the caller, who is told for which row ([`Outcome::Look`],
//! [`Outcome::LookExecution`]) and answers with [`Menu::set_preview`] or
//! [`Menu::set_execution_preview`] when it has one. Nothing here restores anything.

mod detail;
mod list;
mod view;

use std::collections::HashMap;

use crate::keys::Key;
use crate::theme::Theme;
use detail::Detail;
use list::{Entry, Item, List};
use ratatui::Frame;
use ratatui::layout::Rect;

pub struct Menu {
    rows: Vec<Row>,
    executions: Vec<ExecutionRow>,
    options: MenuOptions,
    tab: Tab,
    row_list: List,
    execution_list: List,
    /// The second stage, if a row was chosen.
    detail: Option<Detail>,
    help: bool,
    notice: Option<String>,
    previews: HashMap<Subject, Result<Preview, String>>,
    /// Whose preview was asked for last.
    asked: Option<Subject>,
}

/// What a preview is of.
#[derive(Debug, Clone, PartialEq, Eq, Hash)]
enum Subject {
    Point(String),
    Execution(String),
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct MenuOptions {
    /// How many rows of this session, or of the folder, are shown before `older…`.
    pub keep: usize,
    pub scope: Scope,
    /// Whether the conversation can go back too.
    pub conversation: bool,
    /// Whether there is a rewind to undo.
    pub can_undo: bool,
    /// Whether files can be marked. An exact rewind does not ask who changed a file.
    pub can_mark: bool,
}

/// What the rows before those of other sessions are of.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Scope {
    /// The session that the menu is opened in, and points by hand.
    Session,
    /// No session is open: all that the folder has.
    Folder,
}

/// Whose work some files are, as the person says: their paths as a preview shows them, in its order.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Marks {
    /// An agent's, to be taken back.
    pub take: Vec<String>,
    /// The person's own.
    pub mine: Vec<String>,
}

impl Marks {
    #[must_use]
    pub fn is_empty(&self) -> bool {
        self.take.is_empty() && self.mine.is_empty()
    }
}

/// What the caller has to do after a key.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Outcome {
    Stay,
    /// Make the preview of this row. Whoever asks again does not need the one before any more.
    Look(String),
    /// The same for this execution.
    LookExecution(String),
    Cancel,
    Restore {
        id: String,
        what: What,
        /// Only these files; `None`: all of them.
        paths: Option<Vec<String>>,
        /// Files that the person marked as an agent's work, and as their own.
        marks: Marks,
    },
    RestoreExecution(String),
    Undo,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Tab {
    Points,
    Executions,
}

/// So many previews are kept; with their diffs they are not small.
const PREVIEWS_MAX: usize = 32;

impl Menu {
    /// `rows`: newest first. Those of other sessions are shown behind the present one's. Without any, the
    /// executions are shown first.
    #[must_use]
    pub fn new(rows: Vec<Row>, executions: Vec<ExecutionRow>, options: MenuOptions) -> Self {
        let (mut rows, others): (Vec<Row>, Vec<Row>) =
            rows.into_iter().partition(|row| row.origin != Origin::Other);
        rows.extend(others);
        let row_list = List::new(rows.iter().map(Item::of_row).collect(), options.keep);
        let of_execution = executions.iter().map(Item::of_execution).collect();
        let execution_list = List::new(of_execution, usize::MAX);
        // With no points, the executions are what there is to choose.
        let tab = match rows.is_empty() && !executions.is_empty() {
            true => Tab::Executions,
            false => Tab::Points,
        };
        Self {
            rows,
            executions,
            options,
            tab,
            row_list,
            execution_list,
            detail: None,
            help: false,
            notice: None,
            previews: HashMap::new(),
            asked: None,
        }
    }

    /// Opens with what going to this row would do.
    pub fn open(&mut self, id: &str) -> Outcome {
        let Some(row) = self.rows.iter().find(|row| row.id == id) else { return Outcome::Stay };
        let conversation = self.options.conversation && row.origin != Origin::Other;
        self.detail = Some(Detail::of_point(row.id.clone(), conversation, self.options.can_mark));
        self.asked = Some(Subject::Point(id.to_owned()));
        Outcome::Look(id.to_owned())
    }

    pub fn press(&mut self, key: &Key) -> Outcome {
        self.notice = None;
        if std::mem::take(&mut self.help) {
            return Outcome::Stay;
        }
        if *key == Key::Ctrl('c') {
            return Outcome::Cancel;
        }
        match self.detail.take() {
            Some(detail) => self.press_in_detail(detail, key),
            None => self.press_in_list(key),
        }
    }

    /// What going to this row would do, or why that cannot be said.
    pub fn set_preview(&mut self, id: &str, preview: Result<Preview, String>) {
        self.keep(Subject::Point(id.to_owned()), preview);
    }

    /// What restoring this execution would do to files, or why that cannot be said.
    pub fn set_execution_preview(&mut self, execution: &str, preview: Result<Preview, String>) {
        self.keep(Subject::Execution(execution.to_owned()), preview);
    }

    fn keep(&mut self, subject: Subject, preview: Result<Preview, String>) {
        if self.asked.as_ref() == Some(&subject) {
            self.asked = None;
        }
        if self.previews.len() >= PREVIEWS_MAX {
            let shown = self.selected();
            self.previews.retain(|kept, _| Some(kept) == shown.as_ref());
        }
        self.previews.insert(subject, preview);
    }

    /// Remembers how much of each list there was room for, so that a page is a page.
    pub fn draw(&mut self, frame: &mut Frame, area: Rect, theme: &Theme) {
        view::draw(self, frame, area, theme);
    }

    fn press_in_detail(&mut self, mut detail: Detail, key: &Key) -> Outcome {
        if *key == Key::Char('?') {
            self.help = true;
            self.detail = Some(detail);
            return Outcome::Stay;
        }
        match detail.press(key, self.previews.get(detail.subject())) {
            detail::Outcome::Stay => {
                self.detail = Some(detail);
                Outcome::Stay
            }
            detail::Outcome::Back => Outcome::Stay,
            detail::Outcome::Restore(outcome) => outcome,
        }
    }

    fn press_in_list(&mut self, key: &Key) -> Outcome {
        if *key == Key::Tab || *key == Key::BackTab {
            self.tab = match self.tab {
                Tab::Points => Tab::Executions,
                Tab::Executions => Tab::Points,
            };
            return self.look();
        }
        match self.list_mut().press(key) {
            list::Outcome::Stay => Outcome::Stay,
            list::Outcome::Moved => self.look(),
            list::Outcome::Cancel => Outcome::Cancel,
            list::Outcome::Chosen(index) => {
                self.detail = Some(match self.tab {
                    Tab::Points => {
                        let row = &self.rows[index];
                        let conversation = self.options.conversation && row.origin != Origin::Other;
                        Detail::of_point(row.id.clone(), conversation, self.options.can_mark)
                    }
                    Tab::Executions => {
                        Detail::of_execution(self.executions[index].execution.clone())
                    }
                });
                self.look()
            }
            list::Outcome::NotMine => match key {
                Key::Char('u') if self.options.can_undo => Outcome::Undo,
                Key::Char('u') => {
                    self.notice = Some("There is no rewind to undo.".to_owned());
                    Outcome::Stay
                }
                Key::Char('?') => {
                    self.help = true;
                    Outcome::Stay
                }
                _ => Outcome::Stay,
            },
        }
    }

    fn list(&self) -> &List {
        match self.tab {
            Tab::Points => &self.row_list,
            Tab::Executions => &self.execution_list,
        }
    }

    fn list_mut(&mut self) -> &mut List {
        match self.tab {
            Tab::Points => &mut self.row_list,
            Tab::Executions => &mut self.execution_list,
        }
    }

    /// Whose preview is shown.
    fn selected(&self) -> Option<Subject> {
        let Some(Entry::Item(index)) = self.list().selected() else { return None };
        Some(match self.tab {
            Tab::Points => Subject::Point(self.rows.get(index)?.id.clone()),
            Tab::Executions => Subject::Execution(self.executions.get(index)?.execution.clone()),
        })
    }

    /// What the last so many rows before those of other sessions are.
    fn older(&self, more: usize) -> String {
        let own = self.rows.iter().take_while(|row| row.origin != Origin::Other).count();
        let older = &self.rows[own.saturating_sub(more)..own];
        let by_hand = older.iter().filter(|row| row.origin == Origin::ByHand).count();
        match (self.options.scope, more - by_hand) {
            (Scope::Folder, _) => format!("{more} more"),
            (Scope::Session, 0) => format!("{more} more by hand"),
            (Scope::Session, _) if by_hand == 0 => format!("{more} more of this session"),
            (Scope::Session, own) => {
                format!("{more} more: {own} of this session, {by_hand} by hand")
            }
        }
    }

    fn look(&mut self) -> Outcome {
        let Some(subject) = self.selected() else { return Outcome::Stay };
        if self.previews.contains_key(&subject) || self.asked.as_ref() == Some(&subject) {
            return Outcome::Stay;
        }
        self.asked = Some(subject.clone());
        match subject {
            Subject::Point(id) => Outcome::Look(id),
            Subject::Execution(execution) => Outcome::LookExecution(execution),
        }
    }
}

/// A point to go back to.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Row {
    /// What the caller knows it by.
    pub id: String,
    /// `3 min ago`.
    pub age: String,
    pub description: String,
    pub label: Option<String>,
    /// Of the turn that began here.
    pub files: usize,
    /// Lines that came and went; `None`: nobody has counted them.
    pub lines: Option<(usize, usize)>,
    /// Who made it, named for people: `claude`, `by hand`.
    pub agent: String,
    /// Which of the agent's sessions, where it is not the present one.
    pub session: Option<String>,
    pub origin: Origin,
}

impl Row {
    /// `claude 7f3e21d0`.
    fn whose(&self) -> String {
        match &self.session {
            Some(session) => format!("{} {session}", self.agent),
            None => self.agent.clone(),
        }
    }
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Origin {
    /// The present session; without one, any.
    Present,
    ByHand,
    /// Another session than the present.
    Other,
}

/// An execution: the second tab.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct ExecutionRow {
    pub execution: String,
    pub step: String,
    pub age: String,
}

/// What going back would do, or why it cannot be said.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Preview {
    pub files: Vec<FilePreview>,
    /// Lines worth telling: what could not be captured, what happened while a command ran.
    pub notes: Vec<String>,
}

#[derive(Debug, Clone, PartialEq, Eq)]
pub struct FilePreview {
    pub path: String,
    pub fate: Fate,
    /// Why, where the fate alone does not say it.
    pub reason: Option<String>,
    /// How the file would change.
    pub diff: Vec<DiffLine>,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Fate {
    Restored,
    Deleted,
    Merged,
    Kept,
    Conflict,
    Unclear,
    NotCaptured,
}

#[derive(Debug, Clone, PartialEq, Eq)]
pub struct DiffLine {
    pub kind: LineKind,
    /// Without the `+` or `-` before it.
    pub text: String,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum LineKind {
    Context,
    Added,
    Removed,
    /// `@@ … @@`, or a word about a binary file.
    Heading,
}

/// What is to go back.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum What {
    FilesAndConversation,
    Files,
    Conversation,
}

impl What {
    fn words(self) -> &'static str {
        match self {
            Self::FilesAndConversation => "Files and conversation",
            Self::Files => "Files only",
            Self::Conversation => "Conversation only",
        }
    }

    /// Chooses it at once.
    fn key(self) -> char {
        match self {
            Self::FilesAndConversation => 'b',
            Self::Files => 'f',
            Self::Conversation => 'c',
        }
    }
}

/// What the person says of a file.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Mark {
    Take,
    Mine,
}

impl Mark {
    fn word(self) -> &'static str {
        match self {
            Self::Take => "take",
            Self::Mine => "mine",
        }
    }

    /// Why a file of this fate cannot have the mark.
    fn refusal(self, fate: Fate) -> Option<&'static str> {
        match (self, fate) {
            (Self::Take, Fate::Kept | Fate::Unclear)
            | (Self::Mine, Fate::Restored | Fate::Deleted | Fate::Merged | Fate::Unclear) => None,
            (Self::Take, Fate::Restored | Fate::Deleted | Fate::Merged) => {
                Some("This file is taken back anyway.")
            }
            (Self::Mine, Fate::Kept) => Some("This file is kept anyway."),
            (_, Fate::Conflict | Fate::NotCaptured) => Some("This file cannot be marked."),
        }
    }
}

impl Fate {
    /// Whether the file would be written or deleted.
    #[must_use]
    pub fn changes(self) -> bool {
        matches!(self, Self::Restored | Self::Deleted | Self::Merged)
    }

    fn word(self) -> &'static str {
        match self {
            Self::Restored => "restored",
            Self::Deleted => "deleted",
            Self::Merged => "merged",
            Self::Kept => "kept",
            Self::Conflict => "conflict",
            Self::Unclear => "unclear",
            Self::NotCaptured => "not captured",
        }
    }
}
