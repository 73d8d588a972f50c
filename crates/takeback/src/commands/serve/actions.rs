//! `checkpoint:revert`, `checkpoint:restore`, `checkpoint:conflicts`, `checkpoint:resolve`, `checkpoint:adopt`: take
//! back single changes, bring paths back, settle conflicts, merge a fork.

use std::path::PathBuf;

use serde::Deserialize;
use takeback_core::Workspace;
use takeback_core::rewind::{
    Choice, IncomingChange, OpenConflict, PathFilter, RewindRequest, open_conflicts,
};
use takeback_ipc::{Fault, NamedParams, Outcome, Outlet};

use super::checkpoints::apply_args;
use super::client::{Client, ClientWorkspace, result};
use super::points::{ambiguous, conflicts};
use crate::actions::SettledConflict;
use crate::answers;
use crate::args::{Ambiguous, ApplyArgs, RestoreArgs, RevertArgs};
use crate::commands::rewind::{apply_marked, from_root, preview_marked, run_unattended};
use crate::commands::{
    adopt as adopt_command, resolve as resolve_command, restore as restore_command,
    revert as revert_command,
};
use crate::error::CommandError;
use crate::place::{self, Store};
use crate::point::find_in;

pub(super) fn revert(client: &mut Client, params: &NamedParams, _: &Outlet) -> Outcome {
    let args = RevertArgs {
        what: params.required("what")?,
        paths: params.or_default("paths")?,
        session: params.or_default("sessions")?,
        all_agents: params.or_default("allAgents")?,
        ambiguous: ambiguous(params)?.unwrap_or(Ambiguous::Leave),
        conflicts: conflicts(params)?,
        doing: apply_args(params)?,
    };
    if args.all_agents && !args.session.is_empty() {
        return Err(Fault::invalid_params("sessions and allAgents cannot be combined"));
    }
    let mut at = client.mended(params, Store::MustExist)?;
    let workspace = &mut at.handle.place.workspace;
    let request = revert_command::request(workspace, &at.options, &args)?.request;
    run(&mut at, params, request, &args.doing)
}

pub(super) fn restore(client: &mut Client, params: &NamedParams, _: &Outlet) -> Outcome {
    let args = RestoreArgs {
        paths: params.required("paths")?,
        from: params.optional("from")?.unwrap_or_else(|| "@".to_owned()),
        hunk: false,
        doing: apply_args(params)?,
    };
    if args.paths.is_empty() {
        return Err(Fault::invalid_params("paths names no path; `**` is every path"));
    }
    let mut at = client.mended(params, Store::MustExist)?;
    let workspace = &at.handle.place.workspace;
    let point = find_in(&*workspace.store, &args.from)?;
    let request = restore_command::request(workspace, &at.options, &args, &point)?;
    run(&mut at, params, request, &args.doing)
}

pub(super) fn adopt(client: &mut Client, params: &NamedParams, _: &Outlet) -> Outcome {
    let folder: PathBuf = params.required("folder")?;
    let paths: Vec<String> = params.or_default("paths")?;
    let (conflicts, doing) = (conflicts(params)?, apply_args(params)?);
    let mut at = client.mended(params, Store::MustExist)?;
    let (start, home) = (place::start(&at.options)?, place::home(&at.options)?);
    let workspace = &mut at.handle.place.workspace;
    let globs = from_root(workspace, &at.options, &paths)?;
    let titled =
        adopt_command::request(workspace, &home, &start.join(folder), globs, conflicts.into())?;
    run(&mut at, params, titled.request, &doing)
}

pub(super) fn open(client: &mut Client, params: &NamedParams, _: &Outlet) -> Outcome {
    let at = client.mended(params, Store::MustExist)?;
    let open = open_conflicts(&at.handle.place.workspace).map_err(CommandError::from)?;
    result(&open.iter().map(answers::open_conflict).collect::<Vec<_>>())
}

