//! `checkpoint:fork` and `checkpoint:compare`.

use std::path::PathBuf;

use takeback_core::fork::ForkExtent;
use takeback_ipc::{NamedParams, Outcome, Outlet};

use super::client::{Client, result};
use crate::commands::conversation::copy_at;
use crate::commands::{compare as comparison, fork as forks};
use crate::error::CommandError;
use crate::place::{self, Store};

pub(super) fn fork(client: &mut Client, params: &NamedParams, _: &Outlet) -> Outcome {
    let (point, folder): (String, PathBuf) =
        (params.required("point")?, params.required("folder")?);
    let count: Option<u16> = params.optional("count")?;
    let extent = if params.or_default("all")? { ForkExtent::All } else { ForkExtent::Covered };
    let at = client.mended(params, Store::MustExist)?;
    let start = place::start(&at.options)?;
    let place = &mut at.handle.place;
    let point = forks::point_to_fork(place, &point)?;
    let folders = forks::folders(&start.join(folder), count);
    let made = forks::fork_into(place, &point, &folders, extent)?;
    let copy = copy_at(&place.workspace, &made.point).map_err(CommandError::from)?;
    result(&forks::answer(&made, copy.as_ref()))
}

pub(super) fn compare(client: &mut Client, params: &NamedParams, _: &Outlet) -> Outcome {
    let folders: Vec<PathBuf> = params.required("folders")?;
    let options = client.options_for(params)?;
    let (start, home) = (place::start(&options)?, place::home(&options)?);
    let folders: Vec<PathBuf> = folders.iter().map(|folder| start.join(folder)).collect();
    result(&comparison::answer(&comparison::compared(&folders, &home)?))
}
