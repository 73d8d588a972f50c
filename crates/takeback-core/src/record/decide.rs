//! The third phase of recording: which session, turn, call and point an event opens or closes, and which
//! calls may have made the changes that were found. Reads the store, writes nothing.

use std::time::Duration;

use takeback_store::{
    Call, CallKind, CallState, Point, PointId, PointKind, PointQuery, Session, SessionId, Store,
    StoreError, Timestamp, Turn, TurnId, WorkPath, Write,
};

use super::author::ActiveCalls;
use super::observe::SessionCalls;
use super::{Arrival, RecordError};
use crate::ends::LearnedEnd;
use crate::event::{AgentEvent, CallReport, CallTargets, Outcome};
use crate::marks::is_called;

/// Why something is recorded.
pub(super) enum Cause<'c> {
    /// An agent reported an event. `is_late`: the session may have gone on before the observation.
    Event { arrival: &'c Arrival<'c>, calls: &'c SessionCalls, ids: NewIds, is_late: bool },
    /// A person asked for a point.
    Checkpoint { point: NewPoint, time: Timestamp },
    /// A look at the tree, or at some paths, without an event. Its changes may be the work of `suspects`.
    NoEvent { suspects: Vec<SessionId>, time: Timestamp },
}

/// Ids for the turn and the point that an event may open: the same each time the commit is tried.
pub(super) struct NewIds {
    pub(super) turn: TurnId,
    pub(super) point: PointId,
}

/// Sessions and active calls in the log, read again each time a commit is tried.
pub(super) struct LogView<'s> {
    store: &'s dyn Store,
    sessions: Vec<Session>,
    active: ActiveCalls,
    /// Calls whose end no event reported, but a transcript or process list showed.
    ended: Vec<Call>,
}

impl<'s> LogView<'s> {
    pub(super) fn read(
        store: &'s dyn Store,
        ends: &[LearnedEnd],
        time: Timestamp,
    ) -> Result<Self, StoreError> {
        let sessions = store.sessions()?;
        let mut active = ActiveCalls::read(store, &sessions)?;
        let mut ended = Vec::new();
        for call in &mut active.calls {
            if let Some(end) = ends.iter().find(|end| end.is_of(call)) {
                *call = end.of(call, time);
                active.cut_off.remove(&(call.session.clone(), call.id.clone()));
                ended.push(call.clone());
            }
        }
        Ok(Self { store, sessions, active, ended })
    }

    /// The point of a session's newest prompt, if it has this message id: the prompt was reported twice.
    fn point_of(
        &self,
        session: &SessionId,
        message: Option<&String>,
    ) -> Result<Option<PointId>, StoreError> {
        let Some(message) = message else { return Ok(None) };
        let last = self.store.find_points(PointQuery::LastPromptOf(session))?.pop();
        Ok(last.filter(|point| point.message_ids.contains(message)).map(|point| point.id))
    }

    /// Whether a call without an open turn belongs to an earlier prompt. A part of another session may
    /// continue in the background after its turn. A session of its own may continue by itself when
    /// something in the background has ended.
    fn continues_prompt(&self, session: &Session) -> Result<bool, StoreError> {
        if session.whole().is_some() {
            return Ok(true);
        }
        let last = self.store.find_points(PointQuery::LastPromptOf(&session.id))?.pop();
        let has_a_name =
            |point: &Point| !point.description.is_empty() || !point.message_ids.is_empty();
        Ok(last.is_some_and(|last| has_a_name(&last)))
    }

    /// Records the ends that were learned. A command may have written anywhere: only a scan finds all of it.
    fn close_ended_calls(&self, is_scan: bool) -> impl Iterator<Item = Write> {
        let is_found = move |call: &&Call| is_scan || matches!(call.kind, CallKind::Edit { .. });
        self.ended.iter().filter(is_found).cloned().map(Write::Call)
    }

