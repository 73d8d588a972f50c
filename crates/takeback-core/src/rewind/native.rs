//! The agent's own restore, run in the middle of a rewind so that a live agent knows that its files changed.
//!
//! It is not trusted. The paths that it says it may write are looked at and recorded before it runs;
//! anything it wrote there that is neither what was there nor what the plan wants is put back; then the
//! plan is applied as if it had not run. Where that could not be guaranteed (outside the workspace,
//! through links, over bytes that could not be saved) it is not run.

use std::collections::BTreeSet;
use std::os::unix::ffi::OsStrExt as _;
use std::path::PathBuf;

use serde::{Deserialize, Serialize};
use takeback_store::{Entry, NotCapturedReason, RewindId, WorkPath};

use super::apply::put_back_native;
use super::error::RewindError;
use super::plan::Plan;
use super::request::RewindRequest;
use crate::record::look_at_paths;
use crate::workspace::Workspace;
use crate::worktree::Root;
use crate::worktree::fingerprint::stat;
use crate::worktree::look::{Bytes, look};
use crate::worktree::root::is_no_folder;
use crate::worktree::scope::{OWN_FOLDER, is_internal};

/// An agent's own way to restore files.
pub struct NativeRestore<'a> {
    /// What it says it may write: its dry run.
    pub paths: Vec<WorkPath>,
    /// Restores. An error is a message for people.
    pub run: &'a mut dyn FnMut() -> Result<(), String>,
}

impl NativeRestore<'_> {
    /// The paths that it may mean by these: each as written, and with links followed, since it may write
    /// to either.
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
                // It has `..` in it, or is malformed.
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

/// The outcome of a native restore. The rewind is the same in every case.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum NativeOutcome {
    /// It ran and reported no error.
    Ran,
    /// It reported an error. How far it got is not known and makes no difference.
    Failed(String),
    /// It did not run.
    Skipped(NativeSkip),
}

/// Why a native restore was not run.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[expect(missing_docs, reason = "the messages say what the fields are")]
pub enum NativeSkip {
    #[error("no file would change")]
    NothingToDo,
    #[error("only some paths were requested")]
    SomePaths,
    #[error("it would write outside the workspace, to {}", .0.display())]
    Outside(WorkPath),
    #[error("it would write to {}, which no rewind touches", .0.display())]
    OffLimits(WorkPath),
    #[error("it would write through the link {}", .0.display())]
    Link(WorkPath),
    #[error("{} has other names, which would change with it", .0.display())]
    OtherNames(WorkPath),
    #[error("{} has set-id or sticky bits, which a rewind does not restore", .0.display())]
    SpecialBits(WorkPath),
    #[error("{} is a folder", .0.display())]
    Folder(WorkPath),
    #[error("the contents of {} could not be saved", .0.display())]
    NotKept(WorkPath),
    #[error("{} was changed just before", .0.display())]
    Changed(WorkPath),
}

/// A path that a native restore may write, and what was there before it ran.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct NativePath {
    /// The path.
    pub path: WorkPath,
    /// What was there.
    pub present: Entry,
}

/// Before the promise: puts what the native restore may write into the plan, everything there recorded
/// in the store; or returns why it must not run.
pub(super) fn prepare(
    workspace: &mut Workspace,
    request: &RewindRequest,
    plan: &mut Plan,
    native: Option<&NativeRestore<'_>>,
) -> Result<Result<(), NativeSkip>, RewindError> {
    let Some(native) = native.filter(|_| !plan.leaves_files()) else {
        return Ok(Err(NativeSkip::NothingToDo));
    };
    if !request.paths.is_empty() {
        return Ok(Err(NativeSkip::SomePaths));
    }
    let paths = look_before(workspace, plan, &native.paths)?;
    Ok(paths.map(|paths| plan.native_paths = paths))
}

/// After the promise, before the first step: runs it, then puts back what it got wrong.
pub(super) fn run(
    workspace: &Workspace,
    plan: &Plan,
    id: RewindId,
    native: &mut NativeRestore<'_>,
) -> Result<NativeOutcome, RewindError> {
    let outcome = match (native.run)() {
        Ok(()) => NativeOutcome::Ran,
        Err(message) => NativeOutcome::Failed(message),
    };
    put_back_native(&workspace.root, &*workspace.store, plan, id)
        .map_err(|source| RewindError::Unfinished { source })?;
    Ok(outcome)
}

