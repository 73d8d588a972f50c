//! A deleted session leaves nothing: neither in the log, nor in safety points, nor in the store's files.

use takeback_core::checkpoint;
use takeback_core::retention::delete_session;
use takeback_core::rewind::Exactness;
use takeback_core::rewind::{RewindError, RewindRequest, Target};
use takeback_store::{Author, Digest, Entry, PointId, PointKind};
use takeback_testkit::Sandbox;

use crate::text::{history, log};

const SECRET: &str = "the session wrote this\n";

/// `a.txt` with a point made by hand, and then the text that session `s` writes, with its point.
fn session_writes(before: &str, after: &str) -> (Sandbox, PointId, PointId) {
    let mut sandbox = Sandbox::new();
    sandbox.write("a.txt", before);
    let manual = manual_point(&mut sandbox);
    let point = turn(&mut sandbox, "s", "a.txt", after);
    (sandbox, manual, point)
}

fn turn(sandbox: &mut Sandbox, session: &str, path: &str, text: &str) -> PointId {
    let point = sandbox.prompt(session, "go");
    sandbox.agent_writes(session, path, text);
    sandbox.turn_end(session);
    point
}

fn manual_point(sandbox: &mut Sandbox) -> PointId {
    checkpoint(&mut sandbox.workspace, None).unwrap().point.expect("a point")
}

fn delete(sandbox: &mut Sandbox, session: &str) {
    delete_session(&mut sandbox.workspace, &session.into()).unwrap();
    assert_eq!(sandbox.workspace.store.check().unwrap(), Vec::<String>::new());
}

fn log_has(sandbox: &Sandbox, text: &str) -> bool {
    let has = |entry: &Entry| entry.digest() == Some(Digest::of(text.as_bytes()));
    log(sandbox).iter().any(|change| has(&change.before) || has(&change.after))
}

/// Neither the log nor the packs have it.
#[track_caller]
fn assert_gone(sandbox: &Sandbox, text: &str) {
    assert!(!log_has(sandbox, text), "{:#?}", log(sandbox));
    assert!(!sandbox.workspace.store.has(&Digest::of(text.as_bytes())).unwrap());
}

#[track_caller]
fn assert_refused_for_the_deleted_session(sandbox: &mut Sandbox, target: Target) {
    let answer = sandbox.rewind(&RewindRequest::new(target));
    assert!(matches!(answer, Err(RewindError::SessionDeleted)), "{answer:?}");
}

#[test]
fn rewound_work_is_deleted_with_its_session() {
    let (mut sandbox, manual, point) = session_writes("base\n", SECRET);
    sandbox.agent_writes("s", "made.txt", "made by it\n");
    sandbox.turn_end("s");
    sandbox.rewind_to(point);
    assert!(log_has(&sandbox, SECRET));
    delete(&mut sandbox, "s");
    assert_gone(&sandbox, SECRET);
    assert_gone(&sandbox, "made by it\n");
    assert_refused_for_the_deleted_session(&mut sandbox, Target::Undo);
    assert_refused_for_the_deleted_session(&mut sandbox, Target::Redo);
    let points = sandbox.workspace.store.points().unwrap();
    assert_eq!(points.iter().map(|point| point.id).collect::<Vec<_>>(), [manual]);
    assert_eq!(sandbox.read("a.txt"), "base\n");
}

#[test]
fn undone_and_redone_work_is_deleted_too() {
    let (mut sandbox, _, point) = session_writes("base\n", "first try\n");
    sandbox.agent_writes("s", "a.txt", SECRET);
    sandbox.turn_end("s");
    sandbox.rewind_to(point);
    sandbox.undo();
    sandbox.redo();
    delete(&mut sandbox, "s");
    assert_gone(&sandbox, SECRET);
    assert_gone(&sandbox, "first try\n");
    assert_refused_for_the_deleted_session(&mut sandbox, Target::Undo);
}

