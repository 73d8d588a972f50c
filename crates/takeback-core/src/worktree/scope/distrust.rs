//! Files with rules that an agent wrote, and what they said before that.
//!
//! Names that are new are judged a second time with these texts: what an agent made does not get
//! out of sight by what the same agent wrote into an ignore file, or by a manifest that it made.

use std::collections::HashMap;

use takeback_store::WorkPath;

use super::{DERIVED, EXCLUDE};

/// By path; none: no such file.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Distrusted(HashMap<Vec<u8>, Option<Vec<u8>>>);

impl Distrusted {
    pub fn insert(&mut self, path: &WorkPath, trusted: Option<Vec<u8>>) {
        self.0.insert(path.as_bytes().to_vec(), trusted);
    }

    #[must_use]
    pub fn is_empty(&self) -> bool {
        self.0.is_empty()
    }

    /// What the file `name` of a folder said before; none: it is trusted as it is.
    pub(super) fn of(&self, folder: &[u8], name: &[u8]) -> Option<Option<&Vec<u8>>> {
        if self.0.is_empty() {
            return None;
        }
        self.0.get(&join(folder, name)).map(Option::as_ref)
    }

    /// Whether an agent made the file `name` of a folder.
    pub(crate) fn is_made(&self, folder: &[u8], name: &[u8]) -> bool {
        self.of(folder, name) == Some(None)
    }
}

fn join(folder: &[u8], name: &[u8]) -> Vec<u8> {
    if folder.is_empty() { name.to_vec() } else { [folder, b"/", name].concat() }
}

/// Whether a path is the rules of a repository that are in no log.
#[must_use]
pub fn is_exclude(path: &WorkPath) -> bool {
    let folder = path.as_bytes().strip_suffix(EXCLUDE);
    folder.is_some_and(|folder| folder.is_empty() || folder.ends_with(b"/"))
}

/// Whether a file's text decides what is covered; of a manifest, only that it is there does.
pub(crate) fn has_rules(path: &[u8]) -> bool {
    let name = path.rsplit(|b| *b == b'/').next().unwrap_or(path);
    matches!(name, b".gitignore" | b".takebackignore")
}

/// The files beside which a folder of this name can be made again.
pub(crate) fn manifests_of(name: &[u8]) -> impl Iterator<Item = &'static [u8]> {
    let of = DERIVED.iter().filter(move |(derived, _)| derived.as_bytes() == name);
    of.flat_map(|(_, manifests)| manifests.iter().map(|manifest| manifest.as_bytes()))
}
