//! Whether an edit is about to overwrite what others changed.

use takeback_core::{Outcome, overwrite_warning};
use takeback_store::{CallId, Timestamp};
use takeback_testkit::Sandbox;

/// What a session is warned of before it edits these paths.
fn warned(sandbox: &mut Sandbox, session: &str, paths: &[&str]) -> Option<String> {
    let call = sandbox.before_edit(session, paths);
    let store = &*sandbox.workspace.store;
    let id = CallId(call.clone());
    let line = overwrite_warning(store, &session.into(), &id, &|_| None).expect("the log is read");
    sandbox.after_as(session, &call, Outcome::Rejected);
    line
}

#[test]
fn an_edit_of_what_others_changed_since_is_warned_of() {
    let mut sandbox = Sandbox::new();
    sandbox.write("b", "0\n");
    sandbox.prompt("s", "one");
    sandbox.agent_writes("s", "a", "1\n");
    sandbox.agent_writes("s", "b", "1\n");
    sandbox.turn_end("s");
    assert_eq!(warned(&mut sandbox, "s", &["a", "b"]), None, "only its own changes");
    sandbox.write("a", "mine\n");
    assert_eq!(
        warned(&mut sandbox, "s", &["a", "b"]).as_deref(),
        Some(
            "Takeback: a was changed by the user since you last changed or read it. Read it again \
             before you overwrite it."
        )
    );
    sandbox.prompt("other", "two");
    sandbox.agent_writes("other", "a", "2\n");
    sandbox.agent_writes("other", "b", "2\n");
    sandbox.turn_end("other");
    assert_eq!(
        warned(&mut sandbox, "s", &["a", "b"]).as_deref(),
        Some(
            "Takeback: b was changed by another session; a was changed by the user and another \
             session since you last changed or read it. Read it again before you overwrite it."
        )
    );
    sandbox.agent_writes("s", "a", "3\n");
    assert_eq!(warned(&mut sandbox, "s", &["a"]), None, "it has changed the file itself");
}

#[test]
fn a_file_that_the_session_never_knew_is_not_warned_of() {
    let mut sandbox = Sandbox::new();
    sandbox.write("a", "0\n");
    sandbox.prompt("s", "one");
    sandbox.write("a", "mine\n");
    assert_eq!(warned(&mut sandbox, "s", &["a"]), None);
}

#[test]
fn a_file_that_was_read_since_is_known() {
    let mut sandbox = Sandbox::new();
    sandbox.write("a", "0\n");
    sandbox.prompt("s", "one");
    sandbox.write("a", "mine\n");
    let call = CallId(sandbox.before_edit("s", &["a"]));
    let store = &*sandbox.workspace.store;
    let warned = |read: i64| {
        overwrite_warning(store, &"s".into(), &call, &|_| Some(Timestamp(read))).expect("a log")
    };
    assert!(warned(1).is_some(), "it was read before the change");
    assert_eq!(warned(i64::MAX), None);
}
