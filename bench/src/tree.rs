//! Whether a tree is what it was.

use std::fs;
use std::os::unix::fs::MetadataExt as _;
use std::path::Path;

use takeback_bench::Result;

/// How closely is looked.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Look {
    /// Names, kinds, modes and sizes.
    Shape,
    /// And every byte.
    Contents,
}

/// A digest of all that is in the tree but what tools keep there.
pub(crate) fn digest(tree: &Path, look: Look) -> Result<blake3::Hash> {
    let mut hasher = blake3::Hasher::new();
    add(&mut hasher, tree, look)?;
    Ok(hasher.finalize())
}

fn add(hasher: &mut blake3::Hasher, folder: &Path, look: Look) -> Result<()> {
    let mut entries: Vec<_> = fs::read_dir(folder)?.collect::<std::io::Result<_>>()?;
    entries.sort_by_key(fs::DirEntry::file_name);
    for entry in entries {
        let name = entry.file_name();
        if name == ".git" || name == ".jj" {
            continue;
        }
        let metadata = entry.metadata()?;
        hasher.update(name.as_encoded_bytes()).update(&[0]);
        hasher.update(&metadata.mode().to_le_bytes());
        if metadata.is_dir() {
            add(hasher, &entry.path(), look)?;
            hasher.update(&[0]);
        } else {
            hasher.update(&metadata.size().to_le_bytes());
            if look == Look::Contents {
                hasher.update(&fs::read(entry.path())?);
            }
        }
    }
    Ok(())
}
