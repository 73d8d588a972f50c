//! `point:*`: points by any of their names.

use takeback_ipc::params::Named;
use takeback_ipc::{Outcome, Outlet};

use super::client::{Client, told};
use crate::args::LogArgs;
use crate::commands::log;
use crate::place::Store;

pub(super) fn list(client: &mut Client, params: &Named, _: &Outlet) -> Outcome {
    let args = LogArgs {
        limit: params.optional("limit")?.unwrap_or(LogArgs::LIMIT),
        session: params.optional("session")?,
        all: params.or_default("all")?,
    };
    let at = client.at(params, Store::MustExist)?;
    let listed = log::list(&at.handle.place.workspace, &args)?;
    told(&listed.told.iter().map(|(_, told)| told).collect::<Vec<_>>())
}
