//! The tree, the damage, and what must hold after it was restored.

use std::collections::BTreeMap;
use std::ffi::OsStr;
use std::fs::{self, Metadata, Permissions};
use std::os::unix::ffi::OsStrExt as _;
use std::os::unix::fs::{MetadataExt as _, PermissionsExt as _, symlink};
use std::path::{Path, PathBuf};

use crate::Result;
use crate::tools::{done, plain_git};

const NOT_UTF8: &[u8] = b"caf\xe9.txt";
const ODD: &str = "-two\nlines";
const SPARSE: u64 = 64 << 20;

pub(crate) fn lay_out(root: &Path) -> Result<()> {
    let write = |name: &str, bytes: &[u8]| fs::write(root.join(name), bytes);
    let mode =
        |name: &str, mode| fs::set_permissions(root.join(name), Permissions::from_mode(mode));
    for folder in ["empty", "nested", "folder/deep", "build", "locked"] {
        fs::create_dir_all(root.join(folder))?;
    }
    write(".gitignore", b".env\nbuild/\n")?;
    write("tracked.txt", b"tracked\n")?;
    write("crlf.txt", b"one\r\ntwo\r\n")?;
    write("run.sh", b"#!/bin/sh\n")?;
    mode("run.sh", 0o755)?;
    write("secret", b"secret\n")?;
    mode("secret", 0o600)?;
    done(plain_git().args(["init", "-q"]).current_dir(root))?;
    done(plain_git().args(["add", "."]).current_dir(root))?;
    done(plain_git().args(["commit", "-qm", "first"]).current_dir(root))?;

    write("untracked.txt", b"untracked\n")?;
    write("gone.txt", b"untracked, then gone\n")?;
    write("untouched.txt", b"nobody touches this\n")?;
    write(".env", b"TOKEN=1\n")?;
    write("build/old.o", b"old\n")?;
    write("10k.bin", &noise(10 << 10, 1))?;
    write("3m.bin", &noise(3 << 20, 2))?;
    write("12m.bin", &noise(12 << 20, 3))?;
    symlink("tracked.txt", root.join("link"))?;
    symlink("nowhere", root.join("dangling"))?;
    write(ODD, b"odd\n")?;
    fs::write(root.join(OsStr::from_bytes(NOT_UTF8)), "odd\n")?;
    write("folder/deep/file.txt", b"in a folder\n")?;
    write("plain", b"a file\n")?;
    write("locked/file.txt", b"in a locked folder\n")?;
    mode("locked", 0o555)?;
    write("linked-1", b"one file\n")?;
    fs::hard_link(root.join("linked-1"), root.join("linked-2"))?;
    fs::File::create(root.join("sparse"))?.set_len(SPARSE)?;

    let nested = root.join("nested");
    fs::write(nested.join("file.txt"), "committed\n")?;
    done(plain_git().args(["init", "-q"]).current_dir(&nested))?;
    done(plain_git().args(["add", "."]).current_dir(&nested))?;
    done(plain_git().args(["commit", "-qm", "first"]).current_dir(&nested))?;
    fs::write(nested.join("file.txt"), "dirty\n")?;
    Ok(())
}

/// What an agent does to it in one shell call.
pub(crate) const DAMAGE: &str = r#"
for name in tracked.txt crlf.txt untracked.txt 10k.bin 3m.bin 12m.bin nested/file.txt; do
    echo damaged > "$name"
done
echo damaged > "./-two
lines"
echo damaged > "$(printf 'caf\351.txt')"
chmod 644 run.sh secret
rm gone.txt .env dangling sparse
rmdir empty
rm link; echo damaged > link
rm -r folder; echo damaged > folder
rm plain; mkdir plain; echo damaged > plain/file
chmod 755 locked; rm locked/file.txt; chmod 555 locked
echo damaged > linked-2.new; mv linked-2.new linked-2
mkdir -p made/deep; echo made > made/deep/file; echo made > made.txt
echo new > build/new.o
"#;

/// The times and bytes of what nobody touches, before it.
pub(crate) struct Seen {
    untouched: Metadata,
    git: Internals,
}

/// Everything in `.git` folders, with its times and bytes.
type Internals = BTreeMap<PathBuf, (i64, i64, Vec<u8>)>;

impl Seen {
    pub(crate) fn of(root: &Path) -> Result<Self> {
        Ok(Self { untouched: fs::metadata(root.join("untouched.txt"))?, git: inside_git(root)? })
    }
}

pub(crate) struct Property {
    pub(crate) name: &'static str,
    pub(crate) holds: fn(&Path, &Seen) -> bool,
}

