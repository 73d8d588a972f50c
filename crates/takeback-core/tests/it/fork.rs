//! A fork is the whole workspace at a point, in a folder that knows where it comes from.

use std::collections::BTreeMap;
use std::fs;
use std::os::unix::ffi::OsStrExt as _;
use std::os::unix::fs::{MetadataExt as _, PermissionsExt as _, symlink};
use std::path::{Path, PathBuf};

use takeback_core::fork::{
    FolderState, Fork, ForkChange, ForkError, ForkExtent, ForkPlace, ForkReport, ForkRequest,
    ForkTarget, LeftOut, MissingReason, fork, fork_origin,
};
use takeback_core::worktree::{OutReason, ScopeOptions};
use takeback_core::{Ambient, Mark, checkpoint, mark};
use takeback_store::{Digest, Entry, NotCapturedReason, PackedBlob, Point, PointId, PointQuery};
use takeback_testkit::{Sandbox, Thing, path, tree};

struct Scene {
    sandbox: Sandbox,
}

impl Scene {
    fn new() -> Self {
        Self { sandbox: Sandbox::new() }
    }

    fn point(&self, id: PointId) -> Point {
        self.sandbox.workspace.store.find_points(PointQuery::Id(id)).unwrap().pop().unwrap()
    }

    fn folder(&self, name: &str) -> PathBuf {
        self.sandbox.outside().join(name)
    }

    fn store_of(&self, name: &str) -> PathBuf {
        self.sandbox.outside().join(format!("store of {name}"))
    }

    fn claim(&self, name: &str) -> Result<ForkTarget, ForkError> {
        let home = self.sandbox.outside().join("store");
        let place = ForkPlace::find(&self.sandbox.workspace, &self.folder(name), &home)?;
        let store = self.store_of(name);
        fs::create_dir_all(&store).unwrap();
        ForkTarget::claim(&self.sandbox.workspace, &place, store)
    }

    fn fork_with(
        &self,
        id: PointId,
        names: &[&str],
        extent: ForkExtent,
    ) -> Result<ForkReport, ForkError> {
        let targets = names.iter().map(|name| self.claim(name)).collect::<Result<_, _>>()?;
        let point = self.point(id);
        let request = ForkRequest { point: &point, extent, store_id: None };
        fork(&self.sandbox.workspace, &request, targets)
    }

    fn fork(&self, id: PointId, name: &str) -> ForkReport {
        self.fork_with(id, &[name], ForkExtent::Covered).unwrap()
    }

    fn open(&self, name: &str) -> Result<Fork, ForkError> {
        let folder = fs::canonicalize(self.folder(name)).unwrap();
        Fork::open(&folder, &self.store_of(name))
    }

    fn changes(&self, name: &str) -> Vec<ForkChange> {
        self.changes_with_bytes(name).0
    }

    fn changes_with_bytes(&self, name: &str) -> (Vec<ForkChange>, BTreeMap<Digest, PackedBlob>) {
        let mut blobs = BTreeMap::new();
        let mut keep = |blob: PackedBlob| drop(blobs.insert(blob.digest, blob));
        let scope = ScopeOptions::default();
        let found = self.open(name).unwrap().changes(&scope, &Ambient::system(), &mut keep);
        (found.unwrap().changes, blobs)
    }

    fn tree_of(&self, name: &str) -> BTreeMap<PathBuf, Thing> {
        tree(&self.folder(name))
    }
}

fn file(text: &str) -> Entry {
    Entry::File { digest: Digest::of(text.as_bytes()), size: text.len() as u64, mode: 0o644 }
}

/// A file that was written in this moment might be written again and look the same.
fn a_tick_passes() {
    std::thread::sleep(std::time::Duration::from_millis(30));
}

fn brief(changes: &[ForkChange]) -> Vec<(String, Entry, Entry)> {
    let brief =
        |change: &ForkChange| (change.path.display(), change.base.clone(), change.now.clone());
    changes.iter().map(brief).collect()
}

