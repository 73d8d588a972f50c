//! What is kept and for how long. The model test checks that kept points stay exact.

use std::fs;

use takeback_core::retention::{
    CleanUpError, CleanUpReport, Clock, ClockTrouble, Occasion, Policy, archive_session, clean_up,
    delete_session, is_due, would_drop,
};
use takeback_core::rewind::{AmbiguousPolicy, RewindError, RewindRequest, Target};
use takeback_core::{AgentEvent, CallTargets, Mark, MarkError, checkpoint, history, mark, record};
use takeback_store::{CallId, Change, Entry, PointId, PointKind, Seq, SessionId, Timestamp, Write};
use takeback_testkit::Sandbox;

fn clean(sandbox: &mut Sandbox, most: usize) -> CleanUpReport {
    let policy = Policy { points_per_session: most, ..Policy::default() };
    let done = clean_up(&mut sandbox.workspace, &policy, Occasion::OnDemand, Clock::Doubted);
    let done = done.expect("it cleans up");
    assert_eq!(sandbox.workspace.store.check().unwrap(), Vec::<String>::new());
    done
}

fn turn(sandbox: &mut Sandbox, session: &str, number: u32) -> PointId {
    let point = sandbox.prompt(session, &format!("turn {number}"));
    sandbox.agent_writes(session, &format!("{session}.txt"), format!("{number}\n").repeat(1000));
    sandbox.turn_end(session);
    point
}

fn descriptions(sandbox: &Sandbox) -> Vec<String> {
    let points = sandbox.workspace.store.points().unwrap();
    let listed = points.into_iter().filter(|point| point.kind != PointKind::Safety);
    listed.map(|point| point.label.unwrap_or(point.description)).collect()
}

#[test]
fn the_oldest_points_of_a_session_are_dropped() {
    let mut sandbox = Sandbox::new();
    sandbox.write("a.txt", "first\n");
    let points: Vec<PointId> = (1..=9).map(|number| turn(&mut sandbox, "long", number)).collect();
    turn(&mut sandbox, "short", 1);
    checkpoint(&mut sandbox.workspace, None).unwrap();

    let done = clean(&mut sandbox, 3);
    assert_eq!((done.points, done.sessions.len()), (6, 0));
    assert_eq!(descriptions(&sandbox), ["turn 7", "turn 8", "turn 9", "turn 1", ""]);
    assert!(done.changes >= 5, "{done:?}");
    assert_eq!(clean(&mut sandbox, 3), CleanUpReport::default(), "there is no more to do");

    // Every point that is listed is complete.
    let receipt = sandbox.rewind_to(points[6]);
    assert!(receipt.success, "{receipt:?}");
    assert!(sandbox.read("long.txt").starts_with("6\n"));
    let gone = sandbox.rewind(&RewindRequest::new(Target::Point(points[5])));
    assert!(matches!(gone, Err(RewindError::NoPoint(id)) if id == points[5]), "{gone:?}");
}

#[test]
fn labelled_and_pinned_points_stay_and_are_not_counted() {
    let mut sandbox = Sandbox::new();
    sandbox.write("a.txt", "first\n");
    let points: Vec<PointId> = (1..=6).map(|number| turn(&mut sandbox, "s", number)).collect();
    mark(&mut sandbox.workspace, points[0], Mark::Pin).unwrap();
    mark(&mut sandbox.workspace, points[2], Mark::Label("good")).unwrap();
    assert_eq!(clean(&mut sandbox, 2).points, 2);
    assert_eq!(descriptions(&sandbox), ["turn 1", "good", "turn 5", "turn 6"]);
    mark(&mut sandbox.workspace, points[0], Mark::NoPin).unwrap();
    mark(&mut sandbox.workspace, points[2], Mark::NoLabel).unwrap();
    assert_eq!(clean(&mut sandbox, 2).points, 2);
    assert_eq!(descriptions(&sandbox), ["turn 5", "turn 6"]);
}

