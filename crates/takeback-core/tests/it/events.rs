//! The events that tests report most, in one line each.

use std::path::PathBuf;

use takeback_core::{AgentEvent, CallReport, CallTargets, Outcome};
use takeback_store::{CallId, SessionId};

pub(crate) fn prompt(session: &str, text: &str) -> AgentEvent {
    AgentEvent::Prompt {
        session: SessionId::from(session),
        message: None,
        text: text.to_owned(),
        model: None,
    }
}

/// An edit that names `path` is about to begin.
pub(crate) fn edit(session: &str, call: &str, path: impl Into<PathBuf>) -> AgentEvent {
    AgentEvent::BeforeTool {
        session: SessionId::from(session),
        call: CallId::from(call),
        tool: "Edit".to_owned(),
        touches: CallTargets::Paths(vec![path.into()]),
    }
}

pub(crate) fn after(session: &str, call: &str) -> AgentEvent {
    AgentEvent::AfterTool {
        session: SessionId::from(session),
        call: CallId::from(call),
        outcome: Outcome::Done,
        report: CallReport::default(),
    }
}
