//! Fills the rewind menu: points and executions as rows, and the requests behind them.

mod coverage;
mod preview;
mod questions;
mod selection;
mod source;

use std::collections::{HashMap, HashSet};
use std::time::{Duration, Instant};

use takeback_core::Workspace;
use takeback_core::exchange::{original_name, same_timeline};
use takeback_core::execution::{RollbackFiles, rollback_request};
use takeback_core::history::{
    self, Party, Viewpoint, by_path, cancelled as cancelled_by, git_moved, keep_own, settle, spans,
    taken_back,
};
use takeback_core::rewind::RewindRequest;
use takeback_store::state::{CheckpointId, ExecutionId, Record};
use takeback_store::{
    Author, Change, Point, PointId, PointKind, Seq, Session, SessionId, Store, StoreError, WorkPath,
};
use takeback_tui::{ExecutionRow, OperationRow, Origin, PartyCount, PointRow, TakenBack};

pub(crate) use self::coverage::covered;
pub(crate) use self::preview::{diff_lines, execution_preview, preview_files};
pub(crate) use self::questions::answer;
pub(crate) use self::selection::{patterns_of, select_files};
pub(crate) use self::source::MenuSource;
use super::filediff::{FileDiff, LineCounts, between};
use super::log::{described, head_move, operation_title, session_label};
use crate::error::{CommandError, Kind};
use crate::screen::plain;
use crate::session_name::SessionNames;
use crate::time::{ago, clock, now};

/// The menu opens immediately: line counts that take longer are left out.
const COUNT_TIME: Duration = Duration::from_millis(150);

/// The points to go back to, newest first: those of `session`, then those of other sessions. `also`: a
/// point that the user named, which may be of any kind.
pub(crate) fn point_rows(
    workspace: &Workspace,
    session: Option<&SessionId>,
    also: Option<PointId>,
    counts: &mut LineCounts,
) -> Result<Vec<PointRow>, CommandError> {
    let began = Instant::now();
    let store = &*workspace.store;
    let points = store.points()?;
    let is_shown = |point: &&Point| is_listed(point) || Some(point.id) == also;
    let listed: Vec<&Point> = points.iter().filter(is_shown).collect();
    let is_own = |point: &Point| {
        session.is_none() || point.session.is_none() || point.session.as_ref() == session
    };
    let mut newest: Vec<(usize, &&Point)> = listed.iter().enumerate().rev().collect();
    // A stable sort: each part stays newest first.
    newest.sort_by_key(|(_, point)| !is_own(point));
    let oldest = listed.first().map(|point| point.seq);
    let mut changes = oldest.map_or(Ok(Vec::new()), |oldest| store.changes_after(oldest))?;
    settle(store, &mut changes)?;
    let time = now();
    let sessions = store.sessions()?;
    let authors = AuthorNames::of(&sessions, &listed);
    let cancelled = oldest.map_or(Ok(Vec::new()), |oldest| store.rewind_changes_after(oldest))?;
    let cancelled = cancelled_by(&cancelled);
    let git_now = takeback_core::git_state(workspace.root.path());
    let mut rows = Vec::new();
    for (at, point) in newest {
        let next = listed[at + 1..].iter().find(|next| same_timeline(point, next));
        let mut own = within(&changes, point.seq, next.map(|next| next.seq)).to_vec();
        keep_own(&mut own);
        let view = Viewpoint { session: point.session.as_ref() };
        let patience = || COUNT_TIME.saturating_sub(began.elapsed());
        let mut parties = Parties::of(&own, &view);
        let mut count = |party| parties.take(party, counts, store, patience());
        let (files, lines) = count(Party::Agent);
        let others = [(Party::You, "you"), (Party::Others, "others"), (Party::Unclear, "unclear")];
        let others = others.map(|(party, who)| (who, count(party)));
        let others = others.into_iter().filter(|(_, (files, _))| *files > 0);
        let others = others.map(|(who, (files, lines))| PartyCount { who, files, lines }).collect();
        let description = match point.description.as_str() {
            "" => format!("Checkpoint at {}", clock(point.created_at)),
            _ => described(point),
        };
        let origin = match &point.session {
            None => Origin::Manual,
            Some(_) if is_own(point) => Origin::ThisSession,
            Some(_) => Origin::OtherSession,
        };
        let (agent, of) = authors.get(point);
        let git = git_moved(point, next.copied(), git_now.as_ref());
        let is_current = session.is_some() && origin == Origin::ThisSession;
        rows.push(PointRow {
            id: point.id.to_string(),
            age: ago(point.created_at, time),
            description,
            label: point.label.clone(),
            files,
            lines,
            others,
            taken_back: match taken_back(&own, &view, &cancelled) {
                history::TakenBack::No => TakenBack::No,
                history::TakenBack::Partly => TakenBack::Partly,
                history::TakenBack::Yes => TakenBack::Yes,
            },
            git: git.map(|git| plain(&head_move(&git).describe())),
            agent,
            session: of.filter(|_| !is_current),
            origin,
        });
    }
    Ok(rows)
}

