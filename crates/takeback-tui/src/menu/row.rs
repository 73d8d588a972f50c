//! The rows of the menu: points, the operations between them, and executions.

use crate::chat::format_counts;

/// Which row of the menu is meant.
#[derive(Debug, Clone, PartialEq, Eq, Hash)]
pub enum RowId {
    /// A point, by its id.
    Point(String),
    /// An execution, by its name.
    Execution(String),
}

/// A point to go back to.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct PointRow {
    /// The point's id.
    pub id: String,
    /// `3 min ago`.
    pub age: String,
    /// The prompt, or what the point is called.
    pub description: String,
    /// The user's label.
    pub label: Option<String>,
    /// How many files the agent changed in the turn that started here.
    pub files: usize,
    /// Lines it added and removed in that turn; `None` if they were not counted.
    pub lines: Option<(usize, usize)>,
    /// What others changed in that time: you, other sessions, or it is unclear who.
    pub others: Vec<PartyCount>,
    /// Whether rewinds took back what the agent did.
    pub taken_back: TakenBack,
    /// How HEAD moved in git until the next point: `main 1a2b3c4d → 5d6e7f80`.
    pub git: Option<String>,
    /// The display name of its author: `claude`, `by hand`.
    pub agent: String,
    /// The agent's session, if it is not the current one.
    pub session: Option<String>,
    /// Where the point comes from.
    pub origin: Origin,
}

impl PointRow {
    /// `claude 7f3e21d0`.
    pub(super) fn agent_and_session(&self) -> String {
        match &self.session {
            Some(session) => format!("{} {session}", self.agent),
            None => self.agent.clone(),
        }
    }
}

/// How much someone other than the point's agent changed.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct PartyCount {
    /// `you`, `others`, `unclear`.
    pub who: &'static str,
    /// How many files.
    pub files: usize,
    /// Lines added and removed; `None` if they were not counted.
    pub lines: Option<(usize, usize)>,
}

impl PartyCount {
    /// `you +4 -1`, or `you 2 files` without lines.
    pub(super) fn text(&self) -> String {
        let Self { who, files, lines } = self;
        match lines {
            Some((0, 0)) | None => format!("{who} {}", format_counts(*files, None)),
            Some((added, 0)) => format!("{who} +{added}"),
            Some((0, removed)) => format!("{who} -{removed}"),
            Some((added, removed)) => format!("{who} +{added} -{removed}"),
        }
    }
}

/// How much of something rewinds took back.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub enum TakenBack {
    /// Nothing.
    #[default]
    No,
    /// A part.
    Partly,
    /// All of it.
    Yes,
}

impl TakenBack {
    pub(super) fn words(self) -> Option<&'static str> {
        match self {
            Self::No => None,
            Self::Partly => Some("partly taken back"),
            Self::Yes => Some("taken back"),
        }
    }
}

/// A rewind, undo or redo between the points. It is shown, and cannot be selected.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct OperationRow {
    /// The id of the point above which it is shown: the newest one before it.
    pub above: String,
    /// `3 min ago`.
    pub age: String,
    /// `rewind to 1a2b3c4d add discounts`.
    pub description: String,
    /// How many files it changed.
    pub files: usize,
    /// Whether it was undone.
    pub undone: TakenBack,
}

impl OperationRow {
    /// What it did, and whether that holds.
    pub(super) fn text(&self) -> String {
        let counts = match self.files {
            0 => "no files".to_owned(),
            files => format_counts(files, None),
        };
        let undone = match self.undone {
            TakenBack::No => "",
            TakenBack::Partly => "  partly undone",
            TakenBack::Yes => "  undone",
        };
        format!("{}  {counts}{undone}", self.description)
    }
}

/// Where a point comes from.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Origin {
    /// The current session; if there is none, any session.
    ThisSession,
    /// The user made it.
    Manual,
    /// A session other than the current one.
    OtherSession,
}

/// An execution: a row of the second tab.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct ExecutionRow {
    /// Its name.
    pub execution: String,
    /// The step that a restore goes back to.
    pub step: String,
    /// `3 min ago`.
    pub age: String,
}
