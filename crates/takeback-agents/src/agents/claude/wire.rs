//! The JSON that `claude` reads and writes, one object per line. No other file knows it.
//!
//! Input is parsed into [`WireOut`]: unknown message types are [`WireOut::Other`], unneeded fields
//! are skipped.

use serde::{Deserialize, Serialize};
use serde_json::Value;

/// A line from the program.
#[derive(Debug, Clone, PartialEq, Deserialize)]
#[serde(tag = "type", rename_all = "snake_case")]
pub(super) enum WireOut {
    System(WireSystem),
    User(WireMessage),
    Assistant(WireMessage),
    StreamEvent {
        event: WireEvent,
        #[serde(default)]
        parent_tool_use_id: Option<String>,
    },
    Result(WireResult),
    /// A request that the program waits for.
    ControlRequest {
        request_id: String,
        request: Value,
    },
    ControlResponse {
        response: WireAnswer,
    },
    /// The program no longer waits for that answer.
    ControlCancelRequest {
        request_id: String,
    },
    /// The state of a message that was sent to it.
    CommandLifecycle {
        command_uuid: String,
        state: String,
        #[serde(default)]
        session_id: Option<String>,
    },
    #[serde(other)]
    Other,
}

#[derive(Debug, Clone, PartialEq, Deserialize)]
pub(super) struct WireSystem {
    pub(super) subtype: String,
    #[serde(default)]
    pub(super) session_id: Option<String>,
    #[serde(default)]
    pub(super) model: Option<String>,
    /// Of a background task: the call that started it, and its state.
    #[serde(default)]
    pub(super) tool_use_id: Option<String>,
    #[serde(default)]
    pub(super) status: Option<String>,
    /// Everything that runs in the background.
    #[serde(default)]
    pub(super) tasks: Vec<WireTask>,
}

#[derive(Debug, Clone, PartialEq, Eq, Deserialize)]
pub(super) struct WireTask {
    pub(super) task_id: String,
    #[serde(default)]
    pub(super) task_type: String,
}

/// A message of the conversation, from either side.
#[derive(Debug, Clone, PartialEq, Deserialize)]
pub(super) struct WireMessage {
    pub(super) message: WireBody,
    #[serde(default)]
    pub(super) uuid: Option<String>,
    #[serde(default)]
    pub(super) session_id: Option<String>,
    /// The call of its subagent.
    #[serde(default)]
    pub(super) parent_tool_use_id: Option<String>,
    #[serde(default, rename = "isReplay")]
    pub(super) is_replay: bool,
}

#[derive(Debug, Clone, PartialEq, Deserialize)]
pub(super) struct WireBody {
    #[serde(default)]
    pub(super) id: Option<String>,
    /// Of an answer: the model.
    #[serde(default)]
    pub(super) model: Option<String>,
    #[serde(default)]
    pub(super) content: WireContent,
}

#[derive(Debug, Clone, PartialEq, Deserialize)]
#[serde(untagged)]
pub(super) enum WireContent {
    Text(String),
    Blocks(Vec<WireBlock>),
}

impl Default for WireContent {
    fn default() -> Self {
        Self::Blocks(Vec::new())
    }
}

#[derive(Debug, Clone, PartialEq, Deserialize)]
#[serde(tag = "type", rename_all = "snake_case")]
pub(super) enum WireBlock {
    Text {
        text: String,
    },
    ToolUse {
        id: String,
        name: String,
        #[serde(default)]
        input: Value,
    },
    ToolResult {
        tool_use_id: String,
        #[serde(default)]
        content: Value,
        #[serde(default)]
        is_error: bool,
    },
    #[serde(other)]
    Other,
}

/// A piece of a message while the model writes it.
#[derive(Debug, Clone, PartialEq, Deserialize)]
#[serde(tag = "type", rename_all = "snake_case")]
pub(super) enum WireEvent {
    MessageStart {
        message: WireBody,
    },
    ContentBlockDelta {
        delta: WireDelta,
    },
    ContentBlockStop {},
    #[serde(other)]
    Other,
}

#[derive(Debug, Clone, PartialEq, Deserialize)]
#[serde(tag = "type", rename_all = "snake_case")]
pub(super) enum WireDelta {
    TextDelta {
        text: String,
    },
    #[serde(other)]
    Other,
}

/// The end of a turn.
#[derive(Debug, Clone, PartialEq, Deserialize)]
pub(super) struct WireResult {
    pub(super) subtype: String,
    #[serde(default)]
    pub(super) is_error: bool,
    #[serde(default)]
    pub(super) result: Option<String>,
    #[serde(default)]
    pub(super) errors: Vec<String>,
    #[serde(default)]
    pub(super) terminal_reason: Option<String>,
}

/// The answer to a request of the driver; also an echo of the driver's answers.
#[derive(Debug, Clone, PartialEq, Deserialize)]
#[serde(tag = "subtype", rename_all = "snake_case")]
pub(super) enum WireAnswer {
    Success {
        request_id: String,
        #[serde(default)]
        response: Value,
    },
    Error {
        request_id: String,
        #[serde(default)]
        error: String,
    },
}

