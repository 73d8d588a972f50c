//! Rule files that an agent wrote, and their text before that.
//!
//! New names are judged a second time with these texts: an agent cannot hide its files by writing an
//! ignore file or a manifest.

use std::collections::HashMap;

use takeback_store::WorkPath;

use super::{DERIVED, EXCLUDE};

/// The earlier texts by path; none: the file did not exist.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub(crate) struct DistrustedRules(HashMap<Vec<u8>, Option<Vec<u8>>>);

impl DistrustedRules {
    pub(crate) fn insert(&mut self, path: &WorkPath, trusted: Option<Vec<u8>>) {
        self.0.insert(path.as_bytes().to_vec(), trusted);
    }

    #[must_use]
    pub(crate) fn is_empty(&self) -> bool {
        self.0.is_empty()
    }

    /// The earlier text of the file `name` in a folder; none: the file is trusted as it is.
    pub(super) fn of(&self, folder: &[u8], name: &[u8]) -> Option<Option<&Vec<u8>>> {
        if self.0.is_empty() {
            return None;
        }
        self.0.get(&join(folder, name)).map(Option::as_ref)
    }

    /// Whether an agent created the file `name` in a folder.
    pub(crate) fn is_made(&self, folder: &[u8], name: &[u8]) -> bool {
        self.of(folder, name) == Some(None)
    }
}

fn join(folder: &[u8], name: &[u8]) -> Vec<u8> {
    if folder.is_empty() { name.to_vec() } else { [folder, b"/", name].concat() }
}

/// Whether a path is a repository's own rules, which are not in the log.
#[must_use]
pub(crate) fn is_exclude(path: &WorkPath) -> bool {
    let folder = path.as_bytes().strip_suffix(EXCLUDE);
    folder.is_some_and(|folder| folder.is_empty() || folder.ends_with(b"/"))
}

/// Whether a file's text decides what is covered. For a manifest only its existence does.
pub(crate) fn has_rules(path: &[u8]) -> bool {
    let name = path.rsplit(|b| *b == b'/').next().unwrap_or(path);
    matches!(name, b".gitignore" | b".takebackignore")
}

/// The manifests that make a folder of this name a derived one.
pub(crate) fn manifests_of(name: &[u8]) -> impl Iterator<Item = &'static [u8]> {
    let of = DERIVED.iter().filter(move |(derived, _)| derived.as_bytes() == name);
    of.flat_map(|(_, manifests)| manifests.iter().map(|manifest| manifest.as_bytes()))
}
