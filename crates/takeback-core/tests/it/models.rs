//! The model that wrote a line, as far as the agent named it.

use takeback_core::AgentEvent;
use takeback_core::history::authored_lines;
use takeback_store::{SessionId, WorkPath};
use takeback_testkit::Sandbox;

fn named(model: &str) -> String {
    model.to_owned()
}

/// The model of each line of `a.txt`, and the session's.
fn models(sandbox: &Sandbox) -> (Vec<Option<String>>, Option<String>) {
    let file = authored_lines(&sandbox.workspace, &WorkPath::new("a.txt").unwrap()).unwrap();
    let lines = file.lines.iter().map(|line| line.writer.model.clone()).collect();
    let session = sandbox.workspace.store.session(&SessionId::from("s")).unwrap().unwrap();
    (lines, session.model)
}

#[test]
fn each_turn_has_the_model_that_answered_it() {
    let mut sandbox = Sandbox::in_memory();
    sandbox.start("s");
    sandbox.prompt("s", "one");
    sandbox.agent_writes("s", "a.txt", "one\n");
    assert_eq!(models(&sandbox), (vec![None], None), "the agent has named none yet");
    sandbox.turn_end_by("s", "small");
    sandbox.prompt("s", "two");
    sandbox.agent_writes("s", "a.txt", "one\ntwo\n");
    let open = (vec![Some(named("small")), None], Some(named("small")));
    assert_eq!(models(&sandbox), open, "the user may have chosen another model for the open turn");
    sandbox.turn_end_by("s", "large");
    assert_eq!(
        models(&sandbox),
        (vec![Some(named("small")), Some(named("large"))], Some(named("large")))
    );
}

#[test]
fn a_model_named_with_the_prompt_is_known_at_once() {
    let mut sandbox = Sandbox::in_memory();
    sandbox.tell(&AgentEvent::Prompt {
        session: SessionId::from("s"),
        message: None,
        text: "go".to_owned(),
        model: Some(named("large")),
    });
    sandbox.agent_writes("s", "a.txt", "one\n");
    assert_eq!(models(&sandbox), (vec![Some(named("large"))], Some(named("large"))));
    sandbox.turn_end("s");
    sandbox.session_end("s");
    assert_eq!(models(&sandbox), (vec![Some(named("large"))], Some(named("large"))));
}

#[test]
fn a_turn_has_the_model_of_its_session_if_nothing_else_names_one() {
    let mut sandbox = Sandbox::in_memory();
    sandbox.tell(&AgentEvent::SessionStart {
        session: SessionId::from("s"),
        agent: Some(named("agent")),
        parent: None,
        owner: None,
        model: Some(named("large")),
    });
    // Starting again without a name, as a later event may, forgets nothing.
    sandbox.start("s");
    sandbox.prompt("s", "one");
    sandbox.agent_writes("s", "a.txt", "one\n");
    sandbox.turn_end("s");
    assert_eq!(models(&sandbox), (vec![Some(named("large"))], Some(named("large"))));
}
