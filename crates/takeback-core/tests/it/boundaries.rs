//! What a rewind does not touch: work of users and other sessions, the repository, files outside.

use std::collections::BTreeMap;
use std::fs;
use std::os::unix::fs::{MetadataExt as _, symlink};
use std::path::PathBuf;

use takeback_core::rewind::Exactness;
use takeback_core::rewind::{RewindRequest, Target};
use takeback_store::PointId;
use takeback_testkit::{Sandbox, Thing, tree};

use crate::recording::settle;
use crate::text::report;

const LINES: &str = "1\n2\n3\n4\n5\n6\n7\n8\n9\n";

/// `other` writes to the same files as the agent of session `s`, whose work is then taken back.
fn rewound_beside(other: impl Fn(&mut Sandbox, &str, &str)) -> Sandbox {
    let mut sandbox = Sandbox::in_memory();
    sandbox.write("beside.txt", LINES);
    sandbox.write("over.txt", LINES);
    sandbox.write("theirs.txt", "one\n");
    let point = sandbox.prompt("s", "go");
    sandbox.agent_writes("s", "beside.txt", LINES.replace('2', "agent"));
    sandbox.agent_writes("s", "over.txt", LINES.replace('2', "agent"));
    sandbox.agent_writes("s", "made.txt", "by the agent\n");
    sandbox.agent_writes("s", "agents.txt", "by the agent\n");
    other(&mut sandbox, "beside.txt", &LINES.replace('2', "agent").replace('8', "theirs"));
    other(&mut sandbox, "over.txt", &LINES.replace('2', "theirs"));
    other(&mut sandbox, "made.txt", "by the agent\nand by them\n");
    other(&mut sandbox, "theirs.txt", "theirs\n");
    other(&mut sandbox, "new.txt", "theirs\n");
    sandbox.turn_end("s");
    let receipt = sandbox.rewind_to(point);
    let lines = report(&receipt);
    for expected in [
        "deleted agents.txt",
        "merged beside.txt",
        "conflict over.txt: both changed the same lines",
        "conflict made.txt: the agent made it, and it was changed since",
    ] {
        assert!(lines.contains(&expected.to_owned()), "{expected} is not in {lines:?}");
    }
    sandbox
}

fn assert_their_work_is_there(sandbox: &Sandbox) {
    assert_eq!(sandbox.read("beside.txt"), LINES.replace('8', "theirs"));
    assert_eq!(sandbox.read("over.txt"), LINES.replace('2', "theirs"));
    assert_eq!(sandbox.read("made.txt"), "by the agent\nand by them\n");
    assert_eq!(sandbox.read("theirs.txt"), "theirs\n");
    assert_eq!(sandbox.read("new.txt"), "theirs\n");
    assert!(!sandbox.exists("agents.txt"));
}

#[test]
fn a_users_work_survives() {
    let sandbox = rewound_beside(|sandbox, path, text| sandbox.write(path, text));
    assert_their_work_is_there(&sandbox);
}

#[test]
fn another_sessions_work_survives() {
    let sandbox = rewound_beside(|sandbox, path, text| sandbox.agent_writes("other", path, text));
    assert_their_work_is_there(&sandbox);
    let sandbox = rewound_beside(|sandbox, path, text| {
        sandbox.agent_runs("other", "sh", |sandbox| sandbox.write(path, text));
    });
    assert_their_work_is_there(&sandbox);
}

// --- the repository -----------------------------------------------------------------------------

#[test]
fn the_users_repository_is_not_touched() {
    let mut sandbox = Sandbox::in_memory();
    let repository = [".git/HEAD", ".git/index", ".git/objects/ab/cd", "dep/.git/HEAD", ".jj/op"];
    for name in repository {
        sandbox.write(name, format!("{name} \0 as it was\n"));
    }
    sandbox.write("a.txt", "one\n");
    let internals = |sandbox: &Sandbox| -> BTreeMap<PathBuf, (Thing, i64, u64)> {
        let mut all = BTreeMap::new();
        for folder in [".git", "dep/.git", ".jj"] {
            let folder = sandbox.at(folder);
            for (path, thing) in tree(&folder) {
                let metadata = fs::symlink_metadata(folder.join(&path)).unwrap();
                all.insert(folder.join(path), (thing, metadata.ctime_nsec(), metadata.ino()));
            }
        }
        all
    };
    let before = internals(&sandbox);
    assert_eq!(before.len(), 7);
    let point = sandbox.prompt("s", "go");
    sandbox.agent_runs("s", "git commit", |sandbox| {
        sandbox.write("a.txt", "two\n");
        sandbox.write("dep/b.txt", "b\n");
    });
    sandbox.turn_end("s");
    let exact =
        RewindRequest { exactness: Exactness::Exact, ..RewindRequest::new(Target::Point(point)) };
    sandbox.rewind_to(point);
    sandbox.undo();
    sandbox.rewind(&exact).unwrap();
    assert_eq!(sandbox.read("a.txt"), "one\n");
    assert_eq!(internals(&sandbox), before);
    assert!(!sandbox.exists(".takeback"), "nothing of Takeback's own is left behind");
}

