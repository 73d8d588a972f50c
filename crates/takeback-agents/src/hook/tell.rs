//! What was heard from a hook, put into the log.
//!
//! Every hook is a process of its own that knows nothing of those before it: what has to be known (is
//! the session there, who owns it) is asked of the store.

use std::time::Duration;

use takeback_core::record::RecordError;
use takeback_core::{
    AgentEvent, CallReport, Outcome, Recorded, Tools, Touches, Workspace, process, record,
    wait_for_deferred,
};
use takeback_store::{CallId, CallState, Process, Session, SessionId, StoreError};

use super::{Heard, News, Plugged, ToolCall, touches};

/// Who told it.
#[derive(Debug, Clone, Copy)]
pub struct Teller {
    pub agent: Plugged,
    /// The agent's process, whose death ends its session.
    pub process: Option<Process>,
    /// How long ago the agent ran the hook.
    pub late: Duration,
    /// Whether a hook that is not Takeback's may change what a call edited.
    pub formatter: bool,
}

impl Teller {
    /// What it says is of this moment.
    #[must_use]
    pub fn new(agent: Plugged, process: Option<Process>) -> Self {
        Self { agent, process, late: Duration::ZERO, formatter: false }
    }
}

/// What is to be recorded; `None`: it does not concern files.
#[must_use]
pub fn event_of(tools: &Tools, teller: Teller, heard: &Heard) -> Option<AgentEvent> {
    let whole = SessionId(heard.session.clone());
    let part = part_of(heard);
    let session = part.clone().unwrap_or_else(|| whole.clone());
    let touches = |call: &ToolCall| {
        let touches = touches(tools, &call.tool, &call.input, heard.cwd.as_deref());
        (touches != Touches::Nothing).then_some(touches)
    };
    Some(match &heard.news {
        News::Nothing | News::Asks(_) => return None,
        News::SessionStart => teller.introduces(whole, None),
        News::SubagentStart => teller.introduces(part?, Some(whole)),
        // One that nobody names has told what it did by its calls.
        News::SubagentStop => AgentEvent::SessionEnd { session: part? },
        News::Prompt { text } => {
            AgentEvent::Prompt { session, message: heard.prompt.clone(), text: text.clone() }
        }
        News::Before(call) => AgentEvent::BeforeTool {
            session,
            call: CallId(call.id.clone()),
            tool: call.tool.clone(),
            touches: touches(call)?,
        },
        News::After(call, ending) => {
            touches(call)?;
            let outcome = if ending.interrupted { Outcome::Interrupted } else { ending.outcome };
            let report = CallReport {
                ran_for: ending.took.map(|took| took + teller.late),
                waited: false,
                formatter: teller.formatter,
            };
            AgentEvent::AfterTool { session, call: CallId(call.id.clone()), outcome, report }
        }
        News::Rejected(call) => {
            touches(call)?;
            let (call, outcome) = (CallId(call.id.clone()), Outcome::Rejected);
            AgentEvent::AfterTool { session, call, outcome, report: CallReport::default() }
        }
        News::Ended { call } => {
            let (call, outcome) = (CallId(call.clone()), Outcome::Done);
            AgentEvent::AfterTool { session, call, outcome, report: CallReport::default() }
        }
        News::TurnEnd => AgentEvent::TurnEnd { session },
        News::SessionEnd => AgentEvent::SessionEnd { session },
    })
}

/// Records `event`, which [`event_of`] made of what was heard; `None`: there is nothing new in it.
///
/// A session that is not known yet, or goes on in another process, is introduced first.
pub fn tell(
    workspace: &mut Workspace,
    teller: Teller,
    heard: &Heard,
    event: &AgentEvent,
) -> Result<Option<Recorded>, RecordError> {
    tell_by(workspace, teller, heard, event, record)
}

/// As [`tell`], for who records the event in a way of their own.
pub fn tell_by<R>(
    workspace: &mut Workspace,
    teller: Teller,
    heard: &Heard,
    event: &AgentEvent,
    put: impl FnOnce(&mut Workspace, &AgentEvent) -> Result<R, RecordError>,
) -> Result<Option<R>, RecordError> {
    if matches!(heard.news, News::Ended { .. }) && !is_in_background(workspace, event)? {
        return Ok(None);
    }
    if !matches!(event, AgentEvent::SessionStart { parent: None, .. }) {
        let whole = SessionId(heard.session.clone());
        let sessions = workspace.store.sessions()?;
        let is_current = |id: &SessionId| {
            sessions.iter().any(|known| known.id == *id && teller.still_owns(known))
        };
        if !is_current(&whole) {
            record(workspace, &teller.introduces(whole.clone(), None))?;
        }
        if let Some(part) = part_of(heard).filter(|part| !is_current(part)) {
            record(workspace, &teller.introduces(part, Some(whole)))?;
        }
    }
    put(workspace, event).map(Some)
}

/// Subagents end in the same words as commands, and have told what they did themselves.
fn is_in_background(workspace: &Workspace, event: &AgentEvent) -> Result<bool, StoreError> {
    let AgentEvent::AfterTool { session, call, .. } = event else { return Ok(false) };
    // That it went on may be what is still to be recorded.
    wait_for_deferred(workspace, session)?;
    let call = workspace.store.call(session, call)?;
    Ok(call.is_some_and(|call| call.state == CallState::Background))
}

fn part_of(heard: &Heard) -> Option<SessionId> {
    let part = heard.subagent.as_ref()?;
    Some(SessionId(format!("{}/{part}", heard.session)))
}

impl Teller {
    fn introduces(self, session: SessionId, parent: Option<SessionId>) -> AgentEvent {
        let agent = Some(self.agent.name().to_owned());
        AgentEvent::SessionStart { session, agent, parent, owner: self.process }
    }

    fn still_owns(self, session: &Session) -> bool {
        let owner = session.owner;
        session.agent.is_some()
            && (self.process.is_none()
                || owner == self.process
                || owner.is_some_and(process::is_alive))
    }
}
