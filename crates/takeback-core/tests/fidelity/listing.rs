//! A whole tree, read step by step from folder to folder, so that no path is too long.

use std::collections::BTreeMap;
use std::fs::File;
use std::hash::{DefaultHasher, Hasher as _};
use std::io::Read as _;
use std::os::fd::{AsFd, OwnedFd};
use std::path::Path;

use rustix::fs::{AtFlags, CWD, Dir, FileType, Mode, OFlags};

/// Everything below a folder, by path from it.
#[derive(Clone, Default)]
pub(crate) struct Listing(pub(crate) BTreeMap<Vec<u8>, Thing>);

#[derive(Clone)]
pub(crate) struct Thing {
    pub(crate) kind: Kind,
    pub(crate) mode: u32,
    /// The first of the names that are this file.
    pub(crate) one_with: Vec<u8>,
    /// What it takes on disk.
    blocks: u64,
    stamp: Stamp,
}

#[derive(Clone, PartialEq, Eq)]
pub(crate) enum Kind {
    File { size: u64, hash: u64, beginning: Vec<u8> },
    Link { target: Vec<u8> },
    Folder,
    Other,
}

/// Changes with whatever is done to a file, but for a further name that it gets.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct Stamp {
    inode: u64,
    modified: (i64, u64),
}

pub(crate) fn list(root: &Path) -> Listing {
    let mut listing = Listing::default();
    let mut inodes = BTreeMap::new();
    let root = rustix::fs::openat(CWD, root, folder_flags(), Mode::empty()).unwrap();
    list_below(&root, b"", &mut listing, &mut inodes);
    listing
}

fn folder_flags() -> OFlags {
    OFlags::DIRECTORY | OFlags::RDONLY | OFlags::NOFOLLOW | OFlags::CLOEXEC
}

fn list_below(
    folder: &OwnedFd,
    path: &[u8],
    listing: &mut Listing,
    inodes: &mut BTreeMap<u64, Vec<u8>>,
) {
    let mut names: Vec<Vec<u8>> = Dir::read_from(folder)
        .unwrap()
        .map(|entry| entry.unwrap().file_name().to_bytes().to_vec())
        .filter(|name| !matches!(name.as_slice(), b"." | b".."))
        .collect();
    names.sort();
    for name in names {
        let here = if path.is_empty() { name.clone() } else { [path, b"/", &name].concat() };
        let stat = rustix::fs::statat(folder, name.as_slice(), AtFlags::SYMLINK_NOFOLLOW).unwrap();
        let kind = match FileType::from_raw_mode(stat.st_mode) {
            FileType::RegularFile => read_file(folder, &name),
            FileType::Symlink => {
                let target = rustix::fs::readlinkat(folder, name.as_slice(), Vec::new()).unwrap();
                Kind::Link { target: target.into_bytes() }
            }
            FileType::Directory => Kind::Folder,
            _ => Kind::Other,
        };
        let is_folder = kind == Kind::Folder;
        let thing = Thing {
            kind,
            mode: stat.st_mode & 0o7777,
            one_with: inodes.entry(stat.st_ino).or_insert_with(|| here.clone()).clone(),
            blocks: u64::try_from(stat.st_blocks).unwrap(),
            stamp: Stamp { inode: stat.st_ino, modified: (stat.st_mtime, stat.st_mtime_nsec) },
        };
        listing.0.insert(here.clone(), thing);
        if is_folder {
            let below =
                rustix::fs::openat(folder, name.as_slice(), folder_flags(), Mode::empty()).unwrap();
            list_below(&below, &here, listing, inodes);
        }
    }
}

fn read_file(folder: impl AsFd, name: &[u8]) -> Kind {
    let flags = OFlags::RDONLY | OFlags::NOFOLLOW | OFlags::CLOEXEC;
    let mut file = File::from(rustix::fs::openat(folder, name, flags, Mode::empty()).unwrap());
    let mut hasher = DefaultHasher::new();
    let mut buffer = vec![0; 256 << 10];
    let (mut size, mut beginning) = (0, Vec::new());
    loop {
        let n = file.read(&mut buffer).unwrap();
        if n == 0 {
            return Kind::File { size, hash: hasher.finish(), beginning };
        }
        if beginning.is_empty() {
            beginning.extend_from_slice(&buffer[..n.min(40)]);
        }
        hasher.write(&buffer[..n]);
        size += n as u64;
    }
}

impl Listing {
    /// What should be there and is not, or is and should not.
    pub(crate) fn differences(&self, found: &Self) -> Vec<String> {
        let mut different = Vec::new();
        for (path, expected) in &self.0 {
            match found.0.get(path) {
                None => different.push(format!("{} is missing", path.escape_ascii())),
                Some(thing) if !expected.looks_like(thing) => different.push(format!(
                    "{} is {}, not {}",
                    path.escape_ascii(),
                    thing.described(),
                    expected.described()
                )),
                Some(_) => {}
            }
        }
        let more = found.0.iter().filter(|(path, _)| !self.0.contains_key(*path));
        different.extend(more.map(|(path, _)| format!("{} should not be", path.escape_ascii())));
        different
    }

    pub(crate) fn thing(&mut self, path: &str) -> &mut Thing {
        self.0.get_mut(path.as_bytes()).unwrap_or_else(|| panic!("{path} is not listed"))
    }

    /// Of files and links everywhere, and of all in a repository's own folder.
    pub(crate) fn stamps(&self) -> impl Iterator<Item = (&[u8], Stamp)> {
        let counts = |path: &[u8], thing: &Thing| {
            thing.kind != Kind::Folder || path.split(|b| *b == b'/').any(|part| part == b".git")
        };
        let listed = self.0.iter().filter(move |(path, thing)| counts(path, thing));
        listed.map(|(path, thing)| (path.as_slice(), thing.stamp))
    }

    pub(crate) fn stamp(&self, path: &[u8]) -> Option<Stamp> {
        self.0.get(path).map(|thing| thing.stamp)
    }
}

impl Thing {
    fn looks_like(&self, other: &Self) -> bool {
        self.kind == other.kind
            && self.mode == other.mode
            && self.one_with == other.one_with
            && other.blocks <= self.blocks + SLACK
    }

    fn described(&self) -> String {
        let kind = match &self.kind {
            Kind::File { size, hash, beginning } => {
                format!("a file of {size} bytes ({hash:x}, {}…)", beginning.escape_ascii())
            }
            Kind::Link { target } => format!("a link to {}", target.escape_ascii()),
            Kind::Folder => "a folder".to_owned(),
            Kind::Other => "something else".to_owned(),
        };
        let one_with = self.one_with.escape_ascii();
        format!("{kind} with mode {:o}, {} blocks, one with {one_with}", self.mode, self.blocks)
    }
}

/// Blocks of 512 bytes that the same file may take more: holes come back in coarser pieces.
const SLACK: u64 = 1024;
