//! What a question about one path looks at, and which other files it follows.

use takeback_core::history::{LineOrigin, blame, path_history, stats};
use takeback_core::{look_around, look_around_if_changed};
use takeback_store::{Author, Change, Seq, WorkPath};
use takeback_testkit::Sandbox;

fn path(path: &str) -> WorkPath {
    WorkPath::new(path).unwrap()
}

/// The authors of a file's lines, without a look at the disk.
fn authors(sandbox: &Sandbox, file: &str) -> Vec<String> {
    let blame = blame(&*sandbox.workspace.store, &path(file)).unwrap();
    let author = |origin| match origin {
        LineOrigin::Change { seq, .. } => match &blame.changes[&seq].author {
            Author::Agent { session, .. } => session.0.clone(),
            other => format!("{other:?}"),
        },
        other => format!("{other:?}"),
    };
    blame.lines.iter().map(|line| author(line.origin)).collect()
}

fn changes_of(sandbox: &Sandbox, file: &str) -> Vec<Change> {
    sandbox.workspace.store.changes_of(&path(file)).unwrap()
}

#[test]
fn a_question_about_an_unchanged_file_scans_nothing() {
    let mut sandbox = Sandbox::in_memory();
    sandbox.write("a.txt", "one\n");
    sandbox.write("b.txt", "two\n");
    sandbox.prompt("s", "begin");
    sandbox.write("b.txt", "three\n");
    look_around_if_changed(&mut sandbox.workspace, &path("a.txt")).unwrap();
    assert_eq!(changes_of(&sandbox, "b.txt").len(), 1, "only as it was first seen");
    sandbox.write("a.txt", "four\n");
    look_around_if_changed(&mut sandbox.workspace, &path("a.txt")).unwrap();
    assert_eq!(changes_of(&sandbox, "a.txt").len(), 2);
    assert_eq!(changes_of(&sandbox, "b.txt").len(), 2, "lines may have come from there");
}

#[test]
fn a_question_about_a_file_that_was_just_renamed_finds_its_old_name() {
    let mut sandbox = Sandbox::in_memory();
    sandbox.write("x.txt", "");
    sandbox.prompt("s", "write");
    sandbox.agent_writes("s", "old.txt", "first line\nsecond line\n");
    sandbox.turn_end("s");
    std::fs::rename(sandbox.at("old.txt"), sandbox.at("new.txt")).unwrap();
    look_around_if_changed(&mut sandbox.workspace, &path("new.txt")).unwrap();
    assert_eq!(authors(&sandbox, "new.txt"), ["s", "s"]);
    let rows = path_history(&*sandbox.workspace.store, &path("new.txt"), 20).unwrap();
    assert_eq!(rows[0].renamed_from, Some(path("old.txt")));
    assert_eq!(rows.last().unwrap().path, path("old.txt"));
}

#[test]
fn a_line_that_moves_to_and_fro_between_files_keeps_its_author() {
    let mut sandbox = Sandbox::in_memory();
    sandbox.write("x.txt", "");
    sandbox.prompt("s", "write");
    sandbox.agent_writes("s", "a.txt", "the line\nstays in a\n");
    sandbox.agent_writes("s", "b.txt", "stays in b\n");
    sandbox.turn_end("s");
    for turn in 0..6 {
        // Never the same state twice, so that only the lines tell where they came from.
        let (with, without) = if turn % 2 == 0 { ("b", "a") } else { ("a", "b") };
        sandbox.prompt("t", "move");
        sandbox.agent_runs("t", "move", |sandbox| {
            let own = format!("move {turn} was here\n");
            sandbox.write(&format!("{with}.txt"), format!("stays in {with}\n{own}the line\n"));
            sandbox.write(&format!("{without}.txt"), format!("stays in {without}\n{own}"));
        });
        sandbox.turn_end("t");
        assert_eq!(authors(&sandbox, &format!("{with}.txt")), ["s", "t", "s"], "turn {turn}");
    }
}

#[test]
fn a_long_history_is_read_in_pages() {
    let mut sandbox = Sandbox::in_memory();
    sandbox.write("x.txt", "");
    sandbox.prompt("s", "begin");
    for n in 0..150 {
        sandbox.prompt("s", &format!("prompt {n}"));
        sandbox.agent_writes("s", "a.txt", format!("text {n}\n"));
        sandbox.turn_end("s");
    }
    let store = &*sandbox.workspace.store;
    let all = path_history(store, &path("a.txt"), usize::MAX).unwrap();
    let described = |row: &takeback_core::history::FileRow| row.point.clone().unwrap().description;
    let expected: Vec<String> = (0..150).rev().map(|n| format!("prompt {n}")).collect();
    assert_eq!(all.iter().map(described).collect::<Vec<_>>(), expected);
    let written: Vec<usize> = all.iter().map(|row| row.changes.len()).collect();
    assert_eq!(written, [1; 150], "each change is in one row");
    for limit in [1, 20, 31, 32, 33, 97, 149] {
        let rows = path_history(store, &path("a.txt"), limit).unwrap();
        assert_eq!(rows.iter().map(described).collect::<Vec<_>>(), expected[..limit]);
    }
}

#[test]
fn what_is_left_of_a_range_does_not_depend_on_what_came_before() {
    let mut sandbox = Sandbox::in_memory();
    sandbox.write("a.txt", "old one\nold two\n");
    sandbox.prompt("s", "before the range");
    sandbox.agent_writes("s", "a.txt", "old one\nold two\nby s\n");
    sandbox.turn_end("s");
    let from = sandbox.workspace.store.head().unwrap().seq;
    sandbox.prompt("t", "in the range");
    sandbox.agent_writes("t", "a.txt", "old one\nby t\nalso by t\nby s\n");
    sandbox.turn_end("t");
    sandbox.write("a.txt", "old one\nby t\nby s\nby me\n");
    look_around(&mut sandbox.workspace).unwrap();
    let store = &*sandbox.workspace.store;
    let stats = stats(store, &store.changes_after(Seq(from.0)).unwrap(), &[]).unwrap();
    assert_eq!((stats.agents.count.lines.insertions, stats.agents.left), (2, 1));
    assert_eq!((stats.you.count.lines.insertions, stats.you.left), (1, 1));
}
