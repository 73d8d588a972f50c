//! Folders that their owner cannot read, and that a rewind makes readable while it runs.
//!
//! What they are named for in the journal: a recovery gives them their modes back. As long as they are
//! open, looks and scans record them with the modes they have otherwise.

use std::collections::btree_map::Entry as Slot;
use std::collections::{BTreeMap, BTreeSet};
use std::io;

use rustix::fs::{AtFlags, FileType};
use takeback_store::{
    Digest, Entry, PointId, RewindId, RewindRecord, RewindState, StoreError, WorkPath, Write,
};

use super::apply::locks::{self, is_closed, lock_all};
use super::begin::promise;
use super::journal::{Preview, RewindError, RewindRequest, prepare};
use super::plan::{Plan, Unlocked, Verdict};
use super::receipt::Problem;
use crate::workspace::Workspace;
use crate::worktree::Root;
use crate::worktree::scan::{Observed, Scan};

/// What a rewind has made readable for the moment.
#[derive(Debug, Default)]
pub(crate) struct Opened {
    /// With the modes they have otherwise.
    pub(crate) folders: BTreeMap<WorkPath, u32>,
    /// The rewind that promised to close them, and its safety point.
    pub(crate) promised: Option<(RewindId, PointId)>,
}

impl Opened {
    /// What was looked at, without the mode that is there for the moment.
    pub(crate) fn as_it_was(&self, path: &WorkPath, looked: Entry) -> Entry {
        match (self.folders.get(path), &looked) {
            (Some(mode), Entry::Dir { mode: now }) if *now == mode | 0o700 => {
                Entry::Dir { mode: *mode }
            }
            _ => looked,
        }
    }

    /// The same for all that a scan found.
    pub(crate) fn hide(&self, scan: &mut Scan) {
        if self.folders.is_empty() {
            return;
        }
        for observed in &mut scan.found {
            let after = std::mem::replace(&mut observed.after, Entry::Unknown);
            observed.after = self.as_it_was(&observed.path, after);
        }
        scan.found.retain(Observed::is_a_change);
        for (path, mode) in &self.folders {
            scan.index.set(path, &Entry::Dir { mode: *mode });
        }
        scan.index_changed = true;
    }

    fn unlocked(&self) -> Vec<Unlocked> {
        let folders = self.folders.iter();
        folders.map(|(path, mode)| Unlocked { path: path.clone(), mode: *mode }).collect()
    }
}

const OPENED_FIRST: &str =
    "its folder cannot be read; that is made readable first, then it is judged";

/// Finds the folders that keep a plan from being made and that the user may open; those that are open
/// already are closed with the plan.
pub(super) fn note_closed(workspace: &Workspace, plan: &mut Plan) {
    for folder in workspace.opened.unlocked() {
        if !plan.unlocked.iter().any(|known| known.path == folder.path) {
            plan.unlocked.push(folder);
        }
    }
    plan.unlocked.sort_by(|a, b| a.path.cmp(&b.path));
    let mut closed: BTreeMap<WorkPath, u32> = BTreeMap::new();
    let mut readable: BTreeSet<WorkPath> = BTreeSet::new();
    for step in &mut plan.steps {
        let is_asked = !matches!(step.verdict, Verdict::Keep { .. });
        if !is_asked || !step.present.is_unreadable() || step.path.is_outside() {
            continue;
        }
        let mut folders: Vec<WorkPath> = step.path.ancestors().collect();
        folders.reverse();
        for folder in folders {
            if readable.contains(&folder) {
                continue;
            }
            if let Slot::Vacant(slot) = closed.entry(folder) {
                match closed_by_owner(&workspace.root, slot.key()) {
                    Ok(None) => {
                        readable.insert(slot.into_key());
                        continue;
                    }
                    // Tried already, or not to be had.
                    Ok(Some(_)) if workspace.opened.folders.contains_key(slot.key()) => break,
                    Err(_) => break,
                    Ok(Some(mode)) => slot.insert(mode),
                };
            }
            step.verdict = Verdict::NotCaptured { reason: OPENED_FIRST.to_owned() };
            break;
        }
    }
    plan.opens = closed.into_iter().map(|(path, mode)| Unlocked { path, mode }).collect();
}

