//! The agent's state at each of its steps, in the workspace's state store.
//!
//! The execution has the name of the session. A step is `start`, `prompt`, `model`, `tool …`,
//! `interrupted`, `load` or `cut`; its state is the conversation, its metadata names the prompt that began
//! it. The first is saved before any prompt, so there is always a step to go back to. A prompt and the end of
//! a turn are saved with their files, steps in between are not: a turn of many calls would push out the points
//! of earlier prompts.

use serde::{Deserialize, Serialize};
use serde_json::{Value, json};
use takeback_core::execution::{ExecutionError, resume_last, save_step};
use takeback_store::state::{
    Checkpoint, CheckpointKey, ExecutionId, HeadMove, ListQuery, ListScope, MoveTo, NewCheckpoint,
    Status, StepIndex, Values,
};
use takeback_store::{StateError, States};

use super::conversation::Conversation;
use crate::capture::{Recording, with_causes};

/// The conversation after the last successful step of an execution, for
/// [`ChatAgent::load`](crate::chat_agent::ChatAgent::load), even if its process was killed.
pub fn last_memory(
    states: &dyn States,
    execution: &ExecutionId,
) -> Result<Option<Value>, StateError> {
    let last = resume_last(states, execution, None)?;
    let conversation =
        last.and_then(|last| Conversation::from_state(&last.checkpoint.values.state));
    Ok(conversation.map(|conversation| conversation.memory()))
}

/// The metadata of a step.
#[derive(Serialize, Deserialize)]
struct StepMetadata {
    /// The prompt's id, if the step is a prompt.
    #[serde(skip_serializing_if = "Option::is_none")]
    message: Option<String>,
}

/// The position of an execution.
pub(crate) struct Steps {
    execution: ExecutionId,
    next: StepIndex,
    context: Value,
}

/// One step, successful or failed.
pub(crate) struct Step<'a> {
    pub(crate) name: &'a str,
    /// The prompt's id, if the step is a prompt.
    pub(crate) message: Option<&'a str>,
    pub(crate) error: Option<&'a str>,
    /// Whether the current files are saved with it.
    pub(crate) with_files: bool,
}

impl Steps {
    /// Continues after the last step, if the execution has any.
    pub(crate) fn load(
        states: &dyn States,
        execution: ExecutionId,
        model: &str,
    ) -> Result<Self, StateError> {
        let head = states.head(&execution, None)?.and_then(|head| head.record);
        let next = StepIndex(head.map_or(0, |head| head.key.step.0 + 1));
        let context = json!({ "agent": super::NAME, "model": model });
        Ok(Self { execution, next, context })
    }

    /// Saves a step. A failure is reported, and the agent continues.
    pub(crate) fn save(
        &mut self,
        capture: &mut Recording,
        step: &Step<'_>,
        conversation: &Conversation,
    ) {
        let metadata = StepMetadata { message: step.message.map(str::to_owned) };
        let values = Values {
            state: conversation.state(),
            context: self.context.clone(),
            variables: json!({}),
            metadata: json!(metadata),
        };
        let session = capture.session.clone();
        let new = NewCheckpoint {
            status: if step.error.is_some() { Status::Failed } else { Status::Success },
            error: step.error,
            session: Some(&session),
            ..NewCheckpoint::success(
                &self.execution,
                self.next,
                step.name,
                (capture.workspace.ambient.now)(),
                &values,
            )
        };
        let saved = if capture.recording && step.with_files {
            match save_step(&mut capture.workspace, &new) {
                Err(ExecutionError::Record(error)) => {
                    capture.report_unrecorded(format!(
                        "the files of {}: {}",
                        step.name,
                        with_causes(&error)
                    ));
                    capture.workspace.states.save(&new).map(drop).map_err(ExecutionError::from)
                }
                saved => saved.map(drop),
            }
        } else {
            capture.workspace.states.save(&new).map(drop).map_err(ExecutionError::from)
        };
        match saved {
            Ok(()) => self.next = StepIndex(self.next.0 + 1),
            Err(error) => {
                capture.report_unrecorded(format!(
                    "the state of {}: {}",
                    step.name,
                    with_causes(&error)
                ));
            }
        }
    }

    /// The state before a prompt, if this execution has saved that prompt.
    pub(crate) fn before(
        &self,
        states: &dyn States,
        message: &str,
    ) -> Result<Option<Checkpoint>, StateError> {
        let execution = &self.execution;
        let query = ListQuery { execution, scope: ListScope::All, after: None, limit: None };
        let records = states.list(&query)?.records;
        for record in records.into_iter().rev().filter(|record| record.step_name == "prompt") {
            let saved = states.load(&record.key.id())?;
            let metadata =
                saved.and_then(|saved| StepMetadata::deserialize(&saved.values.metadata).ok());
            if metadata.and_then(|metadata| metadata.message).as_deref() != Some(message) {
                continue;
            }
            let Some((step, attempt)) = record.parent else { return Ok(None) };
            let before = CheckpointKey { execution: execution.clone(), step, attempt };
            return states.load(&before.id());
        }
        Ok(None)
    }

    /// Makes the next step follow this checkpoint.
    pub(crate) fn move_to(
        &mut self,
        states: &dyn States,
        at: &CheckpointKey,
    ) -> Result<(), StateError> {
        let to = MoveTo::Checkpoint(at);
        states.move_head(&HeadMove { execution: &self.execution, branch: None, to, by: None })?;
        self.next = StepIndex(at.step.0 + 1);
        Ok(())
    }
}
