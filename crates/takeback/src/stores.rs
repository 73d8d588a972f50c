//! The stores in Takeback's home: where they are, how to list them, and how to rename and remove them.
//!
//! The file `root` in each store names its workspace. There is no other registry.

use std::collections::BTreeSet;
use std::ffi::{OsStr, OsString};
use std::fs::File;
use std::io;
use std::os::unix::ffi::{OsStrExt as _, OsStringExt as _};
use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::time::Duration;

use serde::{Deserialize, Serialize};
use takeback_agents::session_folder;
use takeback_core::fork::{Origin, fork_origin};
use takeback_core::git_state;
use takeback_core::lock::{Hold, Lock, lock};
use takeback_core::system_random;
use takeback_store::{
    Entry, JsonStates, SessionId, SqliteStates, SqliteStore, States, Store, StoreError,
    StoreSummary, Timestamp, WorkPath, disk,
};

use crate::error::{CommandError, Kind};
use crate::marker::Markers;
use crate::missed_events;
use crate::time::now;

const WORKSPACES: &str = "workspaces";
const PROJECTS: &str = "projects";
const SESSIONS: &str = "sessions";
/// Holds the root's path, so that the store can be traced back to its workspace.
const ROOT_FILE: &str = "root";
/// Holds a [`StoreId`].
const ID_FILE: &str = "id";
/// A store that is being removed.
const FORGOTTEN: &[u8] = b".forgotten-";
/// How long to wait for a recorder that is about to finish.
const PATIENCE: Duration = Duration::from_secs(2);

/// A store's folder and its workspace.
#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord)]
pub(crate) struct StoreFolder {
    /// The last known root of the workspace; empty if it cannot be read.
    pub(crate) root: PathBuf,
    pub(crate) folder: PathBuf,
}

/// `<home>/workspaces/<folder name>-<16 hex of BLAKE3(canonical path)>`
pub(crate) fn store_of(root: &Path, home: &Path) -> PathBuf {
    let hash = blake3::hash(root.as_os_str().as_bytes()).to_hex();
    let mut name = root.file_name().map_or_else(Vec::new, |name| name.as_bytes().to_vec());
    name.truncate(200);
    name.push(b'-');
    name.extend_from_slice(&hash.as_bytes()[..16]);
    home.join(WORKSPACES).join(OsString::from_vec(name))
}

/// `<home>/projects/<name of the store's folder>`: the states of its agents, if they are files.
pub(crate) fn states_of(store: &Path, home: &Path) -> PathBuf {
    let name = store.file_name().unwrap_or_default();
    home.join(PROJECTS).join(name)
}

/// `<home>/sessions`: where `chat` describes its sessions for other programs.
pub(crate) fn sessions_in(home: &Path) -> PathBuf {
    home.join(SESSIONS)
}

/// Whether the folder `root` has a store, damaged or not.
pub(crate) fn is_protected(root: &Path, home: &Path) -> bool {
    SqliteStore::exists(&store_of(root, home)).is_ok_and(|there| there)
}

/// The file without which there is no store.
pub(crate) fn database_of(root: &Path, home: &Path) -> PathBuf {
    SqliteStore::database_in(&store_of(root, home))
}

/// Distinguishes a store from an earlier one in the same place.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub(crate) struct StoreId {
    pub(crate) id: String,
    pub(crate) made_at: Timestamp,
}

impl StoreId {
    fn new() -> Self {
        Self { id: format!("{:016x}", system_random()), made_at: now() }
    }
}

/// The id of the store in `folder`; `None`: there is no store, or its id is unreadable.
pub(crate) fn id_of(folder: &Path) -> io::Result<Option<StoreId>> {
    match std::fs::read(folder.join(ID_FILE)) {
        Ok(bytes) => Ok(serde_json::from_slice(&bytes).ok()),
        Err(error) if error.kind() == io::ErrorKind::NotFound => Ok(None),
        Err(error) => Err(error),
    }
}

// Only the following functions choose a medium: everything else uses the traits.

