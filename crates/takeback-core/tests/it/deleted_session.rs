//! A deleted session leaves nothing: neither in the log, nor in safety points, nor in the store's files.

use takeback_core::checkpoint;
use takeback_core::retention::delete_session;
use takeback_core::rewind::Exactness;
use takeback_core::rewind::{RewindError, RewindRequest, Target};
use takeback_store::{Author, Change, Digest, Entry, PointId, PointKind};
use takeback_testkit::Sandbox;

use crate::shown::{history, log};

const SECRET: &str = "the session wrote this\n";

fn delete(sandbox: &mut Sandbox, session: &str) {
    delete_session(&mut sandbox.workspace, &session.into()).unwrap();
    assert_eq!(sandbox.workspace.store.check().unwrap(), Vec::<String>::new());
}

fn by_hand(sandbox: &mut Sandbox) -> PointId {
    checkpoint(&mut sandbox.workspace, None).unwrap().point.expect("a point")
}

fn names(sandbox: &Sandbox, text: &str) -> bool {
    let entry = |entry: &Entry| entry.digest() == Some(Digest::of(text.as_bytes()));
    log(sandbox).iter().any(|change| entry(&change.before) || entry(&change.after))
}

/// Neither the log nor the packs have it.
#[track_caller]
fn assert_gone(sandbox: &Sandbox, text: &str) {
    assert!(!names(sandbox, text), "{:#?}", log(sandbox));
    assert!(!sandbox.workspace.store.has(&Digest::of(text.as_bytes())).unwrap());
}

#[track_caller]
fn assert_undo_says_why(sandbox: &mut Sandbox) {
    let undo = sandbox.rewind(&RewindRequest::new(Target::Undo));
    assert!(matches!(undo, Err(RewindError::SessionDeleted)), "{undo:?}");
}

fn steps(changes: &[Change]) -> Vec<(Option<Digest>, Option<Digest>, Author)> {
    let step = |c: &Change| (c.before.digest(), c.after.digest(), c.author.clone());
    changes.iter().map(step).collect()
}

fn digest(text: &str) -> Digest {
    Digest::of(text.as_bytes())
}

#[test]
fn what_a_rewind_took_back_goes_with_its_session() {
    let mut sandbox = Sandbox::new();
    sandbox.write("a.txt", "base\n");
    let kept = by_hand(&mut sandbox);
    let point = sandbox.prompt("s", "go");
    sandbox.agent_writes("s", "a.txt", SECRET);
    sandbox.agent_writes("s", "made.txt", "made by it\n");
    sandbox.turn_end("s");
    sandbox.rewind_to(point);
    assert!(names(&sandbox, SECRET));
    delete(&mut sandbox, "s");
    assert_gone(&sandbox, SECRET);
    assert_gone(&sandbox, "made by it\n");
    assert_undo_says_why(&mut sandbox);
    let redo = sandbox.rewind(&RewindRequest::new(Target::Redo));
    assert!(matches!(redo, Err(RewindError::SessionDeleted)), "{redo:?}");
    let points = sandbox.workspace.store.points().unwrap();
    assert_eq!(points.iter().map(|point| point.id).collect::<Vec<_>>(), [kept]);
    assert_eq!(sandbox.read("a.txt"), "base\n");
}

#[test]
fn what_was_undone_and_redone_goes_too() {
    let mut sandbox = Sandbox::new();
    sandbox.write("a.txt", "base\n");
    by_hand(&mut sandbox);
    let point = sandbox.prompt("s", "go");
    sandbox.agent_writes("s", "a.txt", "first try\n");
    sandbox.agent_writes("s", "a.txt", SECRET);
    sandbox.turn_end("s");
    sandbox.rewind_to(point);
    sandbox.undo();
    sandbox.redo();
    delete(&mut sandbox, "s");
    assert_gone(&sandbox, SECRET);
    assert_gone(&sandbox, "first try\n");
    assert_undo_says_why(&mut sandbox);
}

#[test]
fn an_edit_of_yours_that_was_merged_stays_as_yours() {
    let mut sandbox = Sandbox::new();
    sandbox.write("a.txt", "one\ntwo\nthree\nfour\nfive\n");
    by_hand(&mut sandbox);
    let point = sandbox.prompt("s", "go");
    sandbox.agent_writes("s", "a.txt", "ONE\ntwo\nthree\nfour\nfive\n");
    sandbox.turn_end("s");
    sandbox.write("a.txt", "ONE\ntwo\nthree\nfour\nmine\n");
    sandbox.rewind_to(point);
    let left = "one\ntwo\nthree\nfour\nmine\n";
    assert_eq!(sandbox.read("a.txt"), left);
    delete(&mut sandbox, "s");
    assert_gone(&sandbox, "ONE\ntwo\nthree\nfour\nfive\n");
    assert_gone(&sandbox, "ONE\ntwo\nthree\nfour\nmine\n");
    let steps = steps(&history(&sandbox, "a.txt"));
    let expected =
        (Some(digest("one\ntwo\nthree\nfour\nfive\n")), Some(digest(left)), Author::Human);
    assert_eq!(steps.last(), Some(&expected), "{steps:#?}");
}

