//! A copy of a file is listed as soon as it is stored, whatever the outcome of the call.

use takeback_core::history::{FileCheckpoint, FileCheckpointId, file_checkpoints, kept_for_call};
use takeback_core::{AgentEvent, CallTargets, Outcome};
use takeback_store::{CallId, Digest, Entry, NotCapturedReason, SessionId, WorkPath};
use takeback_testkit::Sandbox;

fn file(text: &str, mode: u32) -> Entry {
    let size = text.len() as u64;
    Entry::File { digest: Digest::of(text.as_bytes()), size, mode }
}

fn listed(sandbox: &Sandbox) -> Vec<FileCheckpoint> {
    file_checkpoints(&*sandbox.workspace.store, &SessionId::from("s")).unwrap()
}

fn of_call(sandbox: &Sandbox, call: &str) -> Vec<(WorkPath, FileCheckpointId)> {
    let store = &*sandbox.workspace.store;
    kept_for_call(store, &SessionId::from("s"), &CallId::from(call)).unwrap()
}

fn names(listed: &[FileCheckpoint]) -> Vec<(WorkPath, FileCheckpointId)> {
    listed.iter().map(|one| (one.path.clone(), one.id)).collect()
}

fn originals(listed: &[FileCheckpoint]) -> Vec<(String, Entry)> {
    listed.iter().map(|one| (one.path.display(), one.original.clone())).collect()
}

#[test]
fn a_copy_is_listed_while_its_call_is_open_and_keeps_its_id() {
    let mut sandbox = Sandbox::new();
    sandbox.write("a.txt", "one");
    sandbox.prompt("s", "go");
    let call = sandbox.before_edit("s", &["a.txt", "new.txt"]);
    let open = listed(&sandbox);
    let expected =
        [("a.txt".to_owned(), file("one", 0o644)), ("new.txt".to_owned(), Entry::Absent)];
    assert_eq!(originals(&open), expected);
    assert_eq!(open[0].message.as_deref(), Some("message go"));
    assert_eq!(of_call(&sandbox, &call), names(&open));

    sandbox.write("a.txt", "two");
    sandbox.write("new.txt", "new");
    sandbox.after("s", &call);
    sandbox.agent_writes("s", "a.txt", "three");
    assert_eq!(listed(&sandbox), open, "the first copy of a message, and no other");
}

#[test]
fn a_copy_is_listed_whatever_the_outcome_of_the_call() {
    for outcome in [Outcome::Done, Outcome::Failed, Outcome::Interrupted, Outcome::Rejected] {
        let mut sandbox = Sandbox::new();
        sandbox.write("a.txt", "one");
        sandbox.prompt("s", "go");
        let call = sandbox.before_edit("s", &["a.txt"]);
        sandbox.after_as("s", &call, outcome);
        sandbox.turn_end("s");
        assert_eq!(originals(&listed(&sandbox)), [("a.txt".to_owned(), file("one", 0o644))]);
    }
}

#[test]
fn a_copy_is_listed_after_the_agent_was_killed() {
    let mut sandbox = Sandbox::new();
    sandbox.write("a.txt", "one");
    sandbox.prompt("s", "go");
    sandbox.before_edit("s", &["a.txt"]);
    sandbox.reopen();
    sandbox.prompt("s", "again");
    assert_eq!(originals(&listed(&sandbox)), [("a.txt".to_owned(), file("one", 0o644))]);
}

#[test]
fn a_copy_is_the_version_at_the_start_of_the_call() {
    let mut sandbox = Sandbox::new();
    sandbox.write("a.txt", "one");
    sandbox.prompt("s", "go");
    let call = sandbox.before_edit("s", &["a.txt"]);
    sandbox.after("s", &call);
    sandbox.write("a.txt", "by hand");
    sandbox.prompt("s", "more");
    sandbox.agent_writes("s", "a.txt", "two");
    sandbox.agent_runs("s", "rm", |sandbox| sandbox.remove("a.txt"));
    let expected =
        [("a.txt".to_owned(), file("one", 0o644)), ("a.txt".to_owned(), file("by hand", 0o644))];
    assert_eq!(originals(&listed(&sandbox)), expected);
}

#[test]
fn a_copy_is_the_version_before_a_shell_commands_change() {
    let mut sandbox = Sandbox::new();
    sandbox.write("a.txt", "one");
    sandbox.prompt("s", "go");
    sandbox.agent_runs("s", "sed", |sandbox| sandbox.write("a.txt", "by command"));
    sandbox.agent_writes("s", "a.txt", "two");
    assert_eq!(originals(&listed(&sandbox)), [("a.txt".to_owned(), file("one", 0o644))]);
}

#[test]
fn a_large_file_has_no_copy() {
    let mut sandbox = Sandbox::new();
    sandbox.workspace.limits.edit_capture_max = 8;
    sandbox.prompt("s", "go");
    sandbox.write("large", "more than eight bytes");
    let call = sandbox.before_edit("s", &["large"]);
    let not_captured = Entry::NotCaptured { reason: NotCapturedReason::TooLarge };
    assert_eq!(originals(&listed(&sandbox)), [("large".to_owned(), not_captured)]);
    assert_eq!(of_call(&sandbox, &call), []);
}

#[test]
fn a_late_call_has_no_copy_yet() {
    let sandbox = Sandbox::new();
    assert_eq!(of_call(&sandbox, "unheard of"), []);
}

#[test]
fn a_session_named_like_an_import_finds_its_copies() {
    let mut sandbox = Sandbox::new();
    sandbox.write("a.txt", "one");
    let session = SessionId::from("imported-0123abcd-s");
    sandbox.tell(&AgentEvent::BeforeTool {
        session: session.clone(),
        call: CallId::from("c"),
        tool: "Edit".to_owned(),
        touches: CallTargets::Paths(vec!["a.txt".into()]),
    });
    let store = &*sandbox.workspace.store;
    let copies = file_checkpoints(store, &session).unwrap();
    assert_eq!(originals(&copies), [("a.txt".to_owned(), file("one", 0o644))]);
    assert_eq!(kept_for_call(store, &session, &CallId::from("c")).unwrap(), names(&copies));
}
