//! What an agent is told with its next prompt about what was taken back.

use takeback_core::rewind::{Exactness, RewindRequest, Target};
use takeback_core::{last_prompt, notice};
use takeback_testkit::Sandbox;

/// What the session is told with its next prompt.
fn told(sandbox: &Sandbox, session: &str) -> Option<String> {
    let store = &*sandbox.workspace.store;
    let last = last_prompt(store, &session.into()).expect("the log is read");
    last.and_then(|last| notice(store, &session.into(), last).expect("the log is read"))
}

#[test]
fn a_rewind_is_told_once_with_what_the_person_kept() {
    let mut sandbox = Sandbox::new();
    sandbox.write("both.txt", "1\n2\n3\n4\n5\n");
    let point = sandbox.prompt("s", "add retries");
    assert_eq!(told(&sandbox, "s"), None);
    sandbox.agent_writes("s", "a.rs", "agent\n");
    sandbox.agent_writes("s", "both.txt", "agent\n2\n3\n4\n5\n");
    sandbox.turn_end("s");
    sandbox.write("both.txt", "agent\n2\n3\n4\nmine\n");
    sandbox.prompt("s", "more");
    assert_eq!(told(&sandbox, "s"), None, "nothing was taken back");
    sandbox.rewind_to(point);
    assert_eq!(
        told(&sandbox, "s").as_deref(),
        Some(
            "Takeback: your changes to a.rs and both.txt (prompt \"add retries\") were taken back; \
             the user's own edits in both.txt stay. Do not redo them unless asked."
        )
    );
    sandbox.prompt("s", "on");
    assert_eq!(told(&sandbox, "s"), None, "it was told with the last prompt");
}

#[test]
fn what_was_undone_before_the_prompt_is_not_told() {
    let mut sandbox = Sandbox::new();
    let point = sandbox.prompt("s", "one");
    sandbox.agent_writes("s", "a", "1\n");
    sandbox.turn_end("s");
    sandbox.rewind_to(point);
    sandbox.undo();
    assert_eq!(told(&sandbox, "s"), None);
    sandbox.redo();
    let taken = "Takeback: your changes to a (prompt \"one\") were taken back. Do not redo them \
                 unless asked.";
    assert_eq!(told(&sandbox, "s").as_deref(), Some(taken));
    sandbox.prompt("s", "two");
    sandbox.undo();
    assert_eq!(
        told(&sandbox, "s").as_deref(),
        Some("Takeback: your changes to a, taken back before, are in place again.")
    );
    sandbox.redo();
    assert_eq!(told(&sandbox, "s"), None, "it is as it was at the prompt");
}

#[test]
fn a_session_is_told_only_what_concerns_it() {
    let mut sandbox = Sandbox::new();
    let first = sandbox.prompt("s", "one");
    sandbox.agent_writes("s", "a", "1\n");
    sandbox.turn_end("s");
    sandbox.prompt("other", "two");
    sandbox.agent_writes("other", "b", "1\n");
    sandbox.turn_end("other");
    sandbox.rewind_to(first);
    assert_eq!(told(&sandbox, "other"), None);
    assert!(told(&sandbox, "s").is_some());
    assert_eq!(told(&sandbox, "new"), None);
}

#[test]
fn a_file_that_changed_beside_its_own_changes_is_told() {
    let mut sandbox = Sandbox::new();
    sandbox.write("a", "0\n");
    let before = sandbox.prompt("s", "one");
    sandbox.agent_writes("s", "b", "1\n");
    sandbox.agent_writes("s", "a", "1\n");
    sandbox.turn_end("s");
    let after = sandbox.prompt("s", "two");
    sandbox.write("a", "mine\n");
    sandbox.prompt("s", "three");
    let mut request = RewindRequest::new(Target::Point(after));
    request.exactness = Exactness::Exact;
    sandbox.rewind(&request).expect("it is rewound");
    assert_eq!(
        told(&sandbox, "s").as_deref(),
        Some("Takeback: a rewind changed a, which you had changed too.")
    );
    sandbox.rewind_to(before);
    assert_eq!(
        told(&sandbox, "s").as_deref(),
        Some(
            "Takeback: your changes to a and b (prompt \"one\") were taken back. Do not redo them \
             unless asked."
        )
    );
}
