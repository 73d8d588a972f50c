//! What was heard from a hook, put into the log.
//!
//! Every hook is a process of its own that knows nothing of those before it: what has to be known (is
//! the session there, who owns it, which point is to learn another name) is asked of the store.

use takeback_core::record::RecordError;
use takeback_core::{
    AgentEvent, Recorded, Tools, Touches, Workspace, look_around, process, record,
};
use takeback_store::{CallId, Process, Session, SessionId};

use super::{Heard, News, Plugged, touches};

/// What became of what was heard.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Told {
    /// It does not concern files.
    Nothing,
    Recorded(Recorded),
}

/// Records it. `owner`: the agent's process, whose death ends its session.
pub fn tell(
    workspace: &mut Workspace,
    tools: &Tools,
    agent: Plugged,
    heard: &Heard,
    owner: Option<Process>,
) -> Result<Told, RecordError> {
    let whole = SessionId(heard.session.clone());
    let part = heard.subagent.as_ref().map(|part| SessionId(format!("{whole}/{part}")));
    let session = part.clone().unwrap_or_else(|| whole.clone());
    let event = match &heard.news {
        News::Nothing => return Ok(Told::Nothing),
        News::SessionStart => {
            return introduce(workspace, agent, &whole, None, owner, When::Always);
        }
        News::SubagentStart => {
            introduce(workspace, agent, &whole, None, owner, When::Unknown)?;
            return introduce(
                workspace,
                agent,
                &session,
                part.map(|_| whole),
                owner,
                When::Unknown,
            );
        }
        News::SubagentStop if part.is_some() => AgentEvent::SessionEnd { session },
        // Which one it was is not known: its calls have told what they did.
        News::SubagentStop => return look(workspace),
        News::Prompt { text, id } => {
            AgentEvent::Prompt { session, message: id.clone(), text: text.clone() }
        }
        News::Before(call) => {
            let touches = touches(tools, &call.tool, &call.input, heard.cwd.as_deref());
            if touches == Touches::Nothing {
                return Ok(Told::Nothing);
            }
            let (id, tool) = (CallId(call.id.clone()), call.tool.clone());
            AgentEvent::BeforeTool { session, call: id, tool, touches }
        }
        News::After(call, outcome) => {
            let touches = touches(tools, &call.tool, &call.input, heard.cwd.as_deref());
            if touches == Touches::Nothing {
                return Ok(Told::Nothing);
            }
            let call = CallId(call.id.clone());
            AgentEvent::AfterTool { session, call, outcome: *outcome }
        }
        News::TurnEnd => AgentEvent::TurnEnd { session },
        News::SessionEnd => AgentEvent::SessionEnd { session },
    };
    introduce(workspace, agent, &whole, None, owner, When::Unknown)?;
    if let Some(part) = part {
        introduce(workspace, agent, &part, Some(whole), owner, When::Unknown)?;
    }
    Ok(Told::Recorded(record(workspace, &event)?))
}

/// Whether a session that is known, and whose agent is the one that is known, is introduced again.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum When {
    Always,
    Unknown,
}

fn introduce(
    workspace: &mut Workspace,
    agent: Plugged,
    session: &SessionId,
    parent: Option<SessionId>,
    owner: Option<Process>,
    when: When,
) -> Result<Told, RecordError> {
    let sessions = workspace.store.sessions()?;
    let known = sessions.iter().find(|known| known.id == *session);
    if when == When::Unknown && known.is_some_and(|known| is_current(known, owner)) {
        return Ok(Told::Nothing);
    }
    let (session, agent) = (session.clone(), Some(agent.name().to_owned()));
    let event = AgentEvent::SessionStart { session, agent, parent, owner };
    Ok(Told::Recorded(record(workspace, &event)?))
}

/// A conversation that goes on in another process has another owner.
fn is_current(session: &Session, owner: Option<Process>) -> bool {
    session.agent.is_some()
        && (owner.is_none()
            || session.owner == owner
            || session.owner.is_some_and(process::is_alive))
}

fn look(workspace: &mut Workspace) -> Result<Told, RecordError> {
    Ok(Told::Recorded(look_around(workspace)?.recorded))
}
