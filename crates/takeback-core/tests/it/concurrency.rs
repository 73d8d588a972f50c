//! Concurrent calls of one session, and events that are reported twice.

use std::fs;
use std::sync::{Mutex, mpsc};
use std::thread;
use std::time::Duration;

use takeback_core::{AgentEvent, CallTargets, InboxEvent, look_around, record};
use takeback_store::{Author, CallId, CallState, Entry, PointKind, SessionId, Timestamp};
use takeback_testkit::Sandbox;

use crate::events::{after, edit, prompt};
use crate::text::{assert_consistent, authors, log};

fn two_files() -> Sandbox {
    let mut sandbox = Sandbox::new();
    sandbox.write("a.txt", "before\n");
    sandbox.write("b.txt", "before\n");
    sandbox.prompt("s", "go");
    sandbox
}

fn state_of(sandbox: &Sandbox, call: &str) -> CallState {
    let call = sandbox.workspace.store.call(&"s".into(), &CallId::from(call)).unwrap();
    call.expect("it is known").state
}

#[test]
fn an_overtaken_command_can_still_write() {
    let mut sandbox = two_files();
    let one = sandbox.before_shell("s", "make");
    let two = sandbox.before_shell("s", "ls");
    sandbox.after("s", &two);
    assert_eq!(state_of(&sandbox, &one), CallState::Overtaken);
    sandbox.write("a.txt", "by the first\n");
    look_around(&mut sandbox.workspace).unwrap();
    sandbox.write("b.txt", "by the first\n");
    assert_eq!(authors(&sandbox, "a.txt"), ["s call-1 Bash open window"]);
    sandbox.after("s", &one);
    assert_eq!(authors(&sandbox, "a.txt"), ["s call-1 Bash window"], "its end is known now");
    assert_eq!(authors(&sandbox, "b.txt"), ["s call-1 Bash window"]);
    assert_eq!(state_of(&sandbox, &one), CallState::Done);
    sandbox.write("a.txt", "mine\n");
    sandbox.turn_end("s");
    assert_eq!(authors(&sandbox, "a.txt"), ["s call-1 Bash window", "human"]);
}

#[test]
fn an_open_call_wins_over_an_overtaken_one() {
    let mut sandbox = two_files();
    sandbox.before_shell("s", "make");
    sandbox.before_shell("s", "make more");
    sandbox.write("a.txt", "by one of them\n");
    look_around(&mut sandbox.workspace).unwrap();
    assert_eq!(authors(&sandbox, "a.txt"), ["s call-2 Bash open window"]);
}

#[test]
fn concurrent_edits_have_their_own_authors_whichever_ends_first() {
    for first in [0, 1] {
        let mut sandbox = two_files();
        let edits = [sandbox.before_edit("s", &["a.txt"]), sandbox.before_edit("s", &["b.txt"])];
        sandbox.write("a.txt", "after\n");
        sandbox.write("b.txt", "after\n");
        // One more begins meanwhile.
        let third = sandbox.before_edit("s", &["c.txt"]);
        sandbox.after("s", &edits[first]);
        sandbox.after("s", &edits[1 - first]);
        sandbox.write("c.txt", "made\n");
        sandbox.after("s", &third);
        sandbox.turn_end("s");
        assert_eq!(authors(&sandbox, "a.txt"), ["s call-1 Edit named"]);
        assert_eq!(authors(&sandbox, "b.txt"), ["s call-2 Edit named"]);
        assert_eq!(authors(&sandbox, "c.txt"), ["s call-3 Edit named"]);
        let states = [&*edits[0], &*edits[1], &*third].map(|call| state_of(&sandbox, call));
        assert_eq!(states, [CallState::Done; 3]);
    }
}

