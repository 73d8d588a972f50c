//! Checks Takeback itself: its home, its settings, and this workspace's store.

use std::os::unix::fs::PermissionsExt as _;
use std::path::Path;

use takeback_core::Inbox;
use takeback_store::{PointKind, StoreError};

use super::{Finding, Health};
use crate::commands::disk_limits;
use crate::commands::verify::damage_beside;
use crate::error::{LOST_DATABASE, PRE_RELEASE};
use crate::heartbeat::{Heartbeat, Refusal, refusals};
use crate::marker::{ACKNOWLEDGE, Markers};
use crate::missed_events;
use crate::place::{Location, tilde_path};
use crate::probe::not_writable;
use crate::screen::{bytes, count, plain};
use crate::settings::{Settings, table};
use crate::size::folder_bytes;
use crate::stores;
use crate::time::{ago, now};

pub(super) struct State {
    pub(super) home_bytes: u64,
    pub(super) findings: Vec<Finding>,
}

impl State {
    pub(super) fn of(location: &Location, beats: &[Heartbeat]) -> Self {
        let home_bytes = folder_bytes(&location.home);
        let mut findings = vec![home(&location.home, home_bytes)];
        findings.extend(writing(location));
        findings.extend(histories(location));
        findings.extend(too_old(beats));
        findings.extend(settings(location));
        findings.extend(workspace(location));
        findings.extend(room(location));
        Self { home_bytes, findings }
    }
}

fn home(home: &Path, size: u64) -> Finding {
    let shown = tilde_path(home);
    let Ok(about) = std::fs::metadata(home) else {
        return Finding::new(Health::None, format!("{shown}: nothing has been recorded yet"));
    };
    let mode = about.permissions().mode() & 0o777;
    if mode & 0o077 != 0 {
        let what = format!("{shown} can be read by others (mode {mode:o})");
        return Finding::new(Health::Warning, what).next(format!("chmod 700 {shown}"));
    }
    let stores = stores::stores(home).len();
    let what = format!("{shown}: {} in {}", bytes(size), count(stores, "workspace"));
    Finding::new(Health::Good, what)
}

fn writing(location: &Location) -> Option<Finding> {
    let found = not_writable(&location.home, &location.root)?;
    Some(Finding::new(Health::Broken, found.what()).next(found.next()))
}

/// Lost histories of this home, and whether the next loss would be noticed.
fn histories(location: &Location) -> Vec<Finding> {
    let Some(markers) = Markers::of_user() else { return Vec::new() };
    let gone = markers.lost_histories(&location.home).into_iter();
    let mut findings: Vec<Finding> =
        gone.map(|gone| Finding::new(Health::Broken, gone.what()).next(ACKNOWLEDGE)).collect();
    if stores::is_protected(&location.root, &location.home)
        && let Err(error) = markers.is_usable()
    {
        let folder = tilde_path(markers.folder());
        let what = format!("a deleted store would go unnoticed: {folder} cannot be used: {error}");
        findings.push(Finding::new(Health::Warning, what).next("Make it a writable folder."));
    }
    findings
}

/// Older copies of Takeback that hooks ran, and that newer stores refused.
fn too_old(beats: &[Heartbeat]) -> Vec<Finding> {
    let tell = |(beat, refusal, is_last): (&Heartbeat, &Refusal, bool)| {
        let what = format!(
            "{} is too old for {} and recorded nothing there {} (session {} of {})",
            refusal.program(),
            tilde_path(Path::new(&refusal.store)),
            ago(refusal.at, now()),
            beat.session,
            beat.agent,
        );
        let health = if is_last { Health::Broken } else { Health::Warning };
        Finding::new(health, plain(&what)).next("Update or remove that copy.")
    };
    refusals(beats, None, now()).into_iter().map(tell).collect()
}

