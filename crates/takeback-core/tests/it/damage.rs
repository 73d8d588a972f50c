//! Contents that the store has lost: the rest of a rewind is done, and missing contents are listed.

use std::collections::BTreeSet;
use std::fs;
use std::os::unix::fs::FileExt as _;

use takeback_core::exchange::{ExportOptions, IgnoredPaths, Selection, export};
use takeback_core::rewind::Exactness;
use takeback_core::rewind::{RewindError, RewindRequest, Target, preview, rewind};
use takeback_store::Digest;
use takeback_testkit::Sandbox;

use crate::text::report;

/// The segment, offset and length of contents, read from the database.
fn location(sandbox: &Sandbox, contents: &str) -> (std::path::PathBuf, u64, u64) {
    let store = &sandbox.workspace.store_dir;
    let db = rusqlite::Connection::open(store.join("timeline.db")).unwrap();
    let digest = Digest::of(contents.as_bytes()).0;
    let (segment, offset, length): (u32, i64, i64) = db
        .query_row("SELECT segment, offset, length FROM blob WHERE digest = ?1", [digest], |row| {
            Ok((row.get(0)?, row.get(1)?, row.get(2)?))
        })
        .unwrap();
    let pack = store.join(format!("packs/{segment:08x}.pack"));
    (pack, offset.cast_unsigned(), length.cast_unsigned())
}

/// Flips a bit of the kept contents.
pub(crate) fn spoil(sandbox: &mut Sandbox, contents: &str) {
    const HEADER: u64 = 53;
    let (pack, offset, length) = location(sandbox, contents);
    let file = fs::OpenOptions::new().read(true).write(true).open(pack).unwrap();
    let at = offset + HEADER + length / 2;
    let mut byte = [0];
    file.read_exact_at(&mut byte, at).unwrap();
    file.write_all_at(&[byte[0] ^ 1], at).unwrap();
    sandbox.reopen();
}

fn contents(number: usize) -> String {
    format!("what file number {number} said before\n")
}

/// An agent overwrote fifty files, deleted one more and made one.
fn fifty_files() -> (Sandbox, takeback_store::PointId) {
    let mut sandbox = Sandbox::new();
    for number in 0..50 {
        sandbox.write(&format!("src/{number:02}.txt"), contents(number));
    }
    let point = sandbox.prompt("s", "go");
    sandbox.agent_runs("s", "work", |sandbox| {
        for number in 0..50 {
            sandbox.write(&format!("src/{number:02}.txt"), format!("agent {number}\n"));
        }
        sandbox.write("made.txt", "made\n");
    });
    sandbox.turn_end("s");
    (sandbox, point)
}

const MISSING: &str = "not captured src/17.txt: damaged in the store";

#[test]
fn one_flipped_bit_costs_one_file() {
    let (mut sandbox, point) = fifty_files();
    let before = sandbox.tree();
    spoil(&mut sandbox, &contents(17));
    let receipt = sandbox.rewind_to(point);
    let lines = report(&receipt);
    assert_eq!(lines.first().map(String::as_str), Some("not all"));
    assert_eq!(lines.last().map(String::as_str), Some(MISSING), "{lines:?}");
    assert_eq!((receipt.restored_files.len(), receipt.deleted_files.len()), (49, 1));
    for number in 0..50 {
        let kept = format!("agent {number}\n");
        let expected = if number == 17 { kept } else { contents(number) };
        assert_eq!(sandbox.read(&format!("src/{number:02}.txt")), expected);
    }
    sandbox.reopen();
    assert_eq!(report(&sandbox.undo())[0], "success");
    assert_eq!(sandbox.tree(), before);
    let redone = sandbox.redo();
    assert_eq!((redone.success, redone.restored_files.len()), (true, 49), "what was done of it");
    assert!(!sandbox.exists(".takeback"), "nothing is left over");
}

#[test]
fn a_small_preview_lists_the_damage_and_can_be_applied() {
    let (mut sandbox, point) = fifty_files();
    spoil(&mut sandbox, &contents(17));
    let request = RewindRequest::new(Target::Point(point));
    let shown = preview(&mut sandbox.workspace, &request).unwrap();
    assert_eq!(report(&shown.receipt()).last().map(String::as_str), Some(MISSING));
    let receipt = rewind(&mut sandbox.workspace, &request, Some(&shown)).unwrap();
    assert_eq!(receipt.restored_files.len(), 49);
}

