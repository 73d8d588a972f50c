//! A rewind that runs the agent's own restore: whatever that does, the files, the receipt and the log
//! are those of a rewind without it, and an undo restores every byte.

mod random;
mod refusals;

use std::fs;
use std::os::unix::fs::{PermissionsExt as _, symlink};
use std::path::Path;

use takeback_core::rewind::{
    NativeOutcome, NativeRestore, NativeSkip, Receipt, RewindRequest, Target, preview, rewind_with,
};
use takeback_store::{Author, Entry, PointId, Seq, WorkPath};
use takeback_testkit::{Sandbox, path};

use crate::text::{assert_consistent, report};

/// What the agent's restore does in the protected folder.
type Restore = dyn Fn(&Path) -> Result<(), String>;

fn to(point: PointId) -> RewindRequest {
    RewindRequest::new(Target::Point(point))
}

fn rewind_with_restore(
    sandbox: &mut Sandbox,
    request: &RewindRequest,
    names: &[&str],
    restore: &Restore,
) -> (Receipt, NativeOutcome) {
    let root = sandbox.root();
    let paths = names.iter().map(|name| path(name)).collect();
    let mut run = || restore(&root);
    let mut native = NativeRestore { paths, run: &mut run };
    rewind_with(&mut sandbox.workspace, request, None, &mut native).expect("the rewind runs")
}

/// The changes that a rewind appended to the log.
fn appended(sandbox: &Sandbox, since: Seq) -> Vec<(WorkPath, Entry, Entry, Vec<Seq>)> {
    let changes = sandbox.workspace.store.changes_after(since).unwrap();
    let rewound =
        changes.into_iter().filter(|change| matches!(change.author, Author::Rewind { .. }));
    rewound.map(|change| (change.path, change.before, change.after, change.cancels)).collect()
}

/// Rewinds with the native restore and without it, and compares everything visible. The report.
#[track_caller]
fn assert_no_difference(
    name: &str,
    play: impl FnOnce(&mut Sandbox) -> PointId,
    names: &[&str],
    restore: &Restore,
    outcome: &NativeOutcome,
) -> Vec<String> {
    let mut sandbox = Sandbox::new();
    let point = play(&mut sandbox);
    let before = sandbox.tree();
    let since = sandbox.workspace.store.head().unwrap().seq;
    let frozen = sandbox.freeze();

    let mut alone = frozen.thaw();
    let expected = alone.rewind_to(point);
    let mut sandbox = frozen.thaw();
    let (receipt, native) = rewind_with_restore(&mut sandbox, &to(point), names, restore);
    assert_eq!(&native, outcome, "{name}");
    assert_eq!(report(&receipt), report(&expected), "{name}");
    assert_eq!(sandbox.tree(), alone.tree(), "{name}");
    assert_eq!(appended(&sandbox, since), appended(&alone, since), "{name}");
    assert!(!sandbox.exists(".takeback"), "{name}: nothing is left of the rewind");
    assert_consistent(&sandbox);

    sandbox.undo();
    assert_eq!(sandbox.tree(), before, "{name}, undone");
    sandbox.redo();
    assert_eq!(sandbox.tree(), alone.tree(), "{name}, redone");
    assert_consistent(&sandbox);
    report(&receipt)
}

fn write(root: &Path, name: &str, text: &str) {
    fs::create_dir_all(root.join(name).parent().unwrap()).unwrap();
    fs::write(root.join(name), text).unwrap();
}

fn one_edit(sandbox: &mut Sandbox) -> PointId {
    sandbox.write("a.txt", "one\n");
    sandbox.start("s");
    let point = sandbox.prompt("s", "go");
    sandbox.agent_writes("s", "a.txt", "two\n");
    sandbox.turn_end("s");
    point
}

/// A native restore that makes no difference to the rewind.
struct Row {
    name: &'static str,
    play: fn(&mut Sandbox) -> PointId,
    /// The paths that it names.
    names: &'static [&'static str],
    restore: fn(&Path),
    /// The whole report, unless it is empty.
    report: &'static [&'static str],
}

#[test]
fn a_native_restore_makes_no_difference() {
    for Row { name, play, names, restore, report } in ROWS {
        let restore = move |root: &Path| {
            restore(root);
            Ok(())
        };
        let lines = assert_no_difference(name, play, names, &restore, &NativeOutcome::Ran);
        assert!(report.is_empty() || lines == report, "{name}: {lines:?}");
    }
}

