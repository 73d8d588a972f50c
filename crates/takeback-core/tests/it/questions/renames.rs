//! A file that moves with its bytes is one file without changed lines, in every count and every difference.

use std::fs;

use takeback_core::history::{
    AuthorFilter, Cancelled, Count, FileDiff, Lines, PointRow, Tally, Viewpoint, between, by_path,
    changes_by, changes_until, path_history, settle, spans, stats,
};
use takeback_core::{checkpoint, look_around};
use takeback_store::{Change, PointId, Seq, Store};
use takeback_testkit::{Sandbox, path};

fn rename(sandbox: &Sandbox, from: &str, to: &str) {
    let to = sandbox.at(to);
    fs::create_dir_all(to.parent().unwrap()).unwrap();
    fs::rename(sandbox.at(from), to).unwrap();
}

fn changes_after(store: &dyn Store, point: PointId) -> Vec<Change> {
    let points = store.points().unwrap();
    let point = points.iter().find(|one| one.id == point).unwrap();
    let mut changes = changes_until(store, point, None).unwrap();
    settle(store, &mut changes).unwrap();
    changes
}

fn tally(store: &dyn Store, changes: &[Change]) -> Tally {
    let session = takeback_store::SessionId("s".to_owned());
    let view = Viewpoint { session: Some(&session) };
    Tally::of(changes, &view, &Cancelled::default(), store).unwrap()
}

const fn count(files: usize, insertions: usize, deletions: usize) -> Count {
    Count { files, lines: Lines { insertions, deletions } }
}

/// `PATH`, or `OLD => NEW`, with the lines that it gained and lost. Folders are left out.
fn named(diffs: &[FileDiff], store: &dyn Store) -> Vec<String> {
    let files = diffs.iter().filter(|diff| !diff.is_folder());
    files
        .map(|diff| {
            let old = diff.renamed_from.as_ref().map(|old| format!("{} => ", old.display()));
            let Lines { insertions, deletions } = diff.lines(store).unwrap().unwrap_or_default();
            let old = old.unwrap_or_default();
            format!("{old}{} +{insertions} -{deletions}", diff.path.display())
        })
        .collect()
}

/// What a session's turn did to these files, as the log, `diff` and `diff --by agent` have it.
fn turn(files: &[(&str, &str)], does: impl FnOnce(&mut Sandbox)) -> (Count, Vec<String>) {
    let mut sandbox = Sandbox::in_memory();
    for (name, text) in files {
        sandbox.write(name, text);
    }
    let point = sandbox.prompt("s", "do it");
    does(&mut sandbox);
    sandbox.turn_end("s");
    let store = &*sandbox.workspace.store;
    let changes = changes_after(store, point);
    let diffs = between(&by_path(changes.clone()), None);
    let by = AuthorFilter::Sessions(Vec::new());
    let part =
        changes_by(store, changes.clone(), &Cancelled::default(), |change| by.includes(change))
            .unwrap();
    assert_eq!(named(&part.diffs, store), named(&diffs, store));
    let count = tally(store, &changes).agent;
    let points = store.points().unwrap();
    assert_eq!(stats(store, &changes, &points).unwrap().agents.count, count);
    (count, named(&diffs, store))
}

#[test]
fn a_pure_rename_is_one_file_and_no_lines() {
    let (counted, diffs) = turn(&[("old.rs", "one\ntwo\n")], |sandbox| {
        sandbox.agent_runs("s", "git mv", |sandbox| rename(sandbox, "old.rs", "src/new.rs"));
    });
    assert_eq!(counted, count(1, 0, 0));
    assert_eq!(diffs, ["old.rs => src/new.rs +0 -0"]);
}

#[test]
fn edits_before_and_after_a_rename_count_and_nothing_else() {
    let (counted, diffs) = turn(&[("a", "1\n2\n3\n")], |sandbox| {
        sandbox.agent_writes("s", "a", "0\n1\n2\n3\n");
        sandbox.agent_runs("s", "mv", |sandbox| rename(sandbox, "a", "b"));
        sandbox.agent_runs("s", "mv", |sandbox| rename(sandbox, "b", "z/c"));
        sandbox.agent_writes("s", "z/c", "0\n1\n2\n");
    });
    assert_eq!(counted, count(1, 1, 1));
    assert_eq!(diffs, ["a => z/c +1 -1"]);
}

#[test]
fn there_and_back_is_no_change() {
    let (counted, diffs) = turn(&[("a", "1\n")], |sandbox| {
        sandbox.agent_runs("s", "mv", |sandbox| rename(sandbox, "a", "b"));
        sandbox.agent_runs("s", "mv", |sandbox| rename(sandbox, "b", "a"));
    });
    assert_eq!((counted, diffs), (count(0, 0, 0), Vec::new()));
}

#[test]
fn a_new_file_that_is_renamed_is_new() {
    let (counted, diffs) = turn(&[], |sandbox| {
        sandbox.agent_writes("s", "draft", "1\n2\n");
        sandbox.agent_runs("s", "mv", |sandbox| rename(sandbox, "draft", "final"));
    });
    assert_eq!(counted, count(1, 2, 0));
    assert_eq!(diffs, ["final +2 -0"]);
}

#[test]
fn bytes_that_are_not_text_move_too_and_a_mode_may_change() {
    let (counted, diffs) = turn(&[("image", "\0\n\n"), ("run", "x\n")], |sandbox| {
        sandbox.agent_runs("s", "mv", |sandbox| {
            rename(sandbox, "image", "picture");
            rename(sandbox, "run", "bin/run");
            sandbox.set_mode("bin/run", 0o755);
        });
    });
    assert_eq!(counted, count(2, 0, 0));
    assert_eq!(diffs, ["run => bin/run +0 -0", "image => picture +0 -0"]);
}