/// Opens the store in `folder`; [`StoreError::Missing`] if there is none.
pub(crate) fn open(folder: &Path) -> Result<Box<dyn Store>, StoreError> {
    Ok(Box::new(SqliteStore::open(folder)?))
}

/// Checks that this Takeback knows the format of the store in `folder`, without opening it.
pub(crate) fn check_format(folder: &Path) -> Result<(), StoreError> {
    SqliteStore::check_format(folder)
}

/// Reads the few numbers of a status line, without waiting for other processes.
pub(crate) fn summarize(folder: &Path) -> Result<StoreSummary, StoreError> {
    takeback_store::summarize(folder)
}

/// Where agents' states are stored.
pub(crate) enum StatesMedium {
    /// In the store itself.
    Sqlite,
    /// As JSON files next to the stores.
    Json,
}

/// The states of agents that belong to the store in `folder`.
pub(crate) fn open_states(folder: &Path, home: &Path, medium: &StatesMedium) -> Arc<dyn States> {
    match medium {
        StatesMedium::Sqlite => Arc::new(SqliteStates::at(folder)),
        StatesMedium::Json => Arc::new(JsonStates::at(states_of(folder, home).join("persistence"))),
    }
}

/// Where the workspace of the store in `folder` was forked from. `None`: it is not a fork, or that cannot be read.
pub(crate) fn origin_of(folder: &Path) -> Option<Origin> {
    fork_origin(folder).ok().flatten()
}

/// Opens the store in `folder`, and creates it first if there is none.
pub(crate) fn create(folder: &Path, root: &Path) -> Result<Box<dyn Store>, CommandError> {
    // If the check fails, opening the store reports the error.
    let is_missing = || SqliteStore::exists(folder).is_ok_and(|there| !there);
    let is_unnamed = || !folder.join(ROOT_FILE).exists();
    if is_missing() || is_unnamed() {
        disk::make_private_folder(folder)
            .map_err(|source| failed(folder, "creating it", source))?;
        // If several processes or threads create the store, only one may write its id: two ids would look
        // like a lost history.
        let _alone = lock_exclusively(folder)?;
        if is_unnamed() {
            note_root(folder, root)?;
        }
        if is_missing() {
            // The id first, so that a new database never has the id of an earlier one.
            note_id(folder)?;
            SqliteStore::create(folder)?;
        }
    }
    Ok(Box::new(SqliteStore::create(folder)?))
}

fn note_id(folder: &Path) -> Result<(), StoreError> {
    let path = folder.join(ID_FILE);
    let noted = serde_json::to_vec(&StoreId::new())
        .map_err(io::Error::from)
        .and_then(|bytes| disk::replace_private_file_durably(&path, &bytes));
    noted.map_err(|source| failed(&path, "writing the store's id", source))
}

fn note_root(folder: &Path, root: &Path) -> Result<(), StoreError> {
    let path = folder.join(ROOT_FILE);
    disk::replace_private_file(&path, root.as_os_str().as_bytes())
        .map(drop)
        .map_err(|source| StoreError::Io { path, doing: "writing the workspace's root", source })
}

/// The root noted in the store at `folder`, if it is not `root`.
pub(crate) fn wrong_root(folder: &Path, root: &Path) -> Option<PathBuf> {
    let noted = std::fs::read(folder.join(ROOT_FILE)).unwrap_or_default();
    (noted != root.as_os_str().as_bytes()).then(|| PathBuf::from(OsString::from_vec(noted)))
}

/// Corrects the root noted in a store. Returns whether it was wrong.
pub(crate) fn fix_root(folder: &Path, root: &Path) -> Result<bool, StoreError> {
    let is_wrong = wrong_root(folder, root).is_some();
    if is_wrong {
        note_root(folder, root)?;
    }
    Ok(is_wrong)
}