#[test]
fn impossible_marks_are_refused() {
    let mut sandbox = Sandbox::new();
    sandbox.write("a.txt", "first\n");
    let one = turn(&mut sandbox, "s", 1);
    let two = turn(&mut sandbox, "s", 2);
    let safety = sandbox.rewind_to(two).safety_point.unwrap();
    let workspace = &mut sandbox.workspace;
    assert_eq!(mark(workspace, one, Mark::Label("good")).unwrap().label.as_deref(), Some("good"));
    mark(workspace, one, Mark::Label("good")).expect("it has that label already");
    let taken = mark(workspace, two, Mark::Label("good"));
    assert!(matches!(taken, Err(MarkError::LabelTaken { point, .. }) if point == one));
    for odd in ["", " ", "@~1", "a\nb"] {
        let refused = mark(workspace, two, Mark::Label(odd));
        assert!(matches!(refused, Err(MarkError::NotALabel { .. })), "{odd:?}: {refused:?}");
    }
    assert!(matches!(mark(workspace, safety, Mark::Pin), Err(MarkError::Safety(_))));
    assert!(matches!(mark(workspace, PointId(99), Mark::Pin), Err(MarkError::NoPoint(_))));
}

#[test]
fn an_archived_session_is_dropped_in_time_except_pinned_points() {
    let mut sandbox = Sandbox::new();
    sandbox.write("a.txt", "first\n");
    for number in 1..=3 {
        turn(&mut sandbox, "old", number);
    }
    let kept = turn(&mut sandbox, "other", 1);
    archive_session(&mut sandbox.workspace, &"old".into()).unwrap();
    sandbox.days_pass(6.9);
    assert_eq!(clean(&mut sandbox, 50).points, 0);
    sandbox.days_pass(0.2);
    let pinned = sandbox.workspace.store.points().unwrap()[1].id;
    mark(&mut sandbox.workspace, pinned, Mark::Pin).unwrap();
    let done = clean(&mut sandbox, 50);
    assert_eq!((done.points, done.sessions), (2, vec![]));
    assert_eq!(descriptions(&sandbox), ["turn 2", "turn 1"]);

    mark(&mut sandbox.workspace, pinned, Mark::NoPin).unwrap();
    let done = clean(&mut sandbox, 50);
    assert_eq!((done.points, done.sessions), (1, vec![SessionId::from("old")]));
    assert_eq!(sandbox.workspace.store.session(&"old".into()).unwrap(), None);
    let receipt = sandbox.rewind_to(kept);
    assert!(receipt.success && !sandbox.exists("other.txt"), "{receipt:?}");
    assert!(sandbox.read("old.txt").starts_with("3\n"));
}

#[test]
fn a_session_that_continues_is_not_archived() {
    let mut sandbox = Sandbox::new();
    turn(&mut sandbox, "s", 1);
    archive_session(&mut sandbox.workspace, &"s".into()).unwrap();
    let first = sandbox.workspace.store.session(&"s".into()).unwrap().unwrap().archived_at;
    archive_session(&mut sandbox.workspace, &"s".into()).unwrap();
    let again = sandbox.workspace.store.session(&"s".into()).unwrap().unwrap().archived_at;
    assert!(first.is_some() && first == again, "archiving it again does not prolong its time");
    turn(&mut sandbox, "s", 2);
    sandbox.days_pass(8.0);
    assert_eq!(clean(&mut sandbox, 50).points, 0);
    let unknown = archive_session(&mut sandbox.workspace, &"unknown".into());
    assert!(matches!(unknown, Err(CleanUpError::NoSession(_))));
}

