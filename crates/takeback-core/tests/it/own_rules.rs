//! Ignore rules that an agent wrote do not hide its files: they are taken back or listed.

use std::fs;

use takeback_core::look_around;
use takeback_core::rewind::Receipt;
use takeback_core::worktree::scope::OutReason;
use takeback_store::{Entry, NotCapturedReason, PointId};
use takeback_testkit::{Sandbox, path};

use crate::recording::settle;
use crate::text::{authors, history, report};

const STAGE: &str = ".takeback/stage-00000000000000aa";
const DERIVED: &str = "build output, not recorded";
const RESERVED: &str = "its name is reserved for stages of Takeback, which are never touched";

/// A project that a scan has seen, and a prompt in it.
fn project(files: &[(&str, &str)]) -> (Sandbox, PointId) {
    let mut sandbox = Sandbox::new();
    sandbox.write("a.txt", "a\n");
    files.iter().for_each(|(path, text)| sandbox.write(path, text));
    let point = sandbox.prompt("s", "go");
    (sandbox, point)
}

/// How the agent writes its files.
#[derive(Debug, Clone, Copy)]
enum Method {
    /// All in one command.
    OneShell,
    /// A command for the first, and one for the others.
    TwoShells,
    /// The edit tool for the first, a command for the others.
    EditAndShell,
    /// The edit tool for each.
    Edits,
}

const ALL: [Method; 4] = [Method::OneShell, Method::TwoShells, Method::EditAndShell, Method::Edits];

fn agent_makes(sandbox: &mut Sandbox, method: Method, files: &[(&str, &str)]) {
    let put = |sandbox: &Sandbox, files: &[(&str, &str)]| {
        files.iter().for_each(|(path, text)| sandbox.write(path, text));
    };
    let (first, rest) = files.split_at(1);
    match method {
        Method::OneShell => sandbox.agent_runs("s", "make all", |sandbox| put(sandbox, files)),
        Method::TwoShells => {
            sandbox.agent_runs("s", "make one", |sandbox| put(sandbox, first));
            sandbox.agent_runs("s", "make rest", |sandbox| put(sandbox, rest));
        }
        Method::EditAndShell => {
            sandbox.agent_writes("s", first[0].0, first[0].1);
            sandbox.agent_runs("s", "make rest", |sandbox| put(sandbox, rest));
        }
        Method::Edits => {
            files.iter().for_each(|(path, text)| sandbox.agent_writes("s", path, text));
        }
    }
}

/// An agent makes these files in an empty project and a rewind takes them back, an undo brings
/// all of them back byte for byte, and a redo takes them back again.
fn assert_taken_back(method: Method, files: &[(&str, &str)]) {
    let (mut sandbox, point) = project(&[]);
    let before = sandbox.tree();
    agent_makes(&mut sandbox, method, files);
    sandbox.turn_end("s");
    let made = sandbox.tree();
    for _ in 0..2 {
        let receipt = sandbox.rewind_to(point);
        assert!(receipt.success, "{method:?} {files:?}: {receipt:?}");
        assert_eq!(sandbox.tree(), before, "{method:?} {files:?}");
        for (path, _) in files {
            assert!(!sandbox.exists(path), "{method:?}: {path}");
        }
        let undone = sandbox.undo();
        assert!(undone.success, "{method:?} {files:?}: {undone:?}");
        assert_eq!(sandbox.tree(), made, "{method:?} {files:?}");
        for (path, text) in files {
            assert_eq!(sandbox.read(path), *text, "{method:?}: {path}");
        }
    }
}

fn left(receipt: &Receipt) -> Vec<(String, String)> {
    let lacking = receipt.not_captured.iter();
    lacking.map(|note| (note.path.display(), note.reason.clone())).collect()
}

fn lines<const N: usize>(notes: [(&str, &str); N]) -> Vec<(String, String)> {
    notes.map(|(path, reason)| (path.to_owned(), reason.to_owned())).to_vec()
}

// --- rules --------------------------------------------------------------------------------------

#[test]
fn files_hidden_by_the_agents_own_rules_are_taken_back() {
    let rows: [&[(&str, &str)]; 7] = [
        &[(".takebackignore", "evil/\n*.iso\n"), ("evil/deep/x", "x\n"), ("disk.iso", "d\n")],
        &[(".gitignore", "evil/\n*.log\n"), ("evil/deep/x", "x\n"), ("a.log", "l\n")],
        &[("new/.gitignore", "*\n"), ("new/deep/x", "x\n"), ("new/y", "y\n")],
        &[("new/.takebackignore", "*\n"), ("new/deep/x", "x\n")],
        // Files in Takeback's own folder are not hidden either.
        &[(".takeback/notes.txt", "n\n"), (".takeback/deep/x", "x\n")],
        &[(".takeback/stage-x/evil.txt", "e\n"), (".takeback/y", "y\n")],
        &[("src/.takeback-stage-x/evil.txt", "e\n"), ("src/y", "y\n")],
    ];
    for files in rows {
        for method in ALL {
            assert_taken_back(method, files);
        }
    }
}