/// Contents found damaged only after the preview are left; nothing else is done than what the preview
/// showed.
#[test]
fn contents_lost_after_the_preview_are_left_and_listed() {
    let (mut sandbox, point) = fifty_files();
    let request = RewindRequest::new(Target::Point(point));
    let shown = preview(&mut sandbox.workspace, &request).unwrap();
    spoil(&mut sandbox, &contents(17));
    let receipt = rewind(&mut sandbox.workspace, &request, Some(&shown)).unwrap();
    assert_eq!(report(&receipt).last().map(String::as_str), Some(MISSING));
    sandbox.undo();
    sandbox.write("src/03.txt", "saved meanwhile\n");
    let refused = rewind(&mut sandbox.workspace, &request, Some(&shown));
    assert!(matches!(refused, Err(RewindError::Changed(_))), "{refused:?}");
}

#[test]
fn a_lost_segment_costs_only_its_own_files() {
    let (mut sandbox, point) = fifty_files();
    let (pack, _, _) = location(&sandbox, &contents(1));
    fs::remove_file(pack).unwrap();
    sandbox.reopen();
    let before = sandbox.tree();
    let receipt = sandbox.rewind_to(point);
    // What the agent made is in it too: taken away now, it could not be had back.
    assert_eq!((receipt.not_captured.len(), receipt.deleted_files.len()), (51, 0), "{receipt:?}");
    assert_eq!(sandbox.tree(), before);
    let mut request = RewindRequest::new(Target::Point(point));
    request.discard.insert(takeback_testkit::path("made.txt"));
    let receipt = sandbox.rewind(&request).unwrap();
    assert_eq!((receipt.not_captured.len(), receipt.deleted_files.len()), (50, 1), "{receipt:?}");
}

/// To take out only the agent's lines, three contents are read.
#[test]
fn a_merge_with_lost_contents_costs_one_file() {
    let lines = |first: &str, last: &str| format!("{first}\n2\n3\n4\n5\n6\n7\n8\n{last}\n");
    let mut sandbox = Sandbox::new();
    for name in ["a.txt", "b.txt"] {
        sandbox.write(name, lines(name, "9"));
    }
    let point = sandbox.prompt("s", "go");
    for name in ["a.txt", "b.txt"] {
        sandbox.agent_writes("s", name, lines(&format!("agent {name}"), "9"));
    }
    sandbox.turn_end("s");
    for name in ["a.txt", "b.txt"] {
        sandbox.write(name, lines(&format!("agent {name}"), "mine"));
    }
    sandbox.prompt("s", "now it is all in the store");
    spoil(&mut sandbox, &lines("a.txt", "9"));
    let request = RewindRequest::new(Target::Point(point));
    let shown = preview(&mut sandbox.workspace, &request).unwrap();
    let expected = ["not all", "merged b.txt", "not captured a.txt: damaged in the store"];
    assert_eq!(report(&shown.receipt()), expected);
    assert_eq!(report(&sandbox.rewind_to(point)), expected);
    assert_eq!(sandbox.read("a.txt"), lines("agent a.txt", "mine"));
    assert_eq!(sandbox.read("b.txt"), lines("b.txt", "mine"));
}

/// What is lost is not made, and what is in its place is not removed for it.
#[test]
fn a_folder_in_the_place_of_a_lost_file_stays() {
    let mut sandbox = Sandbox::new();
    sandbox.write("thing", "a file\n");
    sandbox.write("other", "another\n");
    let point = sandbox.prompt("s", "go");
    sandbox.agent_runs("s", "work", |sandbox| {
        sandbox.remove("thing");
        sandbox.remove("other");
        sandbox.write("thing/inside", "made\n");
    });
    sandbox.turn_end("s");
    spoil(&mut sandbox, "a file\n");
    for exactness in [Exactness::AgentsOnly, Exactness::Exact] {
        let mut request = RewindRequest::new(Target::Point(point));
        request.exactness = exactness;
        let receipt = sandbox.rewind(&request).unwrap();
        let lost: BTreeSet<String> =
            receipt.not_captured.iter().map(|note| note.path.display()).collect();
        assert!(lost.contains("thing"), "{exactness:?}: {receipt:?}");
        assert_eq!(sandbox.read("other"), "another\n");
        assert!(receipt.errors.is_empty() && receipt.conflicts.is_empty(), "{receipt:?}");
        let undone = sandbox.undo();
        assert!(undone.success, "{undone:?}");
        assert_eq!(sandbox.read("thing/inside"), "made\n");
    }
}

#[test]
fn an_export_leaves_out_lost_contents() {
    let (mut sandbox, _) = fifty_files();
    spoil(&mut sandbox, &contents(17));
    let options =
        ExportOptions { selection: Selection::Everything, ignored: IgnoredPaths::Include };
    let mut bundle = Vec::new();
    let exported = export(&mut sandbox.workspace, &options, &mut bundle).unwrap();
    assert_eq!(exported.damaged.len(), 1);
    assert_eq!(exported.damaged[0].display(), "src/17.txt");
    let whole = fifty_files();
    let mut sandbox = whole.0;
    let exported = export(&mut sandbox.workspace, &options, &mut Vec::new()).unwrap();
    assert_eq!(exported.damaged, []);
}
