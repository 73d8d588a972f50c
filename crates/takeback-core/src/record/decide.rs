//! What an event means: which calls, turns and points it opens and closes, and who may have written
//! what was found. Reads the store, writes nothing.

use takeback_store::{
    Call, CallKind, CallState, Point, PointId, PointKind, PointQuery, Seq, Session, SessionId,
    Store, StoreError, Timestamp, Turn, TurnId, WorkPath, Write,
};

use crate::author::Scene;
use crate::event::{AgentEvent, Outcome, Touches};

/// Who is there, read afresh for every try of a commit.
pub(super) struct Now<'s> {
    pub(super) store: &'s dyn Store,
    pub(super) sessions: Vec<Session>,
    pub(super) scene: Scene,
}

impl<'s> Now<'s> {
    pub(super) fn read(store: &'s dyn Store) -> Result<Self, StoreError> {
        let sessions = store.sessions()?;
        let scene = Scene::read(store, &sessions)?;
        Ok(Self { store, sessions, scene })
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

    /// Whether a session is part of another one that has a turn open.
    fn is_within_turn(&self, session: &Session) -> bool {
        let whole = session.whole();
        let is_open = |other: &Session| Some(&other.id) == whole && other.open_turn.is_some();
        self.sessions.iter().any(is_open)
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
            let call = Call { state: CallState::CutOff, closed_at: Some(time), ..(*call).clone() };
            Write::Call(call)
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
                // What a part of a session does belongs to the prompt of the whole.
                if !now.is_within_turn(&session) {
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
                closed_at: None,
            });
        }
        AgentEvent::AfterTool { call: call_id, outcome, .. } => {
            match now.store.call(id, call_id)? {
                Some(ending) => {
                    // One that was given up for lost ran after all.
                    scene.calls.retain(|c| (&c.session, &c.id) != (id, call_id));
                    scene.calls.push(Call { state: CallState::Open, ..ending.clone() });
                    call = Some(ended(ending, *outcome, time));
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

/// What an event says of calls of its session whose end nobody told. Another call that begins or ends
/// overtakes them: they may still run beside it. Whatever else comes says that they are over: a prompt
/// or a new start, that they were cut off; the end of the turn, that they have run so far.
fn close_lost_calls(event: &AgentEvent, now: &Now<'_>, scene: &mut Scene, decision: &mut Decision) {
    for call in now.scene.calls.iter().filter(|call| call.session == *event.session()) {
        let background = call.state == CallState::Background;
        let (state, closed_at) = match event {
            AgentEvent::Step { .. } => continue,
            AgentEvent::SessionEnd { .. } => (CallState::CutOff, Some(decision.time)),
            _ if background => continue,
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

fn ended(call: Call, outcome: Outcome, time: Timestamp) -> Call {
    let state = match outcome {
        Outcome::Done => CallState::Done,
        Outcome::Failed => CallState::Failed,
        Outcome::Background => CallState::Background,
    };
    Call { state, closed_at: (!state.may_write()).then_some(time), ..call }
}

/// The first 80 characters of a prompt, on one line.
#[must_use]
pub fn describe(prompt: &str) -> String {
    const MOST: usize = 80;
    prompt.trim().replace("\r\n", " ").replace(['\n', '\r'], " ").chars().take(MOST).collect()
}
