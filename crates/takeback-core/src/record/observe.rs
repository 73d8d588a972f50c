//! The second phase of recording: looks at what an event is about. An edit names its paths; everything else
//! needs a scan of the tree.
//!
//! An edit is observed twice. Before the call, the look saves what the edit will overwrite. After it, the
//! call's paths are in [`SessionCalls::named`], and the look finds what the edit changed. Any event may be
//! the only sign that earlier calls of its session have ended, so their paths are looked at too.

mod last_index;
mod tree;

use std::collections::HashSet;
use std::path::PathBuf;

use rustix::fs::FileType;
use takeback_store::{
    Call, CallKind, CallState, Change, Entry, NotCapturedReason, PackedBlob, StoreError, WorkPath,
};

use self::last_index::LastIndex;
pub(super) use self::tree::{observe_tree, observe_whole_tree};
use super::observation::Observation;
use super::trust::Writers;
use super::{Arrival, Punctuality, RecordError};
use crate::ends::{LearnedEnd, learn_ends};
use crate::event::{AgentEvent, CallTargets};
use crate::workspace::Workspace;
use crate::worktree::budget::Budget;
use crate::worktree::fingerprint::Stat;
use crate::worktree::index::KnownName;
use crate::worktree::look::{Bytes, as_known, look_at_path, stat_path};
use crate::worktree::scan::ObservedChange;
use crate::worktree::scope::OWN_FOLDER;

/// The calls of an event's session when the event arrives.
pub(super) struct SessionCalls {
    /// Calls that were open before the observation began.
    pub(super) open: Vec<Call>,
    /// Ends of calls that no event reported.
    pub(super) ends: Vec<LearnedEnd>,
    /// Paths that the event itself names, with the folders it has to make for them.
    pub(super) targets: Vec<WorkPath>,
    /// Paths named by calls that have ended, or end with this event. A scan may not cover them.
    named: Vec<WorkPath>,
    /// Whether one of those calls may have written to any path.
    may_write_anywhere: bool,
}

impl SessionCalls {
    pub(super) fn read(workspace: &Workspace, event: &AgentEvent) -> Result<Self, StoreError> {
        // Read before the tree: a call that another process closes while the scan runs may still have
        // written.
        let calls = workspace.store.live_calls()?.into_iter();
        let calls: Vec<Call> = calls.filter(|call| call.session == *event.session()).collect();
        let ends = learn_ends(workspace, &calls_without_end(&calls, event))?;
        // An overtaken call ends later than this event, unless its end was learned.
        let others_continue =
            matches!(event, AgentEvent::BeforeTool { .. } | AgentEvent::AfterTool { .. });
        let mut named = Vec::new();
        let mut may_write_anywhere = false;
        for call in &calls {
            let has_ended = ends.iter().any(|end| end.is_of(call));
            if others_continue && call.state == CallState::Overtaken && !has_ended {
                continue;
            }
            let is_shell = matches!(call.kind, CallKind::Shell { .. });
            may_write_anywhere |= is_shell && call.state != CallState::Background;
            named.extend_from_slice(call.kind.paths());
        }
        if let AgentEvent::AfterTool { session, call, .. } = event {
            let kind = workspace.store.call(session, call)?.map(|call| call.kind);
            // A call whose start was never reported may have written to any path.
            may_write_anywhere |= !matches!(kind, Some(CallKind::Edit { .. }));
            named.extend(kind.iter().flat_map(|kind| kind.paths().iter().cloned()));
        }
        let open = calls.into_iter().filter(|call| call.state == CallState::Open).collect();
        Ok(Self { open, ends, targets: targets_of(workspace, event), named, may_write_anywhere })
    }

    /// Whether [`observe`] scans the tree for this event.
    pub(super) fn need_scan(&self, event: &AgentEvent) -> bool {
        match event {
            AgentEvent::SessionStart { .. } => self.may_write_anywhere || !self.named.is_empty(),
            AgentEvent::AfterTool { .. } => self.may_write_anywhere,
            _ => true,
        }
    }
}

/// The calls whose end this event does not report. Background calls are checked only where an agent
/// pauses, because that reads the list of all processes.
fn calls_without_end(calls: &[Call], event: &AgentEvent) -> Vec<Call> {
    let own = match event {
        AgentEvent::BeforeTool { call, .. } | AgentEvent::AfterTool { call, .. } => Some(call),
        _ => None,
    };
    let pauses = matches!(event, AgentEvent::Prompt { .. } | AgentEvent::SessionStart { .. });
    let is_unknown = |call: &&Call| match call.state {
        CallState::Open | CallState::Overtaken => Some(&call.id) != own,
        CallState::Background => pauses,
        _ => false,
    };
    calls.iter().filter(is_unknown).cloned().collect()
}

