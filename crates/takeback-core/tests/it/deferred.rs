//! Events whose look at the tree goes on after the agent has its answer.

use std::fs;
use std::time::Duration;

use takeback_core::deferred::Deferred;
use takeback_core::rewind::{RewindError, RewindRequest, Target};
use takeback_core::spool::{self, Spooled};
use takeback_core::{
    AgentEvent, Outcome, Put, Touches, record_deferred, record_or_defer, record_waiting,
};
use takeback_store::{CallId, Lack, SessionId, Timestamp};
use takeback_testkit::{Sandbox, path};

use crate::shown::{assert_consistent, who};

/// A workspace in which one scan was made, and nobody waits for anybody.
fn sandbox() -> Sandbox {
    let mut sandbox = Sandbox::new();
    let limits = &mut sandbox.workspace.limits;
    limits.recorder_patience = Duration::ZERO;
    limits.barrier_patience = Duration::ZERO;
    limits.rewind_patience = Duration::ZERO;
    sandbox.write("a.txt", "one\n");
    sandbox.prompt("s", "first");
    sandbox.prompt("t", "first of another");
    sandbox
}

fn prompt(session: &str, text: &str) -> AgentEvent {
    AgentEvent::Prompt { session: SessionId::from(session), message: None, text: text.to_owned() }
}

fn edit(session: &str, call: &str, sandbox: &Sandbox, of: &str) -> AgentEvent {
    AgentEvent::BeforeTool {
        session: SessionId::from(session),
        call: CallId::from(call),
        tool: "Edit".to_owned(),
        touches: Touches::Paths(vec![sandbox.at(of)]),
    }
}

fn after(session: &str, call: &str) -> AgentEvent {
    let (session, call) = (SessionId::from(session), CallId::from(call));
    AgentEvent::AfterTool {
        session,
        call,
        outcome: Outcome::Done,
        report: takeback_core::CallReport::default(),
    }
}

fn put(sandbox: &mut Sandbox, event: &AgentEvent) -> Put {
    record_or_defer(&mut sandbox.workspace, event, 0).unwrap()
}

fn deferred(sandbox: &mut Sandbox, event: &AgentEvent) -> Deferred {
    match put(sandbox, event) {
        Put::Deferred(deferred) => deferred,
        Put::Recorded(recorded) => panic!("{event:?}: {recorded:?}"),
    }
}

fn points(sandbox: &Sandbox) -> Vec<String> {
    let points = sandbox.workspace.store.points().unwrap();
    points.into_iter().map(|point| point.description).collect()
}

fn left(sandbox: &Sandbox) -> usize {
    let folder = sandbox.workspace.store_dir.join("deferred");
    fs::read_dir(folder).map_or(0, Iterator::count)
}

#[test]
fn what_comes_after_it_waits_and_others_do_not() {
    let mut sandbox = sandbox();
    sandbox.write("a.txt", "mine\n");
    let second = deferred(&mut sandbox, &prompt("s", "second"));
    assert_eq!(points(&sandbox), ["first", "first of another"]);
    for session in ["s", "s/part"] {
        let event = edit(session, &format!("c-{session}"), &sandbox, "b.txt");
        let answer = sandbox.tell(&event);
        assert!(answer.spooled, "{session}");
        assert_eq!(answer.not_captured, [(path("b.txt"), Lack::Deadline)], "{session}");
        fs::remove_file(sandbox.workspace.store_dir.join("spool")).unwrap();
    }
    let event = edit("t", "c", &sandbox, "c.txt");
    assert!(!sandbox.tell(&event).spooled, "another session");
    let first = sandbox.workspace.store.points().unwrap()[0].id;
    let request = RewindRequest::new(Target::Point(first));
    let refused = sandbox.rewind(&request);
    assert!(matches!(refused, Err(RewindError::Locked)), "{refused:?}");
    let recorded = record_deferred(&mut sandbox.another_process(), second).unwrap();
    assert!(recorded.point.is_some());
    assert_eq!((points(&sandbox).pop().unwrap().as_str(), left(&sandbox)), ("second", 0));
    assert_eq!(who(&sandbox, "a.txt"), ["human"]);
    let event = edit("s", "d", &sandbox, "a.txt");
    assert!(!sandbox.tell(&event).spooled);
    sandbox.write("a.txt", "agent\n");
    sandbox.after("s", "d");
    assert_eq!(who(&sandbox, "a.txt"), ["human", "s d Edit named"]);
    assert_consistent(&sandbox);
}