/// Files, links, modes, folders and names of every kind.
fn lay_out(sandbox: &Sandbox) {
    sandbox.write("a.txt", "a\n");
    sandbox.write("bin/tool", [0, 159, 146, 150, 10, 0]);
    sandbox.set_mode("bin/tool", 0o755);
    sandbox.write("secret/.env", "KEY=1\n");
    sandbox.set_mode("secret/.env", 0o600);
    sandbox.set_mode("secret", 0o700);
    sandbox.write("empty", "");
    sandbox.write("no permissions", "none\n");
    sandbox.set_mode("no permissions", 0);
    sandbox.write("large", vec![7; 3 << 20]);
    fs::create_dir_all(sandbox.at("hollow/inner")).unwrap();
    sandbox.write("read only/x", "x\n");
    sandbox.set_mode("read only/x", 0o444);
    sandbox.set_mode("read only", 0o555);
    symlink("a.txt", sandbox.at("link")).unwrap();
    symlink("nowhere/at all", sandbox.at("dangling")).unwrap();
    symlink("../outside", sandbox.at("hollow/up")).unwrap();
    let odd = std::ffi::OsStr::from_bytes(b"caf\xe9 \n\x1b[31m\"'");
    fs::write(sandbox.root().join(odd), "odd\n").unwrap();
}

#[test]
fn a_fork_is_the_tree_at_its_point() {
    let mut scene = Scene::new();
    lay_out(&scene.sandbox);
    let before = scene.sandbox.tree();
    a_tick_passes();
    let point = scene.sandbox.prompt("s", "go");
    let same = scene.sandbox.prompt("s", "again");
    scene.sandbox.agent_writes("s", "a.txt", "b\n");
    scene.sandbox.agent_runs("s", "rm", |sandbox| {
        sandbox.remove("bin");
        sandbox.write("bin", "a file now\n");
        sandbox.remove("link");
        sandbox.write("new/file", "new\n");
        sandbox.set_mode("empty", 0o640);
        a_tick_passes();
    });
    let after = scene.sandbox.tree();
    let report = scene.fork(point, "old");
    assert_eq!(scene.tree_of("old"), before);
    assert_eq!((report.files, report.missing.len()), (8, 0), "{report:?}");
    assert_eq!(report.from_disk, 6, "changed ones come from the store");
    assert_eq!(scene.sandbox.tree(), after, "the workspace is untouched");
    assert!(!scene.folder("old/.takeback").exists());
    a_tick_passes();
    let now = checkpoint(&mut scene.sandbox.workspace, None).unwrap().point.unwrap();
    let report = scene.fork(now, "now");
    assert_eq!(scene.tree_of("now"), after);
    assert_eq!(report.from_disk, report.files);
    scene.fork(same, "same");
    assert_eq!(scene.tree_of("same"), before);
    for name in ["old", "now", "same"] {
        assert_eq!(scene.changes(name), [], "{name}");
    }
}

#[test]
fn files_from_disk_keep_their_times() {
    let mut scene = Scene::new();
    scene.sandbox.write("kept", "kept\n");
    let long_ago = fs::FileTimes::new()
        .set_modified(std::time::UNIX_EPOCH + std::time::Duration::new(1_000_000_000, 42));
    fs::File::open(scene.sandbox.at("kept")).unwrap().set_times(long_ago).unwrap();
    a_tick_passes();
    let point = scene.sandbox.prompt("s", "go");
    scene.fork(point, "f");
    let found = fs::metadata(scene.folder("f/kept")).unwrap();
    assert_eq!((found.mtime(), found.mtime_nsec()), (1_000_000_000, 42));
}

/// A file whose bytes changed without an event is not what the log has, however it looks.
#[test]
fn a_file_that_changed_since_it_was_recorded_comes_from_the_store() {
    let mut scene = Scene::new();
    scene.sandbox.write("a", "one\n");
    let point = scene.sandbox.prompt("s", "go");
    let times = fs::metadata(scene.sandbox.at("a")).unwrap();
    scene.sandbox.write("a", "two\n");
    let back = fs::FileTimes::new().set_modified(times.modified().unwrap());
    fs::File::options().write(true).open(scene.sandbox.at("a")).unwrap().set_times(back).unwrap();
    let report = scene.fork(point, "f");
    assert_eq!(fs::read_to_string(scene.folder("f/a")).unwrap(), "one\n");
    assert_eq!((report.files, report.from_disk), (1, 0));
}

