//! The server: turns tool calls into calls of `takeback serve`, and asks the user where a rewind needs their
//! permission.

mod questions;

use std::sync::Arc;

use rmcp::model::{
    CallToolRequestParams, CallToolResponse, CallToolResult, ClientResult, ContentBlock,
    ElicitationAction, Implementation, ListToolsResult, PaginatedRequestParams, ServerCapabilities,
    ServerConfig, ServerRequest,
};
use rmcp::service::RequestContext;
use rmcp::{ErrorData, RoleServer, ServerHandler};
use serde::Serialize;
use serde::de::DeserializeOwned;
use serde_json::{Value, json};
use takeback_answers::{
    CheckpointAnswer, DiffAnswer, LogAnswer, PreviewAnswer, Receipt, ServerInfo, ShowAnswer,
};

use crate::backend::{Backend, CallError, CallKind};
use crate::consent::{self, Elicitation, QuestionMatch, Questions, RewindPlan, Round};
use crate::outputs::questions::MOST_BYTES;
use crate::outputs::{Diff, FileLines, PointDetails, Points, Rewind, RewindOutcome, RewindReceipt};
use crate::text::{self, DiffText, Tense};
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
        "a rewind needs the user's permission, and this client cannot ask for it. Tell the user: they can \
         run `takeback rewind {point}` themselves, or allow rewinds with \"allowAgentRewind\": true in \
         their own Takeback settings. Nothing was changed"
    )]
    CannotAsk { point: String },
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

