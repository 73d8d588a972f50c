//! Markers of stores: `$XDG_STATE_HOME/takeback/<16 hex of BLAKE3(store's folder)>.json`, one file per store.
//!
//! A deleted store cannot report its own loss, and the next recorder creates a new one in its place. The
//! marker is kept elsewhere and names the store by its id. A store with another id, or no store, means that
//! the history is lost. A missing marker is written; one that names another store is kept until the user
//! acknowledges the loss. If markers cannot be written, losses go unnoticed, but recording works.

use std::ffi::OsString;
use std::io;
use std::os::unix::ffi::{OsStrExt as _, OsStringExt as _};
use std::path::{Path, PathBuf};

use base64::Engine as _;
use base64::engine::general_purpose::STANDARD;
use rustix::fs::Access;
use serde::{Deserialize, Deserializer, Serialize, Serializer};
use takeback_store::{SqliteStore, Timestamp, disk};

use crate::answers;
use crate::place::{environment, tilde_path, user_home};
use crate::stores::{self, StoreId};
use crate::time::moment;

#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
struct Marker {
    #[serde(with = "path_text")]
    root: PathBuf,
    /// The home that contains the store: a workspace may have stores in several homes.
    #[serde(with = "path_text")]
    home: PathBuf,
    #[serde(with = "path_text")]
    store: PathBuf,
    #[serde(flatten)]
    id: StoreId,
}

/// A lost history.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct LostHistory {
    pub(crate) root: PathBuf,
    pub(crate) store: PathBuf,
    /// When the store was made.
    pub(crate) made_at: Timestamp,
    /// When the store that replaced it was made.
    pub(crate) replaced_at: Option<Timestamp>,
}

/// How to stop the report.
pub(crate) const ACKNOWLEDGE: &str =
    "`takeback doctor --acknowledge` stops this report, once you know why.";

impl LostHistory {
    /// The message without the hint.
    pub(crate) fn what(&self) -> String {
        let store = tilde_path(&self.store);
        let now = match self.replaced_at {
            Some(at) => format!("; an empty one was made {}", moment(at)),
            None => String::new(),
        };
        format!(
            "the history of {} is gone: its store {store}, made {}, no longer exists{now}",
            tilde_path(&self.root),
            moment(self.made_at),
        )
    }

    pub(crate) fn answer(&self) -> answers::LostHistory {
        answers::LostHistory {
            root: answers::place(&self.root),
            store: answers::place(&self.store),
            made_at: answers::time(self.made_at),
            replaced_at: self.replaced_at.map(answers::time),
        }
    }
}

/// The folder with the markers.
#[derive(Debug, Clone)]
pub(crate) struct Markers {
    folder: PathBuf,
}

impl Markers {
    /// The current user's markers; `None`: there is no home folder.
    pub(crate) fn of_user() -> Option<Self> {
        let folder = environment("XDG_STATE_HOME").map(PathBuf::from);
        let folder = folder
            .filter(|folder| folder.is_absolute())
            .or_else(|| Some(user_home()?.join(".local/state")))?;
        Some(Self { folder: folder.join("takeback") })
    }

    pub(crate) fn folder(&self) -> &Path {
        &self.folder
    }

    /// Whether markers can be read and written.
    pub(crate) fn is_usable(&self) -> io::Result<()> {
        let above = self.folder.ancestors().find(|folder| folder.symlink_metadata().is_ok());
        let above = above.unwrap_or(&self.folder);
        if !above.is_dir() {
            return Err(io::ErrorKind::NotADirectory.into());
        }
        Ok(rustix::fs::access(above, Access::WRITE_OK | Access::EXEC_OK)?)
    }

    /// Compares an existing store with its marker. Writes a missing marker.
    pub(crate) fn check(
        &self,
        store: &Path,
        root: &Path,
        home: &Path,
    ) -> io::Result<Option<LostHistory>> {
        let id = stores::id_of(store)?;
        match (self.read(store), id) {
            (Some(marker), id) => Ok(marker.lost_history(id.as_ref())),
            (None, Some(id)) => self
                .write(&Marker { root: root.into(), home: home.into(), store: store.into(), id })
                .map(|()| None),
            (None, None) => Ok(None),
        }
    }

    /// The loss that a store's marker shows; the store itself may be missing. `None` also if the store cannot
    /// be read: an unreadable folder is not lost.
    pub(crate) fn lost_history(&self, store: &Path) -> Option<LostHistory> {
        self.read(store)?.lost_history(present(store).ok()?.as_ref())
    }

