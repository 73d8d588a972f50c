//! The server: turns tool calls into calls of `takeback serve`.

mod actions;
mod questions;

use std::sync::Arc;

use rmcp::model::{
    CallToolRequestParams, CallToolResponse, CallToolResult, ContentBlock, Implementation,
    ListToolsResult, PaginatedRequestParams, ServerCapabilities, ServerConfig,
};
use rmcp::service::RequestContext;
use rmcp::{ErrorData, RoleServer, ServerHandler};
use serde::Serialize;
use serde::de::DeserializeOwned;
use serde_json::{Value, json};
use takeback_answers::{CheckpointAnswer, DiffAnswer, LogAnswer, ShowAnswer};

use self::actions::ToolCall;
use crate::action::Action;
use crate::backend::{Backend, CallError, CallKind};
use crate::consent::Questions;
use crate::outputs::questions::MOST_BYTES;
use crate::outputs::{Diff, FileLines, PointDetails, Points};
use crate::text::{self, DiffText};
use crate::{inputs, tools};

/// The MCP server.
pub struct Server {
    backend: Arc<Backend>,
    commands: Commands,
    questions: Questions,
}

/// Whether the model may run commands, by the tool `bisect`.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Commands {
    /// The tool is offered.
    Allowed,
    /// There is no such tool.
    Refused,
}

/// Why a tool failed. The model reads it and can often react to it.
#[derive(Debug, thiserror::Error)]
enum ToolError {
    #[error("the arguments do not fit: {0}")]
    Arguments(serde_json::Error),
    #[error(transparent)]
    Call(#[from] CallError),
    #[error(
        "this needs the user's permission, and this client cannot ask for it. Tell the user: they can \
         run `{command}` themselves, or allow it with \"allowAgentRewind\": true in \
         their own Takeback settings. Nothing was changed"
    )]
    CannotAsk { command: String },
    #[error("the files changed each time the user was asked. Nothing was changed; try again later")]
    KeepsChanging,
    #[error("the user could not be asked: {0}. Nothing was changed")]
    NotAsked(rmcp::ServiceError),
    #[error("the client sent an answer of another kind. Nothing was changed")]
    OtherAnswer,
}

impl ToolError {
    /// Whether nothing was done because the plan had changed.
    fn is_of_change(&self) -> bool {
        matches!(self, Self::Call(CallError::Refused(fault)) if fault.data.kind == "changed")
    }
}

/// What a tool answers, as text and as JSON.
struct Reply {
    text: String,
    value: Value,
}

impl Reply {
    fn new(text: String, output: &impl Serialize) -> Self {
        Self { text, value: serde_json::to_value(output).expect("plain data") }
    }
}

const NO_BISECT: &str = "bisect runs a command, and this server may not. The user can run \
    `takeback bisect -- COMMAND` themselves, or start the server with `takeback mcp --allow-bisect`";

impl Server {
    /// A server that calls `takeback` through `backend`.
    #[must_use]
    pub fn new(backend: Arc<Backend>, commands: Commands) -> Self {
        Self { backend, commands, questions: Questions::default() }
    }

    async fn read<T: DeserializeOwned>(&self, method: &str, params: Value) -> Result<T, CallError> {
        self.backend.call(CallKind::Read, method, params).await
    }

    async fn list_points(&self, input: inputs::ListPoints) -> Result<Reply, ToolError> {
        let params = json!({
            "limit": input.limit(), "session": input.session_id, "paths": input.paths, "by": input.by,
            "since": input.since, "until": input.until, "grep": input.grep, "text": input.text,
            "tool": input.tool, "ops": input.ops,
        });
        let (points, hint): (LogAnswer, _) = match self.read("point:list", params).await {
            Ok(points) => (points, None),
            Err(CallError::Refused(fault)) if fault.data.kind == "noStore" => {
                let hint = "Nothing has been recorded in this workspace yet. `checkpoint` makes the \
                            first point; `takeback init` (run by the user) records every prompt.";
                (Vec::new(), Some(hint.to_owned()))
            }
            Err(error) => return Err(error.into()),
        };
        let text = hint.clone().unwrap_or_else(|| text::points(&points));
        Ok(Reply::new(text, &Points { points, hint }))
    }

    async fn show_point(&self, input: inputs::ShowPoint) -> Result<Reply, ToolError> {
        let shown: ShowAnswer = self.read("point:show", json!(input)).await?;
        let details = PointDetails::from(shown);
        Ok(Reply::new(text::point_details(&details), &details))
    }

    async fn diff(&self, input: inputs::Diff) -> Result<Reply, ToolError> {
        let inputs::Diff { from, to, paths, stat, by } = input;
        let most = (!stat).then_some(MOST_BYTES);
        let params = json!({"from": from, "to": to, "paths": paths, "patchBytes": most, "by": by});
        let files: DiffAnswer = self.read("checkpoint:diff", params).await?;
        let files: Vec<FileLines> = files.into_iter().map(Into::into).collect();
        let DiffText { text, note } = text::diff(&files, !stat);
        Ok(Reply::new(text, &Diff::new(files, note)))
    }

