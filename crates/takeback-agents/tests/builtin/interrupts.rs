//! An interrupted turn ends at once, with every call answered, and nothing is written after it.

use std::time::Instant;

use serde_json::json;
use takeback_agents::ApiStyle;
use takeback_testkit::model::{Answer, Block, ModelServer};

use super::endpoints::{STYLES, options};
use super::*;

/// All events from the interrupt to the end of the turn, which comes soon.
fn interrupted(talk: &ChatFixture) -> Vec<ChatEvent> {
    let begun = Instant::now();
    talk.agent.interrupt().unwrap();
    let events = talk.to_the_end();
    assert_eq!(ending(&events), &TurnResult::Interrupted);
    assert!(begun.elapsed() < Duration::from_secs(30), "far less than what was going on");
    events
}

fn last_message(talk: &ChatFixture) -> Value {
    talk.agent.memory()["messages"].as_array().unwrap().last().unwrap().clone()
}

#[test]
fn in_the_middle_of_a_text() {
    let sandbox = Sandbox::new();
    let script = json!({"turns": [
        {"steps": [{"say": "one"}, {"pauseMs": 600_000}, {"say": "two"}]},
        {"steps": [{"say": "three"}]},
    ]});
    let mut talk = ChatFixture::start(&sandbox, scenario(&script.to_string()));
    talk.prompt("go");
    talk.until(|event| *event == ChatEvent::TextEnd);
    interrupted(&talk);
    let event = json!({"role": "assistant", "content": [{"type": "text", "text": "one"}]});
    assert_eq!(last_message(&talk), event);
    assert_eq!(step_names(&sandbox), ["start", "prompt", "model"]);
    assert_eq!(text(&talk.turn("on")), "three\n");
}

#[test]
fn in_the_middle_of_a_command_and_its_children() {
    let sandbox = Sandbox::new();
    let command = "echo begun; (sleep 600; touch late) & echo $! > pid; sleep 600; touch late";
    let script = json!({"turns": [
        {"steps": [
            {"tool": "shell", "input": {"command": command}},
            {"tool": "write_file", "input": {"path": "never", "content": ""}},
            {"say": "never"},
        ]},
    ]});
    let mut talk = ChatFixture::start(&sandbox, scenario(&script.to_string()));
    talk.prompt("go");
    let begun = Instant::now();
    while !sandbox.exists("pid") || sandbox.read("pid").is_empty() {
        assert!(begun.elapsed() < TIMEOUT, "the command begins");
        std::thread::sleep(Duration::from_millis(5));
    }
    let pid = sandbox.read("pid");
    let events = interrupted(&talk);
    assert!(is_between_turns(&sandbox));
    let lines: Vec<_> = events
        .iter()
        .filter_map(|event| match event {
            ChatEvent::ToolEnd { ok, line, changes, .. } => {
                Some((*ok, line.as_str(), changes.is_some()))
            }
            _ => None,
        })
        .collect();
    assert_eq!(lines, [(false, "interrupted", true)], "the pid file is its work");

    let results = last_message(&talk);
    let contents: Vec<&str> = results["content"]
        .as_array()
        .unwrap()
        .iter()
        .map(|result| result["content"].as_str().unwrap())
        .collect();
    assert_eq!(contents, ["begun\n[interrupted]", "interrupted"]);
    assert!(!sandbox.exists("never"));
    wait_until_gone(&pid);
    assert_eq!(ending(&talk.turn("on")), &TurnResult::Done);
}

#[test]
fn while_the_endpoint_is_silent_and_while_it_streams() {
    for style in STYLES {
        let server = ModelServer::start();
        let sandbox = Sandbox::new();
        let mut talk = ChatFixture::start(&sandbox, options(&server, style));
        let blocks =
            vec![Block::text("half a word"), Block::tool("shell", json!({"command": "touch x"}))];
        server.answer(Answer::Stalls { blocks: blocks.clone(), after: 0 });
        talk.prompt("go");
        server.wait_for(1);
        interrupted(&talk);

        // The events before the text, and its first half.
        let after = match style {
            ApiStyle::Anthropic => 3,
            ApiStyle::OpenAi => 2,
        };
        server.answer(Answer::Stalls { blocks, after });
        talk.prompt("go on");
        talk.until(|event| matches!(event, ChatEvent::Text(_)));
        let events = interrupted(&talk);
        assert_eq!(events.first(), Some(&ChatEvent::TextEnd), "the paragraph is closed");
        let half = json!({"role": "assistant", "content": [{"type": "text", "text": "half "}]});
        assert_eq!(last_message(&talk), half);

        assert_eq!(text(&talk.turn("again")), "ok\n");
        assert!(!sandbox.exists("x"));
        let asked = server.asked().pop().unwrap()["messages"].to_string();
        let order = ["go", "go on", "half", "again"].map(|word| asked.find(word).unwrap());
        assert!(order.is_sorted(), "{asked}");
    }
}

#[test]
fn while_waiting_for_a_retry() {
    let server = ModelServer::start();
    let sandbox = Sandbox::new();
    let mut talk = ChatFixture::start(&sandbox, options(&server, STYLES[0]));
    let headers = vec![("retry-after".to_owned(), "600".to_owned())];
    server.answer(Answer::Refuses { status: 429, headers, body: String::new() });
    talk.prompt("go");
    let events = talk.until(|event| matches!(event, ChatEvent::Note(_)));
    let note = format!("{:?}", events.last().unwrap());
    assert!(note.contains("trying again in 60 s"), "the longest wait: {note}");
    interrupted(&talk);
}

#[test]
fn without_a_turn_nothing_happens_and_turns_do_not_overlap() {
    let sandbox = Sandbox::new();
    let script = json!({"turns": [
        {"steps": [{"say": "one"}]},
        {"steps": [{"say": "two"}, {"pauseMs": 600_000}]},
    ]});
    let mut talk = ChatFixture::start(&sandbox, scenario(&script.to_string()));
    talk.agent.interrupt().unwrap();
    assert_eq!(ending(&talk.turn("go")), &TurnResult::Done);

    let message = talk.prompt("go");
    let busy = |done: Result<(), AgentError>| matches!(done, Err(AgentError::Busy));
    assert!(busy(talk.agent.prompt("another", "go")));
    assert!(busy(talk.agent.cut(&message)));
    assert!(busy(talk.agent.load(&Value::Null)));
    interrupted(&talk);
    talk.agent.cut(&message).unwrap();
}

#[test]
fn closing_ends_the_turn_and_waits() {
    let sandbox = Sandbox::new();
    let script =
        r#"{"turns":[{"steps":[{"tool":"shell","input":{"command":"touch a; sleep 600"}}]}]}"#;
    let mut talk = ChatFixture::start(&sandbox, scenario(script));
    talk.prompt("go");
    talk.until(|event| matches!(event, ChatEvent::Tool { .. }));
    assert!(talk.agent.is_live());
    talk.agent.close();
    assert!(!talk.agent.is_live());
    assert_eq!(ending(&talk.to_the_end()), &TurnResult::Interrupted);
    let gone = |done: Result<(), AgentError>| matches!(done, Err(AgentError::Ended(_)));
    assert!(gone(talk.agent.prompt("m", "go")) && gone(talk.agent.cut(&message(1))));
    talk.agent.close();
    let sessions = sandbox.workspace.store.sessions().unwrap();
    assert!(sessions[0].ended_at.is_some(), "{sessions:?}");
    let result = last_message(&talk);
    assert_eq!(result["content"][0]["type"], "tool_result");
}
