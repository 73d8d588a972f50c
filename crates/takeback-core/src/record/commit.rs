//! The last phase of recording: one commit with the observed changes and their authors, the session, turn
//! and call of the event, and perhaps a point.

use takeback_store::{
    Author, Call, CallKind, Change, Entry, Evidence, Head, NotCapturedReason, Point, PointKind,
    Seq, StoreError, Timestamp, WorkPath, Write,
};

use super::decide::{Decision, LogView, PointPosition};
use super::gaps::{GapVerdict, Gaps};
use super::observation::Observation;
use super::{RecordError, RecordOutcome};
use crate::author::{ActiveCalls, DatedPath};
use crate::ends::LearnedEnd;
use crate::git_state::git_state;
use crate::workspace::Workspace;

/// Commits the observation and the decision. If another process committed first, moves the observation
/// to the new head, decides again, and repeats.
pub(super) fn commit(
    workspace: &mut Workspace,
    mut observation: Observation,
    ends: &[LearnedEnd],
    mut decide: impl FnMut(&LogView<'_>) -> Result<Decision, RecordError>,
) -> Result<RecordOutcome, RecordError> {
    let learned_at = if ends.is_empty() { Timestamp(0) } else { (workspace.ambient.now)() };
    loop {
        let head = workspace.store.head()?;
        observation.catch_up(workspace, head)?;
        let log = LogView::read(&*workspace.store, ends, learned_at)?;
        let decision = decide(&log)?;
        let is_whole = observation.index.is_some();
        let dead = if is_whole { log.close_dead_sessions(decision.time) } else { Vec::new() };
        // A command may have written anywhere: only a scan finds all of it.
        let closed = log.ended.iter().filter(|call| is_whole || is_edit(call)).cloned();
        let closed: Vec<Write> = closed.map(Write::Call).collect();
        let mut active = decision.active.unwrap_or_else(|| log.active.clone());
        let AuthoredChanges { changes: mut writes, completed, not_captured, background } =
            attribute(workspace, &observation, &mut active, head, decision.time)?;
        let seq = Seq(head.seq.0 + writes.len() as u64);
        let unreadable = observation.unreadable.clone();
        let stats = observation.stats;
        let mut recorded =
            RecordOutcome { stats, not_captured, unreadable, ..RecordOutcome::nothing(seq) };
        recorded.changes = writes.len();
        let unread = Entry::NotCaptured { reason: NotCapturedReason::Deadline };
        recorded.unfinished = observation.index.is_some()
            && observation.found.iter().any(|observed| observed.after == unread);
        if recorded.unfinished {
            workspace.inbox().request_scan()?;
        }
        writes.extend(completed.into_iter().map(Write::ReplaceChange));
        writes.extend(background);
        writes.extend(closed);
        writes.extend(dead);
        writes.extend(decision.writes);
        // A step that found no change since the session's last point needs no point of its own.
        let existing = match &decision.point {
            Some(point) if point.kind == PointKind::Step => log.point_at(seq, &point.session)?,
            _ => decision.existing_point,
        };
        recorded.point = existing;
        if let Some(point) = decision.point.filter(|_| existing.is_none()) {
            recorded.point = Some(point.id);
            writes.push(Write::Point(Point {
                id: point.id,
                seq: match decision.position {
                    PointPosition::BeforeChanges => head.seq,
                    PointPosition::AfterChanges => seq,
                },
                session: point.session,
                kind: point.kind,
                description: point.description,
                label: point.label,
                pinned: false,
                created_at: decision.time,
                message_ids: point.message.into_iter().collect(),
                git: git_state(workspace.root.path()),
                basis: observation.basis(),
            }));
        }
        let worth = !writes.is_empty() || workspace.store.last_scan()?.is_none();
        if let Some(scanned) = decision.scanned.filter(|_| worth) {
            writes.push(Write::ScanTime(scanned));
        }
        if writes.is_empty() {
            observation.save_index(workspace, head);
            return Ok(recorded);
        }
        match workspace.store.commit(head, &writes) {
            Ok(head) => {
                drop(writes);
                observation.save_index(workspace, head);
                return Ok(recorded);
            }
            Err(StoreError::Moved) => {}
            Err(error) => return Err(error.into()),
        }
    }
}

/// About as many writes as an event makes in addition to its changes.
const EVENT_WRITES: usize = 8;

/// An observation as the log has it.
struct AuthoredChanges {
    /// As writes, so that the many changes of a first scan are not copied.
    changes: Vec<Write>,
    not_captured: Vec<(WorkPath, NotCapturedReason)>,
    /// Earlier changes whose result could not be read then: the file is still the same and was read now.
    completed: Vec<Change>,
    /// Background calls that were found to be active.
    background: Vec<Write>,
}

fn is_edit(call: &Call) -> bool {
    matches!(call.kind, CallKind::Edit { .. })
}

/// Finds the author of every observed change.
fn attribute(
    workspace: &Workspace,
    observation: &Observation,
    active: &mut ActiveCalls,
    head: Head,
    time: Timestamp,
) -> Result<AuthoredChanges, StoreError> {
    // Dates cost a stat each, and only decide between calls.
    let gaps = Gaps::of(workspace, observation)?;
    let needs_dates = !active.calls.is_empty() || !gaps.is_empty();
    let dates = if needs_dates { observation.dates(workspace) } else { Vec::new() };
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