/// What each party changed in a part of the log.
struct Parties(Vec<(Party, FileDiff)>);

impl Parties {
    fn of(changes: &[Change], view: &Viewpoint<'_>) -> Self {
        let spans = spans(changes, |change| view.party(change)).into_iter();
        let spans = spans.filter(|(_, diff)| !diff.is_folder() && diff.differs());
        Self(spans.filter_map(|(party, diff)| Some((party?, diff))).collect())
    }

    /// The files and lines of one party.
    fn take(
        &mut self,
        party: Party,
        counts: &mut LineCounts,
        store: &dyn Store,
        patience: Duration,
    ) -> (usize, Option<(usize, usize)>) {
        let own = self.0.extract_if(.., |(of, _)| *of == party);
        let diffs: Vec<FileDiff> = own.map(|(_, diff)| diff).collect();
        let files: HashSet<&WorkPath> = diffs.iter().map(|diff| &diff.path).collect();
        let lines = counts.total(&diffs, store, patience);
        (files.len(), lines.map(|lines| (lines.insertions, lines.deletions)))
    }
}

/// The operations between these points, newest first.
pub(crate) fn operation_rows(
    workspace: &Workspace,
    points: &[PointRow],
) -> Result<Vec<OperationRow>, CommandError> {
    let store = &*workspace.store;
    let listed: HashSet<&str> = points
        .iter()
        .filter(|row| row.origin != Origin::OtherSession)
        .map(|row| row.id.as_str())
        .collect();
    let mut above = store.points()?;
    above.retain(|point| listed.contains(point.id.to_string().as_str()));
    let Some(oldest) = above.first().map(|point| point.seq) else { return Ok(Vec::new()) };
    let mut headers = store.rewind_headers()?;
    headers.retain(|header| header.began_at >= oldest);
    let changes = store.rewind_changes_after(oldest)?;
    let cancelled = cancelled_by(&changes);
    let time = now();
    let mut rows = Vec::new();
    for header in headers.iter().rev() {
        let before = above.partition_point(|point| point.seq <= header.began_at);
        let Some(point) = above[..before].last() else { continue };
        let is_its =
            |change: &&Change| matches!(change.author, Author::Rewind { id } if id == header.id);
        let own: Vec<Change> = changes.iter().filter(is_its).cloned().collect();
        let undone = own.iter().filter(|change| cancelled.contains(&change.seq)).count();
        let diffs = between(&by_path(own.clone()), None);
        rows.push(OperationRow {
            above: point.id.to_string(),
            age: ago(header.created_at, time),
            description: operation_title(store, header)?,
            files: diffs.iter().filter(|diff| !diff.is_folder()).count(),
            undone: match undone {
                0 => TakenBack::No,
                all if all == own.len() => TakenBack::Yes,
                _ => TakenBack::Partly,
            },
        });
    }
    Ok(rows)
}

/// The display names of the authors of points.
struct AuthorNames<'a> {
    names: SessionNames,
    agents: HashMap<&'a SessionId, &'a str>,
    /// The sessions of an agent that have points.
    sessions: HashMap<&'a str, HashSet<&'a SessionId>>,
}

