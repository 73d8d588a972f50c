//! The fourth phase of recording: the author of each change, which is the active call that made it, and how
//! certain that is.
//!
//! A call that named the path wins over every other. Next come calls that may write anything and ran at
//! that time. A change that no call can have made is the person's.

use std::collections::{BTreeSet, HashMap, HashSet};

use takeback_store::{
    Author, Call, CallId, CallKind, CallState, Change, Entry, Evidence, Head, NotCapturedReason,
    Session, SessionId, Store, StoreError, Timestamp, WorkPath, Write,
};

use super::decide::Decision;
use super::gaps::{GapVerdict, Gaps};
use super::observation::Observation;
use crate::process;
use crate::workspace::Workspace;

/// How long after an edit a formatter in one of the agent's own hooks may still change the file.
const AFTER_EDIT_MS: i64 = 5_000;

/// A background call is quiet once nothing has changed for this long. From then on only paths that it
/// has changed before are attributed to it.
const QUIET_MS: i64 = 5_000;

/// About as many writes as an event makes in addition to its changes.
const EVENT_WRITES: usize = 8;

/// An observation as the log has it.
pub(super) struct AuthoredChanges {
    /// As writes, so that the many changes of a first scan are not copied.
    pub(super) changes: Vec<Write>,
    pub(super) not_captured: Vec<(WorkPath, NotCapturedReason)>,
    /// Earlier changes whose result could not be read then: the file is still the same and was read now.
    pub(super) completed: Vec<Change>,
    /// Background calls that were found to be active.
    pub(super) background: Vec<Write>,
}

/// Finds the author of every observed change. First extends the activity of the background calls in
/// `decision`, which may have made some of them.
pub(super) fn attribute(
    workspace: &Workspace,
    observation: &Observation,
    head: Head,
    decision: &mut Decision,
) -> Result<AuthoredChanges, StoreError> {
    let (active, time) = (&mut decision.active, decision.time);
    let gaps = Gaps::of(workspace, observation)?;
    // Calls and gaps are told apart by dates. Later, blame compares those of changes with those of commits;
    // what was only seen for the first time needs none.
    let decides = !active.calls.is_empty() || !gaps.is_empty();
    let dates = observation.dates(workspace, |one| decides || one.before != Entry::Unknown);
    let date = |at: usize| dates.get(at).copied().flatten();
    let found: Vec<DatedPath<'_>> = (0..)
        .zip(&observation.found)
        .map(|(at, one)| DatedPath { path: &one.path, changed_at: date(at), found_at: time })
        .collect();
    let background = active.extend_background(&found).into_iter().map(Write::Call).collect();
    let mut authored = AuthoredChanges {
        changes: Vec::with_capacity(observation.found.len() + EVENT_WRITES),
        not_captured: Vec::new(),
        completed: Vec::new(),
        background,
    };
    let same = observation.found.iter().filter(|observed| observed.same_file);
    let same: Vec<WorkPath> = same.map(|observed| observed.path.clone()).collect();
    let mut latest = workspace.store.latest_of(&same)?.into_iter();
    let mut seq = head.seq;
    for (observed, found) in observation.found.iter().zip(found) {
        if observed.same_file {
            match latest.next().flatten() {
                Some(change) if change.after == observed.before => {
                    let after = observed.after.clone();
                    authored.completed.push(Change { after, ..change });
                    continue;
                }
                // Another process has completed it.
                Some(change) if change.after == observed.after => continue,
                _ => {}
            }
        }
        let is_first_seen = observation.first_seen.contains(&observed.path);
        let (author, evidence) = match gaps.judge(observed, found, active) {
            Some(GapVerdict::Completes(change)) => {
                authored.completed.push(change);
                continue;
            }
            Some(GapVerdict::MadeBy(author, evidence)) => (author, evidence),
            // It came into scope; its author is unknown.
            None if is_first_seen => (Author::Human, Evidence::Named),
            None => active.author_of(found),
        };
        seq = seq.next();
        if let Entry::NotCaptured { reason } = observed.after {
            authored.not_captured.push((observed.path.clone(), reason));
        }
        authored.changes.push(Write::Change(Change {
            seq,
            path: observed.path.clone(),
            before: observed.before.clone(),
            after: observed.after.clone(),
            author,
            evidence,
            time,
            changed_at: found.changed_at,
            correction: None,
            cancels: Vec::new(),
        }));
    }
    Ok(authored)
}

