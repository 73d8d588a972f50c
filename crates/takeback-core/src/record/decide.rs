//! What an event means: which calls, turns and points it opens and closes, and who may have written
//! what was found. Reads the store, writes nothing.

use std::time::Duration;

use takeback_store::{
    Call, CallKind, CallState, Point, PointId, PointKind, PointQuery, Seq, Session, SessionId,
    Store, StoreError, Timestamp, Turn, TurnId, WorkPath, Write,
};

use crate::author::Scene;
use crate::ends::LearnedEnd;
use crate::event::{AgentEvent, CallReport, Outcome, Touches};

/// Who is there, read afresh for every try of a commit.
pub(super) struct Now<'s> {
    pub(super) store: &'s dyn Store,
    pub(super) sessions: Vec<Session>,
    pub(super) scene: Scene,
    /// Calls whose end was learned elsewhere than from an event.
    pub(super) ended: Vec<Call>,
}

impl<'s> Now<'s> {
    pub(super) fn read(
        store: &'s dyn Store,
        ends: &[LearnedEnd],
        time: Timestamp,
    ) -> Result<Self, StoreError> {
        let sessions = store.sessions()?;
        let mut scene = Scene::read(store, &sessions)?;
        let mut ended = Vec::new();
        for call in &mut scene.calls {
            if let Some(end) = ends.iter().find(|end| end.is_of(call)) {
                *call = end.of(call, time);
                scene.cut_off.remove(&(call.session.clone(), call.id.clone()));
                ended.push(call.clone());
            }
        }
        Ok(Self { store, sessions, scene, ended })
    }

    /// The newest point of a session, if it is of this moment of the log.
    pub(super) fn point_at(
        &self,
        seq: Seq,
        session: &Option<SessionId>,
    ) -> Result<Option<PointId>, StoreError> {
        let points = self.store.find_points(PointQuery::At(seq))?;
        let listed = |point: &&Point| point.session == *session && point.kind != PointKind::Safety;
        Ok(points.iter().rev().find(listed).map(|point| point.id))
    }

    /// The newest point of a session's prompts, if it is of this message: whoever tells a prompt twice
    /// means one.
    fn point_of(
        &self,
        session: &SessionId,
        message: Option<&String>,
    ) -> Result<Option<PointId>, StoreError> {
        let Some(message) = message else { return Ok(None) };
        let last = self.store.find_points(PointQuery::LastPromptOf(session))?.pop();
        Ok(last.filter(|point| point.message_ids.contains(message)).map(|point| point.id))
    }

    /// Whether what a session does without a prompt belongs to an earlier one: the whole's if it is a
    /// part of another session, which may work on in the background after its turn; its own if it goes
    /// on by itself, because something in the background has ended.
    fn goes_on_from_a_prompt(&self, session: &Session) -> Result<bool, StoreError> {
        if session.whole().is_some() {
            return Ok(true);
        }
        let last = self.store.find_points(PointQuery::LastPromptOf(&session.id))?.pop();
        let has_a_name =
            |point: &Point| !point.description.is_empty() || !point.message_ids.is_empty();
        Ok(last.is_some_and(|last| has_a_name(&last)))
    }

