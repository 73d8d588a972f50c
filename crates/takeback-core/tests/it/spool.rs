//! Events that could not be recorded in time: none is lost, none is in another's way.

use std::fs;
use std::io;
use std::path::Path;
use std::thread;
use std::time::{Duration, Instant};

use takeback_core::lock::{Hold, Lock, lock};
use takeback_core::spool::{Spooled, damaged, drain, push};
use takeback_core::{AgentEvent, Touches, look_around};
use takeback_store::{CallId, Lack, SessionId, Timestamp};
use takeback_testkit::{Sandbox, path};

use crate::shown::{assert_consistent, history, who};

fn prompt(text: &str) -> AgentEvent {
    let (session, text) = (SessionId::from("s"), text.to_owned());
    AgentEvent::Prompt { session, message: None, text }
}

fn push_prompt(dir: &Path, text: &str) {
    push(dir, &Spooled { time: Timestamp(1), event: prompt(text) }).unwrap();
}

fn text(spooled: Spooled) -> String {
    match spooled.event {
        AgentEvent::Prompt { text, .. } => text,
        other => panic!("{other:?}"),
    }
}

/// Takes all, but for what `fails` names.
fn taken(dir: &Path, fails: &str) -> (Vec<String>, io::Result<Option<usize>>) {
    let mut taken = Vec::new();
    let drained = drain(dir, Duration::ZERO, |spooled| {
        let text = text(spooled);
        if text == fails {
            return Err(io::Error::other("not now"));
        }
        taken.push(text);
        Ok(())
    });
    (taken, drained)
}

fn files(dir: &Path) -> Vec<String> {
    let names = fs::read_dir(dir).unwrap().map(|entry| entry.unwrap().file_name());
    let mut names: Vec<String> = names.map(|name| name.into_string().unwrap()).collect();
    names.sort();
    names
}

#[test]
fn an_event_that_comes_while_others_are_recorded_waits_for_nobody() {
    let dir = tempfile::tempdir().unwrap();
    push_prompt(dir.path(), "first");
    let mut taken = Vec::new();
    let drained = drain(dir.path(), Duration::ZERO, |spooled| {
        let text = text(spooled);
        if text == "first" {
            push_prompt(dir.path(), "second");
            push_prompt(dir.path(), "third");
        }
        taken.push(text);
        Ok::<(), io::Error>(())
    });
    assert_eq!(drained.unwrap(), Some(3));
    assert_eq!(taken, ["first", "second", "third"]);
    assert_eq!(files(dir.path()), ["spool.lock"]);
}

#[test]
fn no_event_is_lost_between_those_who_push_and_those_who_drain() {
    const EACH: usize = 25;
    let dir = tempfile::tempdir().unwrap();
    let mut taken = Vec::new();
    thread::scope(|scope| {
        let pushing: Vec<_> = ["a", "b", "c"]
            .map(|who| {
                let dir = dir.path();
                scope.spawn(move || {
                    (0..EACH).for_each(|n| push_prompt(dir, &format!("{who} {n:02}")));
                })
            })
            .into();
        loop {
            let is_last = pushing.iter().all(thread::ScopedJoinHandle::is_finished);
            taken.extend(self::taken(dir.path(), "").0);
            if is_last {
                break;
            }
        }
    });
    for who in ["a", "b", "c"] {
        let of_one: Vec<&String> = taken.iter().filter(|text| text.starts_with(who)).collect();
        let pushed: Vec<String> = (0..EACH).map(|n| format!("{who} {n:02}")).collect();
        assert_eq!(of_one, pushed.iter().collect::<Vec<_>>());
    }
}

#[test]
fn what_could_not_be_taken_stays_and_what_was_taken_goes() {
    let dir = tempfile::tempdir().unwrap();
    ["first", "second", "third"].iter().for_each(|text| push_prompt(dir.path(), text));
    let (first, failed) = taken(dir.path(), "second");
    assert_eq!((first, failed.is_err()), (vec!["first".to_owned()], true));
    push_prompt(dir.path(), "fourth");
    let (rest, drained) = taken(dir.path(), "");
    assert_eq!((rest.join(" "), drained.unwrap()), ("second third fourth".to_owned(), Some(3)));
    let (nothing, drained) = taken(dir.path(), "");
    assert_eq!((nothing.len(), drained.unwrap()), (0, Some(0)));
}

#[test]
fn what_a_crash_left_beside_the_spool_is_cleared_away() {
    let dir = tempfile::tempdir().unwrap();
    push_prompt(dir.path(), "first");
    fs::write(dir.path().join("spool.draining.7.new"), "half a li").unwrap();
    fs::write(dir.path().join("index.7.new"), "somebody else's").unwrap();
    assert_eq!(taken(dir.path(), "").0, ["first"]);
    assert_eq!(files(dir.path()), ["index.7.new", "spool.lock"]);
}

