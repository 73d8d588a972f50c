//! What the index knows of one folder and the names in it.

use takeback_store::Entry;

use crate::worktree::fingerprint::Fingerprint;
use crate::worktree::scope::OutReason;

/// What is known of the names in one folder.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Folder {
    /// The last scan read all its names: one that is not among `children` was absent then.
    pub listed: bool,
    /// It could not be read since a scan that read all its names: what is found in it that is not among
    /// `children` came after that scan.
    pub hidden: bool,
    /// Its own, from before its names were read: as long as it is the same, so are the names. None:
    /// they must be read again.
    pub fingerprint: Option<Fingerprint>,
    /// It holds a `.git`.
    pub repository: bool,
    /// That of the repository's own rules, which are no entry (`.git/info/exclude`).
    pub excludes: Option<Fingerprint>,
    /// By name.
    pub children: Vec<Child>,
}

#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Child {
    pub name: Box<[u8]>,
    pub known: Known,
}

#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Known {
    Entry {
        entry: Entry,
        /// None: it must be looked at.
        fingerprint: Option<Fingerprint>,
        /// Ignored, and in scope for being small.
        precious: bool,
    },
    /// It stood there and was out of scope: what it was before it comes into scope is unknown.
    Skipped {
        why: OutReason,
        /// Of a file that might come into scope by becoming another.
        fingerprint: Option<Fingerprint>,
    },
}

impl Known {
    #[must_use]
    pub fn is_skipped(&self) -> bool {
        matches!(self, Self::Skipped { .. })
    }

    /// A folder that is recorded as one path.
    #[must_use]
    pub fn is_left(&self) -> bool {
        matches!(self, Self::Entry { entry: Entry::NotCaptured { reason }, .. }
            if reason.covers_folder())
    }

    /// What is known not to have been read, and what is in it.
    #[must_use]
    pub fn is_unreadable(&self) -> bool {
        matches!(self, Self::Entry { entry, .. } if entry.is_unreadable())
    }

    /// Why it is not covered, nor what is in it.
    pub(crate) fn left_out(&self) -> Option<OutReason> {
        match self {
            Self::Skipped { why, .. } => Some(*why),
            Self::Entry { entry: Entry::NotCaptured { reason }, .. } => OutReason::of_left(*reason),
            Self::Entry { .. } => None,
        }
    }

    pub(crate) fn fingerprint(&self) -> Option<Fingerprint> {
        match self {
            Self::Entry { fingerprint, .. } | Self::Skipped { fingerprint, .. } => *fingerprint,
        }
    }
}

impl Folder {
    #[must_use]
    pub fn child(&self, name: &[u8]) -> Option<&Known> {
        let at = self.children.binary_search_by(|child| (*child.name).cmp(name)).ok()?;
        Some(&self.children[at].known)
    }

    /// What was known of a folder whose names could not be read.
    #[must_use]
    pub fn unread(&self) -> Self {
        Self { listed: false, fingerprint: None, ..self.clone() }
    }

    /// Whether names in it were passed over, or left as a whole.
    pub(crate) fn has_skipped(&self) -> bool {
        self.children.iter().any(|child| child.known.left_out().is_some())
    }

    /// How large the ignored files in it are that are kept all the same.
    pub(crate) fn precious_bytes(&self) -> u64 {
        let size = |child: &Child| match child.known {
            Known::Entry { entry: Entry::File { size, .. }, precious: true, .. } => size,
            _ => 0,
        };
        self.children.iter().map(size).fold(0, u64::saturating_add)
    }

    pub(super) fn without_children(&self) -> Self {
        Self { children: Vec::new(), ..*self }
    }
}
