//! Restores a point in a session: files first, then the conversation.
//!
//! [`restore`] shows the order. Files go through Takeback's own rewind, inside which the agent restores
//! its own copies; a conversation is cut only if all files were restored.

use serde_json::Value;
use takeback_agents::{self as agents, ChatAgent, NativeFilesError, NativeFilesResult};
use takeback_core::Workspace;
use takeback_core::rewind::Note;
use takeback_core::rewind::{NativeOutcome, Receipt, RewindRequest, Target, rewind};
use takeback_store::{Point, PointKind, SessionId};
use takeback_tui::{RestoreChoice, RestoreScope};

use crate::commands::menu::{covered, select_files};
use crate::commands::rewind::after_rewind;
use crate::error::CommandError;
use crate::screen::name;
use crate::time::clock;

/// What to restore.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) struct RestoreJob {
    pub(super) choice: RestoreChoice,
    /// Whether the agent restores its own copies too.
    pub(super) with_agent: bool,
    /// The prompts of the conversation.
    pub(super) messages: Vec<String>,
}

/// Where it is restored.
pub(super) struct RestoreContext<'a> {
    pub(super) workspace: &'a mut Workspace,
    pub(super) agent: &'a dyn ChatAgent,
    pub(super) session: &'a SessionId,
}

/// What was restored.
pub(super) struct RestoreOutcome {
    /// The point's description.
    pub(super) description: String,
    /// `None` if files were not to be restored.
    pub(super) receipt: Option<Receipt>,
    /// Set if the conversation was cut.
    pub(super) cut: Option<ConversationCut>,
    /// Remarks for the user.
    pub(super) notes: Vec<String>,
    /// Why not everything was restored.
    pub(super) failure: Option<String>,
}

/// The end of a conversation that the agent has forgotten.
pub(super) struct ConversationCut {
    /// The first forgotten prompt.
    pub(super) message: String,
    /// The conversation before the cut, for [`ChatAgent::load`].
    pub(super) before: Value,
}

#[derive(Debug, thiserror::Error)]
pub(super) enum RestoreError {
    /// Nothing was changed.
    #[error("No active query session. Cannot restore checkpoint.")]
    NoQuery,
    #[error("Checkpoint {0} not found")]
    NotFound(String),
    #[error("{0}")]
    Command(String),
}

impl<E: Into<CommandError>> From<E> for RestoreError {
    fn from(error: E) -> Self {
        Self::Command(error.into().line())
    }
}

pub(super) fn restore(
    context: &mut RestoreContext<'_>,
    job: &RestoreJob,
) -> Result<RestoreOutcome, RestoreError> {
    if job.with_agent && !context.agent.is_live() {
        return Err(RestoreError::NoQuery);
    }
    let points = context.workspace.store.points()?;
    let point = find_point(&points, &job.choice.point)?;
    let mut outcome = RestoreOutcome::new(point);
    if job.choice.scope != RestoreScope::Conversation {
        restore_files(context, point, job, &mut outcome)?;
    }
    if job.choice.scope != RestoreScope::Files && outcome.failure.is_none() {
        restore_conversation(context, (point, &points), job, &mut outcome);
    }
    Ok(outcome)
}

fn find_point<'a>(points: &'a [Point], id: &str) -> Result<&'a Point, RestoreError> {
    let point = points.iter().find(|point| point.id.to_string() == id);
    point.ok_or_else(|| RestoreError::NotFound(id.to_owned()))
}

impl RestoreOutcome {
    fn new(point: &Point) -> Self {
        let description = match (point.description.as_str(), &point.label) {
            ("", Some(label)) => label.clone(),
            ("", None) => format!("Checkpoint at {}", clock(point.created_at)),
            (description, _) => description.to_owned(),
        };
        Self { description, receipt: None, cut: None, notes: Vec::new(), failure: None }
    }
}

fn restore_files(
    context: &mut RestoreContext<'_>,
    point: &Point,
    job: &RestoreJob,
    outcome: &mut RestoreOutcome,
) -> Result<(), RestoreError> {
    let rewind_to = RewindRequest::new(Target::Point(point.id));
    let mut request = covered(context.workspace, rewind_to, point, job.choice.coverage)?.request;
    select_files(context.workspace, &mut request, &job.choice.files)?;
    // The agent knows only the prompts of its own session.
    let is_own = job.with_agent && point.session.as_ref() == Some(context.session);
    let receipt = match point.message_ids.first().filter(|_| is_own) {
        Some(message) => {
            let (receipt, note) = restore_with_agent(context, message, &request)?;
            outcome.notes.extend(note);
            receipt
        }
        None => rewind(context.workspace, &request, None)?,
    };
    outcome.notes.extend(after_rewind(context.workspace, &receipt)?.lines());
    outcome.failure = (!receipt.success).then(|| describe_failure(&receipt));
    outcome.receipt = Some(receipt);
    Ok(())
}

