//! The preview of a restore, file by file.

use crate::diff::DiffLine;

/// What a restore would do.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Preview {
    /// Whose changes it takes back, as the first line.
    pub covers: Option<String>,
    /// Every file that would change, and those that stay for a reason worth knowing.
    pub files: Vec<FilePreview>,
    /// Remarks about the whole: files that were not captured, changes made while a command ran.
    pub notes: Vec<String>,
}

impl Preview {
    /// How many files are in conflict.
    pub(super) fn conflicts(&self) -> usize {
        self.files.iter().filter(|file| file.action == FileAction::Conflict).count()
    }

    pub(super) fn changes_files(&self) -> bool {
        self.files.iter().any(|file| file.action.changes_file())
    }
}

/// What a restore would do with one file.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct FilePreview {
    /// Its path, as it is shown.
    pub path: String,
    /// What would be done.
    pub action: FileAction,
    /// Why, if the action alone does not say it.
    pub reason: Option<String>,
    /// How the file would change.
    pub diff: Vec<DiffLine>,
}

/// What a restore would do with a file.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum FileAction {
    /// Write its earlier contents.
    Restore,
    /// Delete it: the agent created it.
    Delete,
    /// Undo the agent's lines, keep the user's.
    Merge,
    /// Leave it: the agent did not change it.
    Keep,
    /// Leave the lines that both changed.
    Conflict,
    /// Leave it: the author is unknown.
    Unclear,
    /// Leave it: its earlier contents were not saved.
    NotCaptured,
}

impl FileAction {
    /// Whether the file would be written or deleted.
    #[must_use]
    pub fn changes_file(self) -> bool {
        matches!(self, Self::Restore | Self::Delete | Self::Merge)
    }

    pub(super) fn word(self) -> &'static str {
        match self {
            Self::Restore => "restore",
            Self::Delete => "delete",
            Self::Merge => "merge",
            Self::Keep => "keep",
            Self::Conflict => "conflict",
            Self::Unclear => "unclear",
            Self::NotCaptured => "not captured",
        }
    }
}
