//! What the last scan says about a single path.

use takeback_store::{Change, Entry, NotCapturedReason, StoreError, WorkPath};

use crate::workspace::Workspace;
use crate::worktree::index::{Index, KnownName};
use crate::worktree::look::stat_path;

/// The index of the last scan: the one just made, or the one on disk, loaded when first needed.
pub(super) struct LastIndex<'a> {
    made: Option<&'a Index>,
    loaded: Option<Index>,
}

impl<'a> LastIndex<'a> {
    /// `made`: the index of a scan that this event made.
    pub(super) fn new(made: Option<&'a Index>) -> Self {
        Self { made, loaded: None }
    }

    pub(super) fn read(&mut self, workspace: &Workspace) -> Result<&Index, StoreError> {
        match self.made {
            Some(index) => Ok(index),
            None => Ok(match self.loaded.take() {
                Some(index) => self.loaded.insert(index),
                None => {
                    self.loaded.insert(Index::load(&workspace.index_file(), &*workspace.store)?)
                }
            }),
        }
    }

    /// Whether the path still has the very file whose bytes could not be saved last time.
    pub(super) fn is_unsaved_file(
        &mut self,
        workspace: &Workspace,
        path: &WorkPath,
        latest: Option<&Change>,
    ) -> Result<bool, StoreError> {
        let is_unsaved = latest.is_some_and(
            |change| matches!(change.after, Entry::NotCaptured { reason } if reason.may_be_captured_later()),
        );
        if !is_unsaved {
            return Ok(false);
        }
        let Some(KnownName::Entry { fingerprint: Some(known), .. }) =
            self.read(workspace)?.known(path)
        else {
            return Ok(false);
        };
        let seen = stat_path(&workspace.root, path);
        Ok(seen.is_ok_and(|seen| seen.is_some_and(|seen| seen.fingerprint == known)))
    }

    /// Whether the path has a file outside the scope, of which the log knows only that it changed. A rewind
    /// does not read such a file.
    pub(super) fn is_uncovered_file(
        &mut self,
        workspace: &Workspace,
        path: &WorkPath,
        latest: Option<&Change>,
    ) -> Result<bool, StoreError> {
        let uncovered = Entry::NotCaptured { reason: NotCapturedReason::TooLarge };
        if latest.is_none_or(|change| change.after != uncovered) {
            return Ok(false);
        }
        let is_skipped = self.read(workspace)?.known(path).is_some_and(|known| known.is_skipped());
        Ok(is_skipped && stat_path(&workspace.root, path).is_ok_and(|seen| seen.is_some()))
    }
}
