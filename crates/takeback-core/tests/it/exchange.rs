//! History is exported from one workspace and imported into another.

mod round_trip;

use std::collections::BTreeMap;
use std::ffi::OsStr;
use std::fs;
use std::io::{Seek as _, Write as _};
use std::os::unix::ffi::OsStrExt as _;
use std::os::unix::fs::symlink;
use std::path::{Path, PathBuf};

use takeback_core::exchange::{
    BundleFile, BundleLimits, ExportError, ExportOptions, ExportReport, IgnoredPaths, ImportMode,
    ImportReport, OutsidePolicy, Selection, export, import,
};
use takeback_core::retention::{Clock, Occasion, Policy, clean_up};
use takeback_core::rewind::Exactness;
use takeback_core::rewind::RewindScope;
use takeback_core::rewind::{RewindRequest, Target};
use takeback_core::worktree::{Index, KnownName};
use takeback_core::{Mark, PointNameError, checkpoint, find_point, look_around, mark};
use takeback_store::{
    Author, Entry, NotCapturedReason, Point, PointId, PointKind, SessionId, Timestamp, Write,
};
use takeback_testkit::{Sandbox, Thing};

use crate::text::{assert_consistent, history, log, report};

pub(crate) fn exported(
    sandbox: &mut Sandbox,
    selection: Selection,
    ignored: IgnoredPaths,
) -> (fs::File, ExportReport) {
    let mut bytes = Vec::new();
    let options = ExportOptions { selection, ignored };
    let exported = export(&mut sandbox.workspace, &options, &mut bytes).unwrap();
    assert_eq!(exported.bytes, bytes.len() as u64);
    (file_of(&bytes), exported)
}

pub(crate) fn file_of(bytes: &[u8]) -> fs::File {
    let mut file = tempfile::tempfile().unwrap();
    file.write_all(bytes).unwrap();
    file.rewind().unwrap();
    file
}

fn everything(sandbox: &mut Sandbox) -> fs::File {
    exported(sandbox, Selection::Everything, IgnoredPaths::LeaveOut).0
}

fn imported(sandbox: &mut Sandbox, file: &fs::File) -> ImportReport {
    let before = sandbox.tree();
    look_around(&mut sandbox.workspace).unwrap();
    let known = index(sandbox);
    let limits = BundleLimits { outside: OutsidePolicy::Accept, ..BundleLimits::default() };
    let bundle = BundleFile::read(file.try_clone().unwrap(), &limits).unwrap();
    let imported = import(&mut sandbox.workspace, &bundle, ImportMode::ForReal).unwrap();
    assert_eq!(sandbox.tree(), before, "an import restores nothing");
    assert_consistent(sandbox);
    assert_eq!(sandbox.workspace.store.check().unwrap(), Vec::<String>::new());
    // The log matches the disk, and the index needs no reading.
    assert_still_known(&known, &index(sandbox));
    assert_eq!(look_around(&mut sandbox.workspace).unwrap().recorded.changes, 0);
    imported
}

fn index(sandbox: &Sandbox) -> Index {
    Index::load(&sandbox.workspace.index_file(), &*sandbox.workspace.store).unwrap()
}

/// A fingerprint that was too recent before may have been added since.
fn assert_still_known(before: &Index, after: &Index) {
    assert_eq!(before.folder_count(), after.folder_count());
    for (path, folder) in before.folders() {
        let now = after.folder(path).unwrap();
        assert_eq!((folder.listed, folder.children.len()), (now.listed, now.children.len()));
        for child in &folder.children {
            let mut was = child.known.clone();
            let known = now.child(&child.name).unwrap();
            if let (
                KnownName::Entry { fingerprint: was @ None, .. },
                KnownName::Entry { fingerprint: now, .. },
            ) = (&mut was, known)
            {
                *was = *now;
            }
            assert_eq!(*known, was);
        }
    }
}

fn exactly(point: PointId) -> RewindRequest {
    RewindRequest { exactness: Exactness::Exact, ..RewindRequest::new(Target::Point(point)) }
}

fn points(sandbox: &Sandbox) -> Vec<Point> {
    sandbox.workspace.store.points().unwrap()
}

type Tree = BTreeMap<PathBuf, Thing>;