#[test]
fn several_forks_are_written_at_once_and_know_their_origin() {
    let mut scene = Scene::new();
    lay_out(&scene.sandbox);
    let before = scene.sandbox.tree();
    let point = scene.sandbox.prompt("s", "add retries");
    let names = ["f-1", "f-2", "f-3"];
    scene.fork_with(point, &names, ForkExtent::Covered).unwrap();
    for name in names {
        assert_eq!(scene.tree_of(name), before);
        let origin = fork_origin(&scene.store_of(name)).unwrap().unwrap();
        assert_eq!(origin.root, fs::canonicalize(scene.sandbox.root()).unwrap());
        assert_eq!((origin.point, origin.seq), (point, scene.point(point).seq));
        assert_eq!(origin.description, "add retries");
    }
    assert_eq!(fork_origin(&scene.sandbox.workspace.store_dir).unwrap(), None);
}

#[test]
fn changes_of_a_fork_are_what_happened_in_it() {
    let mut scene = Scene::new();
    for name in ["kept", "edited", "gone", "mode", "kind", "dir/inner"] {
        scene.sandbox.write(name, format!("{name}\n"));
    }
    scene.sandbox.write(".gitignore", "*.log\n/cache\n");
    scene.sandbox.write("known.log", "log\n");
    let point = scene.sandbox.prompt("s", "go");
    // What happens in the workspace later is not a change of the fork.
    scene.sandbox.agent_writes("s", "kept", "the agent's\n");
    scene.fork(point, "f");
    let at = |name: &str| scene.folder("f").join(name);
    fs::write(at("edited"), "edited twice\n").unwrap();
    fs::remove_file(at("gone")).unwrap();
    fs::set_permissions(at("mode"), fs::Permissions::from_mode(0o755)).unwrap();
    fs::remove_file(at("kind")).unwrap();
    symlink("kept", at("kind")).unwrap();
    fs::remove_dir_all(at("dir")).unwrap();
    fs::write(at("dir"), "a file\n").unwrap();
    fs::write(at("new"), "new\n").unwrap();
    fs::create_dir(at("cache")).unwrap();
    fs::write(at("cache/made"), "made\n").unwrap();
    fs::write(at("known.log"), "log\nmore\n").unwrap();
    // The same bytes under new times are no change.
    fs::write(at("kept"), "kept\n").unwrap();
    let (changes, blobs) = scene.changes_with_bytes("f");
    let absent = Entry::Absent;
    let same = file("mode\n");
    let Entry::File { digest, size, .. } = same else { unreachable!() };
    assert_eq!(
        brief(&changes),
        [
            ("cache".to_owned(), absent.clone(), Entry::Dir { mode: 0o755 }),
            ("cache/made".to_owned(), absent.clone(), file("made\n")),
            ("dir".to_owned(), Entry::Dir { mode: 0o755 }, file("a file\n")),
            ("dir/inner".to_owned(), file("dir/inner\n"), absent.clone()),
            ("edited".to_owned(), file("edited\n"), file("edited twice\n")),
            ("gone".to_owned(), file("gone\n"), absent.clone()),
            ("kind".to_owned(), file("kind\n"), Entry::Symlink { target: b"kept".to_vec() }),
            ("known.log".to_owned(), file("log\n"), file("log\nmore\n")),
            ("mode".to_owned(), same, Entry::File { digest, size, mode: 0o755 }),
            ("new".to_owned(), absent, file("new\n")),
        ]
    );
    let fork = scene.open("f").unwrap();
    for change in &changes {
        let Entry::File { digest, .. } = &change.now else { continue };
        let bytes = fs::read(scene.folder("f").join(change.path.display())).unwrap();
        if change.base.digest() != Some(*digest) {
            assert_eq!(blobs[digest].unpack().unwrap(), bytes, "{:?}", change.path);
        }
        assert_eq!(fork.contents(&change.path, digest).unwrap(), bytes);
    }
    fs::write(at("new"), "newer\n").unwrap();
    let stale = fork.contents(&path("new"), &Digest::of(b"new\n"));
    assert!(matches!(stale, Err(ForkError::Changed { .. })), "{stale:?}");
}

