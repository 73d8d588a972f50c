//! The events of `record`, as their lines have them.

use std::path::PathBuf;
use std::time::Duration;

use serde::Deserialize;
use serde_json::Value;
use takeback_core::{AgentEvent, CallReport, CallTargets, Outcome, Tools, process};
use takeback_store::{CallId, Process, SessionId};

/// One line of input.
#[derive(Debug, Deserialize)]
#[serde(tag = "event", rename_all = "snake_case")]
pub(super) enum WireEvent {
    SessionStart {
        session: String,
        agent: Option<String>,
        parent: Option<String>,
        /// The agent's process, whose death ends the session.
        pid: Option<u32>,
        model: Option<String>,
    },
    Prompt {
        session: String,
        message: Option<String>,
        /// Empty if the prompt has no text: an image, for example.
        text: String,
        model: Option<String>,
    },
    BeforeTool {
        session: String,
        call: String,
        tool: String,
        paths: Option<Vec<PathBuf>>,
        shell: Option<WireShell>,
    },
    AfterTool {
        session: String,
        call: String,
        #[serde(default = "yes")]
        ok: bool,
        /// It continues in the background.
        #[serde(default)]
        background: bool,
        /// The user stopped it.
        #[serde(default)]
        interrupted: bool,
        /// The user refused it: it never ran.
        #[serde(default)]
        rejected: bool,
        /// How long it ran, without waiting for permission.
        duration_ms: Option<u64>,
        tool: Option<String>,
    },
    TurnEnd {
        session: String,
        model: Option<String>,
    },
    SessionEnd {
        session: String,
        model: Option<String>,
    },
    Step {
        session: String,
        checkpoint: Value,
    },
}

/// A command, or only the fact that there is one.
#[derive(Debug, Deserialize)]
#[serde(untagged)]
pub(super) enum WireShell {
    Flag(bool),
    Command(String),
}

fn yes() -> bool {
    true
}

/// A process id that belongs to no process.
#[derive(Debug, thiserror::Error)]
#[error("no process has the id {pid}")]
pub(super) struct NoProcess {
    pid: u32,
}

pub(super) fn running(pid: u32) -> Result<Process, NoProcess> {
    process::started(pid).ok_or(NoProcess { pid })
}

/// The content of an input line.
pub(super) enum InputLine {
    Event(AgentEvent),
    Step { session: String, checkpoint: Value },
}

pub(super) fn convert(event: WireEvent, tools: &Tools) -> Result<InputLine, NoProcess> {
    let event = match event {
        WireEvent::Step { session, checkpoint } => {
            return Ok(InputLine::Step { session, checkpoint });
        }
        WireEvent::SessionStart { session, agent, parent, pid, model } => {
            AgentEvent::SessionStart {
                session: SessionId(session),
                agent,
                parent: parent.map(SessionId),
                owner: pid.map(running).transpose()?,
                model,
            }
        }
        WireEvent::Prompt { session, message, text, model } => {
            AgentEvent::Prompt { session: SessionId(session), message, text, model }
        }
        WireEvent::BeforeTool { session, call, tool, paths, shell } => {
            let touches = match (shell, paths) {
                (Some(WireShell::Command(command)), paths) => CallTargets::Anything {
                    command: Some(command),
                    paths: paths.unwrap_or_default(),
                },
                (Some(WireShell::Flag(true)), paths) => {
                    CallTargets::Anything { command: None, paths: paths.unwrap_or_default() }
                }
                // Explicit paths count more than the tool's name.
                (_, Some(paths)) if !paths.is_empty() => CallTargets::Paths(paths),
                _ => tools.touches(&tool, Vec::new(), None),
            };
            AgentEvent::BeforeTool {
                session: SessionId(session),
                call: CallId(call),
                tool,
                touches,
            }
        }
        WireEvent::AfterTool {
            session,
            call,
            ok,
            background,
            interrupted,
            rejected,
            duration_ms,
            tool: _,
        } => AgentEvent::AfterTool {
            session: SessionId(session),
            call: CallId(call),
            outcome: match ok {
                _ if rejected => Outcome::Rejected,
                _ if interrupted => Outcome::Interrupted,
                _ if background => Outcome::Background,
                true => Outcome::Done,
                false => Outcome::Failed,
            },
            report: CallReport {
                ran_for: duration_ms.map(Duration::from_millis),
                ..CallReport::default()
            },
        },
        WireEvent::TurnEnd { session, model } => {
            AgentEvent::TurnEnd { session: SessionId(session), model }
        }
        WireEvent::SessionEnd { session, model } => {
            AgentEvent::SessionEnd { session: SessionId(session), model }
        }
    };
    Ok(InputLine::Event(event))
}

pub(super) fn name_of(event: &WireEvent) -> &'static str {
    match event {
        WireEvent::SessionStart { .. } => "session_start",
        WireEvent::Prompt { .. } => "prompt",
        WireEvent::BeforeTool { .. } => "before_tool",
        WireEvent::AfterTool { .. } => "after_tool",
        WireEvent::TurnEnd { .. } => "turn_end",
        WireEvent::SessionEnd { .. } => "session_end",
        WireEvent::Step { .. } => "step",
    }
}
