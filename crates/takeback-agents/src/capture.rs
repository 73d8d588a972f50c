//! Recording for agents that somebody talks to: the same words as [`takeback_core::middleware`], for an
//! agent that runs on a thread of its own and says what could not be recorded.

use std::sync::mpsc::Sender;

use serde_json::Value;
use takeback_core::middleware::{command_in, paths_in};
use takeback_core::record::RecordError;
use takeback_core::{
    AgentEvent, Outcome, Recorded, Tools, Touches, Workspace, look_around, process, record,
};
use takeback_store::{CallId, PointId, Seq, SessionId};

use crate::talk::Said;

/// Where an agent tells what it does before it does it. Nothing here fails the agent.
pub struct Capture {
    pub workspace: Workspace,
    pub session: SessionId,
    pub tools: Tools,
    /// Hears what could not be recorded.
    pub say: Sender<Said>,
    /// Switched off by the user: nothing is recorded.
    pub recording: bool,
}

impl Capture {
    pub fn session_start(&mut self, agent: &str) {
        let owner = process::current();
        self.tell(&AgentEvent::SessionStart {
            session: self.session.clone(),
            agent: Some(agent.to_owned()),
            parent: None,
            owner,
        });
    }

    /// Makes the prompt's point. Durable when this returns.
    pub fn prompt(&mut self, message: &str, text: &str) -> Option<PointId> {
        let (session, message) = (self.session.clone(), Some(message.to_owned()));
        self.tell(&AgentEvent::Prompt { session, message, text: text.to_owned() })?.point
    }

    /// Keeps what a call is about to overwrite. Durable when this returns.
    pub fn before(&mut self, call: &str, tool: &str, input: &Value) -> Option<Seq> {
        let touches = self.tools.touches(tool, paths_in(input), command_in(input));
        if touches == Touches::Nothing {
            return None;
        }
        let (session, call, tool) = (self.session.clone(), CallId::from(call), tool.to_owned());
        let told = self.tell(&AgentEvent::BeforeTool { session, call, tool, touches })?;
        Some(told.seq)
    }

    /// What a call did, which [`Self::before`] was told of.
    pub fn after(&mut self, call: &str, outcome: Outcome) -> Option<Seq> {
        let (session, call) = (self.session.clone(), CallId::from(call));
        Some(self.tell(&AgentEvent::AfterTool { session, call, outcome })?.seq)
    }

    /// Records what is there now. Durable when this returns; the turn stays open.
    pub fn look(&mut self) {
        if self.recording {
            let surveyed = look_around(&mut self.workspace);
            self.heed(surveyed.map(|surveyed| surveyed.recorded));
        }
    }

    pub fn turn_end(&mut self) {
        self.tell(&AgentEvent::TurnEnd { session: self.session.clone() });
    }

    pub fn session_end(&mut self) {
        self.tell(&AgentEvent::SessionEnd { session: self.session.clone() });
    }

    /// What was recorded; `None` if it was not, which has been said.
    pub fn tell(&mut self, event: &AgentEvent) -> Option<Recorded> {
        if !self.recording {
            return None;
        }
        let recorded = record(&mut self.workspace, event);
        self.heed(recorded)
    }

    fn heed(&self, recorded: Result<Recorded, RecordError>) -> Option<Recorded> {
        match recorded {
            Ok(recorded) => {
                for (path, lack) in &recorded.not_captured {
                    let path = String::from_utf8_lossy(path.as_bytes());
                    self.unrecorded(format!("{path}: {}", lack.reason()));
                }
                Some(recorded)
            }
            Err(error) => {
                self.unrecorded(error.to_string());
                None
            }
        }
    }

    fn unrecorded(&self, why: String) {
        // Nobody listens any more when the session is being closed.
        drop(self.say.send(Said::Unrecorded(why)));
    }
}
