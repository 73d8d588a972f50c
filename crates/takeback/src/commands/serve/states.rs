//! `state:*`: saves, lists and restores agents' states.

use takeback_core::execution::MOST_RETRIES;
use takeback_ipc::{Fault, NamedParams, Outcome, Outlet};
use takeback_store::SessionId;

use super::checkpoints::apply_args;
use super::client::{Client, result};
use super::fault::{self, fault};
use super::points::ambiguous;
use crate::args::{ForkArgs, ListStateArgs, ResumeArgs, RollbackArgs};
use crate::commands::rewind::run_unattended;
use crate::commands::state::input::{CheckpointInput, read_one};
use crate::commands::state::save::{Files, mend_unless_locked, save_with_files};
use crate::commands::state::{delete, fork, list, resume, rollback, save, show};
use crate::error::CommandError;
use crate::place::{self, Store};

pub(super) fn save(client: &mut Client, params: &NamedParams, _: &Outlet) -> Outcome {
    let missing = || Fault::invalid_params("the parameter checkpoint is missing");
    let written = params.raw("checkpoint").ok_or_else(missing)?;
    let given =
        read_one(written.as_bytes()).and_then(CheckpointInput::read).map_err(CommandError::from)?;
    let session: Option<String> = params.optional("session")?;
    let given = CheckpointInput { session: session.map(SessionId).or(given.session), ..given };
    let with_files = params.optional("files")?.unwrap_or(true);
    let switched_off = place::not_enabled(&client.options_for(params)?)?;
    let files = if with_files && switched_off.is_none() { Files::Too } else { Files::Not };
    let at = client.at(params, Store::Create)?;
    let workspace = &mut at.handle.place.workspace;
    mend_unless_locked(workspace)?;
    result(&save::answer(&save_with_files(workspace, &given, files)?))
}

/// If something is damaged, the error's data has the rest.
pub(super) fn list(client: &mut Client, params: &NamedParams, _: &Outlet) -> Outcome {
    let args = ListStateArgs {
        execution: params.optional("executionId")?,
        branch: params.optional("branch")?,
        all: params.or_default("all")?,
        after: params.optional("after")?,
        limit: params.optional("limit")?,
    };
    if args.execution.is_none() && (args.branch.is_some() || args.all || args.after.is_some()) {
        return Err(Fault::invalid_params("branch, all and after need an executionId"));
    }
    if args.all && args.branch.is_some() {
        return Err(Fault::invalid_params("all and branch cannot be combined"));
    }
    let at = client.at(params, Store::MustExist)?;
    let (readable, damaged) = list::answer(&at.handle.place.workspace, &args)?;
    if damaged.is_empty() {
        return result(&readable);
    }
    let what = damaged.iter().map(|one| format!("{} is damaged: {}", one.what, one.why));
    let fault = fault(fault::DAMAGED, "not everything can be read")
        .with("damaged", what.collect::<Vec<_>>());
    Err(match serde_json::to_value(&readable) {
        Ok(readable) => fault.with("readable", readable),
        Err(_) => fault,
    })
}

pub(super) fn show(client: &mut Client, params: &NamedParams, _: &Outlet) -> Outcome {
    let id: String = params.required("id")?;
    let at = client.at(params, Store::MustExist)?;
    result(&show::answer(&at.handle.place.workspace, &id)?)
}

pub(super) fn resume(client: &mut Client, params: &NamedParams, _: &Outlet) -> Outcome {
    let args = ResumeArgs {
        name: params.required("id")?,
        branch: params.optional("branch")?,
        from_step: params.optional("fromStep")?,
        max_retries: params.optional("maxRetries")?.unwrap_or(MOST_RETRIES),
        last_messages: params.optional("lastMessages")?,
    };
    let at = client.mended(params, Store::MustExist)?;
    result(&resume::answer(&at.handle.place.workspace, &args)?)
}

pub(super) fn rollback(client: &mut Client, params: &NamedParams, _: &Outlet) -> Outcome {
    let args = RollbackArgs {
        id: params.required("id")?,
        exact: params.or_default("exact")?,
        partial: params.or_default("partial")?,
        state_only: params.or_default("stateOnly")?,
        ambiguous: ambiguous(params)?,
        doing: apply_args(params)?,
    };
    if [args.exact, args.partial, args.state_only].iter().filter(|one| **one).count() > 1 {
        return Err(Fault::invalid_params("exact, partial and stateOnly cannot be combined"));
    }
    if args.ambiguous.is_some() && (args.exact || args.state_only) {
        return Err(Fault::invalid_params("ambiguous cannot be combined with exact or stateOnly"));
    }
    let at = client.mended(params, Store::MustExist)?;
    let workspace = &mut at.handle.place.workspace;
    let (_, request) = rollback::request(workspace, &args)?;
    result(&run_unattended(workspace, &at.options, request, &args.doing)?.0)
}

pub(super) fn fork(client: &mut Client, params: &NamedParams, _: &Outlet) -> Outcome {
    let args = ForkArgs { id: params.required("id")?, branch: params.optional("branch")? };
    let at = client.mended(params, Store::MustExist)?;
    let (key, branch) = fork::fork_now(&*at.handle.place.workspace.states, &args)?;
    result(&fork::answer(&key, &branch))
}

pub(super) fn delete(client: &mut Client, params: &NamedParams, _: &Outlet) -> Outcome {
    let id: String = params.required("id")?;
    let dry_run = params.or_default("dryRun")?;
    let at = client.mended(params, Store::MustExist)?;
    result(&delete::delete_now(&*at.handle.place.workspace.states, &id, dry_run)?)
}