    /// All lost histories of a home, by root.
    pub(crate) fn lost_histories(&self, home: &Path) -> Vec<LostHistory> {
        let stores = self.of_home(home).into_iter().map(|marker| marker.store);
        let mut gone: Vec<LostHistory> =
            stores.filter_map(|store| self.lost_history(&store)).collect();
        gone.sort_by(|a, b| a.root.cmp(&b.root));
        gone
    }

    /// Stops reporting losses: updates the markers to the existing stores.
    pub(crate) fn acknowledge(&self, home: &Path) -> io::Result<()> {
        for marker in self.of_home(home) {
            if self.lost_history(&marker.store).is_none() {
                continue;
            }
            match present(&marker.store)? {
                Some(id) => self.write(&Marker { id, ..marker })?,
                None => self.remove(&marker.store)?,
            }
        }
        Ok(())
    }

    /// Called before a store is removed.
    pub(crate) fn remove(&self, store: &Path) -> io::Result<()> {
        let file = self.file(store);
        // A read-only folder refuses to remove even a missing file.
        if file.try_exists()? { disk::remove_store_file(&file) } else { Ok(()) }
    }

    /// Called when the user has removed all hooks.
    pub(crate) fn remove_all(&self, home: &Path) -> io::Result<()> {
        self.of_home(home).iter().try_for_each(|marker| self.remove(&marker.store))
    }

    /// Called before the store moves from `from` to `to` and gets another root. After a crash between the two
    /// steps the marker is missing, and the next recorder writes it.
    pub(crate) fn relocate(&self, from: &Path, to: &Path, root: &Path) -> io::Result<()> {
        let marker = self.read(from);
        self.remove(from)?;
        match marker {
            Some(marker) => self.write(&Marker { root: root.into(), store: to.into(), ..marker }),
            None => self.remove(to),
        }
    }

    fn of_home(&self, home: &Path) -> Vec<Marker> {
        let Ok(names) = std::fs::read_dir(&self.folder) else { return Vec::new() };
        let files = names.filter_map(Result::ok).map(|name| name.path());
        let files = files.filter(|file| file.extension().is_some_and(|end| end == "json"));
        files.filter_map(|file| read(&file)).filter(|marker| marker.home == home).collect()
    }

    fn read(&self, store: &Path) -> Option<Marker> {
        read(&self.file(store)).filter(|marker| marker.store == store)
    }

    fn write(&self, marker: &Marker) -> io::Result<()> {
        disk::make_private_folder(&self.folder)?;
        let bytes = serde_json::to_vec(marker)?;
        disk::replace_private_file(&self.file(&marker.store), &bytes).map(drop)
    }

    fn file(&self, store: &Path) -> PathBuf {
        let hash = blake3::hash(store.as_os_str().as_bytes()).to_hex();
        self.folder.join(format!("{}.json", &hash[..16]))
    }
}

/// The id of the existing store.
fn present(store: &Path) -> io::Result<Option<StoreId>> {
    if SqliteStore::exists(store)? { stores::id_of(store) } else { Ok(None) }
}

fn read(file: &Path) -> Option<Marker> {
    serde_json::from_slice(&std::fs::read(file).ok()?).ok()
}

impl Marker {
    fn lost_history(&self, now: Option<&StoreId>) -> Option<LostHistory> {
        if now.is_some_and(|now| now.id == self.id.id) {
            return None;
        }
        Some(LostHistory {
            root: self.root.clone(),
            store: self.store.clone(),
            made_at: self.id.made_at,
            replaced_at: now.map(|now| now.made_at),
        })
    }
}

/// Writes a path as text, which begins with `/`, or as `base64:` bytes if it is not UTF-8.
mod path_text {
    use super::*;

    const BASE64: &str = "base64:";

    pub(super) fn serialize<S: Serializer>(path: &Path, serializer: S) -> Result<S::Ok, S::Error> {
        match path.to_str() {
            Some(text) => serializer.serialize_str(text),
            None => {
                let bytes = STANDARD.encode(path.as_os_str().as_bytes());
                serializer.serialize_str(&format!("{BASE64}{bytes}"))
            }
        }
    }

    pub(super) fn deserialize<'de, D: Deserializer<'de>>(
        deserializer: D,
    ) -> Result<PathBuf, D::Error> {
        let text = String::deserialize(deserializer)?;
        match text.strip_prefix(BASE64) {
            Some(bytes) => {
                let bytes = STANDARD.decode(bytes).map_err(serde::de::Error::custom)?;
                Ok(PathBuf::from(OsString::from_vec(bytes)))
            }
            None => Ok(PathBuf::from(text)),
        }
    }
}