    /// Closes calls and sessions of agents that died, once a scan has found all they may have written.
    fn close_dead_sessions(&self, time: Timestamp) -> Vec<Write> {
        let cut_off =
            |call: &&Call| self.active.cut_off.contains(&(call.session.clone(), call.id.clone()));
        let calls: Vec<&Call> = self.active.calls.iter().filter(cut_off).collect();
        let session_died = |session: &&Session| calls.iter().any(|call| call.session == session.id);
        let sessions = self.sessions.iter().filter(session_died).map(|session| {
            Write::Session(Session { open_turn: None, ended_at: Some(time), ..session.clone() })
        });
        let calls = calls.iter().map(|call| {
            let (state, closed_at) = match call.state {
                CallState::Settling => (CallState::Done, call.closed_at),
                _ => (CallState::CutOff, Some(time)),
            };
            Write::Call(Call { state, closed_at, ..(*call).clone() })
        });
        sessions.chain(calls).collect()
    }
}

#[derive(Clone)]
pub(super) struct NewPoint {
    pub(super) id: PointId,
    pub(super) kind: PointKind,
    pub(super) session: Option<SessionId>,
    pub(super) description: String,
    pub(super) label: Option<String>,
    pub(super) message: Option<String>,
}

/// What a commit holds in addition to the observed changes.
pub(super) struct Decision {
    pub(super) time: Timestamp,
    /// The calls that may have made the changes.
    pub(super) active: ActiveCalls,
    pub(super) point: Option<NewPoint>,
    /// A point that already covers the event, which then makes none.
    pub(super) existing_point: Option<PointId>,
    pub(super) position: PointPosition,
    pub(super) writes: Vec<Write>,
}

impl Decision {
    fn at(time: Timestamp, log: &LogView<'_>) -> Self {
        Self {
            time,
            active: log.active.clone(),
            point: None,
            existing_point: None,
            position: PointPosition::AfterChanges,
            writes: Vec::new(),
        }
    }

    /// The tree was not observed when the event happened: the changes may be what the session did since.
    fn mark_late(&mut self, event: &AgentEvent) {
        self.position = PointPosition::BeforeChanges;
        let opens = matches!(event, AgentEvent::Prompt { .. } | AgentEvent::BeforeTool { .. });
        if opens {
            self.active.may_have_written(event.session());
        }
    }
}

/// Where a new point is in the log, relative to the changes of its commit.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum PointPosition {
    BeforeChanges,
    AfterChanges,
}

/// Decides on the log as it is now. `is_scan`: the whole tree was observed.
pub(super) fn decide(
    cause: &Cause<'_>,
    log: &LogView<'_>,
    is_scan: bool,
) -> Result<Decision, RecordError> {
    let mut decision = match cause {
        Cause::Event { arrival, calls, ids, is_late } => {
            let mut decision = decide_event(arrival.event, arrival.time, calls, ids, log)?;
            if *is_late {
                decision.mark_late(arrival.event);
            }
            decision
        }
        Cause::Checkpoint { point, time } => {
            check_label(point.label.as_deref(), log)?;
            Decision { point: Some(point.clone()), ..Decision::at(*time, log) }
        }
        Cause::NoEvent { suspects, time } => {
            let mut decision = Decision::at(*time, log);
            suspects.iter().for_each(|session| decision.active.may_have_written(session));
            decision
        }
    };
    let mut writes: Vec<Write> = log.close_ended_calls(is_scan).collect();
    if is_scan {
        writes.extend(log.close_dead_sessions(decision.time));
    }
    // What the event itself shows about a call or session is newer.
    writes.append(&mut decision.writes);
    decision.writes = writes;
    Ok(decision)
}

fn check_label(label: Option<&str>, log: &LogView<'_>) -> Result<(), RecordError> {
    let Some(label) = label else { return Ok(()) };
    match log.store.points()?.iter().find(|point| is_called(point, label)) {
        Some(taken) => Err(RecordError::LabelTaken { label: label.to_owned(), point: taken.id }),
        None => Ok(()),
    }
}