#[test]
fn a_call_without_an_end_is_over_with_the_turn() {
    let mut sandbox = two_files();
    let lost = sandbox.before_shell("s", "make");
    sandbox.write("a.txt", "by the lost one\n");
    let next = sandbox.before_shell("s", "ls");
    sandbox.after("s", &next);
    assert_eq!(state_of(&sandbox, &lost), CallState::Overtaken);
    sandbox.turn_end("s");
    assert_eq!(state_of(&sandbox, &lost), CallState::CutOff);
    sandbox.write("b.txt", "mine\n");
    sandbox.prompt("s", "go on");
    assert_eq!(authors(&sandbox, "a.txt"), ["s call-1 Bash open window"]);
    assert_eq!(authors(&sandbox, "b.txt"), ["human"]);
    assert_eq!(sandbox.workspace.store.live_calls().unwrap(), []);
}

#[test]
fn work_of_overtaken_calls_is_found_at_their_end() {
    type End = fn(&mut Sandbox);
    let ends: [(&str, End); 4] = [
        ("a prompt", |sandbox| {
            sandbox.prompt("s", "stop");
        }),
        ("a new start", |sandbox| sandbox.start("s")),
        ("the end of the turn", |sandbox| sandbox.turn_end("s")),
        ("the end of the session", |sandbox| sandbox.session_end("s")),
    ];
    for (end, send) in ends {
        let mut sandbox = Sandbox::in_memory();
        sandbox.write(".gitignore", "ignored/\n");
        sandbox.write("ignored/in.txt", "before\n");
        sandbox.write("a.txt", "before\n");
        sandbox.prompt("s", "go");
        let edit = sandbox.before_edit("s", &["ignored/in.txt"]);
        let shell = sandbox.before_shell("s", "make");
        let next = sandbox.before_edit("s", &["b.txt"]);
        sandbox.after("s", &next);
        sandbox.write("ignored/in.txt", "after\n");
        sandbox.write("a.txt", "after\n");
        send(&mut sandbox);
        let is_regular = end.starts_with("the end");
        let named = if is_regular { "s call-1 Edit named" } else { "s call-1 Edit open window" };
        assert_eq!(authors(&sandbox, "ignored/in.txt"), [named], "after {end}");
        assert_eq!(authors(&sandbox, "a.txt"), ["s call-2 Bash open window"], "after {end}");
        for call in [&edit, &shell] {
            assert_eq!(state_of(&sandbox, call), CallState::CutOff, "{end}");
        }
    }
}

/// Reports the end of `call` in one process while `meanwhile` runs in another, after the first has
/// looked and before it commits.
fn ends_while(sandbox: &mut Sandbox, call: &str, meanwhile: impl FnOnce(&mut Sandbox)) {
    let mut slow = sandbox.another_process();
    let (looked, wait_for_look) = mpsc::channel();
    let (go_on, wait_for_others) = mpsc::channel::<()>();
    let random = std::mem::replace(&mut slow.ambient.random, Box::new(|| 0));
    let once = Mutex::new(Some((looked, wait_for_others)));
    slow.ambient.random = Box::new(move || {
        if let Some((looked, wait)) = once.lock().unwrap().take() {
            looked.send(()).unwrap();
            wait.recv().unwrap();
        }
        random()
    });
    thread::scope(|scope| {
        let slow = scope.spawn(move || record(&mut slow, &after("s", call)).unwrap());
        wait_for_look.recv().unwrap();
        meanwhile(sandbox);
        go_on.send(()).unwrap();
        assert!(!slow.join().unwrap().late);
    });
}

#[test]
fn what_was_seen_because_of_a_call_is_its_own_even_if_it_is_overtaken_meanwhile() {
    let mut sandbox = two_files();
    let one = sandbox.before_edit("s", &["a.txt"]);
    sandbox.before_edit("s", &["b.txt"]);
    sandbox.write("b.txt", "after\n");
    ends_while(&mut sandbox, &one, |sandbox| {
        // Who begins the next one has looked before the write.
        sandbox.write("b.txt", "before\n");
        sandbox.before_edit("s", &["c.txt"]);
        sandbox.write("b.txt", "after\n");
    });
    assert_eq!(authors(&sandbox, "b.txt"), ["s call-2 Edit named"]);
}

