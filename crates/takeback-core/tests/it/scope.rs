//! What belongs to a workspace; a change of the rules never deletes anything.

use std::fs;
use std::os::unix::fs::symlink;
use std::path::{Path, PathBuf};
use std::process::Command;

use takeback_core::check_root;
use takeback_core::rewind::{RewindRequest, Target, preview};
use takeback_core::worktree::OutReason;
use takeback_core::{WorkspaceError, look_around};
use takeback_store::{Entry, NotCapturedReason, Seq};
use takeback_testkit::{Sandbox, Thing, path};

use crate::recording::settle;
use crate::text::{authors, history, log, report};

/// The paths that a scan covers, and those it skips with the reason.
fn scanned(sandbox: &mut Sandbox) -> (Vec<String>, Vec<(String, OutReason)>) {
    let skipped = look_around(&mut sandbox.workspace).expect("the tree is scanned").skipped;
    settle();
    for again in ["settled", "known to be settled"] {
        let surveyed = look_around(&mut sandbox.workspace).expect("the tree is scanned");
        assert_eq!((surveyed.skipped, surveyed.recorded.changes), (skipped.clone(), 0), "{again}");
    }
    let latest = sandbox.workspace.store.latest().unwrap();
    let covered = latest.into_iter().filter(|(_, entry)| *entry != Entry::Absent);
    let skipped = skipped.into_iter().map(|(path, reason)| (path.display(), reason));
    (covered.map(|(path, _)| path.display()).collect(), skipped.collect())
}

fn out(paths: &[(&str, OutReason)]) -> Vec<(String, OutReason)> {
    paths.iter().map(|(path, reason)| ((*path).to_owned(), *reason)).collect()
}

struct Row {
    name: &'static str,
    set_up: fn(&mut Sandbox),
    covered: &'static [&'static str],
    skipped: &'static [(&'static str, OutReason)],
}

