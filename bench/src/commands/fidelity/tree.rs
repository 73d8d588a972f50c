//! The tree, the damage, and the properties that must hold after the restore.

use std::collections::BTreeMap;
use std::ffi::OsStr;
use std::fs::{self, Metadata, Permissions};
use std::os::unix::ffi::OsStrExt as _;
use std::os::unix::fs::{MetadataExt as _, PermissionsExt as _, symlink};
use std::path::{Path, PathBuf};

use crate::Result;
use crate::driver::git;
use crate::text::noise;

const NOT_UTF8: &[u8] = b"caf\xe9.txt";
const ODD: &str = "-two\nlines";
const SPARSE: u64 = 64 << 20;

pub(super) fn lay_out(root: &Path) -> Result<()> {
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
    commit_all(root)?;

    write("untracked.txt", b"untracked\n")?;
    write("gone.txt", b"untracked, then gone\n")?;
    write("untouched.txt", b"never touched\n")?;
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
    commit_all(&nested)?;
    Ok(fs::write(nested.join("file.txt"), "dirty\n")?)
}

fn commit_all(root: &Path) -> Result<()> {
    let git = git::plain(root).run(&["init", "-q"]).run(&["add", "."]);
    git.run(&["commit", "-qm", "first"]).output().map(drop)
}

/// The damage an agent does in one shell call.
pub(super) const DAMAGE: &str = r#"
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

/// Times and bytes of what the script does not touch, before it runs.
pub(super) struct UntouchedState {
    untouched: Metadata,
    git: GitFolders,
}

/// Everything in `.git` folders, with its times and bytes.
type GitFolders = BTreeMap<PathBuf, (i64, i64, Vec<u8>)>;

impl UntouchedState {
    pub(super) fn read(root: &Path) -> Result<Self> {
        Ok(Self { untouched: fs::metadata(root.join("untouched.txt"))?, git: git_folders(root)? })
    }
}

/// A name, and whether it holds.
pub(super) type Property = (&'static str, fn(&Path, &UntouchedState) -> bool);

pub(super) const PROPERTIES: &[Property] = &[
    ("tracked file", |root, _| has(root, "tracked.txt", b"tracked\n")),
    ("CRLF", |root, _| has(root, "crlf.txt", b"one\r\ntwo\r\n")),
    ("untracked file", |root, _| has(root, "untracked.txt", b"untracked\n")),
    ("executable bit", |root, _| mode(root, "run.sh") == Some(0o755)),
    ("0600 mode", |root, _| mode(root, "secret") == Some(0o600)),
    ("deleted untracked file", |root, _| has(root, "gone.txt", b"untracked, then gone\n")),
    ("deleted ignored `.env`", |root, _| has(root, ".env", b"TOKEN=1\n")),
    ("binary, 10 KB", |root, _| has(root, "10k.bin", &noise(10 << 10, 1))),
    ("3 MB untracked", |root, _| has(root, "3m.bin", &noise(3 << 20, 2))),
    ("12 MB untracked", |root, _| has(root, "12m.bin", &noise(12 << 20, 3))),
    ("sparse file, with its holes", |root, _| {
        fs::metadata(root.join("sparse"))
            .is_ok_and(|file| file.len() == SPARSE && file.blocks() * 512 < SPARSE / 16)
    }),
    ("symlink replaced by a file", |root, _| points_to(root, "link", "tracked.txt")),
    ("dangling symlink", |root, _| points_to(root, "dangling", "nowhere")),
    ("folder replaced by a file", |root, _| has(root, "folder/deep/file.txt", b"in a folder\n")),
    ("file replaced by a folder", |root, _| has(root, "plain", b"a file\n")),
    ("empty folder", |root, _| root.join("empty").is_dir()),
    ("file in a read-only folder", |root, _| {
        has(root, "locked/file.txt", b"in a locked folder\n") && mode(root, "locked") == Some(0o555)
    }),
    ("two names of one file", |root, _| {
        let inode = |name| fs::metadata(root.join(name)).ok().map(|file| file.ino());
        has(root, "linked-2", b"one file\n") && inode("linked-1") == inode("linked-2")
    }),
    ("name with newline and leading dash", |root, _| has(root, ODD, b"odd\n")),
    ("name that is not UTF-8", |root, _| {
        fs::read(root.join(OsStr::from_bytes(NOT_UTF8))).is_ok_and(|bytes| bytes == b"odd\n")
    }),
    ("dirty file in a nested repository", |root, _| has(root, "nested/file.txt", b"dirty\n")),
    ("files made by the agent are gone", |root, _| {
        !exists(root, "made.txt") && !exists(root, "made/deep/file")
    }),
    ("folders made by the agent are gone", |root, _| !exists(root, "made")),
    ("new ignored build output is kept", |root, _| {
        has(root, "build/new.o", b"new\n") && has(root, "build/old.o", b"old\n")
    }),
    ("times of an untouched file", |root, before| {
        fs::metadata(root.join("untouched.txt")).is_ok_and(|now| {
            let times = |file: &Metadata| (file.mtime(), file.mtime_nsec(), file.ino());
            times(&now) == times(&before.untouched)
        })
    }),
    ("the user's `.git`, bytes and times", |root, before| {
        git_folders(root).is_ok_and(|now| now == before.git)
    }),
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

fn git_folders(root: &Path) -> Result<GitFolders> {
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