#[test]
fn what_you_wrote_over_goes_without_a_rewind() {
    let mut sandbox = Sandbox::new();
    sandbox.write("a.txt", "base\n");
    by_hand(&mut sandbox);
    sandbox.prompt("s", "go");
    sandbox.agent_writes("s", "a.txt", SECRET);
    sandbox.turn_end("s");
    sandbox.write("a.txt", "mine\n");
    sandbox.prompt("other", "look");
    delete(&mut sandbox, "s");
    assert_gone(&sandbox, SECRET);
}

#[test]
fn the_safety_point_of_anothers_rewind_does_not_keep_it() {
    let mut sandbox = Sandbox::new();
    sandbox.write("a.txt", "base\n");
    by_hand(&mut sandbox);
    sandbox.prompt("s", "go");
    sandbox.agent_writes("s", "a.txt", SECRET);
    sandbox.turn_end("s");
    let point = sandbox.prompt("t", "go");
    sandbox.agent_writes("t", "t.txt", "t's\n");
    sandbox.turn_end("t");
    // The state before t's rewind has the secret, and so does t's own point.
    sandbox.rewind_to(point);
    sandbox.write("a.txt", "mine\n");
    by_hand(&mut sandbox);
    delete(&mut sandbox, "s");
    assert!(names(&sandbox, SECRET), "t's point has it");
    delete(&mut sandbox, "t");
    assert!(!names(&sandbox, "t's\n"));
    assert_undo_says_why(&mut sandbox);
}

#[test]
fn a_point_of_yours_keeps_what_it_has() {
    let mut sandbox = Sandbox::new();
    sandbox.write("a.txt", "base\n");
    let point = sandbox.prompt("s", "go");
    sandbox.agent_writes("s", "a.txt", SECRET);
    sandbox.turn_end("s");
    let mine = by_hand(&mut sandbox);
    sandbox.rewind_to(point);
    delete(&mut sandbox, "s");
    assert_undo_says_why(&mut sandbox);
    let points = sandbox.workspace.store.points().unwrap();
    assert!(points.iter().all(|point| point.kind != PointKind::Safety), "{points:?}");
    let mut request = RewindRequest::new(Target::Point(mine));
    request.exactness = Exactness::Exact;
    assert!(sandbox.rewind(&request).unwrap().success);
    assert_eq!(sandbox.read("a.txt"), SECRET);
    assert!(sandbox.undo().success);
    assert_eq!(sandbox.read("a.txt"), "base\n");
}

#[test]
fn a_newer_rewind_of_another_session_can_still_be_undone() {
    let mut sandbox = Sandbox::new();
    sandbox.write("a.txt", "base\n");
    by_hand(&mut sandbox);
    let point = sandbox.prompt("s", "go");
    sandbox.agent_writes("s", "a.txt", SECRET);
    sandbox.turn_end("s");
    sandbox.rewind_to(point);
    let point = sandbox.prompt("t", "go");
    sandbox.agent_writes("t", "a.txt", "t's\n");
    sandbox.turn_end("t");
    sandbox.rewind_to(point);
    delete(&mut sandbox, "s");
    assert_gone(&sandbox, SECRET);
    assert!(sandbox.undo().success);
    assert_eq!(sandbox.read("a.txt"), "t's\n");
    assert_undo_says_why(&mut sandbox);
}

#[test]
fn going_back_by_hand_stays_yours() {
    let mut sandbox = Sandbox::new();
    sandbox.write("a.txt", "base\n");
    by_hand(&mut sandbox);
    sandbox.prompt("t", "go");
    sandbox.agent_writes("t", "a.txt", "t's\n");
    sandbox.turn_end("t");
    sandbox.prompt("s", "go");
    sandbox.agent_writes("s", "a.txt", SECRET);
    sandbox.turn_end("s");
    sandbox.write("a.txt", "base\n");
    sandbox.prompt("t", "look");
    delete(&mut sandbox, "s");
    // As one change it would read as if the deleted session had taken back what t did.
    let steps = steps(&history(&sandbox, "a.txt"));
    let authors: Vec<&Author> = steps.iter().rev().take(2).map(|(_, _, author)| author).collect();
    assert_eq!(authors, [&Author::Human, &Author::Deleted], "{steps:#?}");
}