#[test]
fn a_deleted_session_keeps_contents_that_others_need() {
    let mut sandbox = Sandbox::new();
    sandbox.write("a.txt", "first\n");
    let first = turn(&mut sandbox, "stays", 1);
    let pinned = turn(&mut sandbox, "deleted", 1);
    mark(&mut sandbox.workspace, pinned, Mark::Pin).unwrap();
    sandbox.agent_writes("deleted", "made.txt", "made\n");
    sandbox.agent_writes("deleted", "stays.txt", "overwritten\n");
    sandbox.turn_end("deleted");
    let done = delete_session(&mut sandbox.workspace, &"deleted".into()).unwrap();
    assert_eq!((done.points, done.sessions.len()), (1, 1), "pinned or not");
    let store = &*sandbox.workspace.store;
    assert_eq!(history::file_checkpoints(store, &"deleted".into()).unwrap(), []);

    // Its change is newer than the other session's: taking that back must not lose it.
    let receipt = sandbox.rewind_to(first);
    assert_eq!(receipt.conflicts.len(), 1, "{receipt:?}");
    assert!(sandbox.exists("made.txt"));
    let again = delete_session(&mut sandbox.workspace, &"deleted".into());
    assert!(matches!(again, Err(CleanUpError::NoSession(_))));
}

#[test]
fn a_rewind_can_be_undone_while_a_neighbouring_point_is_kept() {
    let mut sandbox = Sandbox::new();
    sandbox.write("a.txt", "first\n");
    let one = turn(&mut sandbox, "s", 1);
    sandbox.rewind_to(one);
    turn(&mut sandbox, "s", 2);
    turn(&mut sandbox, "s", 3);
    clean(&mut sandbox, 2);
    let undone = sandbox
        .rewind(&RewindRequest::new(Target::Undo))
        .expect("the point of turn 2 is next to it");
    assert!(undone.rewind.is_none() || undone.success, "{undone:?}");
    turn(&mut sandbox, "s", 4);
    clean(&mut sandbox, 1);
    let gone = sandbox.rewind(&RewindRequest::new(Target::Undo));
    assert!(matches!(gone, Err(RewindError::NothingToUndo)), "{gone:?}");
}

#[test]
fn a_clock_that_went_back_or_jumped_stops_the_clean_up() {
    let mut sandbox = Sandbox::new();
    let last = |sandbox: &Sandbox| sandbox.workspace.store.last_cleanup().unwrap();
    for number in 1..=4 {
        turn(&mut sandbox, "s", number);
    }
    sandbox.days_pass(-1.0);
    let done = clean(&mut sandbox, 1);
    assert!(matches!(done.stopped, Some(ClockTrouble::WentBack { .. })), "{done:?}");
    assert_eq!((descriptions(&sandbox).len(), last(&sandbox)), (4, None));
    sandbox.days_pass(1.0);
    assert_eq!(clean(&mut sandbox, 3).points, 1);
    let believed = last(&sandbox);

    sandbox.days_pass(31.0);
    let done = clean(&mut sandbox, 1);
    let Some(ClockTrouble::Jumped { last: before, now }) = done.stopped else {
        panic!("it did not stop: {done:?}");
    };
    assert!(now.0 - before.0 > 30 * 86_400_000);
    assert_eq!((descriptions(&sandbox).len(), last(&sandbox)), (3, believed));

    // Events under that clock do not make it trustworthy.
    turn(&mut sandbox, "s", 5);
    sandbox.days_pass(1.0);
    let done = clean(&mut sandbox, 1);
    assert!(matches!(done.stopped, Some(ClockTrouble::Jumped { .. })), "{done:?}");
    let policy = Policy { points_per_session: 1, ..Policy::default() };
    let would = would_drop(&sandbox.workspace, &policy, Clock::Doubted).unwrap();
    assert!(would.stopped.is_some() && would.points.is_empty(), "{would:?}");
    let done = clean_up(&mut sandbox.workspace, &policy, Occasion::OnDemand, Clock::Trusted);
    assert_eq!(done.unwrap().points, 3);
    sandbox.days_pass(1.0);
    assert_eq!(clean(&mut sandbox, 1).stopped, None, "the clock was confirmed");
}

