//! The kernel's events for each kind of change, and the folders they mean.

use std::collections::BTreeSet;
use std::fs;
use std::os::unix::fs::{PermissionsExt, symlink};
use std::path::Path;

use takeback_core::watch::{DirtyFolders, ScanCause, WatchOutcome, Watcher};
use takeback_core::worktree::Root;
use takeback_testkit::MemoryMap;
use tempfile::TempDir;

/// A tree with the folders `a`, `a/b`, `a/b/c` and `d`, a file in each and in the root, all watched.
struct Tree {
    folder: TempDir,
    root: Root,
    watcher: Watcher,
}

const FOLDERS: [&str; 4] = ["a", "a/b", "a/b/c", "d"];

impl Tree {
    fn new() -> Self {
        let folder = tempfile::tempdir().unwrap();
        let work = folder.path().canonicalize().unwrap().join("work");
        fs::create_dir_all(work.join("a/b/c")).unwrap();
        fs::create_dir(work.join("d")).unwrap();
        fs::write(work.join("f"), "f").unwrap();
        for path in FOLDERS {
            fs::write(work.join(path).join("f"), "f").unwrap();
        }
        let root = Root::open(&work).unwrap();
        let mut watcher = Watcher::new(&root).unwrap();
        for path in FOLDERS {
            assert_eq!(watcher.watch(&root, path.as_bytes()).unwrap(), WatchOutcome::Now);
        }
        Self { folder, root, watcher }
    }

    fn at(&self, path: &str) -> std::path::PathBuf {
        self.root.path().join(path)
    }

    /// The folders in which something changed while `does` ran.
    fn after(&mut self, does: impl FnOnce(&Path)) -> DirtyFolders {
        does(self.root.path());
        self.watcher.drain()
    }
}

fn folders(paths: &[&str]) -> DirtyFolders {
    DirtyFolders::Folders(paths.iter().map(|path| path.as_bytes().to_vec()).collect())
}

#[test]
fn reads_and_outside_changes_are_not_reported() {
    let mut tree = Tree::new();
    let read = |root: &Path| {
        fs::read(root.join("a/f")).unwrap();
        fs::read_dir(root.join("a/b")).unwrap().for_each(drop);
    };
    assert_eq!(tree.after(read), folders(&[]));
    fs::write(tree.folder.path().join("outside"), "x").unwrap();
    assert_eq!(tree.watcher.drain(), folders(&[]));
}

#[test]
fn every_change_is_reported_once_with_its_folder() {
    let rename = |from: &'static str, to: &'static str| {
        move |root: &Path| fs::rename(root.join(from), root.join(to)).unwrap()
    };
    type Operation = Box<dyn FnOnce(&Path)>;
    let operations: [(Operation, &[&str]); 10] = [
        (Box::new(|root| fs::write(root.join("f"), "g").unwrap()), &[""]),
        (Box::new(|root| fs::write(root.join("a/b/new"), "").unwrap()), &["a/b"]),
        (Box::new(|root| fs::remove_file(root.join("a/b/new")).unwrap()), &["a/b"]),
        (Box::new(rename("a/f", "d/g")), &["a", "d"]),
        (Box::new(|root| symlink("nowhere", root.join("d/link")).unwrap()), &["d"]),
        (Box::new(|root| fs::hard_link(root.join("f"), root.join("a/f")).unwrap()), &["a"]),
        (
            Box::new(|root| {
                fs::set_permissions(root.join("d/g"), PermissionsExt::from_mode(0o600)).unwrap();
            }),
            &["d"],
        ),
        (
            Box::new(|root| {
                fs::set_permissions(root.join("a/b"), PermissionsExt::from_mode(0o700)).unwrap();
            }),
            &["a", "a/b"],
        ),
        (
            Box::new(|root| {
                let file = fs::OpenOptions::new().write(true).open(root.join("d/g")).unwrap();
                file.set_len(100).unwrap();
            }),
            &["d"],
        ),
        (Box::new(|root| fs::create_dir(root.join("d/new")).unwrap()), &["d", "d/new"]),
    ];
    let mut tree = Tree::new();
    for (number, (operation, expected)) in operations.into_iter().enumerate() {
        assert_eq!(tree.after(operation), folders(expected), "operation {number}");
        assert_eq!(tree.watcher.drain(), folders(&[]), "operation {number}, asked again");
    }
}

#[test]
fn a_moved_folder_is_reported_with_everything_below_it() {
    let mut tree = Tree::new();
    let away = |root: &Path| fs::rename(root.join("a/b"), root.join("d/b")).unwrap();
    assert_eq!(tree.after(away), folders(&["a", "a/b", "a/b/c", "d", "d/b"]));
    // What was moved is not watched under its old name, and under its new one only from then on.
    assert_eq!(tree.after(|root| fs::write(root.join("d/b/f"), "x").unwrap()), folders(&[]));
    assert_eq!(tree.watcher.watch(&tree.root, b"d/b").unwrap(), WatchOutcome::Now);
    assert_eq!(tree.after(|root| fs::write(root.join("d/b/f"), "y").unwrap()), folders(&["d/b"]));
}

