//! `session:*`.

use takeback_core::Workspace;
use takeback_core::retention::archive_session;
use takeback_ipc::{Fault, NamedParams, Outcome, Outlet};
use takeback_store::SessionId;

use super::client::{Client, result};
use super::fault::{self, fault};
use crate::args::SessionsArgs;
use crate::commands::{cleanup, sessions};
use crate::error::CommandError;
use crate::place::Store;

pub(super) fn list(client: &mut Client, params: &NamedParams, _: &Outlet) -> Outcome {
    let limit = params.optional("limit")?.unwrap_or(SessionsArgs::LIMIT);
    let at = client.at(params, Store::MustExist)?;
    result(&sessions::list(&at.handle.place.workspace, limit)?)
}

pub(super) fn archive(client: &mut Client, params: &NamedParams, _: &Outlet) -> Outcome {
    let id: String = params.required("sessionId")?;
    let at = client.at(params, Store::MustExist)?;
    let id = exactly(&at.handle.place.workspace, id)?;
    archive_session(&mut at.handle.place.workspace, &id).map_err(CommandError::from)?;
    result(&sessions::archived(&at.handle.place, &id)?)
}

pub(super) fn delete(client: &mut Client, params: &NamedParams, _: &Outlet) -> Outcome {
    let id: String = params.required("sessionId")?;
    let at = client.mended(params, Store::MustExist)?;
    let id = exactly(&at.handle.place.workspace, id)?;
    let deleted = sessions::delete_now(&mut at.handle.place, &at.options, &id)?;
    result(&cleanup::answer(&deleted))
}

/// The session with exactly this id. A prefix is an error: a program must not delete whatever happens to
/// match.
fn exactly(workspace: &Workspace, id: String) -> Result<SessionId, Fault> {
    let id = SessionId(id);
    match workspace.store.session(&id).map_err(CommandError::from)? {
        Some(_) => Ok(id),
        None => {
            let text = format!("there is no session {id}");
            Err(fault(fault::UNKNOWN_SESSION, text))
        }
    }
}
