//! The `checkpoint:*` methods, except for the three in [`super::file_checkpoints`].

use takeback_core::rewind::Exactness;
use takeback_core::rewind::{RewindRequest, Target};
use takeback_ipc::{Fault, NamedParams, Outcome, Outlet};

use super::client::{Client, ClientWorkspace, result};
use super::points::{RewindMode, conflicts, rewind_to};
use crate::args::{ApplyArgs, DiffArgs};
use crate::commands::filediff::Contents;
use crate::commands::{checkpoint, diff, rewind, verify};
use crate::error::CommandError;
use crate::place::{self, Store};
use crate::point::check_label;

pub(super) fn create(client: &mut Client, params: &NamedParams, _: &Outlet) -> Outcome {
    let label: Option<String> = params.optional("label")?;
    if let Some(refused) = place::not_enabled(&client.options_for(params)?)? {
        return Err(refused.into());
    }
    if let Some(label) = &label {
        check_label(label)?;
    }
    let at = client.mended(params, Store::Create)?;
    let made = takeback_core::checkpoint(&mut at.handle.place.workspace, label.as_deref());
    result(&checkpoint::answer(&made.map_err(CommandError::from)?, label.as_deref()))
}

pub(super) fn preview(client: &mut Client, params: &NamedParams, _: &Outlet) -> Outcome {
    rewind_to(client, params, ApplyArgs::default(), RewindMode::Preview)
}

pub(super) fn differences(client: &mut Client, params: &NamedParams, _: &Outlet) -> Outcome {
    let args = DiffArgs {
        from: params.optional("from")?.unwrap_or_else(|| "@".to_owned()),
        to: params.optional("to")?,
        paths: params.or_default("paths")?,
        stat: false,
        by: params.optional("by")?,
    };
    let at = client.mended(params, Store::MustExist)?;
    let workspace = &mut at.handle.place.workspace;
    let part = diff::differences(workspace, &at.options, &args)?;
    let contents = Contents { store: &*workspace.store, made: &part.made };
    let mut rows = diff::diff_answer(&part.diffs, contents)?;
    if let Some(most) = params.optional("patchBytes")? {
        diff::add_patches(&mut rows, &part.diffs, contents, most)?;
    }
    result(&rows)
}

pub(super) fn undo(client: &mut Client, params: &NamedParams, _: &Outlet) -> Outcome {
    let name: Option<String> = params.optional("operation")?;
    let conflicts = conflicts(params)?;
    let mut at = client.mended(params, Store::MustExist)?;
    let target = match name {
        None => Target::Undo,
        Some(name) => {
            let store = &*at.handle.place.workspace.store;
            Target::Operation(rewind::find_operation(store, &name)?.id)
        }
    };
    let mut request = RewindRequest::new(target);
    request.conflicts = conflicts.into();
    undo_or_redo(&mut at, params, request)
}

pub(super) fn redo(client: &mut Client, params: &NamedParams, _: &Outlet) -> Outcome {
    let mut at = client.mended(params, Store::MustExist)?;
    undo_or_redo(&mut at, params, RewindRequest::new(Target::Redo))
}

fn undo_or_redo(
    at: &mut ClientWorkspace<'_>,
    params: &NamedParams,
    mut request: RewindRequest,
) -> Outcome {
    if params.or_default("exact")? {
        request.exactness = Exactness::Exact;
    }
    let doing = apply_args(params)?;
    let (receipt, _) =
        rewind::run_unattended(&mut at.handle.place.workspace, &at.options, request, &doing)?;
    result(&receipt)
}

/// The parameters that say how a rewind is applied.
pub(super) fn apply_args(params: &NamedParams) -> Result<ApplyArgs, Fault> {
    Ok(ApplyArgs {
        discard: params.or_default("discard")?,
        outside: params.or_default("outside")?,
        dry_run: params.or_default("dryRun")?,
        diff: false,
        yes: true,
    })
}

pub(super) fn verify(client: &mut Client, params: &NamedParams, _: &Outlet) -> Outcome {
    let at = client.at(params, Store::MustExist)?;
    result(&verify::answer(verify::damage(&at.handle.place.workspace)?))
}
