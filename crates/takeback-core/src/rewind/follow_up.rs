//! What a rewind leaves to the user: git's HEAD, which it never moves, and folders that a package manager
//! makes, which are not recorded.
//!
//! Derived from a preview or a receipt, after the fact: the rewind does not wait for it, and a repository
//! that cannot be read only makes it shorter.

mod git;
mod packages;

use takeback_store::{Point, PointQuery, RewindId, RewindKind, Store, StoreError};

pub use self::git::{CrossedCommit, GitFollowUp, GitStatus};
pub use self::packages::{InstallHint, InstallReason};
use super::preview::Preview;
use super::receipt::Receipt;
use crate::workspace::Workspace;

/// What the user may want to do after a rewind.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct FollowUp {
    /// Set if HEAD has moved since the restored state.
    pub git: Option<GitFollowUp>,
    /// Commands that make folders again or bring them in line.
    pub installs: Vec<InstallHint>,
}

/// Whether the files are already changed.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Stage {
    Planned,
    Applied,
}

impl FollowUp {
    /// What would be left to the user. Does not run git.
    pub fn of_preview(workspace: &Workspace, shown: &Preview) -> Result<Self, StoreError> {
        of(workspace, &shown.receipt(), shown.kind, Stage::Planned)
    }

    /// What is left to the user. Runs git only if another commit is checked out than then.
    pub fn of_receipt(workspace: &Workspace, done: &Receipt) -> Result<Self, StoreError> {
        let kind = match (done.rewind, done.point) {
            (Some(rewind), _) => header(&*workspace.store, rewind)?.map(|header| header.kind),
            (None, point) => point.map(|point| RewindKind::Rewind { point }),
        };
        match kind {
            Some(kind) => of(workspace, done, kind, Stage::Applied),
            None => Ok(Self::default()),
        }
    }

    /// Whether there is nothing to say.
    #[must_use]
    pub fn is_empty(&self) -> bool {
        self.git.is_none() && self.installs.is_empty()
    }
}

fn of(
    workspace: &Workspace,
    receipt: &Receipt,
    kind: RewindKind,
    stage: Stage,
) -> Result<FollowUp, StoreError> {
    let Some(then) = restored_state(&*workspace.store, kind)? else {
        return Ok(FollowUp::default());
    };
    let mut installs = packages::stale_folders(workspace, receipt)?;
    if kind.is_undoable() {
        packages::add_removed_folders(workspace, &then, receipt, &mut installs)?;
    }
    let git = match receipt.changed_files() {
        true => git::follow_up(workspace, receipt, &then, stage)?,
        false => None,
    };
    Ok(FollowUp { git, installs })
}

/// The point whose state comes back: for an undo or redo, the safety point before what it takes back.
fn restored_state(store: &dyn Store, kind: RewindKind) -> Result<Option<Point>, StoreError> {
    let point = match (kind.point(), kind.operation()) {
        // Only some changes go: no earlier state as a whole comes back.
        (Some(_), _) if !matches!(kind, RewindKind::Rewind { .. } | RewindKind::Restore { .. }) => {
            None
        }
        (Some(point), _) => Some(point),
        (None, Some(of)) => header(store, of)?.map(|header| header.safety_point),
        (None, None) => None,
    };
    match point {
        Some(point) => Ok(store.find_points(PointQuery::Id(point))?.pop()),
        None => Ok(None),
    }
}

fn header(
    store: &dyn Store,
    id: RewindId,
) -> Result<Option<takeback_store::RewindHeader>, StoreError> {
    Ok(store.rewind_headers()?.into_iter().find(|header| header.id == id))
}