/// The paths an event names. An edit of `new/folder/file` also makes the folders.
fn targets_of(workspace: &Workspace, event: &AgentEvent) -> Vec<WorkPath> {
    let mut targets = resolve_all(workspace, named_paths(event));
    let missing: Vec<WorkPath> = targets
        .iter()
        .flat_map(WorkPath::ancestors)
        .filter(|folder| !workspace.absolute(folder).exists())
        .collect();
    targets.extend(missing);
    targets.sort();
    targets.dedup();
    targets
}

/// The paths that a call names before it begins.
pub(super) fn named_paths(event: &AgentEvent) -> &[PathBuf] {
    match event {
        AgentEvent::BeforeTool {
            touches: CallTargets::Paths(paths) | CallTargets::Anything { paths, .. },
            ..
        } => paths,
        _ => &[],
    }
}

pub(super) fn resolve_all(workspace: &Workspace, paths: &[PathBuf]) -> Vec<WorkPath> {
    let mut resolved: Vec<_> = paths.iter().filter_map(|path| workspace.resolve(path)).collect();
    resolved.sort();
    resolved.dedup();
    resolved
}

/// What is on disk now, as far as the event needs it. The caller has returned for calls that touch nothing.
///
/// A path that the scan may not cover is looked at in addition, since a call that named it must not change it
/// unseen: `calls.named` always, the event's own targets only before it writes them.
pub(super) fn observe(
    workspace: &mut Workspace,
    arrival: &Arrival<'_>,
    calls: &SessionCalls,
    budget: Budget,
) -> Result<Observation, RecordError> {
    let is_late = arrival.punctuality == Punctuality::Late;
    let writers = match arrival.event {
        AgentEvent::AfterTool { .. } => Writers::Unreported,
        _ if is_late => Writers::Unreported,
        _ => Writers::Live,
    };
    let limit = Some(workspace.limits.edit_capture_max);
    let targets = &calls.targets;
    let new: Vec<WorkPath> =
        targets.iter().filter(|path| !calls.named.contains(path)).cloned().collect();
    let observation = match arrival.event {
        // Too late to save: the edit may have overwritten these already, so what is there now is not the
        // original.
        AgentEvent::BeforeTool { touches: CallTargets::Paths(_), .. } if is_late => {
            add_overwritten(workspace, Observation::of_nothing(workspace)?, targets)?
        }
        // The common case, on the agent's critical path: no scan, only the named paths.
        AgentEvent::BeforeTool { touches: CallTargets::Paths(_), .. }
            if !calls.may_write_anywhere =>
        {
            observe_paths(workspace, &new, limit)?
        }
        AgentEvent::BeforeTool { .. } => {
            let observation = observe_tree(workspace, budget, writers)?;
            if is_late {
                add_overwritten(workspace, observation, &new)?
            } else {
                add_paths(workspace, observation, &new, limit)?
            }
        }
        // The paths of a finished edit are in `calls.named`.
        AgentEvent::AfterTool { .. } if !calls.may_write_anywhere => {
            Observation::of_nothing(workspace)?
        }
        AgentEvent::SessionStart { .. } if calls.named.is_empty() && !calls.may_write_anywhere => {
            return Observation::of_nothing(workspace);
        }
        AgentEvent::AfterTool { .. }
        | AgentEvent::SessionStart { .. }
        | AgentEvent::Prompt { .. }
        | AgentEvent::Step { .. }
        | AgentEvent::TurnEnd { .. }
        | AgentEvent::SessionEnd { .. } => observe_tree(workspace, budget, writers)?,
    };
    // Without a size limit: these are results of finished calls, and a rewind must be able to displace them.
    add_paths(workspace, observation, &calls.named, None)
}

/// Looks at `paths`. Files larger than `limit` are not copied, unless the store has them already.
pub(super) fn observe_paths(
    workspace: &mut Workspace,
    paths: &[WorkPath],
    limit: Option<u64>,
) -> Result<Observation, RecordError> {
    let mut observation = Observation::of_nothing(workspace)?;
    observation.found = look_at_all(workspace, &mut LastIndex::new(None), paths, limit)?;
    Ok(observation)
}

/// Looks at paths that the scan does not cover or had no time to read. They are few, and they are what the
/// call is about.
fn add_paths(
    workspace: &mut Workspace,
    mut observation: Observation,
    paths: &[WorkPath],
    limit: Option<u64>,
) -> Result<Observation, RecordError> {
    let unread = Entry::NotCaptured { reason: NotCapturedReason::Deadline };
    let mut again = HashSet::new();
    observation.found.retain(|observed| {
        let is_left = observed.after == unread && paths.contains(&observed.path);
        if is_left {
            again.insert(observed.path.clone());
        }
        !is_left
    });
    let seen: HashSet<&WorkPath> =
        observation.found.iter().map(|observed| &observed.path).collect();
    let mut rest: Vec<WorkPath> =
        paths.iter().filter(|path| !seen.contains(path)).cloned().collect();
    rest.sort();
    rest.dedup();
    let mut last_index = LastIndex::new(observation.index.as_ref());
    let mut more = look_at_all(workspace, &mut last_index, &rest, limit)?;
    // The scan saw these files change, so they are not the ones that an earlier look saw.
    more.iter_mut().for_each(|observed| observed.same_file &= !again.contains(&observed.path));
    observation.extend(more);
    Ok(observation)
}

