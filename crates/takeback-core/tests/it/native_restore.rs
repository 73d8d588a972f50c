//! A rewind in whose middle the agent restores its own copies: whatever that does, the files, the
//! receipt and the log are those of a rewind without it, and an undo brings back every byte.

mod random;
mod refusals;

use std::fs;
use std::os::unix::fs::symlink;
use std::path::Path;

use takeback_core::rewind::{
    NativeOutcome, NativeRestore, NativeSkip, Receipt, RewindRequest, Target, preview, rewind_with,
};
use takeback_store::{Author, Entry, PointId, Seq, WorkPath};
use takeback_testkit::{Sandbox, path};

use crate::shown::{assert_consistent, said};

/// What the agent's restore does in the folder that is protected.
type Does = dyn Fn(&Path) -> Result<(), String>;

fn to(point: PointId) -> RewindRequest {
    RewindRequest::new(Target::Point(point))
}

fn helped(
    sandbox: &mut Sandbox,
    request: &RewindRequest,
    names: &[&str],
    does: &Does,
) -> (Receipt, NativeOutcome) {
    let root = sandbox.root();
    let paths = names.iter().map(|name| path(name)).collect();
    let mut run = || does(&root);
    let mut helper = NativeRestore { paths, run: &mut run };
    rewind_with(&mut sandbox.workspace, request, None, &mut helper).expect("the rewind runs")
}

/// What a rewind appended.
fn appended(sandbox: &Sandbox, since: Seq) -> Vec<(WorkPath, Entry, Entry, Vec<Seq>)> {
    let changes = sandbox.workspace.store.changes_after(since).unwrap();
    let rewound =
        changes.into_iter().filter(|change| matches!(change.author, Author::Rewind { .. }));
    rewound.map(|change| (change.path, change.before, change.after, change.cancels)).collect()
}

