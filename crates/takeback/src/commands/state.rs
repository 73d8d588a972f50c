//! `state`: saves, lists and restores agents' states.

mod answer;
pub(crate) mod delete;
mod diff;
mod effect;
mod export;
pub(crate) mod fork;
pub(crate) mod input;
pub(crate) mod list;
pub(crate) mod resume;
pub(crate) mod rollback;
pub(crate) use self::rollback::rollback_execution;
pub(crate) mod save;
pub(crate) mod show;

use takeback_store::States;
use takeback_store::state::{CheckpointId, ExecutionId, Head, Record, StateError};

use crate::args::{Options, StateCommand};
use crate::error::{CommandError, Kind};
use crate::screen::Screen;

pub(crate) fn state(
    options: &Options,
    command: &StateCommand,
    screen: &mut Screen,
) -> Result<u8, CommandError> {
    match command {
        StateCommand::Save(args) => save::save(options, args, screen),
        StateCommand::List(args) => list::list(options, args, screen),
        StateCommand::Show(args) => show::show(options, args, screen),
        StateCommand::Diff(args) => diff::diff(options, args, screen),
        StateCommand::Resume(args) => resume::resume(options, args, screen),
        StateCommand::Rollback(args) => rollback::rollback(options, args, screen),
        StateCommand::Fork(args) => fork::fork(options, args, screen),
        StateCommand::Delete(args) => delete::delete(options, args, screen),
        StateCommand::Export(args) => export::export(options, args, screen),
        StateCommand::Effect(args) => effect::effect(options, args, screen),
    }
}

/// What a name on the command line refers to.
enum StateTarget {
    Checkpoint(Record),
    Execution(ExecutionId, Head),
}

/// An existing checkpoint takes precedence over an execution of the same name.
fn find_target(states: &dyn States, name: &str) -> Result<StateTarget, CommandError> {
    let id = name.parse::<CheckpointId>();
    if let Ok(id) = &id
        && let Some(record) = states.find(id)?
    {
        return Ok(StateTarget::Checkpoint(record));
    }
    let execution = ExecutionId::new(name).map_err(StateError::from)?;
    match (states.head(&execution, None)?, id) {
        (Some(head), _) => Ok(StateTarget::Execution(execution, head)),
        (None, Ok(id)) => Err(StateError::NotFound { id }.into()),
        (None, Err(_)) => Err(StateError::NoExecution(execution).into()),
    }
}

/// The named checkpoint; for an execution, the head of its current branch.
fn find_checkpoint(states: &dyn States, name: &str) -> Result<Record, CommandError> {
    match find_target(states, name)? {
        StateTarget::Checkpoint(record)
        | StateTarget::Execution(_, Head { record: Some(record), .. }) => Ok(record),
        StateTarget::Execution(execution, _) => {
            let none = format!("execution {execution} has no checkpoint yet");
            Err(CommandError::new(Kind::Error, none).hint("`takeback state save` makes one."))
        }
    }
}

/// An existing execution.
fn find_execution(states: &dyn States, name: &str) -> Result<ExecutionId, CommandError> {
    let execution = ExecutionId::new(name).map_err(StateError::from)?;
    match states.head(&execution, None)? {
        Some(_) => Ok(execution),
        None => Err(StateError::NoExecution(execution).into()),
    }
}