const ROWS: [Row; 12] = [
    Row {
        name: "a correct restore that leaves a folder",
        play: |s| {
            let point = one_edit(s);
            s.agent_writes("s", "new/made.txt", "made\n");
            point
        },
        names: &["a.txt", "new/made.txt"],
        restore: |root| {
            write(root, "a.txt", "one\n");
            fs::remove_file(root.join("new/made.txt")).unwrap();
        },
        report: &["success", "restored a.txt", "deleted new", "deleted new/made.txt"],
    },
    Row {
        name: "changes of a shell or a subagent that it does not know",
        play: |s| {
            s.write("b.txt", "one\n");
            s.write("c.txt", "one\n");
            let point = one_edit(s);
            s.agent_runs("s", "sed -i; rm; mv", |s| {
                s.write("b.txt", "two\n");
                s.remove("c.txt");
                s.write("d.txt", "new\n");
            });
            point
        },
        names: &["a.txt"],
        restore: |root| write(root, "a.txt", "one\n"),
        report: &["success", "restored a.txt", "restored b.txt", "restored c.txt", "deleted d.txt"],
    },
    Row {
        name: "a file that a shell made and the agent edited later",
        play: |s| {
            s.start("s");
            let point = s.prompt("s", "go");
            s.agent_runs("s", "echo", |s| s.write("a.txt", "shell\n"));
            s.prompt("s", "go on");
            s.agent_writes("s", "a.txt", "edited\n");
            point
        },
        names: &["a.txt"],
        restore: |root| write(root, "a.txt", "shell\n"),
        report: &["success", "deleted a.txt"],
    },
    Row {
        name: "the version of a later prompt",
        play: |s| {
            s.write("a.txt", "one\n");
            s.write("b.txt", "b one\n");
            s.start("s");
            let point = s.prompt("s", "go");
            s.agent_writes("s", "b.txt", "b two\n");
            s.write("a.txt", "mine\n");
            s.prompt("s", "go on");
            s.agent_writes("s", "a.txt", "agent\n");
            s.agent_writes("s", "b.txt", "b three\n");
            point
        },
        names: &["a.txt", "b.txt"],
        restore: |root| {
            write(root, "a.txt", "mine\n");
            write(root, "b.txt", "b two\n");
        },
        report: &[],
    },
    Row {
        name: "a user's file that is in no plan",
        play: |s| {
            s.write("mine.txt", "mine\n");
            let point = one_edit(s);
            s.write("mine.txt", "mine, later\n");
            point
        },
        names: &["a.txt", "mine.txt", "never/was.txt"],
        restore: |root| {
            write(root, "mine.txt", "mine\n");
            write(root, "never/was.txt", "one\n");
        },
        report: &["success", "restored a.txt"],
    },
    Row {
        name: "a file of the agent's that a user continued",
        play: |s| {
            let point = one_edit(s);
            s.agent_writes("s", "made.txt", "made\n");
            s.turn_end("s");
            s.write("made.txt", "made\nand mine\n");
            point
        },
        names: &["a.txt", "made.txt"],
        restore: |root| fs::remove_file(root.join("made.txt")).unwrap(),
        report: &[
            "not all",
            "restored a.txt",
            "conflict made.txt: the agent made it, and it was changed since",
        ],
    },
    Row {
        name: "a file and a folder that a user deleted",
        play: |s| {
            s.write("sub/deep/b.txt", "one\n");
            let point = one_edit(s);
            s.agent_writes("s", "sub/deep/b.txt", "two\n");
            s.turn_end("s");
            s.remove("sub");
            point
        },
        names: &["a.txt", "sub/deep/b.txt"],
        restore: |root| write(root, "sub/deep/b.txt", "two\n"),
        report: &[],
    },
    Row {
        name: "an edit of another session",
        play: |s| {
            let point = one_edit(s);
            s.start("other");
            s.prompt("other", "go");
            s.agent_writes("other", "a.txt", "other\n");
            s.turn_end("other");
            s.agent_writes("s", "b.txt", "b\n");
            point
        },
        names: &["a.txt"],
        restore: |root| write(root, "a.txt", "one\n"),
        report: &[],
    },
    Row {
        name: "modes that it sets",
        play: |s| {
            s.write("run.sh", "#!/bin/sh\n");
            s.write("sub/b.txt", "one\n");
            let point = one_edit(s);
            s.agent_writes("s", "run.sh", "#!/bin/bash\n");
            s.agent_writes("s", "sub/b.txt", "two\n");
            s.turn_end("s");
            s.set_mode("run.sh", 0o755);
            point
        },
        names: &["a.txt", "run.sh", "sub/b.txt"],
        restore: |root| {
            for (name, mode) in [("a.txt", 0o600), ("run.sh", 0o644), ("sub", 0o700)] {
                fs::set_permissions(root.join(name), fs::Permissions::from_mode(mode)).unwrap();
            }
        },
        report: &[],
    },
    Row {
        name: "a folder that it leaves and one that it removes",
        play: |s| {
            s.write("keep/mine.txt", "mine\n");
            let point = one_edit(s);
            s.agent_writes("s", "made/deep/x.txt", "x\n");
            s.turn_end("s");
            s.remove("made");
            point
        },
        names: &["a.txt", "made/deep/x.txt", "keep/mine.txt"],
        restore: |root| {
            write(root, "made/deep/x.txt", "x\n");
            fs::remove_dir_all(root.join("keep")).unwrap();
        },
        report: &[],
    },
    Row {
        name: "a folder in place of a file and a file in place of a folder",
        play: |s| {
            s.write("sub/b.txt", "one\n");
            let point = one_edit(s);
            s.agent_writes("s", "sub/b.txt", "two\n");
            point
        },
        names: &["a.txt", "sub/b.txt"],
        restore: |root| {
            fs::remove_file(root.join("a.txt")).unwrap();
            fs::create_dir(root.join("a.txt")).unwrap();
            fs::remove_dir_all(root.join("sub")).unwrap();
            write(root, "sub", "one\n");
        },
        report: &[],
    },
    Row {
        // It is unlocked to revert the restore, too.
        name: "a locked folder",
        play: |s| {
            s.write("locked/b.txt", "one\n");
            let point = one_edit(s);
            s.agent_writes("s", "locked/b.txt", "two\n");
            s.turn_end("s");
            s.set_mode("locked", 0o555);
            point
        },
        names: &["locked/b.txt"],
        restore: |root| write(root, "locked/b.txt", ""),
        report: &[],
    },
];

