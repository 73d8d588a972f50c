//! How Takeback itself is: its home, its settings, the store of this workspace.

use std::os::unix::fs::PermissionsExt as _;
use std::path::Path;

use takeback_core::Inbox;
use takeback_store::{PointKind, RewindState, StoreError};

use super::{Health, Told};
use crate::commands::room;
use crate::commands::verify::damage_beside;
use crate::error::{LOST_DATABASE, PRE_RELEASE};
use crate::heartbeat::{Heartbeat, Refusal, refusals};
use crate::marker::{ACKNOWLEDGE, Markers};
use crate::missed;
use crate::place::{Here, shown};
use crate::probe::not_writable;
use crate::screen::{bytes, count, plain};
use crate::settings::{Settings, table};
use crate::size::folder_bytes;
use crate::stores;
use crate::time::{ago, now};

pub(super) struct State {
    pub(super) home_bytes: u64,
    pub(super) told: Vec<Told>,
}

impl State {
    pub(super) fn of(here: &Here, beats: &[Heartbeat]) -> Self {
        let home_bytes = folder_bytes(&here.home);
        let mut told = vec![home(&here.home, home_bytes)];
        told.extend(writing(here));
        told.extend(histories(here));
        told.extend(too_old(beats));
        told.extend(settings(here));
        told.extend(workspace(here));
        told.extend(room(here));
        Self { home_bytes, told }
    }
}

fn home(home: &Path, size: u64) -> Told {
    let shown = shown(home);
    let Ok(about) = std::fs::metadata(home) else {
        return Told::new(Health::None, format!("{shown}: nothing has been recorded yet"));
    };
    let mode = about.permissions().mode() & 0o777;
    if mode & 0o077 != 0 {
        let what = format!("{shown} can be read by others (mode {mode:o})");
        return Told::new(Health::Warning, what).next(format!("chmod 700 {shown}"));
    }
    let stores = stores::stores(home).len();
    let what = format!("{shown}: {} in {}", bytes(size), count(stores, "workspace"));
    Told::new(Health::Good, what)
}

fn writing(here: &Here) -> Option<Told> {
    let found = not_writable(&here.home, &here.root)?;
    Some(Told::new(Health::Broken, found.what()).next(found.next()))
}

/// Histories of this home that are gone, and whether the next loss would be noticed.
fn histories(here: &Here) -> Vec<Told> {
    let Some(markers) = Markers::of_user() else { return Vec::new() };
    let gone = markers.all_gone(&here.home).into_iter();
    let mut told: Vec<Told> =
        gone.map(|gone| Told::new(Health::Broken, gone.what()).next(ACKNOWLEDGE)).collect();
    if stores::is_protected(&here.root, &here.home)
        && let Err(error) = markers.is_usable()
    {
        let folder = shown(markers.folder());
        let what = format!("a deleted store would go unnoticed: {folder} cannot be used: {error}");
        told.push(Told::new(Health::Warning, what).next("Make it a folder that you can write to."));
    }
    told
}

/// Older copies of Takeback that hooks ran, and that newer stores refused.
fn too_old(beats: &[Heartbeat]) -> Vec<Told> {
    let tell = |(beat, refusal, is_last): (&Heartbeat, &Refusal, bool)| {
        let what = format!(
            "{} is too old for {} and recorded nothing there {} (session {} of {})",
            refusal.program(),
            shown(Path::new(&refusal.store)),
            ago(refusal.at, now()),
            beat.session,
            beat.agent,
        );
        let health = if is_last { Health::Broken } else { Health::Warning };
        Told::new(health, plain(&what)).next("Update or remove that one.")
    };
    refusals(beats, None, now()).into_iter().map(tell).collect()
}

