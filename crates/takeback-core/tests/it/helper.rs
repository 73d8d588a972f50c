//! A rewind in whose middle the agent restores its own copies: whatever that does, the files, the
//! receipt and the log are those of a rewind without it, and an undo brings back every byte.

use std::fs;
use std::os::unix::fs::symlink;
use std::path::Path;

use takeback_core::rewind::{
    Helped, Helper, NotRun, Receipt, RewindRequest, Target, preview, rewind_with,
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
) -> (Receipt, Helped) {
    let root = sandbox.root();
    let paths = names.iter().map(|name| path(name)).collect();
    let mut run = || does(&root);
    let mut helper = Helper { paths, run: &mut run };
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
    answer: &Helped,
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
        &Helped::Ran,
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
        &Helped::Ran,
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
        &Helped::Ran,
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
        &Helped::Ran,
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
            &Helped::Ran,
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
        &Helped::Ran,
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
        &Helped::Ran,
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
        &Helped::Ran,
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
        &Helped::Ran,
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
    no_difference(play, &["a.txt", "b.txt"], &half, &Helped::Ran);
    let fails = |root: &Path| {
        write(root, "a.txt", "");
        Err("No file checkpoint found".to_owned())
    };
    let failed = Helped::Failed("No file checkpoint found".to_owned());
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
        &Helped::Ran,
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
        &Helped::Ran,
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
        &Helped::Ran,
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
        &Helped::Ran,
    );
}

// --- whatever it does ----------------------------------------------------------------------------

/// A number that looks random and is the same in every run.
struct Dice(u64);

impl Dice {
    fn below(&mut self, n: usize) -> usize {
        self.0 ^= self.0 << 13;
        self.0 ^= self.0 >> 7;
        self.0 ^= self.0 << 17;
        usize::try_from(self.0 % n as u64).unwrap()
    }

    fn one_of<'a>(&mut self, things: &[&'a str]) -> &'a str {
        things[self.below(things.len())]
    }
}

const PATHS: [&str; 6] = ["a.txt", "b.txt", "sub/c.txt", "sub/deep/d.txt", "new/e.txt", "sub/f"];
const TEXTS: [&str; 4] = ["1\n2\n3\n", "1\n2\n3\n4\n", "0\n1\n2\n3\n", "else\n"];

fn play_anything(sandbox: &mut Sandbox, dice: &mut Dice) -> PointId {
    // So that the store has every text.
    for (n, text) in TEXTS.iter().enumerate() {
        sandbox.write(&format!("text-{n}"), text);
    }
    for name in &PATHS[..4] {
        sandbox.write(name, dice.one_of(&TEXTS));
    }
    sandbox.start("s");
    let point = sandbox.prompt("s", "go");
    for _ in 0..8 {
        let (name, text) = (dice.one_of(&PATHS), dice.one_of(&TEXTS));
        match dice.below(6) {
            0 | 1 => sandbox.agent_writes("s", name, text),
            2 => sandbox.agent_runs("s", "./run", |sandbox| sandbox.write(name, text)),
            3 if sandbox.exists(name) => {
                sandbox.agent_runs("s", "rm", |sandbox| sandbox.remove(name));
            }
            4 => {
                sandbox.turn_end("s");
                sandbox.write(name, text);
                sandbox.prompt("s", "go on");
            }
            5 if sandbox.exists(name) => {
                let mode = [0o600, 0o755][dice.below(2)];
                sandbox.agent_runs("s", "chmod", |sandbox| sandbox.set_mode(name, mode));
            }
            _ => {}
        }
    }
    sandbox.turn_end("s");
    sandbox.write(dice.one_of(&PATHS), dice.one_of(&TEXTS));
    point
}

fn restore_anything(root: &Path, dice: &mut Dice, names: &[&str]) {
    use std::os::unix::fs::PermissionsExt as _;
    for _ in 0..6 {
        let name = dice.one_of(names);
        let at = root.join(name);
        match dice.below(5) {
            0 | 1 if !at.is_dir() => {
                // It may not be allowed to write to it.
                if at.exists() {
                    fs::remove_file(at).unwrap();
                }
                write(root, name, dice.one_of(&TEXTS));
            }
            2 if at.is_file() => fs::remove_file(at).unwrap(),
            3 if at.is_file() => {
                let mode = [0o600, 0o755, 0o444][dice.below(3)];
                fs::set_permissions(at, fs::Permissions::from_mode(mode)).unwrap();
            }
            4 if !at.exists() => fs::create_dir_all(at).unwrap(),
            _ => {}
        }
    }
}