pub(crate) const PROPERTIES: &[Property] = &[
    Property { name: "tracked file", holds: |root, _| has(root, "tracked.txt", b"tracked\n") },
    Property { name: "CRLF", holds: |root, _| has(root, "crlf.txt", b"one\r\ntwo\r\n") },
    Property {
        name: "untracked file",
        holds: |root, _| has(root, "untracked.txt", b"untracked\n"),
    },
    Property { name: "executable bit", holds: |root, _| mode(root, "run.sh") == Some(0o755) },
    Property { name: "0600 mode", holds: |root, _| mode(root, "secret") == Some(0o600) },
    Property {
        name: "deleted untracked file",
        holds: |root, _| has(root, "gone.txt", b"untracked, then gone\n"),
    },
    Property { name: "deleted ignored `.env`", holds: |root, _| has(root, ".env", b"TOKEN=1\n") },
    Property { name: "binary, 10 KB", holds: |root, _| has(root, "10k.bin", &noise(10 << 10, 1)) },
    Property { name: "3 MB untracked", holds: |root, _| has(root, "3m.bin", &noise(3 << 20, 2)) },
    Property {
        name: "12 MB untracked",
        holds: |root, _| has(root, "12m.bin", &noise(12 << 20, 3)),
    },
    Property {
        name: "sparse file, with its holes",
        holds: |root, _| {
            fs::metadata(root.join("sparse"))
                .is_ok_and(|file| file.len() == SPARSE && file.blocks() * 512 < SPARSE / 16)
        },
    },
    Property {
        name: "symlink replaced by a file",
        holds: |root, _| points_to(root, "link", "tracked.txt"),
    },
    Property { name: "dangling symlink", holds: |root, _| points_to(root, "dangling", "nowhere") },
    Property {
        name: "folder replaced by a file",
        holds: |root, _| has(root, "folder/deep/file.txt", b"in a folder\n"),
    },
    Property {
        name: "file replaced by a folder",
        holds: |root, _| has(root, "plain", b"a file\n"),
    },
    Property { name: "empty folder", holds: |root, _| root.join("empty").is_dir() },
    Property {
        name: "file in a read-only folder",
        holds: |root, _| {
            has(root, "locked/file.txt", b"in a locked folder\n")
                && mode(root, "locked") == Some(0o555)
        },
    },
    Property {
        name: "two names of one file",
        holds: |root, _| {
            let inode = |name| fs::metadata(root.join(name)).ok().map(|file| file.ino());
            has(root, "linked-2", b"one file\n") && inode("linked-1") == inode("linked-2")
        },
    },
    Property {
        name: "name with newline and leading dash",
        holds: |root, _| has(root, ODD, b"odd\n"),
    },
    Property {
        name: "name that is not UTF-8",
        holds: |root, _| {
            fs::read(root.join(OsStr::from_bytes(NOT_UTF8))).is_ok_and(|bytes| bytes == b"odd\n")
        },
    },
    Property {
        name: "dirty file in a nested repository",
        holds: |root, _| has(root, "nested/file.txt", b"dirty\n"),
    },
    Property {
        name: "files made by the agent are gone",
        holds: |root, _| !exists(root, "made.txt") && !exists(root, "made/deep/file"),
    },
    Property { name: "folders made by the agent are gone", holds: |root, _| !exists(root, "made") },
    Property {
        name: "new ignored build output is kept",
        holds: |root, _| has(root, "build/new.o", b"new\n") && has(root, "build/old.o", b"old\n"),
    },
    Property {
        name: "times of an untouched file",
        holds: |root, before| {
            fs::metadata(root.join("untouched.txt")).is_ok_and(|now| {
                let times = |file: &Metadata| (file.mtime(), file.mtime_nsec(), file.ino());
                times(&now) == times(&before.untouched)
            })
        },
    },
    Property {
        name: "the user's `.git`, bytes and times",
        holds: |root, before| inside_git(root).is_ok_and(|now| now == before.git),
    },
];

fn has(root: &Path, name: &str, bytes: &[u8]) -> bool {
    let path = root.join(name);
    fs::symlink_metadata(&path).is_ok_and(|found| found.is_file())
        && fs::read(path).is_ok_and(|found| found == bytes)
}

fn exists(root: &Path, name: &str) -> bool {
    fs::symlink_metadata(root.join(name)).is_ok()
}

fn mode(root: &Path, name: &str) -> Option<u32> {
    fs::metadata(root.join(name)).ok().map(|found| found.mode() & 0o7777)
}

fn points_to(root: &Path, name: &str, target: &str) -> bool {
    fs::read_link(root.join(name)).is_ok_and(|found| found == Path::new(target))
}

fn inside_git(root: &Path) -> Result<Internals> {
    let mut seen = BTreeMap::new();
    let mut open = vec![root.join(".git"), root.join("nested/.git")];
    while let Some(path) = open.pop() {
        let metadata = fs::symlink_metadata(&path)?;
        let mut bytes = Vec::new();
        if metadata.is_dir() {
            for entry in fs::read_dir(&path)? {
                open.push(entry?.path());
            }
        } else {
            bytes = fs::read(&path)?;
        }
        seen.insert(path, (metadata.mtime(), metadata.mtime_nsec(), bytes));
    }
    Ok(seen)
}

/// Opens every folder, so that everything can be removed.
pub(crate) fn unlock(folder: &Path) {
    // What cannot be opened cannot be removed either, and that will be said.
    drop(fs::set_permissions(folder, Permissions::from_mode(0o755)));
    for entry in fs::read_dir(folder).into_iter().flatten().flatten() {
        if entry.file_type().is_ok_and(|kind| kind.is_dir()) {
            unlock(&entry.path());
        }
    }
}

fn noise(len: usize, seed: u64) -> Vec<u8> {
    let mut state = 0x9e37_79b9_7f4a_7c15_u64.wrapping_mul(seed);
    let mut bytes = Vec::with_capacity(len + 8);
    while bytes.len() < len {
        state ^= state << 13;
        state ^= state >> 7;
        state ^= state << 17;
        bytes.extend_from_slice(&state.to_le_bytes());
    }
    bytes.truncate(len);
    bytes
}