const ROWS: [Row; 6] = [
    Row {
        name: "ignore rules are git's",
        set_up: |s| {
            // No ignored file is small enough to be covered.
            s.workspace.scope.precious_file_max = 0;
            s.write(".gitignore", "*.log\n!keep.log\n/top\nbuild/\n# comment\n\nlib/*.tmp\n");
            s.write(".git/info/exclude", "private\n");
            s.write("lib/.gitignore", "!loud.log\nkeep.log\n");
            for name in ["a.log", "keep.log", "top", "private", "build/out", "lib/top"] {
                s.write(name, "x");
            }
            for name in ["loud.log", "keep.log", "x.tmp", "deep/x.tmp", "build/out", "deep/a.log"] {
                s.write(&format!("lib/{name}"), "x");
            }
        },
        covered: &[
            ".gitignore",
            "keep.log",
            "lib",
            "lib/.gitignore",
            "lib/deep",
            "lib/deep/x.tmp",
            "lib/loud.log",
            "lib/top",
        ],
        skipped: &[
            ("a.log", OutReason::IgnoredFile),
            ("build", OutReason::IgnoredFolder),
            ("lib/build", OutReason::IgnoredFolder),
            ("lib/deep/a.log", OutReason::IgnoredFile),
            ("lib/keep.log", OutReason::IgnoredFile),
            ("lib/x.tmp", OutReason::IgnoredFile),
            ("private", OutReason::IgnoredFile),
            ("top", OutReason::IgnoredFile),
        ],
    },
    Row {
        name: "a nested repository is covered by its own rules, without its internals",
        set_up: |s| {
            s.workspace.scope.precious_file_max = 0;
            s.write(".gitignore", "*.log\n");
            s.write("dep/.git/HEAD", "ref: refs/heads/main\n");
            s.write("dep/.gitignore", "*.tmp\n");
            s.write("dep/a.log", "covered: the rules above do not apply to it\n");
            s.write("dep/a.tmp", "ignored\n");
            s.write("dep/src/b.log", "covered\n");
            s.write("b.log", "ignored\n");
        },
        covered: &[".gitignore", "dep", "dep/.gitignore", "dep/a.log", "dep/src", "dep/src/b.log"],
        skipped: &[("b.log", OutReason::IgnoredFile), ("dep/a.tmp", OutReason::IgnoredFile)],
    },
    Row {
        name: "derived folders are recognized by name and by the files next to them",
        set_up: |s| {
            s.workspace.scope.derived_folders = vec!["generated".to_owned()];
            s.write("package.json", "{}");
            s.write("node_modules/dep/index.js", "x");
            s.write("docs/node_modules/mine.txt", "no manifest next to it: a user's own folder\n");
            s.write("lib/.gitignore", "target/\n");
            s.write("lib/target/debug/x", "x");
            s.write("src/__pycache__/a.pyc", "x");
            s.write("src/generated/a.rs", "x");
        },
        covered: &[
            "docs",
            "docs/node_modules",
            "docs/node_modules/mine.txt",
            "lib",
            "lib/.gitignore",
            "package.json",
            "src",
        ],
        skipped: &[
            ("lib/target", OutReason::Derived),
            ("node_modules", OutReason::Derived),
            ("src/__pycache__", OutReason::Derived),
            ("src/generated", OutReason::Derived),
        ],
    },
    Row {
        name: ".takebackignore excludes paths",
        set_up: |s| {
            s.write(".takebackignore", "secrets/\n*.iso\n");
            for name in ["secrets/key", "disk.iso", "lib/other.iso", "a.txt"] {
                s.write(name, "x");
            }
        },
        covered: &[".takebackignore", "a.txt", "lib"],
        skipped: &[
            ("disk.iso", OutReason::Excluded),
            ("lib/other.iso", OutReason::Excluded),
            ("secrets", OutReason::Excluded),
        ],
    },
    Row {
        name: "a nested workspace owns its files",
        set_up: |s| {
            s.workspace.scope.nested_workspaces = vec![path("lib/inner")];
            s.write("lib/inner/a.txt", "x");
            s.write("lib/b.txt", "x");
        },
        covered: &["lib", "lib/b.txt"],
        skipped: &[("lib/inner", OutReason::NestedWorkspace)],
    },
    Row {
        name: "links are recorded as links and never followed",
        set_up: |s| {
            fs::create_dir(s.outside().join("elsewhere")).unwrap();
            fs::write(s.outside().join("elsewhere/secret"), "x").unwrap();
            symlink("../elsewhere", s.at("link")).unwrap();
            symlink("link", s.at("loop")).unwrap();
        },
        covered: &["link", "loop"],
        skipped: &[],
    },
];

#[test]
fn a_scan_covers_the_workspace_and_reports_what_it_skips() {
    for Row { name, set_up, covered, skipped } in ROWS {
        let mut sandbox = Sandbox::in_memory();
        set_up(&mut sandbox);
        let found = scanned(&mut sandbox);
        assert_eq!(found.0, covered, "{name}: covered");
        assert_eq!(found.1, out(skipped), "{name}: skipped");
    }
}

#[test]
fn ignored_files_are_precious_within_a_budget() {
    let mut sandbox = Sandbox::in_memory();
    sandbox.workspace.scope.precious_file_max = 10;
    sandbox.workspace.scope.precious_total_max = 18;
    sandbox.write(".gitignore", ".env\n*.db\n");
    sandbox.write(".env", "12345678");
    sandbox.write("large.db", "12345678901");
    sandbox.write("a.db", "12345678");
    sandbox.write("b.db", "123");
    let (covered, skipped) = scanned(&mut sandbox);
    assert_eq!(covered, [".env", ".gitignore", "a.db"]);
    assert_eq!(
        skipped,
        out(&[("b.db", OutReason::OverBudget), ("large.db", OutReason::IgnoredFile)])
    );

    let point = sandbox.prompt("s", "go");
    sandbox.agent_runs("s", "rm .env a.db", |sandbox| {
        sandbox.remove(".env");
        sandbox.remove("a.db");
    });
    sandbox.turn_end("s");
    sandbox.rewind_to(point);
    assert_eq!(sandbox.read(".env"), "12345678");
    assert_eq!(sandbox.read("a.db"), "12345678");
}

