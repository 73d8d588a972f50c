//! Where a fork comes from: the file `origin` in the fork's store.

use std::io;
use std::path::{Path, PathBuf};

use serde::{Deserialize, Serialize};
use takeback_store::{PointId, Seq, Timestamp, disk};

use super::{ForkError, ForkRequest};
use crate::workspace::Workspace;

/// The file in the fork's store.
const FILE: &str = "origin";

/// Where a fork comes from.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct Origin {
    /// The root of the workspace that was forked.
    #[serde(with = "path_text")]
    pub root: PathBuf,
    /// The id of its store, if it has one.
    pub store_id: Option<String>,
    /// The point.
    pub point: PointId,
    /// Its position in that workspace's log.
    pub seq: Seq,
    /// What the point is called there.
    pub description: String,
    /// When the fork was made.
    pub forked_at: Timestamp,
}

impl Origin {
    pub(super) fn new(workspace: &Workspace, request: &ForkRequest<'_>) -> Self {
        let point = request.point;
        Self {
            root: workspace.root.path().to_owned(),
            store_id: request.store_id.clone(),
            point: point.id,
            seq: point.seq,
            description: point.label.clone().unwrap_or_else(|| point.description.clone()),
            forked_at: (workspace.ambient.now)(),
        }
    }

    /// Whether both are forks of the same point.
    pub(super) fn is_same_point(&self, other: &Self) -> bool {
        (&self.root, &self.store_id, self.point) == (&other.root, &other.store_id, other.point)
    }

    pub(super) fn save(&self, store_dir: &Path) -> Result<(), ForkError> {
        let path = store_dir.join(FILE);
        let saved = serde_json::to_vec_pretty(self)
            .map_err(io::Error::from)
            .and_then(|bytes| disk::replace_private_file_durably(&path, &bytes));
        saved.map_err(|source| ForkError::Unusable { path, source })
    }
}

/// The origin noted in a store; `None`: its workspace is not a fork.
pub fn fork_origin(store_dir: &Path) -> Result<Option<Origin>, ForkError> {
    let path = store_dir.join(FILE);
    match std::fs::read(&path) {
        Ok(bytes) => match serde_json::from_slice(&bytes) {
            Ok(origin) => Ok(Some(origin)),
            Err(_) => Err(ForkError::Damaged { path }),
        },
        Err(error) if error.kind() == io::ErrorKind::NotFound => Ok(None),
        Err(source) => Err(ForkError::Unusable { path, source }),
    }
}

/// A path as text; one that is not UTF-8 as `base64:…`.
mod path_text {
    use std::ffi::OsString;
    use std::os::unix::ffi::{OsStrExt as _, OsStringExt as _};
    use std::path::{Path, PathBuf};

    use base64::Engine as _;
    use base64::engine::general_purpose::STANDARD;
    use serde::{Deserialize as _, Deserializer, Serializer};

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

    pub(super) fn deserialize<'de, D: Deserializer<'de>>(from: D) -> Result<PathBuf, D::Error> {
        let text = String::deserialize(from)?;
        match text.strip_prefix(BASE64) {
            Some(bytes) => {
                let bytes = STANDARD.decode(bytes).map_err(serde::de::Error::custom)?;
                Ok(PathBuf::from(OsString::from_vec(bytes)))
            }
            None => Ok(PathBuf::from(text)),
        }
    }
}
