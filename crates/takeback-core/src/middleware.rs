//! Records around any tool executor, with a few lines in the agent's own code.
//!
//! See `examples/middleware.rs`.

use std::path::PathBuf;

use serde_json::Value;
use takeback_store::{CallId, NotCapturedReason, SessionId, WorkPath};

use crate::event::{AgentEvent, CallReport, CallTargets, Outcome, Tools};
use crate::record::{RecordError, RecordOutcome, record};
use crate::workspace::Workspace;

/// A tool call as agents know it.
#[derive(Debug, Clone, Copy)]
pub struct ToolCall<'a> {
    /// Unique in its session.
    pub id: &'a str,
    /// The tool's name.
    pub tool: &'a str,
    /// Paths are looked for in `file_path`, `path` and `notebook_path`, a command in `command`.
    pub input: &'a Value,
}

/// Something that could not be recorded. The tool ran anyway.
#[derive(Debug)]
pub enum RecordingFailure {
    /// An event is not in the log.
    #[expect(missing_docs, reason = "the names say what the fields are")]
    Event { call: String, source: RecordError },
    /// The bytes of a file could not be saved before the tool ran.
    #[expect(missing_docs, reason = "the names say what the fields are")]
    Bytes { call: String, path: WorkPath, reason: NotCapturedReason },
}

/// Wraps a session's tool calls.
pub struct Middleware<'w> {
    /// The workspace in which the tools write.
    pub workspace: &'w mut Workspace,
    /// The session that the calls are recorded for.
    pub session: SessionId,
    /// Which tools write what.
    pub tools: Tools,
    /// Called with what could not be recorded.
    pub on_unrecorded: Box<dyn FnMut(RecordingFailure) + 'w>,
}

impl Middleware<'_> {
    /// A new prompt: makes a point.
    pub fn prompt(&mut self, message: Option<&str>, text: &str) {
        let (session, message) = (self.session.clone(), message.map(str::to_owned));
        self.record_event(
            "",
            &AgentEvent::Prompt { session, message, text: text.to_owned(), model: None },
        );
    }

    /// Saves what a tool call is about to overwrite, then runs it.
    pub fn around<R>(&mut self, call: ToolCall<'_>, execute: impl FnOnce(ToolCall<'_>) -> R) -> R {
        let touches = self.tools.touches(call.tool, paths_in(call.input), command_in(call.input));
        if touches == CallTargets::Nothing {
            return execute(call);
        }
        self.record_event(
            call.id,
            &AgentEvent::BeforeTool {
                session: self.session.clone(),
                call: CallId::from(call.id),
                tool: call.tool.to_owned(),
                touches,
            },
        );
        let result = execute(call);
        self.record_event(
            call.id,
            &AgentEvent::AfterTool {
                session: self.session.clone(),
                call: CallId::from(call.id),
                outcome: Outcome::Done,
                report: CallReport::default(),
            },
        );
        result
    }

    /// The agent has answered the prompt.
    pub fn turn_end(&mut self) {
        self.record_event("", &AgentEvent::TurnEnd { session: self.session.clone(), model: None });
    }

    fn record_event(&mut self, call: &str, event: &AgentEvent) {
        match record(self.workspace, event) {
            Ok(RecordOutcome { not_captured, .. }) => {
                for (path, reason) in not_captured {
                    (self.on_unrecorded)(RecordingFailure::Bytes {
                        call: call.to_owned(),
                        path,
                        reason,
                    });
                }
            }
            Err(source) => {
                (self.on_unrecorded)(RecordingFailure::Event { call: call.to_owned(), source });
            }
        }
    }
}

/// The paths a tool's input names.
#[must_use]
pub fn paths_in(input: &Value) -> Vec<PathBuf> {
    ["file_path", "path", "notebook_path"]
        .iter()
        .filter_map(|key| input.get(key)?.as_str())
        .map(PathBuf::from)
        .collect()
}

/// The command a shell tool's input holds.
#[must_use]
pub fn command_in(input: &Value) -> Option<String> {
    match input.get("command")? {
        Value::String(command) => Some(command.clone()),
        Value::Array(words) => {
            Some(words.iter().filter_map(Value::as_str).collect::<Vec<_>>().join(" "))
        }
        _ => None,
    }
}
