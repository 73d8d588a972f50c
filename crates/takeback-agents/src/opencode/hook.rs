//! What opencode gives its plugins, as `plugin.js` tells it: what the plugin's hook was given, with the
//! hook's name, the folders, and of a subagent whose it is.

use std::path::PathBuf;
use std::time::Duration;

use serde::Deserialize;
use serde_json::Value;
use takeback_core::Outcome;

use crate::hook::{Ending, HearError, Heard, News, ToolCall, Wanted};

const NAME: &str = "opencode";

/// What the plugin listens to.
pub const WANTED: &[Wanted] = &[
    wanted("event"),
    wanted("chat.message"),
    wanted("tool.execute.before"),
    wanted("tool.execute.after"),
    wanted("dispose"),
];

const fn wanted(event: &'static str) -> Wanted {
    Wanted { event, matcher: None, timeout_seconds: 2 }
}

/// Tools that only read, only talk, or start what tells of itself.
const QUIET: &[&str] = &[
    "glob",
    "grep",
    "list",
    "plan_enter",
    "plan_exit",
    "question",
    "read",
    "skill",
    "task",
    "todoread",
    "todowrite",
    "webfetch",
    "websearch",
];

#[derive(Debug, Deserialize)]
struct WireGiven {
    hook: String,
    directory: Option<PathBuf>,
    parent: Option<String>,
    #[serde(rename = "sessionID")]
    session: Option<String>,
    #[serde(default)]
    input: WireInput,
    #[serde(default)]
    output: WireOutput,
    event: Option<WireEvent>,
    #[serde(rename = "ranMs")]
    ran_ms: Option<u64>,
}

#[derive(Debug, Default, Deserialize)]
struct WireInput {
    #[serde(rename = "sessionID")]
    session: Option<String>,
    tool: Option<String>,
    #[serde(rename = "callID")]
    call: Option<String>,
    #[serde(default)]
    args: Value,
}

#[derive(Debug, Default, Deserialize)]
struct WireOutput {
    #[serde(default)]
    args: Value,
    message: Option<WireMessage>,
    #[serde(default)]
    parts: Vec<WirePart>,
}

#[derive(Debug, Deserialize)]
struct WireMessage {
    id: String,
}

#[derive(Debug, Deserialize)]
struct WireEvent {
    #[serde(rename = "type")]
    kind: String,
    #[serde(default)]
    properties: WireProperties,
}

#[derive(Debug, Default, Deserialize)]
struct WireProperties {
    #[serde(rename = "sessionID")]
    session: Option<String>,
    part: Option<WirePart>,
}

/// A part of a message.
#[derive(Debug, Deserialize)]
struct WirePart {
    text: Option<String>,
    /// Whether opencode has added it to what a person said.
    #[serde(default)]
    synthetic: bool,
    tool: Option<String>,
    #[serde(rename = "callID")]
    call: Option<String>,
    #[serde(default)]
    state: WireState,
}

#[derive(Debug, Default, Deserialize)]
struct WireState {
    status: Option<String>,
    #[serde(default)]
    input: Value,
    error: Option<String>,
}

pub fn hear(given: &[u8]) -> Result<Heard, HearError> {
    let given: WireGiven = serde_json::from_slice(given)
        .map_err(|source| HearError::NotUnderstood { agent: NAME, source })?;
    let lacks = |field| HearError::Lacks { agent: NAME, field };
    let is_subagent = given.parent.is_some();
    let took = given.ran_ms.map(Duration::from_millis);
    let ending = |outcome: Outcome| Ending { took, ..outcome.into() };
    let news = match (given.hook.as_str(), &given.event) {
        ("event", Some(event)) => of_event(event, is_subagent, ending(Outcome::Failed))?,
        ("event", None) => return Err(lacks("event")),
        ("chat.message", _) if is_subagent => News::Nothing,
        ("chat.message", _) => prompt(&given.output.parts),
        ("tool.execute.before", _) => {
            told(&given.input, &given.output.args)?.map_or(News::Nothing, News::Before)
        }
        ("tool.execute.after", _) => told(&given.input, &given.input.args)?
            .map_or(News::Nothing, |call| News::After(call, ending(Outcome::Done))),
        ("dispose", _) => News::SessionEnd,
        _ => News::Nothing,
    };
    let (event, of_event) = match given.event {
        Some(event) => (event.kind, event.properties.session),
        None => (given.hook, None),
    };
    let session = of_event.or(given.input.session).or(given.session);
    let session = session.ok_or_else(|| lacks("sessionID"))?;
    let (session, subagent) = match given.parent {
        Some(parent) => (parent, Some(session)),
        None => (session, None),
    };
    Ok(Heard {
        event,
        session,
        subagent,
        cwd: given.directory,
        transcript: None,
        prompt: given.output.message.map(|message| message.id),
        timestamp: None,
        is_fork: false,
        forked_from: None,
        news,
    })
}

/// `failed`: how a call ended of which the event says that it failed.
fn of_event(event: &WireEvent, is_subagent: bool, failed: Ending) -> Result<News, HearError> {
    Ok(match event.kind.as_str() {
        "session.created" if is_subagent => News::SubagentStart,
        "session.created" => News::SessionStart,
        "session.idle" if is_subagent => News::SubagentStop,
        "session.idle" => News::TurnEnd,
        "session.deleted" if is_subagent => News::SubagentStop,
        "session.deleted" => News::SessionEnd,
        "message.part.updated" => failure(event.properties.part.as_ref(), failed)?,
        _ => News::Nothing,
    })
}

/// What the model is told of a call that a person did not allow.
const REFUSED: &str = "The user rejected permission to use this specific tool call";

/// Of a tool that failed only the message says so that it is a part of.
fn failure(part: Option<&WirePart>, ending: Ending) -> Result<News, HearError> {
    let Some(part) = part.filter(|part| part.state.status.as_deref() == Some("error")) else {
        return Ok(News::Nothing);
    };
    let call = call(part.tool.as_deref(), part.call.as_deref(), &part.state.input)?;
    let is_refused = part.state.error.as_deref().is_some_and(|it| it.starts_with(REFUSED));
    Ok(call.map_or(News::Nothing, |call| {
        if is_refused { News::Rejected(call) } else { News::After(call, ending) }
    }))
}

fn told(input: &WireInput, args: &Value) -> Result<Option<ToolCall>, HearError> {
    call(input.tool.as_deref(), input.call.as_deref(), args)
}

/// `None`: the tool is a quiet one.
fn call(
    tool: Option<&str>,
    id: Option<&str>,
    input: &Value,
) -> Result<Option<ToolCall>, HearError> {
    let lacks = |field| HearError::Lacks { agent: NAME, field };
    let tool = tool.ok_or_else(|| lacks("tool"))?;
    if QUIET.contains(&tool) {
        return Ok(None);
    }
    let id = id.ok_or_else(|| lacks("callID"))?.to_owned();
    Ok(Some(ToolCall { id, tool: tool.to_owned(), input: input.clone() }))
}

fn prompt(parts: &[WirePart]) -> News {
    let typed: Vec<&WirePart> = parts.iter().filter(|part| !part.synthetic).collect();
    if typed.is_empty() {
        return News::Nothing;
    }
    let texts: Vec<&str> = typed.iter().filter_map(|part| part.text.as_deref()).collect();
    News::Prompt { text: texts.join("\n") }
}
