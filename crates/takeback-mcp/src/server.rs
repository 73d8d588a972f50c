//! The server: tool calls in, calls of `takeback serve` out, and the user asked in between where a
//! rewind needs their leave.

use std::sync::Arc;

use rmcp::model::{
    CallToolRequestParams, CallToolResponse, CallToolResult, ClientResult, ContentBlock,
    ElicitationAction, Implementation, ListToolsResult, PaginatedRequestParams, ServerCapabilities,
    ServerConfig, ServerRequest,
};
use rmcp::service::RequestContext;
use rmcp::{ErrorData, RoleServer, ServerHandler};
use serde::de::DeserializeOwned;
use serde_json::{Value, json};

use crate::backend::{Backend, CallError, Kind};
use crate::consent::{self, AnswerTo, Asked, Planned, Questions, Way};
use crate::outputs::{cut, for_model, only_lines, without_entries};
use crate::text::{self, DiffText, Tense};
use crate::{inputs, tools};

pub struct Server {
    backend: Arc<Backend>,
    questions: Questions,
}

/// Why a tool has no answer. Told to the model, which can do something about most of it.
#[derive(Debug, thiserror::Error)]
enum ToolError {
    #[error("the arguments do not fit: {0}")]
    Arguments(serde_json::Error),
    #[error(transparent)]
    Call(#[from] CallError),
    #[error(
        "a rewind needs the user's leave, and this client cannot ask for it. Tell the user: they can run \
         `takeback rewind {point}` themselves, or allow it for good with \"allowAgentRewind\": true in \
         their own Takeback settings. Nothing was changed"
    )]
    CannotAsk { point: String },
    #[error("the files changed each time the user was asked. Nothing was changed; try again later")]
    KeepsChanging,
    #[error("the user could not be asked: {0}. Nothing was changed")]
    NotAsked(rmcp::ServiceError),
    #[error("the client answered something else than was asked. Nothing was changed")]
    OtherAnswer,
}

impl ToolError {
    /// Whether nothing was done because the plan was another by then.
    fn is_of_change(&self) -> bool {
        matches!(self, Self::Call(CallError::Refused(fault)) if fault.kind() == "changed")
    }
}

/// What a tool tells.
struct Told {
    text: String,
    value: Value,
}

/// Of patches in one answer.
const PATCH_BYTES: usize = 30_000;

/// How often a question is put again because the files changed before the answer.
const ROUNDS: usize = 3;

impl Server {
    #[must_use]
    pub fn new(backend: Arc<Backend>) -> Self {
        Self { backend, questions: Questions::default() }
    }

    async fn look(&self, method: &str, params: Value) -> Result<Value, CallError> {
        self.backend.call(Kind::Looks, method, params).await
    }

    async fn list_points(&self, input: inputs::ListPoints) -> Result<Told, ToolError> {
        let limit = input.limit.unwrap_or(inputs::POINTS_DEFAULT).clamp(1, inputs::POINTS_MOST);
        let params = json!({"limit": limit, "session": input.session_id});
        let points = match self.look("point:list", params).await {
            Ok(points) => points,
            Err(CallError::Refused(fault)) if fault.kind() == "noStore" => {
                let hint = "Nothing has been recorded in this workspace yet. `checkpoint` makes the \
                            first point; `takeback init` (run by the user) records every prompt.";
                let value = json!({"points": [], "hint": hint});
                return Ok(Told { text: hint.to_owned(), value });
            }
            Err(error) => return Err(error.into()),
        };
        let text = text::points(points.as_array().map_or(&[], Vec::as_slice));
        Ok(Told { text, value: json!({"points": points}) })
    }

    async fn show_point(&self, input: inputs::ShowPoint) -> Result<Told, ToolError> {
        let shown = self.look("point:show", json!({"point": input.point})).await?;
        let point = cut(without_entries(shown));
        Ok(Told { text: text::one_point(&point), value: point })
    }

    async fn diff(&self, input: inputs::Diff) -> Result<Told, ToolError> {
        let inputs::Diff { from, to, paths, stat } = input;
        let params = json!({"from": from, "to": to, "paths": paths, "patchBytes": if stat { None } else { Some(PATCH_BYTES) }});
        let files = only_lines(self.look("checkpoint:diff", params).await?);
        let DiffText { text, note } =
            text::diff(files.as_array().map_or(&[], Vec::as_slice), !stat);
        let mut value = cut(json!({"files": files}));
        if let Some(note) = note {
            value["note"] = json!(note);
        }
        Ok(Told { text, value })
    }