/// The calls that may still write, and what is known about them.
#[derive(Debug, Clone, Default)]
pub(super) struct ActiveCalls {
    /// Calls that may have written since the last observation: live, or with an end just learned.
    pub(super) calls: Vec<Call>,
    /// Calls that may or may not still have been running.
    pub(super) cut_off: HashSet<(SessionId, CallId)>,
    /// Sessions with a call whose start was not reported.
    pub(super) unreported: Vec<SessionId>,
    /// The main session of each session that is part of another. Parts of one session do not make an
    /// author ambiguous.
    pub(super) wholes: HashMap<SessionId, SessionId>,
    /// Paths that background calls have changed before.
    pub(super) touched: HashMap<(SessionId, CallId), HashSet<WorkPath>>,
}

/// A path that changed and needs an author.
#[derive(Debug, Clone, Copy)]
pub(super) struct DatedPath<'a> {
    pub(super) path: &'a WorkPath,
    /// When it changed, if known.
    pub(super) changed_at: Option<Timestamp>,
    /// When the change was found.
    pub(super) found_at: Timestamp,
}

/// A call that can have made a change.
struct Suspect<'a> {
    call: &'a Call,
    evidence: Evidence,
    /// The call is known to have been running.
    is_sure: bool,
}

impl Suspect<'_> {
    /// A call that named the path wins, then one whose formatter may have run.
    fn rank(&self) -> u8 {
        match self.evidence {
            Evidence::Named => 2,
            Evidence::AfterEdit => 1,
            Evidence::Window | Evidence::OpenWindow => 0,
        }
    }
}

impl ActiveCalls {
    /// The calls in the store. A call whose agent has died is cut off.
    pub(super) fn read(store: &dyn Store, sessions: &[Session]) -> Result<Self, StoreError> {
        let calls = store.live_calls()?;
        let died = |id: &SessionId| {
            sessions
                .iter()
                .find(|session| session.id == *id)
                .and_then(|session| session.owner)
                .is_some_and(|owner| !process::is_alive(owner))
        };
        let cut_off = calls
            .iter()
            .filter(|call| died(&call.session))
            .map(|call| (call.session.clone(), call.id.clone()))
            .collect();
        let wholes = sessions
            .iter()
            .filter_map(|session| Some((session.id.clone(), session.whole()?.clone())))
            .collect();
        let mut touched = HashMap::new();
        for call in calls.iter().filter(|call| call.state == CallState::Background) {
            let paths = store.paths_of_call(&call.session, &call.id)?.into_iter().collect();
            touched.insert((call.session.clone(), call.id.clone()), paths);
        }
        Ok(Self { calls, cut_off, unreported: Vec::new(), wholes, touched })
    }

    /// Anything found from now on may be this session's work.
    pub(super) fn may_have_written(&mut self, session: &SessionId) {
        self.unreported.push(session.clone());
    }

    /// Restores calls that were open when the observation began, even if another process has recorded
    /// their end since. Paths they named are theirs. If a command has ended by now, everything else
    /// that was found may have been written after it.
    pub(super) fn restore_open(&mut self, calls: &[Call]) {
        for call in calls {
            let same = |known: &&mut Call| (&known.session, &known.id) == (&call.session, &call.id);
            if let Some(known) = self.calls.iter_mut().find(same) {
                if known.state.may_write() {
                    known.state = CallState::Open;
                }
                continue;
            }
            if matches!(call.kind, CallKind::Shell { .. }) {
                self.calls.insert(0, Call { state: CallState::Overtaken, ..call.clone() });
            }
            let kind = CallKind::Edit { paths: call.kind.paths().to_vec() };
            self.calls.insert(0, Call { kind, ..call.clone() });
        }
    }