#[test]
fn what_was_seen_because_of_a_call_is_its_own_even_if_it_ends_meanwhile() {
    let mut sandbox = two_files();
    let one = sandbox.before_edit("s", &["a.txt"]);
    let two = sandbox.before_edit("s", &["b.txt"]);
    sandbox.write("b.txt", "half of it\n");
    ends_while(&mut sandbox, &one, |sandbox| {
        sandbox.write("b.txt", "before\n");
        sandbox.after("s", &two);
    });
    assert_eq!(authors(&sandbox, "b.txt"), ["s call-2 Edit named"]);
}

#[test]
fn what_a_scan_saw_while_a_command_ended_may_be_the_commands() {
    let mut sandbox = two_files();
    let one = sandbox.before_edit("s", &["a.txt"]);
    let two = sandbox.before_shell("s", "make");
    sandbox.write("made.tmp", "for a moment\n");
    ends_while(&mut sandbox, &one, |sandbox| {
        sandbox.remove("made.tmp");
        sandbox.after("s", &two);
    });
    assert_eq!(authors(&sandbox, "made.tmp"), ["s call-2 Bash window"]);
}

#[test]
fn edits_of_one_session_by_many_processes_are_never_the_users() {
    const PROCESSES: usize = 8;
    const ROUNDS: usize = 20;
    let mut sandbox = Sandbox::new();
    for number in 0..PROCESSES {
        sandbox.write(&format!("{number}.txt"), "start\n");
    }
    sandbox.prompt("s", "go");
    thread::scope(|scope| {
        for number in 0..PROCESSES {
            let mut workspace = sandbox.another_process();
            workspace.limits.recorder_patience = Duration::from_secs(60);
            let file = sandbox.at(&format!("{number}.txt"));
            scope.spawn(move || {
                for round in 0..ROUNDS {
                    let call = format!("{number}-{round}");
                    let begins = AgentEvent::BeforeTool {
                        session: SessionId::from("s"),
                        call: CallId::from(&*call),
                        tool: "Edit".to_owned(),
                        touches: CallTargets::Paths(vec![file.clone()]),
                    };
                    assert!(!record(&mut workspace, &begins).unwrap().late);
                    fs::write(&file, format!("{round}\n")).unwrap();
                    assert!(!record(&mut workspace, &after("s", &call)).unwrap().late);
                }
            });
        }
    });
    sandbox.turn_end("s");
    assert_consistent(&sandbox);
    let changes = log(&sandbox);
    let seen = changes.iter().filter(|change| change.before != Entry::Unknown);
    for change in seen {
        let name = change.path.display();
        let number = name.trim_end_matches(".txt");
        let of_its_own = matches!(&change.author, Author::Agent { call, .. }
            if call.0.starts_with(&format!("{number}-")));
        assert!(of_its_own, "{change:?}");
    }
    assert_eq!(sandbox.workspace.store.live_calls().unwrap(), []);
}

#[test]
fn several_processes_record_into_one_consistent_log() {
    const PROCESSES: usize = 4;
    const ROUNDS: usize = 8;
    let mut sandbox = Sandbox::new();
    sandbox.write("shared.txt", "start\n");
    sandbox.prompt("s0", "go");
    thread::scope(|scope| {
        for number in 0..PROCESSES {
            let mut workspace = sandbox.another_process();
            let root = sandbox.root();
            scope.spawn(move || {
                let session = SessionId(format!("s{number}"));
                let mut tell = |event| {
                    let recorded = record(&mut workspace, &event).expect("it is recorded");
                    assert!(!recorded.late);
                };
                for round in 0..ROUNDS {
                    let call = CallId(format!("{round}"));
                    let shell = round % 2 == 1;
                    let own = root.join(format!("own-{number}.txt"));
                    let touches = if shell {
                        CallTargets::anything(None)
                    } else {
                        CallTargets::Paths(vec![own.clone()])
                    };
                    tell(AgentEvent::BeforeTool {
                        session: session.clone(),
                        call: call.clone(),
                        tool: "tool".to_owned(),
                        touches,
                    });
                    fs::write(own, format!("{number} {round}\n")).unwrap();
                    if shell {
                        fs::write(root.join("shared.txt"), format!("{number} {round}\n")).unwrap();
                    }
                    tell(after(&session.0, &call.0));
                }
                tell(AgentEvent::TurnEnd { session, model: None });
            });
        }
    });
    assert_consistent(&sandbox);
    let head = log(&sandbox).len();
    assert_eq!(look_around(&mut sandbox.workspace).unwrap().recorded.changes, 0);
    assert_eq!(log(&sandbox).len(), head, "the log already matches the disk");
    for number in 0..PROCESSES {
        let authors = authors(&sandbox, &format!("own-{number}.txt"));
        let me = format!("s{number}");
        let sure = authors.iter().all(|author| author.contains(&me));
        assert!(sure, "only this session wrote own-{number}.txt: {authors:?}");
    }
}

