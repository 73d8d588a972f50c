//! Small files in ignored folders are covered within the budget for ignored files; changes of others are
//! only reported.

use std::fs;
use std::time::Duration;

use takeback_core::look_around;
use takeback_core::rewind::FirstSighting;
use takeback_core::worktree::OutReason;
use takeback_store::{Entry, WorkPath};
use takeback_testkit::{Sandbox, path};

use crate::recording::settle;
use crate::text::{history, report};

fn skipped(sandbox: &mut Sandbox) -> Vec<(WorkPath, OutReason)> {
    look_around(&mut sandbox.workspace).unwrap().skipped
}

fn read(sandbox: &mut Sandbox) -> u64 {
    look_around(&mut sandbox.workspace).unwrap().recorded.stats.read
}

fn with_data() -> Sandbox {
    let sandbox = Sandbox::new();
    sandbox.write(".gitignore", "data/\n");
    sandbox.write("data/x.csv", "1,2\n");
    sandbox.write("data/deep/y.csv", "3,4\n");
    sandbox.write("src/a.rs", "a\n");
    settle();
    sandbox
}

#[test]
fn small_files_in_an_ignored_folder_come_back() {
    let mut sandbox = with_data();
    let point = sandbox.prompt("s", "go");
    sandbox.agent_runs("s", "rm data/x.csv; echo > data/deep/y.csv", |sandbox| {
        sandbox.remove("data/x.csv");
        sandbox.write("data/deep/y.csv", "changed\n");
        sandbox.write("data/made/new.csv", "new\n");
    });
    sandbox.turn_end("s");
    let receipt = sandbox.rewind_to(point);
    assert!(receipt.success, "{receipt:?}");
    assert_eq!(sandbox.read("data/x.csv"), "1,2\n");
    assert_eq!(sandbox.read("data/deep/y.csv"), "3,4\n");
    assert!(sandbox.exists("data/made/new.csv"), "what is new there is kept, as build output is");
    let stays = FirstSighting { path: path("data/made"), folder: true, names: 1 };
    assert_eq!(receipt.first_seen, [stays], "and the receipt says so");
    sandbox.agent_runs("s", "rm -rf data", |sandbox| sandbox.remove("data"));
    sandbox.turn_end("s");
    assert!(sandbox.rewind_to(point).success);
    assert_eq!(sandbox.read("data/deep/y.csv"), "3,4\n");
}

#[test]
fn an_unchanged_folder_is_not_read_again() {
    let mut sandbox = with_data();
    assert!(read(&mut sandbox) > 0);
    settle();
    look_around(&mut sandbox.workspace).unwrap();
    assert_eq!(read(&mut sandbox), 0);
    fs::remove_file(sandbox.workspace.index_file()).unwrap();
    sandbox.reopen();
    look_around(&mut sandbox.workspace).unwrap();
    settle();
    look_around(&mut sandbox.workspace).unwrap();
    assert_eq!(read(&mut sandbox), 0);
}

#[test]
fn derived_and_excluded_folders_stay_out() {
    let mut sandbox = with_data();
    sandbox.write(".gitignore", "data/\nnode_modules/\n");
    sandbox.write("data/node_modules/x/index.js", "x\n");
    sandbox.write(".takebackignore", "data/deep/\n");
    assert_eq!(
        skipped(&mut sandbox),
        [(path("data/deep"), OutReason::Excluded), (path("data/node_modules"), OutReason::Derived)]
    );
    // Excluded later: known paths stay covered, and new ones are not.
    sandbox.write(".takebackignore", "data/\n");
    settle();
    sandbox.write("data/late.csv", "late\n");
    assert!(skipped(&mut sandbox).contains(&(path("data/late.csv"), OutReason::Excluded)));
    assert_eq!(history(&sandbox, "data/late.csv"), []);
}

#[test]
fn changes_over_the_budget_are_reported() {
    let mut sandbox = with_data();
    sandbox.workspace.scope.precious_file_max = 100;
    sandbox.workspace.scope.precious_total_max = 120;
    sandbox.write("data/a.bin", [1; 100]);
    sandbox.write("data/b.bin", [2; 90]);
    sandbox.write("data/huge.bin", [3; 200]);
    settle();
    let point = sandbox.prompt("s", "go");
    settle();
    assert_eq!(
        skipped(&mut sandbox),
        [
            (path("data/b.bin"), OutReason::OverBudget),
            (path("data/huge.bin"), OutReason::IgnoredFile)
        ]
    );
    sandbox.agent_runs("s", "edit", |sandbox| {
        sandbox.write("data/b.bin", [4; 90]);
        sandbox.write("data/huge.bin", [5; 200]);
        sandbox.write("data/x.csv", "changed\n");
    });
    sandbox.turn_end("s");
    settle();
    let receipt = sandbox.rewind_to(point);
    let unknown = "it was not covered before, so what was there is not known";
    assert_eq!(
        report(&receipt),
        [
            "not all",
            "restored data/x.csv",
            &format!("not captured data/b.bin: {unknown}"),
            &format!("not captured data/huge.bin: {unknown}"),
        ]
    );
    assert_eq!(fs::read(sandbox.at("data/b.bin")).unwrap(), [4; 90], "it is left as it is");
    // A rewind does not read what is not covered.
    let kept = history(&sandbox, "data/huge.bin");
    assert!(kept.iter().all(|change| !matches!(change.after, Entry::File { .. })), "{kept:?}");
    // Without a change there is no report.
    let next = sandbox.prompt("s", "next");
    sandbox.agent_writes("s", "src/a.rs", "b\n");
    sandbox.turn_end("s");
    assert!(sandbox.rewind_to(next).success);
}