#[test]
fn an_overwritten_user_edit_makes_no_difference() {
    for mine in ["one\nmine\n", "two\nmine\n", "something else\n"] {
        let play = |sandbox: &mut Sandbox| {
            let point = one_edit(sandbox);
            sandbox.write("a.txt", mine);
            sandbox.agent_writes("s", "b.txt", "b\n");
            point
        };
        let restore = |root: &Path| {
            write(root, "a.txt", "one\n");
            fs::remove_file(root.join("b.txt")).unwrap();
            Ok(())
        };
        let names = ["a.txt", "b.txt"];
        assert_no_difference(mine, play, &names, &restore, &NativeOutcome::Ran);
    }
}

#[test]
fn an_incomplete_and_a_failed_restore_make_no_difference() {
    let play = |sandbox: &mut Sandbox| {
        sandbox.write("b.txt", "one\n");
        let point = one_edit(sandbox);
        sandbox.agent_writes("s", "b.txt", "two\n");
        point
    };
    let error = || "No file checkpoint found".to_owned();
    for (text, answer, outcome) in
        [("one\n", Ok(()), NativeOutcome::Ran), ("", Err(error()), NativeOutcome::Failed(error()))]
    {
        let restore = move |root: &Path| {
            write(root, "a.txt", text);
            answer.clone()
        };
        assert_no_difference(text, play, &["a.txt", "b.txt"], &restore, &outcome);
    }
}

// --- unknown contents are kept -------------------------------------------------------------------

/// A damaged copy, or a save at the same moment: it is moved, not deleted.
#[test]
fn unknown_contents_are_put_aside() {
    let mut sandbox = Sandbox::new();
    let point = one_edit(&mut sandbox);
    let before = sandbox.tree();
    let (receipt, native) = rewind_with_restore(&mut sandbox, &to(point), &["a.txt"], &|root| {
        write(root, "a.txt", "damaged\n");
        Ok(())
    });
    assert_eq!(native, NativeOutcome::Ran);
    let stage = format!(".takeback/stage-{}/new-1", receipt.rewind.unwrap());
    assert_eq!(
        report(&receipt),
        [
            "success".to_owned(),
            "restored a.txt".to_owned(),
            format!("note a.txt: the contents after the agent's own restore are kept as {stage}"),
        ]
    );
    assert_eq!(sandbox.read("a.txt"), "one\n");
    assert_eq!(sandbox.read(&stage), "damaged\n");
    sandbox.remove(".takeback");
    sandbox.undo();
    assert_eq!(sandbox.tree(), before);
}

#[test]
fn a_new_link_is_put_aside_and_not_followed() {
    let mut sandbox = Sandbox::new();
    let point = one_edit(&mut sandbox);
    sandbox.write("mine.txt", "mine\n");
    let (receipt, _) = rewind_with_restore(&mut sandbox, &to(point), &["a.txt"], &|root| {
        fs::remove_file(root.join("a.txt")).unwrap();
        symlink("mine.txt", root.join("a.txt")).unwrap();
        Ok(())
    });
    assert_eq!(report(&receipt)[..2], ["success", "restored a.txt"]);
    assert_eq!(receipt.notes.len(), 1);
    assert_eq!(sandbox.read("a.txt"), "one\n");
    assert_eq!(sandbox.read("mine.txt"), "mine\n");
}

/// The restore must not write to it, so the change counts as a save.
#[test]
fn a_path_that_the_restore_did_not_name_counts_as_a_save() {
    let mut sandbox = Sandbox::new();
    let point = one_edit(&mut sandbox);
    sandbox.agent_writes("s", "b.txt", "b\n");
    let (receipt, _) = rewind_with_restore(&mut sandbox, &to(point), &["a.txt"], &|root| {
        write(root, "b.txt", "saved\n");
        Ok(())
    });
    assert_eq!(
        report(&receipt),
        ["not all", "restored a.txt", "conflict b.txt: it was changed while the rewind ran"]
    );
    assert_eq!(sandbox.read("b.txt"), "saved\n");
}