#[test]
fn a_line_that_was_damaged_is_told_and_one_that_was_cut_short_is_not() {
    let dir = tempfile::tempdir().unwrap();
    push_prompt(dir.path(), "first");
    let spool = dir.path().join("spool");
    let whole = fs::read(&spool).unwrap();
    fs::write(&spool, &whole[..whole.len() / 2]).unwrap();
    push_prompt(dir.path(), "second");
    assert_eq!(damaged(dir.path()).unwrap(), 0, "it was cut short");
    push_prompt(dir.path(), "third");
    let mut lines = fs::read(&spool).unwrap();
    let at = lines.windows(5).position(|bytes| bytes == b"third").unwrap();
    lines[at - 1] = b'x';
    fs::write(&spool, &lines).unwrap();
    push_prompt(dir.path(), "fourth");
    assert_eq!(damaged(dir.path()).unwrap(), 1);
    let (texts, drained) = taken(dir.path(), "");
    assert_eq!((texts, drained.unwrap()), (vec!["second".into(), "fourth".into()], Some(2)));
    assert_eq!(damaged(dir.path()).unwrap(), 1, "also when the others are recorded");
    push_prompt(dir.path(), "fifth");
    drop(taken(dir.path(), ""));
    assert_eq!(damaged(dir.path()).unwrap(), 1);
}

#[test]
fn lines_of_earlier_versions_are_read() {
    let dir = tempfile::tempdir().unwrap();
    let line = concat!(
        r#"{"time":7,"event":"before_tool","session":"s","call":"c","tool":"Bash","#,
        r#""touches":{"anything":{"command":"make"}}}"#
    );
    fs::write(dir.path().join("spool"), format!("\n{line}\n")).unwrap();
    let event = AgentEvent::BeforeTool {
        session: SessionId::from("s"),
        call: CallId::from("c"),
        tool: "Bash".to_owned(),
        touches: Touches::anything(Some("make".to_owned())),
    };
    let expected = Spooled { time: Timestamp(7), event };
    assert_eq!(serde_json::to_string(&expected).unwrap(), line, "and written as they were");
    let mut read = Vec::new();
    let drained = drain(dir.path(), Duration::ZERO, |spooled| {
        read.push(spooled);
        Ok::<(), io::Error>(())
    });
    assert_eq!((drained.unwrap(), read), (Some(1), vec![expected]));
}

/// As another process has it that records what waits.
fn somebody_drains(sandbox: &Sandbox) -> Lock {
    let file = sandbox.workspace.store_dir.join("spool.lock");
    lock(&file, Hold::Exclusive, Duration::ZERO).unwrap().expect("nobody has it")
}

#[test]
fn an_agent_does_not_wait_until_others_have_recorded_what_waits() {
    let mut sandbox = Sandbox::new();
    sandbox.workspace.limits.recorder_patience = Duration::from_millis(20);
    sandbox.workspace.limits.rewind_patience = Duration::from_millis(20);
    push_prompt(&sandbox.workspace.store_dir, "first");
    let draining = somebody_drains(&sandbox);
    assert!(sandbox.tell(&prompt("second")).spooled);
    let refused = look_around(&mut sandbox.workspace).unwrap_err();
    assert_eq!(refused.to_string(), "another command has the workspace locked");
    drop(draining);
    assert!(!sandbox.tell(&prompt("third")).spooled);
    let points = sandbox.workspace.store.points().unwrap();
    let told: Vec<&str> = points.iter().map(|point| &*point.description).collect();
    assert_eq!(told, ["first", "second", "third"]);
}

#[test]
fn an_agent_does_not_wait_for_a_store_that_is_busy() {
    let mut sandbox = Sandbox::new();
    sandbox.write("a.txt", "one\n");
    sandbox.prompt("s", "go");
    sandbox.workspace.limits.recorder_patience = Duration::from_millis(20);
    let other = rusqlite::Connection::open(sandbox.workspace.store_dir.join("timeline.db"));
    let other = other.unwrap();
    other.execute_batch("BEGIN IMMEDIATE").unwrap();
    let began = Instant::now();
    let event = AgentEvent::BeforeTool {
        session: SessionId::from("s"),
        call: CallId::from("c"),
        tool: "Edit".to_owned(),
        touches: Touches::Paths(vec![sandbox.at("a.txt")]),
    };
    let recorded = sandbox.tell(&event);
    // A store that nobody told to be quick waits five seconds.
    assert!(began.elapsed() < Duration::from_secs(4), "{:?}", began.elapsed());
    assert!(recorded.spooled);
    assert_eq!(recorded.not_captured, [(path("a.txt"), Lack::Deadline)]);
    assert_eq!(history(&sandbox, "a.txt").len(), 1);
    other.execute_batch("ROLLBACK").unwrap();
    sandbox.write("a.txt", "two\n");
    sandbox.after("s", "c");
    assert_eq!(who(&sandbox, "a.txt")[1..], ["s c Edit named"]);
    assert_consistent(&sandbox);
}