#[test]
fn files_hidden_by_the_agents_repository_rules_are_taken_back() {
    let (mut sandbox, point) = project(&[(".git/HEAD", "ref: refs/heads/main\n")]);
    sandbox.agent_runs("s", "echo evil >> .git/info/exclude", |sandbox| {
        sandbox.write(".git/info/exclude", "evil/\n");
        sandbox.write("evil/x", "x\n");
    });
    sandbox.turn_end("s");
    assert_eq!(report(&sandbox.rewind_to(point)), ["success", "deleted evil", "deleted evil/x"]);
}

/// An ignored file larger than one that is kept for being small.
#[test]
fn a_large_file_that_the_agent_ignores_is_taken_back() {
    let (mut sandbox, point) = project(&[]);
    sandbox.workspace.scope.precious_file_max = 3;
    sandbox.agent_runs("s", "fetch", |sandbox| {
        sandbox.write(".gitignore", "*.bin\n");
        sandbox.write("a.bin", "12345");
    });
    sandbox.turn_end("s");
    assert_eq!(
        report(&sandbox.rewind_to(point)),
        ["success", "deleted .gitignore", "deleted a.bin"]
    );
}

#[test]
fn rules_of_one_turn_do_not_hide_files_of_the_next() {
    for rules in [".gitignore", ".takebackignore"] {
        let (mut sandbox, point) = project(&[]);
        sandbox.agent_writes("s", rules, "evil/\n");
        sandbox.turn_end("s");
        settle();
        sandbox.prompt("s", "more");
        sandbox.agent_runs("s", "make", |sandbox| sandbox.write("evil/x", "x\n"));
        sandbox.turn_end("s");
        sandbox.prompt("s", "even more");
        sandbox.agent_runs("s", "make", |sandbox| sandbox.write("evil/deep/y", "y\n"));
        sandbox.turn_end("s");
        let receipt = sandbox.rewind_to(point);
        assert!(receipt.success, "{rules}: {receipt:?}");
        assert!(!sandbox.exists("evil") && !sandbox.exists(rules), "{rules}");
    }
}

#[test]
fn only_rules_added_by_the_agent_stop_hiding_files() {
    let (mut sandbox, point) = project(&[(".takebackignore", "dist/\n"), ("dist/old", "o\n")]);
    sandbox.agent_runs("s", "make", |sandbox| {
        sandbox.write(".takebackignore", "dist/\nevil/\n");
        sandbox.write("evil/x", "x\n");
        sandbox.write("dist/new", "n\n");
        sandbox.write("lib/dist/out", "o\n");
    });
    sandbox.turn_end("s");
    assert_eq!(
        report(&sandbox.rewind_to(point)),
        [
            "success",
            "restored .takebackignore",
            "deleted evil",
            "deleted evil/x",
            "kept lib: something else is in it"
        ]
    );
    assert_eq!(sandbox.read("dist/new"), "n\n");
    assert_eq!(sandbox.read("lib/dist/out"), "o\n");
}

#[test]
fn a_users_rules_keep_hiding_files() {
    for rules in [".gitignore", ".takebackignore"] {
        let (mut sandbox, point) = project(&[(rules, "out/\n")]);
        sandbox.workspace.scope.ignored_folder_names = 0;
        sandbox.agent_runs("s", "make", |sandbox| sandbox.write("out/x", "x\n"));
        sandbox.turn_end("s");
        assert_eq!(report(&sandbox.rewind_to(point)), ["success"], "{rules}");
        assert!(sandbox.exists("out/x"), "{rules}");

        // Written between two prompts, with what they hide.
        sandbox.write(rules, "out/\nmine/\n");
        sandbox.write("mine/x", "x\n");
        let point = sandbox.prompt("s", "again");
        sandbox.agent_runs("s", "make", |sandbox| sandbox.write("mine/y", "y\n"));
        sandbox.turn_end("s");
        assert_eq!(report(&sandbox.rewind_to(point)), ["success"], "{rules}");
        let skipped = look_around(&mut sandbox.workspace).unwrap().skipped;
        assert!(skipped.iter().any(|(of, _)| *of == path("mine")), "{rules}: {skipped:?}");
    }
}

#[test]
fn rules_edited_by_a_user_are_the_users() {
    let (mut sandbox, _) = project(&[]);
    sandbox.agent_writes("s", ".takebackignore", "evil/\n");
    sandbox.turn_end("s");
    sandbox.write(".takebackignore", "evil/\nmine/\n");
    let point = sandbox.prompt("s", "more");
    sandbox.agent_runs("s", "make", |sandbox| sandbox.write("evil/x", "x\n"));
    sandbox.turn_end("s");
    assert_eq!(authors(&sandbox, ".takebackignore"), ["s call-1 Edit named", "human"]);
    assert_eq!(report(&sandbox.rewind_to(point)), ["success"]);
    assert!(sandbox.exists("evil/x"));
}

