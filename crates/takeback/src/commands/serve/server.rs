//! `server:info` and `status`: what is there, without looking at files.

use serde_json::{Value, json};
use takeback_core::watch::{Standing, Watched};
use takeback_ipc::params::Named;
use takeback_ipc::{Limits, Outcome, Outlet};
use takeback_store::PointKind;

use super::client::{Client, told};
use super::methods::METHODS;
use crate::args::LogArgs;
use crate::commands::log;
use crate::error::CommandError;
use crate::place::Store;
use crate::settings::Settings;

/// Of the protocol. What is only added does not change it.
const PROTOCOL: u32 = 1;

pub(super) fn info(client: &mut Client, _: &Named, _: &Outlet) -> Outcome {
    let limits = Limits::default();
    // Settings that cannot be read allow nothing.
    let allows = Settings::load(client.start(), client.home())
        .is_ok_and(|settings| settings.allow_agent_rewind());
    told(&json!({
        "name": "takeback",
        "version": env!("CARGO_PKG_VERSION"),
        "protocol": PROTOCOL,
        "pid": std::process::id(),
        "home": client.home().to_string_lossy(),
        "workspace": client.start().to_string_lossy(),
        "allowAgentRewind": allows,
        "watch": client.watchlist().is_some(),
        "methods": METHODS.iter().map(|method| method.name).collect::<Vec<_>>(),
        "limits": {
            "messageBytes": limits.frame,
            "batchCalls": limits.batch,
            "unreadBytes": limits.unread,
            "stallMs": limits.stall.as_millis(),
            "clients": limits.clients,
        },
    }))
}

pub(super) fn status(client: &mut Client, params: &Named, _: &Outlet) -> Outcome {
    let at = client.at(params, Store::MustExist)?;
    let place = &at.handle.place;
    let store = &*place.workspace.store;
    let newest = LogArgs { limit: 1, session: None, all: false };
    let newest = log::list(&place.workspace, &newest)?.told;
    let status = || -> Result<_, takeback_store::StoreError> {
        let points = store.points()?;
        let sessions = store.sessions()?;
        Ok(json!({
            "root": place.workspace.root.path().to_string_lossy(),
            "recording": place.settings.is_enabled(),
            "seq": store.head()?.seq,
            "points": points.iter().filter(|point| point.kind != PointKind::Safety).count(),
            "sessions": sessions.len(),
            "openTurns": sessions.iter().filter(|one| one.open_turn.is_some()).count(),
            "openCalls": store.live_calls()?.len(),
            "point": newest.first().map(|(_, told)| told),
            "watch": place.workspace.watched.as_deref().map(watch),
        }))
    };
    told(&status().map_err(CommandError::from)?)
}

/// How a tree is watched: so many folders, or not yet or not any more, and why.
fn watch(watched: &Watched) -> Value {
    match watched.standing() {
        Standing::Watching { folders } => json!({ "folders": folders, "why": null }),
        Standing::Scanning(why) => json!({ "folders": null, "why": why.reason() }),
    }
}