/// All stores, by root.
pub(crate) fn stores(home: &Path) -> Vec<StoreFolder> {
    let Ok(folders) = std::fs::read_dir(home.join(WORKSPACES)) else { return Vec::new() };
    let mut stores: Vec<StoreFolder> = folders
        .filter_map(Result::ok)
        .filter(|folder| !folder.file_name().as_bytes().starts_with(FORGOTTEN))
        .filter_map(|folder| {
            let folder = folder.path();
            match std::fs::read(folder.join(ROOT_FILE)) {
                Ok(root) => {
                    let root = PathBuf::from(OsString::from_vec(root));
                    SqliteStore::exists(&folder)
                        .is_ok_and(|there| there)
                        .then_some(StoreFolder { root, folder })
                }
                Err(error) if error.kind() == io::ErrorKind::PermissionDenied => {
                    Some(StoreFolder { root: PathBuf::new(), folder })
                }
                Err(_) => None,
            }
        })
        .collect();
    stores.sort();
    stores
}

/// The store of the folder that is, or was, at `path`.
pub(crate) fn find(path: &Path, home: &Path) -> Option<StoreFolder> {
    if is_protected(path, home) {
        return Some(StoreFolder { root: path.to_owned(), folder: store_of(path, home) });
    }
    stores(home).into_iter().find(|kept| kept.root == path)
}

/// `path` with links resolved, even if only its parent exists.
pub(crate) fn real_path(path: &Path) -> io::Result<PathBuf> {
    let path = std::path::absolute(path)?;
    if let Ok(real) = std::fs::canonicalize(&path) {
        return Ok(real);
    }
    Ok(match (path.parent().map(std::fs::canonicalize), path.file_name()) {
        (Some(Ok(parent)), Some(name)) => parent.join(name),
        _ => path,
    })
}

/// Workspaces below this one: they own their paths.
pub(crate) fn nested(root: &Path, home: &Path) -> Vec<WorkPath> {
    let below = |kept: StoreFolder| {
        let below = kept.root.strip_prefix(root).ok()?;
        WorkPath::new(below.as_os_str().as_bytes()).ok()
    };
    stores(home).into_iter().filter_map(below).collect()
}

/// While this is held, no other process records into the store or rewinds from it.
pub(crate) fn lock_exclusively(folder: &Path) -> Result<Lock, CommandError> {
    let path = folder.join("lock");
    let held = lock(&path, Hold::Exclusive, PATIENCE).map_err(|source| StoreError::Io {
        path,
        doing: "locking the workspace",
        source,
    })?;
    held.ok_or_else(|| {
        CommandError::new(Kind::Locked, "another command has the workspace locked")
            .hint("Wait until it is done, then try again.")
    })
}

/// Removes a store and everything that belongs to it.
pub(crate) fn remove(folder: &Path, home: &Path) -> Result<(), StoreError> {
    missed_events::forget(folder)
        .map_err(|source| failed(folder, "removing its notes of missed events", source))?;
    // The marker first: after a crash in between, the store is not reported as lost.
    if let Some(markers) = Markers::of_user() {
        markers
            .remove(folder)
            .map_err(|source| failed(markers.folder(), "removing the store's marker", source))?;
    }
    // The sessions of an unreadable store are unknown.
    if let Ok(sessions) = open(folder).and_then(|store| store.sessions()) {
        let ids: Vec<SessionId> = sessions.into_iter().map(|session| session.id).collect();
        remove_sessions(&ids, home)?;
    }
    let states = states_of(folder, home);
    if states.exists() {
        remove_folder(&states)?;
    }
    remove_folder(folder)
}

/// Removes the descriptions of deleted sessions that were written for other programs.
pub(crate) fn remove_sessions(gone: &[SessionId], home: &Path) -> Result<(), StoreError> {
    for session in gone {
        let folder = session_folder(&sessions_in(home), &session.0);
        // The target of a link is not Takeback's.
        if folder.symlink_metadata().is_ok_and(|found| found.is_dir()) {
            remove_folder(&folder)?;
        }
    }
    Ok(())
}

/// The rename makes it disappear at once; what a crash leaves behind, [`clear_leftovers`] removes.
fn remove_folder(folder: &Path) -> Result<(), StoreError> {
    let mut name = FORGOTTEN.to_vec();
    name.extend_from_slice(format!("{:016x}", system_random()).as_bytes());
    let doomed = folder.with_file_name(OsStr::from_bytes(&name));
    rename(folder, &doomed)?;
    remove_below(&doomed).map_err(|source| failed(&doomed, "removing it", source))
}