    async fn preview(&self, input: &inputs::Rewind) -> Result<Value, CallError> {
        let inputs::Rewind { point, paths, exact } = input;
        let params = json!({"point": point, "paths": paths, "exact": exact});
        self.look("checkpoint:preview", params).await
    }

    async fn preview_rewind(&self, input: &inputs::Rewind) -> Result<Told, ToolError> {
        let preview = for_model(self.preview(input).await?);
        Ok(Told { text: text::receipt(&preview, Tense::Would), value: preview })
    }

    async fn checkpoint(&self, input: inputs::Checkpoint) -> Result<Told, ToolError> {
        let params = json!({"label": input.label});
        let made = self.backend.call(Kind::Changes, "checkpoint:create", params).await?;
        let id = made["id"].as_str().unwrap_or_default();
        let text = match made["notCaptured"].as_u64() {
            Some(lacking) if lacking > 0 => {
                format!(
                    "Made point {id}. {lacking} files could not be kept (show_point names them)."
                )
            }
            _ => format!("Made point {id}."),
        };
        Ok(Told { text, value: made })
    }

    async fn plan(&self, input: &inputs::Rewind) -> Result<Planned, CallError> {
        let preview = self.preview(input).await?;
        let about = self.look("point:show", json!({"point": preview["point"]})).await?;
        Ok(Planned::new(&about, preview))
    }

    /// Asked anew each time: the user may change their mind while this runs.
    async fn is_allowed(&self) -> Result<bool, CallError> {
        let info = self.look("server:info", json!({})).await?;
        Ok(info["allowAgentRewind"] == true)
    }

    async fn rewind(
        &self,
        input: &inputs::Rewind,
        request: &CallToolRequestParams,
        context: &RequestContext<RoleServer>,
    ) -> Result<CallToolResponse, ToolError> {
        let planned = self.plan(input).await?;
        if text::does_nothing(&planned.preview) {
            return Ok(complete(nothing_to_do(planned.preview)));
        }
        if self.is_allowed().await? {
            return Ok(complete(self.take_back(input, &planned).await?));
        }
        match consent::way(context) {
            Way::Result => self.by_result(input, planned, request).await,
            Way::Request => self.by_request(input, planned, context).await.map(complete),
            Way::None => Err(ToolError::CannotAsk { point: planned.point }),
        }
    }

    async fn by_result(
        &self,
        input: &inputs::Rewind,
        mut planned: Planned,
        request: &CallToolRequestParams,
    ) -> Result<CallToolResponse, ToolError> {
        let answer_to = self.questions.take(request.request_state.as_deref(), &planned);
        let asked = match consent::answer(request.input_responses.as_ref()) {
            None => Asked::First,
            Some(ElicitationAction::Accept) => match answer_to {
                AnswerTo::This => match self.take_back(input, &planned).await {
                    Err(error) if error.is_of_change() => {
                        planned = self.plan(input).await?;
                        Asked::Again
                    }
                    done => return done.map(complete),
                },
                AnswerTo::Another => Asked::Again,
                AnswerTo::Nothing => Asked::First,
            },
            Some(action) => return Ok(complete(not_done(&action, &planned))),
        };
        Ok(consent::input_required(&self.questions, input, &planned, asked).into())
    }

    async fn by_request(
        &self,
        input: &inputs::Rewind,
        mut planned: Planned,
        context: &RequestContext<RoleServer>,
    ) -> Result<Told, ToolError> {
        let mut asked = Asked::First;
        for _ in 0..ROUNDS {
            let question = ServerRequest::ElicitRequest(consent::question(input, &planned, asked));
            let waiting = context.ct.run_until_cancelled(context.peer.send_request(question));
            let Some(answer) = waiting.await else {
                return Ok(not_done(&ElicitationAction::Cancel, &planned));
            };
            match answer.map_err(ToolError::NotAsked)? {
                ClientResult::ElicitResult(result)
                    if result.action == ElicitationAction::Accept => {}
                ClientResult::ElicitResult(result) => {
                    return Ok(not_done(&result.action, &planned));
                }
                _ => return Err(ToolError::OtherAnswer),
            }
            match self.take_back(input, &planned).await {
                Err(error) if error.is_of_change() => {
                    (planned, asked) = (self.plan(input).await?, Asked::Again);
                }
                done => return done,
            }
        }
        Err(ToolError::KeepsChanging)
    }