    /// Extends the activity of background calls by changes that follow closely, and returns the calls
    /// whose activity moved.
    pub(super) fn extend_background(&mut self, found: &[DatedPath<'_>]) -> Vec<Call> {
        let mut times: Vec<Timestamp> =
            found.iter().map(|found| found.changed_at.unwrap_or(found.found_at)).collect();
        times.sort_unstable();
        let mut extended = Vec::new();
        for call in self.calls.iter_mut().filter(|call| call.state == CallState::Background) {
            let was = call.active_at.unwrap_or(call.opened_at);
            let mut active = was;
            for time in &times {
                if *time > active && time.0 <= active.0 + QUIET_MS {
                    active = *time;
                }
            }
            if active != was {
                call.active_at = Some(active);
                extended.push(call.clone());
            }
        }
        extended
    }

    /// The author of a change.
    pub(super) fn author_of(&self, found: DatedPath<'_>) -> (Author, Evidence) {
        let whole = |session| self.wholes.get(session).unwrap_or(session);
        let mut suspects: Vec<Suspect<'_>> =
            self.calls.iter().filter_map(|call| self.suspect(call, found)).collect();
        let highest = suspects.iter().map(Suspect::rank).max().unwrap_or(0);
        suspects.retain(|suspect| suspect.rank() == highest);
        let mut sessions: BTreeSet<&SessionId> =
            suspects.iter().map(|suspect| whole(&suspect.call.session)).collect();
        if highest == 0 {
            sessions.extend(self.unreported.iter().map(whole));
        }
        // Among one session's calls, prefer one that is known to have run, then the latest.
        let best = suspects.iter().max_by_key(|suspect| suspect.is_sure);
        match (sessions.len(), best) {
            (0, _) => (Author::Human, Evidence::Named),
            (1, Some(Suspect { call, evidence, is_sure })) => {
                let author = Author::Agent {
                    session: call.session.clone(),
                    turn: call.turn,
                    call: call.id.clone(),
                    tool: call.tool.clone(),
                };
                let certain = if *is_sure { *evidence } else { Evidence::OpenWindow };
                (author, certain)
            }
            (1, None) => (Author::Ambiguous { sessions: cloned(&sessions) }, Evidence::OpenWindow),
            _ => (Author::Ambiguous { sessions: cloned(&sessions) }, Evidence::Window),
        }
    }

    /// The evidence that `call` made the change; `None`: it cannot have.
    fn suspect<'c>(&self, call: &'c Call, found: DatedPath<'_>) -> Option<Suspect<'c>> {
        let names = call.kind.paths().contains(found.path);
        let is_temporary =
            || call.kind.paths().iter().any(|named| is_temporary_of(found.path, named));
        let is_shell = matches!(call.kind, CallKind::Shell { .. }) || is_temporary();
        let id = (call.session.clone(), call.id.clone());
        let is_cut_off = self.cut_off.contains(&id) || call.state == CallState::CutOff;
        let suspect = |evidence, is_sure| Some(Suspect { call, evidence, is_sure });
        match call.state {
            CallState::Settling => {
                let closed = call.closed_at?.0;
                let (from, to) = (closed - takeback_store::SLACK_MS, closed + AFTER_EDIT_MS);
                let in_time = found.changed_at.is_some_and(|at| (from..=to).contains(&at.0));
                if names && in_time { suspect(Evidence::AfterEdit, true) } else { None }
            }
            CallState::Background => {
                let active = call.active_at.unwrap_or(call.opened_at);
                let at = found.changed_at.unwrap_or(found.found_at);
                let has_touched =
                    || self.touched.get(&id).is_some_and(|paths| paths.contains(found.path));
                let is_in_step = at.0 <= active.0 + QUIET_MS || has_touched();
                if is_shell && is_in_step { suspect(Evidence::OpenWindow, false) } else { None }
            }
            _ if !(names || is_shell) || !call.may_have_made(found.path, found.changed_at) => None,
            _ if names => suspect(Evidence::Named, !is_cut_off),
            CallState::Done | CallState::Failed | CallState::Interrupted => {
                suspect(Evidence::Window, !is_cut_off)
            }
            // Still running, or overtaken by another call of its session.
            state => {
                let is_sure = state == CallState::Open && !is_cut_off;
                suspect(Evidence::OpenWindow, is_sure)
            }
        }
    }
}

/// Whether `path` is a temporary name that a tool writes before it renames: `a.txt.tmp.…` for `a.txt`.
fn is_temporary_of(path: &WorkPath, named: &WorkPath) -> bool {
    path.as_bytes().strip_prefix(named.as_bytes()).is_some_and(|rest| rest.starts_with(b".tmp"))
}

fn cloned(sessions: &BTreeSet<&SessionId>) -> Vec<SessionId> {
    sessions.iter().map(|session| (*session).clone()).collect()
}