pub(super) fn resolve(client: &mut Client, params: &NamedParams, _: &Outlet) -> Outcome {
    let paths: Vec<String> = params.or_default("paths")?;
    let take: Option<Side> = params.optional("take")?;
    let choices: Option<Vec<FileChoices>> = params.optional("choices")?;
    let doing = apply_args(params)?;
    let mut at = client.mended(params, Store::MustExist)?;
    let workspace = &mut at.handle.place.workspace;
    let globs = from_root(workspace, &at.options, &paths)?;
    let filter = PathFilter::new(&globs).map_err(CommandError::from)?;
    let mut open = open_conflicts(workspace).map_err(CommandError::from)?;
    open.retain(|conflict| filter.includes(&conflict.path));
    if open.is_empty() {
        return Err(resolve_command::no_conflicts().into());
    }
    let settled = match (take, choices) {
        (Some(side), None) => {
            let each = open.iter().cloned();
            each.map(|conflict| SettledConflict::new(conflict, &side.choice())).collect()
        }
        (None, Some(choices)) => chosen(&open, choices)?,
        _ => return Err(Fault::invalid_params("either take or choices says how")),
    };
    let changes = changes(workspace, &settled)?;
    let request = resolve_command::request(&open, changes)?.request;
    run(&mut at, params, request, &doing)
}

/// What is to be done with the lines of one file. `null`: this place stays open.
#[derive(Deserialize)]
#[serde(rename_all = "camelCase", deny_unknown_fields)]
struct FileChoices {
    file_path: String,
    places: Vec<Option<PlaceChoice>>,
}

#[derive(Deserialize)]
#[serde(untagged)]
enum PlaceChoice {
    Side(Side),
    Text { text: String },
}

#[derive(Clone, Copy, Deserialize)]
#[serde(rename_all = "camelCase")]
enum Side {
    Mine,
    Before,
}

impl Side {
    fn choice(self) -> Choice {
        match self {
            Self::Mine => Choice::Mine,
            Self::Before => Choice::Before,
        }
    }
}

fn chosen(open: &[OpenConflict], choices: Vec<FileChoices>) -> Result<Vec<SettledConflict>, Fault> {
    let of_file = |one: FileChoices| {
        let FileChoices { file_path, places } = one;
        let is_its =
            |conflict: &&OpenConflict| answers::path(&conflict.path).file_path == file_path;
        let conflict = open.iter().find(is_its).ok_or_else(|| {
            Fault::invalid_params(format!("there is no open conflict in {file_path}"))
        })?;
        let count = conflict.lines.len().max(1);
        if places.len() != count {
            let given = places.len();
            let why = format!("{file_path} has {count} places in conflict, and {given} choices");
            return Err(Fault::invalid_params(why));
        }
        let choices = places.into_iter().map(|place| {
            place.map(|place| match place {
                PlaceChoice::Side(side) => side.choice(),
                PlaceChoice::Text { text } => Choice::Text(text.into_bytes()),
            })
        });
        Ok(SettledConflict { conflict: conflict.clone(), choices: choices.collect() })
    };
    choices.into_iter().map(of_file).collect()
}

fn changes(
    workspace: &mut Workspace,
    settled: &[SettledConflict],
) -> Result<Vec<IncomingChange>, CommandError> {
    let mut changes = Vec::new();
    for one in settled {
        changes.extend(one.change(workspace)?);
    }
    Ok(changes)
}

/// Applies the request. With `dryRun`, plans it; with the `mark` of such a plan, applies that or nothing.
fn run(
    at: &mut ClientWorkspace<'_>,
    params: &NamedParams,
    request: RewindRequest,
    doing: &ApplyArgs,
) -> Outcome {
    let mark: Option<String> = params.optional("mark")?;
    let workspace = &mut at.handle.place.workspace;
    let answer = match mark {
        _ if doing.dry_run => {
            let shown = preview_marked(workspace, &at.options, request, doing)?;
            answers::ActionAnswer { receipt: shown.receipt, mark: Some(shown.mark) }
        }
        Some(mark) => {
            let receipt = apply_marked(workspace, &at.options, request, doing, &mark)?;
            answers::ActionAnswer { receipt, mark: None }
        }
        None => {
            let (receipt, _) = run_unattended(workspace, &at.options, request, doing)?;
            answers::ActionAnswer { receipt, mark: None }
        }
    };
    result(&answer)
}
