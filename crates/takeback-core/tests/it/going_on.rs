//! What there was no time to read is read when there is.

use std::fs::{self, File};
use std::time::Duration;

use takeback_core::going_on::{Going, GoingOn, how_far, is_wanted};
use takeback_core::{left_to_read, look_at_rest};
use takeback_store::{Entry, Lack};
use takeback_testkit::Sandbox;

use crate::shown::{assert_consistent, history, who};

/// A workspace where there is time for names alone. A file must be older than a clock tick to be known again.
fn hurried() -> Sandbox {
    let mut sandbox = Sandbox::new();
    for (path, text) in [("a.txt", "one\n"), ("sub/b.txt", "two\n")] {
        sandbox.write(path, text);
        let old = std::time::SystemTime::UNIX_EPOCH + Duration::from_secs(1_000_000);
        File::options().write(true).open(sandbox.at(path)).unwrap().set_modified(old).unwrap();
    }
    std::thread::sleep(Duration::from_millis(30));
    sandbox.workspace.limits.scan_budget = Some(Duration::ZERO);
    sandbox.workspace.limits.scan_overrun = Duration::from_secs(600);
    sandbox
}

#[test]
fn what_was_left_is_filled_in() {
    let mut sandbox = hurried();
    let before = sandbox.tree();
    let dir = sandbox.workspace.store_dir.clone();
    assert!(!is_wanted(&dir).unwrap());
    let point = sandbox.prompt("s", "go");
    let unread = Entry::NotCaptured { lack: Lack::Deadline };
    assert_eq!(history(&sandbox, "a.txt")[0].after, unread);
    assert_eq!((is_wanted(&dir).unwrap(), how_far(&dir).unwrap()), (true, None));
    assert_eq!(left_to_read(&sandbox.workspace).unwrap(), 8);

    let mut going_on = GoingOn::begin(&dir).unwrap().expect("nobody is at it");
    assert_eq!((is_wanted(&dir).unwrap(), how_far(&dir).unwrap()), (false, Some(Going::default())));
    assert!(GoingOn::begin(&dir).unwrap().is_none(), "there is one at most");
    for read in [2, 4] {
        going_on.tell(Going { read, of: 8 }).unwrap();
        assert_eq!(how_far(&dir).unwrap(), Some(Going { read, of: 8 }));
    }
    // An agent that works meanwhile.
    sandbox.workspace.limits.scan_budget = None;
    sandbox.agent_writes("s", "sub/b.txt", "agent\n");
    let recorded = look_at_rest(&mut sandbox.another_process()).unwrap();
    assert_eq!(recorded.changes, 0, "nothing has changed but what is known");
    going_on.done().unwrap();
    assert_eq!((is_wanted(&dir).unwrap(), how_far(&dir).unwrap()), (false, None));
    assert_eq!(left_to_read(&sandbox.workspace).unwrap(), 0);
    assert!(
        matches!(history(&sandbox, "a.txt")[..], [ref first] if first.after.digest().is_some())
    );
    assert!(sandbox.rewind_to(point).success);
    assert_eq!(sandbox.tree(), before);
    assert_consistent(&sandbox);
}

#[test]
fn an_event_for_which_not_even_names_could_be_read_comes_after_the_look() {
    let mut sandbox = hurried();
    let dir = sandbox.workspace.store_dir.clone();
    sandbox.prompt("s", "first");
    sandbox.workspace.limits.scan_overrun = Duration::ZERO;
    let event = takeback_core::AgentEvent::Prompt {
        session: takeback_store::SessionId::from("s"),
        message: None,
        text: "go".to_owned(),
    };
    let recorded = sandbox.tell(&event);
    assert!(recorded.spooled && recorded.unfinished && is_wanted(&dir).unwrap());
    sandbox.write("new.txt", "by whom?\n");
    sandbox.workspace.limits.scan_budget = None;
    look_at_rest(&mut sandbox.workspace).unwrap();
    let points = sandbox.workspace.store.points().unwrap();
    assert_eq!(points.len(), 2);
    assert!(fs::metadata(dir.join("spool")).is_err(), "nothing waits");
    assert_eq!(who(&sandbox, "new.txt"), ["ambiguous s"], "the session's, or a person's");
    assert_consistent(&sandbox);
}
