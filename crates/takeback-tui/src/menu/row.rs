//! The rows of the menu: points and executions.

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
    /// How many files changed in the turn that started here.
    pub files: usize,
    /// Lines added and removed in that turn; `None` if they were not counted.
    pub lines: Option<(usize, usize)>,
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