#[test]
fn a_clock_is_trusted_while_events_keep_coming() {
    let mut sandbox = Sandbox::new();
    turn(&mut sandbox, "s", 0);
    clean(&mut sandbox, 50);
    for number in 1..=5 {
        sandbox.days_pass(20.0);
        turn(&mut sandbox, "s", number);
    }
    assert_eq!(clean(&mut sandbox, 2).points, 4);
}

#[test]
fn a_clean_up_is_due_once_a_day() {
    let mut sandbox = Sandbox::new();
    turn(&mut sandbox, "s", 1);
    assert!(is_due(&sandbox.workspace).unwrap());
    let policy = Policy::default();
    let done = clean_up(&mut sandbox.workspace, &policy, Occasion::AtStart, Clock::Doubted);
    assert_eq!(done.unwrap(), CleanUpReport::default());
    assert!(!is_due(&sandbox.workspace).unwrap());
    sandbox.days_pass(0.9);
    assert!(!is_due(&sandbox.workspace).unwrap());
    sandbox.days_pass(0.2);
    assert!(is_due(&sandbox.workspace).unwrap());
}

#[test]
fn disk_space_is_reclaimed_and_prompts_are_erased() {
    let mut sandbox = Sandbox::new();
    let noise = |seed: u64| {
        let mut bytes = vec![0; 1 << 20];
        blake3::Hasher::new().update(&seed.to_le_bytes()).finalize_xof().fill(&mut bytes);
        bytes
    };
    for number in 0..20 {
        sandbox.prompt("s", &format!("secret prompt {number}"));
        sandbox.agent_writes("s", "large.bin", noise(number));
        sandbox.turn_end("s");
    }
    let full = sandbox.workspace.store.usage().unwrap();
    let done = clean(&mut sandbox, 2);
    let left = sandbox.workspace.store.usage().unwrap();
    assert_eq!(left.blobs, 3, "two points back and now");
    assert!(done.freed > 16 << 20 && full.packs - left.packs > 16 << 20, "{done:?} {left:?}");
    let folder = sandbox.outside().join("store");
    let database = std::fs::read(folder.join("timeline.db")).unwrap();
    let has = |text: &str| database.windows(text.len()).any(|bytes| bytes == text.as_bytes());
    assert!(has("secret prompt 19") && !has("secret prompt 3"), "what is deleted is overwritten");
}

#[test]
fn a_clean_up_waits_for_recorders() {
    let mut sandbox = Sandbox::new();
    for number in 1..=3 {
        turn(&mut sandbox, "s", number);
    }
    let lock = takeback_core::lock::lock(
        &sandbox.outside().join("store/lock"),
        takeback_core::lock::Hold::Shared,
        std::time::Duration::ZERO,
    );
    let lock = lock.unwrap().expect("the lock is free");
    sandbox.workspace.limits.rewind_patience = std::time::Duration::from_millis(20);
    let policy = Policy { points_per_session: 1, ..Policy::default() };
    let held = clean_up(&mut sandbox.workspace, &policy, Occasion::OnDemand, Clock::Doubted);
    assert!(matches!(held, Err(CleanUpError::Locked)), "{held:?}");
    assert_eq!(descriptions(&sandbox).len(), 3);
    drop(lock);
    assert_eq!(clean(&mut sandbox, 1).points, 2);
    assert!(sandbox.workspace.store.last_cleanup().unwrap() > Some(Timestamp(0)));
}

#[test]
fn an_undone_rewind_is_dropped_with_its_undo() {
    let mut sandbox = Sandbox::new();
    let first = sandbox.prompt("s", "turn 1");
    sandbox.agent_writes("s", "once.txt", "once\n");
    mark(&mut sandbox.workspace, first, Mark::Pin).unwrap();
    sandbox.rewind_to(first);
    turn(&mut sandbox, "s", 2);
    assert!(sandbox.undo().rewind.is_some());
    turn(&mut sandbox, "s", 3);
    turn(&mut sandbox, "s", 4);
    clean(&mut sandbox, 1);
    // Nothing records any more that the rewind next to the pinned point was undone.
    let points = sandbox.workspace.store.points().unwrap();
    assert!(points.iter().all(|point| point.kind != PointKind::Safety), "{points:?}");
    let gone = sandbox.rewind(&RewindRequest::new(Target::Undo));
    assert!(matches!(gone, Err(RewindError::NothingToUndo)), "{gone:?}");
}