#[test]
fn a_commit_by_the_agent_stays_while_its_files_are_restored() {
    let mut sandbox = Sandbox::in_memory();
    sandbox.write(".git/refs/heads/main", "before\n");
    sandbox.write("a.txt", "one\n");
    let point = sandbox.prompt("s", "go");
    sandbox.agent_runs("s", "git commit -am x", |sandbox| {
        sandbox.write("a.txt", "two\n");
        sandbox.write(".git/refs/heads/main", "after\n");
    });
    sandbox.turn_end("s");
    assert_eq!(report(&sandbox.rewind_to(point)), ["success", "restored a.txt"]);
    assert_eq!(sandbox.read(".git/refs/heads/main"), "after\n");
}

// --- times --------------------------------------------------------------------------------------

#[test]
fn untouched_files_keep_their_times_and_restored_ones_get_new_ones() {
    let mut sandbox = Sandbox::in_memory();
    sandbox.write("untouched.txt", "one\n");
    sandbox.write("mine.txt", "one\n");
    sandbox.write("lib/restored.txt", "one\n");
    let point = sandbox.prompt("s", "go");
    sandbox.agent_writes("s", "lib/restored.txt", "two\n");
    sandbox.write("mine.txt", "mine\n");
    sandbox.turn_end("s");
    let times = |sandbox: &Sandbox| {
        ["untouched.txt", "mine.txt", "lib/restored.txt"].map(|name| {
            let metadata = fs::metadata(sandbox.at(name)).unwrap();
            (metadata.ino(), metadata.mtime(), metadata.mtime_nsec(), metadata.ctime_nsec())
        })
    };
    let before = times(&sandbox);
    settle();
    sandbox.rewind_to(point);
    let after = times(&sandbox);
    assert_eq!(after[..2], before[..2]);
    let written = |(_, seconds, nanos, _): (u64, i64, i64, i64)| (seconds, nanos);
    assert!(written(after[2]) > written(before[2]), "builds must notice");
}

// --- outside ------------------------------------------------------------------------------------

fn with_an_edit_outside() -> (Sandbox, PathBuf, PointId) {
    let mut sandbox = Sandbox::in_memory();
    let outside = fs::canonicalize(sandbox.outside()).unwrap().join("elsewhere");
    fs::create_dir(&outside).unwrap();
    fs::write(outside.join("a.txt"), "before\n").unwrap();
    sandbox.write("in.txt", "before\n");
    let point = sandbox.prompt("s", "go");
    let (old, new) = (outside.join("a.txt"), outside.join("made.txt"));
    sandbox.agent_writes("s", old.to_str().unwrap(), "after\n");
    sandbox.agent_writes("s", new.to_str().unwrap(), "made\n");
    sandbox.agent_writes("s", "in.txt", "after\n");
    sandbox.turn_end("s");
    (sandbox, outside, point)
}

#[test]
fn outside_files_are_written_only_on_request() {
    let (mut sandbox, outside, point) = with_an_edit_outside();
    let after = tree(&outside);
    let at = outside.to_str().unwrap();
    let reason = "outside the workspace; --outside takes it back too";
    assert_eq!(
        report(&sandbox.rewind_to(point)),
        [
            "success".to_owned(),
            "restored in.txt".to_owned(),
            format!("kept {at}/a.txt: {reason}"),
            format!("kept {at}/made.txt: {reason}"),
        ]
    );
    assert_eq!(tree(&outside), after);

    let request = RewindRequest { outside: true, ..RewindRequest::new(Target::Point(point)) };
    assert_eq!(
        report(&sandbox.rewind(&request).unwrap()),
        ["success".to_owned(), format!("restored {at}/a.txt"), format!("deleted {at}/made.txt"),]
    );
    let before = Thing::File { bytes: b"before\n".to_vec(), mode: 0o644 };
    assert_eq!(tree(&outside), BTreeMap::from([(PathBuf::from("a.txt"), before)]));
    let undo = RewindRequest { outside: true, ..RewindRequest::new(Target::Undo) };
    assert!(sandbox.rewind(&undo).unwrap().success);
    assert_eq!(tree(&outside), after);
}