#[test]
fn links_into_the_workspace_lead_into_the_fork() {
    let mut scene = Scene::new();
    scene.sandbox.write("a", "a\n");
    let root = fs::canonicalize(scene.sandbox.root()).unwrap();
    symlink(root.join("a"), scene.sandbox.at("inside")).unwrap();
    symlink(&root, scene.sandbox.at("top")).unwrap();
    symlink(root.with_file_name("work-2"), scene.sandbox.at("beside")).unwrap();
    let point = scene.sandbox.prompt("s", "go");
    scene.fork(point, "f");
    let folder = fs::canonicalize(scene.folder("f")).unwrap();
    let target = |name: &str| fs::read_link(folder.join(name)).unwrap();
    assert_eq!(target("inside"), folder.join("a"));
    assert_eq!(target("top"), folder);
    assert_eq!(target("beside"), root.with_file_name("work-2"));
    assert_eq!(scene.changes("f"), []);
    fs::remove_file(folder.join("inside")).unwrap();
    symlink(folder.join("b"), folder.join("inside")).unwrap();
    let link =
        |name: &str| Entry::Symlink { target: root.join(name).as_os_str().as_bytes().to_vec() };
    assert_eq!(brief(&scene.changes("f")), [("inside".to_owned(), link("a"), link("b"))]);
}

#[test]
fn folders_that_cannot_take_a_fork_are_refused() {
    let mut scene = Scene::new();
    scene.sandbox.write("a", "a\n");
    scene.sandbox.prompt("s", "go");
    let folder = |name: &str| scene.folder(name);
    fs::create_dir(folder("full")).unwrap();
    fs::write(folder("full/mine"), "mine\n").unwrap();
    fs::write(folder("file"), "file\n").unwrap();
    fs::create_dir(folder("real")).unwrap();
    symlink("real", folder("link")).unwrap();
    symlink("missing", folder("dangling")).unwrap();
    let why = |name: &str| scene.claim(name).unwrap_err().to_string();
    let top = fs::canonicalize(scene.sandbox.outside()).unwrap();
    let told = |name: &str| why(name).replace(&top.display().to_string(), "TOP");
    let told =
        |name: &str| told(name).replace(&scene.sandbox.outside().display().to_string(), "TOP");
    assert_eq!(told("full"), "TOP/full is not empty");
    assert_eq!(told("file"), "cannot fork into TOP/file: it is not a folder");
    assert_eq!(told("link"), "cannot fork into TOP/link: it is a link; name the folder itself");
    assert_eq!(
        told("dangling"),
        "cannot fork into TOP/dangling: it is a link; name the folder itself"
    );
    assert_eq!(
        told("work/sub"),
        "cannot fork into TOP/work/sub: it is inside the workspace; choose a folder beside it"
    );
    assert_eq!(told("work"), "cannot fork into TOP/work: it is the workspace itself");
    assert_eq!(told("store/f"), "cannot fork into TOP/store/f: it is inside Takeback's own folder");
    assert_eq!(
        told("none/f"),
        "cannot fork into TOP/none/f: the folder that it would be in does not exist"
    );
    assert!(!folder("missing").exists() && fs::read_dir(folder("real")).unwrap().next().is_none());
    assert_eq!(fs::read_to_string(folder("full/mine")).unwrap(), "mine\n");
    // A link above the folder is the user's own way there.
    symlink("real", folder("way")).unwrap();
    let target = scene.claim("way/f").unwrap();
    assert_eq!(target.path(), top.join("real/f"));
}

#[test]
fn two_processes_cannot_fill_one_folder() {
    let mut scene = Scene::new();
    scene.sandbox.write("a", "a\n");
    let point = scene.sandbox.prompt("s", "go");
    let held = scene.claim("f").unwrap();
    assert!(matches!(scene.claim("f"), Err(ForkError::Busy { .. })));
    assert!(matches!(scene.open("f"), Err(ForkError::Unfinished { .. })));
    drop(held);
    scene.fork(point, "f");
    assert!(matches!(scene.claim("f"), Err(ForkError::NotEmpty { .. })));
    fs::create_dir_all(scene.folder("plain")).unwrap();
    assert!(matches!(scene.open("plain"), Err(ForkError::NoFork { .. })));
}