#[test]
fn a_replaced_folder_is_no_longer_watched() {
    let mut tree = Tree::new();
    let replaced = |root: &Path| {
        fs::remove_dir_all(root.join("a/b")).unwrap();
        fs::create_dir(root.join("a/b")).unwrap();
    };
    assert_eq!(tree.after(replaced), folders(&["a", "a/b", "a/b/c"]));
    assert!(!tree.watcher.watches(b"a/b", None));
    assert_eq!(tree.watcher.watch(&tree.root, b"a/b").unwrap(), WatchOutcome::Now);
    assert_eq!(tree.after(|root| fs::write(root.join("a/b/f"), "x").unwrap()), folders(&["a/b"]));
}

#[test]
fn a_folder_that_moved_before_it_was_known_is_watched_where_it_is() {
    let mut tree = Tree::new();
    fs::rename(tree.at("a/b"), tree.at("d/b")).unwrap();
    assert_eq!(tree.watcher.watch(&tree.root, b"d/b").unwrap(), WatchOutcome::Now);
    assert_eq!(tree.watcher.drain(), folders(&["a", "a/b", "a/b/c", "d", "d/b"]));
}

#[test]
fn no_link_is_followed_on_the_way_to_a_folder() {
    let mut tree = Tree::new();
    let outside = tree.folder.path().join("outside");
    fs::create_dir_all(outside.join("deep")).unwrap();
    symlink(&outside, tree.at("link")).unwrap();
    tree.watcher.drain();
    for path in [&b"link"[..], b"link/deep", b"none", b"f"] {
        assert_eq!(tree.watcher.watch(&tree.root, path).unwrap(), WatchOutcome::Gone);
    }
    fs::write(outside.join("deep/f"), "x").unwrap();
    assert_eq!(tree.watcher.drain(), folders(&[]));
}

#[test]
fn a_change_of_ignore_rules_reports_its_folder() {
    let mut tree = Tree::new();
    fs::create_dir_all(tree.at("a/.git/info")).unwrap();
    fs::create_dir_all(tree.at(".git/info")).unwrap();
    tree.watcher.drain();
    for repository in [&b""[..], b"a"] {
        tree.watcher.watch_own_rules(&tree.root, repository).unwrap();
    }
    let write = |name: &'static str| move |root: &Path| fs::write(root.join(name), "").unwrap();
    assert_eq!(tree.after(write("a/.git/HEAD")), folders(&[]));
    assert_eq!(tree.after(write("a/.git/info/exclude")), folders(&["a"]));
    assert_eq!(tree.after(write(".git/info/exclude")), folders(&[""]));
    let watched: BTreeSet<&[u8]> = tree.watcher.folders().collect();
    assert_eq!(watched, BTreeSet::from([&b""[..], b"a", b"a/b", b"a/b/c", b"d"]));
}

#[test]
fn a_moved_root_is_reported() {
    let mut tree = Tree::new();
    let other = tree.folder.path().join("other");
    assert_eq!(
        tree.after(|root| fs::rename(root, &other).unwrap()),
        DirtyFolders::Everything(ScanCause::Root)
    );
}

#[test]
fn an_overflow_reports_everything() {
    let mut tree = Tree::new();
    overflow(&tree.at("a/f"), &tree.at("d/f"));
    assert_eq!(tree.watcher.drain(), DirtyFolders::Everything(ScanCause::Overflow));
    assert_eq!(tree.watcher.drain(), folders(&[]));
}

/// Changes two files in turn until the kernel's queue overflows. (The same event twice in a row is
/// queued once.)
pub(crate) fn overflow(one: &Path, other: &Path) {
    let most = fs::read_to_string("/proc/sys/fs/inotify/max_queued_events").unwrap();
    let most: usize = most.trim().parse().unwrap();
    let open = |path| fs::OpenOptions::new().write(true).open(path).unwrap();
    let files = [open(one), open(other)];
    for at in 0..=most {
        std::os::unix::fs::FileExt::write_at(&files[at % 2], b"x", 0).unwrap();
    }
}

/// A platform fact that the rest relies on.
#[test]
fn a_store_through_a_map_is_reported_at_munmap() {
    let mut tree = Tree::new();
    let mut map = MemoryMap::open(&tree.at("d/f"));
    assert_eq!(tree.after(|_| map.store(b"g")), folders(&[]));
    assert_eq!(fs::read(tree.at("d/f")).unwrap(), b"g");
    assert_eq!(tree.after(|_| drop(map)), folders(&["d"]));
}

#[test]
fn folders_are_listed_and_forgotten() {
    let mut tree = Tree::new();
    tree.watcher.forget(b"a/b");
    let watched: BTreeSet<&[u8]> = tree.watcher.folders().collect();
    assert_eq!(watched, BTreeSet::from([&b""[..], b"a", b"a/b/c", b"d"]));
    assert_eq!(tree.after(|root| fs::write(root.join("a/b/f"), "x").unwrap()), folders(&[]));
    assert_eq!(tree.watcher.watch(&tree.root, b"a").unwrap(), WatchOutcome::Before);
}
