//! Forks: the whole workspace as it was at a point, in a new folder with a store of its own.
//!
//! This file conducts, in five phases:
//!
//! 1. [`ForkTarget::claim`]: an empty folder gets a marker, which it keeps until the fork is complete;
//! 2. `plan`: what the workspace was at the point, and which files on disk still are that;
//! 3. `write`: folders, links, files; each file from disk if its fingerprint shows that it has not changed
//!    since it was recorded, else from the store;
//! 4. `seal`: modes of folders, and what the next scan has to compare with;
//! 5. `release`: the marker goes.
//!
//! Only the new folders and their stores are written. A fork that was interrupted is continued by the next
//! call: what it has written stays, if it is still the same.

mod base;
mod changes;
mod extras;
mod origin;
mod plan;
mod states;
mod target;
mod write;

use std::io;
use std::path::PathBuf;

use takeback_store::{Entry, Point, StoreError, WorkPath};

pub use self::changes::{Fork, ForkChange, ForkChanges};
pub use self::origin::{Origin, fork_origin};
pub use self::states::copy_states;
pub use self::target::{FolderState, ForkPlace, ForkTarget};
use crate::progress::Work;
use crate::workspace::Workspace;
use crate::worktree::OutReason;
use crate::worktree::scan::ScanError;

/// What to fork.
#[derive(Debug, Clone)]
pub struct ForkRequest<'a> {
    /// The point. Nothing of it may expire while the fork is being written: pin it first.
    pub point: &'a Point,
    /// What is copied besides what the log covers.
    pub extent: ForkExtent,
    /// The id of this workspace's store, by which the fork recognises it later.
    pub store_id: Option<String>,
}

/// What a fork has.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub enum ForkExtent {
    /// Everything that the log covers.
    #[default]
    Covered,
    /// Also build output, version control's own files and everything else below the root, as they are now.
    All,
}

/// What a fork has and lacks.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct ForkReport {
    /// Files that the log covers.
    pub files: usize,
    /// How many of them were copied from disk.
    pub from_disk: usize,
    /// The size of all files that the log covers.
    pub bytes: u64,
    /// Files copied as they are now, by [`ForkExtent::All`].
    pub extra_files: usize,
    /// What existed at the point and is not in the fork, and why.
    pub missing: Vec<(WorkPath, MissingReason)>,
    /// Paths that were not covered yet at the point: they may have existed, and are not in the fork.
    pub unknown: Vec<WorkPath>,
    /// What is not covered, and so not in the fork. Empty with [`ForkExtent::All`], except for what
    /// cannot be copied.
    pub left_out: Vec<(WorkPath, LeftOut)>,
}

/// Why something that existed is not in a fork.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum MissingReason {
    /// Its contents were not captured.
    NotCaptured(takeback_store::NotCapturedReason),
    /// Its contents are lost or damaged in the store.
    Lost,
    /// It could not be read, or changed while it was copied.
    Unreadable,
}

impl MissingReason {
    /// The reason, for messages.
    #[must_use]
    pub fn describe(self) -> &'static str {
        match self {
            Self::NotCaptured(reason) => reason.describe(),
            Self::Lost => "its contents in the store are damaged",
            Self::Unreadable => "it could not be read, or changed while it was copied",
        }
    }
}

/// Why something is not part of a fork.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub enum LeftOut {
    /// The workspace does not cover it.
    NotCovered(OutReason),
    /// Version control's own files.
    VersionControl,
    /// A `.git` file that leads to a repository outside the workspace: two folders would share one index.
    LinkedRepository,
}

impl LeftOut {
    /// The reason, for messages.
    #[must_use]
    pub fn describe(self) -> &'static str {
        match self {
            Self::NotCovered(reason) => reason.reason(),
            Self::VersionControl => "version control",
            Self::LinkedRepository => "belongs to a repository elsewhere",
        }
    }
}

/// Why a folder was not forked, or a fork could not be read.
#[derive(Debug, thiserror::Error)]
#[expect(missing_docs, reason = "the messages say what the fields are")]
pub enum ForkError {
    #[error("cannot fork into {folder}: {why}")]
    Refused { folder: PathBuf, why: &'static str },
    #[error("{folder} is not empty")]
    NotEmpty { folder: PathBuf },
    #[error("another process is making a fork in {folder}")]
    Busy { folder: PathBuf },
    #[error("{folder} holds an unfinished fork of another point")]
    OtherFork { folder: PathBuf },
    #[error("{folder} holds an unfinished fork")]
    Unfinished { folder: PathBuf },
    #[error("{folder} is not a fork")]
    NoFork { folder: PathBuf },
    #[error("{folder} holds another {} than the fork", path.display())]
    InTheWay { folder: PathBuf, path: WorkPath },
    #[error("cannot write {} in {folder}", path.display())]
    Write { folder: PathBuf, path: WorkPath, source: io::Error },
    #[error("cannot use {path}")]
    Unusable { path: PathBuf, source: io::Error },
    #[error("{path} is damaged")]
    Damaged { path: PathBuf },
    #[error("{} has changed while it was read", path.display())]
    Changed { path: WorkPath },
    #[error(transparent)]
    Scan(#[from] ScanError),
    #[error(transparent)]
    Store(#[from] StoreError),
}

/// Writes a fork into each of `targets`, which have their stores. Every file is read once.
pub fn fork(
    workspace: &Workspace,
    request: &ForkRequest<'_>,
    targets: Vec<ForkTarget>,
) -> Result<ForkReport, ForkError> {
    let origin = Origin::new(workspace, request);
    for target in &targets {
        target.note_origin(&origin)?;
    }
    let mut plan = plan::plan(workspace, request.point.seq)?;
    if request.extent == ForkExtent::All {
        extras::add(workspace, &mut plan);
    }
    let work = workspace.ambient.begin(Work::Fork, plan.files.len());
    let written = write::write(workspace, &plan, &targets, work.counter())?;
    drop(work);
    for (target, prints) in targets.iter().zip(&written.prints) {
        target.seal(&plan, prints, request.point.seq)?;
    }
    targets.into_iter().try_for_each(ForkTarget::release)?;
    Ok(report(plan, &written))
}

fn report(plan: plan::ForkPlan, written: &write::Written) -> ForkReport {
    let mut report = ForkReport {
        missing: plan.missing,
        unknown: plan.unknown,
        left_out: plan.left_out,
        ..ForkReport::default()
    };
    for (number, file) in plan.files.iter().enumerate() {
        match (written.outcomes[number], file.entry()) {
            (write::Outcome::Lost, Some(_)) => {
                report.missing.push((file.path.clone(), MissingReason::Lost));
            }
            (write::Outcome::Lost, None) => {
                report.missing.push((file.path.clone(), MissingReason::Unreadable));
            }
            (_, None) => report.extra_files += 1,
            (outcome, Some(entry)) => {
                report.files += 1;
                report.from_disk += usize::from(outcome == write::Outcome::FromDisk);
                report.bytes += if let Entry::File { size, .. } = entry { *size } else { 0 };
            }
        }
    }
    report.missing.sort_by(|a, b| a.0.cmp(&b.0));
    report
}
