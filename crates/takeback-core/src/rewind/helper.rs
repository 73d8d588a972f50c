//! A rewind in whose middle the agent restores its own copies.
//!
//! Such a helper is trusted with nothing. What it says that it may write is looked at and kept
//! before it runs; whatever it wrote there that is neither what stood there nor what the plan wants
//! is put back; then the plan is done as if the helper had not been. Where that could not be
//! promised (outside the workspace, through links, over bytes that could not be kept) it is not run.

use std::collections::BTreeSet;
use std::os::unix::ffi::OsStrExt as _;
use std::path::PathBuf;

use serde::{Deserialize, Serialize};
use takeback_store::{Entry, Lack, WorkPath};

use super::journal::RewindError;
use super::plan::Plan;
use crate::record::look_at_paths;
use crate::workspace::Workspace;
use crate::worktree::Root;
use crate::worktree::fingerprint::stat;
use crate::worktree::look::{Bytes, look};
use crate::worktree::root::is_no_folder;
use crate::worktree::scope::{OWN_FOLDER, is_internal};

/// Somebody else's way to restore files.
pub struct Helper<'a> {
    /// What it says it may write: its dry run.
    pub paths: Vec<WorkPath>,
    /// Restores. Answers what went wrong, in words for people.
    pub run: &'a mut dyn FnMut() -> Result<(), String>,
}

impl Helper<'_> {
    /// What a helper means by these paths: each as it is written, and as it is with links followed,
    /// since nobody knows which of the two it would write.
    #[must_use]
    pub fn meant(workspace: &Workspace, paths: &[PathBuf]) -> Vec<WorkPath> {
        let mut meant = BTreeSet::new();
        for path in paths {
            let whole = workspace.root.path().join(path);
            let inside = whole.strip_prefix(workspace.root.path()).unwrap_or(&whole);
            let written = WorkPath::new(inside.as_os_str().as_bytes())
                .or_else(|_| WorkPath::new(whole.as_os_str().as_bytes()));
            match (written, workspace.resolve(path)) {
                (Ok(written), resolved) => {
                    meant.extend(resolved);
                    meant.insert(written);
                }
                // With `..` in it, or no path at all.
                (Err(_), Some(resolved)) => {
                    meant.insert(resolved);
                }
                (Err(_), None) => {
                    meant.insert(WorkPath::new(OWN_FOLDER).expect("a plain path"));
                }
            }
        }
        meant.into_iter().collect()
    }
}

/// What came of a helper. The rewind is the same in every case.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Helped {
    Ran,
    /// It said so; how far it came is not known, and does not matter.
    Failed(String),
    NotRun(NotRun),
}

/// Why a helper was not run.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum NotRun {
    #[error("no file was to be changed")]
    NothingToDo,
    #[error("only some paths were asked for")]
    SomePaths,
    #[error("it would write outside the workspace, to {}", .0.display())]
    Outside(WorkPath),
    #[error("it would write to {}, which no rewind touches", .0.display())]
    OffLimits(WorkPath),
    #[error("it would write through the link {}", .0.display())]
    Link(WorkPath),
    #[error("{} has other names, which would change with it", .0.display())]
    OtherNames(WorkPath),
    #[error("{} has set-id or sticky bits, which no rewind gives", .0.display())]
    SpecialBits(WorkPath),
    #[error("{} is a folder", .0.display())]
    Folder(WorkPath),
    #[error("what stands at {} could not be kept", .0.display())]
    NotKept(WorkPath),
    #[error("{} was changed just before", .0.display())]
    Changed(WorkPath),
}

/// A path that a helper may write, and what stood there before it ran.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct Named {
    pub path: WorkPath,
    pub present: Entry,
}

/// What stands at the helper's paths and the folders above them, by path, all of it in the store
/// now; or why the helper is not to be run.
pub(super) fn look_before(
    workspace: &mut Workspace,
    plan: &Plan,
    paths: &[WorkPath],
) -> Result<Result<Vec<Named>, NotRun>, RewindError> {
    if let Some(path) = paths.iter().find(|path| path.is_outside()) {
        return Ok(Err(NotRun::Outside(path.clone())));
    }
    let is_off_limits = |path: &&WorkPath| path.is_within(OWN_FOLDER) || is_internal(path);
    if let Some(path) = paths.iter().find(is_off_limits) {
        return Ok(Err(NotRun::OffLimits(path.clone())));
    }
    let files: BTreeSet<&WorkPath> = paths.iter().collect();
    let mut all: BTreeSet<WorkPath> = paths.iter().cloned().collect();
    all.extend(paths.iter().flat_map(WorkPath::ancestors));
    let all: Vec<WorkPath> = all.into_iter().collect();
    let mut to_record = Vec::new();
    for (path, latest) in all.iter().zip(workspace.store.latest_of(&all)?) {
        // Where nothing stands and nothing ever did, there is nothing for the log to say.
        if latest.is_some() || stands_at(&workspace.root, path) != Entry::Absent {
            to_record.push(path.clone());
        }
    }
    look_at_paths(workspace, &to_record)?;
    let latest = workspace.store.latest_of(&all)?;
    let mut named = Vec::new();
    for (path, latest) in all.into_iter().zip(latest) {
        let present = latest.map_or(Entry::Absent, |change| change.after);
        let planned = plan.steps.binary_search_by(|step| step.path.cmp(&path));
        // What stays was not necessarily looked at for the plan.
        let planned = planned.ok().map(|at| &plan.steps[at]).filter(|step| step.goal().is_some());
        let unfit = match &present {
            present if planned.is_some_and(|step| step.present != *present) => {
                Some(NotRun::Changed as fn(WorkPath) -> NotRun)
            }
            Entry::Symlink { .. } => Some(NotRun::Link as fn(_) -> _),
            Entry::Dir { .. } if files.contains(&path) => Some(NotRun::Folder as fn(_) -> _),
            Entry::NotCaptured { .. } | Entry::Unknown => Some(NotRun::NotKept as fn(_) -> _),
            Entry::File { mode, .. } if mode & 0o7000 != 0 => {
                Some(NotRun::SpecialBits as fn(_) -> _)
            }
            Entry::File { .. } if has_other_names(&workspace.root, &path) => {
                Some(NotRun::OtherNames as fn(_) -> _)
            }
            Entry::File { digest, .. }
                if workspace.store.read(digest, &mut |_| Ok(())).is_err() =>
            {
                Some(NotRun::NotKept as fn(_) -> _)
            }
            Entry::File { .. } | Entry::Dir { .. } | Entry::Absent => None,
        };
        if let Some(why) = unfit {
            return Ok(Err(why(path)));
        }
        named.push(Named { path, present });
    }
    Ok(Ok(named))
}

/// What stands at a path of the workspace. What cannot be looked at is not captured.
pub(super) fn stands_at(root: &Root, path: &WorkPath) -> Entry {
    let looked = match root.parent_of(path) {
        Ok(folder) => look(folder, path.file_name(), &mut Bytes::Hash).map(|looked| looked.entry),
        Err(error) if is_no_folder(&error) => Ok(Entry::Absent),
        Err(error) => Err(error),
    };
    looked.unwrap_or(Entry::NotCaptured { lack: Lack::Unreadable })
}

fn has_other_names(root: &Root, path: &WorkPath) -> bool {
    let seen = root.parent_of(path).and_then(|folder| stat(folder, path.file_name()));
    seen.is_ok_and(|seen| seen.is_some_and(|seen| seen.is_linked))
}