    /// What was planned, to the very point, whatever its name means by now; or nothing.
    async fn take_back(
        &self,
        input: &inputs::Rewind,
        planned: &Planned,
    ) -> Result<Told, ToolError> {
        let inputs::Rewind { paths, exact, .. } = input;
        let Planned { point, mark, .. } = planned;
        let params = json!({"point": point, "paths": paths, "exact": exact, "mark": mark});
        let receipt = self.backend.call(Kind::Changes, "point:rewind", params).await?;
        let receipt = for_model(receipt);
        let verdict = if receipt["success"] == true {
            "Done and checked on disk."
        } else {
            "Done as far as possible."
        };
        let message = format!(
            "{verdict} Files you have read may be different now. The user can take this back with \
             `takeback undo`."
        );
        let text = format!("{}\n{message}", text::receipt(&receipt, Tense::Did));
        Ok(Told { text, value: json!({"outcome": "done", "message": message, "receipt": receipt}) })
    }

    async fn call(
        &self,
        request: &CallToolRequestParams,
        context: &RequestContext<RoleServer>,
    ) -> Result<CallToolResponse, ToolError> {
        let told = match request.name.as_ref() {
            tools::LIST_POINTS => self.list_points(arguments(request)?).await?,
            tools::SHOW_POINT => self.show_point(arguments(request)?).await?,
            tools::DIFF => self.diff(arguments(request)?).await?,
            tools::PREVIEW_REWIND => self.preview_rewind(&arguments(request)?).await?,
            tools::CHECKPOINT => self.checkpoint(arguments(request)?).await?,
            tools::REWIND => return self.rewind(&arguments(request)?, request, context).await,
            other => unreachable!("{other} was looked for among the tools"),
        };
        Ok(complete(told))
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
        Ok(ListToolsResult::with_all_items(tools::all()))
    }

    async fn call_tool(
        &self,
        request: CallToolRequestParams,
        context: RequestContext<RoleServer>,
    ) -> Result<CallToolResponse, ErrorData> {
        if !tools::all().iter().any(|tool| tool.name == request.name) {
            let said = format!("there is no tool {}", text::one_line(&request.name, 80));
            return Err(ErrorData::invalid_params(said, None));
        }
        Ok(self.call(&request, &context).await.unwrap_or_else(|error| failed(&error).into()))
    }
}

fn arguments<T: DeserializeOwned>(request: &CallToolRequestParams) -> Result<T, ToolError> {
    let given = request.arguments.clone().unwrap_or_default();
    serde_json::from_value(Value::Object(given)).map_err(ToolError::Arguments)
}

fn complete(told: Told) -> CallToolResponse {
    let mut result = CallToolResult::success(vec![ContentBlock::text(told.text)]);
    result.structured_content = Some(told.value);
    result.into()
}

fn nothing_to_do(preview: Value) -> Told {
    let preview = for_model(preview);
    let message = "There is nothing to take back. Nothing was changed.";
    let text = format!("{}\n{message}", text::receipt(&preview, Tense::Would));
    let value = json!({"outcome": "nothingToDo", "message": message, "receipt": preview});
    Told { text, value }
}

/// Somebody said no, or nobody said anything: an agent without a screen answers like that.
fn not_done(action: &ElicitationAction, planned: &Planned) -> Told {
    let (outcome, message) = match action {
        ElicitationAction::Cancel => (
            "cancelled",
            format!(
                "The question was not answered. Nothing was changed. The user can run `takeback rewind {}` \
                 themselves.",
                planned.point
            ),
        ),
        _ => (
            "declined",
            "The user declined. Nothing was changed. Do not try again unless they ask for it."
                .to_owned(),
        ),
    };
    Told { value: json!({"outcome": outcome, "message": message}), text: message }
}

/// What went wrong, with what can be done about it.
fn failed(error: &ToolError) -> CallToolResult {
    let mut said = error.to_string();
    if let Some(first) = said.get(..1) {
        said = format!("{}{}", first.to_uppercase(), &said[1..]);
    }
    if !said.ends_with('.') {
        said.push('.');
    }
    if let ToolError::Call(CallError::Refused(fault)) = error {
        if let Some(hint) = fault.hint() {
            said = format!("{said} {hint}");
        }
        let next = match fault.kind() {
            "unknownPoint" | "ambiguousName" => "`list_points` shows the points with their ids.",
            "noStore" => "Nothing has been recorded here yet; `checkpoint` makes the first point.",
            "locked" => "Another Takeback command is at work; try again in a moment.",
            _ => "",
        };
        if !next.is_empty() {
            said = format!("{said} {next}");
        }
    }
    if matches!(error, ToolError::Call(CallError::Ended { kind: Kind::Changes, .. })) {
        said +=
            " Whether it was done is not known; `list_points` and `diff` show how things stand.";
    }
    CallToolResult::error(vec![ContentBlock::text(said)])
}