#[test]
fn what_the_store_does_not_have_is_listed() {
    let mut scene = Scene::new();
    for name in ["kept", "lost", "purged"] {
        scene.sandbox.write(name, format!("{name} bytes\n"));
    }
    let point = scene.sandbox.prompt("s", "go");
    let purged = takeback_core::purge(&mut scene.sandbox.workspace, &path("purged"));
    drop(purged.unwrap());
    scene.sandbox.write("lost", "other bytes\n");
    for pack in fs::read_dir(scene.sandbox.workspace.store_dir.join("packs")).unwrap() {
        let pack = pack.unwrap().path();
        let mut bytes = fs::read(&pack).unwrap();
        let at = bytes.windows(10).position(|part| part == b"lost bytes").unwrap();
        bytes[at] = b'L';
        fs::write(&pack, bytes).unwrap();
    }
    let report = scene.fork(point, "f");
    assert_eq!(
        report.missing,
        [
            (path("lost"), MissingReason::Lost),
            // A purge leaves a path without a name.
            (
                path("purged-0000000000000003"),
                MissingReason::NotCaptured(NotCapturedReason::Purged)
            ),
        ]
    );
    assert_eq!(scene.tree_of("f").into_keys().collect::<Vec<_>>(), [PathBuf::from("kept")]);
    // They are no deletions, and what comes to be there has no known base.
    assert_eq!(scene.changes("f"), []);
    fs::write(scene.folder("f/lost"), "new\n").unwrap();
    let damaged = Entry::NotCaptured { reason: NotCapturedReason::Damaged };
    assert_eq!(brief(&scene.changes("f")), [("lost".to_owned(), damaged, file("new\n"))]);
}

fn project(sandbox: &Sandbox) {
    sandbox.write("package.json", "{}\n");
    sandbox.write(".gitignore", "node_modules\n.env\n");
    sandbox.write(".env", "KEY=1\n");
    sandbox.write("node_modules/dep/index.js", "dep\n");
    fs::create_dir(sandbox.at("node_modules/.bin")).unwrap();
    symlink("../dep/index.js", sandbox.at("node_modules/.bin/dep")).unwrap();
    sandbox.write(".git/HEAD", "ref: refs/heads/main\n");
    sandbox.write("lib/.git", "gitdir: ../.git/modules/lib\n");
    sandbox.write("lib/x", "x\n");
    sandbox.write("tree/.git", "gitdir: /elsewhere/.git/worktrees/tree\n");
}

#[test]
fn ignored_files_that_are_covered_come_along_and_the_rest_is_named() {
    let mut scene = Scene::new();
    project(&scene.sandbox);
    let point = scene.sandbox.prompt("s", "go");
    let report = scene.fork(point, "f");
    assert_eq!(
        report.left_out,
        [
            (path(".git"), LeftOut::VersionControl),
            (path("lib/.git"), LeftOut::VersionControl),
            (path("node_modules"), LeftOut::NotCovered(OutReason::Derived)),
            (path("tree/.git"), LeftOut::VersionControl),
        ]
    );
    assert_eq!(fs::read_to_string(scene.folder("f/.env")).unwrap(), "KEY=1\n");
    assert!(!scene.folder("f/.git").exists() && !scene.folder("f/node_modules").exists());
    assert_eq!(scene.changes("f"), []);
}

#[test]
fn a_fork_of_everything_has_build_output_and_repositories() {
    let mut scene = Scene::new();
    project(&scene.sandbox);
    let point = scene.sandbox.prompt("s", "go");
    scene.sandbox.write("node_modules/dep/later.js", "later\n");
    let report = scene.fork_with(point, &["f"], ForkExtent::All).unwrap();
    assert_eq!(report.left_out, [(path("tree/.git"), LeftOut::LinkedRepository)]);
    assert_eq!(report.extra_files, 4);
    assert_eq!(scene.tree_of("f"), scene.sandbox.tree());
    let read = |name: &str| fs::read_to_string(scene.folder("f").join(name)).unwrap();
    assert_eq!(read(".git/HEAD"), "ref: refs/heads/main\n");
    assert_eq!(read("lib/.git"), "gitdir: ../.git/modules/lib\n");
    assert!(!scene.folder("f/tree/.git").exists());
    assert_eq!(scene.changes("f"), []);
    fs::write(scene.folder("f/node_modules/dep/index.js"), "rebuilt\n").unwrap();
    fs::write(scene.folder("f/.git/HEAD"), "elsewhere\n").unwrap();
    assert_eq!(scene.changes("f"), [], "neither is covered");
}

#[test]
fn a_pinned_point_keeps_what_a_fork_needs() {
    let mut scene = Scene::new();
    scene.sandbox.write("a", "a\n");
    let point = scene.sandbox.prompt("s", "go");
    mark(&mut scene.sandbox.workspace, point, Mark::Pin).unwrap();
    scene.fork(point, "f");
    for round in 0..5 {
        scene.sandbox.prompt("s", &format!("round {round}"));
        scene.sandbox.agent_writes("s", "a", format!("{round}\n"));
    }
    assert!(scene.sandbox.workspace.store.contents(&Digest::of(b"a\n")).is_ok());
    assert_eq!(scene.open("f").unwrap().origin.point, point);
}

