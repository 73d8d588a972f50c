//! One prompt and what the agent does for it, recorded around the agent's own tools.

use std::path::PathBuf;

use serde_json::Value;
use takeback_core::middleware::{command_in, paths_in};
use takeback_core::record::RecordError;
use takeback_core::{AgentEvent, CallReport, CallTargets, Outcome, Tools};
use takeback_store::{CallId, NotCapturedReason, PointId, SessionId, WorkPath};

use crate::takeback::Takeback;

/// A prompt and the work that follows it. The next prompt of its session ends it.
#[derive(Debug, Clone)]
pub struct Turn {
    pub(crate) takeback: Takeback,
    pub(crate) session: SessionId,
    pub(crate) point: PointId,
}

/// What a tool call may write.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Tool {
    name: String,
    paths: Vec<PathBuf>,
    command: Option<String>,
    kind: Kind,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Kind {
    Edit,
    Shell,
    /// Decided by the settings, by the tool's name.
    Named,
}

/// Something that could not be recorded. The tool ran anyway.
#[derive(Debug)]
pub enum RecordingGap {
    /// An event of this call: what it changed is attributed to the next call, or to you.
    Event {
        /// The id of the call; empty for a turn's end.
        call: String,
        /// Why.
        source: RecordError,
    },
    /// The bytes of a file as they were before the call.
    Contents {
        /// The id of the call.
        call: String,
        /// The file.
        path: WorkPath,
        /// Why.
        reason: NotCapturedReason,
    },
}

impl Tool {
    /// A tool that writes this file and nothing else. Relative paths begin at the workspace's root.
    #[must_use]
    pub fn edit(path: impl Into<PathBuf>) -> Self {
        Self { name: "edit".to_owned(), paths: vec![path.into()], command: None, kind: Kind::Edit }
    }

    /// A tool that runs a command, or may write anywhere for another reason.
    #[must_use]
    pub fn shell(command: impl Into<String>) -> Self {
        let command = Some(command.into());
        Self { name: "shell".to_owned(), paths: Vec::new(), command, kind: Kind::Shell }
    }

    /// A tool by its name and input. The settings `editTools`, `shellTools` and `readOnlyTools` say what it
    /// may write; a tool in none of them may write anywhere. Paths are taken from `file_path`, `path` and
    /// `notebook_path` of the input, a command from `command`.
    #[must_use]
    pub fn named(name: impl Into<String>, input: &Value) -> Self {
        let (paths, command) = (paths_in(input), command_in(input));
        Self { name: name.into(), paths, command, kind: Kind::Named }
    }

    fn touches(self, tools: &Tools) -> CallTargets {
        match self.kind {
            Kind::Edit => CallTargets::Paths(self.paths),
            Kind::Shell => CallTargets::anything(self.command),
            Kind::Named => tools.touches(&self.name, self.paths, self.command),
        }
    }
}

impl Turn {
    /// The point of the prompt: the tree as the agent found it.
    #[must_use]
    pub fn point(&self) -> PointId {
        self.point
    }

    /// Runs a tool and records what it changes. Returns what `run` returns: an `Err` is recorded as a
    /// failed call, and a failure to record never fails the tool ([`Takeback::unrecorded`] has it).
    ///
    /// `id` must be unique within the session. Several calls may run at once, on threads of their own.
    pub fn call<T, E>(
        &self,
        id: &str,
        tool: Tool,
        run: impl FnOnce() -> Result<T, E>,
    ) -> Result<T, E> {
        let call = self.begin(id, tool);
        let result = run();
        call.end(if result.is_ok() { Outcome::Done } else { Outcome::Failed });
        result
    }

    /// Records that a tool is about to run. For tools that do not fit into a closure; a call that is
    /// dropped without [`OpenCall::end`] counts as failed.
    #[must_use = "a call that is dropped at once counts as failed"]
    pub fn begin(&self, id: &str, tool: Tool) -> OpenCall {
        let mut shared = self.takeback.lock();
        let name = tool.name.clone();
        let touches = tool.touches(&shared.tools());
        let is_open = touches != CallTargets::Nothing;
        let call = CallId::from(id);
        if is_open {
            let session = self.session.clone();
            let event = AgentEvent::BeforeTool { session, call: call.clone(), tool: name, touches };
            shared.record_or_note(id, &event);
        }
        drop(shared);
        OpenCall { turn: self.clone(), call, is_open }
    }

    /// The agent has answered the prompt.
    pub fn end(self) {
        let event = AgentEvent::TurnEnd { session: self.session.clone(), model: None };
        self.takeback.lock().record_or_note("", &event);
    }
}

/// A tool call that is running.
#[derive(Debug)]
pub struct OpenCall {
    turn: Turn,
    call: CallId,
    is_open: bool,
}

impl OpenCall {
    /// Records how the call ended and what it changed.
    pub fn end(mut self, outcome: Outcome) {
        self.close(outcome);
    }

    fn close(&mut self, outcome: Outcome) {
        if std::mem::take(&mut self.is_open) {
            let event = AgentEvent::AfterTool {
                session: self.turn.session.clone(),
                call: self.call.clone(),
                outcome,
                report: CallReport::default(),
            };
            self.turn.takeback.lock().record_or_note(&self.call.0, &event);
        }
    }
}

impl Drop for OpenCall {
    fn drop(&mut self) {
        self.close(Outcome::Failed);
    }
}