/// Rewinds with the helper and without it, and compares all that can be seen. What the rewind says.
#[track_caller]
fn no_difference(
    play: impl FnOnce(&mut Sandbox) -> PointId,
    names: &[&str],
    does: &Does,
    answer: &NativeOutcome,
) -> Vec<String> {
    let mut sandbox = Sandbox::new();
    let point = play(&mut sandbox);
    let before = sandbox.tree();
    let since = sandbox.workspace.store.head().unwrap().seq;
    let frozen = sandbox.freeze();

    let mut alone = frozen.thaw();
    let expected = alone.rewind_to(point);
    let mut sandbox = frozen.thaw();
    let (receipt, helped) = helped(&mut sandbox, &to(point), names, does);
    assert_eq!(&helped, answer);
    assert_eq!(said(&receipt), said(&expected));
    assert_eq!(sandbox.tree(), alone.tree());
    assert_eq!(appended(&sandbox, since), appended(&alone, since));
    assert!(!sandbox.exists(".takeback"), "nothing is left of it");
    assert_consistent(&sandbox);

    sandbox.undo();
    assert_eq!(sandbox.tree(), before);
    sandbox.redo();
    assert_eq!(sandbox.tree(), alone.tree());
    assert_consistent(&sandbox);
    said(&receipt)
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

// --- what such a helper gets right ---------------------------------------------------------------

#[test]
fn a_helper_that_restores_what_it_should() {
    let lines = no_difference(
        |sandbox| {
            let point = one_edit(sandbox);
            sandbox.agent_writes("s", "new/made.txt", "made\n");
            point
        },
        &["a.txt", "new/made.txt"],
        &|root| {
            write(root, "a.txt", "one\n");
            // The folder stays.
            fs::remove_file(root.join("new/made.txt")).unwrap();
            Ok(())
        },
        &NativeOutcome::Ran,
    );
    assert_eq!(lines, ["success", "restored a.txt", "deleted new", "deleted new/made.txt"]);
}

// --- what it gets wrong --------------------------------------------------------------------------

#[test]
fn changes_of_a_shell_or_a_subagent_that_it_does_not_know() {
    let lines = no_difference(
        |sandbox| {
            sandbox.write("b.txt", "one\n");
            sandbox.write("c.txt", "one\n");
            let point = one_edit(sandbox);
            sandbox.agent_runs("s", "sed -i; rm; mv", |sandbox| {
                sandbox.write("b.txt", "two\n");
                sandbox.remove("c.txt");
                sandbox.write("d.txt", "new\n");
            });
            point
        },
        &["a.txt"],
        &|root| {
            write(root, "a.txt", "one\n");
            Ok(())
        },
        &NativeOutcome::Ran,
    );
    assert_eq!(
        lines,
        ["success", "restored a.txt", "restored b.txt", "restored c.txt", "deleted d.txt"]
    );
}

#[test]
fn a_file_that_a_shell_made_and_the_agent_edited_later() {
    let lines = no_difference(
        |sandbox| {
            sandbox.start("s");
            let point = sandbox.prompt("s", "go");
            sandbox.agent_runs("s", "echo", |sandbox| sandbox.write("a.txt", "shell\n"));
            sandbox.prompt("s", "go on");
            sandbox.agent_writes("s", "a.txt", "edited\n");
            point
        },
        &["a.txt"],
        &|root| {
            write(root, "a.txt", "shell\n");
            Ok(())
        },
        &NativeOutcome::Ran,
    );
    assert_eq!(lines, ["success", "deleted a.txt"]);
}

#[test]
fn the_version_of_a_later_prompt() {
    no_difference(
        |sandbox| {
            sandbox.write("a.txt", "one\n");
            sandbox.write("b.txt", "b one\n");
            sandbox.start("s");
            let point = sandbox.prompt("s", "go");
            sandbox.agent_writes("s", "b.txt", "b two\n");
            sandbox.write("a.txt", "mine\n");
            sandbox.prompt("s", "go on");
            sandbox.agent_writes("s", "a.txt", "agent\n");
            sandbox.agent_writes("s", "b.txt", "b three\n");
            point
        },
        &["a.txt", "b.txt"],
        &|root| {
            write(root, "a.txt", "mine\n");
            write(root, "b.txt", "b two\n");
            Ok(())
        },
        &NativeOutcome::Ran,
    );
}

#[test]
fn a_persons_edit_that_it_overwrites() {
    for mine in ["one\nmine\n", "two\nmine\n", "something else\n"] {
        no_difference(
            |sandbox| {
                let point = one_edit(sandbox);
                sandbox.write("a.txt", mine);
                sandbox.agent_writes("s", "b.txt", "b\n");
                point
            },
            &["a.txt", "b.txt"],
            &|root| {
                write(root, "a.txt", "one\n");
                fs::remove_file(root.join("b.txt")).unwrap();
                Ok(())
            },
            &NativeOutcome::Ran,
        );
    }
}

/// Nothing of the plan is there: only the helper thinks so.
#[test]
fn a_persons_file_that_is_in_no_plan() {
    let lines = no_difference(
        |sandbox| {
            sandbox.write("mine.txt", "mine\n");
            let point = one_edit(sandbox);
            sandbox.write("mine.txt", "mine, later\n");
            point
        },
        &["a.txt", "mine.txt", "never/was.txt"],
        &|root| {
            write(root, "mine.txt", "mine\n");
            write(root, "never/was.txt", "one\n");
            Ok(())
        },
        &NativeOutcome::Ran,
    );
    assert_eq!(lines, ["success", "restored a.txt"]);
}

#[test]
fn a_file_of_the_agents_that_a_person_went_on_with() {
    let lines = no_difference(
        |sandbox| {
            let point = one_edit(sandbox);
            sandbox.agent_writes("s", "made.txt", "made\n");
            sandbox.turn_end("s");
            sandbox.write("made.txt", "made\nand mine\n");
            point
        },
        &["a.txt", "made.txt"],
        &|root| {
            fs::remove_file(root.join("made.txt")).unwrap();
            Ok(())
        },
        &NativeOutcome::Ran,
    );
    assert!(lines.iter().any(|line| line.starts_with("conflict made.txt")), "{lines:?}");
}

#[test]
fn a_file_and_a_folder_that_a_person_deleted() {
    no_difference(
        |sandbox| {
            sandbox.write("sub/deep/b.txt", "one\n");
            let point = one_edit(sandbox);
            sandbox.agent_writes("s", "sub/deep/b.txt", "two\n");
            sandbox.turn_end("s");
            sandbox.remove("sub");
            point
        },
        &["a.txt", "sub/deep/b.txt"],
        &|root| {
            write(root, "sub/deep/b.txt", "two\n");
            Ok(())
        },
        &NativeOutcome::Ran,
    );
}

#[test]
fn an_edit_of_another_session() {
    no_difference(
        |sandbox| {
            let point = one_edit(sandbox);
            sandbox.start("other");
            sandbox.prompt("other", "go");
            sandbox.agent_writes("other", "a.txt", "other\n");
            sandbox.turn_end("other");
            sandbox.agent_writes("s", "b.txt", "b\n");
            point
        },
        &["a.txt"],
        &|root| {
            write(root, "a.txt", "one\n");
            Ok(())
        },
        &NativeOutcome::Ran,
    );
}

#[test]
fn a_missing_copy_and_an_honest_failure() {
    let play = |sandbox: &mut Sandbox| {
        sandbox.write("b.txt", "one\n");
        let point = one_edit(sandbox);
        sandbox.agent_writes("s", "b.txt", "two\n");
        point
    };
    let half = |root: &Path| {
        write(root, "a.txt", "one\n");
        Ok(())
    };
    no_difference(play, &["a.txt", "b.txt"], &half, &NativeOutcome::Ran);
    let fails = |root: &Path| {
        write(root, "a.txt", "");
        Err("No file checkpoint found".to_owned())
    };
    let failed = NativeOutcome::Failed("No file checkpoint found".to_owned());
    no_difference(play, &["a.txt", "b.txt"], &fails, &failed);
}

#[test]
fn modes_that_it_sets() {
    use std::os::unix::fs::PermissionsExt as _;
    no_difference(
        |sandbox| {
            sandbox.write("run.sh", "#!/bin/sh\n");
            sandbox.write("sub/b.txt", "one\n");
            let point = one_edit(sandbox);
            sandbox.agent_writes("s", "run.sh", "#!/bin/bash\n");
            sandbox.agent_writes("s", "sub/b.txt", "two\n");
            sandbox.turn_end("s");
            sandbox.set_mode("run.sh", 0o755);
            point
        },
        &["a.txt", "run.sh", "sub/b.txt"],
        &|root| {
            for (name, mode) in [("a.txt", 0o600), ("run.sh", 0o644), ("sub", 0o700)] {
                fs::set_permissions(root.join(name), fs::Permissions::from_mode(mode)).unwrap();
            }
            Ok(())
        },
        &NativeOutcome::Ran,
    );
}

#[test]
fn folders_that_it_leaves_and_folders_that_it_removes() {
    no_difference(
        |sandbox| {
            sandbox.write("keep/mine.txt", "mine\n");
            let point = one_edit(sandbox);
            sandbox.agent_writes("s", "made/deep/x.txt", "x\n");
            sandbox.turn_end("s");
            sandbox.remove("made");
            point
        },
        &["a.txt", "made/deep/x.txt", "keep/mine.txt"],
        &|root| {
            write(root, "made/deep/x.txt", "x\n");
            fs::remove_dir_all(root.join("keep")).unwrap();
            Ok(())
        },
        &NativeOutcome::Ran,
    );
}

#[test]
fn a_folder_in_place_of_a_file_and_a_file_in_place_of_a_folder() {
    no_difference(
        |sandbox| {
            sandbox.write("sub/b.txt", "one\n");
            let point = one_edit(sandbox);
            sandbox.agent_writes("s", "sub/b.txt", "two\n");
            point
        },
        &["a.txt", "sub/b.txt"],
        &|root| {
            fs::remove_file(root.join("a.txt")).unwrap();
            fs::create_dir(root.join("a.txt")).unwrap();
            fs::remove_dir_all(root.join("sub")).unwrap();
            write(root, "sub", "one\n");
            Ok(())
        },
        &NativeOutcome::Ran,
    );
}

/// A folder that its owner may not write to is opened for putting back, too.
#[test]
fn a_locked_folder() {
    no_difference(
        |sandbox| {
            sandbox.write("locked/b.txt", "one\n");
            let point = one_edit(sandbox);
            sandbox.agent_writes("s", "locked/b.txt", "two\n");
            sandbox.turn_end("s");
            sandbox.set_mode("locked", 0o555);
            point
        },
        &["locked/b.txt"],
        &|root| {
            write(root, "locked/b.txt", "");
            Ok(())
        },
        &NativeOutcome::Ran,
    );
}

// --- what nobody knows is kept -------------------------------------------------------------------

/// A damaged copy, or what somebody saved just then: it goes from its place, but not for good.
#[test]
fn bytes_that_nobody_has_are_put_aside() {
    let mut sandbox = Sandbox::new();
    let point = one_edit(&mut sandbox);
    let before = sandbox.tree();
    let (receipt, helped) = helped(&mut sandbox, &to(point), &["a.txt"], &|root| {
        write(root, "a.txt", "damaged\n");
        Ok(())
    });
    assert_eq!(helped, NativeOutcome::Ran);
    let stage = format!(".takeback/stage-{}/new-1", receipt.rewind.unwrap());
    assert_eq!(
        said(&receipt),
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
fn a_link_that_it_makes_is_put_aside_and_not_followed() {
    let mut sandbox = Sandbox::new();
    let point = one_edit(&mut sandbox);
    sandbox.write("mine.txt", "mine\n");
    let (receipt, _) = helped(&mut sandbox, &to(point), &["a.txt"], &|root| {
        fs::remove_file(root.join("a.txt")).unwrap();
        symlink("mine.txt", root.join("a.txt")).unwrap();
        Ok(())
    });
    assert_eq!(said(&receipt)[..2], ["success", "restored a.txt"]);
    assert_eq!(receipt.notes.len(), 1);
    assert_eq!(sandbox.read("a.txt"), "one\n");
    assert_eq!(sandbox.read("mine.txt"), "mine\n");
}

/// What it did not name is somebody's save, as ever.
#[test]
fn a_path_that_it_did_not_name() {
    let mut sandbox = Sandbox::new();
    let point = one_edit(&mut sandbox);
    sandbox.agent_writes("s", "b.txt", "b\n");
    let (receipt, _) = helped(&mut sandbox, &to(point), &["a.txt"], &|root| {
        write(root, "b.txt", "saved\n");
        Ok(())
    });
    assert_eq!(
        said(&receipt),
        ["not all", "restored a.txt", "conflict b.txt: it was changed while the rewind ran"]
    );
    assert_eq!(sandbox.read("b.txt"), "saved\n");
}