#[test]
fn rules_restored_by_an_undo_are_still_the_agents() {
    let (mut sandbox, first) = project(&[]);
    sandbox.agent_writes("s", ".gitignore", "evil/\n");
    sandbox.turn_end("s");
    sandbox.rewind_to(first);
    sandbox.undo();
    let point = sandbox.prompt("s", "more");
    sandbox.agent_runs("s", "make", |sandbox| sandbox.write("evil/x", "x\n"));
    sandbox.turn_end("s");
    assert_eq!(report(&sandbox.rewind_to(point)), ["success", "deleted evil", "deleted evil/x"]);
}

#[test]
fn files_hidden_before_an_agent_edited_the_rules_stay_hidden() {
    let (mut sandbox, point) = project(&[(".takebackignore", "out/\n"), ("out/mine", "m\n")]);
    sandbox.agent_runs("s", "make", |sandbox| {
        sandbox.write(".takebackignore", "out/\n# more\n");
        sandbox.write("out/x", "x\n");
    });
    sandbox.turn_end("s");
    assert_eq!(report(&sandbox.rewind_to(point)), ["success", "restored .takebackignore"]);
    assert_eq!(sandbox.read("out/mine"), "m\n");
}

#[test]
fn a_lost_index_changes_nothing() {
    let (mut sandbox, point) = project(&[("package.json", "{}")]);
    sandbox.agent_runs("s", "make", |sandbox| {
        sandbox.write(".gitignore", "evil/\n");
        sandbox.write("evil/deep/x", "x\n");
        sandbox.write("app/package.json", "{}");
        sandbox.write("app/node_modules/dep/index.js", "x\n");
    });
    sandbox.turn_end("s");
    let known = sandbox.workspace.store.latest().unwrap();
    for _ in 0..2 {
        fs::remove_file(sandbox.workspace.index_file()).unwrap();
        sandbox.reopen();
        look_around(&mut sandbox.workspace).unwrap();
        assert_eq!(sandbox.workspace.store.latest().unwrap(), known);
    }
    let receipt = sandbox.rewind_to(point);
    assert_eq!(left(&receipt), lines([("app/node_modules", DERIVED)]));
    assert!(!receipt.success);
    assert!(!sandbox.exists("evil"));
}

// --- folders whose contents can be made again ---------------------------------------------------

#[test]
fn a_derived_folder_next_to_the_agents_manifest_is_listed() {
    for method in ALL {
        let (mut sandbox, point) = project(&[]);
        agent_makes(
            &mut sandbox,
            method,
            &[("app/package.json", "{}"), ("app/node_modules/dep/index.js", "x\n")],
        );
        sandbox.turn_end("s");
        let receipt = sandbox.rewind_to(point);
        if matches!(method, Method::Edits) {
            assert!(receipt.success && !sandbox.exists("app"), "each file was named: {receipt:?}");
            continue;
        }
        assert_eq!(left(&receipt), lines([("app/node_modules", DERIVED)]), "{method:?}");
        assert!(!receipt.success, "{method:?}");
        assert!(!sandbox.exists("app/package.json"), "{method:?}");
        assert_eq!(sandbox.read("app/node_modules/dep/index.js"), "x\n", "{method:?}");
        let derived = Entry::NotCaptured { reason: NotCapturedReason::Derived };
        let changes: Vec<_> = history(&sandbox, "app/node_modules")
            .into_iter()
            .map(|change| (change.before, change.after))
            .collect();
        assert_eq!(changes, [(Entry::Absent, derived)], "{method:?}");
        // What is in it changes, and nothing of it is recorded.
        sandbox.write("app/node_modules/more/index.js", "x\n");
        settle();
        for _ in 0..2 {
            let surveyed = look_around(&mut sandbox.workspace).unwrap();
            assert_eq!(surveyed.recorded.changes, 0, "{method:?}");
            let skipped = [(path("app/node_modules"), OutReason::Derived)];
            assert_eq!(surveyed.skipped, skipped, "{method:?}");
        }
        assert!(sandbox.undo().success);
        assert_eq!(sandbox.read("app/package.json"), "{}", "{method:?}");
        // Once it is gone there is nothing left to say.
        sandbox.remove("app/node_modules");
        let receipt = sandbox.rewind_to(point);
        assert!(receipt.success && !sandbox.exists("app"), "{method:?}: {receipt:?}");
    }
}