/// A workspace with every kind of change, and the trees at its points, oldest first.
fn busy() -> (Sandbox, Vec<(PointId, Tree)>) {
    let mut sandbox = Sandbox::new();
    let mut trees = Vec::new();
    sandbox.write("a.txt", "1\n2\n3\n4\n5\n");
    sandbox.write("bin", [0, 255, 10, 13, 0]);
    sandbox.write("empty", "");
    sandbox.write("run.sh", "#!/bin/sh\n");
    sandbox.set_mode("run.sh", 0o755);
    sandbox.write("secret", "s\n");
    sandbox.set_mode("secret", 0o600);
    let mut large = vec![7_u8; 5 << 20];
    for (at, byte) in large.iter_mut().enumerate() {
        *byte = (at * at / 1000) as u8;
    }
    sandbox.write("large", &large);
    fs::create_dir(sandbox.at("hollow")).unwrap();
    sandbox.set_mode("hollow", 0o700);
    symlink("nowhere/at all", sandbox.at("dangling")).unwrap();
    symlink("hollow", sandbox.at("to-folder")).unwrap();
    fs::write(sandbox.root().join(OsStr::from_bytes(b"caf\xe9\n")), "name").unwrap();
    sandbox.start("s");
    trees.push((sandbox.prompt("s", "first"), sandbox.tree()));
    sandbox.agent_writes("s", "a.txt", "one\n2\n3\n4\n5\n");
    sandbox.agent_runs("s", "make a mess", |sandbox| {
        sandbox.remove("dangling");
        sandbox.write("dangling", "now a file\n");
        sandbox.remove("hollow");
        sandbox.write("deep/er/made", "made\n");
        sandbox.set_mode("run.sh", 0o644);
        large[3 << 20] ^= 1;
        sandbox.write("large", &large);
    });
    sandbox.write("a.txt", "one\n2\n3\n4\nfive\n");
    sandbox.write("mine", "mine\n");
    sandbox.turn_end("s");
    let point = checkpoint(&mut sandbox.workspace, Some("half way")).unwrap().point.unwrap();
    trees.push((point, sandbox.tree()));
    trees.push((sandbox.prompt("s", "second"), sandbox.tree()));
    sandbox.agent_writes("s", "gone again", "x\n");
    sandbox.agent_writes("s", "a.txt", "one\n2\nIII\n4\nfive\n");
    trees.push((sandbox.prompt("t", "third"), sandbox.tree()));
    let (one, other) = (sandbox.before_shell("s", "one"), sandbox.before_shell("t", "other"));
    sandbox.write("whose", "?\n");
    sandbox.after("s", &one);
    sandbox.after("t", &other);
    sandbox.turn_end("s");
    let only = RewindRequest {
        paths: vec!["a.txt".to_owned(), "gone again".to_owned()],
        ..RewindRequest::new(Target::Point(trees[2].0))
    };
    assert!(sandbox.rewind(&only).unwrap().success);
    trees.push((sandbox.prompt("t", "fourth"), sandbox.tree()));
    sandbox.agent_writes("t", "a.txt", "one\n2\n3\n4\nfive and t\n");
    sandbox.turn_end("t");
    (sandbox, trees)
}

#[test]
fn paths_outside_the_bundle_are_not_touched() {
    let mut there = Sandbox::in_memory();
    there.write("both", "theirs\n");
    there.write("d/f", "f\n");
    let point = checkpoint(&mut there.workspace, None).unwrap().point.unwrap();
    let (file, exported) = exported(&mut there, Selection::Point(point), IgnoredPaths::LeaveOut);
    assert_eq!((exported.points, exported.changes, exported.blobs), (1, 0, 2));
    let mut here = Sandbox::in_memory();
    here.write("both", "mine\n");
    here.write("mine", "mine\n");
    here.write("d", "a file where they have a folder\n");
    let before = here.tree();
    let imported = imported(&mut here, &file);
    let receipt = here.rewind(&exactly(imported.points[0].id)).unwrap();
    assert!(receipt.success, "{:?}", report(&receipt));
    let mut expected = there.tree();
    expected.extend(here.tree().into_iter().filter(|(path, _)| path == Path::new("mine")));
    assert_eq!(here.tree(), expected);
    assert_eq!(here.read("mine"), "mine\n");
    assert!(here.undo().success);
    assert_eq!(here.tree(), before);
}

