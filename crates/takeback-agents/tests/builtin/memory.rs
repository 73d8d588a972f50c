//! The agent's memory: cut, loaded, and restored after its process was killed.

use serde_json::json;
use takeback_agents::{NativeFiles, RestoreMode, last_memory};

use super::*;

fn counting() -> BuiltinOptions {
    let say = |text: &str| json!({"steps": [{"say": text}]});
    scenario(&json!({"turns": [say("one"), say("two"), say("three")]}).to_string())
}

fn texts(talk: &ChatFixture) -> Vec<String> {
    let memory = talk.agent.memory();
    let messages = memory["messages"].as_array().unwrap().iter();
    messages.map(|message| message["content"][0]["text"].as_str().unwrap().to_owned()).collect()
}

#[test]
fn a_cut_forgets_the_prompt_and_what_followed() {
    let sandbox = Sandbox::new();
    let mut talk = ChatFixture::start(&sandbox, counting());
    for prompt in ["a", "b", "c"] {
        talk.turn(prompt);
    }
    talk.agent.cut(&message(2)).unwrap();
    assert_eq!(texts(&talk), ["a", "one"]);
    assert_eq!(step_names(&sandbox), ["start", "prompt", "model"]);
    assert_eq!(text(&talk.turn("B")), "two\n");
    assert_eq!(step_names(&sandbox), ["start", "prompt", "model", "prompt", "model"]);
    let numbers: Vec<u32> = steps(&sandbox).iter().map(|step| step.key.step.0).collect();
    assert_eq!(numbers, [0, 1, 2, 3, 4]);

    talk.agent.cut(&message(1)).unwrap();
    assert_eq!(texts(&talk), [""; 0]);
    assert_eq!(step_names(&sandbox), ["start"]);
    let unknown = talk.agent.cut(&message(1)).unwrap_err();
    assert_eq!(unknown.to_string(), format!("the agent does not know the message {}", message(1)));
    assert_eq!(text(&talk.turn("A")), "one\n");
}

#[test]
fn load_restores_what_was_cut() {
    let sandbox = Sandbox::new();
    let mut talk = ChatFixture::start(&sandbox, counting());
    talk.turn("a");
    talk.turn("b");
    let whole = talk.agent.memory();
    talk.agent.cut(&message(1)).unwrap();
    talk.agent.load(&whole).unwrap();
    assert_eq!(talk.agent.memory(), whole);
    assert_eq!(step_names(&sandbox), ["start", "load"]);
    assert_eq!(text(&talk.turn("c")), "three\n");
    talk.agent.cut(&message(2)).unwrap();
    assert_eq!(texts(&talk), ["a", "one"]);
    assert_eq!(text(&talk.turn("B")), "two\n");

    talk.agent.load(&Value::Null).unwrap();
    assert_eq!(talk.agent.memory(), json!({"agent": "builtin", "messages": []}));
    let foreign = talk.agent.load(&json!({"agent": "claude", "session": "x"})).unwrap_err();
    assert_eq!(foreign.to_string(), "this conversation is not one of builtin's");
    assert_eq!(
        talk.agent.rewind_files(&message(1), RestoreMode::DryRun).unwrap(),
        None::<NativeFiles>
    );
}

#[test]
fn another_session_can_resume_and_cut_it() {
    let sandbox = Sandbox::new();
    let mut talk = ChatFixture::start(&sandbox, counting());
    talk.turn("a");
    talk.turn("b");
    let memory = talk.agent.memory();
    talk.agent.close();

    let other = Sandbox::new();
    let mut options = counting();
    options.memory = memory;
    let mut talk = ChatFixture::start(&other, options);
    talk.prompts = 2;
    assert_eq!(text(&talk.turn("c")), "three\n");
    talk.agent.cut(&message(2)).unwrap();
    assert_eq!(texts(&talk), ["a", "one"]);
    assert_eq!(step_names(&other), ["start", "prompt", "model", "cut"]);
    let states = &*other.workspace.states;
    assert_eq!(last_memory(states, &execution()).unwrap(), Some(talk.agent.memory()));
}

#[test]
fn a_session_that_was_left_open_is_resumed() {
    let sandbox = Sandbox::new();
    let states = || sandbox.another_process().states;
    assert_eq!(last_memory(&*states(), &execution()).unwrap(), None);
    let mut talk = ChatFixture::start(&sandbox, counting());
    talk.turn("a");
    let memory = talk.agent.memory();
    drop(talk);
    assert_eq!(last_memory(&*states(), &execution()).unwrap(), Some(memory.clone()));

    let mut talk = ChatFixture::resume(&sandbox, counting(), 1);
    assert_eq!(talk.agent.memory(), memory);
    assert_eq!(text(&talk.turn("b")), "two\n");
    talk.agent.cut(&message(1)).unwrap();
    assert_eq!(step_names(&sandbox), ["start"], "also what the first process saved");
}

#[test]
fn without_recording_the_agent_works_and_remembers() {
    let sandbox = Sandbox::new();
    let script =
        r#"{"turns":[{"steps":[{"tool":"write_file","input":{"path":"a","content":"b"}}]}]}"#;
    let (say, events) = mpsc::channel();
    let mut capture = capture(&sandbox, &say);
    capture.recording = false;
    let agent = Builtin::start(scenario(script), capture, say).unwrap();
    let mut talk = ChatFixture { agent, received: events, prompts: 0 };
    let events = talk.turn("go");
    assert_eq!(ending(&events), &TurnResult::Done);
    let prompted = ChatEvent::PromptAccepted { message: message(1), session: None, point: None };
    assert!(events.contains(&prompted), "{events:?}");
    assert_eq!(sandbox.read("a"), "b");
    assert_eq!(sandbox.workspace.store.points().unwrap(), []);
    assert_eq!(step_names(&sandbox), ["start", "prompt", "model", "tool write_file"]);
    talk.agent.cut(&message(1)).unwrap();
    assert_eq!(step_names(&sandbox), ["start"]);
}
