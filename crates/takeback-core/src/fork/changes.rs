//! What happened in a fork since it was made.

use std::collections::HashSet;
use std::io::Read as _;
use std::path::Path;

use takeback_store::{Digest, Entry, PackedBlob, WorkPath};

use super::origin::{Origin, fork_origin};
use super::target::is_unfinished;
use super::{ForkError, base};
use crate::ambient::Ambient;
use crate::platform::folder::open_file;
use crate::tree_copy::link_into;
use crate::worktree::Root;
use crate::worktree::budget::Budget;
use crate::worktree::index::{Index, KnownName};
use crate::worktree::scan::{Extent, ScanRequest, Unreadable, scan};
use crate::worktree::scope::{DistrustedRules, ScopeOptions, is_stage};

/// A complete fork.
#[derive(Debug)]
pub struct Fork {
    /// Where it comes from.
    pub origin: Origin,
    root: Root,
    /// What it was when it was made.
    base: Index,
}

/// One path that differs from what it was when the fork was made.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct ForkChange {
    /// The path, in the fork and in its origin.
    pub path: WorkPath,
    /// The entry of the origin's log at the point. [`Entry::Unknown`] or [`Entry::NotCaptured`]: the fork did
    /// not get it. Links lead to where they led in the origin.
    pub base: Entry,
    /// What is in the fork now. A link into the fork leads to the same place in the origin.
    pub now: Entry,
}

/// What happened in a fork.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct ForkChanges {
    /// What differs, by path.
    pub changes: Vec<ForkChange>,
    /// What could not be read, and so may differ as well.
    pub unreadable: Vec<Unreadable>,
}

impl Fork {
    /// The fork in `folder`, which is canonical, with its store in `store_dir`.
    pub fn open(folder: &Path, store_dir: &Path) -> Result<Self, ForkError> {
        let unusable = |source| ForkError::Unusable { path: folder.to_owned(), source };
        // First: one that was killed early has no origin yet.
        if is_unfinished(folder).map_err(unusable)? {
            return Err(ForkError::Unfinished { folder: folder.to_owned() });
        }
        let origin = fork_origin(store_dir)?;
        let origin = origin.ok_or_else(|| ForkError::NoFork { folder: folder.to_owned() })?;
        let base = base::load(store_dir)?;
        Ok(Self { origin, root: Root::open(folder).map_err(unusable)?, base })
    }

    /// The fork's folder.
    #[must_use]
    pub fn path(&self) -> &Path {
        self.root.path()
    }

    /// Scans the fork. The packed bytes of every file that differs go to `sink`, parts before the whole.
    pub fn changes(
        &self,
        scope: &ScopeOptions,
        ambient: &Ambient,
        sink: &mut dyn FnMut(PackedBlob),
    ) -> Result<ForkChanges, ForkError> {
        const THREADS: usize = 8;
        let work = ambient.begin_reading(0, 0);
        let request = ScanRequest {
            root: &self.root,
            before: &self.base,
            options: scope,
            threads: std::thread::available_parallelism().map_or(1, usize::from).min(THREADS),
            budget: Budget::UNLIMITED,
            counter: work.counter(),
            extent: Extent::Whole,
            kept: &HashSet::new(),
            distrusted: &DistrustedRules::default(),
            stages: &HashSet::new(),
        };
        let scan = scan(&request, sink)?;
        let changes = scan.found.into_iter().filter_map(|found| {
            let base = match found.before {
                // The fork has only what was written into it.
                Entry::Unknown if !self.is_uncertain(&found.path) => Entry::Absent,
                before => before,
            };
            let change = ForkChange {
                base: self.in_origin(base),
                now: self.in_origin(found.after),
                path: found.path,
            };
            change.is_one().then_some(change)
        });
        let mut changes: Vec<ForkChange> = changes.collect();
        changes.sort_by(|a, b| a.path.cmp(&b.path));
        Ok(ForkChanges { changes, unreadable: scan.unreadable })
    }

    /// The bytes of a file in the fork, if they are still these.
    pub fn contents(&self, path: &WorkPath, digest: &Digest) -> Result<Vec<u8>, ForkError> {
        let mut contents = Vec::new();
        self.root
            .parent_of(path)
            .and_then(|folder| Ok(open_file(folder, path.file_name())?))
            .and_then(|mut file| file.read_to_end(&mut contents))
            .map_err(|source| {
                let path = self.path().join(path.display());
                ForkError::Unusable { path, source }
            })?;
        if Digest::of(&contents) == *digest {
            Ok(contents)
        } else {
            Err(ForkError::Changed { path: path.clone() })
        }
    }

    /// Whether the fork may have got something here that is not in the base.
    fn is_uncertain(&self, path: &WorkPath) -> bool {
        let skipped =
            |path: &WorkPath| matches!(self.base.known(path), Some(KnownName::Skipped { .. }));
        skipped(path) || path.ancestors().any(|above| skipped(&above))
    }

    fn in_origin(&self, entry: Entry) -> Entry {
        match entry {
            Entry::Symlink { target } => {
                Entry::Symlink { target: link_into(&target, self.path(), &self.origin.root) }
            }
            entry => entry,
        }
    }
}

impl ForkChange {
    fn is_one(&self) -> bool {
        let never_there = matches!(self.base, Entry::NotCaptured { .. } | Entry::Unknown)
            && matches!(self.now, Entry::Absent);
        self.base != self.now && !never_there && !is_stage(self.path.as_bytes())
    }
}