#[test]
fn a_derived_folder_that_only_the_agent_ignores_is_listed() {
    let (mut sandbox, point) = project(&[]);
    sandbox.agent_runs("s", "make", |sandbox| {
        sandbox.write(".gitignore", "target/\n");
        sandbox.write("target/debug/x", "x\n");
    });
    sandbox.turn_end("s");
    let receipt = sandbox.rewind_to(point);
    assert_eq!(left(&receipt), lines([("target", DERIVED)]));
    assert!(!receipt.success && !sandbox.exists(".gitignore"));
}

#[test]
fn a_derived_folder_next_to_an_older_manifest_is_not_listed() {
    for files in [&[("package.json", "{}")][..], &[(".gitignore", "node_modules/\n")]] {
        let (mut sandbox, point) = project(files);
        sandbox.agent_runs("s", "npm install left-pad", |sandbox| {
            sandbox.write("package.json", "{\"dependencies\": {}}");
            sandbox.write("node_modules/dep/index.js", "x\n");
            sandbox.write("__pycache__/a.pyc", "x\n");
        });
        sandbox.turn_end("s");
        let receipt = sandbox.rewind_to(point);
        assert!(receipt.success, "{files:?}: {receipt:?}");
        assert!(sandbox.exists("node_modules/dep/index.js"), "{files:?}");
    }
}

#[test]
fn a_huge_folder_that_only_the_agent_ignores_is_listed() {
    let (mut sandbox, point) = project(&[]);
    sandbox.agent_runs("s", "make", |sandbox| {
        sandbox.write(".gitignore", "many/\nfew/\n");
        sandbox.write("few/x", "x\n");
        for at in 0..20_001 {
            if at % 1000 == 0 {
                fs::create_dir_all(sandbox.at(&format!("many/{}", at / 1000))).unwrap();
            }
            fs::write(sandbox.at(&format!("many/{}/{at}", at / 1000)), "").unwrap();
        }
    });
    sandbox.turn_end("s");
    let receipt = sandbox.rewind_to(point);
    let reason = "an ignored folder with more than 20,000 new names, not recorded";
    assert_eq!(left(&receipt), lines([("many", reason)]));
    assert!(!receipt.success && !sandbox.exists("few") && sandbox.exists("many/20/20000"));
}

// --- Takeback's own folder ----------------------------------------------------------------------

#[test]
fn a_removed_takeback_folder_is_restored() {
    for lose_index in [false, true] {
        let (mut sandbox, point) = project(&[(".takeback/settings.json", "{}")]);
        let call = sandbox.before_shell("s", "rm -r .takeback");
        sandbox.remove(".takeback");
        if lose_index {
            fs::remove_file(sandbox.workspace.index_file()).unwrap();
            sandbox.reopen();
        }
        sandbox.after("s", &call);
        sandbox.turn_end("s");
        let receipt = sandbox.rewind_to(point);
        assert_eq!(
            report(&receipt),
            ["success", "restored .takeback/settings.json"],
            "{lose_index}"
        );
        assert_eq!(sandbox.read(".takeback/settings.json"), "{}");
        sandbox.undo();
        assert!(!sandbox.exists(".takeback"), "{lose_index}");
    }
}

#[test]
fn a_folder_that_the_agent_names_like_a_stage_is_listed() {
    let outside = "src/.takeback-stage-00000000000000aa";
    for stage in [STAGE, outside] {
        for method in ALL {
            let (mut sandbox, point) = project(&[("src/a", "a\n")]);
            let (one, two) = (format!("{stage}/evil.txt"), format!("{stage}/sub/more.txt"));
            agent_makes(&mut sandbox, method, &[(&one, "e\n"), (&two, "m\n")]);
            sandbox.turn_end("s");
            let receipt = sandbox.rewind_to(point);
            assert_eq!(left(&receipt), lines([(stage, RESERVED)]), "{method:?}");
            assert!(!receipt.success, "{method:?}");
            assert_eq!(sandbox.read(&two), "m\n", "{method:?}");
            sandbox.remove(stage);
            let receipt = sandbox.rewind_to(point);
            assert!(receipt.success, "{method:?}: {receipt:?}");
        }
    }
}

/// Another Takeback's, or one that this one could not clear: it was there before the agent came.
#[test]
fn an_older_stage_is_not_listed() {
    let (mut sandbox, point) = project(&[(&format!("{STAGE}/new-0"), "saved meanwhile\n")]);
    sandbox.agent_runs("s", "make", |sandbox| {
        sandbox.write("b.txt", "b\n");
        sandbox.write(&format!("{STAGE}/new-1"), "n\n");
    });
    sandbox.turn_end("s");
    assert_eq!(report(&sandbox.rewind_to(point)), ["success", "deleted b.txt"]);
    sandbox.remove(STAGE);
    settle();
    look_around(&mut sandbox.workspace).unwrap();
    assert_eq!(history(&sandbox, STAGE), []);
}