#[test]
fn only_that_after_which_nothing_is_written_is_deferred() {
    let mut sandbox = sandbox();
    let shell = sandbox.before_shell("s", "make");
    sandbox.write("made.txt", "made\n");
    let ends = deferred(&mut sandbox, &after("s", &shell));
    record_deferred(&mut sandbox.workspace, ends).unwrap();
    assert_eq!(who(&sandbox, "made.txt"), [format!("s {shell} Bash window")]);
    let call = sandbox.before_edit("s", &["a.txt"]);
    let session = SessionId::from("s");
    let start = AgentEvent::SessionStart {
        session: SessionId::from("u"),
        agent: None,
        parent: None,
        owner: None,
    };
    let at_once = [
        after("s", &call),
        edit("s", "e", &sandbox, "a.txt"),
        after("s", "e"),
        AgentEvent::Step { session: session.clone(), name: "step".to_owned() },
        start,
    ];
    for event in at_once {
        let put = put(&mut sandbox, &event);
        assert!(matches!(put, Put::Recorded(_)), "{event:?}");
    }
    let ends =
        [AgentEvent::TurnEnd { session: session.clone() }, AgentEvent::SessionEnd { session }];
    for event in ends {
        let deferred = deferred(&mut sandbox, &event);
        record_deferred(&mut sandbox.workspace, deferred).unwrap();
    }
    let small = record_or_defer(&mut sandbox.workspace, &prompt("s", "again"), 20_000).unwrap();
    assert!(matches!(small, Put::Recorded(_)), "the tree is small");
    let time = Timestamp(1);
    let event = prompt("t", "waits");
    spool::push(&sandbox.workspace.store_dir, &Spooled { time, event }).unwrap();
    let behind = put(&mut sandbox, &prompt("t", "comes after"));
    assert!(matches!(behind, Put::Recorded(_)), "{behind:?}");
    assert_eq!(points(&sandbox)[4..], ["waits", "comes after"]);
}

#[test]
fn a_session_that_could_not_wait_may_have_written_what_was_found() {
    let mut sandbox = sandbox();
    let second = deferred(&mut sandbox, &prompt("s", "second"));
    let event = edit("s", "c", &sandbox, "a.txt");
    assert!(sandbox.tell(&event).spooled);
    sandbox.write("a.txt", "agent\n");
    record_deferred(&mut sandbox.another_process(), second).unwrap();
    sandbox.after("s", "c");
    assert_eq!(who(&sandbox, "a.txt"), ["ambiguous s", "ambiguous s", "s c Edit named"]);
    assert_consistent(&sandbox);
}

#[test]
fn what_somebody_died_over_comes_before_what_was_told_after_it() {
    let mut sandbox = sandbox();
    let second = deferred(&mut sandbox, &prompt("s", "second"));
    let third = sandbox.tell(&prompt("s", "third"));
    assert!(third.spooled);
    assert_eq!(record_waiting(&mut sandbox.another_process()).unwrap(), 2, "somebody is at it");
    assert!(sandbox.tell(&prompt("t", "behind what waits")).spooled);
    drop(second);
    assert_eq!(record_waiting(&mut sandbox.another_process()).unwrap(), 0);
    let all = ["first", "first of another", "second", "third", "behind what waits"];
    assert_eq!((points(&sandbox), left(&sandbox)), (all.map(str::to_owned).to_vec(), 0));
    assert_consistent(&sandbox);
}

#[test]
fn what_a_crash_cut_short_is_cleared_away() {
    let mut sandbox = sandbox();
    let folder = sandbox.workspace.store_dir.join("deferred");
    drop(deferred(&mut sandbox, &prompt("s", "second")));
    for (name, text) in [("0000000000000001", ""), ("0000000000000002", "{\"time\":")] {
        fs::write(folder.join(name), text).unwrap();
    }
    sandbox.prompt("t", "next");
    assert_eq!(left(&sandbox), 0);
    assert_eq!(points(&sandbox)[2..], ["second", "next"]);
}
