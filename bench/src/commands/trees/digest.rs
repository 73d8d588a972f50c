//! Digests of a tree, to see whether it changed.

use std::fs;
use std::os::unix::fs::MetadataExt as _;
use std::path::Path;

use crate::Result;

/// What a digest covers.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Depth {
    /// Names, kinds, modes and sizes.
    Shape,
    /// These, and every byte.
    Contents,
}

/// A digest of everything in the tree except the tools' own folders.
pub(super) fn digest(tree: &Path, depth: Depth) -> Result<blake3::Hash> {
    let mut hasher = blake3::Hasher::new();
    add(&mut hasher, tree, depth)?;
    Ok(hasher.finalize())
}

fn add(hasher: &mut blake3::Hasher, folder: &Path, depth: Depth) -> Result<()> {
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
            add(hasher, &entry.path(), depth)?;
            hasher.update(&[0]);
        } else {
            hasher.update(&metadata.size().to_le_bytes());
            if depth == Depth::Contents {
                hasher.update(&fs::read(entry.path())?);
            }
        }
    }
    Ok(())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_shape_knows_names_and_sizes_and_contents_every_byte() {
        let folder =
            std::env::temp_dir().join(format!("takeback-bench-tree-{}", std::process::id()));
        fs::create_dir_all(folder.join("sub")).unwrap();
        let see = || [Depth::Shape, Depth::Contents].map(|depth| digest(&folder, depth).unwrap());
        fs::write(folder.join("sub/a"), "one").unwrap();
        let before = see();
        fs::write(folder.join("sub/a"), "two").unwrap();
        let other_bytes = see();
        fs::rename(folder.join("sub/a"), folder.join("sub/b")).unwrap();
        let other_name = see();
        fs::rename(folder.join("sub/b"), folder.join("sub/a")).unwrap();
        fs::write(folder.join("sub/a"), "one").unwrap();
        fs::create_dir_all(folder.join(".jj")).unwrap();
        let again = see();
        fs::remove_dir_all(&folder).unwrap();
        assert_eq!(before[0], other_bytes[0]);
        assert_ne!(before[1], other_bytes[1]);
        assert_ne!(other_bytes[0], other_name[0]);
        assert_eq!(before, again);
    }
}
