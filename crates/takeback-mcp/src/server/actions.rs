//! The tools that change files: each is planned, asked about, and done as it was shown, or not at all.

use rmcp::RoleServer;
use rmcp::model::{
    CallToolRequestParams, CallToolResponse, ClientResult, ElicitationAction, ServerRequest,
};
use rmcp::service::RequestContext;
use serde_json::json;
use takeback_answers::{PreviewAnswer, Receipt, ServerInfo, ShowAnswer};

use super::{Reply, Server, ToolError, complete};
use crate::action::{Action, ActionPlan, Subject};
use crate::backend::{CallError, CallKind};
use crate::consent::{self, Elicitation, QuestionMatch, Round};
use crate::outputs::{Rewind, RewindOutcome, RewindReceipt};
use crate::text::{self, Tense};

/// How often a question is asked again because the files changed before the answer.
const ROUNDS: usize = 3;

/// The call of a tool.
#[derive(Clone, Copy)]
pub(super) struct ToolCall<'a> {
    pub(super) request: &'a CallToolRequestParams,
    pub(super) context: &'a RequestContext<RoleServer>,
}

impl Server {
    /// What the action would do.
    pub(super) async fn preview(&self, action: Action) -> Result<Reply, ToolError> {
        let (method, params) = action.preview();
        let preview: PreviewAnswer = self.read(method, params).await?;
        let preview = RewindReceipt::from(preview.receipt);
        Ok(Reply::new(text::rewind_receipt(&preview, Tense::Would), &preview))
    }

    /// Does what the agent asks for, if the user agrees.
    pub(super) async fn act(
        &self,
        action: Action,
        call: ToolCall<'_>,
    ) -> Result<CallToolResponse, ToolError> {
        let plan = self.plan(action).await?;
        if text::does_nothing(&plan.preview) {
            return Ok(complete(nothing_to_do(plan)));
        }
        if self.is_allowed().await? {
            return Ok(complete(self.carry_out(&plan).await?));
        }
        match consent::elicitation(call.context) {
            Elicitation::Result => self.by_result(plan, call.request).await,
            Elicitation::Request => self.by_request(plan, call.context).await.map(complete),
            Elicitation::Unsupported => Err(ToolError::CannotAsk { command: plan.command() }),
        }
    }

    /// Names become ids: `@` may mean another point by the time the answer comes.
    async fn plan(&self, mut action: Action) -> Result<ActionPlan, CallError> {
        if let Action::Revert(input) = &mut action {
            // A label may look like a range or like a call.
            let params = json!({"point": input.what});
            if let Ok(shown) = self.read::<ShowAnswer>("point:show", params).await {
                input.what = shown.point.id.to_string();
            }
        }
        let mut points = Vec::new();
        for name in action.point_names() {
            let shown: Result<ShowAnswer, _> =
                self.read("point:show", json!({"point": name})).await;
            match shown {
                Ok(shown) => points.push(shown.point),
                // It may be the id of a call.
                Err(CallError::Refused(_)) if matches!(action, Action::Revert(_)) => {
                    points.clear();
                    break;
                }
                Err(error) => return Err(error),
            }
        }
        action.set_points(&points);
        let (method, params) = action.preview();
        let preview: PreviewAnswer = self.read(method, params).await?;
        let subject = Subject::new(&points);
        Ok(ActionPlan { action, subject, preview: preview.receipt, mark: preview.mark })
    }

    /// Read each time: the user may change the setting while this runs.
    async fn is_allowed(&self) -> Result<bool, CallError> {
        let info: ServerInfo = self.read("server:info", json!({})).await?;
        Ok(info.allow_agent_rewind)
    }

    async fn by_result(
        &self,
        mut plan: ActionPlan,
        request: &CallToolRequestParams,
    ) -> Result<CallToolResponse, ToolError> {
        let question = self.questions.take(request.request_state.as_deref(), &plan);
        let round = match consent::answer(request.input_responses.as_ref()) {
            None => Round::First,
            Some(ElicitationAction::Accept) => match question {
                QuestionMatch::Same => match self.carry_out(&plan).await {
                    Err(error) if error.is_of_change() => {
                        plan = self.plan(plan.action).await?;
                        Round::Repeat
                    }
                    done => return done.map(complete),
                },
                QuestionMatch::Changed => Round::Repeat,
                QuestionMatch::Unknown => Round::First,
            },
            Some(answer) => return Ok(complete(not_done(&answer, &plan))),
        };
        Ok(consent::input_required(&self.questions, &plan, round).into())
    }

    async fn by_request(
        &self,
        mut plan: ActionPlan,
        context: &RequestContext<RoleServer>,
    ) -> Result<Reply, ToolError> {
        let mut round = Round::First;
        for _ in 0..ROUNDS {
            let question = ServerRequest::ElicitRequest(consent::question(&plan, round));
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
            match self.carry_out(&plan).await {
                Err(error) if error.is_of_change() => {
                    (plan, round) = (self.plan(plan.action).await?, Round::Repeat);
                }
                done => return done,
            }
        }
        Err(ToolError::KeepsChanging)
    }

    /// Applies the plan that the user agreed to, or nothing.
    async fn carry_out(&self, plan: &ActionPlan) -> Result<Reply, ToolError> {
        let (method, params) = plan.action.apply(&plan.mark);
        let receipt: Receipt = self.backend.call(CallKind::Change, method, params).await?;
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
}

fn nothing_to_do(plan: ActionPlan) -> Reply {
    let receipt = RewindReceipt::from(plan.preview);
    let message = match plan.action {
        Action::Rewind(_) | Action::Revert(_) => "There is nothing to take back.",
        Action::Restore(_) => "These files are as they were at that point.",
    };
    let message = format!("{message} Nothing was changed.");
    let text = format!("{}\n{message}", text::rewind_receipt(&receipt, Tense::Would));
    let outcome = RewindOutcome::NothingToDo;
    Reply::new(text, &Rewind { outcome, message, receipt: Some(receipt) })
}

/// The user declined or did not answer. Agents without a screen cancel like this.
fn not_done(answer: &ElicitationAction, plan: &ActionPlan) -> Reply {
    let (outcome, message) = match answer {
        ElicitationAction::Cancel => (
            RewindOutcome::Cancelled,
            format!(
                "The question was not answered. Nothing was changed. The user can run `{}` themselves.",
                plan.command()
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
