//! What the index knows about one folder and the names in it.

use takeback_store::Entry;

use crate::worktree::fingerprint::Fingerprint;
use crate::worktree::scope::OutReason;

/// The known names of one folder.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Folder {
    /// The last scan read all its names: one that is not among `children` was absent then.
    pub listed: bool,
    /// It was unreadable after a scan that had read all its names: a name that is not among `children`
    /// was created after that scan.
    pub hidden: bool,
    /// Its own, taken before its names were read: while it is the same, so are the names. None: they must
    /// be read again.
    pub fingerprint: Option<Fingerprint>,
    /// It holds a `.git`.
    pub repository: bool,
    /// The fingerprint of the repository's own rules (`.git/info/exclude`), which are not an entry.
    pub excludes: Option<Fingerprint>,
    /// By name.
    pub children: Vec<Child>,
}

#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Child {
    pub name: Box<[u8]>,
    pub known: KnownName,
}

/// What is known of a name in a folder.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum KnownName {
    /// It belongs to the workspace.
    Entry {
        /// Its last recorded entry.
        entry: Entry,
        /// None: it must be looked at.
        fingerprint: Option<Fingerprint>,
        /// Ignored, but covered because it is small.
        precious: bool,
    },
    /// It exists and is out of scope. If it comes into scope, its earlier contents are unknown.
    Skipped {
        /// Why it is out of scope.
        why: OutReason,
        /// The fingerprint of a file that may come into scope if it changes.
        fingerprint: Option<Fingerprint>,
    },
}

impl KnownName {
    /// Whether it is out of scope.
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

    /// Whether it, and what is in it, could not be read.
    #[must_use]
    pub fn is_unreadable(&self) -> bool {
        matches!(self, Self::Entry { entry, .. } if entry.is_unreadable())
    }

    /// Why it, and what is in it, is not covered.
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
    /// What is known of a name in this folder.
    #[must_use]
    pub fn child(&self, name: &[u8]) -> Option<&KnownName> {
        let at = self.children.binary_search_by(|child| (*child.name).cmp(name)).ok()?;
        Some(&self.children[at].known)
    }

    /// The same folder after its names could not be read.
    #[must_use]
    pub fn unread(&self) -> Self {
        Self { listed: false, fingerprint: None, ..self.clone() }
    }

    /// Whether it has skipped names, or folders that are recorded as one path.
    pub(crate) fn has_skipped(&self) -> bool {
        self.children.iter().any(|child| child.known.left_out().is_some())
    }

    /// The total size of the ignored files in it that are covered.
    pub(crate) fn precious_bytes(&self) -> u64 {
        let size = |child: &Child| match child.known {
            KnownName::Entry { entry: Entry::File { size, .. }, precious: true, .. } => size,
            _ => 0,
        };
        self.children.iter().map(size).fold(0, u64::saturating_add)
    }

    pub(super) fn without_children(&self) -> Self {
        Self { children: Vec::new(), ..*self }
    }
}
