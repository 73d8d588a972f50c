//! Recording for chat agents: like [`takeback_core::middleware`], for an agent that runs on its own
//! thread and reports what could not be recorded.

use std::collections::HashSet;
use std::error::Error;
use std::sync::mpsc::Sender;

use serde_json::Value;
use takeback_core::middleware::{command_in, paths_in};
use takeback_core::record::RecordError;
use takeback_core::{
    AgentEvent, CallTargets, Outcome, RecordOutcome, Tools, Workspace, look_around, process, record,
};
use takeback_store::{CallId, PointQuery, Seq, SessionId};

use crate::chat_agent::{ChatEvent, PromptPoint};

/// What an agent needs for recording.
pub struct Capture {
    /// The workspace that the agent works in.
    pub workspace: Workspace,
    /// The session in the log.
    pub session: SessionId,
    /// The tools, by what they write.
    pub tools: Tools,
    /// Receives what could not be recorded.
    pub say: Sender<ChatEvent>,
    /// `false`: the user switched recording off.
    pub recording: bool,
    /// A hook of the user's, such as a formatter, may change what the agent has just edited.
    pub formatter: bool,
}

/// Records an agent's actions before they happen. A recording error never fails the agent.
pub(crate) struct Recording {
    pub(crate) workspace: Workspace,
    pub(crate) session: SessionId,
    pub(crate) tools: Tools,
    pub(crate) recording: bool,
    pub(crate) formatter: bool,
    say: Sender<ChatEvent>,
    /// Reported in this turn already.
    reported: HashSet<String>,
    /// The model that works on the turn, once it is known.
    pub(crate) model: Option<String>,
}

impl From<Capture> for Recording {
    fn from(capture: Capture) -> Self {
        let Capture { workspace, session, tools, say, recording, formatter } = capture;
        Self {
            workspace,
            session,
            tools,
            recording,
            formatter,
            say,
            reported: HashSet::new(),
            model: None,
        }
    }
}

impl Recording {
    pub(crate) fn session_start(&mut self, agent: &str) {
        let owner = process::current();
        self.record_event(&AgentEvent::SessionStart {
            session: self.session.clone(),
            agent: Some(agent.to_owned()),
            parent: None,
            owner,
            model: self.model.clone(),
        });
    }

    /// Makes the prompt's point. Durable when this returns.
    pub(crate) fn prompt(&mut self, message: &str, text: &str) -> Option<PromptPoint> {
        let (session, message) = (self.session.clone(), Some(message.to_owned()));
        let event = AgentEvent::Prompt { session, message, text: text.to_owned(), model: None };
        let id = self.record_event(&event)?.point?;
        let found = self.workspace.store.find_points(PointQuery::Id(id)).ok();
        let made = found.and_then(|mut points| points.pop()).map(|point| point.created_at);
        // The point is durable even if it cannot be read back.
        let created_at = made.unwrap_or_else(|| (self.workspace.ambient.now)());
        Some(PromptPoint { id, created_at })
    }

    /// Records what a call is about to overwrite. Durable when this returns.
    pub(crate) fn before(&mut self, call: &str, tool: &str, input: &Value) -> Option<Seq> {
        let touches = self.tools.touches(tool, paths_in(input), command_in(input));
        if touches == CallTargets::Nothing {
            return None;
        }
        let (session, call, tool) = (self.session.clone(), CallId::from(call), tool.to_owned());
        let recorded =
            self.record_event(&AgentEvent::BeforeTool { session, call, tool, touches })?;
        Some(recorded.seq)
    }

    /// Records the end of a call that [`Self::before`] recorded.
    pub(crate) fn after(&mut self, call: &str, outcome: Outcome) -> Option<Seq> {
        let (session, call) = (self.session.clone(), CallId::from(call));
        Some(
            self.record_event(&AgentEvent::AfterTool {
                session,
                call,
                outcome,
                report: takeback_core::CallReport::default(),
            })?
            .seq,
        )
    }

    /// Records the current files. Durable when this returns; the turn stays open.
    pub(crate) fn scan(&mut self) {
        if self.recording {
            let scanned = look_around(&mut self.workspace);
            self.report_problems(scanned.map(|scanned| scanned.recorded));
        }
    }

    pub(crate) fn turn_end(&mut self) {
        self.record_event(&AgentEvent::TurnEnd {
            session: self.session.clone(),
            model: self.model.clone(),
        });
    }

    pub(crate) fn session_end(&mut self) {
        self.record_event(&AgentEvent::SessionEnd { session: self.session.clone(), model: None });
    }

    /// Records an event; `None` if it could not be recorded, which has been reported.
    pub(crate) fn record_event(&mut self, event: &AgentEvent) -> Option<RecordOutcome> {
        if !self.recording {
            return None;
        }
        if matches!(event, AgentEvent::Prompt { .. }) {
            self.reported.clear();
        }
        let recorded = record(&mut self.workspace, event);
        self.report_problems(recorded)
    }

    fn report_problems(
        &mut self,
        recorded: Result<RecordOutcome, RecordError>,
    ) -> Option<RecordOutcome> {
        match recorded {
            Ok(recorded) => {
                for (path, reason) in &recorded.not_captured {
                    let path = String::from_utf8_lossy(path.as_bytes());
                    self.report_unrecorded(format!("{path}: {}", reason.describe()));
                }
                Some(recorded)
            }
            Err(error) => {
                self.report_unrecorded(with_causes(&error));
                None
            }
        }
    }

    /// Reports each reason once per turn.
    pub(crate) fn report_unrecorded(&mut self, why: String) {
        if self.reported.insert(why.clone()) {
            // The receiver is gone while the session closes.
            drop(self.say.send(ChatEvent::NotRecorded(why)));
        }
    }
}

/// An error and its sources in one line.
pub(crate) fn with_causes(error: &dyn Error) -> String {
    let mut text = error.to_string();
    let mut behind = error.source();
    while let Some(cause) = behind {
        let more = cause.to_string();
        if !text.ends_with(&more) {
            text = format!("{text}: {more}");
        }
        behind = cause.source();
    }
    text
}

#[cfg(test)]
mod tests {
    use std::sync::mpsc;

    use takeback_testkit::Sandbox;

    use super::*;

    #[test]
    #[expect(
        clippy::disallowed_methods,
        reason = "it damages the folder that the recorder writes to"
    )]
    fn a_recording_error_is_reported_once_per_turn_with_its_cause() {
        let (sandbox, (say, events)) = (Sandbox::new(), mpsc::channel());
        let mut recording = Recording::from(Capture {
            workspace: sandbox.another_process(),
            session: SessionId::from("s"),
            tools: crate::tools::default_tools(),
            say,
            recording: true,
            formatter: false,
        });
        let store_dir = recording.workspace.store_dir.clone();
        std::fs::write(store_dir.join("inbox"), "in the way").expect("it is not there yet");
        let turn = |recording: &mut Recording| {
            recording.prompt("m", "one");
            recording.before("c", "Bash", &serde_json::json!({ "command": "true" }));
            recording.turn_end();
        };
        let why = format!(
            "{}/inbox cannot be used (waiting for an event): Not a directory (os error 20)",
            store_dir.display()
        );
        for _ in 0..2 {
            turn(&mut recording);
            assert_eq!(
                events.try_iter().collect::<Vec<_>>(),
                [ChatEvent::NotRecorded(why.clone())]
            );
        }
    }
}