/// Contents are dropped and stored again while recorders rely on them: the same few texts are written
/// again and again.
#[test]
fn recorders_continue_during_a_clean_up() {
    const RECORDERS: usize = 3;
    const TURNS: usize = 60;
    let mut sandbox = Sandbox::new();
    sandbox.write("shared.txt", "start\n");
    sandbox.prompt("s", "go");
    let working = std::sync::atomic::AtomicUsize::new(RECORDERS);
    std::thread::scope(|scope| {
        for number in 0..RECORDERS {
            let (mut workspace, root) = (sandbox.another_process(), sandbox.root());
            workspace.limits.recorder_patience = std::time::Duration::from_secs(30);
            let working = &working;
            scope.spawn(move || {
                let session = SessionId(format!("s{number}"));
                let mut tell = |event: &AgentEvent| {
                    record(&mut workspace, event).expect("it is recorded");
                };
                for turn in 0..TURNS {
                    let text = format!("turn {turn}");
                    tell(&AgentEvent::Prompt {
                        session: session.clone(),
                        message: None,
                        text,
                        model: None,
                    });
                    let call = CallId(format!("{turn}"));
                    let touches = CallTargets::anything(None);
                    let tool = "Bash".to_owned();
                    let begun =
                        AgentEvent::BeforeTool { session: session.clone(), call, tool, touches };
                    tell(&begun);
                    // A text that was there some turns ago, and may just be going.
                    let text = format!("{number} {}\n", turn % 3).repeat(2000);
                    fs::write(root.join(format!("own-{number}.txt")), text).unwrap();
                    tell(&AgentEvent::TurnEnd { session: session.clone(), model: None });
                }
                working.fetch_sub(1, std::sync::atomic::Ordering::Relaxed);
            });
        }
        let mut workspace = sandbox.another_process();
        workspace.limits.rewind_patience = std::time::Duration::from_secs(30);
        let working = &working;
        scope.spawn(move || {
            let policy = Policy { points_per_session: 1, ..Policy::default() };
            let mut gone = 0;
            while working.load(std::sync::atomic::Ordering::Relaxed) > 0 {
                let done = clean_up(&mut workspace, &policy, Occasion::OnDemand, Clock::Doubted);
                gone += done.expect("it cleans up").points;
            }
            assert!(gone > 0, "it did something meanwhile");
        });
    });
    let store = &*sandbox.workspace.store;
    assert_eq!(store.check().unwrap(), Vec::<String>::new());
    let latest = store.latest().unwrap();
    for (path, entry) in latest {
        if let Some(digest) = entry.digest() {
            let on_disk = fs::read(sandbox.at(&path.display())).unwrap();
            assert_eq!(store.contents(&digest).unwrap(), on_disk, "{}", path.display());
        }
    }
    let seen = takeback_core::look_around(&mut sandbox.workspace).unwrap();
    assert_eq!(seen.recorded.changes, 0, "the log matches the disk");
}

#[test]
fn an_undo_never_skips_a_dropped_rewind() {
    let mut sandbox = Sandbox::new();
    let pinned = sandbox.prompt("s", "pinned");
    sandbox.agent_writes("s", "old.txt", "old\n");
    mark(&mut sandbox.workspace, pinned, Mark::Pin).unwrap();
    assert!(sandbox.rewind_to(pinned).rewind.is_some());
    turn(&mut sandbox, "s", 1);
    let second = turn(&mut sandbox, "s", 2);
    assert!(sandbox.rewind_to(second).rewind.is_some());
    turn(&mut sandbox, "s", 3);
    turn(&mut sandbox, "s", 4);
    clean(&mut sandbox, 1);
    let undone = sandbox.rewind(&RewindRequest::new(Target::Undo));
    assert!(matches!(undone, Err(RewindError::NothingToUndo)), "{undone:?}");
    assert!(!sandbox.exists("old.txt"));
}

