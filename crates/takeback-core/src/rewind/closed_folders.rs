//! Folders that their owner cannot read, and that a rewind makes readable while it runs.
//!
//! What is in such a folder has to be looked at before there is a plan. So a journal without steps
//! promises to close it again, then it is opened, and the plan takes that journal's place. As long as a
//! folder is open, looks and scans record it with the mode it has otherwise.

use std::collections::{BTreeMap, BTreeSet, btree_map};
use std::io;

use rustix::fs::{AtFlags, FileType};
use takeback_store::{Entry, PointId, RewindId, RewindRecord, RewindState, WorkPath};

use super::apply::folder_modes::{self, is_closed, restore_modes};
use super::error::RewindError;
use super::journal;
use super::plan::{Plan, UnlockedFolder, Verdict};
use super::preview::Preview;
use super::receipt::Problem;
use crate::workspace::Workspace;
use crate::worktree::Root;
use crate::worktree::scan::{ObservedChange, Scan};

/// The folders that a rewind has made readable while it runs.
#[derive(Debug, Default)]
pub(crate) struct OpenedFolders {
    /// With their usual modes.
    pub(crate) folders: BTreeMap<WorkPath, u32>,
    /// The rewind that promised to close them, and its safety point.
    pub(crate) promise: Option<(RewindId, PointId)>,
}

impl OpenedFolders {
    /// What a look found, with the folder's usual mode.
    pub(crate) fn as_it_was(&self, path: &WorkPath, looked: Entry) -> Entry {
        match (self.folders.get(path), &looked) {
            (Some(mode), Entry::Dir { mode: now }) if *now == mode | 0o700 => {
                Entry::Dir { mode: *mode }
            }
            _ => looked,
        }
    }

    /// The same for everything that a scan found.
    pub(crate) fn hide(&self, scan: &mut Scan) {
        if self.folders.is_empty() {
            return;
        }
        for observed in &mut scan.found {
            let after = std::mem::replace(&mut observed.after, Entry::Unknown);
            observed.after = self.as_it_was(&observed.path, after);
        }
        scan.found.retain(ObservedChange::is_a_change);
        for (path, mode) in &self.folders {
            scan.index.set(path, &Entry::Dir { mode: *mode });
        }
        scan.index_changed = true;
    }

    fn unlocked(&self) -> Vec<UnlockedFolder> {
        let folders = self.folders.iter();
        folders.map(|(path, mode)| UnlockedFolder { path: path.clone(), mode: *mode }).collect()
    }
}

const OPENED_FIRST: &str =
    "its folder cannot be read; it is made readable first, then this path is planned";

/// Finds the closed folders that keep a plan from being made and that the user may open. Those that are
/// open already are closed with the plan.
pub(super) fn find(workspace: &Workspace, plan: &mut Plan) {
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
            if let btree_map::Entry::Vacant(unknown) = closed.entry(folder) {
                match closed_by_owner(&workspace.root, unknown.key()) {
                    Ok(None) => {
                        readable.insert(unknown.into_key());
                        continue;
                    }
                    // Tried already, or not the user's.
                    Ok(Some(_)) if workspace.opened.folders.contains_key(unknown.key()) => break,
                    Err(_) => break,
                    Ok(Some(mode)) => unknown.insert(mode),
                };
            }
            step.verdict = Verdict::NotCaptured { reason: OPENED_FIRST.to_owned() };
            break;
        }
    }
    plan.opens = closed.into_iter().map(|(path, mode)| UnlockedFolder { path, mode }).collect();
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

/// Opens the closed folders that a plan found, once a journal promises to close them. Folders closed
/// below these show only now: the caller plans again until there are none.
pub(super) fn open(workspace: &mut Workspace, preview: &Preview) -> Result<(), RewindError> {
    let opens = &preview.plan.opens;
    let folders = opens.iter().map(|folder| (folder.path.clone(), folder.mode));
    workspace.opened.folders.extend(folders);
    let plan = Plan { unlocked: workspace.opened.unlocked(), ..Plan::default() };
    let promise = Preview {
        plan,
        kind: preview.kind,
        title: preview.title.clone(),
        coverage: preview.coverage.clone(),
        windows: Vec::new(),
        lost: BTreeSet::new(),
    };
    let id = promised_id(workspace);
    let record = journal::promise(workspace, &promise, id)?;
    workspace.opened.promise = Some((id, record.safety_point));
    for folder in opens {
        // A folder that cannot be opened stays not captured.
        drop(folder_modes::open(&workspace.root, folder));
    }
    Ok(())
}

/// The id of the rewind that promised to close folders, or a new one.
pub(super) fn promised_id(workspace: &Workspace) -> RewindId {
    match workspace.opened.promise {
        Some((id, _)) => id,
        None => RewindId((workspace.ambient.random)()),
    }
}

/// Whether a journal promises no more than to close folders again.
pub(super) fn only_closes(plan: &Plan) -> bool {
    plan.leaves_files() && plan.state.is_none() && !plan.unlocked.is_empty()
}

/// Closes what was opened for a rewind that did nothing; the journal of one that was done has closed
/// it. Returns what went wrong.
pub(super) fn close(workspace: &mut Workspace) -> Result<Vec<Problem>, RewindError> {
    let opened = std::mem::take(&mut workspace.opened);
    let Some((id, _)) = opened.promise else { return Ok(Vec::new()) };
    let Some(record) = workspace.store.rewind(id)? else { return Ok(Vec::new()) };
    let plan = journal::plan_of(&record).ok().filter(only_closes);
    match plan.filter(|_| record.state == RewindState::Open) {
        Some(plan) => close_promised(workspace, &plan, &record),
        None => Ok(Vec::new()),
    }
}

/// Closes folders and removes the journal that promised it, as if nothing had been begun. Returns what
/// went wrong.
pub(super) fn close_promised(
    workspace: &mut Workspace,
    plan: &Plan,
    record: &RewindRecord,
) -> Result<Vec<Problem>, RewindError> {
    let problems = restore_modes(&workspace.root, &plan.unlocked);
    journal::remove(&mut *workspace.store, record)?;
    Ok(problems)
}
