//! Markers of stores: `$XDG_STATE_HOME/takeback/<16 hex of BLAKE3(store's folder)>.json`, one file a store.
//!
//! A store that was deleted cannot report it, and the next recorder makes a new one in its place. The
//! marker is kept elsewhere and names the store by its id. A store with another id, or no store, means
//! that the history is gone. A missing marker is written; one that names another store stays as it is
//! until the user acknowledges the loss. Without a folder for markers a loss is not noticed, and
//! recording goes on.

use std::ffi::OsString;
use std::io;
use std::os::unix::ffi::{OsStrExt as _, OsStringExt as _};
use std::path::{Path, PathBuf};

use base64::Engine as _;
use base64::engine::general_purpose::STANDARD;
use rustix::fs::Access;
use serde::{Deserialize, Deserializer, Serialize, Serializer};
use takeback_store::{Timestamp, disk};

use crate::answers;
use crate::place::{environment, shown, user_home};
use crate::stores::{self, StoreId};
use crate::time::moment;

#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
struct Marker {
    #[serde(with = "path_text")]
    root: PathBuf,
    /// Takeback's home that has the store: one workspace may have a store in each of several homes.
    #[serde(with = "path_text")]
    home: PathBuf,
    #[serde(with = "path_text")]
    store: PathBuf,
    #[serde(flatten)]
    id: StoreId,
}

/// A history that is gone.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct Gone {
    pub(crate) root: PathBuf,
    pub(crate) store: PathBuf,
    /// When the store was made.
    pub(crate) made_at: Timestamp,
    /// When the store was made that has its place now.
    pub(crate) replaced_at: Option<Timestamp>,
}

/// What ends the report.
pub(crate) const ACKNOWLEDGE: &str =
    "`takeback doctor --acknowledge` stops this report, once you know why.";

impl Gone {
    /// What happened, without what to do.
    pub(crate) fn what(&self) -> String {
        let store = shown(&self.store);
        let now = match self.replaced_at {
            Some(at) => format!("; an empty one was made {}", moment(at)),
            None => String::new(),
        };
        format!(
            "the history of {} is gone: its store {store}, made {}, no longer exists{now}",
            shown(&self.root),
            moment(self.made_at),
        )
    }

    pub(crate) fn answer(&self) -> answers::HistoryGone {
        answers::HistoryGone {
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
    /// Those of this user; `None`: there is no home folder.
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

    /// Compares a store that is there with its marker. Writes the marker if there is none.
    pub(crate) fn check(&self, store: &Path, root: &Path, home: &Path) -> io::Result<Option<Gone>> {
        let id = stores::id_of(store)?;
        match (self.read(store), id) {
            (Some(marker), id) => Ok(marker.gone(id.as_ref())),
            (None, Some(id)) => self
                .write(&Marker { root: root.into(), home: home.into(), store: store.into(), id })
                .map(|()| None),
            (None, None) => Ok(None),
        }
    }

    /// What the marker of a store says, whether the store is there or not. `None` also where that
    /// cannot be told: a folder that may not be read is not gone.
    pub(crate) fn gone(&self, store: &Path) -> Option<Gone> {
        self.read(store)?.gone(present(store).ok()?.as_ref())
    }

    /// Every history of a home that is gone, by root.
    pub(crate) fn all_gone(&self, home: &Path) -> Vec<Gone> {
        let stores = self.of_home(home).into_iter().map(|marker| marker.store);
        let mut gone: Vec<Gone> = stores.filter_map(|store| self.gone(&store)).collect();
        gone.sort_by(|a, b| a.root.cmp(&b.root));
        gone
    }

    /// Ends the report of what is gone: from now on the markers name the stores that are there.
    pub(crate) fn acknowledge(&self, home: &Path) -> io::Result<()> {
        for marker in self.of_home(home) {
            if self.gone(&marker.store).is_none() {
                continue;
            }
            match present(&marker.store)? {
                Some(id) => self.write(&Marker { id, ..marker })?,
                None => self.remove(&marker.store)?,
            }
        }
        Ok(())
    }

    /// For a store that is about to be removed.
    pub(crate) fn remove(&self, store: &Path) -> io::Result<()> {
        let file = self.file(store);
        // Where nothing can be written, removing nothing is refused as well.
        if file.try_exists()? { disk::remove_store_file(&file) } else { Ok(()) }
    }

    /// For a user who has no hooks any more.
    pub(crate) fn remove_all(&self, home: &Path) -> io::Result<()> {
        self.of_home(home).iter().try_for_each(|marker| self.remove(&marker.store))
    }

    /// The store in `from` is about to be the one in `to`, of another root. Cut off between the two
    /// steps, the marker is missing, and the next recorder writes it.
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

/// The id of the store that is there.
fn present(store: &Path) -> io::Result<Option<StoreId>> {
    if stores::is_store(store)? { stores::id_of(store) } else { Ok(None) }
}

fn read(file: &Path) -> Option<Marker> {
    serde_json::from_slice(&std::fs::read(file).ok()?).ok()
}

impl Marker {
    fn gone(&self, now: Option<&StoreId>) -> Option<Gone> {
        if now.is_some_and(|now| now.id == self.id.id) {
            return None;
        }
        Some(Gone {
            root: self.root.clone(),
            store: self.store.clone(),
            made_at: self.id.made_at,
            replaced_at: now.map(|now| now.made_at),
        })
    }
}

/// An absolute path begins with `/`; one that is no text is told by its bytes.
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
