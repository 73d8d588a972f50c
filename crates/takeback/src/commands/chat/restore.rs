//! Going back: the agent's own copies inside Takeback's rewind, then the conversation.

use serde_json::Value;
use takeback_agents::restore::{OwnCopies, restore as bring_back};
use takeback_agents::talk::{Agent, OwnFilesError};
use takeback_core::Workspace;
use takeback_core::rewind::{Helped, Receipt, RewindRequest, Target, rewind};
use takeback_store::{Point, PointKind, SessionId};
use takeback_tui::menu::What;

use crate::commands::menu::{Picks, pick};
use crate::error::CommandError;
use crate::time::clock;

/// What was chosen.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) struct Choice {
    /// The point's.
    pub(super) id: String,
    pub(super) what: What,
    pub(super) picks: Picks,
    /// Whether the agent is asked for its own copies too.
    pub(super) with_agent: bool,
    /// The prompts that the conversation has.
    pub(super) messages: Vec<String>,
}

/// What became of it.
pub(super) struct Restored {
    pub(super) description: String,
    /// What was done to files, if they were to go back.
    pub(super) receipt: Option<Receipt>,
    /// The prompt that the agent has forgotten, with all after it.
    pub(super) cut: Option<Cut>,
    /// Worth telling.
    pub(super) notes: Vec<String>,
    /// Why it was not all that was asked for.
    pub(super) failed: Option<String>,
}

pub(super) struct Cut {
    pub(super) message: String,
    /// The conversation before, for [`Agent::load`].
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
    workspace: &mut Workspace,
    agent: &dyn Agent,
    session: &SessionId,
    choice: &Choice,
) -> Result<Restored, RestoreError> {
    if choice.with_agent && !agent.is_live() {
        return Err(RestoreError::NoQuery);
    }
    let points = workspace.store.points()?;
    let point = points.iter().find(|point| point.id.to_string() == choice.id);
    let point = point.ok_or_else(|| RestoreError::NotFound(choice.id.clone()))?;
    let mut restored = Restored {
        description: name_of(point),
        receipt: None,
        cut: None,
        notes: Vec::new(),
        failed: None,
    };
    if choice.what != What::Conversation {
        let receipt = files(workspace, agent, session, point, choice, &mut restored.notes)?;
        if !receipt.success {
            restored.failed = Some(why_not_whole(&receipt));
        }
        restored.receipt = Some(receipt);
    }
    if choice.what != What::Files && restored.failed.is_none() {
        let is_known = |message: &String| choice.messages.contains(message);
        let lost = point.kind == PointKind::Prompt && !point.message_ids.iter().any(is_known);
        match conversation(agent, session, point, &points, &is_known) {
            Ok(cut) => restored.cut = cut,
            Err(why) if restored.receipt.is_some() => {
                restored.failed = Some(format!("files are back, the conversation is not: {why}"));
            }
            Err(why) => restored.failed = Some(why),
        }
        if lost && restored.cut.is_none() && restored.failed.is_none() {
            let note = "the conversation does not have this prompt any more, and stays as it is";
            restored.notes.push(note.to_owned());
        }
    }
    Ok(restored)
}

/// What the user calls it.
fn name_of(point: &Point) -> String {
    match (point.description.as_str(), &point.label) {
        ("", Some(label)) => label.clone(),
        ("", None) => format!("Checkpoint at {}", clock(point.created_at)),
        (description, _) => description.to_owned(),
    }
}

fn files(
    workspace: &mut Workspace,
    agent: &dyn Agent,
    session: &SessionId,
    point: &Point,
    choice: &Choice,
    notes: &mut Vec<String>,
) -> Result<Receipt, RestoreError> {
    let mut request = RewindRequest::new(Target::Point(point.id));
    pick(workspace, &mut request, &choice.picks)?;
    // It knows the prompts of its own session alone.
    let own = choice.with_agent && point.session.as_ref() == Some(session);
    let Some(message) = point.message_ids.first().filter(|_| own) else {
        return Ok(rewind(workspace, &request, None)?);
    };
    let restored = match bring_back(workspace, agent, message, &request, None) {
        Err(takeback_agents::restore::RestoreError::NotLive) => return Err(RestoreError::NoQuery),
        Err(takeback_agents::restore::RestoreError::Rewind(error)) => return Err(error.into()),
        Ok(restored) => restored,
    };
    match restored.own {
        OwnCopies::Unavailable(error) => notes.push(explained(&error)),
        OwnCopies::Asked(Helped::Failed(why)) => {
            notes.push(format!("{why}; Takeback's own copies were used"));
        }
        OwnCopies::Asked(Helped::Ran | Helped::NotRun(_)) | OwnCopies::None => {}
    }
    Ok(restored.receipt)
}

/// What it means that the agent's own copies were of no use, and what to do.
fn explained(error: &OwnFilesError) -> String {
    match error {
        OwnFilesError::NoCheckpoint => {
            "the agent has no copies for this prompt (its turn was cut off, or it is too long ago); \
             Takeback's own were used"
                .to_owned()
        }
        OwnFilesError::NotEnabled => {
            "the agent keeps no copies of its own; Takeback's were used. \
             CLAUDE_CODE_ENABLE_SDK_FILE_CHECKPOINTING=1 makes it keep them"
                .to_owned()
        }
        OwnFilesError::Failed(_) | OwnFilesError::Agent(_) => {
            format!("{error}; Takeback's own copies were used")
        }
    }
}

/// The agent forgets what came after the point; which prompt was the first of that, of those that the
/// conversation has.
fn conversation(
    agent: &dyn Agent,
    session: &SessionId,
    point: &Point,
    points: &[Point],
    is_known: &dyn Fn(&String) -> bool,
) -> Result<Option<Cut>, String> {
    let is_after = |other: &&Point| {
        other.kind == PointKind::Prompt
            && other.session.as_ref() == Some(session)
            && (other.id == point.id || other.created_at > point.created_at)
    };
    let messages = points.iter().filter(is_after).filter_map(|point| point.message_ids.first());
    let Some(message) = messages.into_iter().find(|message| is_known(message)) else {
        return Ok(None);
    };
    let before = agent.memory();
    agent.cut(message).map_err(|error| error.to_string())?;
    Ok(Some(Cut { message: message.clone(), before }))
}

/// Why a rewind is no whole success, in a line.
pub(super) fn why_not_whole(receipt: &Receipt) -> String {
    let named = |what: &str, paths: Vec<String>| match paths.as_slice() {
        [] => None,
        [path] => Some(format!("{path} {what}")),
        [path, ..] => Some(format!("{path} and {} more {what}", paths.len() - 1)),
    };
    let of = |notes: &[takeback_core::rewind::receipt::Note]| {
        notes.iter().map(|note| crate::screen::name(&note.path)).collect::<Vec<_>>()
    };
    let errors = receipt.errors.iter().map(|problem| crate::screen::name(&problem.path)).collect();
    let parts = [
        named("could not be written", errors),
        named("was changed by you too and stays", of(&receipt.conflicts)),
        named("may be yours and stays", of(&receipt.ambiguous)),
        named("was never captured", of(&receipt.not_captured)),
    ];
    let said: Vec<String> = parts.into_iter().flatten().collect();
    if said.is_empty() { "not everything could be restored".to_owned() } else { said.join("; ") }
}