/// What is at these paths and the folders above them, by path, all of it in the store now; or why the native
/// restore must not run.
fn look_before(
    workspace: &mut Workspace,
    plan: &Plan,
    paths: &[WorkPath],
) -> Result<Result<Vec<NativePath>, NativeSkip>, RewindError> {
    if let Some(path) = paths.iter().find(|path| path.is_outside()) {
        return Ok(Err(NativeSkip::Outside(path.clone())));
    }
    let is_off_limits = |path: &&WorkPath| path.is_within(OWN_FOLDER) || is_internal(path);
    if let Some(path) = paths.iter().find(is_off_limits) {
        return Ok(Err(NativeSkip::OffLimits(path.clone())));
    }
    let files: BTreeSet<&WorkPath> = paths.iter().collect();
    let mut all: BTreeSet<WorkPath> = paths.iter().cloned().collect();
    all.extend(paths.iter().flat_map(WorkPath::ancestors));
    let all: Vec<WorkPath> = all.into_iter().collect();
    let mut to_record = Vec::new();
    for (path, latest) in all.iter().zip(workspace.store.latest_of(&all)?) {
        // A path where nothing is and nothing ever was needs no record.
        if latest.is_some() || entry_at(&workspace.root, path) != Entry::Absent {
            to_record.push(path.clone());
        }
    }
    look_at_paths(workspace, &to_record)?;
    let latest = workspace.store.latest_of(&all)?;
    let mut named = Vec::new();
    for (path, latest) in all.into_iter().zip(latest) {
        let present = latest.map_or(Entry::Absent, |change| change.after);
        let planned = plan.steps.binary_search_by(|step| step.path.cmp(&path));
        // A path that stays was not necessarily looked at for the plan.
        let planned = planned.ok().map(|at| &plan.steps[at]).filter(|step| step.goal().is_some());
        let unfit = match &present {
            present if planned.is_some_and(|step| step.present != *present) => {
                Some(NativeSkip::Changed as fn(WorkPath) -> NativeSkip)
            }
            Entry::Symlink { .. } => Some(NativeSkip::Link as fn(_) -> _),
            Entry::Dir { .. } if files.contains(&path) => Some(NativeSkip::Folder as fn(_) -> _),
            Entry::NotCaptured { .. } | Entry::Unknown => Some(NativeSkip::NotKept as fn(_) -> _),
            Entry::File { mode, .. } if mode & 0o7000 != 0 => {
                Some(NativeSkip::SpecialBits as fn(_) -> _)
            }
            Entry::File { .. } if has_other_names(&workspace.root, &path) => {
                Some(NativeSkip::OtherNames as fn(_) -> _)
            }
            Entry::File { digest, .. }
                if workspace.store.read(digest, &mut |_| Ok(())).is_err() =>
            {
                Some(NativeSkip::NotKept as fn(_) -> _)
            }
            Entry::File { .. } | Entry::Dir { .. } | Entry::Absent => None,
        };
        if let Some(why) = unfit {
            return Ok(Err(why(path)));
        }
        named.push(NativePath { path, present });
    }
    Ok(Ok(named))
}

/// What is at a path of the workspace. If that cannot be read, it is not captured.
pub(super) fn entry_at(root: &Root, path: &WorkPath) -> Entry {
    let looked = match root.parent_of(path) {
        Ok(folder) => look(folder, path.file_name(), &mut Bytes::Hash).map(|looked| looked.entry),
        Err(error) if is_no_folder(&error) => Ok(Entry::Absent),
        Err(error) => Err(error),
    };
    looked.unwrap_or(Entry::NotCaptured { reason: NotCapturedReason::Unreadable })
}

fn has_other_names(root: &Root, path: &WorkPath) -> bool {
    let seen = root.parent_of(path).and_then(|folder| stat(folder, path.file_name()));
    seen.is_ok_and(|seen| seen.is_some_and(|seen| seen.is_linked))
}