#[test]
fn a_part_of_a_fork_is_completed_and_other_files_are_not_overwritten() {
    let mut scene = Scene::new();
    lay_out(&scene.sandbox);
    let before = scene.sandbox.tree();
    let point = scene.sandbox.prompt("s", "go");
    let other = scene.sandbox.prompt("s", "other");
    drop(scene.claim("f").unwrap());
    let at = |name: &str| scene.folder("f").join(name);
    // As a killed process leaves them: complete, begun, read-only.
    fs::write(at("a.txt"), "a\n").unwrap();
    fs::write(at("large"), "a part").unwrap();
    fs::set_permissions(at("large"), fs::Permissions::from_mode(0o0)).unwrap();
    fs::create_dir(at("read only")).unwrap();
    fs::set_permissions(at("read only"), fs::Permissions::from_mode(0o555)).unwrap();
    symlink("a.txt", at("link")).unwrap();
    scene.fork(point, "f");
    assert_eq!(scene.tree_of("f"), before);
    assert_eq!(scene.changes("f"), []);

    drop(scene.claim("g").unwrap());
    fs::write(scene.folder("g/a.txt"), "mine\n").unwrap();
    let refused = scene.fork_with(point, &["g"], ForkExtent::Covered).unwrap_err();
    assert!(matches!(&refused, ForkError::InTheWay { path, .. } if path.display() == "a.txt"));
    assert_eq!(fs::read_to_string(scene.folder("g/a.txt")).unwrap(), "mine\n");
    assert!(matches!(scene.open("g"), Err(ForkError::Unfinished { .. })));
    let refused = scene.fork_with(other, &["g"], ForkExtent::Covered).unwrap_err();
    assert!(matches!(refused, ForkError::OtherFork { .. }), "{refused}");
    fs::remove_file(scene.folder("g/a.txt")).unwrap();
    scene.fork(point, "g");
    assert_eq!(scene.tree_of("g"), before);
}

#[test]
fn nothing_is_written_through_a_link() {
    let mut scene = Scene::new();
    scene.sandbox.write("sub/a", "a\n");
    let point = scene.sandbox.prompt("s", "go");
    let victim = scene.folder("victim");
    fs::create_dir(&victim).unwrap();
    drop(scene.claim("f").unwrap());
    symlink(&victim, scene.folder("f/sub")).unwrap();
    let refused = scene.fork_with(point, &["f"], ForkExtent::Covered);
    assert!(refused.is_err(), "{refused:?}");
    assert_eq!(fs::read_dir(&victim).unwrap().count(), 0);
}

#[test]
fn a_path_that_was_not_covered_at_the_point_is_named() {
    let mut scene = Scene::new();
    scene.sandbox.write(".takebackignore", "/private\n");
    scene.sandbox.write("private", "before\n");
    let point = scene.sandbox.prompt("s", "go");
    scene.sandbox.write(".takebackignore", "\n");
    scene.sandbox.prompt("s", "later");
    let report = scene.fork(point, "f");
    assert_eq!(report.unknown, [path("private")]);
    assert!(!scene.folder("f/private").exists());
    assert_eq!(scene.changes("f"), []);
    fs::write(scene.folder("f/private"), "made\n").unwrap();
    let changes = scene.changes("f");
    assert!(
        changes.is_empty() || brief(&changes)[0].1 == Entry::Unknown,
        "the base of {changes:?} is unknown"
    );
}

#[test]
fn a_claimed_folder_is_found_as_unfinished() {
    let mut scene = Scene::new();
    scene.sandbox.prompt("s", "go");
    let home = scene.sandbox.outside().join("store");
    let find = |name: &str| {
        ForkPlace::find(&scene.sandbox.workspace, &scene.folder(name), &home).unwrap().state
    };
    assert_eq!(find("f"), FolderState::Empty);
    drop(scene.claim("f").unwrap());
    assert_eq!(find("f"), FolderState::Unfinished);
    let is_private = |path: &Path| fs::metadata(path).unwrap().mode() & 0o777;
    assert_eq!(is_private(&scene.folder("f")), is_private(&scene.sandbox.root()));
}