/// How often a question is asked again because the files changed before the answer.
const ROUNDS: usize = 3;

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

    async fn preview(&self, input: &inputs::Rewind) -> Result<PreviewAnswer, CallError> {
        self.read("checkpoint:preview", json!(input)).await
    }

    async fn preview_rewind(&self, input: &inputs::Rewind) -> Result<Reply, ToolError> {
        let preview = RewindReceipt::from(self.preview(input).await?.receipt);
        Ok(Reply::new(text::rewind_receipt(&preview, Tense::Would), &preview))
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

    async fn plan(&self, input: &inputs::Rewind) -> Result<RewindPlan, CallError> {
        let preview = self.preview(input).await?;
        let point = json!({"point": preview.receipt.point});
        let shown: ShowAnswer = self.read("point:show", point).await?;
        Ok(RewindPlan::new(&shown.point, preview))
    }

    /// Read each time: the user may change the setting while this runs.
    async fn is_allowed(&self) -> Result<bool, CallError> {
        let info: ServerInfo = self.read("server:info", json!({})).await?;
        Ok(info.allow_agent_rewind)
    }

    async fn rewind(
        &self,
        input: &inputs::Rewind,
        request: &CallToolRequestParams,
        context: &RequestContext<RoleServer>,
    ) -> Result<CallToolResponse, ToolError> {
        let plan = self.plan(input).await?;
        if text::does_nothing(&plan.preview) {
            return Ok(complete(nothing_to_do(plan.preview)));
        }
        if self.is_allowed().await? {
            return Ok(complete(self.take_back(input, &plan).await?));
        }
        match consent::elicitation(context) {
            Elicitation::Result => self.by_result(input, plan, request).await,
            Elicitation::Request => self.by_request(input, plan, context).await.map(complete),
            Elicitation::Unsupported => Err(ToolError::CannotAsk { point: plan.point }),
        }
    }

    async fn by_result(
        &self,
        input: &inputs::Rewind,
        mut plan: RewindPlan,
        request: &CallToolRequestParams,
    ) -> Result<CallToolResponse, ToolError> {
        let question = self.questions.take(request.request_state.as_deref(), &plan);
        let round = match consent::answer(request.input_responses.as_ref()) {
            None => Round::First,
            Some(ElicitationAction::Accept) => match question {
                QuestionMatch::Same => match self.take_back(input, &plan).await {
                    Err(error) if error.is_of_change() => {
                        plan = self.plan(input).await?;
                        Round::Repeat
                    }
                    done => return done.map(complete),
                },
                QuestionMatch::Changed => Round::Repeat,
                QuestionMatch::Unknown => Round::First,
            },
            Some(action) => return Ok(complete(not_done(&action, &plan))),
        };
        Ok(consent::input_required(&self.questions, input, &plan, round).into())
    }

    async fn by_request(
        &self,
        input: &inputs::Rewind,
        mut plan: RewindPlan,
        context: &RequestContext<RoleServer>,
    ) -> Result<Reply, ToolError> {
        let mut round = Round::First;
        for _ in 0..ROUNDS {
            let question = ServerRequest::ElicitRequest(consent::question(input, &plan, round));
            let waiting = context.ct.run_until_cancelled(context.peer.send_request(question));
            let Some(answer) = waiting.await else {
                return Ok(not_done(&ElicitationAction::Cancel, &plan));
            };
            match answer.map_err(ToolError::NotAsked)? {
                ClientResult::ElicitResult(result)
                    if result.action == ElicitationAction::Accept => {}
                ClientResult::ElicitResult(result) => {
                    return Ok(not_done(&result.action, &plan));
                }
                _ => return Err(ToolError::OtherAnswer),
            }
            match self.take_back(input, &plan).await {
                Err(error) if error.is_of_change() => {
                    (plan, round) = (self.plan(input).await?, Round::Repeat);
                }
                done => return done,
            }
        }
        Err(ToolError::KeepsChanging)
    }

    /// Applies the plan that the user agreed to, or nothing. Uses the point's id, since a name may mean
    /// another point by now.
    async fn take_back(
        &self,
        input: &inputs::Rewind,
        plan: &RewindPlan,
    ) -> Result<Reply, ToolError> {
        let inputs::Rewind { paths, exact, .. } = input;
        let RewindPlan { point, mark, .. } = plan;
        let params = json!({"point": point, "paths": paths, "exact": exact, "mark": mark});
        let receipt: Receipt = self.backend.call(CallKind::Change, "point:rewind", params).await?;
        let receipt = RewindReceipt::from(receipt);
        let verdict = if receipt.receipt.success {
            "Done and verified on disk."
        } else {
            "Done as far as possible."
        };
        let message = format!(
            "{verdict} Files you have read may be different now. The user can take this back with \
             `takeback undo`."
        );
        let text = format!("{}\n{message}", text::rewind_receipt(&receipt, Tense::Did));
        Ok(Reply::new(
            text,
            &Rewind { outcome: RewindOutcome::Done, message, receipt: Some(receipt) },
        ))
    }

    async fn call(
        &self,
        request: &CallToolRequestParams,
        context: &RequestContext<RoleServer>,
    ) -> Result<CallToolResponse, ToolError> {
        let reply = match request.name.as_ref() {
            tools::LIST_POINTS => self.list_points(arguments(request)?).await?,
            tools::SHOW_POINT => self.show_point(arguments(request)?).await?,
            tools::DIFF => self.diff(arguments(request)?).await?,
            tools::PREVIEW_REWIND => self.preview_rewind(&arguments(request)?).await?,
            tools::CHECKPOINT => self.checkpoint(arguments(request)?).await?,
            tools::BLAME => self.blame(arguments(request)?).await?,
            tools::WHY => self.why(arguments(request)?).await?,
            tools::HISTORY => self.history(arguments(request)?).await?,
            tools::STATS => self.stats(arguments(request)?).await?,
            tools::CAT => self.cat(arguments(request)?).await?,
            tools::BISECT => self.bisect(arguments(request)?).await?,
            tools::REWIND => return self.rewind(&arguments(request)?, request, context).await,
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

fn nothing_to_do(preview: Receipt) -> Reply {
    let receipt = RewindReceipt::from(preview);
    let message = "There is nothing to take back. Nothing was changed.".to_owned();
    let text = format!("{}\n{message}", text::rewind_receipt(&receipt, Tense::Would));
    let outcome = RewindOutcome::NothingToDo;
    Reply::new(text, &Rewind { outcome, message, receipt: Some(receipt) })
}

/// The user declined or did not answer. Agents without a screen cancel like this.
fn not_done(action: &ElicitationAction, plan: &RewindPlan) -> Reply {
    let (outcome, message) = match action {
        ElicitationAction::Cancel => (
            RewindOutcome::Cancelled,
            format!(
                "The question was not answered. Nothing was changed. The user can run `takeback rewind {}` \
                 themselves.",
                plan.point
            ),
        ),
        _ => (
            RewindOutcome::Declined,
            "The user declined. Nothing was changed. Do not try again unless they ask for it."
                .to_owned(),
        ),
    };
    Reply::new(message.clone(), &Rewind { outcome, message, receipt: None })
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
        if let Some(hint) = &fault.data.hint {
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