#[test]
fn a_session_is_exported_up_to_its_last_change() {
    let mut there = Sandbox::in_memory();
    there.write("a", "0\n");
    there.prompt("s", "first");
    there.agent_writes("s", "a", "1\n");
    there.turn_end("s");
    there.prompt("t", "other");
    there.agent_writes("t", "b", "t\n");
    there.turn_end("t");
    there.prompt("s", "second");
    there.agent_writes("s", "a", "2\n");
    there.turn_end("s");
    there.agent_writes("t", "c", "after s\n");
    let selection = Selection::Session(SessionId::from("s"));
    let (file, exported) = exported(&mut there, selection, IgnoredPaths::LeaveOut);
    assert_eq!((exported.points, exported.changes), (2, 3));
    let mut here = Sandbox::in_memory();
    let imported = imported(&mut here, &file);
    let names: Vec<_> = imported.points.iter().map(|point| point.description.as_str()).collect();
    assert_eq!(names, ["first", "second"]);
    assert!(history(&here, "c").is_empty());
    let receipt = here.rewind(&exactly(imported.points[1].id)).unwrap();
    assert_eq!(report(&receipt), ["success", "restored a", "restored b"]);
    assert_eq!((here.read("a"), here.read("b")), ("1\n".to_owned(), "t\n".to_owned()));
}

#[test]
fn a_second_import_makes_new_points_and_stores_nothing_twice() {
    let (mut there, _) = busy();
    let file = everything(&mut there);
    let mut here = Sandbox::new();
    let first = imported(&mut here, &file);
    let packed = here.workspace.store.usage().unwrap().blobs;
    let second = imported(&mut here, &file);
    assert!(first.blobs > 8, "{}", first.blobs);
    assert_eq!(second.blobs, 0);
    assert_eq!(here.workspace.store.usage().unwrap().blobs, packed);
    assert_eq!(points(&here).len(), 10);
    let labels: Vec<_> = points(&here).into_iter().filter_map(|point| point.label).collect();
    assert_eq!(labels, ["half way", "half way-2"]);
    assert_eq!(second.points[1].wanted_label.as_deref(), Some("half way"));
    // Also into the workspace it came from.
    let own = imported(&mut there, &file);
    assert_eq!((own.blobs, own.points[1].label.as_deref()), (0, Some("half way-2")));
}

#[test]
fn a_dry_run_adds_nothing() {
    let (mut there, _) = busy();
    let (file, exported) = exported(&mut there, Selection::Everything, IgnoredPaths::LeaveOut);
    let mut here = Sandbox::new();
    look_around(&mut here.workspace).unwrap();
    let head = here.workspace.store.head().unwrap();
    let bundle = BundleFile::read(file, &BundleLimits::default()).unwrap();
    let planned = import(&mut here.workspace, &bundle, ImportMode::DryRun).unwrap();
    assert_eq!(here.workspace.store.head().unwrap(), head);
    assert_eq!(here.workspace.store.usage().unwrap().packs, 0);
    let done = import(&mut here.workspace, &bundle, ImportMode::ForReal).unwrap();
    assert_eq!((planned.changes, planned.blobs), (done.changes, done.blobs));
    assert_eq!(planned.points.len(), done.points.len());
    assert_eq!(
        done.changes, exported.changes,
        "the changes that lead to the import and back are not counted"
    );
}

