//! `state rollback`: state and files go back to a checkpoint together.

use takeback_core::Workspace;
use takeback_core::execution::{RollbackFiles, rollback_request};
use takeback_core::rewind::RewindRequest;
use takeback_store::state::Record;

use super::checkpoint_named;
use crate::args::{DoingArgs, Options, RollbackArgs};
use crate::commands::menu::execution_request;
use crate::commands::rewind::carry_out;
use crate::error::CommandError;
use crate::place::{self, Store};
use crate::screen::{Screen, plain, shorten, shorten_path, width};
use crate::time::{ago, now};

pub(crate) fn rollback(
    options: &Options,
    args: &RollbackArgs,
    screen: &mut Screen,
) -> Result<u8, CommandError> {
    let mut place = place::open_mended(options, Store::MustExist)?;
    let workspace = &mut place.workspace;
    let (record, request) = request(workspace, args)?;
    carry_out(workspace, options, request, &args.doing, &title(&record), screen)
}

/// The checkpoint that is meant, and what to ask for.
pub(crate) fn request(
    workspace: &Workspace,
    args: &RollbackArgs,
) -> Result<(Record, RewindRequest), CommandError> {
    let record = checkpoint_named(&*workspace.states, &args.id)?;
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

/// To the last success of an execution, which was chosen from a menu: files too, if it has any.
pub(crate) fn rollback_execution(
    workspace: &mut Workspace,
    options: &Options,
    execution: &str,
    doing: &DoingArgs,
    screen: &mut Screen,
) -> Result<u8, CommandError> {
    let (record, request) = execution_request(workspace, execution)?;
    carry_out(workspace, options, request, doing, &title(&record), screen)
}
