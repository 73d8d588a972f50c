//! What Copilot CLI gives its hooks.
//!
//! Its JSON does not say what happened, so the command line of each hook does. Under the names that
//! Claude Code gives to events (`PreToolUse`), Copilot CLI speaks as Claude Code does, and says it; in a
//! folder that it trusts it runs the hooks of `.claude/settings.json`, too.

use std::path::PathBuf;

use serde::Deserialize;
use serde_json::Value;
use takeback_core::Outcome;

use crate::hook::{HearError, Heard, News, ToolCall, Wanted, call_id, moment};

const NAME: &str = "copilot";

/// Every tool is told of: what is new may write too.
pub const WANTED: &[Wanted] = &[
    wanted("sessionStart"),
    wanted("userPromptSubmitted"),
    wanted("preToolUse"),
    wanted("postToolUse"),
    wanted("postToolUseFailure"),
    wanted("subagentStart"),
    wanted("subagentStop"),
    wanted("agentStop"),
    wanted("sessionEnd"),
];

const fn wanted(event: &'static str) -> Wanted {
    Wanted { event, matcher: None, timeout_seconds: 30 }
}

/// Tools that only read, only talk, or start what tells of itself.
const QUIET: &[&str] = &[
    "Agent",
    "Read",
    "fetch_copilot_cli_documentation",
    "glob",
    "grep",
    "list_agents",
    "list_bash",
    "read_agent",
    "read_bash",
    "rg",
    "session_store_sql",
    "skill",
    "sql",
    "stop_bash",
    "task",
    "view",
    "write_agent",
];

/// What Copilot CLI tells itself as if a person had said it, for instance that a command is over.
const NOTIFICATION: &str = "<system_notification>";

#[derive(Debug, Deserialize)]
struct WireGiven {
    hook_event_name: Option<String>,
    /// Of a subagent: its own.
    #[serde(rename = "sessionId", alias = "session_id")]
    session_id: String,
    #[serde(rename = "agentId", alias = "agent_id")]
    agent_id: Option<String>,
    #[serde(rename = "parentAgentId", alias = "parent_agent_id")]
    parent_agent_id: Option<String>,
    cwd: Option<PathBuf>,
    #[serde(rename = "transcriptPath", alias = "transcript_path")]
    transcript_path: Option<PathBuf>,
    timestamp: Option<Value>,
    prompt: Option<String>,
    #[serde(rename = "toolName", alias = "tool_name")]
    tool_name: Option<String>,
    #[serde(rename = "toolArgs", alias = "tool_input", default)]
    tool_args: Value,
    #[serde(rename = "toolResult", alias = "tool_result")]
    tool_result: Option<WireResult>,
}

#[derive(Debug, Deserialize)]
struct WireResult {
    #[serde(rename = "textResultForLlm", alias = "text_result_for_llm")]
    text: Option<String>,
}

pub fn hear(given: &[u8], event: Option<&str>) -> Result<Heard, HearError> {
    let given: WireGiven = serde_json::from_slice(given)
        .map_err(|source| HearError::NotUnderstood { agent: NAME, source })?;
    let lacks = |field| HearError::Lacks { agent: NAME, field };
    let event = given.hook_event_name.clone().or_else(|| event.map(str::to_owned));
    let event = event.ok_or_else(|| lacks("event"))?;
    let is_subagent = given.agent_id.is_some();
    let is_quiet = given.tool_name.as_deref().is_some_and(|tool| QUIET.contains(&tool));
    let news = match event.as_str() {
        "sessionStart" | "SessionStart" => News::SessionStart,
        // The one that follows tells the end of a subagent.
        "agentStop" | "Stop" if is_subagent => News::Nothing,
        "agentStop" | "Stop" => News::TurnEnd,
        "subagentStart" | "SubagentStart" => News::SubagentStart,
        "subagentStop" | "SubagentStop" => News::SubagentStop,
        "sessionEnd" | "SessionEnd" => News::SessionEnd,
        "userPromptSubmitted" | "UserPromptSubmit" => {
            let text = given.prompt.clone().ok_or_else(|| lacks("prompt"))?;
            let is_of_a_person = !is_subagent && !text.starts_with(NOTIFICATION);
            if is_of_a_person { News::Prompt { text } } else { News::Nothing }
        }
        _ if is_quiet => News::Nothing,
        "preToolUse" | "PreToolUse" => News::Before(call(&given).ok_or_else(|| lacks("toolName"))?),
        "postToolUse" | "PostToolUse" => {
            let call = call(&given).ok_or_else(|| lacks("toolName"))?;
            let outcome = if goes_on(&given) { Outcome::Background } else { Outcome::Done };
            News::After(call, outcome.into())
        }
        "postToolUseFailure" | "PostToolUseFailure" => {
            News::After(call(&given).ok_or_else(|| lacks("toolName"))?, Outcome::Failed.into())
        }
        _ => News::Nothing,
    };
    Ok(Heard {
        event,
        session: given.parent_agent_id.unwrap_or(given.session_id),
        subagent: given.agent_id,
        cwd: given.cwd,
        transcript: given.transcript_path,
        prompt: None,
        timestamp: given.timestamp.as_ref().and_then(moment),
        is_fork: false,
        forked_from: None,
        news,
    })
}

fn call(given: &WireGiven) -> Option<ToolCall> {
    let tool = given.tool_name.clone()?;
    let input = input_of(&given.tool_args);
    Some(ToolCall { id: call_id(&tool, &input), tool, input })
}

/// Earlier versions gave the arguments as JSON in a text; a patch is a text in its own right.
pub(super) fn input_of(arguments: &Value) -> Value {
    match arguments {
        Value::String(text) => serde_json::from_str(text)
            .ok()
            .filter(Value::is_object)
            .unwrap_or_else(|| arguments.clone()),
        other => other.clone(),
    }
}

/// Whether the command runs on. Only the words that the model gets tell of one that took too long.
fn goes_on(given: &WireGiven) -> bool {
    let text = given.tool_result.as_ref().and_then(|result| result.text.as_deref());
    given.tool_args["mode"] == "async" || text.is_some_and(says_it_goes_on)
}

/// What the model is told of a command that takes too long, or that its user sends away with a new prompt.
pub(super) fn says_it_goes_on(text: &str) -> bool {
    let is_of_command = text.starts_with("<command with shellId: ");
    is_of_command
        && (text.contains(" is still running after ") || text.contains(" moved to background by "))
}