#[test]
fn equal_files_keep_their_names() {
    let files = [("a/x", "1\n"), ("a/y", "1\n"), ("a/z", "1\n")];
    let (counted, diffs) = turn(&files, |sandbox| {
        sandbox.agent_runs("s", "mv", |sandbox| {
            rename(sandbox, "a/y", "b/y");
            rename(sandbox, "a/z", "b/a");
            rename(sandbox, "a/x", "b/x");
        });
    });
    assert_eq!(counted, count(3, 0, 0));
    assert_eq!(diffs, ["a/z => b/a +0 -0", "a/x => b/x +0 -0", "a/y => b/y +0 -0"]);
}

#[test]
fn what_only_looks_like_a_rename_is_a_deletion_and_a_new_file() {
    // Other bytes; nothing at all; another moment; a file in the way; a copy.
    let edited = turn(&[("a", "1\n2\n")], |sandbox| {
        sandbox.agent_runs("s", "mv", |sandbox| {
            sandbox.remove("a");
            sandbox.write("b", "1\n2\n3\n");
        });
    });
    assert_eq!(edited, (count(2, 3, 2), vec!["a +0 -2".to_owned(), "b +3 -0".to_owned()]));
    let empty = turn(&[("a", "")], |sandbox| {
        sandbox.agent_runs("s", "mv", |sandbox| rename(sandbox, "a", "b"));
    });
    assert_eq!(empty.0, count(2, 0, 0));
    let later = turn(&[("a", "1\n")], |sandbox| {
        sandbox.agent_runs("s", "rm", |sandbox| sandbox.remove("a"));
        sandbox.agent_writes("s", "b", "1\n");
    });
    assert_eq!(later.0, count(2, 1, 1));
    let over = turn(&[("a", "1\n"), ("b", "2\n")], |sandbox| {
        sandbox.agent_runs("s", "mv", |sandbox| rename(sandbox, "a", "b"));
    });
    assert_eq!(over.1, ["a +0 -1", "b +1 -1"]);
    let copy = turn(&[("a", "1\n")], |sandbox| {
        sandbox.agent_runs("s", "cp", |sandbox| sandbox.write("b", "1\n"));
    });
    assert_eq!(copy.1, ["b +1 -0"]);
    let again = turn(&[("a", "1\n")], |sandbox| {
        sandbox.agent_runs("s", "mv", |sandbox| rename(sandbox, "a", "b"));
        sandbox.agent_writes("s", "a", "other\n");
    });
    assert_eq!(again.1, ["a +1 -1", "b +1 -0"]);
}

#[test]
fn a_rename_counts_for_who_made_it_and_the_lines_for_who_wrote_them() {
    let mut sandbox = Sandbox::in_memory();
    sandbox.write("a", "1\n");
    let point = sandbox.prompt("s", "move it");
    sandbox.write("a", "1\nmine\n");
    sandbox.agent_runs("s", "mv", |sandbox| rename(sandbox, "a", "b"));
    sandbox.turn_end("s");
    sandbox.write("b", "1\nmine\nagain\n");
    look_around(&mut sandbox.workspace).unwrap();
    let store = &*sandbox.workspace.store;
    let changes = changes_after(store, point);
    let tally = tally(store, &changes);
    assert_eq!((tally.agent, tally.you), (count(1, 0, 0), count(2, 2, 0)));
    assert_eq!(named(&between(&by_path(changes.clone()), None), store), ["a => b +2 -0"]);
    let by_author = spans(&changes, |change| format!("{:?}", change.author));
    let parts: Vec<FileDiff> = by_author.into_iter().map(|(_, diff)| diff).collect();
    assert_eq!(named(&parts, store), ["a +1 -0", "a => b +0 -0", "b +1 -0"]);
    let apart = spans(&changes, |change| change.path.clone());
    let apart: Vec<FileDiff> = apart.into_iter().map(|(_, diff)| diff).collect();
    assert_eq!(named(&apart, store), ["a +0 -1", "b +3 -0"], "other keys, other authors");
    let history = path_history(store, &path("b"), 100).unwrap();
    let renamed = history.iter().find(|row| row.renamed_from.is_some()).unwrap();
    assert_eq!((renamed.tally.agent, renamed.tally.you), (count(1, 0, 0), count(1, 1, 0)));
}

#[test]
fn your_rename_and_a_rewind_of_a_rename_are_renames_too() {
    let mut sandbox = Sandbox::in_memory();
    sandbox.write("a", "1\n");
    let first = checkpoint(&mut sandbox.workspace, None).unwrap().point.unwrap();
    rename(&sandbox, "a", "b");
    let second = sandbox.prompt("s", "move it back");
    sandbox.agent_runs("s", "mv", |sandbox| rename(sandbox, "b", "c"));
    sandbox.turn_end("s");
    sandbox.rewind_to(second);
    let store = &*sandbox.workspace.store;
    let points = store.points().unwrap();
    let row = |id| {
        let point = points.iter().find(|point| point.id == id).unwrap().clone();
        PointRow::of(store, point, None).unwrap()
    };
    assert_eq!(row(first).tally.you, count(1, 0, 0));
    assert_eq!(named(&row(first).diffs(), store), ["a => b +0 -0"]);
    assert_eq!(row(second).tally.agent, count(1, 0, 0));
    let rewound = store.rewind_changes_after(Seq(0)).unwrap();
    let rewound = between(&by_path(rewound), None);
    assert_eq!(named(&rewound, store), ["c => b +0 -0"]);
    let back: Vec<FileDiff> = rewound.into_iter().map(FileDiff::reversed).collect();
    assert_eq!(named(&back, store), ["b => c +0 -0"]);
}
