//! `record`: events of an agent as JSON lines, answered one by one once they are durable.

use std::collections::HashSet;
use std::io::{self, BufRead as _};
use std::path::PathBuf;

use serde::Deserialize;
use serde_json::{Value, json};
use takeback_core::{AgentEvent, CallReport, Outcome, Tools, Touches, Workspace};
use takeback_store::{CallId, Lack, PointId, Seq, SessionId, WorkPath};

use super::cleanup::when_due;
use super::state::input::check_exact;
use super::state::save::{Files, keep, of_event};
use crate::args::Options;
use crate::error::CommandError;
use crate::place::{self, Place, Store};
use crate::screen::Screen;
use crate::wire::WireNote;

/// One line of input.
#[derive(Debug, Deserialize)]
#[serde(tag = "event", rename_all = "snake_case")]
enum WireEvent {
    SessionStart {
        session: String,
        agent: Option<String>,
        parent: Option<String>,
    },
    Prompt {
        session: String,
        message: Option<String>,
        #[serde(default)]
        text: String,
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
        /// What it started goes on.
        #[serde(default)]
        background: bool,
        tool: Option<String>,
    },
    TurnEnd {
        session: String,
    },
    SessionEnd {
        session: String,
    },
    Step {
        session: String,
        checkpoint: Value,
    },
}

/// A command, or only that there is one.
#[derive(Debug, Deserialize)]
#[serde(untagged)]
enum WireShell {
    Flag(bool),
    Command(String),
}

fn yes() -> bool {
    true
}

pub(crate) fn record(options: &Options, screen: &mut Screen) -> Result<u8, CommandError> {
    let prepared = place::prepare(options)?;
    if let Some(refusal) = prepared.refusal() {
        let mut place = None;
        return answer_each(screen, |line| {
            without_files(line, &refusal, || match place.take() {
                Some(opened) => Ok(place.insert(opened)),
                None => Ok(place.insert(place::open(options, Store::Create)?)),
            })
        });
    }
    let mut place = place::open_prepared(options, prepared, Store::Create)?;
    place.workspace.limits = place.settings.agent_limits();
    when_due(&mut place, options);
    let mut recording = Recording::default();
    let code = answer_each(screen, |line| recording.answer(&mut place, line));
    // The process is over, and every answer is durable: the system closes what is open at once.
    std::mem::forget(place);
    code
}

/// Of the events that an agent tells, those of its state alone are kept: files are not to be.
pub(crate) fn without_files<'p>(
    line: &[u8],
    refusal: &CommandError,
    open: impl FnOnce() -> Result<&'p mut Place, CommandError>,
) -> Value {
    let Ok(WireEvent::Step { session, checkpoint }) = serde_json::from_slice(line) else {
        return json!({ "ok": false, "error": refusal.what() });
    };
    match open() {
        Ok(place) => step(&mut place.workspace, line, session, checkpoint, Files::Not),
        Err(error) => refused("step", error),
    }
}

/// Answers line by line; the exit code says whether one was refused.
fn answer_each(
    screen: &mut Screen,
    mut answer: impl FnMut(&[u8]) -> Value,
) -> Result<u8, CommandError> {
    let mut failed = false;
    for line in io::stdin().lock().split(b'\n') {
        let line = line?;
        if line.trim_ascii().is_empty() {
            continue;
        }
        let answer = answer(&line);
        failed |= answer["ok"] == false;
        screen.json(&answer)?;
    }
    Ok(u8::from(failed))
}

/// What is to be remembered from one event to the next.
#[derive(Default)]
pub(crate) struct Recording {
    /// Calls that only read: their end is no news either.
    passed_over: HashSet<(SessionId, CallId)>,
}

