//! Snapshots, captures of edits, and late and queued events, stopped anywhere. Recording never touches
//! the tree.

use std::time::Duration;

use takeback_core::lock::{Hold, lock};
use takeback_core::{
    Admission, AgentEvent, CallTargets, Inbox, InboxEvent, Outcome, checkpoint, record,
    record_or_queue, record_queued,
};
use takeback_store::disk::CrashPoint;
use takeback_store::{CallId, SessionId};
use takeback_testkit::{Sandbox, SandboxImage};

use crate::{
    Abilities, PointTree, after_a_crash, assert_intact, assert_nothing_left_behind, assert_same,
    at_every_stop, go_exactly_to, points_of, stopped,
};

pub(crate) fn all_points() -> Vec<CrashPoint> {
    let mut points = Vec::new();
    let mut sandbox = without_a_store();
    points.extend(points_of(|| first_snapshot(&mut sandbox)));
    let (frozen, _) = in_a_turn();
    let mut sandbox = frozen.thaw();
    points.extend(points_of(|| edit(&mut sandbox)));
    points.extend(points_of(|| push(&mut sandbox)));
    points.extend(points_of(|| drain(&mut sandbox)));
    points.extend(points_of(|| queue(&mut sandbox)));
    points
}

/// A workspace without a store.
fn without_a_store() -> Sandbox {
    let sandbox = Sandbox::new();
    sandbox.write("a.txt", "one\n");
    sandbox.write("lib/b.txt", "b\n");
    sandbox.write("lib/large.bin", vec![7; 300_000]);
    std::fs::remove_dir_all(store_dir(&sandbox)).unwrap();
    sandbox
}

fn store_dir(sandbox: &Sandbox) -> std::path::PathBuf {
    sandbox.outside().join("store")
}

fn first_snapshot(sandbox: &mut Sandbox) {
    sandbox.reopen();
    checkpoint(&mut sandbox.workspace, Some("first")).unwrap();
}

/// A workspace without a store, with this many incompressible files of 3 MiB.
fn with_large_files(number: u64) -> Sandbox {
    let sandbox = without_a_store();
    let mut state = 1_u64;
    for n in 0..number {
        let mut bytes = Vec::new();
        while bytes.len() < 3 << 20 {
            state = state.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1);
            bytes.extend((state ^ (state >> 33)).to_le_bytes());
        }
        sandbox.write(&format!("{n}.bin"), bytes);
    }
    sandbox
}

#[test]
fn a_second_first_snapshot_reuses_stored_contents() {
    const FILES: u64 = 13;
    /// Every 32 MiB are saved.
    const SAVED: u64 = 11;
    let mut sandbox = with_large_files(FILES);
    let points = points_of(|| first_snapshot(&mut sandbox));
    let last = points.iter().rposition(|point| *point == CrashPoint::Commit).unwrap() as u64 + 1;
    let mut sandbox = with_large_files(FILES);
    assert_eq!(stopped(last, || first_snapshot(&mut sandbox)), Some(CrashPoint::Commit));
    sandbox.reopen();
    let usage = sandbox.workspace.store.usage().unwrap();
    assert!((usage.changes, usage.blobs >= SAVED) == (0, true), "{usage:?}");
    first_snapshot(&mut sandbox);
    let again = sandbox.workspace.store.usage().unwrap();
    let grown = again.packs - usage.packs;
    assert!(grown < (FILES - SAVED + 1) << 20 << 2, "{usage:?}, then {again:?}");
    assert_eq!(sandbox.workspace.store.check().unwrap(), Vec::<String>::new());
}

#[test]
fn a_first_snapshot_is_complete_or_absent() {
    let stops = at_every_stop(|stop| {
        let mut sandbox = without_a_store();
        let before = sandbox.tree();
        stop.run(|| first_snapshot(&mut sandbox));
        assert_same(&sandbox.tree(), &before);
        assert_nothing_left_behind(&sandbox);

        sandbox.reopen();
        let points = sandbox.workspace.store.points().unwrap();
        let point = match points.as_slice() {
            [] => checkpoint(&mut sandbox.workspace, None).unwrap().point.unwrap(),
            [point] => point.id,
            more => panic!("{more:?}"),
        };
        let listed = PointTree { point, tree: before };
        assert_intact(&sandbox, std::slice::from_ref(&listed));
        sandbox.write("a.txt", "two\n");
        sandbox.remove("lib");
        go_exactly_to(&mut sandbox, point);
        assert_same(&sandbox.tree(), &listed.tree);
    });
    assert!(stops > 10, "only {stops} points passed");
}

