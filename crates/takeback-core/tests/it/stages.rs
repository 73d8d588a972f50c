//! Anything named like a stage that is not this store's is left alone and does not stop a rewind.

use std::fs;
use std::os::unix::ffi::OsStrExt as _;
use std::os::unix::fs::symlink;
use std::path::{Path, PathBuf};

use takeback_core::rewind::needs_recovery;
use takeback_core::rewind::{RecoveryReport, recover};
use takeback_store::{Digest, PointId, RewindId};
use takeback_testkit::{Sandbox, tree};

const ID: RewindId = RewindId(0xaa);
const STAGE: &str = ".takeback/stage-00000000000000aa";

/// An agent has edited `a.txt`.
fn edited() -> (Sandbox, PointId) {
    let mut sandbox = Sandbox::new();
    sandbox.write("a.txt", "a\n");
    let point = sandbox.prompt("s", "go");
    sandbox.agent_writes("s", "a.txt", "b\n");
    sandbox.turn_end("s");
    (sandbox, point)
}

fn mark_of(store_dir: &Path) -> String {
    let path = fs::canonicalize(store_dir).unwrap();
    format!("unpromised-{}", &Digest::of(path.as_os_str().as_bytes()).to_string()[..16])
}

#[test]
fn foreign_stages_are_left_alone() {
    type Setup = fn(&Sandbox);
    let cases: [(&str, Setup); 6] = [
        ("a folder in it", |sandbox| fs::create_dir_all(sandbox.at(STAGE).join("sub")).unwrap()),
        ("a file of that name", |sandbox| sandbox.write(STAGE, "mine\n")),
        ("a link of that name", |sandbox| {
            sandbox.write("../victim/new-0", "precious\n");
            fs::create_dir(sandbox.at(".takeback")).unwrap();
            symlink(sandbox.outside().join("victim"), sandbox.at(STAGE)).unwrap();
        }),
        ("a link to nowhere", |sandbox| {
            fs::create_dir(sandbox.at(".takeback")).unwrap();
            symlink("nowhere", sandbox.at(STAGE)).unwrap();
        }),
        ("a version that a user saved", |sandbox| {
            sandbox.write(&format!("{STAGE}/new-0"), "saved meanwhile\n");
        }),
        ("made by another store", |sandbox| {
            sandbox.write(&format!("{STAGE}/{}", mark_of(&sandbox.outside())), "");
            sandbox.write(&format!("{STAGE}/new-0"), "being made\n");
        }),
    ];
    for (what, set_up) in cases {
        let (mut sandbox, point) = edited();
        set_up(&sandbox);
        let own = tree(&sandbox.at(".takeback"));
        assert!(!needs_recovery(&sandbox.workspace).unwrap(), "{what}");
        let recovered = recover(&mut sandbox.workspace).unwrap();
        assert_eq!(
            recovered,
            RecoveryReport { left: vec![ID], ..RecoveryReport::default() },
            "{what}"
        );
        let receipt = sandbox.rewind_to(point);
        assert!(receipt.success, "{what}: {receipt:?}");
        assert_eq!(sandbox.read("a.txt"), "a\n", "{what}");
        assert_eq!(tree(&sandbox.at(".takeback")), own, "{what}");
    }
}

#[test]
fn names_that_only_resemble_a_stage_are_left_alone() {
    let (mut sandbox, _) = edited();
    for name in ["stage-00000000000000AA", "stage-aa", "stage-"] {
        sandbox.write(&format!(".takeback/{name}/new-0"), "mine\n");
    }
    let own = tree(&sandbox.at(".takeback"));
    assert_eq!(recover(&mut sandbox.workspace).unwrap(), RecoveryReport::default());
    assert_eq!(tree(&sandbox.at(".takeback")), own);
}

#[test]
fn empty_and_marked_stages_are_cleared() {
    for files in [&[][..], &["mark"], &["mark", "new-0", "part-1"]] {
        let (mut sandbox, _) = edited();
        fs::create_dir_all(sandbox.at(STAGE)).unwrap();
        let mark = mark_of(&sandbox.workspace.store_dir);
        for file in files {
            let name = if *file == "mark" { &mark } else { *file };
            sandbox.write(&format!("{STAGE}/{name}"), "made for nothing\n");
        }
        assert!(needs_recovery(&sandbox.workspace).unwrap());
        let recovered = recover(&mut sandbox.workspace).unwrap();
        assert_eq!(recovered, RecoveryReport { cleared: vec![ID], ..RecoveryReport::default() });
        assert!(!sandbox.exists(".takeback"), "{files:?}");
    }
}

/// A user made a folder in a stage that was never promised.
#[test]
fn a_stage_that_cannot_be_cleared_stops_nothing() {
    let (mut sandbox, point) = edited();
    let mark = mark_of(&sandbox.workspace.store_dir);
    sandbox.write(&format!("{STAGE}/{mark}"), "");
    sandbox.write(&format!("{STAGE}/sub/mine.txt"), "mine\n");
    let recovered = recover(&mut sandbox.workspace).unwrap();
    assert_eq!(recovered, RecoveryReport { left: vec![ID], ..RecoveryReport::default() });
    assert!(sandbox.rewind_to(point).success);
    assert_eq!(sandbox.read("a.txt"), "a\n");
    let left: Vec<PathBuf> = tree(&sandbox.at(STAGE)).into_keys().collect();
    assert_eq!(left, ["sub", "sub/mine.txt", &mark].map(PathBuf::from));
}

/// The names of the next stages are taken: nothing is promised, and the existing files stay.
#[test]
fn a_stage_is_never_made_in_an_existing_folder() {
    let (mut sandbox, point) = edited();
    let taken: Vec<String> =
        (0..20).map(|id| format!(".takeback/stage-{}/new-0", RewindId(id))).collect();
    for place in &taken {
        sandbox.write(place, "mine\n");
    }
    let request =
        takeback_core::rewind::RewindRequest::new(takeback_core::rewind::Target::Point(point));
    assert!(sandbox.rewind(&request).is_err());
    assert!(taken.iter().all(|place| sandbox.read(place) == "mine\n"));
    assert_eq!(sandbox.read("a.txt"), "b\n");
    assert_eq!(sandbox.workspace.store.rewinds().unwrap(), []);
}
