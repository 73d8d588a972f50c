//! What the user chose to restore.

use super::{FileAction, MenuCoverage};

/// A restore that the user chose.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct RestoreChoice {
    /// The point's id.
    pub point: String,
    /// Whose changes are taken back.
    pub coverage: MenuCoverage,
    /// Files, conversation, or both.
    pub scope: RestoreScope,
    /// Which files.
    pub files: FileSelection,
}

/// What to restore.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum RestoreScope {
    /// Both.
    FilesAndConversation,
    /// The files; the conversation stays.
    Files,
    /// The conversation; the files stay.
    Conversation,
}

impl RestoreScope {
    pub(super) fn title(self) -> &'static str {
        match self {
            Self::FilesAndConversation => "Files and conversation",
            Self::Files => "Files only",
            Self::Conversation => "Conversation only",
        }
    }

    /// The key that chooses it directly.
    pub(super) fn key(self) -> char {
        match self {
            Self::FilesAndConversation => 'b',
            Self::Files => 'f',
            Self::Conversation => 'c',
        }
    }
}

/// The files to restore, by their paths as the preview shows them.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct FileSelection {
    /// Only these; `None` means all of them.
    pub paths: Option<Vec<String>>,
    /// Files whose author the user named.
    pub marks: Marks,
}

/// Files whose author the user named, in the order of the preview.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Marks {
    /// The agent's: restore them.
    pub take: Vec<String>,
    /// The user's own: keep them.
    pub mine: Vec<String>,
}

impl Marks {
    /// Whether no file is marked.
    #[must_use]
    pub fn is_empty(&self) -> bool {
        self.take.is_empty() && self.mine.is_empty()
    }
}

/// The author that the user names for a file.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Mark {
    Take,
    Mine,
}

impl Mark {
    pub(super) fn word(self) -> &'static str {
        match self {
            Self::Take => "take",
            Self::Mine => "mine",
        }
    }

    /// Why a file with this action cannot have the mark.
    pub(super) fn refusal(self, action: FileAction) -> Option<&'static str> {
        use FileAction::{Conflict, Delete, Keep, Merge, NotCaptured, Restore, Unclear};
        match (self, action) {
            (Self::Take, Keep | Unclear) | (Self::Mine, Restore | Delete | Merge | Unclear) => None,
            (Self::Take, Restore | Delete | Merge) => Some("This file is restored anyway."),
            (Self::Mine, Keep) => Some("This file is kept anyway."),
            (_, Conflict | NotCaptured) => Some("This file cannot be marked."),
        }
    }
}