/// Removes what an interrupted [`remove`] left.
pub(crate) fn clear_leftovers(home: &Path) -> Result<(), StoreError> {
    let folders =
        [WORKSPACES, PROJECTS, SESSIONS].map(|folder| std::fs::read_dir(home.join(folder)));
    for folder in folders.into_iter().filter_map(Result::ok).flatten().filter_map(Result::ok) {
        if folder.file_name().as_bytes().starts_with(FORGOTTEN) {
            remove_below(&folder.path())
                .map_err(|source| failed(&folder.path(), "removing it", source))?;
        }
    }
    Ok(())
}

/// Connects the store in `folder` to the workspace at `root`.
pub(crate) fn relocate(folder: &Path, root: &Path, home: &Path) -> Result<(), StoreError> {
    // The root first: after a crash in between, the store still has the name under which the old root finds
    // it, and the same command finishes the move.
    note_root(folder, root)?;
    let file = folder.join(ROOT_FILE);
    File::open(&file)
        .and_then(|noted| disk::sync(&noted))
        .and_then(|()| disk::sync_folder(folder))
        .map_err(|source| failed(&file, "syncing it", source))?;
    let (states, store) = (states_of(folder, home), store_of(root, home));
    if states.exists() {
        rename(&states, &states_of(&store, home))?;
    }
    if let Some(markers) = Markers::of_user() {
        markers
            .relocate(folder, &store, root)
            .map_err(|source| failed(markers.folder(), "renaming the store's marker", source))?;
    }
    rename(folder, &store)
}

fn rename(from: &Path, to: &Path) -> Result<(), StoreError> {
    disk::place_private_file(from, to).map_err(|source| failed(from, "renaming it", source))?;
    let above = from.parent().unwrap_or(from);
    disk::sync_folder(above).map_err(|source| failed(above, "syncing it", source))
}

fn remove_below(folder: &Path) -> io::Result<()> {
    for entry in std::fs::read_dir(folder)? {
        let entry = entry?;
        if entry.file_type()?.is_dir() {
            remove_below(&entry.path())?;
        } else {
            disk::remove_store_file(&entry.path())?;
        }
    }
    match (folder.parent(), folder.file_name()) {
        (Some(above), Some(name)) => disk::remove_folder(File::open(above)?, name.as_bytes()),
        _ => Ok(()),
    }
}

fn failed(path: &Path, doing: &'static str, source: io::Error) -> StoreError {
    StoreError::Io { path: path.to_owned(), doing, source }
}

/// Where the folder `root`, which has no store, may have been before: the only missing root whose workspace
/// looks like it.
pub(crate) fn moved_here(root: &Path, home: &Path) -> Option<PathBuf> {
    let mut gone: Vec<StoreFolder> = stores(home)
        .into_iter()
        .filter(|kept| kept.root.is_absolute() && !kept.root.exists())
        .collect();
    gone.retain(|kept| kept.root.file_name() == root.file_name() || looks_like(kept, root));
    match gone.as_slice() {
        [one] => Some(one.root.clone()),
        _ => None,
    }
}

/// The same commit is checked out, or all known top-level names exist.
fn looks_like(kept: &StoreFolder, root: &Path) -> bool {
    let Ok(store) = open(&kept.folder) else { return false };
    let head = git_state(root).and_then(|git| git.head);
    let last = store.points().unwrap_or_default().pop().and_then(|point| point.git?.head);
    if head.is_some() && head == last {
        return true;
    }
    let known: BTreeSet<Vec<u8>> = store
        .latest()
        .unwrap_or_default()
        .iter()
        .filter(|(path, entry)| !path.is_outside() && *entry != Entry::Absent)
        .filter_map(|(path, _)| path.as_bytes().split(|b| *b == b'/').next().map(<[u8]>::to_vec))
        .collect();
    // A single name, such as README, occurs in many folders.
    known.len() > 1 && known.iter().all(|name| root.join(OsStr::from_bytes(name)).exists())
}