#[test]
fn pipes_are_never_opened() {
    let mut sandbox = Sandbox::in_memory();
    sandbox.write("a.txt", "a\n");
    let pipe = sandbox.at("pipe");
    let made = Command::new("mkfifo").arg(&pipe).status().expect("mkfifo runs");
    assert!(made.success());
    let (covered, skipped) = scanned(&mut sandbox);
    assert_eq!(covered, ["a.txt"]);
    assert_eq!(skipped, out(&[("pipe", OutReason::Special)]));

    sandbox.prompt("s", "go");
    sandbox.before_edit("s", &["pipe"]);
    let special = Entry::NotCaptured { reason: NotCapturedReason::Special };
    let named: Vec<_> =
        history(&sandbox, "pipe").into_iter().map(|c| (c.before, c.after)).collect();
    assert_eq!(named, [(Entry::Unknown, special.clone())]);

    sandbox.agent_runs("s", "rm a.txt; mkfifo a.txt", |sandbox| {
        sandbox.remove("a.txt");
        Command::new("mkfifo").arg(sandbox.at("a.txt")).status().expect("mkfifo runs");
    });
    assert_eq!(history(&sandbox, "a.txt").pop().map(|change| change.after), Some(special));
}

// --- roots --------------------------------------------------------------------------------------

#[test]
fn some_folders_cannot_be_a_workspace() {
    let sandbox = Sandbox::in_memory();
    let home = sandbox.outside();
    let store = home.join("store");
    let work = sandbox.root();
    sandbox.write("file", "x");
    symlink(&home, work.join("way-home")).unwrap();
    let allowed = check_root(&work, &store, Some(&home)).unwrap();
    assert_eq!(allowed, fs::canonicalize(&work).unwrap());
    for (root, store, why) in [
        (PathBuf::from("/"), &store, "the whole file system"),
        (home.clone(), &PathBuf::from("/nowhere"), "your home folder"),
        (work.join("way-home"), &PathBuf::from("/nowhere"), "your home folder"),
        (work.clone(), &work.join("deep/store"), "it contains Takeback's own store"),
        (work.join("file"), &store, "not a folder"),
    ] {
        let refused = check_root(&root, store, Some(&home)).unwrap_err().to_string();
        assert!(refused.contains(why), "{root:?}: {refused}");
    }
    let missing = check_root(&work.join("missing"), &store, None).unwrap_err();
    assert!(matches!(missing, WorkspaceError::Unreachable { .. }), "{missing:?}");
}

// --- rules that change --------------------------------------------------------------------------

#[test]
fn files_that_enter_the_scope_are_never_deleted() {
    for agent_edits_the_rules in [true, false] {
        let mut sandbox = Sandbox::in_memory();
        sandbox.write(".gitignore", "out/\n");
        sandbox.write("out/deep/a.txt", "a\n");
        sandbox.write("a.txt", "one\n");
        let point = sandbox.prompt("s", "go");
        if agent_edits_the_rules {
            sandbox.agent_runs("s", "sed -i /out/d .gitignore", |sandbox| {
                sandbox.write(".gitignore", "");
            });
        } else {
            sandbox.write(".gitignore", "");
        }
        sandbox.agent_writes("s", "a.txt", "two\n");
        sandbox.turn_end("s");
        let firsts: Vec<Entry> = log(&sandbox)
            .into_iter()
            .filter(|change| change.path.is_within(b"out"))
            .map(|change| change.before)
            .collect();
        assert_eq!(firsts, vec![Entry::Unknown; 3]);
        let receipt = sandbox.rewind_to(point);
        assert_eq!(receipt.deleted_files, []);
        assert_eq!(sandbox.read("out/deep/a.txt"), "a\n");
        assert_eq!(sandbox.read("a.txt"), "one\n");
    }
}

