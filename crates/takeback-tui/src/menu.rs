//! The rewind menu: a list of points, what going to one would do, and what is to go back.

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
    pub insertions: usize,
    pub deletions: usize,
    /// The session, named for people, if it is another one than the present.
    pub session: Option<String>,
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
