//! `state`: what agents hand over at each step, and get back.

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
enum Named {
    Checkpoint(Record),
    Execution(ExecutionId, Head),
}

/// A checkpoint that there is goes before an execution that has the same name as its id.
fn named(states: &dyn States, name: &str) -> Result<Named, CommandError> {
    let id = name.parse::<CheckpointId>();
    if let Ok(id) = &id
        && let Some(record) = states.find(id)?
    {
        return Ok(Named::Checkpoint(record));
    }
    let execution = ExecutionId::new(name).map_err(StateError::from)?;
    match (states.head(&execution, None)?, id) {
        (Some(head), _) => Ok(Named::Execution(execution, head)),
        (None, Ok(id)) => Err(StateError::NotFound { id }.into()),
        (None, Err(_)) => Err(StateError::NoExecution(execution).into()),
    }
}

/// The checkpoint that is meant; of an execution, the one at which its current branch stands.
fn checkpoint_named(states: &dyn States, name: &str) -> Result<Record, CommandError> {
    match named(states, name)? {
        Named::Checkpoint(record) | Named::Execution(_, Head { record: Some(record), .. }) => {
            Ok(record)
        }
        Named::Execution(execution, _) => {
            let none = format!("execution {execution} has no checkpoint yet");
            Err(CommandError::new(Kind::Error, none).hint("`takeback state save` makes one."))
        }
    }
}

/// An execution that there is.
fn execution_named(states: &dyn States, name: &str) -> Result<ExecutionId, CommandError> {
    let execution = ExecutionId::new(name).map_err(StateError::from)?;
    match states.head(&execution, None)? {
        Some(_) => Ok(execution),
        None => Err(StateError::NoExecution(execution).into()),
    }
}