impl Recording {
    /// Records the event that `line` tells.
    pub(crate) fn answer(&mut self, place: &mut Place, line: &[u8]) -> Value {
        let (workspace, tools) = (&mut place.workspace, place.settings.tools());
        let wire: WireEvent = match serde_json::from_slice(line) {
            Ok(event) => event,
            Err(error) => return json!({ "ok": false, "error": format!("not an event: {error}") }),
        };
        let name = name_of(&wire);
        let read_only = matches!(&wire, WireEvent::AfterTool { tool: Some(tool), .. }
            if tools.touches(tool, Vec::new(), None) == Touches::Nothing);
        let event = match convert(wire, &tools) {
            Told::Event(event) => event,
            Told::Step { session, checkpoint } => {
                return step(workspace, line, session, checkpoint, Files::Too);
            }
        };
        match &event {
            AgentEvent::BeforeTool { session, call, touches: Touches::Nothing, .. } => {
                self.passed_over.insert((session.clone(), call.clone()));
            }
            AgentEvent::AfterTool { session, call, .. }
                if self.passed_over.remove(&(session.clone(), call.clone())) || read_only =>
            {
                return match workspace.store.head() {
                    Ok(head) => accepted(name, head.seq, None, &[]),
                    Err(error) => refused(name, error.into()),
                };
            }
            _ => {}
        }
        match takeback_core::record(workspace, &event) {
            Ok(recorded) => accepted(name, recorded.seq, recorded.point, &recorded.not_captured),
            Err(error) => refused(name, error.into()),
        }
    }
}

/// Saves an agent's state; `line` is what it was told with.
fn step(
    workspace: &mut Workspace,
    line: &[u8],
    session: String,
    checkpoint: Value,
    files: Files,
) -> Value {
    let given = check_exact(line).and_then(|()| of_event(session, checkpoint));
    let kept = given.map_err(CommandError::from).and_then(|given| keep(workspace, &given, files));
    match kept {
        Ok(kept) => {
            let record = &kept.saved.record;
            let mut answer = accepted("step", kept.seq, record.point, &kept.not_captured);
            answer["id"] = json!(record.id().to_string());
            answer["attempt"] = json!(record.key.attempt);
            answer
        }
        Err(error) => refused("step", error),
    }
}

fn accepted(
    event: &str,
    seq: Seq,
    point: Option<PointId>,
    not_captured: &[(WorkPath, Lack)],
) -> Value {
    let not_captured: Vec<_> =
        not_captured.iter().map(|(path, lack)| WireNote::new(path, lack.reason())).collect();
    json!({ "ok": true, "event": event, "seq": seq, "point": point, "notCaptured": not_captured })
}

#[expect(clippy::needless_pass_by_value, reason = "an error is told once")]
fn refused(event: &str, error: CommandError) -> Value {
    json!({ "ok": false, "event": event, "error": error.what() })
}

fn name_of(event: &WireEvent) -> &'static str {
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

/// What a line says.
enum Told {
    Event(AgentEvent),
    Step { session: String, checkpoint: Value },
}

fn convert(event: WireEvent, tools: &Tools) -> Told {
    let event = match event {
        WireEvent::Step { session, checkpoint } => return Told::Step { session, checkpoint },
        WireEvent::SessionStart { session, agent, parent } => AgentEvent::SessionStart {
            session: SessionId(session),
            agent,
            parent: parent.map(SessionId),
            owner: None,
        },
        WireEvent::Prompt { session, message, text } => {
            AgentEvent::Prompt { session: SessionId(session), message, text }
        }
        WireEvent::BeforeTool { session, call, tool, paths, shell } => {
            let touches = match (shell, paths) {
                (Some(WireShell::Command(command)), paths) => {
                    Touches::Anything { command: Some(command), paths: paths.unwrap_or_default() }
                }
                (Some(WireShell::Flag(true)), paths) => {
                    Touches::Anything { command: None, paths: paths.unwrap_or_default() }
                }
                // Paths given are the adapter's word, whatever the tool is called.
                (_, Some(paths)) if !paths.is_empty() => Touches::Paths(paths),
                _ => tools.touches(&tool, Vec::new(), None),
            };
            AgentEvent::BeforeTool {
                session: SessionId(session),
                call: CallId(call),
                tool,
                touches,
            }
        }
        WireEvent::AfterTool { session, call, ok, background, tool: _ } => AgentEvent::AfterTool {
            session: SessionId(session),
            call: CallId(call),
            outcome: match (background, ok) {
                (true, _) => Outcome::Background,
                (false, true) => Outcome::Done,
                (false, false) => Outcome::Failed,
            },
            report: CallReport::default(),
        },
        WireEvent::TurnEnd { session } => AgentEvent::TurnEnd { session: SessionId(session) },
        WireEvent::SessionEnd { session } => AgentEvent::SessionEnd { session: SessionId(session) },
    };
    Told::Event(event)
}