#[test]
fn a_folder_with_too_many_names_is_watched_as_a_whole() {
    let mut sandbox = with_data();
    sandbox.workspace.scope.ignored_folder_names = 3;
    for at in 0..4 {
        sandbox.write(&format!("data/many/{at}"), "x\n");
    }
    settle();
    assert_eq!(skipped(&mut sandbox), [(path("data"), OutReason::TooMany)]);
    settle();
    let point = sandbox.prompt("s", "go");
    sandbox.agent_runs("s", "rm data/x.csv", |sandbox| sandbox.remove("data/x.csv"));
    sandbox.turn_end("s");
    let receipt = sandbox.rewind_to(point);
    let unknown = "it was not covered before, so what was there is not known";
    assert_eq!(report(&receipt), ["not all", &format!("not captured data: {unknown}")]);
    settle();
    let next = sandbox.prompt("s", "next");
    sandbox.agent_writes("s", "src/a.rs", "b\n");
    sandbox.turn_end("s");
    assert!(sandbox.rewind_to(next).success, "nothing changed there since");
    // Fewer names: it is covered, with an unknown past.
    sandbox.remove("data/many");
    settle();
    assert_eq!(skipped(&mut sandbox), []);
    assert_eq!(history(&sandbox, "data/deep/y.csv")[0].before, Entry::Unknown);
}

#[test]
fn a_covered_folder_does_not_grow_beyond_the_limit() {
    let mut sandbox = with_data();
    sandbox.workspace.scope.ignored_folder_names = 6;
    assert_eq!(skipped(&mut sandbox), []);
    for at in 0..6 {
        sandbox.write(&format!("data/n{at}"), "x\n");
    }
    settle();
    let out = skipped(&mut sandbox);
    assert_eq!(out.iter().filter(|(_, why)| *why == OutReason::TooMany).count(), 3, "{out:?}");
    for at in 0..5 {
        sandbox.write(&format!("data/sub/{at}"), "x\n");
    }
    settle();
    assert!(skipped(&mut sandbox).contains(&(path("data/sub"), OutReason::TooMany)));
}

/// `make clean`, then `make`: the old files are restored, new ones are kept.
#[test]
fn rebuilt_files_are_restored() {
    let mut sandbox = with_data();
    let point = sandbox.prompt("s", "go");
    sandbox.agent_runs("s", "make clean", |sandbox| sandbox.remove("data"));
    sandbox.agent_runs("s", "make", |sandbox| {
        sandbox.write("data/x.csv", "made again\n");
        sandbox.write("data/new.csv", "new\n");
    });
    sandbox.agent_runs("s", "edit", |sandbox| sandbox.write("data/new.csv", "edited\n"));
    sandbox.turn_end("s");
    let receipt = sandbox.rewind_to(point);
    assert!(receipt.success, "{receipt:?}");
    assert_eq!(sandbox.read("data/x.csv"), "1,2\n");
    assert_eq!(sandbox.read("data/deep/y.csv"), "3,4\n");
    assert_eq!(sandbox.read("data/new.csv"), "new\n", "as it was first seen");
    let stays = FirstSighting { path: path("data"), folder: true, names: 1 };
    assert_eq!(receipt.first_seen, [stays]);
}

/// Each name is counted once, however deep it is.
#[test]
fn a_deep_folder_is_counted_in_linear_time() {
    let mut sandbox = Sandbox::in_memory();
    sandbox.write(".gitignore", "data/\n");
    let deep = format!("data/{}f", "d/".repeat(800));
    sandbox.write(&deep, "x\n");
    let began = std::time::Instant::now();
    assert_eq!(skipped(&mut sandbox), []);
    assert_eq!(history(&sandbox, &deep).len(), 1);
    assert!(began.elapsed() < Duration::from_secs(5), "{:?}", began.elapsed());
}

/// A file that is ignored itself is not crowded out by a folder of the same scan.
#[test]
fn ignored_files_come_before_ignored_folders() {
    let mut sandbox = Sandbox::new();
    sandbox.workspace.scope.precious_total_max = 10;
    sandbox.write(".gitignore", "a/\n.env\nz.local\n");
    sandbox.write("a/big", "12345678");
    sandbox.write("z.local", "12345678");
    assert_eq!(skipped(&mut sandbox), [(path("a/big"), OutReason::OverBudget)]);
    assert_eq!(history(&sandbox, "z.local").len(), 1);
}
