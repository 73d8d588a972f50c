//! `server:info` and `status`, without reading the workspace's files.

use takeback_core::watch::{TreeWatch, WatchStatus};
use takeback_ipc::{Limits, NamedParams, Outcome, Outlet};
use takeback_store::PointKind;

use super::client::{Client, result};
use super::methods::METHODS;
use crate::answers::{self, ServerInfo, ServerLimits, ServerStatus, WatchState};
use crate::commands::log;
use crate::error::CommandError;
use crate::place::{Place, Store};
use crate::settings::Settings;

/// The protocol's version. Additions do not change it.
const PROTOCOL: u32 = 1;

pub(super) fn info(client: &mut Client, _: &NamedParams, _: &Outlet) -> Outcome {
    let limits = Limits::default();
    // Unreadable settings allow nothing.
    let allows = Settings::load(client.start(), client.home())
        .is_ok_and(|settings| settings.allow_agent_rewind());
    result(&ServerInfo {
        name: "takeback".to_owned(),
        version: env!("CARGO_PKG_VERSION").to_owned(),
        protocol: PROTOCOL,
        pid: std::process::id(),
        home: answers::place(client.home()),
        workspace: answers::place(client.start()),
        allow_agent_rewind: allows,
        watch: client.watchlist().is_some(),
        methods: METHODS.iter().map(|method| method.name.to_owned()).collect(),
        limits: ServerLimits {
            message_bytes: limits.frame,
            batch_calls: limits.batch,
            unread_bytes: limits.unread,
            stall_ms: u64::try_from(limits.stall.as_millis()).unwrap_or(u64::MAX),
            clients: limits.clients,
        },
    })
}

pub(super) fn status(client: &mut Client, params: &NamedParams, _: &Outlet) -> Outcome {
    let at = client.at(params, Store::MustExist)?;
    result(&status_of(&at.handle.place)?)
}

fn status_of(place: &Place) -> Result<ServerStatus, CommandError> {
    let store = &*place.workspace.store;
    let newest = log::newest_point(&place.workspace)?;
    let (points, sessions) = (store.points()?, store.sessions()?);
    Ok(ServerStatus {
        root: answers::place(place.workspace.root.path()),
        recording: place.settings.is_enabled(),
        seq: store.head()?.seq.0,
        points: points.iter().filter(|point| point.kind != PointKind::Safety).count(),
        sessions: sessions.len(),
        open_turns: sessions.iter().filter(|one| one.open_turn.is_some()).count(),
        open_calls: store.live_calls()?.len(),
        point: newest,
        watch: place.workspace.watched.as_deref().map(watch_state),
    })
}

fn watch_state(watched: &TreeWatch) -> WatchState {
    match watched.status() {
        WatchStatus::Watching { folders } => WatchState { folders: Some(folders), why: None },
        WatchStatus::Scanning(why) => {
            WatchState { folders: None, why: Some(why.reason().to_owned()) }
        }
    }
}