#[test]
fn ignored_and_outside_paths_are_exported_only_on_request() {
    let mut there = Sandbox::new();
    there.write(".gitignore", ".env\n*.log\nout/\n");
    there.write(".env", "KEY=1\n");
    there.write("src/.gitignore", "!kept.log\n");
    there.write("src/kept.log", "kept\n");
    there.write("src/lost.log", "lost\n");
    there.write(".takeback/settings.json", "{}");
    there.prompt("s", "go");
    there.agent_writes("s", "out/named", "an edit named it\n");
    let outside = there.outside().join("beside");
    fs::write(&outside, "before\n").unwrap();
    let call = there.before_edit("s", &[outside.to_str().unwrap()]);
    fs::write(&outside, "after\n").unwrap();
    there.after("s", &call);
    there.remove("src/lost.log");
    there.turn_end("s");

    let names = |sandbox: &Sandbox| -> Vec<String> {
        let latest = sandbox.workspace.store.latest().unwrap();
        latest.into_iter().map(|(path, _)| path.display()).collect()
    };
    let (file, exported_) = exported(&mut there, Selection::Everything, IgnoredPaths::LeaveOut);
    assert_eq!(exported_.left_out, 6);
    let mut here = Sandbox::in_memory();
    imported(&mut here, &file);
    assert_eq!(names(&here), [".gitignore", "src", "src/.gitignore", "src/kept.log"]);

    let (file, exported_) = exported(&mut there, Selection::Everything, IgnoredPaths::Include);
    assert_eq!(exported_.left_out, 1, "Takeback's own folder is never exported");
    let refused = BundleFile::read(file.try_clone().unwrap(), &BundleLimits::default());
    let refused = refused.unwrap_err().to_string();
    assert!(refused.ends_with("beside is outside the workspace"), "{refused}");
    let mut here = Sandbox::in_memory();
    imported(&mut here, &file);
    let mut all = names(&here);
    all.retain(|name| !name.starts_with('/'));
    assert_eq!(
        all,
        [
            ".env",
            ".gitignore",
            "out",
            "out/named",
            "src",
            "src/.gitignore",
            "src/kept.log",
            "src/lost.log",
        ]
    );
    assert_eq!(fs::read_to_string(&outside).unwrap(), "after\n");
}

#[test]
fn a_small_ignored_file_stays_out_when_rules_change() {
    let mut there = Sandbox::in_memory();
    there.write(".gitignore", ".env\n");
    there.write(".env", "KEY=1\n");
    let point = checkpoint(&mut there.workspace, None).unwrap().point.unwrap();
    there.write(".gitignore", "");
    look_around(&mut there.workspace).unwrap();
    let (_, exported) = exported(&mut there, Selection::Point(point), IgnoredPaths::LeaveOut);
    assert_eq!((exported.blobs, exported.left_out), (1, 1));
}

#[test]
fn an_unscanned_file_is_recorded_before_an_import() {
    let mut there = Sandbox::in_memory();
    there.prompt("s", "go");
    there.agent_writes("s", "out/named", "theirs\n");
    there.turn_end("s");
    let file = everything(&mut there);
    let mut here = Sandbox::in_memory();
    here.write(".gitignore", "out/\n");
    here.write("out/named", "mine\n");
    let before = here.tree();
    let bundle = BundleFile::read(file, &BundleLimits::default()).unwrap();
    import(&mut here.workspace, &bundle, ImportMode::ForReal).unwrap();
    assert_consistent(&here);
    let latest = history(&here, "out/named").pop().unwrap();
    let digest = latest.after.digest().unwrap();
    assert_eq!(here.workspace.store.contents(&digest).unwrap(), b"mine\n");
    assert_eq!((here.tree(), latest.author), (before, Author::Import));
}

#[test]
fn imported_and_local_points_stay_exact_after_a_clean_up() {
    let (mut there, trees) = busy();
    let file = everything(&mut there);
    let mut here = Sandbox::new();
    copy(&there, &here);
    here.write("local", "0\n");
    let by_hand = checkpoint(&mut here.workspace, Some("here")).unwrap().point.unwrap();
    here.prompt("mine", "go");
    here.agent_writes("mine", "local", "1\n");
    here.agent_writes("mine", "local", "2\n");
    here.turn_end("mine");
    let imported = imported(&mut here, &file);
    let policy = Policy { points_per_session: 1, ..Policy::default() };
    let cleaned = clean_up(&mut here.workspace, &policy, Occasion::OnDemand, Clock::Trusted);
    assert!(cleaned.unwrap().changes > 0);
    assert_eq!(here.workspace.store.check().unwrap(), Vec::<String>::new());
    assert_eq!(look_around(&mut here.workspace).unwrap().recorded.changes, 0);
    let kept = points(&here);
    let here = here.freeze();
    let mut seen = 0;
    for (point, (_, tree)) in imported.points.iter().zip(&trees) {
        if kept.iter().any(|kept| kept.id == point.id) {
            let mut here = here.thaw();
            assert!(here.rewind(&exactly(point.id)).unwrap().success);
            let mut found = here.tree();
            found.remove(Path::new("local")).unwrap();
            assert_eq!(found, *tree, "{}", point.description);
            seen += 1;
        }
    }
    assert_eq!(seen, 3, "the newest of each session and the labelled one");
    let mut again = here.thaw();
    let receipt = again.rewind_to(by_hand);
    assert_eq!(report(&receipt), ["success", "restored local"]);
    // And it can be exported again.
    let file = everything(&mut here.thaw());
    let mut third = Sandbox::new();
    let imported = self::imported(&mut third, &file);
    let done = imported.points.iter().find(|point| point.description == "fourth").unwrap();
    assert!(third.rewind(&exactly(done.id)).unwrap().success);
    let mut found = third.tree();
    found.remove(Path::new("local")).unwrap();
    assert_eq!(found, trees[4].1);
}