fn decide_event(
    event: &AgentEvent,
    time: Timestamp,
    calls: &SessionCalls,
    ids: &NewIds,
    log: &LogView<'_>,
) -> Result<Decision, StoreError> {
    let id = event.session();
    let mut decision = Decision::at(time, log);
    let known = log.sessions.iter().find(|session| session.id == *id);
    let mut session = known.cloned().unwrap_or_else(|| new_session(id, time));
    session.ended_at = None;
    session.archived_at = None;
    let named_model = event.model().map(str::to_owned);
    session.model = named_model.clone().or(session.model);
    let turn = session.open_turn.map(|turn| log.store.turn(turn)).transpose()?.flatten();
    if let AgentEvent::Prompt { message, .. } = event {
        decision.existing_point = log.point_of(id, message.as_ref())?;
    }
    if decision.existing_point.is_none() {
        close_lost_calls(event, log, &mut decision);
    }
    let new_turn_of = |prompt: &str, message: Option<&String>| Turn {
        message: message.cloned(),
        prompt: prompt.to_owned(),
        ..new_turn(ids.turn, id, time)
    };
    let close_turn = |session: &mut Session, writes: &mut Vec<Write>, model: Option<String>| {
        session.open_turn = None;
        if let Some(turn) = &turn {
            let model = model.or_else(|| turn.model.clone());
            writes.push(Write::Turn(Turn { closed_at: Some(time), model, ..turn.clone() }));
        }
    };
    let new_point = |kind: PointKind, text: &str, message: Option<&String>| NewPoint {
        id: ids.point,
        kind,
        session: Some(id.clone()),
        description: describe(text),
        label: None,
        message: message.cloned(),
    };
    let mut call = None;
    match event {
        AgentEvent::SessionStart { agent, parent, owner, .. } => {
            session.agent = agent.clone().or(session.agent);
            session.parent = parent.clone().or(session.parent);
            session.owner = owner.or(session.owner);
        }
        AgentEvent::Prompt { .. } if decision.existing_point.is_some() => {}
        AgentEvent::Prompt { message, text, .. } => {
            close_turn(&mut session, &mut decision.writes, None);
            session.open_turn = Some(ids.turn);
            let turn = Turn { model: named_model, ..new_turn_of(text, message.as_ref()) };
            decision.writes.push(Write::Turn(turn));
            decision.point = Some(new_point(PointKind::Prompt, text, message.as_ref()));
        }
        AgentEvent::BeforeTool { call: call_id, tool, touches, .. } => {
            if session.open_turn.is_none() {
                session.open_turn = Some(ids.turn);
                decision.writes.push(Write::Turn(new_turn_of("", None)));
                if !log.continues_prompt(&session)? {
                    decision.point = Some(new_point(PointKind::Prompt, "", None));
                }
            }
            call = Some(Call {
                session: id.clone(),
                id: call_id.clone(),
                turn: session.open_turn.unwrap_or(ids.turn),
                tool: tool.clone(),
                kind: kind_of(touches, &calls.targets),
                state: CallState::Open,
                opened_at: time,
                began_at: None,
                active_at: None,
                closed_at: None,
            });
        }
        AgentEvent::AfterTool { call: call_id, outcome, report, .. } => {
            match log.store.call(id, call_id)? {
                Some(ending) => {
                    // It may have been closed as lost, and ran after all.
                    decision.active.calls.retain(|c| (&c.session, &c.id) != (id, call_id));
                    let was_in_background = ending.active_at.is_some();
                    let ending = close_call(ending, *outcome, *report, time);
                    decision.active.calls.push(as_it_ran(&ending, was_in_background, time));
                    call = Some(ending);
                }
                // Its start was not reported.
                None => decision.active.may_have_written(id),
            }
        }
        AgentEvent::Step { name, .. } => {
            decision.point = Some(new_point(PointKind::Step, name, None));
        }
        // An agent that names its model only when a session begins or switches it has used that one.
        AgentEvent::TurnEnd { .. } => {
            let last = turn.as_ref().and_then(|turn| turn.model.clone()).or(session.model.clone());
            close_turn(&mut session, &mut decision.writes, named_model.or(last));
        }
        AgentEvent::SessionEnd { .. } => {
            close_turn(&mut session, &mut decision.writes, named_model);
            session.ended_at = Some(time);
        }
    }
    // The store needs a session before its turns, and a turn before its calls.
    decision.writes.insert(0, Write::Session(session));
    decision.writes.extend(call.map(Write::Call));
    decision.active.restore_open(&calls.open);
    Ok(decision)
}