#[test]
fn a_later_snapshot_leaves_every_point_intact() {
    let mut sandbox = Sandbox::new();
    sandbox.write("a.txt", "one\n");
    sandbox.write("lib/b.txt", "b\n");
    let point = checkpoint(&mut sandbox.workspace, None).unwrap().point.unwrap();
    let first = PointTree { point, tree: sandbox.tree() };
    sandbox.write("a.txt", "two\n");
    sandbox.write("c.txt", "c\n");
    sandbox.remove("lib");
    let before = sandbox.tree();
    let frozen = sandbox.freeze();
    let stops = at_every_stop(|stop| {
        let mut sandbox = frozen.thaw();
        stop.run(|| {
            checkpoint(&mut sandbox.workspace, None).unwrap();
        });
        assert_same(&sandbox.tree(), &before);
        after_a_crash(&mut sandbox, Abilities::All);
        assert_intact(&sandbox, std::slice::from_ref(&first));
        let point = checkpoint(&mut sandbox.workspace, None).unwrap().point.unwrap();
        let second = PointTree { point, tree: before.clone() };
        assert_intact(&sandbox, &[first.clone(), second.clone()]);
        for listed in [&first, &second, &first] {
            go_exactly_to(&mut sandbox, listed.point);
            assert_same(&sandbox.tree(), &listed.tree);
        }
    });
    assert!(stops > 4, "only {stops} points passed");
}

/// A turn is open; a user has changed `a.txt` since the last look.
fn in_a_turn() -> (SandboxImage, PointTree) {
    let mut sandbox = Sandbox::new();
    sandbox.write("a.txt", "one\n");
    let point = sandbox.prompt("s", "do it");
    let listed = PointTree { point, tree: sandbox.tree() };
    sandbox.write("a.txt", "a person was here\n");
    (sandbox.freeze(), listed)
}

fn before_tool(call: &str, path: &str) -> AgentEvent {
    AgentEvent::BeforeTool {
        session: SessionId::from("s"),
        call: CallId::from(call),
        tool: "Edit".to_owned(),
        touches: CallTargets::Paths(vec![path.into()]),
    }
}

fn after_tool(call: &str) -> AgentEvent {
    let (session, call) = (SessionId::from("s"), CallId::from(call));
    AgentEvent::AfterTool {
        session,
        call,
        outcome: Outcome::Done,
        report: takeback_core::CallReport::default(),
    }
}

fn edit(sandbox: &mut Sandbox) {
    sandbox.tell(&before_tool("edit", "a.txt"));
    sandbox.write("a.txt", "the agent's\n");
    sandbox.tell(&after_tool("edit"));
}

#[test]
fn a_stopped_capture_before_an_edit_can_be_repeated() {
    let (frozen, listed) = in_a_turn();
    let stops = at_every_stop(|stop| {
        let mut sandbox = frozen.thaw();
        let tree = sandbox.tree();
        stop.run(|| {
            sandbox.tell(&before_tool("edit", "a.txt"));
        });
        assert_same(&sandbox.tree(), &tree);
        after_a_crash(&mut sandbox, Abilities::All);
        assert_intact(&sandbox, std::slice::from_ref(&listed));
        // The agent gets no answer and repeats the event.
        edit(&mut sandbox);
        sandbox.turn_end("s");
        assert_intact(&sandbox, std::slice::from_ref(&listed));
        let receipt = sandbox.rewind_to(listed.point);
        assert!(receipt.success, "{receipt:?}");
        assert_eq!(sandbox.read("a.txt"), "a person was here\n");
        sandbox.undo();
        assert_eq!(sandbox.read("a.txt"), "the agent's\n");
        go_exactly_to(&mut sandbox, listed.point);
        assert_same(&sandbox.tree(), &listed.tree);
    });
    assert!(stops > 4, "only {stops} points passed");
}

#[test]
fn a_stopped_look_after_an_edit_loses_nothing() {
    let (frozen, listed) = in_a_turn();
    let stops = at_every_stop(|stop| {
        let mut sandbox = frozen.thaw();
        sandbox.tell(&before_tool("edit", "a.txt"));
        sandbox.write("a.txt", "the agent's\n");
        let tree = sandbox.tree();
        stop.run(|| {
            sandbox.tell(&after_tool("edit"));
        });
        assert_same(&sandbox.tree(), &tree);
        after_a_crash(&mut sandbox, Abilities::All);
        assert_intact(&sandbox, std::slice::from_ref(&listed));
        // The agent continues without an answer.
        sandbox.turn_end("s");
        let receipt = sandbox.rewind_to(listed.point);
        assert!(receipt.success, "{receipt:?}");
        assert_eq!(sandbox.read("a.txt"), "a person was here\n");
        sandbox.undo();
        assert_same(&sandbox.tree(), &tree);
    });
    assert!(stops > 3, "only {stops} points passed");
}

/// An event during a rewind.
fn push(sandbox: &mut Sandbox) {
    let alone = lock(&store_dir(sandbox).join("lock"), Hold::Exclusive, Duration::ZERO);
    let _alone = alone.unwrap().expect("the lock is free");
    sandbox.workspace.limits.recorder_patience = Duration::ZERO;
    assert!(sandbox.tell(&before_tool("late", "a.txt")).late);
}

fn drain(sandbox: &mut Sandbox) {
    record(&mut sandbox.workspace, &after_tool("late")).unwrap();
}