/// The receipt, and why the agent's own copies were not used.
fn restore_with_agent(
    context: &mut RestoreContext<'_>,
    message: &str,
    request: &RewindRequest,
) -> Result<(Receipt, Option<String>), RestoreError> {
    let restored =
        agents::restore_with_agent(context.workspace, context.agent, message, request, None);
    let restored = restored.map_err(|error| match error {
        agents::RestoreError::NotLive => RestoreError::NoQuery,
        agents::RestoreError::Rewind(error) => error.into(),
    })?;
    let note = match restored.own {
        NativeFilesResult::Unavailable(error) => Some(describe_own_files(&error)),
        NativeFilesResult::Asked(NativeOutcome::Failed(why)) => {
            Some(format!("{why}; used Takeback's own copies"))
        }
        NativeFilesResult::Asked(NativeOutcome::Ran | NativeOutcome::Skipped(_))
        | NativeFilesResult::None => None,
    };
    Ok((restored.receipt, note))
}

fn describe_own_files(error: &NativeFilesError) -> String {
    match error {
        NativeFilesError::NoCheckpoint => {
            "the agent has no copies for this prompt (its turn was interrupted, or they have expired); \
             used Takeback's own"
                .to_owned()
        }
        NativeFilesError::NotEnabled => {
            "the agent keeps no copies of its own; used Takeback's. \
             Set CLAUDE_CODE_ENABLE_SDK_FILE_CHECKPOINTING=1 to make it keep them"
                .to_owned()
        }
        NativeFilesError::Failed(_) | NativeFilesError::Agent(_) => {
            format!("{error}; used Takeback's own copies")
        }
    }
}

fn restore_conversation(
    context: &RestoreContext<'_>,
    (point, points): (&Point, &[Point]),
    job: &RestoreJob,
    outcome: &mut RestoreOutcome,
) {
    let is_known = |message: &&String| job.messages.contains(message);
    // The first prompt at or after the point that the conversation still has.
    let is_after = |other: &&Point| {
        other.kind == PointKind::Prompt
            && other.session.as_ref() == Some(context.session)
            && (other.id == point.id || other.created_at > point.created_at)
    };
    let messages = points.iter().filter(is_after).filter_map(|point| point.message_ids.first());
    match messages.into_iter().find(is_known) {
        Some(message) => match cut(context.agent, message) {
            Ok(cut) => outcome.cut = Some(cut),
            Err(why) if outcome.receipt.is_some() => {
                outcome.failure =
                    Some(format!("files were restored, the conversation was not: {why}"));
            }
            Err(why) => outcome.failure = Some(why),
        },
        None if point.kind == PointKind::Prompt
            && !point.message_ids.iter().any(|id| is_known(&id)) =>
        {
            let note = "the conversation no longer has this prompt and was not changed";
            outcome.notes.push(note.to_owned());
        }
        None => {}
    }
}

fn cut(agent: &dyn ChatAgent, message: &str) -> Result<ConversationCut, String> {
    let before = agent.memory();
    agent.cut(message).map_err(|error| error.to_string())?;
    Ok(ConversationCut { message: message.to_owned(), before })
}

/// Why a rewind was not complete, in one line.
pub(super) fn describe_failure(receipt: &Receipt) -> String {
    let listed = |before: &str, paths: Vec<String>, after: &str| match paths.as_slice() {
        [] => None,
        [path] => Some(format!("{before} {path}{after}")),
        [path, ..] => Some(format!("{before} {path} and {} more{after}", paths.len() - 1)),
    };
    let paths = |notes: &[Note]| notes.iter().map(|note| name(&note.path)).collect();
    let errors = receipt.errors.iter().map(|problem| name(&problem.path)).collect();
    let parts = [
        listed("could not write", errors, ""),
        listed("kept", paths(&receipt.conflicts), " (you changed it too)"),
        listed("kept", paths(&receipt.ambiguous), " (may be yours)"),
        listed("no saved contents of", paths(&receipt.not_captured), ""),
    ];
    let parts: Vec<String> = parts.into_iter().flatten().collect();
    if parts.is_empty() { "not everything could be restored".to_owned() } else { parts.join("; ") }
}