#[test]
fn rules_edited_by_a_user_apply_to_unchanged_folders() {
    let mut sandbox = Sandbox::in_memory();
    sandbox.workspace.scope.precious_file_max = 0;
    sandbox.write(".gitignore", "*.log\n");
    sandbox.write("lib/.gitignore", "deep/out/\n");
    sandbox.write("lib/deep/a.log", "a\n");
    sandbox.write("lib/deep/out/b.txt", "b\n");
    assert_eq!(scanned(&mut sandbox).0, [".gitignore", "lib", "lib/.gitignore", "lib/deep"]);
    sandbox.write(".gitignore", "");
    sandbox.write("lib/.gitignore", "");
    settle();
    assert_eq!(
        scanned(&mut sandbox).0,
        [
            ".gitignore",
            "lib",
            "lib/.gitignore",
            "lib/deep",
            "lib/deep/a.log",
            "lib/deep/out",
            "lib/deep/out/b.txt"
        ]
    );
}

/// The log has the new rules before a scan sees them.
#[test]
fn rules_edited_by_an_agent_apply_to_unchanged_folders() {
    let mut sandbox = Sandbox::new();
    sandbox.workspace.scope.ignored_folder_names = 0;
    sandbox.write(".gitignore", "out/\n");
    sandbox.write("lib/out/x", "x\n");
    settle();
    sandbox.prompt("s", "go");
    let skipped = |sandbox: &mut Sandbox| {
        settle();
        look_around(&mut sandbox.workspace).unwrap().skipped
    };
    assert_eq!(skipped(&mut sandbox), [(path("lib/out"), OutReason::IgnoredFolder)]);
    sandbox.agent_writes("s", ".gitignore", "");
    assert_eq!(skipped(&mut sandbox), []);
    let covered = sandbox.workspace.store.latest_of(&[path("lib/out/x")]).unwrap();
    assert_eq!(covered[0].as_ref().map(|change| &change.before), Some(&Entry::Unknown));
}

#[test]
fn a_known_path_stays_covered_when_rules_exclude_it() {
    for rules in [".gitignore", ".takebackignore"] {
        let mut sandbox = Sandbox::in_memory();
        sandbox.write("lib/a.txt", "a\n");
        sandbox.set_mode("lib", 0o750);
        sandbox.write("b.txt", "b\n");
        let point = sandbox.prompt("s", "go");
        sandbox.agent_writes("s", rules, "lib/\nb.txt\n");
        sandbox.agent_runs("s", "rm lib/a.txt; echo >> b.txt", |sandbox| {
            sandbox.remove("lib/a.txt");
            sandbox.write("b.txt", "changed\n");
            sandbox.write("lib/new.txt", "out by the agent's own rules, and so not hidden\n");
        });
        sandbox.agent_runs("s", "rm -r lib", |sandbox| sandbox.remove("lib"));
        sandbox.turn_end("s");
        assert_eq!(authors(&sandbox, "lib"), ["s call-3 Bash window"], "{rules}");
        assert_eq!(authors(&sandbox, "lib/a.txt"), ["s call-2 Bash window"], "{rules}");
        assert_eq!(authors(&sandbox, "b.txt"), ["s call-2 Bash window"], "{rules}");
        let receipt = sandbox.rewind_to(point);
        assert_eq!(
            report(&receipt),
            [
                "success",
                "restored b.txt",
                "restored lib",
                "restored lib/a.txt",
                &format!("deleted {rules}")
            ]
        );
        assert_eq!(sandbox.read("lib/a.txt"), "a\n");
        assert_eq!(sandbox.read("b.txt"), "b\n");
        assert_eq!(sandbox.tree()[Path::new("lib")], Thing::Folder { mode: 0o750 }, "{rules}");
    }
}

#[test]
fn a_named_path_in_an_ignored_folder_stays_covered() {
    let mut sandbox = Sandbox::in_memory();
    sandbox.workspace.scope.ignored_folder_names = 0;
    sandbox.write(".gitignore", "out/\n");
    sandbox.write("out/deep/a.txt", "before\n");
    sandbox.write("out/deep/b.txt", "never named\n");
    let point = sandbox.prompt("s", "go");
    sandbox.agent_writes("s", "out/deep/a.txt", "edited\n");
    sandbox.turn_end("s");
    for _ in 0..2 {
        sandbox.prompt("s", "more");
        sandbox.agent_runs("s", "sed -i", |sandbox| {
            let longer = sandbox.read("out/deep/a.txt") + "more\n";
            sandbox.write("out/deep/a.txt", longer);
        });
    }
    sandbox.agent_runs("s", "rm -r out", |sandbox| sandbox.remove("out"));
    sandbox.turn_end("s");
    assert_eq!(
        authors(&sandbox, "out/deep/a.txt"),
        [
            "s call-1 Edit named",
            "s call-2 Bash window",
            "s call-3 Bash window",
            "s call-4 Bash window"
        ]
    );
    sandbox.rewind_to(point);
    assert_eq!(sandbox.read("out/deep/a.txt"), "before\n");
    assert!(!sandbox.exists("out/deep/b.txt"), "its contents are stored nowhere");
}