/// Adds paths that a call may have overwritten before Takeback could look, unless a scan covers them.
fn add_overwritten(
    workspace: &Workspace,
    mut observation: Observation,
    paths: &[WorkPath],
) -> Result<Observation, RecordError> {
    let is_covered = |path: &&WorkPath| {
        observation.index.as_ref().is_some_and(|index| {
            matches!(index.known(path), Some(KnownName::Entry { .. })) || index.proves_absent(path)
        })
    };
    let paths: Vec<WorkPath> = paths.iter().filter(|path| !is_covered(path)).cloned().collect();
    let latest = workspace.store.latest_of(&paths)?;
    let overwritten = paths.into_iter().zip(latest).map(|(path, latest)| ObservedChange {
        path,
        before: latest.map_or(Entry::Unknown, |change| change.after),
        after: Entry::NotCaptured { reason: NotCapturedReason::Deadline },
        same_file: false,
    });
    observation.extend(overwritten.collect());
    Ok(observation)
}

/// Looks at paths, and returns what differs from the log.
fn look_at_all(
    workspace: &mut Workspace,
    last_index: &mut LastIndex<'_>,
    paths: &[WorkPath],
    limit: Option<u64>,
) -> Result<Vec<ObservedChange>, RecordError> {
    let mut found = Vec::new();
    let latest = workspace.store.latest_of(paths)?;
    for (path, latest) in paths.iter().zip(latest) {
        // Takeback makes and removes its own folder with its stages: that is not a change.
        if path.as_bytes() == OWN_FOLDER {
            continue;
        }
        let same_file = last_index.is_unsaved_file(workspace, path, latest.as_ref())?;
        let looked = match limit {
            None if last_index.is_uncovered_file(workspace, path, latest.as_ref())? => {
                latest.as_ref().map_or(Entry::Unknown, |change| change.after.clone())
            }
            Some(limit) => look_within(workspace, path, limit, latest.as_ref(), last_index)?,
            None => look_and_save(workspace, path, latest.as_ref())?,
        };
        let looked = as_known(latest.as_ref().map(|change| &change.after), looked);
        let after = workspace.opened.as_it_was(path, looked);
        let before = match latest {
            Some(change) => change.after,
            None if last_index.read(workspace)?.proves_absent(path) => Entry::Absent,
            None => Entry::Unknown,
        };
        if before != after {
            found.push(ObservedChange { path: path.clone(), before, after, same_file });
        }
    }
    Ok(found)
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
    let looked = look_at_path(&workspace.root, path, bytes);
    match failed {
        Some(error) => Err(error.into()),
        None => Ok(looked.entry),
    }
}

/// As [`look_and_save`], but a file above `limit` is only compared with the last scan.
fn look_within(
    workspace: &mut Workspace,
    path: &WorkPath,
    limit: u64,
    latest: Option<&Change>,
    last_index: &mut LastIndex<'_>,
) -> Result<Entry, RecordError> {
    // An error is reported by the look that follows.
    let seen = stat_path(&workspace.root, path).unwrap_or(None);
    let is_large =
        |seen: &Stat| seen.kind == FileType::RegularFile && seen.fingerprint.size > limit;
    let Some(seen) = seen.filter(is_large) else { return look_and_save(workspace, path, latest) };
    let known = match last_index.read(workspace)?.known(path) {
        Some(KnownName::Entry { entry, fingerprint: Some(fingerprint), .. }) => {
            Some((entry, fingerprint))
        }
        _ => None,
    };
    let kept = latest.and_then(|change| match change.after {
        Entry::File { digest, size, .. } if size == seen.fingerprint.size => Some(digest),
        _ => None,
    });
    let too_large = Entry::NotCaptured { reason: NotCapturedReason::TooLarge };
    Ok(match (known, kept) {
        (Some((entry, fingerprint)), _) if fingerprint == seen.fingerprint => entry,
        // Its bytes were saved after the last scan: only its contents show whether it still has them.
        (None, Some(kept)) => {
            let looked = look_at_path(&workspace.root, path, Bytes::Hash).entry;
            if looked.digest() == Some(kept) { looked } else { too_large }
        }
        _ => too_large,
    })
}