// --- reported twice -----------------------------------------------------------------------------

#[test]
fn a_recorded_call_is_not_opened_again_by_a_late_event() {
    let mut sandbox = two_files();
    let time = Timestamp(1_800_000_000_000);
    let begins = InboxEvent { time, event: edit("s", "c", "a.txt") };
    let push = |sandbox: &Sandbox, event: &InboxEvent| {
        sandbox.workspace.inbox().push(event.clone()).unwrap();
    };
    push(&sandbox, &begins);
    sandbox.write("a.txt", "after\n");
    sandbox.after("s", "c");
    let before = log(&sandbox);
    assert_eq!(authors(&sandbox, "a.txt").last().unwrap(), "s c Edit named");
    push(&sandbox, &begins);
    look_around(&mut sandbox.workspace).unwrap();
    assert_eq!(log(&sandbox), before);
    assert_eq!(state_of(&sandbox, "c"), CallState::Done);

    // At another time it is another call, if of the same name.
    push(&sandbox, &InboxEvent { time: Timestamp(time.0 + 1), ..begins });
    look_around(&mut sandbox.workspace).unwrap();
    assert_eq!(state_of(&sandbox, "c"), CallState::Open);
}

#[test]
fn a_prompt_reported_twice_makes_one_point_and_one_turn() {
    let mut sandbox = two_files();
    let point = sandbox.prompt("s", "do it");
    let turn = |sandbox: &Sandbox| {
        sandbox.workspace.store.session(&"s".into()).unwrap().and_then(|s| s.open_turn)
    };
    let open = turn(&sandbox);
    assert!(open.is_some());
    let call = sandbox.before_edit("s", &["a.txt"]);
    sandbox.write("b.txt", "mine\n");
    let again = AgentEvent::Prompt {
        session: SessionId::from("s"),
        message: Some("message do it".to_owned()),
        text: "do it".to_owned(),
        model: None,
    };
    assert_eq!(sandbox.tell(&again).point, Some(point));
    assert_eq!(turn(&sandbox), open);
    assert_eq!(state_of(&sandbox, &call), CallState::Open, "it says nothing of what came since");
    assert_eq!(authors(&sandbox, "b.txt"), ["human"]);
    let points = |sandbox: &Sandbox| {
        let points = sandbox.workspace.store.points().unwrap();
        points.iter().filter(|point| point.kind == PointKind::Prompt).count()
    };
    assert_eq!(points(&sandbox), 2);

    // Another session's prompt is another, and so is one that comes after a different one.
    assert_ne!(sandbox.prompt("t", "do it"), point);
    sandbox.prompt("s", "and now");
    assert_ne!(sandbox.prompt("s", "do it"), point);
    assert_eq!(points(&sandbox), 5);
}

#[test]
fn a_prompt_without_an_id_is_always_another() {
    let mut sandbox = two_files();
    let event = prompt("s", "go");
    let first = sandbox.tell(&event).point.expect("it makes a point");
    assert_ne!(sandbox.tell(&event).point.expect("it makes a point"), first);
}