#[test]
fn a_named_path_is_covered_even_if_rules_exclude_it() {
    let mut sandbox = Sandbox::in_memory();
    sandbox.write(".gitignore", "out/\n");
    sandbox.write("out/a.txt", "before\n");
    let point = sandbox.prompt("s", "go");
    sandbox.agent_writes("s", "out/a.txt", "after\n");
    sandbox.agent_writes("s", "out/new.txt", "made\n");
    sandbox.turn_end("s");
    assert_eq!(
        report(&sandbox.rewind_to(point)),
        ["success", "restored out/a.txt", "deleted out/new.txt"]
    );
    assert_eq!(sandbox.read("out/a.txt"), "before\n");
}

#[test]
fn a_settled_nested_repository_keeps_its_own_rules() {
    let mut sandbox = Sandbox::new();
    sandbox.write(".gitignore", "build/\n");
    sandbox.write("nested/.git/HEAD", "ref: refs/heads/main\n");
    sandbox.write("nested/deep/a.txt", "a\n");
    settle();
    look_around(&mut sandbox.workspace).unwrap();
    sandbox.write("nested/deep/build/made.txt", "the outer rule does not reach here\n");
    look_around(&mut sandbox.workspace).unwrap();
    let latest = sandbox.workspace.store.latest_of(&[path("nested/deep/build/made.txt")]).unwrap();
    assert!(latest[0].is_some(), "it is covered");
}

#[test]
fn the_budget_for_ignored_files_survives_the_loss_of_the_index() {
    let mut sandbox = Sandbox::new();
    sandbox.workspace.scope.precious_total_max = 10;
    sandbox.write(".gitignore", "*.db\n");
    sandbox.write("a.db", "12345678");
    scanned(&mut sandbox);
    fs::remove_file(sandbox.workspace.index_file()).unwrap();
    sandbox.reopen();
    sandbox.workspace.scope.precious_total_max = 10;
    scanned(&mut sandbox);
    sandbox.write("b.db", "12345678");
    assert_eq!(scanned(&mut sandbox).1, out(&[("b.db", OutReason::OverBudget)]));
}

#[test]
fn only_covered_files_are_counted() {
    let mut sandbox = Sandbox::in_memory();
    sandbox.workspace.scope.precious_file_max = 3;
    sandbox.write(".gitignore", "*.db\n");
    sandbox.write(".takebackignore", "*.iso\n");
    sandbox.write("a.db", "1");
    sandbox.write("large.db", "1234");
    sandbox.write("disk.iso", "x");
    for scan in ["first", "second"] {
        let files = look_around(&mut sandbox.workspace).unwrap().recorded.stats.files;
        assert_eq!(files, 3, "{scan}: two ignore files and a.db");
    }
}

#[test]
fn rules_that_exclude_themselves_are_taken_back() {
    let mut sandbox = Sandbox::in_memory();
    sandbox.write("a.txt", "a\n");
    let point = sandbox.prompt("s", "go");
    let rules = [".takebackignore", ".gitignore", "lib/.takebackignore"];
    sandbox.agent_runs("s", "echo '*' > .takebackignore", |sandbox| {
        sandbox.write("lib/a.txt", "known before the rules\n");
    });
    sandbox.agent_runs("s", "echo '*' > .takebackignore", |sandbox| {
        rules.iter().for_each(|path| sandbox.write(path, "*\n"));
    });
    sandbox.turn_end("s");
    sandbox.rewind_to(point);
    assert_eq!(rules.map(|path| sandbox.exists(path)), [false; 3]);
}