fn settings(location: &Location) -> Vec<Finding> {
    let settings = match Settings::load(&location.root, &location.home) {
        Ok(settings) => settings,
        Err(error) => return vec![Finding::new(Health::Broken, error.line())],
    };
    let mut findings: Vec<Finding> = settings
        .refusals
        .iter()
        .chain(&settings.warnings)
        .map(|warning| Finding::new(Health::Warning, warning.clone()))
        .collect();
    if !settings.is_enabled() {
        let origin = &settings.setting(table::ENABLED).origin;
        let what = format!("recording is off: {} is false ({origin})", table::ENABLED);
        findings.push(Finding::new(Health::Warning, what).next("Set it to true to record again."));
    }
    findings
}

fn workspace(location: &Location) -> Vec<Finding> {
    let root = tilde_path(&location.root);
    let store = stores::store_of(&location.root, &location.home);
    match look(location, &store) {
        Ok(mut findings) => {
            let damage = damage_beside(&location.root, &store).unwrap_or_default();
            let broken =
                |what| Finding::new(Health::Broken, format!("the store of {root}: {what}"));
            findings.extend(damage.into_iter().map(broken));
            findings
        }
        Err(StoreError::Missing { .. }) => {
            vec![Finding::new(Health::None, format!("{root} is not protected yet"))]
        }
        Err(error @ StoreError::LostDatabase { .. }) => {
            let what = format!("the history of {root} cannot be used: {error}");
            vec![Finding::new(Health::Broken, what).next(LOST_DATABASE)]
        }
        Err(error) => {
            let what = format!("the store of {root} cannot be used: {error}");
            let next = match error {
                StoreError::PreRelease { .. } => PRE_RELEASE,
                StoreError::Newer { .. } => "Update this Takeback; the store was not touched.",
                _ => "`takeback verify` shows what is damaged.",
            };
            vec![Finding::new(Health::Broken, what).next(next)]
        }
    }
}

/// Exceeded size limits of this workspace and of the home.
fn room(location: &Location) -> Vec<Finding> {
    let Ok(settings) = Settings::load(&location.root, &location.home) else { return Vec::new() };
    let folder = stores::store_of(&location.root, &location.home);
    let used = folder_bytes(&folder);
    let mut findings = Vec::new();
    if let Ok(Some(over)) =
        stores::open(&folder).and_then(|store| disk_limits::over(&*store, used, &settings))
    {
        let what =
            format!("the store of {} is {}", tilde_path(&location.root), disk_limits::words(&over));
        findings
            .push(Finding::new(Health::Warning, what).next("`takeback cleanup` reclaims space."));
    }
    let all = disk_limits::Home::of(&location.home, &settings);
    if all.is_over() {
        findings.push(
            Finding::new(Health::Warning, all.words())
                .next("`takeback cleanup` drops points of the least recently used ones."),
        );
    }
    findings
}

fn look(location: &Location, folder: &Path) -> Result<Vec<Finding>, StoreError> {
    let root = tilde_path(&location.root);
    // Measured before the store is opened: an open SQLite database has extra files.
    let size = bytes(folder_bytes(folder));
    let store = stores::open(folder)?;
    let points = store.points()?;
    let listed = points.iter().filter(|point| point.kind != PointKind::Safety).count();
    let scanned = store.last_scan()?.map(|at| format!(", scanned {}", ago(at, now())));
    let what = format!("{root}: {}, {size}{}", count(listed, "point"), scanned.unwrap_or_default());
    let mut findings = vec![Finding::new(Health::Good, what)];
    if !store.open_rewinds()?.is_empty() {
        let what = format!("a rewind in {root} was interrupted, or is still running");
        findings.push(Finding::new(Health::Warning, what).next("`takeback recover` finishes it."));
    }
    for loss in store.losses()? {
        let what = format!("history of {root} is damaged: {loss}");
        findings.push(
            Finding::new(Health::Warning, what)
                .next("What is left is intact; a backup of the store's folder has the rest."),
        );
    }
    if Inbox::of(folder).is_empty().is_ok_and(|empty| !empty) {
        let what = format!("events are waiting to be recorded in {root}");
        findings
            .push(Finding::new(Health::Warning, what).next("The next command there records them."));
    }
    if let Some(what) = missed_events::summary(&missed_events::read_events(folder)) {
        let next = "The next hook or command there scans for the changes since.";
        findings.push(Finding::new(Health::Warning, what).next(next));
    }
    Ok(findings)
}