#[test]
fn outside_folders_are_deleted_and_restored_with_their_files() {
    let mut sandbox = Sandbox::in_memory();
    let outside = fs::canonicalize(sandbox.outside()).unwrap().join("elsewhere");
    fs::create_dir(&outside).unwrap();
    let point = sandbox.prompt("s", "go");
    let made = outside.join("new/deep/made.txt");
    sandbox.agent_writes("s", made.to_str().unwrap(), "made\n");
    sandbox.turn_end("s");
    let after = tree(&outside);
    let request = RewindRequest { outside: true, ..RewindRequest::new(Target::Point(point)) };
    assert!(sandbox.rewind(&request).unwrap().success);
    assert_eq!(tree(&outside), BTreeMap::new());
    let undo = RewindRequest { outside: true, ..RewindRequest::new(Target::Undo) };
    assert!(sandbox.rewind(&undo).unwrap().success);
    assert_eq!(tree(&outside), after);
}

#[test]
fn an_existing_outside_file_is_never_deleted() {
    let (mut sandbox, outside, point) = with_an_edit_outside();
    let everything = RewindRequest {
        outside: true,
        exactness: Exactness::Exact,
        ..RewindRequest::new(Target::Point(point))
    };
    sandbox.rewind(&everything).unwrap();
    assert!(outside.join("a.txt").exists());
    assert_eq!(sandbox.read("in.txt"), "before\n");
}

#[test]
fn nothing_is_written_through_a_link_that_replaced_a_folder() {
    for by_the_agent in [true, false] {
        let mut sandbox = Sandbox::in_memory();
        let outside = sandbox.outside().join("elsewhere");
        fs::create_dir_all(outside.join("deep")).unwrap();
        for name in ["a.txt", "deep/a.txt"] {
            fs::write(outside.join(name), "not yours\n").unwrap();
        }
        for name in ["made.txt", "deep/made.txt"] {
            fs::write(outside.join(name), "made\n").unwrap();
        }
        let untouched = tree(&outside);
        sandbox.write("lib/a.txt", "one\n");
        sandbox.write("lib/deep/a.txt", "one\n");
        let before = sandbox.tree();
        let point = sandbox.prompt("s", "go");
        for folder in ["lib", "lib/deep"] {
            sandbox.agent_writes("s", &format!("{folder}/a.txt"), "two\n");
            sandbox.agent_writes("s", &format!("{folder}/made.txt"), "made\n");
        }
        let replace = |sandbox: &Sandbox| {
            sandbox.remove("lib");
            symlink("../elsewhere", sandbox.at("lib")).unwrap();
        };
        if by_the_agent {
            sandbox.agent_runs("s", "ln -s", replace);
            sandbox.turn_end("s");
        } else {
            sandbox.turn_end("s");
            replace(&sandbox);
        }
        let receipt = sandbox.rewind_to(point);
        assert_eq!(tree(&outside), untouched, "{receipt:?}");
        if by_the_agent {
            assert!(receipt.success, "{receipt:?}");
            assert_eq!(sandbox.tree(), before);
        } else {
            assert!(!receipt.success, "{receipt:?}");
            assert_eq!(receipt.restored_files, []);
            assert_eq!(fs::read_link(sandbox.at("lib")).unwrap(), PathBuf::from("../elsewhere"));
        }
    }
}

#[test]
fn a_link_is_restored_as_a_link_and_its_target_left_alone() {
    let mut sandbox = Sandbox::in_memory();
    let outside = sandbox.outside().join("target.txt");
    fs::write(&outside, "not yours\n").unwrap();
    symlink("../target.txt", sandbox.at("link")).unwrap();
    let before = sandbox.tree();
    let point = sandbox.prompt("s", "go");
    sandbox.agent_runs("s", "mv x link", |sandbox| {
        fs::remove_file(sandbox.at("link")).unwrap();
        sandbox.write("link", "a file now\n");
    });
    sandbox.turn_end("s");
    sandbox.rewind_to(point);
    assert_eq!(sandbox.tree(), before);
    assert_eq!(fs::read_to_string(&outside).unwrap(), "not yours\n");
}
