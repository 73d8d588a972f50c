//! What the model is shown after a cut, a load or a resume.

use serde_json::{Value, json};
use takeback_agents::{AgentError, ChatAgent as _, ChatEvent, RestoreMode};

use crate::lab::{Lab, run, seen, start, trusting};

const TAGS: &[&str] = &[
    "prompt one",
    "said one",
    "prompt two",
    "said two",
    "prompt three",
    "said three",
    "prompt new",
];

/// A turn without tools; returns what the model was shown for it, without its own script.
fn shown(lab: &Lab, text: &str) -> Vec<String> {
    lab.turn(text, &json!(["fine"]));
    seen(lab.model.asked().last().unwrap(), TAGS)
}

fn three_turns(lab: &Lab) -> Vec<String> {
    let turn = |number: &str| {
        let answer = format!("said {number}");
        lab.turn(&format!("prompt {number}"), &json!([answer])).0
    };
    ["one", "two", "three"].map(turn).to_vec()
}

#[test]
fn a_cut_is_forgotten_and_the_rest_is_not() {
    let Some(lab) = trusting() else { return };
    let messages = three_turns(&lab);
    let whole = lab.claude.memory();
    assert_eq!(whole["prompts"].as_array().unwrap().len(), 3);
    assert_eq!(whole["prompts"][0], json!({ "message": messages[0], "after": Value::Null }));

    lab.claude.cut(&messages[1]).unwrap();
    assert_eq!(lab.claude.memory()["prompts"].as_array().unwrap().len(), 1);
    assert_eq!(shown(&lab, "prompt new"), ["prompt one", "said one", "prompt new"]);
    let unknown = lab.claude.cut(&messages[2]);
    assert!(matches!(unknown, Err(AgentError::UnknownMessage(_))), "{unknown:?}");

    lab.claude.cut(&messages[0]).unwrap();
    assert_eq!(shown(&lab, "prompt new"), ["prompt new"]);

    lab.claude.load(&whole).unwrap();
    assert_eq!(lab.claude.memory(), whole);
    let all = ["prompt one", "said one", "prompt two", "said two", "prompt three", "said three"];
    assert_eq!(shown(&lab, "prompt new"), [all.as_slice(), &["prompt new"]].concat());
    lab.claude.load(&Value::Null).unwrap();
    assert_eq!(shown(&lab, "prompt new"), ["prompt new"]);
    let foreign = lab.claude.load(&json!({ "agent": "builtin", "messages": [] }));
    assert!(matches!(foreign, Err(AgentError::ForeignMemory("claude"))), "{foreign:?}");
}

#[test]
fn a_conversation_continues_in_another_process() {
    let Some(mut lab) = trusting() else { return };
    let messages = three_turns(&lab);
    let memory = lab.claude.memory();
    lab.claude.close();
    lab.options.resume = memory.clone();
    (lab.claude, lab.received) = start(&lab.sandbox, &lab.options);
    assert_eq!(lab.claude.memory(), memory);
    lab.claude.cut(&messages[2]).unwrap();
    let expected = ["prompt one", "said one", "prompt two", "said two", "prompt new"];
    assert_eq!(shown(&lab, "prompt new"), expected);
}

#[test]
fn an_interrupted_turn_is_remembered_as_such() {
    let Some(lab) = trusting() else { return };
    let script = json!([run("echo 1 > one.txt; sleep 300"), "never"]);
    let message = lab.prompt("prompt one", &script);
    while !lab.sandbox.exists("one.txt") {
        std::thread::yield_now();
    }
    lab.claude.interrupt().unwrap();
    lab.until(|event| matches!(event, ChatEvent::TurnEnd(_)));
    let (second, _) = lab.turn("prompt two", &json!(["said two"]));
    lab.claude.cut(&second).unwrap();
    assert_eq!(shown(&lab, "prompt new"), ["prompt one", "prompt new"]);
    let request = lab.model.asked().last().unwrap()["messages"].to_string();
    assert!(request.contains("interrupted by user"), "{request}");
    lab.claude.cut(&message).unwrap();
    assert_eq!(shown(&lab, "prompt new"), ["prompt new"]);
}

#[test]
fn copies_of_files_survive_a_cut() {
    let Some(lab) = trusting() else { return };
    let (first, _) = lab.turn("prompt one", &json!([lab.write("a.txt", "1\n"), "ok"]));
    let (second, _) = lab.turn("prompt two", &json!([lab.write("b.txt", "1\n"), "ok"]));
    lab.claude.cut(&second).unwrap();
    lab.claude.rewind_files(&first, RestoreMode::Apply).unwrap();
    assert!(!lab.sandbox.exists("a.txt"));
}

#[test]
fn a_missing_session_is_refused_with_a_reason() {
    let Some(lab) = trusting() else { return };
    lab.turn("prompt one", &json!(["said one"]));
    let mut memory = lab.claude.memory();
    memory["session"] = json!("00000000-0000-4000-8000-00000000abcd");
    let refused = lab.claude.load(&memory);
    let Err(AgentError::Refused(why)) = refused else { panic!("{refused:?}") };
    assert!(why.starts_with("No conversation found"), "{why}");
    assert!(!lab.claude.is_live());
    lab.claude.load(&Value::Null).unwrap();
    assert_eq!(shown(&lab, "prompt new"), ["prompt new"]);
}

#[test]
fn an_unwritten_message_costs_only_its_turn() {
    let Some(lab) = trusting() else { return };
    let messages = three_turns(&lab);
    let mut memory = lab.claude.memory();
    memory["upTo"] = json!("00000000-0000-4000-8000-00000000abcd");
    lab.claude.load(&memory).unwrap();
    let expected = ["prompt one", "said one", "prompt two", "said two", "prompt new"];
    assert_eq!(shown(&lab, "prompt new"), expected);
    // The host may still show the prompt that was lost.
    lab.claude.cut(&messages[2]).unwrap();
    assert_eq!(lab.claude.memory()["prompts"].as_array().unwrap().len(), 2);
    assert_eq!(shown(&lab, "prompt new"), expected);
}