#[test]
fn a_merged_user_edit_stays() {
    let base = "one\ntwo\nthree\nfour\nfive\n";
    let (mut sandbox, _, point) = session_writes(base, "ONE\ntwo\nthree\nfour\nfive\n");
    sandbox.write("a.txt", "ONE\ntwo\nthree\nfour\nmine\n");
    sandbox.rewind_to(point);
    let merged = "one\ntwo\nthree\nfour\nmine\n";
    assert_eq!(sandbox.read("a.txt"), merged);
    delete(&mut sandbox, "s");
    assert_gone(&sandbox, "ONE\ntwo\nthree\nfour\nfive\n");
    assert_gone(&sandbox, "ONE\ntwo\nthree\nfour\nmine\n");
    let last = history(&sandbox, "a.txt").pop().unwrap();
    let digest = |text: &str| Some(Digest::of(text.as_bytes()));
    assert_eq!((last.before.digest(), last.after.digest()), (digest(base), digest(merged)));
    assert_eq!(last.author, Author::Human);
}

#[test]
fn overwritten_work_is_deleted_without_a_rewind() {
    let (mut sandbox, ..) = session_writes("base\n", SECRET);
    sandbox.write("a.txt", "mine\n");
    sandbox.prompt("other", "look");
    delete(&mut sandbox, "s");
    assert_gone(&sandbox, SECRET);
}

#[test]
fn another_sessions_safety_point_does_not_keep_it() {
    let (mut sandbox, ..) = session_writes("base\n", SECRET);
    let point = turn(&mut sandbox, "t", "t.txt", "t's\n");
    // The state before t's rewind has the secret, and so does t's own point.
    sandbox.rewind_to(point);
    sandbox.write("a.txt", "mine\n");
    manual_point(&mut sandbox);
    delete(&mut sandbox, "s");
    assert!(log_has(&sandbox, SECRET), "t's point has it");
    delete(&mut sandbox, "t");
    assert!(!log_has(&sandbox, "t's\n"));
    assert_refused_for_the_deleted_session(&mut sandbox, Target::Undo);
}

#[test]
fn a_manual_point_keeps_its_contents() {
    let mut sandbox = Sandbox::new();
    sandbox.write("a.txt", "base\n");
    let point = turn(&mut sandbox, "s", "a.txt", SECRET);
    let manual = manual_point(&mut sandbox);
    sandbox.rewind_to(point);
    delete(&mut sandbox, "s");
    assert_refused_for_the_deleted_session(&mut sandbox, Target::Undo);
    let points = sandbox.workspace.store.points().unwrap();
    assert!(points.iter().all(|point| point.kind != PointKind::Safety), "{points:?}");
    let mut request = RewindRequest::new(Target::Point(manual));
    request.exactness = Exactness::Exact;
    assert!(sandbox.rewind(&request).unwrap().success);
    assert_eq!(sandbox.read("a.txt"), SECRET);
    assert!(sandbox.undo().success);
    assert_eq!(sandbox.read("a.txt"), "base\n");
}

#[test]
fn a_newer_rewind_of_another_session_can_still_be_undone() {
    let (mut sandbox, _, point) = session_writes("base\n", SECRET);
    sandbox.rewind_to(point);
    let point = turn(&mut sandbox, "t", "a.txt", "t's\n");
    sandbox.rewind_to(point);
    delete(&mut sandbox, "s");
    assert_gone(&sandbox, SECRET);
    assert!(sandbox.undo().success);
    assert_eq!(sandbox.read("a.txt"), "t's\n");
    assert_refused_for_the_deleted_session(&mut sandbox, Target::Undo);
}

#[test]
fn a_manual_revert_stays_the_users() {
    let mut sandbox = Sandbox::new();
    sandbox.write("a.txt", "base\n");
    manual_point(&mut sandbox);
    turn(&mut sandbox, "t", "a.txt", "t's\n");
    turn(&mut sandbox, "s", "a.txt", SECRET);
    sandbox.write("a.txt", "base\n");
    sandbox.prompt("t", "look");
    delete(&mut sandbox, "s");
    // As one change it would read as if the deleted session had taken back what t did.
    let history = history(&sandbox, "a.txt");
    let authors: Vec<&Author> = history.iter().rev().take(2).map(|change| &change.author).collect();
    assert_eq!(authors, [&Author::Human, &Author::Deleted], "{history:#?}");
}