    async fn checkpoint(&self, input: inputs::Checkpoint) -> Result<Reply, ToolError> {
        let made = self.backend.call(CallKind::Change, "checkpoint:create", json!(input));
        let made: CheckpointAnswer = made.await?;
        let mut text = format!("Made point {}.", made.id);
        if made.not_captured > 0 {
            let lacking = made.not_captured;
            text += &format!(" {lacking} files could not be saved (show_point names them).");
        }
        Ok(Reply::new(text, &made))
    }

    async fn call(
        &self,
        request: &CallToolRequestParams,
        context: &RequestContext<RoleServer>,
    ) -> Result<CallToolResponse, ToolError> {
        let call = ToolCall { request, context };
        let reply = match request.name.as_ref() {
            tools::LIST_POINTS => self.list_points(arguments(request)?).await?,
            tools::SHOW_POINT => self.show_point(arguments(request)?).await?,
            tools::DIFF => self.diff(arguments(request)?).await?,
            tools::PREVIEW_REWIND => self.preview(Action::Rewind(arguments(request)?)).await?,
            tools::PREVIEW_REVERT => self.preview(Action::Revert(arguments(request)?)).await?,
            tools::CHECKPOINT => self.checkpoint(arguments(request)?).await?,
            tools::BLAME => self.blame(arguments(request)?).await?,
            tools::WHY => self.why(arguments(request)?).await?,
            tools::HISTORY => self.history(arguments(request)?).await?,
            tools::STATS => self.stats(arguments(request)?).await?,
            tools::CAT => self.cat(arguments(request)?).await?,
            tools::BISECT => self.bisect(arguments(request)?).await?,
            tools::REWIND => return self.act(Action::Rewind(arguments(request)?), call).await,
            tools::REVERT => return self.act(Action::Revert(arguments(request)?), call).await,
            tools::RESTORE => return self.act(Action::Restore(arguments(request)?), call).await,
            other => unreachable!("{other} was looked for among the tools"),
        };
        Ok(complete(reply))
    }
}

impl ServerHandler for Server {
    fn get_info(&self) -> ServerConfig {
        let about = Implementation::new("takeback", env!("CARGO_PKG_VERSION"));
        ServerConfig::new(ServerCapabilities::builder().enable_tools().build())
            .with_server_info(about)
            .with_instructions(tools::INSTRUCTIONS)
    }

    async fn list_tools(
        &self,
        _: Option<PaginatedRequestParams>,
        _: RequestContext<RoleServer>,
    ) -> Result<ListToolsResult, ErrorData> {
        Ok(ListToolsResult::with_all_items(tools::offered(self.commands)))
    }

    async fn call_tool(
        &self,
        request: CallToolRequestParams,
        context: RequestContext<RoleServer>,
    ) -> Result<CallToolResponse, ErrorData> {
        if !tools::offered(self.commands).iter().any(|tool| tool.name == request.name) {
            let sentences = match request.name.as_ref() {
                tools::BISECT => NO_BISECT.to_owned(),
                name => format!("there is no tool {}", text::one_line(name, 80)),
            };
            return Err(ErrorData::invalid_params(sentences, None));
        }
        Ok(self.call(&request, &context).await.unwrap_or_else(|error| failed(&error).into()))
    }
}

fn arguments<T: DeserializeOwned>(request: &CallToolRequestParams) -> Result<T, ToolError> {
    let given = request.arguments.clone().unwrap_or_default();
    serde_json::from_value(Value::Object(given)).map_err(ToolError::Arguments)
}

fn complete(reply: Reply) -> CallToolResponse {
    let mut result = CallToolResult::success(vec![ContentBlock::text(reply.text)]);
    result.structured_content = Some(reply.value);
    result.into()
}

/// The error with what to do about it.
fn failed(error: &ToolError) -> CallToolResult {
    let mut sentences = error.to_string();
    let kind = match error {
        ToolError::Call(CallError::Refused(fault)) => fault.data.kind.as_str(),
        _ => "",
    };
    // These may begin with a path or another word of the model.
    let quotes = matches!(kind, "unknownPath" | "notText" | "invalidParams");
    if let Some(first) = sentences.get(..1).filter(|_| !quotes) {
        sentences = format!("{}{}", first.to_uppercase(), &sentences[1..]);
    }
    if !sentences.ends_with('.') {
        sentences.push('.');
    }
    if let ToolError::Call(CallError::Refused(fault)) = error {
        // A hint about sessions names a command's options; `list_points` is the model's way.
        let hint = fault.data.hint.as_ref().filter(|_| kind != "unknownSession");
        if let Some(hint) = hint {
            sentences = format!("{sentences} {hint}");
        }
        let next = match fault.data.kind.as_str() {
            "unknownPoint" | "ambiguousName" => "`list_points` shows the points with their ids.",
            "unknownSession" => "`list_points` names the sessions.",
            "unknownPath" => {
                "`history` lists the points of a file; paths are relative to the workspace."
            }
            "noStore" => "Nothing has been recorded here yet; `checkpoint` makes the first point.",
            "locked" => "Another Takeback command is at work; try again in a moment.",
            _ => "",
        };
        if !next.is_empty() {
            sentences = format!("{sentences} {next}");
        }
    }
    if matches!(error, ToolError::Call(CallError::Ended { kind: CallKind::Change, .. })) {
        sentences +=
            " Whether it was done is not known; `list_points` and `diff` show the current state.";
    }
    CallToolResult::error(vec![ContentBlock::text(sentences)])
}
