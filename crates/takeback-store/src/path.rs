//! A path as Takeback stores it: bytes, because file names are bytes.

use std::collections::{HashMap, HashSet};
use std::fmt;
use std::sync::Arc;

use base64::Engine as _;
use base64::engine::general_purpose::STANDARD;
use serde::{Deserialize, Serialize};

/// A path relative to the workspace's root (`src/main.rs`), or an absolute one (`/etc/hosts`) if an
/// edit call named a file outside of it.
///
/// It has no empty component, no `.` or `..`, no NUL and no trailing `/`, so joining it to the root
/// cannot leave the root. Ordered by bytes. Clones share the bytes.
#[derive(Clone, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct WorkPath(Arc<[u8]>);

/// Why some bytes are not a [`WorkPath`].
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[error("{path:?} is not a plain path: {why}")]
pub struct InvalidPath {
    /// The path, with invalid UTF-8 replaced.
    pub path: String,
    /// The rule that it breaks.
    pub why: &'static str,
}

impl WorkPath {
    /// Accepts bytes that keep the rules above; never normalizes.
    pub fn new(bytes: impl Into<Vec<u8>>) -> Result<Self, InvalidPath> {
        let bytes = bytes.into();
        let relative = bytes.strip_prefix(b"/").unwrap_or(&bytes);
        let why = if relative.is_empty() {
            "it is empty"
        } else if bytes.contains(&0) {
            "it holds a NUL byte"
        } else if relative.split(|b| *b == b'/').any(|part| matches!(part, b"" | b"." | b"..")) {
            "it holds an empty, `.` or `..` component"
        } else {
            return Ok(Self(bytes.into()));
        };
        Err(InvalidPath { path: String::from_utf8_lossy(&bytes).into_owned(), why })
    }

    /// The bytes of the path.
    #[must_use]
    pub fn as_bytes(&self) -> &[u8] {
        &self.0
    }

    /// Whether this path is outside the workspace.
    #[must_use]
    pub fn is_outside(&self) -> bool {
        self.0.starts_with(b"/")
    }

    /// The folder that contains it; `None` directly below the root (or below `/`).
    #[must_use]
    pub fn parent(&self) -> Option<Self> {
        let cut = self.0.iter().rposition(|b| *b == b'/').filter(|cut| *cut > 0)?;
        Some(Self(self.0[..cut].into()))
    }

    /// Its folders, nearest first.
    pub fn ancestors(&self) -> impl Iterator<Item = Self> {
        std::iter::successors(self.parent(), Self::parent)
    }

    /// The last component.
    #[must_use]
    pub fn file_name(&self) -> &[u8] {
        let cut = self.0.iter().rposition(|b| *b == b'/').map_or(0, |cut| cut + 1);
        &self.0[cut..]
    }

    /// The number of components. A folder's depth is always less than that of anything in it.
    #[must_use]
    pub fn depth(&self) -> usize {
        self.0.iter().filter(|b| **b == b'/').count()
    }

    /// Whether this path is `folder` or below it.
    #[must_use]
    pub fn is_within(&self, folder: &[u8]) -> bool {
        match self.0.strip_prefix(folder) {
            Some(rest) => rest.is_empty() || rest.starts_with(b"/"),
            None => false,
        }
    }

    /// The path for display: invalid UTF-8 is replaced, control characters are escaped.
    #[must_use]
    pub fn display(&self) -> String {
        let mut shown = String::new();
        for c in String::from_utf8_lossy(&self.0).chars() {
            if c.is_control() {
                shown.extend(c.escape_default());
            } else {
                shown.push(c);
            }
        }
        shown
    }
}

/// Finds, for a path, the outermost of some folders that contains it. Each folder is looked up
/// once, however many paths are in it.
#[derive(Debug)]
pub struct OuterFolders<'a> {
    among: HashSet<&'a WorkPath>,
    known: HashMap<WorkPath, Option<WorkPath>>,
}