#[test]
fn a_thinned_log_can_be_exported() {
    let mut there = Sandbox::in_memory();
    there.write("a", "0\n");
    there.prompt("s", "go");
    for text in ["1\n", "2\n", "3\n"] {
        there.agent_writes("s", "a", text);
    }
    there.turn_end("s");
    let middle = history(&there, "a")[2].seq;
    let head = there.workspace.store.head().unwrap();
    there.workspace.store.commit(head, &[Write::DropChange(middle)]).unwrap();
    let file = everything(&mut there);
    let mut here = Sandbox::in_memory();
    let imported = imported(&mut here, &file);
    assert!(here.rewind(&exactly(imported.points[0].id)).unwrap().success);
    assert_eq!(here.read("a"), "0\n");
}

/// A path left the scope and came back: its state in between is unknown in both workspaces.
#[test]
fn an_unknown_state_is_not_imported_as_absent() {
    let mut there = Sandbox::in_memory();
    fs::create_dir(there.at(".git")).unwrap();
    there.write("x.txt", "x\n");
    there.prompt("s", "one");
    there.agent_runs("s", "rm", |there| there.remove("x.txt"));
    let at_once = there.prompt("s", "two");
    there.write(".takebackignore", "x.txt\n");
    there.write("x.txt", "y\n");
    let hidden = there.prompt("s", "three");
    there.remove(".takebackignore");
    let seen = there.prompt("s", "four");
    let file = everything(&mut there);
    for point in [seen, hidden, at_once] {
        let mut here = Sandbox::in_memory();
        here.write("x.txt", "y\n");
        let imported = imported(&mut here, &file);
        let brought = imported.points.iter().find(|p| p.was == point).unwrap().id;
        here.rewind(&exactly(brought)).unwrap();
        there.rewind(&exactly(point)).unwrap();
        assert_eq!((here.read("x.txt"), there.read("x.txt")), ("y\n".into(), "y\n".into()));
    }
}

/// Names of imported points never change the meaning of a local name.
#[test]
fn imported_names_do_not_shadow_local_ones() {
    let mut there = Sandbox::in_memory();
    let mut here = Sandbox::in_memory();
    let mine = here.prompt("me", "go");
    let newest = Point {
        id: PointId(0xabcd_0000_0000_0000),
        message_ids: Vec::new(),
        ..points(&here).remove(0)
    };
    let head = here.workspace.store.head().unwrap();
    here.workspace.store.commit(head, &[Write::Point(newest.clone())]).unwrap();
    for label in ["10m", "me:message go", "abcd", "only there", "1h"] {
        let point = there.prompt("s", label);
        mark(&mut there.workspace, point, Mark::Label(label)).unwrap();
    }
    for mut point in points(&there) {
        point.message_ids =
            vec![point.description.clone(), "theirs".to_owned() + &point.description];
        let head = there.workspace.store.head().unwrap();
        there.workspace.store.commit(head, &[Write::Point(point)]).unwrap();
    }
    let theirs = imported(&mut here, &everything(&mut there)).points;
    let points = points(&here);
    let time = |text: &str| match text {
        "10m" => Some(Timestamp(i64::MAX)),
        "1h" => Some(Timestamp(i64::MIN)),
        _ => None,
    };
    let found = |name: &str| find_point(&points, name, &time).map(|point| point.id).ok();
    for (name, meant) in [("10m", newest.id), ("me:message go", mine), ("abcd", newest.id)] {
        assert_eq!(found(name), Some(meant), "{name}");
    }
    // A time before the first local point.
    let nearest = Some(theirs[4].id.to_string());
    let error = find_point(&points, "1h", &time).unwrap_err();
    assert_eq!(error, PointNameError::NotFound { name: "1h".to_owned(), nearest });
    assert_eq!(found("only there"), Some(theirs[3].id));
    assert_eq!(found("theirs10m"), Some(theirs[0].id));
}