#[test]
fn a_stopped_clean_up_is_finished_at_the_next_start() {
    let mut sandbox = Sandbox::new();
    for number in 1..=4 {
        turn(&mut sandbox, "s", number);
    }
    // The state after a clean-up that was stopped after its first commit.
    let gone = sandbox.workspace.store.points().unwrap()[0].id;
    let changes = sandbox.workspace.store.changes_after(Seq(0)).unwrap();
    let head = sandbox.workspace.store.head().unwrap();
    let writes = [Write::DropPoint(gone), Write::DropChange(changes[0].seq)];
    sandbox.workspace.store.commit(head, &writes).unwrap();
    let lost = changes[1].before.digest().expect("a file");
    let store = &mut sandbox.workspace.store;
    let head = store.head().unwrap();
    let first = Change { before: Entry::Unknown, ..changes[1].clone() };
    store.commit(head, &[Write::ReplaceChange(first)]).unwrap();
    assert!(sandbox.workspace.store.has(&lost).unwrap());
    let policy = Policy::default();
    clean_up(&mut sandbox.workspace, &policy, Occasion::AtStart, Clock::Doubted).unwrap();
    assert!(!sandbox.workspace.store.has(&lost).unwrap());
}

#[test]
fn runs_of_commands_are_counted_together() {
    let mut sandbox = Sandbox::new();
    for number in 0..8_u32 {
        let session = SessionId::of_run(number).0;
        turn(&mut sandbox, &session, number);
        sandbox.session_end(&session);
    }
    turn(&mut sandbox, "s", 9);
    let done = clean(&mut sandbox, 3);
    assert_eq!((done.points, done.sessions.len()), (5, 5), "{done:?}");
    assert_eq!(descriptions(&sandbox), ["turn 5", "turn 6", "turn 7", "turn 9"]);
    assert_eq!(sandbox.workspace.store.sessions().unwrap().len(), 4);
}

#[test]
fn an_unfinished_index_is_removed() {
    let mut sandbox = Sandbox::new();
    turn(&mut sandbox, "s", 1);
    let store = sandbox.outside().join("store");
    fs::write(store.join("index.12345.new"), "half an index").unwrap();
    clean(&mut sandbox, 1);
    let left: Vec<_> = fs::read_dir(store).unwrap().map(|file| file.unwrap().file_name()).collect();
    assert!(left.iter().all(|name| !name.to_str().unwrap().ends_with(".new")), "{left:?}");
}

#[test]
fn edits_after_a_session_was_archived_are_the_users() {
    let mut sandbox = Sandbox::new();
    sandbox.write("a.txt", "first\n");
    let point = sandbox.prompt("s", "go");
    // The agent dies in the middle of a command, without an event.
    sandbox.before_shell("s", "make");
    sandbox.write("made.txt", "made\n");
    archive_session(&mut sandbox.workspace, &"s".into()).unwrap();
    assert!(sandbox.workspace.store.live_calls().unwrap().is_empty());
    let session = sandbox.workspace.store.session(&"s".into()).unwrap().unwrap();
    assert!(session.open_turn.is_none() && session.ended_at.is_some());
    sandbox.write("mine.txt", "mine\n");
    let request = RewindRequest {
        ambiguous: AmbiguousPolicy::Take,
        ..RewindRequest::new(Target::Point(point))
    };
    let receipt = sandbox.rewind(&request).unwrap();
    assert!(receipt.success && sandbox.exists("mine.txt"), "{receipt:?}");
    assert!(!sandbox.exists("made.txt"));
}
