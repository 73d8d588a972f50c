//! `state rollback`: rolls state and files back to a checkpoint together.

use takeback_core::Workspace;
use takeback_core::execution::{RollbackFiles, rollback_request};
use takeback_core::rewind::RewindRequest;
use takeback_store::state::Record;

use super::find_checkpoint;
use crate::args::{ApplyArgs, Options, RollbackArgs};
use crate::commands::menu::execution_request;
use crate::commands::rewind::{TitledRequest, run_request};
use crate::error::CommandError;
use crate::place::{self, Store};
use crate::screen::{Screen, plain, shorten, shorten_path, width};
use crate::time::{ago, now};

pub(crate) fn rollback(
    options: &Options,
    args: &RollbackArgs,
    screen: &mut Screen,
) -> Result<u8, CommandError> {
    let mut place = place::open_recovered(options, Store::MustExist)?;
    let workspace = &mut place.workspace;
    let (record, request) = request(workspace, args)?;
    let titled = TitledRequest { title: title(&record), request };
    run_request(workspace, options, titled, &args.doing, screen)
}

/// The named checkpoint and the request to restore it.
pub(crate) fn request(
    workspace: &Workspace,
    args: &RollbackArgs,
) -> Result<(Record, RewindRequest), CommandError> {
    let record = find_checkpoint(&*workspace.states, &args.id)?;
    let files = match args {
        RollbackArgs { exact: true, .. } => RollbackFiles::Exact,
        RollbackArgs { partial: true, .. } => RollbackFiles::Partial,
        RollbackArgs { state_only: true, .. } => RollbackFiles::Stay,
        _ => RollbackFiles::All,
    };
    let mut request = rollback_request(workspace, &record.key, files)?;
    if let Some(policy) = args.ambiguous {
        request.ambiguous = policy.into();
    }
    Ok((record, request))
}

fn title(record: &Record) -> String {
    let room = width().saturating_sub(40).clamp(20, 80);
    let id = shorten_path(&plain(&record.id().to_string()), room);
    let step = shorten(&plain(&record.step_name), room);
    format!("Roll back to {id} “{step}” ({})", ago(record.time, now()))
}

/// Rolls back to the last success of an execution chosen from a menu, with its files if it has any.
pub(crate) fn rollback_execution(
    workspace: &mut Workspace,
    options: &Options,
    execution: &str,
    doing: &ApplyArgs,
    screen: &mut Screen,
) -> Result<u8, CommandError> {
    let (record, request) = execution_request(workspace, execution)?;
    let titled = TitledRequest { title: title(&record), request };
    run_request(workspace, options, titled, doing, screen)
}