    /// Ends what died without a word, once a scan has found all that it may have left.
    pub(super) fn buried(&self, time: Timestamp) -> Vec<Write> {
        let cut_off =
            |call: &&Call| self.scene.cut_off.contains(&(call.session.clone(), call.id.clone()));
        let calls: Vec<&Call> = self.scene.calls.iter().filter(cut_off).collect();
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

/// What a commit is to hold beside the changes that were seen.
pub(super) struct Decision {
    pub(super) time: Timestamp,
    pub(super) scanned: Option<Timestamp>,
    /// Who might have written what was seen; `None`: as the store tells it.
    pub(super) scene: Option<Scene>,
    pub(super) point: Option<NewPoint>,
    /// The point that stands for the event, which needs none of its own.
    pub(super) standing: Option<PointId>,
    pub(super) point_at: PointAt,
    pub(super) writes: Vec<Write>,
}

impl Decision {
    pub(super) fn at(time: Timestamp) -> Self {
        let point_at = PointAt::AfterWhatWasSeen;
        Self {
            time,
            scanned: None,
            scene: None,
            point: None,
            standing: None,
            point_at,
            writes: Vec::new(),
        }
    }

    /// Nobody looked when it happened: what is seen now may be what the session has done since.
    pub(super) fn come_late(&mut self, event: &AgentEvent) {
        self.point_at = PointAt::BeforeWhatWasSeen;
        let opens = matches!(event, AgentEvent::Prompt { .. } | AgentEvent::BeforeTool { .. });
        if let Some(scene) = self.scene.as_mut().filter(|_| opens) {
            scene.may_have_written(event.session());
        }
    }
}

/// Where a new point stands in the log.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum PointAt {
    BeforeWhatWasSeen,
    AfterWhatWasSeen,
}

pub(super) fn decide(
    event: &AgentEvent,
    now: &Now<'_>,
    new_turn: TurnId,
    new_point: PointId,
    named: &[WorkPath],
    time: Timestamp,
) -> Result<Decision, StoreError> {
    let id = event.session();
    let mut decision = Decision::at(time);
    let known = now.sessions.iter().find(|session| session.id == *id);
    let mut session = known.cloned().unwrap_or_else(|| new_session(id, time));
    session.ended_at = None;
    session.archived_at = None;
    let turn = match session.open_turn {
        Some(turn) => now.store.turn(turn)?,
        None => None,
    };
    let mut scene = now.scene.clone();
    if let AgentEvent::Prompt { message, .. } = event {
        decision.standing = now.point_of(id, message.as_ref())?;
    }
    if decision.standing.is_none() {
        close_lost_calls(event, now, &mut scene, &mut decision);
    }
    let new_turn_of = |prompt: &str, message: Option<&String>| Turn {
        id: new_turn,
        session: id.clone(),
        message: message.cloned(),
        prompt: prompt.to_owned(),
        opened_at: time,
        closed_at: None,
    };
    let close_turn = |session: &mut Session, writes: &mut Vec<Write>| {
        session.open_turn = None;
        if let Some(turn) = &turn {
            writes.push(Write::Turn(Turn { closed_at: Some(time), ..turn.clone() }));
        }
    };
    let prompt_point = |description: String, message: Option<String>| NewPoint {
        id: new_point,
        kind: PointKind::Prompt,
        session: Some(id.clone()),
        description,
        label: None,
        message,
    };
    let mut call = None;
    match event {
        AgentEvent::SessionStart { agent, parent, owner, .. } => {
            session.agent = agent.clone().or(session.agent);
            session.parent = parent.clone().or(session.parent);
            session.owner = owner.or(session.owner);
        }
        AgentEvent::Prompt { .. } if decision.standing.is_some() => {}
        AgentEvent::Prompt { message, text, .. } => {
            close_turn(&mut session, &mut decision.writes);
            session.open_turn = Some(new_turn);
            decision.writes.push(Write::Turn(new_turn_of(text, message.as_ref())));
            decision.point = Some(prompt_point(describe(text), message.clone()));
        }
        AgentEvent::BeforeTool { call: call_id, tool, touches, .. } => {
            if session.open_turn.is_none() {
                session.open_turn = Some(new_turn);
                decision.writes.push(Write::Turn(new_turn_of("", None)));
                if !now.goes_on_from_a_prompt(&session)? {
                    decision.point = Some(prompt_point(String::new(), None));
                }
            }
            call = Some(Call {
                session: id.clone(),
                id: call_id.clone(),
                turn: session.open_turn.unwrap_or(new_turn),
                tool: tool.clone(),
                kind: kind_of(touches, named),
                state: CallState::Open,
                opened_at: time,
                began_at: None,
                active_at: None,
                closed_at: None,
            });
        }
        AgentEvent::AfterTool { call: call_id, outcome, report, .. } => {
            match now.store.call(id, call_id)? {
                Some(ending) => {
                    // One that was given up for lost ran after all.
                    scene.calls.retain(|c| (&c.session, &c.id) != (id, call_id));
                    let was_in_background = ending.active_at.is_some();
                    let ending = ended(ending, *outcome, *report, time);
                    scene.calls.push(as_it_ran(&ending, was_in_background, time));
                    call = Some(ending);
                }
                // Nobody told when it began.
                None => scene.may_have_written(id),
            }
        }
        AgentEvent::Step { name, .. } => {
            let kind = PointKind::Step;
            decision.point = Some(NewPoint { kind, ..prompt_point(describe(name), None) });
        }
        AgentEvent::TurnEnd { .. } => close_turn(&mut session, &mut decision.writes),
        AgentEvent::SessionEnd { .. } => {
            close_turn(&mut session, &mut decision.writes);
            session.ended_at = Some(time);
        }
    }
    // The store wants a session before its turns, and a turn before its calls.
    decision.writes.insert(0, Write::Session(session));
    decision.writes.extend(call.map(Write::Call));
    decision.scene = Some(scene);
    Ok(decision)
}

fn kind_of(touches: &Touches, named: &[WorkPath]) -> CallKind {
    match touches {
        Touches::Paths(_) => CallKind::Edit { paths: named.to_vec() },
        Touches::Anything { command, .. } => {
            CallKind::Shell { command: command.clone(), paths: named.to_vec() }
        }
        Touches::Nothing => CallKind::Edit { paths: Vec::new() },
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
    }
}

/// What an event says of calls of its session whose end no event reported. Another call that begins or
/// ends overtakes them: they may still run. Whatever else comes says that they are over, and not when
/// they ended.
fn close_lost_calls(event: &AgentEvent, now: &Now<'_>, scene: &mut Scene, decision: &mut Decision) {
    let own = now.scene.calls.iter().filter(|call| call.session == *event.session());
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
                scene.cut_off.insert((call.session.clone(), call.id.clone()));
                (CallState::CutOff, Some(decision.time))
            }
            AgentEvent::TurnEnd { .. } => (CallState::CutOff, Some(decision.time)),
        };
        decision.writes.push(Write::Call(Call { state, closed_at, ..call.clone() }));
    }
}

/// A call for the changes that its end finds: it did them itself, whatever goes on from here. What a task
/// in the background left stays in doubt.
fn as_it_ran(ending: &Call, was_in_background: bool, time: Timestamp) -> Call {
    let state = match ending.state {
        _ if was_in_background => CallState::Background,
        CallState::Background | CallState::Settling => CallState::Done,
        state => state,
    };
    Call { state, closed_at: ending.closed_at.or(Some(time)), ..ending.clone() }
}

/// A call as its own event says that it ended.
fn ended(call: Call, outcome: Outcome, report: CallReport, time: Timestamp) -> Call {
    let is_edit = !call.kind.paths().is_empty();
    let is_shell = matches!(call.kind, CallKind::Shell { .. });
    let state = match outcome {
        // What changed while it waited may be the person's.
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