#[test]
fn files_in_a_folder_first_seen_by_a_preview_are_new() {
    let mut sandbox = Sandbox::new();
    sandbox.write("d/one", "1\n");
    let point = sandbox.prompt("s", "go");
    sandbox.agent_runs("s", "rm -rf d", |sandbox| sandbox.remove("d"));
    sandbox.turn_end("s");
    sandbox.write("d/mine", "mine\n");
    // A preview looks at the folder, and not at what is in it.
    let request = RewindRequest::new(Target::Point(point));
    preview(&mut sandbox.workspace, &request).unwrap();
    look_around(&mut sandbox.workspace).unwrap();
    let changes = sandbox.workspace.store.changes_after(Seq(0)).unwrap();
    let mine = changes.iter().find(|change| change.path == path("d/mine")).expect("it is recorded");
    assert_eq!(mine.before, Entry::Absent);
}

#[test]
fn a_deleted_path_that_was_never_covered_is_reported() {
    let mut sandbox = Sandbox::new();
    sandbox.workspace.scope.ignored_folder_names = 0;
    fs::create_dir(sandbox.at(".git")).unwrap();
    sandbox.write(".gitignore", "/secret/\n/node_modules/\n");
    sandbox.write("package.json", "{}");
    sandbox.write("secret/key", "k\n");
    sandbox.write("node_modules/x/index.js", "x\n");
    sandbox.write("f", "1\n");
    let point = sandbox.prompt("s", "clean");
    sandbox.agent_runs("s", "git clean -fdx", |sandbox| {
        sandbox.remove("secret");
        sandbox.remove("node_modules");
        sandbox.remove("f");
    });
    sandbox.turn_end("s");
    let receipt = sandbox.rewind_to(point);
    assert_eq!(
        report(&receipt),
        [
            "not all",
            "restored f",
            "not captured secret: it was not covered before, so what was there is not known"
        ]
    );
    // A person who does the same knows it.
    sandbox.write("secret/key", "k\n");
    look_around(&mut sandbox.workspace).unwrap();
    let point = sandbox.prompt("s", "again");
    sandbox.remove("secret");
    sandbox.agent_writes("s", "f", "2\n");
    sandbox.turn_end("s");
    assert!(sandbox.rewind_to(point).success);
}

#[test]
fn skipped_paths_are_covered_once_the_reason_is_gone() {
    let mut sandbox = Sandbox::new();
    sandbox.workspace.scope.ignored_folder_names = 0;
    sandbox.workspace.scope.precious_file_max = 10;
    sandbox.workspace.scope.precious_total_max = 10;
    sandbox.write(".git/info/exclude", "*.own\n");
    sandbox.write("d/.gitignore", "*.db\n");
    sandbox.write("d/a.db", "1234567");
    sandbox.write("d/b.db", "12345678");
    sandbox.write("d/c.db", "12345678901");
    sandbox.write("e/x.own/y", "y");
    settle();
    let (covered, skipped) = scanned(&mut sandbox);
    assert_eq!(covered, ["d", "d/.gitignore", "d/a.db", "e"]);
    let all = [
        ("d/b.db", OutReason::OverBudget),
        ("d/c.db", OutReason::IgnoredFile),
        ("e/x.own", OutReason::IgnoredFolder),
    ];
    assert_eq!(skipped, out(&all));
    assert_eq!(scanned(&mut sandbox).1, out(&all), "they are still reported");

    // Written in place: no folder's time moves.
    sandbox.write("d/c.db", "123");
    settle();
    assert_eq!(scanned(&mut sandbox).1, out(&[all[0], all[2]]));
    sandbox.write(".git/info/exclude", "");
    settle();
    assert_eq!(scanned(&mut sandbox).1, out(&[all[0]]));
    sandbox.write("d/a.db", "");
    settle();
    scanned(&mut sandbox);
    assert_eq!(scanned(&mut sandbox).1, out(&[all[0]]), "11 bytes are still too many");
    sandbox.workspace.scope.precious_total_max = 11;
    assert_eq!(scanned(&mut sandbox).1, out(&[]));
}