fn kind_of(touches: &CallTargets, named: &[WorkPath]) -> CallKind {
    match touches {
        CallTargets::Paths(_) => CallKind::Edit { paths: named.to_vec() },
        CallTargets::Anything { command, .. } => {
            CallKind::Shell { command: command.clone(), paths: named.to_vec() }
        }
        CallTargets::Nothing => CallKind::Edit { paths: Vec::new() },
    }
}

fn new_turn(id: TurnId, session: &SessionId, opened_at: Timestamp) -> Turn {
    Turn {
        id,
        session: session.clone(),
        message: None,
        prompt: String::new(),
        opened_at,
        closed_at: None,
        model: None,
    }
}

fn new_session(id: &SessionId, time: Timestamp) -> Session {
    Session {
        id: id.clone(),
        agent: None,
        parent: None,
        owner: None,
        started_at: time,
        ended_at: None,
        archived_at: None,
        open_turn: None,
        model: None,
    }
}

/// Closes calls of the session whose end no event reported. Another call that begins or ends overtakes
/// them: they may still run. Any other event shows that they are over, but not when they ended.
fn close_lost_calls(event: &AgentEvent, log: &LogView<'_>, decision: &mut Decision) {
    let own = log.active.calls.iter().filter(|call| call.session == *event.session());
    for call in own.filter(|call| call.state.may_write()) {
        let (state, closed_at) = match event {
            AgentEvent::Step { .. } => continue,
            _ if call.state == CallState::Settling => (CallState::Done, call.closed_at),
            AgentEvent::SessionEnd { .. } => (CallState::CutOff, Some(decision.time)),
            _ if call.state == CallState::Background => continue,
            AgentEvent::BeforeTool { call: other, .. }
            | AgentEvent::AfterTool { call: other, .. } => {
                if *other == call.id || call.state == CallState::Overtaken {
                    continue;
                }
                (CallState::Overtaken, None)
            }
            AgentEvent::Prompt { .. } | AgentEvent::SessionStart { .. } => {
                decision.active.cut_off.insert((call.session.clone(), call.id.clone()));
                (CallState::CutOff, Some(decision.time))
            }
            AgentEvent::TurnEnd { .. } => (CallState::CutOff, Some(decision.time)),
        };
        decision.writes.push(Write::Call(Call { state, closed_at, ..call.clone() }));
    }
}

/// The call as the author of the changes found at its end: it made them itself, even if something it
/// started still runs. Changes of a background task stay unclear.
fn as_it_ran(ending: &Call, was_in_background: bool, time: Timestamp) -> Call {
    let state = match ending.state {
        _ if was_in_background => CallState::Background,
        CallState::Background | CallState::Settling => CallState::Done,
        state => state,
    };
    Call { state, closed_at: ending.closed_at.or(Some(time)), ..ending.clone() }
}

/// The call with the end that its own event reports.
fn close_call(call: Call, outcome: Outcome, report: CallReport, time: Timestamp) -> Call {
    let is_edit = !call.kind.paths().is_empty();
    let is_shell = matches!(call.kind, CallKind::Shell { .. });
    let state = match outcome {
        // It waited for permission: changes made during that time may be the person's.
        Outcome::Done | Outcome::Failed | Outcome::Interrupted if report.waited && is_shell => {
            CallState::CutOff
        }
        Outcome::Done if report.formatter && is_edit => CallState::Settling,
        Outcome::Done => CallState::Done,
        Outcome::Failed => CallState::Failed,
        Outcome::Background => CallState::Background,
        Outcome::Interrupted => CallState::Interrupted,
        Outcome::Rejected => CallState::Rejected,
    };
    let milliseconds = |ago: Duration| i64::try_from(ago.as_millis()).unwrap_or(i64::MAX);
    let began_at = report.ran_for.map(|ago| Timestamp(time.0.saturating_sub(milliseconds(ago))));
    let is_background = state == CallState::Background;
    Call {
        state,
        began_at: began_at.filter(|began| *began > call.opened_at),
        active_at: call.active_at.or(is_background.then_some(time)),
        closed_at: (!is_background).then_some(time),
        ..call
    }
}

/// The first 80 characters of a prompt, on one line.
#[must_use]
pub fn describe(prompt: &str) -> String {
    const MOST: usize = 80;
    prompt.trim().replace("\r\n", " ").replace(['\n', '\r'], " ").chars().take(MOST).collect()
}
