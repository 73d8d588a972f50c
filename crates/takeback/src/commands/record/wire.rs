//! The events of `record`, as their lines have them.

use std::collections::BTreeMap;
use std::path::PathBuf;
use std::time::Duration;

use serde::Deserialize;
use serde::de::IgnoredAny;
use serde_json::Value;
use takeback_core::{AgentEvent, CallReport, CallTargets, Outcome, Tools, process};
use takeback_store::{CallId, Process, SessionId};

use crate::commands::state::input::nearest;
use crate::screen::shorten;

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

/// The fields of each event. Of these, `cwd` is not used: the root is where `record` runs.
const FIELDS: &[(&str, &[&str])] = &[
    ("session_start", &["session", "agent", "cwd", "parent", "pid", "model"]),
    ("prompt", &["session", "message", "text", "model"]),
    ("before_tool", &["session", "call", "tool", "paths", "shell"]),
    (
        "after_tool",
        &["session", "call", "ok", "background", "interrupted", "rejected", "duration_ms", "tool"],
    ),
    ("turn_end", &["session", "model"]),
    ("session_end", &["session", "model"]),
    ("step", &["session", "checkpoint"]),
];

/// Why a line cannot be recorded.
#[derive(Debug, thiserror::Error)]
pub(super) enum LineError {
    #[error("not an event: {source}")]
    NotAnEvent { source: serde_json::Error },
    #[error("{event} has no field {field:?}; {advice}")]
    UnknownField { event: &'static str, field: String, advice: String },
    #[error("{tool} edits files: name its `paths`, or set `shell` if it may write anything")]
    NoPaths { tool: String },
    #[error(transparent)]
    NoProcess(#[from] NoProcess),
}

impl LineError {
    /// The event of the line, where that is certain.
    pub(super) fn event(&self) -> Option<&'static str> {
        match self {
            Self::NotAnEvent { .. } => None,
            Self::UnknownField { event, .. } => Some(event),
            Self::NoPaths { .. } => Some("before_tool"),
            Self::NoProcess(_) => Some("session_start"),
        }
    }
}

/// Reads a line. A field of another event is ignored: programs send one object with more and more fields.
pub(super) fn read(line: &[u8]) -> Result<WireEvent, LineError> {
    match unknown_field(line) {
        Some(error) => Err(error),
        None => serde_json::from_slice(line).map_err(|source| LineError::NotAnEvent { source }),
    }
}

fn unknown_field(line: &[u8]) -> Option<LineError> {
    #[derive(Deserialize)]
    struct EventName {
        event: String,
    }
    let EventName { event: name } = serde_json::from_slice(line).ok()?;
    let (event, own) = FIELDS.iter().find(|(event, _)| *event == name)?;
    let given: BTreeMap<String, IgnoredAny> = serde_json::from_slice(line).ok()?;
    let is_known =
        |field: &str| field == "event" || FIELDS.iter().any(|(_, of)| of.contains(&field));
    let field = given.keys().find(|field| !is_known(field))?;
    let advice = match nearest(own, field) {
        Some(meant) => format!("did you mean {meant}?"),
        None => format!("its fields are {}", own.join(", ")),
    };
    Some(LineError::UnknownField { event, field: shorten(field, 80), advice })
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

pub(super) fn convert(event: WireEvent, tools: &Tools) -> Result<InputLine, LineError> {
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
                // A window in its place would take whatever changed meanwhile for its work.
                _ if tools.edit.contains(&tool) => return Err(LineError::NoPaths { tool }),
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

#[cfg(test)]
mod tests {
    use super::*;

    /// A line with each field of an event.
    fn whole(event: &str, fields: &[&str]) -> Value {
        let mut line = serde_json::json!({ "event": event });
        for field in fields {
            line[field] = match *field {
                "pid" | "duration_ms" => 1.into(),
                "ok" | "background" | "interrupted" | "rejected" => true.into(),
                "paths" => serde_json::json!(["a"]),
                "checkpoint" => serde_json::json!({}),
                _ => "x".into(),
            };
        }
        line
    }

    #[test]
    fn each_event_has_its_fields_and_no_other() {
        for (event, fields) in FIELDS {
            let mut line = whole(event, fields);
            let read_event = read(line.to_string().as_bytes()).unwrap();
            assert_eq!(name_of(&read_event), *event);
            line["colour"] = "red".into();
            let error = read(line.to_string().as_bytes()).unwrap_err();
            let own = fields.join(", ");
            let told = format!("{event} has no field \"colour\"; its fields are {own}");
            assert_eq!(error.to_string(), told);
            assert_eq!(error.event(), Some(*event));
        }
    }

    #[test]
    fn a_field_of_another_event_is_ignored() {
        let line = br#"{"event":"turn_end","session":"s","call":"c","paths":["a"],"text":1}"#;
        assert_eq!(name_of(&read(line).unwrap()), "turn_end");
    }

    #[test]
    fn the_reference_has_every_field() {
        let reference = concat!(env!("CARGO_MANIFEST_DIR"), "/../../docs/reference.md");
        let reference = std::fs::read_to_string(reference).unwrap();
        for (event, fields) in FIELDS {
            let head = format!("| `{event}` | ");
            let row = reference.lines().find_map(|line| line.strip_prefix(&head)).unwrap();
            for field in *fields {
                let named = [format!("`{field}`"), format!("`{field}?`")];
                assert!(named.iter().any(|name| row.contains(name)), "{event} {field}");
            }
        }
    }
}
