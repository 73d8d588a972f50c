//! Rewinds that a later rewind takes back, and work restored by hand.

use takeback_core::checkpoint;
use takeback_core::rewind::Exactness;
use takeback_core::rewind::{RewindRequest, Target};
use takeback_store::PointId;
use takeback_testkit::Sandbox;

use crate::text::report;

fn exact(point: PointId) -> RewindRequest {
    RewindRequest { exactness: Exactness::Exact, ..RewindRequest::new(Target::Point(point)) }
}

/// Records what a person has written.
fn look(sandbox: &mut Sandbox) -> PointId {
    checkpoint(&mut sandbox.workspace, None).unwrap().point.unwrap()
}

#[test]
fn an_undone_rewind_takes_back_nothing_of_others() {
    let mut sandbox = Sandbox::in_memory();
    sandbox.write("f", "1\n2\n3\n4\n5\n");
    let base = sandbox.prompt("s", "begin");
    sandbox.write("f", "1\n2\nmine\n4\n5\n");
    sandbox.agent_writes("s", "f", "one\n2\nmine\n4\n5\n");
    let point = sandbox.prompt("s", "next");
    sandbox.turn_end("s");
    sandbox.write("f", "one\n2\nmine\n4\nmine, too\n");
    assert!(sandbox.rewind(&exact(base)).unwrap().success);
    assert!(sandbox.undo().success);
    assert_eq!(report(&sandbox.rewind_to(point)), ["success", "kept f: changed by you"]);
    assert_eq!(sandbox.read("f"), "one\n2\nmine\n4\nmine, too\n");
    sandbox.agent_writes("s", "f", "one\ntwo\nmine\n4\nmine, too\n");
    sandbox.turn_end("s");
    assert_eq!(report(&sandbox.rewind_to(point)), ["success", "restored f"]);
    assert_eq!(sandbox.read("f"), "one\n2\nmine\n4\nmine, too\n");
}

#[test]
fn work_of_others_taken_back_by_two_rewinds_stays_taken_back() {
    let mut sandbox = Sandbox::in_memory();
    sandbox.write("f", "1\n2\n3\n4\n5\n");
    let start = look(&mut sandbox);
    sandbox.write("f", "1\n2\n3\n4\nmine\n");
    let base = look(&mut sandbox);
    sandbox.write("f", "1\n2\nfirst\n4\nmine\n");
    look(&mut sandbox);
    sandbox.write("f", "1\n2\nsecond\n4\nmine\n");
    sandbox.prompt("s", "begin");
    sandbox.agent_writes("s", "f", "one\n2\nsecond\n4\nmine\n");
    let point = sandbox.prompt("s", "next");
    sandbox.turn_end("s");
    assert!(sandbox.rewind(&exact(base)).unwrap().success);
    assert!(sandbox.rewind(&exact(start)).unwrap().success);
    assert_eq!(sandbox.read("f"), "1\n2\n3\n4\n5\n");
    assert_eq!(report(&sandbox.rewind_to(point)), ["success", "merged f"]);
    assert_eq!(sandbox.read("f"), "one\n2\n3\n4\n5\n");
}

#[test]
fn a_manual_return_that_stays_taken_back_restores_nothing() {
    let mut sandbox = Sandbox::in_memory();
    sandbox.write("f", "first\n");
    let base = sandbox.prompt("s", "begin");
    sandbox.agent_writes("s", "f", "second\n");
    let point = sandbox.prompt("s", "next");
    sandbox.agent_writes("s", "f", "third\n");
    sandbox.turn_end("s");
    sandbox.write("f", "second\n");
    assert!(sandbox.rewind(&exact(base)).unwrap().success);
    assert_eq!(report(&sandbox.rewind_to(point)), ["success", "restored f"]);
    assert_eq!(sandbox.read("f"), "second\n");
}

#[test]
fn agent_work_restored_by_a_user_is_taken_back_with_its_folders() {
    let mut sandbox = Sandbox::in_memory();
    sandbox.write("d/f", "before\n");
    let point = sandbox.prompt("s", "go");
    sandbox.agent_writes("s", "d/f", "after\n");
    sandbox.turn_end("s");
    assert!(sandbox.rewind_to(point).success);
    sandbox.write("d/f", "after\n");
    look(&mut sandbox);
    assert_eq!(report(&sandbox.rewind_to(point)), ["success", "restored d/f"]);
    assert_eq!(sandbox.read("d/f"), "before\n");
}

#[test]
fn a_possible_undo_of_another_sessions_work_is_unclear() {
    let mut sandbox = Sandbox::in_memory();
    sandbox.write("f", "before\n");
    let point = look(&mut sandbox);
    sandbox.agent_writes("s", "f", "one\n");
    sandbox.agent_writes("t", "f", "two\n");
    sandbox.before_shell("s", "git checkout f");
    sandbox.write("f", "before\n");
    sandbox.prompt("s", "next");
    let unclear = "ambiguous f: it is not certain who wrote it; --ambiguous take takes it back";
    assert_eq!(report(&sandbox.rewind_to(point)), ["not all", unclear]);
}
