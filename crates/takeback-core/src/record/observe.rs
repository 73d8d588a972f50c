//! The second phase of recording: looks at what an event is about. An edit names its paths; everything
//! else needs a scan of the tree.
//!
//! The event may be the only sign that earlier calls of its session have ended, so their paths are
//! looked at too.

use std::path::PathBuf;

use takeback_store::{Call, CallKind, CallState, StoreError, WorkPath};

use super::observation::Observation;
use super::trust::Writers;
use super::{Arrival, Punctuality, RecordError};
use crate::ends::{LearnedEnd, learn_ends};
use crate::event::{AgentEvent, CallTargets};
use crate::workspace::Workspace;
use crate::worktree::budget::Budget;

/// What is on disk now, as far as the event needs it. Not for calls that touch nothing.
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
            Observation::of_overwritten(workspace, targets)?
        }
        // The common case, on the agent's critical path: no scan, only the named paths.
        AgentEvent::BeforeTool { touches: CallTargets::Paths(_), .. } if !calls.anything => {
            Observation::of_paths(workspace, &new, limit)?
        }
        AgentEvent::BeforeTool { .. } => {
            let observation = Observation::of_tree(workspace, budget, writers)?;
            if is_late {
                observation.and_overwritten(workspace, &new)?
            } else {
                observation.and_paths(workspace, &new, limit)?
            }
        }
        // The paths of a finished edit are in `calls.named`.
        AgentEvent::AfterTool { .. } if !calls.anything => Observation::of_nothing(workspace)?,
        AgentEvent::SessionStart { .. } if calls.named.is_empty() && !calls.anything => {
            return Observation::of_nothing(workspace);
        }
        AgentEvent::AfterTool { .. }
        | AgentEvent::SessionStart { .. }
        | AgentEvent::Prompt { .. }
        | AgentEvent::Step { .. }
        | AgentEvent::TurnEnd { .. }
        | AgentEvent::SessionEnd { .. } => Observation::of_tree(workspace, budget, writers)?,
    };
    // Without a size limit: these are results of finished calls, and a rewind must be able to displace them.
    observation.and_paths(workspace, &calls.named, None)
}

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
    /// Whether one of those calls may have written anything.
    anything: bool,
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
        let mut anything = false;
        for call in &calls {
            let has_ended = ends.iter().any(|end| end.is_of(call));
            if others_continue && call.state == CallState::Overtaken && !has_ended {
                continue;
            }
            let is_shell = matches!(call.kind, CallKind::Shell { .. });
            anything |= is_shell && call.state != CallState::Background;
            named.extend_from_slice(call.kind.paths());
        }
        if let AgentEvent::AfterTool { session, call, .. } = event {
            let kind = workspace.store.call(session, call)?.map(|call| call.kind);
            // A call whose start was never reported may have written anything.
            anything |= !matches!(kind, Some(CallKind::Edit { .. }));
            named.extend(kind.iter().flat_map(|kind| kind.paths().iter().cloned()));
        }
        let open = calls.into_iter().filter(|call| call.state == CallState::Open).collect();
        Ok(Self { open, ends, targets: targets_of(workspace, event), named, anything })
    }

    /// Whether [`observe`] scans the tree for this event.
    pub(super) fn need_scan(&self, event: &AgentEvent) -> bool {
        match event {
            AgentEvent::SessionStart { .. } => self.anything || !self.named.is_empty(),
            AgentEvent::AfterTool { .. } => self.anything,
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