/// A prompt that is answered before the tree is scanned.
fn queue(sandbox: &mut Sandbox) {
    let (session, text) = (SessionId::from("s"), "queued".to_owned());
    let event = AgentEvent::Prompt { session, message: None, text, model: None };
    match record_or_queue(&mut sandbox.workspace, &event, 0).unwrap() {
        Admission::Queued(queued) => record_queued(&mut sandbox.workspace, queued).unwrap(),
        Admission::Recorded(recorded) => panic!("{recorded:?}"),
    };
}

fn assert_nothing_waits(sandbox: &Sandbox) {
    assert_eq!(Inbox::of(&store_dir(sandbox)).len().unwrap(), 0);
    let left = std::fs::read_dir(store_dir(sandbox).join("inbox"));
    assert_eq!(left.map_or(0, Iterator::count), 0);
}

const WAITING: [&str; 3] = ["first", "second", "third"];

/// Prompts during a rewind.
fn push_prompts(sandbox: &mut Sandbox) {
    let alone = lock(&store_dir(sandbox).join("lock"), Hold::Exclusive, Duration::ZERO);
    let _alone = alone.unwrap().expect("the lock is free");
    sandbox.workspace.limits.recorder_patience = Duration::ZERO;
    for text in WAITING {
        let (session, text) = (SessionId::from("s"), text.to_owned());
        assert!(
            sandbox.tell(&AgentEvent::Prompt { session, message: None, text, model: None }).late
        );
    }
}

fn prompts(sandbox: &Sandbox) -> Vec<String> {
    let points = sandbox.workspace.store.points().unwrap();
    points.into_iter().map(|point| point.description).filter(|text| text != "do it").collect()
}

#[test]
fn waiting_events_are_recorded_once_and_in_order() {
    let (frozen, listed) = in_a_turn();
    let mut sandbox = frozen.thaw();
    push_prompts(&mut sandbox);
    let frozen = sandbox.freeze();
    let stops = at_every_stop(|stop| {
        let mut sandbox = frozen.thaw();
        stop.run(|| drain(&mut sandbox));
        after_a_crash(&mut sandbox, Abilities::All);
        assert_eq!(prompts(&sandbox), WAITING);
        assert_nothing_waits(&sandbox);
        assert_intact(&sandbox, std::slice::from_ref(&listed));
    });
    assert!(stops > 10, "only {stops} points passed");
}

#[test]
fn events_left_by_a_stopped_drain_come_before_later_ones() {
    let (frozen, listed) = in_a_turn();
    let mut sandbox = frozen.thaw();
    push_prompts(&mut sandbox);
    let frozen = sandbox.freeze();
    at_every_stop(|stop| {
        let mut sandbox = frozen.thaw();
        stop.run(|| drain(&mut sandbox));
        sandbox.reopen();
        let (session, text) = (SessionId::from("s"), "later".to_owned());
        let event = AgentEvent::Prompt { session, message: None, text, model: None };
        let time = takeback_store::Timestamp(i64::MAX);
        Inbox::of(&store_dir(&sandbox)).push(InboxEvent { time, event }).unwrap();
        after_a_crash(&mut sandbox, Abilities::All);
        assert_eq!(prompts(&sandbox), ["first", "second", "third", "later"], "{stop:?}");
        assert_intact(&sandbox, std::slice::from_ref(&listed));
    });
}

#[test]
fn a_late_event_leaves_every_point_intact() {
    let (frozen, listed) = in_a_turn();
    let stops = at_every_stop(|stop| {
        let mut sandbox = frozen.thaw();
        stop.run(|| {
            push(&mut sandbox);
            drain(&mut sandbox);
        });
        after_a_crash(&mut sandbox, Abilities::All);
        assert_intact(&sandbox, std::slice::from_ref(&listed));
        assert_nothing_waits(&sandbox);
        edit(&mut sandbox);
        go_exactly_to(&mut sandbox, listed.point);
        assert_same(&sandbox.tree(), &listed.tree);
    });
    assert!(stops > 5, "only {stops} points passed");
}

#[test]
fn a_queued_event_is_recorded_once_or_not_at_all() {
    let (frozen, listed) = in_a_turn();
    let mut last = 0;
    let stops = at_every_stop(|stop| {
        let mut sandbox = frozen.thaw();
        sandbox.write("a.txt", "mine\n");
        stop.run(|| queue(&mut sandbox));
        after_a_crash(&mut sandbox, Abilities::All);
        let found = prompts(&sandbox);
        assert!(
            found.iter().all(|text| text == "queued") && found.len() <= 1,
            "{stop:?}: {found:?}"
        );
        assert!(found.len() >= last, "{stop:?}: once it is kept, it is never lost");
        last = found.len();
        assert_intact(&sandbox, std::slice::from_ref(&listed));
        assert_nothing_waits(&sandbox);
    });
    assert!(stops > 8 && last == 1, "only {stops} points passed");
}