impl<'a> OuterFolders<'a> {
    /// A finder for these folders.
    pub fn among(folders: impl IntoIterator<Item = &'a WorkPath>) -> Self {
        Self { among: folders.into_iter().collect(), known: HashMap::new() }
    }

    /// The outermost of the folders that contains `path`; `path` itself does not count.
    pub fn above(&mut self, path: &WorkPath) -> Option<WorkPath> {
        let mut unknown = Vec::new();
        let mut top = None;
        for folder in path.ancestors() {
            if let Some(known) = self.known.get(&folder) {
                top.clone_from(known);
                break;
            }
            unknown.push(folder);
        }
        for folder in unknown.into_iter().rev() {
            top = top.or_else(|| self.among.contains(&folder).then(|| folder.clone()));
            self.known.insert(folder, top.clone());
        }
        top
    }
}

impl fmt::Debug for WorkPath {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        fmt::Debug::fmt(&String::from_utf8_lossy(&self.0), f)
    }
}

/// In JSON a string, or `{"base64": "…"}` when it is not UTF-8.
#[derive(Serialize, Deserialize)]
#[serde(untagged)]
enum WirePath {
    Text(String),
    Bytes { base64: String },
}

impl Serialize for WorkPath {
    fn serialize<S: serde::Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        match std::str::from_utf8(&self.0) {
            Ok(text) => WirePath::Text(text.to_owned()),
            Err(_) => WirePath::Bytes { base64: STANDARD.encode(&self.0) },
        }
        .serialize(serializer)
    }
}

impl<'de> Deserialize<'de> for WorkPath {
    fn deserialize<D: serde::Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        use serde::de::Error as _;
        let bytes = match WirePath::deserialize(deserializer)? {
            WirePath::Text(text) => text.into_bytes(),
            WirePath::Bytes { base64 } => STANDARD.decode(base64).map_err(D::Error::custom)?,
        };
        Self::new(bytes).map_err(D::Error::custom)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn only_plain_paths_are_accepted() {
        for good in [&b"a"[..], b"a/b", b"/etc/hosts", b"...", b"-x", b"\xff\n"] {
            assert!(WorkPath::new(good).is_ok(), "{good:?}");
        }
        for bad in [&b""[..], b"/", b".", b"..", b"a/../b", b"a//b", b"a/", b"//x", b"a\0"] {
            assert!(WorkPath::new(bad).is_err(), "{bad:?}");
        }
    }

    #[test]
    fn json_keeps_every_byte() {
        for bytes in [&b"src/main.rs"[..], b"caf\xe9", b"/outside"] {
            let path = WorkPath::new(bytes).expect("a plain path");
            let json = serde_json::to_string(&path).expect("it serialises");
            assert_eq!(serde_json::from_str::<WorkPath>(&json).expect("it reads back"), path);
        }
        assert!(serde_json::from_str::<WorkPath>(r#""../x""#).is_err());
    }

    #[test]
    fn within_means_whole_components() {
        let path = WorkPath::new("src/lib/a.rs").expect("a plain path");
        assert!(path.is_within(b"src/lib"));
        assert!(path.is_within(b"src/lib/a.rs"));
        assert!(!path.is_within(b"src/li"));
        assert_eq!(path.ancestors().map(|p| p.display()).collect::<Vec<_>>(), ["src/lib", "src"]);
    }

    #[test]
    fn the_outermost_folder_is_found_across_gaps() {
        let path = |text: &str| WorkPath::new(text).expect("a plain path");
        let folders = [path("a"), path("a/b/c"), path("a-b"), path("x/y")];
        let mut outermost = OuterFolders::among(&folders);
        for (of, above) in [
            ("a/b/c/d/e", Some("a")),
            ("a/b/c", Some("a")),
            ("a-b/f", Some("a-b")),
            ("a", None),
            ("x/y", None),
            ("x/y/z", Some("x/y")),
            ("x/q", None),
        ] {
            assert_eq!(outermost.above(&path(of)), above.map(path), "{of}");
        }
    }
}