fn settings(here: &Here) -> Vec<Told> {
    let settings = match Settings::load(&here.root, &here.home) {
        Ok(settings) => settings,
        Err(error) => return vec![Told::new(Health::Broken, error.line())],
    };
    let mut told: Vec<Told> = settings
        .refusals
        .iter()
        .chain(&settings.warnings)
        .map(|warning| Told::new(Health::Warning, warning.clone()))
        .collect();
    if !settings.is_enabled() {
        let origin = &settings.setting(table::ENABLED).origin;
        let what = format!("recording is off: {} is false ({origin})", table::ENABLED);
        told.push(Told::new(Health::Warning, what).next("Set it to true to record again."));
    }
    told
}

fn workspace(here: &Here) -> Vec<Told> {
    let root = shown(&here.root);
    let store = stores::store_of(&here.root, &here.home);
    match look(here, &store) {
        Ok(mut told) => {
            let damage = damage_beside(&here.root, &store).unwrap_or_default();
            let broken = |what| Told::new(Health::Broken, format!("the store of {root}: {what}"));
            told.extend(damage.into_iter().map(broken));
            told
        }
        Err(StoreError::Missing { .. }) => {
            vec![Told::new(Health::None, format!("{root} is not protected yet"))]
        }
        Err(error @ StoreError::LostDatabase { .. }) => {
            let what = format!("the history of {root} cannot be used: {error}");
            vec![Told::new(Health::Broken, what).next(LOST_DATABASE)]
        }
        Err(error) => {
            let what = format!("the store of {root} cannot be used: {error}");
            let next = match error {
                StoreError::PreRelease { .. } => PRE_RELEASE,
                StoreError::Newer { .. } => "Update this Takeback; the store was not touched.",
                _ => "`takeback verify` shows what is damaged.",
            };
            vec![Told::new(Health::Broken, what).next(next)]
        }
    }
}

/// What is over its limit, of this workspace and of all together.
fn room(here: &Here) -> Vec<Told> {
    let Ok(settings) = Settings::load(&here.root, &here.home) else { return Vec::new() };
    let folder = stores::store_of(&here.root, &here.home);
    let used = folder_bytes(&folder);
    let mut told = Vec::new();
    if let Ok(Some(over)) =
        stores::open(&folder).and_then(|store| room::over(&*store, used, &settings))
    {
        let what = format!("the store of {} is {}", shown(&here.root), room::words(&over));
        told.push(Told::new(Health::Warning, what).next("`takeback cleanup` reclaims space."));
    }
    let all = room::Home::of(&here.home, &settings);
    if all.is_over() {
        told.push(
            Told::new(Health::Warning, all.words())
                .next("`takeback cleanup` drops points of the least recently used ones."),
        );
    }
    told
}

fn look(here: &Here, folder: &Path) -> Result<Vec<Told>, StoreError> {
    let root = shown(&here.root);
    // Before it is opened: SQLite has files beside it as long as it is.
    let size = bytes(folder_bytes(folder));
    let store = stores::open(folder)?;
    let points = store.points()?;
    let listed = points.iter().filter(|point| point.kind != PointKind::Safety).count();
    let scanned = store.last_scan()?.map(|at| format!(", scanned {}", ago(at, now())));
    let what = format!("{root}: {}, {size}{}", count(listed, "point"), scanned.unwrap_or_default());
    let mut told = vec![Told::new(Health::Good, what)];
    if store.rewinds()?.iter().any(|rewind| rewind.state == RewindState::Open) {
        let what = format!("a rewind in {root} was interrupted, or is still running");
        told.push(Told::new(Health::Warning, what).next("`takeback recover` finishes it."));
    }
    for loss in store.losses()? {
        let what = format!("history of {root} is damaged: {loss}");
        told.push(
            Told::new(Health::Warning, what)
                .next("What is left is intact; a backup of the store's folder has the rest."),
        );
    }
    if Inbox::of(folder).is_empty().is_ok_and(|empty| !empty) {
        let what = format!("events wait to be recorded in {root}");
        told.push(Told::new(Health::Warning, what).next("The next command there records them."));
    }
    if let Some(what) = missed::summary(&missed::noted(folder)) {
        let next = "The next hook or command there scans for the changes since.";
        told.push(Told::new(Health::Warning, what).next(next));
    }
    Ok(told)
}