/// The body of a [`WireOut::ControlRequest`].
#[derive(Debug, Clone, PartialEq, Deserialize)]
#[serde(tag = "subtype", rename_all = "snake_case")]
pub(super) enum WireControlRequest {
    HookCallback {
        input: WireHook,
    },
    CanUseTool {
        tool_name: String,
        input: Value,
        tool_use_id: String,
        #[serde(default)]
        description: Option<String>,
    },
}

/// The input of a hook.
#[derive(Debug, Clone, PartialEq, Deserialize)]
#[serde(tag = "hook_event_name")]
pub(super) enum WireHook {
    UserPromptSubmit {
        #[serde(default)]
        prompt: String,
        #[serde(default)]
        session_id: Option<String>,
    },
    PreToolUse(WireCall),
    PostToolUse {
        #[serde(flatten)]
        call: WireCall,
        #[serde(default)]
        tool_response: Value,
    },
    PostToolUseFailure {
        #[serde(flatten)]
        call: WireCall,
        #[serde(default)]
        error: String,
    },
    SubagentStart {
        agent_id: String,
    },
    SubagentStop {
        agent_id: String,
    },
    Stop {},
    #[serde(other)]
    Other,
}

#[derive(Debug, Clone, PartialEq, Deserialize)]
pub(super) struct WireCall {
    pub(super) tool_name: String,
    #[serde(default)]
    pub(super) tool_input: Value,
    pub(super) tool_use_id: String,
    /// The subagent that makes the call.
    #[serde(default)]
    pub(super) agent_id: Option<String>,
}

/// The answer of `rewind_files`.
#[derive(Debug, Clone, PartialEq, Eq, Deserialize)]
#[serde(rename_all = "camelCase")]
pub(super) struct WireRewindAnswer {
    pub(super) can_rewind: bool,
    #[serde(default)]
    pub(super) error: Option<String>,
    #[serde(default)]
    pub(super) files_changed: Vec<std::path::PathBuf>,
}

/// A line to the program.
#[derive(Debug, Clone, PartialEq, Serialize)]
#[serde(tag = "type", rename_all = "snake_case")]
pub(super) enum WireIn {
    User {
        uuid: String,
        message: WirePrompt,
        parent_tool_use_id: Option<String>,
        session_id: String,
    },
    ControlRequest {
        request_id: String,
        request: WireRequest,
    },
    ControlResponse {
        response: WireReply,
    },
}

impl WireIn {
    pub(super) fn prompt(uuid: &str, text: &str) -> Self {
        let content = vec![WireText { kind: "text", text: text.to_owned() }];
        Self::User {
            uuid: uuid.to_owned(),
            message: WirePrompt { role: "user", content },
            parent_tool_use_id: None,
            session_id: String::new(),
        }
    }

    pub(super) fn request(id: &str, request: WireRequest) -> Self {
        Self::ControlRequest { request_id: id.to_owned(), request }
    }

    pub(super) fn reply(id: &str, response: WireReplyBody) -> Self {
        Self::ControlResponse {
            response: WireReply::Success { request_id: id.to_owned(), response },
        }
    }

    /// Answers a request that cannot be handled.
    pub(super) fn error_reply(id: &str, error: &str) -> Self {
        let (request_id, error) = (id.to_owned(), error.to_owned());
        Self::ControlResponse { response: WireReply::Error { request_id, error } }
    }
}

#[derive(Debug, Clone, PartialEq, Serialize)]
pub(super) struct WirePrompt {
    role: &'static str,
    content: Vec<WireText>,
}

#[derive(Debug, Clone, PartialEq, Serialize)]
struct WireText {
    #[serde(rename = "type")]
    kind: &'static str,
    text: String,
}

#[derive(Debug, Clone, PartialEq, Serialize)]
#[serde(tag = "subtype", rename_all = "snake_case")]
pub(super) enum WireRequest {
    Initialize { hooks: serde_json::Map<String, Value> },
    Interrupt,
    StopTask { task_id: String },
    RewindFiles { user_message_id: String, dry_run: bool },
}

impl WireRequest {
    /// Registers a hook for each of `events` and every tool. The program waits for their answers.
    pub(super) fn initialize(events: &[&str]) -> Self {
        let hooks = events.iter().map(|event| {
            let hook = serde_json::json!([{ "hookCallbackIds": [event], "timeout": HOOK_SECONDS }]);
            ((*event).to_owned(), hook)
        });
        Self::Initialize { hooks: hooks.collect() }
    }
}

/// How long the program waits for a hook: the first scan of a large folder is slow.
const HOOK_SECONDS: u32 = 600;

#[derive(Debug, Clone, PartialEq, Serialize)]
#[serde(tag = "subtype", rename_all = "snake_case")]
pub(super) enum WireReply {
    Success { request_id: String, response: WireReplyBody },
    Error { request_id: String, error: String },
}

#[derive(Debug, Clone, PartialEq, Serialize)]
#[serde(untagged)]
pub(super) enum WireReplyBody {
    /// The empty answer of a hook.
    Nothing {},
    Permission(WirePermission),
}

#[derive(Debug, Clone, PartialEq, Serialize)]
#[serde(tag = "behavior", rename_all = "snake_case")]
pub(super) enum WirePermission {
    Allow {
        #[serde(rename = "updatedInput")]
        updated_input: Value,
    },
    Deny {
        message: String,
    },
}

#[cfg(test)]
mod tests;
