//! `point:*`: points by any of their names.

use clap::ValueEnum as _;
use takeback_core::history;
use takeback_ipc::{Fault, NamedParams, Outcome, Outlet};

use super::checkpoints::apply_args;
use super::client::{Client, result};
use crate::args::{Ambiguous, ApplyArgs, Conflicts, LogArgs, RewindArgs};
use crate::commands::cleanup::enforce_point_cap;
use crate::commands::{log, rewind, show};
use crate::error::CommandError;
use crate::place::Store;
use crate::point::find;

pub(super) fn list(client: &mut Client, params: &NamedParams, _: &Outlet) -> Outcome {
    let limit = params.optional("limit")?.unwrap_or(LogArgs::LIMIT);
    let args = LogArgs {
        session: params.optional("session")?,
        all: params.or_default("all")?,
        paths: params.or_default("paths")?,
        ops: params.or_default("ops")?,
        by: params.optional("by")?,
        since: params.optional("since")?,
        until: params.optional("until")?,
        grep: params.optional("grep")?,
        text: params.optional("text")?,
        tool: params.optional("tool")?,
        ..LogArgs::newest(limit)
    };
    if args.ops && (args.all || args.session.is_some() || args.by.is_some() || args.tool.is_some())
    {
        let why = "operations have no session or tool: ops cannot be combined with session, all, by or tool";
        return Err(Fault::invalid_params(why));
    }
    let at = client.at(params, Store::MustExist)?;
    enforce_point_cap(&mut at.handle.place);
    let workspace = &at.handle.place.workspace;
    let query = log::query(workspace, &at.options, &args)?;
    let rows = history::log(&*workspace.store, &query).map_err(CommandError::from)?;
    result(&log::list(workspace, rows)?)
}

pub(super) fn show(client: &mut Client, params: &NamedParams, _: &Outlet) -> Outcome {
    let name: Option<String> = params.optional("point")?;
    let at = client.at(params, Store::MustExist)?;
    let name = name.as_deref().unwrap_or("@");
    result(&show::details(&at.handle.place.workspace, name)?.answer)
}

pub(super) fn rewind(client: &mut Client, params: &NamedParams, _: &Outlet) -> Outcome {
    let doing = apply_args(params)?;
    rewind_to(client, params, doing, RewindMode::Rewind)
}

/// What to do with a rewind request.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum RewindMode {
    Rewind,
    /// Only plan it; it can be applied later by its mark.
    Preview,
}

/// Rewinds to any point, like the command `rewind` with these options.
pub(super) fn rewind_to(
    client: &mut Client,
    params: &NamedParams,
    doing: ApplyArgs,
    wish: RewindMode,
) -> Outcome {
    let name: String = params.required("point")?;
    let args = RewindArgs {
        point: None,
        exact: params.or_default("exact")?,
        paths: params.or_default("paths")?,
        session: params.or_default("sessions")?,
        all_agents: params.or_default("allAgents")?,
        ambiguous: ambiguous(params)?.unwrap_or(Ambiguous::Leave),
        conflicts: conflicts(params)?,
        take: params.or_default("take")?,
        mine: params.or_default("mine")?,
        doing,
    };
    let chooses = !args.session.is_empty()
        || args.all_agents
        || !args.take.is_empty()
        || !args.mine.is_empty();
    if args.exact && (chooses || args.ambiguous == Ambiguous::Take) {
        let why = "exact takes back everything: it cannot be combined with sessions, allAgents, \
                    ambiguous, take or mine";
        return Err(Fault::invalid_params(why));
    }
    if args.all_agents && !args.session.is_empty() {
        return Err(Fault::invalid_params("sessions and allAgents cannot be combined"));
    }
    let at = client.mended(params, Store::MustExist)?;
    let workspace = &mut at.handle.place.workspace;
    let points = workspace.store.points().map_err(CommandError::from)?;
    let request = rewind::request(workspace, &at.options, &args, find(&points, &name)?)?;
    let mark: Option<String> = params.optional("mark")?;
    match (wish, &mark) {
        (RewindMode::Preview, _) => {
            let shown = rewind::preview_marked(workspace, &at.options, request, &args.doing)?;
            result(&shown)
        }
        (RewindMode::Rewind, Some(mark)) if !args.doing.dry_run => {
            result(&rewind::apply_marked(workspace, &at.options, request, &args.doing, mark)?)
        }
        (RewindMode::Rewind, _) => {
            result(&rewind::run_unattended(workspace, &at.options, request, &args.doing)?.0)
        }
    }
}

pub(super) fn conflicts(params: &NamedParams) -> Result<Conflicts, Fault> {
    match params.optional::<String>("conflicts")? {
        None => Ok(Conflicts::Keep),
        Some(policy) => Conflicts::from_str(&policy, true).map_err(|_unknown| {
            Fault::invalid_params("the parameter conflicts is keep, file, take or markers")
        }),
    }
}

pub(super) fn ambiguous(params: &NamedParams) -> Result<Option<Ambiguous>, Fault> {
    match params.optional::<String>("ambiguous")?.as_deref() {
        None => Ok(None),
        Some("leave") => Ok(Some(Ambiguous::Leave)),
        Some("take") => Ok(Some(Ambiguous::Take)),
        Some(_) => Err(Fault::invalid_params("the parameter ambiguous is leave or take")),
    }
}