impl<'a> AuthorNames<'a> {
    fn of(sessions: &'a [Session], points: &[&'a Point]) -> Self {
        let agents: HashMap<&SessionId, &str> = sessions
            .iter()
            .filter_map(|session| Some((&session.id, session.agent.as_deref()?)))
            .collect();
        let mut by_agent: HashMap<&str, HashSet<&SessionId>> = HashMap::new();
        for session in points.iter().filter_map(|point| point.session.as_ref()) {
            if let Some(agent) = agents.get(session) {
                by_agent.entry(agent).or_default().insert(session);
            }
        }
        Self { names: SessionNames::of(sessions), agents, sessions: by_agent }
    }

    /// The agent, and its session if it has several here. A session without a known agent uses its own name.
    fn get(&self, point: &Point) -> (String, Option<String>) {
        let agent = point.session.as_ref().and_then(|session| self.agents.get(session));
        let (Some(session), Some(agent)) = (&point.session, agent) else {
            return (session_label(point, &self.names), None);
        };
        let several = self.sessions.get(agent).is_some_and(|sessions| sessions.len() > 1);
        let name = session_label(point, &self.names);
        let agent = plain(agent);
        let own = name.strip_prefix(&agent).map(|own| own.trim_start_matches([' ', '-']));
        let own = own.filter(|own| !own.is_empty()).unwrap_or(&name).to_owned();
        (agent, Some(own).filter(|_| several || original_name(session).is_some()))
    }
}

/// Whether the menu lists the point. Steps are in the second tab; safety points belong to `undo`.
pub(crate) fn is_listed(point: &Point) -> bool {
    matches!(point.kind, PointKind::Prompt | PointKind::Manual)
}

/// The executions, each with the step that a restore goes back to: its last success.
pub(crate) fn execution_rows(workspace: &Workspace) -> Result<Vec<ExecutionRow>, CommandError> {
    let time = now();
    let states = &*workspace.states;
    let mut rows = Vec::new();
    for execution in states.executions()?.executions {
        let Some(head) = execution.head else { continue };
        let (step, at) = match states.last_successful(&execution.id, None, None)? {
            Some(record) => (record.step_name, record.time),
            None => (head.step_name, head.time),
        };
        rows.push(ExecutionRow { execution: execution.id.to_string(), step, age: ago(at, time) });
    }
    Ok(rows)
}

/// The last success of an execution, or the checkpoint of that name, and the request that restores it:
/// with its files, if it has any.
pub(crate) fn execution_request(
    workspace: &Workspace,
    name: &str,
) -> Result<(Record, RewindRequest), CommandError> {
    let record = match name.parse::<CheckpointId>() {
        Ok(id) => workspace.states.find(&id)?,
        Err(_) => {
            let execution =
                ExecutionId::new(name).map_err(|error| CommandError::new(Kind::Usage, error))?;
            workspace.states.last_successful(&execution, None, None)?
        }
    };
    let not_found = || CommandError::new(Kind::Error, format!("Checkpoint {name} not found"));
    let record = record.ok_or_else(not_found)?;
    let files = if record.point.is_some() { RollbackFiles::All } else { RollbackFiles::Stay };
    let request = rollback_request(workspace, &record.key, files)?;
    Ok((record, request))
}

/// The files that changed between two positions of the log.
pub(crate) fn changed_between(
    store: &dyn Store,
    from: Seq,
    to: Seq,
) -> Result<Vec<FileDiff>, StoreError> {
    Ok(between(&by_path(store.changes_between(from, to)?), None))
}

/// The part of `changes`, oldest first, after `from` and up to `to`, inclusive.
fn within(changes: &[Change], from: Seq, to: Option<Seq>) -> &[Change] {
    let first = changes.partition_point(|change| change.seq <= from);
    let end = to.map_or(changes.len(), |to| changes.partition_point(|change| change.seq <= to));
    &changes[first..end.max(first)]
}
