//! `point:*`: points by any of their names.

use takeback_ipc::params::Named;
use takeback_ipc::{Fault, Outcome, Outlet};

use super::checkpoints::doing;
use super::client::{Client, result};
use crate::answers::LogAnswer;
use crate::args::{Ambiguous, DoingArgs, LogArgs, RewindArgs};
use crate::commands::cleanup::hold_cap;
use crate::commands::{log, rewind, show};
use crate::error::CommandError;
use crate::place::Store;
use crate::point::named;

pub(super) fn list(client: &mut Client, params: &Named, _: &Outlet) -> Outcome {
    let args = LogArgs {
        limit: params.optional("limit")?.unwrap_or(LogArgs::LIMIT),
        session: params.optional("session")?,
        all: params.or_default("all")?,
    };
    let at = client.at(params, Store::MustExist)?;
    hold_cap(&mut at.handle.place);
    let listed = log::list(&at.handle.place.workspace, &args)?;
    result(&listed.points.into_iter().map(|(_, answer)| answer).collect::<LogAnswer>())
}

pub(super) fn show(client: &mut Client, params: &Named, _: &Outlet) -> Outcome {
    let name: Option<String> = params.optional("point")?;
    let at = client.at(params, Store::MustExist)?;
    let name = name.as_deref().unwrap_or("@");
    result(&show::details(&at.handle.place.workspace, name)?.answer)
}

pub(super) fn rewind(client: &mut Client, params: &Named, _: &Outlet) -> Outcome {
    let doing = doing(params)?;
    rewind_to(client, params, doing, Wish::Rewind)
}

/// What is to come of the request for a rewind.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Wish {
    Rewind,
    /// To be shown, and done later by its mark.
    Preview,
}

/// To any point, as `rewind` with these options.
pub(super) fn rewind_to(
    client: &mut Client,
    params: &Named,
    doing: DoingArgs,
    wish: Wish,
) -> Outcome {
    let name: String = params.required("point")?;
    let args = RewindArgs {
        point: None,
        exact: params.or_default("exact")?,
        paths: params.or_default("paths")?,
        session: params.or_default("sessions")?,
        all_agents: params.or_default("allAgents")?,
        ambiguous: ambiguous(params)?.unwrap_or(Ambiguous::Leave),
        take: params.or_default("take")?,
        mine: params.or_default("mine")?,
        doing,
    };
    let chooses = !args.session.is_empty()
        || args.all_agents
        || !args.take.is_empty()
        || !args.mine.is_empty();
    if args.exact && (chooses || args.ambiguous == Ambiguous::Take) {
        let said = "exact takes back everything: it cannot be combined with sessions, allAgents, \
                    ambiguous, take or mine";
        return Err(Fault::invalid_params(said));
    }
    if args.all_agents && !args.session.is_empty() {
        return Err(Fault::invalid_params("sessions and allAgents do not go together"));
    }
    let at = client.mended(params, Store::MustExist)?;
    let workspace = &mut at.handle.place.workspace;
    let points = workspace.store.points().map_err(CommandError::from)?;
    let request = rewind::request(workspace, &at.options, &args, named(&points, &name)?)?;
    let mark: Option<String> = params.optional("mark")?;
    match (wish, &mark) {
        (Wish::Preview, _) => result(&rewind::marked(workspace, &request)?),
        (Wish::Rewind, Some(mark)) if !args.doing.dry_run => {
            result(&rewind::as_marked(workspace, &at.options, request, &args.doing, mark)?)
        }
        (Wish::Rewind, _) => {
            result(&rewind::at_once(workspace, &at.options, request, &args.doing)?.0)
        }
    }
}

pub(super) fn ambiguous(params: &Named) -> Result<Option<Ambiguous>, Fault> {
    match params.optional::<String>("ambiguous")?.as_deref() {
        None => Ok(None),
        Some("leave") => Ok(Some(Ambiguous::Leave)),
        Some("take") => Ok(Some(Ambiguous::Take)),
        Some(_) => Err(Fault::invalid_params("the parameter ambiguous is leave or take")),
    }
}