#[test]
fn whatever_it_does_there_is_no_difference() {
    let runs = match std::env::var_os("TAKEBACK_TEST_RUNS") {
        Some(runs) => runs.to_str().unwrap().parse().unwrap(),
        None => 30,
    };
    let mut done = 0;
    for seed in 1..=runs {
        let mut dice = Dice(0x9E37_79B9_7F4A_7C15_u64.wrapping_mul(seed));
        let mut sandbox = Sandbox::new();
        let point = play_anything(&mut sandbox, &mut dice);
        let frozen = sandbox.freeze();
        let mut alone = frozen.thaw();
        let before = alone.tree();
        let expected = alone.rewind_to(point);

        let mut sandbox = frozen.thaw();
        let root = sandbox.root();
        let names: Vec<&str> = PATHS.into_iter().filter(|_| dice.below(4) > 0).collect();
        if names.is_empty() || !expected.changed_something() {
            continue;
        }
        let paths = names.iter().map(|name| path(name)).collect();
        let mut run = || {
            restore_anything(&root, &mut dice, &names);
            if dice.below(2) == 0 { Ok(()) } else { Err("no".to_owned()) }
        };
        let mut helper = Helper { paths, run: &mut run };
        let (receipt, helped) =
            rewind_with(&mut sandbox.workspace, &to(point), None, &mut helper).unwrap();
        assert!(!matches!(helped, Helped::NotRun(_)), "seed {seed}: {helped:?}");
        assert_eq!(said(&receipt), said(&expected), "seed {seed}");
        assert_eq!(sandbox.tree(), alone.tree(), "seed {seed}");
        assert!(!sandbox.exists(".takeback"), "seed {seed}");
        sandbox.undo();
        assert_eq!(sandbox.tree(), before, "seed {seed}");
        assert_consistent(&sandbox);
        done += 1;
    }
    assert!(done > runs / 2, "{done} of {runs}");
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
    assert_eq!(helped, Helped::Ran);
    let stage = format!(".takeback/stage-{}/new-1", receipt.rewind.unwrap());
    assert_eq!(
        said(&receipt),
        [
            "success".to_owned(),
            "restored a.txt".to_owned(),
            format!(
                "note a.txt: what stood there after the agent's own restore is kept as {stage}"
            ),
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

// --- when it is not run --------------------------------------------------------------------------

#[track_caller]
fn not_run(
    sandbox: &mut Sandbox,
    request: &RewindRequest,
    names: &[&str],
    why: &NotRun,
) -> Receipt {
    let (receipt, helped) = helped(sandbox, request, names, &|_| panic!("it is not to be run"));
    assert_eq!(helped, Helped::NotRun(why.clone()));
    receipt
}

#[test]
fn where_it_could_do_harm_it_is_not_run() {
    let mut sandbox = Sandbox::new();
    let outside = sandbox.outside().join("theirs.txt");
    fs::write(&outside, "theirs\n").unwrap();
    sandbox.write("sub/b.txt", "b\n");
    let point = one_edit(&mut sandbox);
    fs::hard_link(sandbox.at("sub/b.txt"), sandbox.at("twin.txt")).unwrap();
    symlink(&outside, sandbox.at("link.txt")).unwrap();
    sandbox.write("special.sh", "#!/bin/sh\n");
    sandbox.set_mode("special.sh", 0o4755);
    symlink(sandbox.outside(), sandbox.at("way-out")).unwrap();
    let frozen = sandbox.freeze();
    let outside = outside.to_str().unwrap();
    for (name, why) in [
        (outside, NotRun::Outside as fn(WorkPath) -> NotRun),
        (".takeback/settings.json", NotRun::OffLimits),
        (".git/config", NotRun::OffLimits),
        ("link.txt", NotRun::Link),
        ("sub", NotRun::Folder),
        ("special.sh", NotRun::SpecialBits),
    ] {
        let mut sandbox = frozen.thaw();
        let receipt = not_run(&mut sandbox, &to(point), &["a.txt", name], &why(path(name)));
        assert_eq!(said(&receipt), ["success", "restored a.txt"], "{name}");
        assert_eq!(sandbox.read("a.txt"), "one\n");
    }
    let mut sandbox = frozen.thaw();
    let why = NotRun::Link(path("way-out"));
    not_run(&mut sandbox, &to(point), &["way-out/theirs.txt"], &why);

    let mut sandbox = frozen.thaw();
    sandbox.remove("twin.txt");
    fs::hard_link(sandbox.at("sub/b.txt"), sandbox.at("twin.txt")).unwrap();
    let why = NotRun::OtherNames(path("twin.txt"));
    not_run(&mut sandbox, &to(point), &["twin.txt"], &why);
    assert_eq!(why.to_string(), "twin.txt has other names, which would change with it");
}

/// As it is written and as it is with links followed; what is neither is refused all the same.
#[test]
fn the_paths_that_it_names() {
    let sandbox = Sandbox::new();
    sandbox.write("real/a.txt", "a\n");
    symlink("real", sandbox.at("way")).unwrap();
    let outside = sandbox.outside().join("theirs.txt");
    let store = sandbox.workspace.store_dir.clone();
    let meant = |path: &Path| Helper::meant(&sandbox.workspace, &[path.to_owned()]);
    assert_eq!(meant(&sandbox.at("real/a.txt")), [path("real/a.txt")]);
    assert_eq!(meant(Path::new("real/a.txt")), [path("real/a.txt")]);
    assert_eq!(meant(&sandbox.at("way/a.txt")), [path("real/a.txt"), path("way/a.txt")]);
    assert_eq!(meant(&sandbox.at("real/../real/a.txt")), [path("real/a.txt")]);
    for refused in [outside, store.join("lock"), sandbox.root()] {
        assert_eq!(meant(&refused), [path(refused.to_str().unwrap())]);
    }
    assert_eq!(meant(&sandbox.at(".git/config")), [path(".git/config")]);
    assert_eq!(meant(Path::new("")).len(), 1);
}

#[test]
fn where_nothing_is_to_be_done_or_only_a_part_it_is_not_run() {
    let mut sandbox = Sandbox::new();
    let point = one_edit(&mut sandbox);
    sandbox.agent_writes("s", "b.txt", "b\n");
    let mut part = to(point);
    part.paths = vec!["b.txt".to_owned()];
    let receipt = not_run(&mut sandbox, &part, &["a.txt"], &NotRun::SomePaths);
    assert_eq!(said(&receipt), ["success", "deleted b.txt"]);
    sandbox.rewind_to(point);
    let receipt = not_run(&mut sandbox, &to(point), &["a.txt"], &NotRun::NothingToDo);
    assert_eq!(said(&receipt), ["success"]);
}

#[test]
fn what_could_not_be_kept_is_not_put_at_risk() {
    let mut sandbox = Sandbox::new();
    let point = one_edit(&mut sandbox);
    let status = std::process::Command::new("mkfifo").arg(sandbox.at("pipe")).status().unwrap();
    assert!(status.success());
    not_run(&mut sandbox, &to(point), &["a.txt", "pipe"], &NotRun::NotKept(path("pipe")));
}

/// The helper's own paths do not change what was shown.
#[test]
fn what_was_shown_is_what_is_done() {
    let mut sandbox = Sandbox::new();
    sandbox.write("mine.txt", "mine\n");
    let point = one_edit(&mut sandbox);
    let shown = preview(&mut sandbox.workspace, &to(point)).unwrap();
    sandbox.write("mine.txt", "mine, later\n");
    let root = sandbox.root();
    let mut run = || {
        write(&root, "mine.txt", "mine\n");
        Ok(())
    };
    let mut helper = Helper { paths: vec![path("mine.txt")], run: &mut run };
    let done = rewind_with(&mut sandbox.workspace, &to(point), Some(&shown), &mut helper).unwrap();
    assert_eq!(said(&done.0), ["success", "restored a.txt"]);
    assert_eq!(sandbox.read("mine.txt"), "mine, later\n");
    assert_consistent(&sandbox);
}
