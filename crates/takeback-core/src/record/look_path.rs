//! Looks at single paths for an observation: reads an entry and saves its bytes, unless the log or the
//! last scan shows that this is not needed.

use std::os::fd::OwnedFd;
use std::path::Path;

use takeback_store::{Change, Entry, NotCapturedReason, PackedBlob, StoreError, WorkPath};

use super::RecordError;
use crate::workspace::Workspace;
use crate::worktree::Root;
use crate::worktree::fingerprint::stat;
use crate::worktree::index::{Index, KnownName};
use crate::worktree::look::{Bytes, LookResult, look};
use crate::worktree::root::is_no_folder;
use crate::worktree::scope::is_stage;

/// The index of the last scan: the one just made, or the one on disk, loaded when first needed.
#[derive(Default)]
pub(super) struct LastScan<'a> {
    pub(super) made: Option<&'a Index>,
    pub(super) loaded: Option<Index>,
}

impl LastScan<'_> {
    pub(super) fn index(&mut self, workspace: &Workspace) -> Result<&Index, StoreError> {
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
}

/// Whether the path still has the very file whose bytes could not be saved last time.
pub(super) fn is_unsaved_file(
    workspace: &Workspace,
    path: &WorkPath,
    latest: Option<&Change>,
    scan: &mut LastScan<'_>,
) -> Result<bool, RecordError> {
    let is_unsaved = latest.is_some_and(
        |change| matches!(change.after, Entry::NotCaptured { reason } if reason.may_be_captured_later()),
    );
    if !is_unsaved {
        return Ok(false);
    }
    let Some(KnownName::Entry { fingerprint: Some(known), .. }) =
        scan.index(workspace)?.known(path)
    else {
        return Ok(false);
    };
    let seen = folder_of(&workspace.root, path).and_then(|folder| stat(folder, path.file_name()));
    Ok(seen.is_ok_and(|seen| seen.is_some_and(|seen| seen.fingerprint == known)))
}

/// Whether the path has a file outside the scope, of which the log knows only that it changed. A rewind
/// does not read such a file.
pub(super) fn is_uncovered_file(
    workspace: &Workspace,
    path: &WorkPath,
    latest: Option<&Change>,
    scan: &mut LastScan<'_>,
) -> Result<bool, RecordError> {
    let uncovered = Entry::NotCaptured { reason: NotCapturedReason::TooLarge };
    if latest.is_none_or(|change| change.after != uncovered) {
        return Ok(false);
    }
    let is_skipped = scan.index(workspace)?.known(path).is_some_and(|known| known.is_skipped());
    let seen = folder_of(&workspace.root, path).and_then(|folder| stat(folder, path.file_name()));
    Ok(is_skipped && seen.is_ok_and(|seen| seen.is_some()))
}

/// Looks at a path and saves its bytes, whatever their size.
pub(super) fn look_and_save(
    workspace: &mut Workspace,
    path: &WorkPath,
    latest: Option<&Change>,
) -> Result<Entry, RecordError> {
    let known = latest.and_then(|change| change.after.digest());
    let store = &mut workspace.store;
    let mut failed = None;
    let mut save = |blob: PackedBlob| {
        if failed.is_none() {
            failed = store.put(blob).err();
        }
    };
    let bytes = Bytes::KeepQuickly { known, sink: &mut save };
    let looked = look_in_tree(&workspace.root, path, bytes);
    match failed {
        Some(error) => Err(error.into()),
        None => Ok(looked.entry),
    }
}

/// As [`look_and_save`], but a file above `limit` is only compared with the last scan.
pub(super) fn look_within(
    workspace: &mut Workspace,
    path: &WorkPath,
    limit: u64,
    latest: Option<&Change>,
    scan: &mut LastScan<'_>,
) -> Result<Entry, RecordError> {
    // An error is reported by the look that follows.
    let seen = folder_of(&workspace.root, path).and_then(|folder| stat(folder, path.file_name()));
    let seen = seen.unwrap_or(None);
    let large = seen.filter(|seen| {
        seen.kind == rustix::fs::FileType::RegularFile && seen.fingerprint.size > limit
    });
    let Some(seen) = large else { return look_and_save(workspace, path, latest) };
    let known = match scan.index(workspace)?.known(path) {
        Some(KnownName::Entry { entry, fingerprint: Some(fingerprint), .. }) => {
            Some((entry, fingerprint))
        }
        _ => None,
    };
    let kept = latest.and_then(|change| match change.after {
        Entry::File { digest, size, .. } if size == seen.fingerprint.size => Some(digest),
        _ => None,
    });
    match (known, kept) {
        (Some((entry, fingerprint)), _) if fingerprint == seen.fingerprint => Ok(entry),
        // Its bytes were saved after the last scan: only its contents show whether it still has them.
        (None, Some(kept)) => {
            let looked = look_in_tree(&workspace.root, path, Bytes::Hash).entry;
            let same = looked.digest() == Some(kept);
            Ok(if same {
                looked
            } else {
                Entry::NotCaptured { reason: NotCapturedReason::TooLarge }
            })
        }
        _ => Ok(Entry::NotCaptured { reason: NotCapturedReason::TooLarge }),
    }
}

/// Looks at a path inside or outside the workspace. A path that cannot be read is `NotCaptured`.
fn look_in_tree(root: &Root, path: &WorkPath, mut bytes: Bytes<'_>) -> LookResult {
    let looked = match folder_of(root, path) {
        Ok(folder) => look(folder, path.file_name(), &mut bytes),
        // No such folder, or a link or file in its place: the path is absent.
        Err(error) if is_no_folder(&error) => {
            Ok(LookResult { entry: Entry::Absent, fingerprint: None })
        }
        Err(error) => Err(error),
    };
    let mut looked = looked.unwrap_or(LookResult {
        entry: Entry::NotCaptured { reason: NotCapturedReason::Unreadable },
        fingerprint: None,
    });
    if is_stage(path.as_bytes()) && looked.entry != Entry::Absent {
        looked.entry = Entry::NotCaptured { reason: NotCapturedReason::Reserved };
    }
    looked
}

pub(super) fn folder_of(root: &Root, path: &WorkPath) -> std::io::Result<OwnedFd> {
    if path.is_outside() {
        use std::os::unix::ffi::OsStrExt as _;
        let path = Path::new(std::ffi::OsStr::from_bytes(path.as_bytes()));
        let folder = Root::open(path.parent().unwrap_or(path))?;
        return folder.folder(b"", crate::worktree::root::Access::Reach);
    }
    root.parent_of(path)
}