#[test]
fn missing_contents_are_reported_after_an_import_too() {
    let mut there = Sandbox::in_memory();
    there.workspace.limits.edit_capture_max = 4;
    there.write("f", "0\n");
    let point = there.prompt("s", "go");
    there.write("f", "too large\n");
    there.agent_writes("s", "f", "by the agent\n");
    let missing = Entry::NotCaptured { reason: NotCapturedReason::TooLarge };
    assert!(history(&there, "f").iter().any(|change| change.after == missing));
    let file = everything(&mut there);
    let mut here = Sandbox::in_memory();
    here.write("f", "by the agent\n");
    let imported = imported(&mut here, &file);
    let original = there.rewind_to(point);
    assert_eq!(report(&here.rewind_to(imported.points[0].id)), report(&original));
    assert!(history(&here, "f").iter().any(|change| change.after == missing));
}

#[test]
fn an_imported_link_is_never_written_through() {
    let mut there = Sandbox::in_memory();
    let outside = there.outside().join("target");
    fs::create_dir(&outside).unwrap();
    symlink(&outside, there.at("d")).unwrap();
    let link = checkpoint(&mut there.workspace, None).unwrap().point.unwrap();
    there.remove("d");
    there.write("d/f", "through?\n");
    let folder = checkpoint(&mut there.workspace, None).unwrap().point.unwrap();
    let file = everything(&mut there);
    let mut here = Sandbox::in_memory();
    let imported = imported(&mut here, &file);
    let here_of = |was| imported.points.iter().find(|point| point.was == was).unwrap().id;
    for point in [link, folder, link, folder] {
        assert!(here.rewind(&exactly(here_of(point))).unwrap().success);
        assert_eq!(fs::read_dir(&outside).unwrap().count(), 0);
    }
    assert_eq!(fs::read(here.at("d/f")).unwrap(), b"through?\n");
    assert!(!here.at("d").is_symlink());
}

#[test]
fn impossible_exports_are_refused() {
    let (mut there, _) = busy();
    let safety = points(&there).into_iter().find(|p| p.kind == PointKind::Safety).unwrap().id;
    let mut errors = Vec::new();
    for selection in [
        Selection::Point(PointId(99)),
        Selection::Point(safety),
        Selection::Session(SessionId::from("x")),
    ] {
        let options = ExportOptions { selection, ignored: IgnoredPaths::LeaveOut };
        let error = export(&mut there.workspace, &options, &mut Vec::new()).unwrap_err();
        errors.push(error.to_string());
    }
    assert_eq!(
        errors,
        [
            "there is no point 0000000000000063".to_owned(),
            format!("{safety} is a safety point, which belongs to a rewind of this workspace"),
            "no session is called \"x\"".to_owned(),
        ]
    );
    let mut empty = Sandbox::in_memory();
    let options =
        ExportOptions { selection: Selection::Everything, ignored: IgnoredPaths::LeaveOut };
    let nothing = export(&mut empty.workspace, &options, &mut Vec::new());
    assert!(matches!(nothing, Err(ExportError::NoPoints)), "{nothing:?}");
}

fn copy(from: &Sandbox, to: &Sandbox) {
    for (path, thing) in from.tree() {
        let at = to.root().join(&path);
        match thing {
            Thing::Folder { .. } => fs::create_dir(&at).unwrap(),
            Thing::Link(target) => symlink(target, &at).unwrap(),
            Thing::File { bytes, .. } => fs::write(&at, bytes).unwrap(),
        }
        if !at.is_symlink() {
            let mode = fs::symlink_metadata(from.root().join(&path)).unwrap().permissions();
            fs::set_permissions(&at, mode).unwrap();
        }
    }
}
