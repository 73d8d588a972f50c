//! Turns a hook event into the event to record.

use std::time::Duration;

use takeback_core::{AgentEvent, CallReport, CallTargets, Outcome, Tools};
use takeback_store::{CallId, Process, SessionId};

use super::{HookEvent, HookEventKind, ToolCall, call_targets};
use crate::kind::AgentKind;

/// Where a hook event comes from.
#[derive(Debug, Clone, Copy)]
pub struct HookSource {
    /// The agent.
    pub agent: &'static AgentKind,
    /// The agent's process, whose death ends its session.
    pub process: Option<Process>,
    /// How long ago the agent ran the hook.
    pub late: Duration,
    /// Whether a hook that is not Takeback's may change what a call edited.
    pub formatter: bool,
}

impl HookSource {
    /// The source of an event that has just happened.
    #[must_use]
    pub fn new(agent: &'static AgentKind, process: Option<Process>) -> Self {
        Self { agent, process, late: Duration::ZERO, formatter: false }
    }
}

/// The event to record; `None` if it does not concern files.
#[must_use]
pub fn to_agent_event(
    tools: &Tools,
    source: HookSource,
    hook_event: &HookEvent,
) -> Option<AgentEvent> {
    let whole = SessionId(hook_event.session.clone());
    let part = subagent_session(hook_event);
    let session = part.clone().unwrap_or_else(|| whole.clone());
    let targets = |call: &ToolCall| {
        let targets = call_targets(tools, &call.tool, &call.input, hook_event.cwd.as_deref());
        (targets != CallTargets::Nothing).then_some(targets)
    };
    Some(match &hook_event.kind {
        HookEventKind::Irrelevant | HookEventKind::PermissionAsked(_) => return None,
        HookEventKind::SessionStart => {
            let parent = hook_event.forked_from.clone().map(SessionId);
            source.session_start(whole, parent, hook_event.model.clone())
        }
        HookEventKind::SubagentStart => {
            source.session_start(part?, Some(whole), hook_event.model.clone())
        }
        // Without an id there is no session to end; its calls were recorded already.
        HookEventKind::SubagentStop => {
            AgentEvent::SessionEnd { session: part?, model: hook_event.model.clone() }
        }
        HookEventKind::Prompt { text } => AgentEvent::Prompt {
            session,
            message: hook_event.prompt.clone(),
            text: text.clone(),
            model: hook_event.model.clone(),
        },
        HookEventKind::BeforeTool(call) => AgentEvent::BeforeTool {
            session,
            call: CallId(call.id.clone()),
            tool: call.tool.clone(),
            touches: targets(call)?,
        },
        HookEventKind::AfterTool(call, end) => {
            targets(call)?;
            let outcome = if end.interrupted { Outcome::Interrupted } else { end.outcome };
            let report = CallReport {
                ran_for: end.took.map(|took| took + source.late),
                waited: false,
                formatter: source.formatter,
            };
            AgentEvent::AfterTool { session, call: CallId(call.id.clone()), outcome, report }
        }
        HookEventKind::ToolRejected(call) => {
            targets(call)?;
            let (call, outcome) = (CallId(call.id.clone()), Outcome::Rejected);
            AgentEvent::AfterTool { session, call, outcome, report: CallReport::default() }
        }
        HookEventKind::BackgroundEnded { call } => {
            let (call, outcome) = (CallId(call.clone()), Outcome::Done);
            AgentEvent::AfterTool { session, call, outcome, report: CallReport::default() }
        }
        HookEventKind::TurnEnd => AgentEvent::TurnEnd { session, model: hook_event.model.clone() },
        HookEventKind::SessionEnd => {
            AgentEvent::SessionEnd { session, model: hook_event.model.clone() }
        }
    })
}

pub(super) fn subagent_session(hook_event: &HookEvent) -> Option<SessionId> {
    let part = hook_event.subagent.as_ref()?;
    Some(SessionId(hook_event.session.clone()).part(part))
}

impl HookSource {
    pub(super) fn session_start(
        self,
        session: SessionId,
        parent: Option<SessionId>,
        model: Option<String>,
    ) -> AgentEvent {
        let agent = Some(self.agent.name.to_owned());
        AgentEvent::SessionStart { session, agent, parent, owner: self.process, model }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::agents::AGENTS;
    use crate::tools::default_tools;

    #[test]
    fn a_session_that_names_the_one_it_was_copied_from_has_it_as_its_parent() {
        let copy = HookEvent {
            event: "start".to_owned(),
            session: "copy".to_owned(),
            subagent: None,
            cwd: None,
            transcript: None,
            prompt: None,
            timestamp: None,
            model: Some("m".to_owned()),
            is_fork: false,
            forked_from: Some("first".to_owned()),
            kind: HookEventKind::SessionStart,
        };
        let source = HookSource::new(AGENTS[0], None);
        let event = to_agent_event(&default_tools(), source, &copy);
        let (session, parent) = (SessionId("copy".to_owned()), SessionId("first".to_owned()));
        assert_eq!(event, Some(source.session_start(session, Some(parent), copy.model)));
    }
}