/// The mode of a folder of the user's that not even its owner can read; `None`: it can be read.
fn closed_by_owner(root: &Root, path: &WorkPath) -> io::Result<Option<u32>> {
    let folder = root.parent_of(path)?;
    let seen = rustix::fs::statat(folder, path.file_name(), AtFlags::SYMLINK_NOFOLLOW)?;
    let mode = seen.st_mode & 0o777;
    if FileType::from_raw_mode(seen.st_mode) != FileType::Directory || !is_closed(mode) {
        return Ok(None);
    }
    match seen.st_uid == rustix::process::geteuid().as_raw() {
        true => Ok(Some(mode)),
        false => Err(io::ErrorKind::PermissionDenied.into()),
    }
}

/// Makes folders readable that keep a plan from being made, and plans again. Each is in the journal
/// before it is opened.
pub(super) fn open(
    workspace: &mut Workspace,
    request: &RewindRequest,
    mut ready: Preview,
    lost: &BTreeSet<Digest>,
) -> Result<Preview, RewindError> {
    // One may be in another: which are closed below it shows when it is open.
    while !ready.plan.opens.is_empty() {
        let opens = std::mem::take(&mut ready.plan.opens);
        let known = opens.iter().map(|folder| (folder.path.clone(), folder.mode));
        workspace.opened.folders.extend(known);
        let plan = Plan { unlocked: workspace.opened.unlocked(), ..Plan::default() };
        let (kind, lost_before) = (ready.kind, BTreeSet::new());
        let opening = Preview { plan, kind, windows: Vec::new(), lost: lost_before };
        let id = match workspace.opened.promised {
            Some((id, _)) => id,
            None => RewindId((workspace.ambient.random)()),
        };
        let record = promise(workspace, &opening, id)?;
        workspace.opened.promised = Some((id, record.safety_point));
        for folder in &opens {
            // What cannot be opened stays what it is: not captured.
            drop(locks::open(&workspace.root, folder));
        }
        ready = prepare(workspace, request, lost.clone())?;
    }
    Ok(ready)
}

/// Whether a journal promises no more than to close folders again.
pub(super) fn only_opens(plan: &Plan) -> bool {
    plan.leaves_files() && plan.state.is_none() && !plan.unlocked.is_empty()
}

/// Gives folders their modes back and drops the journal that promised it, with its safety point: it is
/// as if nothing had been begun. What went wrong.
pub(super) fn close_again(
    workspace: &mut Workspace,
    plan: &Plan,
    record: &RewindRecord,
) -> Result<Vec<Problem>, RewindError> {
    let problems = lock_all(&workspace.root, &plan.unlocked);
    loop {
        let head = workspace.store.head()?;
        let drops = [Write::DropRewind(record.id), Write::DropPoint(record.safety_point)];
        match workspace.store.commit(head, &drops) {
            Err(StoreError::Moved) => {}
            dropped => {
                dropped?;
                return Ok(problems);
            }
        }
    }
}

/// Closes what was opened for a rewind that came to nothing; for one that was done its journal did. What
/// went wrong.
pub(super) fn close(workspace: &mut Workspace) -> Result<Vec<Problem>, RewindError> {
    let opened = std::mem::take(&mut workspace.opened);
    let Some((id, _)) = opened.promised else { return Ok(Vec::new()) };
    let Some(record) = workspace.store.rewind(id)? else { return Ok(Vec::new()) };
    let plan = serde_json::from_str::<Plan>(&record.plan).ok().filter(only_opens);
    match plan.filter(|_| record.state == RewindState::Open) {
        Some(plan) => close_again(workspace, &plan, &record),
        None => Ok(Vec::new()),
    }
}
