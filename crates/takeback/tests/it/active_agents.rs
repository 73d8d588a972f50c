//! A rewind while an agent is at work says so, and asks.

use serde_json::{Value, json};

use crate::record::{Agent, Recorder, before};
use crate::user::User;

const ASKED: &str = "Proceed? [y/N]";

fn prompt(text: &str) -> Value {
    json!({"event": "prompt", "session": "s", "message": text, "text": text})
}

fn edit(user: &User, recorder: &mut Recorder, text: &str) {
    let edit = |event: &str| json!({"event": event, "session": "s", "call": text, "tool": "Edit", "paths": ["a.txt"]});
    recorder.record(&edit("before_tool"));
    user.write("a.txt", text);
    recorder.record(&edit("after_tool"));
}

/// An agent that has edited `a.txt`, and whose command is running.
fn at_work(user: &User, agent: &Agent) -> Recorder {
    let pid = agent.pid().to_string();
    let mut recorder = Recorder::start(user, &["--pid", &pid]);
    recorder.record(&prompt("go"));
    edit(user, &mut recorder, "agent\n");
    recorder.record(&before("s", "c"));
    recorder
}

#[test]
fn an_open_call_is_named_and_asked_about() {
    let user = User::with(&[("a.txt", "one\n")]);
    let agent = Agent::start();
    let mut recorder = at_work(&user, &agent);
    let asked = user.terminal(90, 24).run(&["rewind", "go"], ASKED, "n\r");
    let screen = asked.shown();
    let said = "s is at work (Bash is running). What it writes afterwards is kept.";
    assert!(screen.contains(said), "{screen}");
    assert!(screen.find(said) < screen.find(ASKED), "before the question\n{screen}");
    assert_eq!(user.read("a.txt"), "agent\n");

    let done = user.takeback(&["rewind", "go", "-y"]);
    assert_eq!((done.code, user.read("a.txt")), (0, "one\n".to_owned()), "{done:?}");
    let said = "s was at work (Bash was running). What it writes afterwards is kept.";
    assert!(done.out.contains(said), "{done:?}");
    edit(&user, &mut recorder, "agent again\n");
    recorder.record(&before("s", "d"));
    let done = user.json(&["rewind", "go", "-y"]);
    assert_eq!(
        (&done["atWork"][0]["session"], &done["atWork"][0]["tool"]),
        (&json!("s"), &json!("Bash"))
    );
    assert_eq!(recorder.close(), 0);
}

#[test]
fn an_agent_that_is_done_or_dead_is_not_at_work() {
    let user = User::with(&[("a.txt", "one\n")]);
    let agent = Agent::start();
    let mut recorder = at_work(&user, &agent);
    recorder.record(&json!({"event": "after_tool", "session": "s", "call": "c"}));
    let told = user.json(&["rewind", "go", "--dry-run"]);
    assert_eq!(told["atWork"][0]["tool"], Value::Null, "it may call the next tool: {told}");
    assert_eq!(told["atWork"][0]["session"], "s");
    recorder.record(&json!({"event": "turn_end", "session": "s"}));
    assert_eq!(user.json(&["rewind", "go", "--dry-run"]).get("atWork"), None, "its turn is over");
    recorder.record(&prompt("again"));
    recorder.record(&before("s", "d"));
    assert!(user.json(&["rewind", "go", "--dry-run"]).get("atWork").is_some());
    let told = user.takeback(&["rewind", "go", "--dry-run"]);
    assert!(told.out.contains("s is at work (Bash is running)"), "{told:?}");
    let status = user.takeback(&["status"]).out;
    assert!(status.contains("agent s is at work (last prompt just now)"), "{status}");
    assert_eq!(user.json(&["sessions"])[0]["atWork"], true);
    agent.kill();
    assert_eq!(user.json(&["rewind", "go", "--dry-run"]).get("atWork"), None, "it is dead");
    assert_eq!(user.json(&["sessions"])[0]["atWork"], false);
    assert!(!user.takeback(&["status"]).out.contains("at work"));
    assert_eq!(recorder.close(), 0);
    let done = user.takeback(&["rewind", "go", "-y"]);
    assert!(!done.out.contains("at work"), "{done:?}");
    user.succeeds(&["run", "--", "sh", "-c", "echo run > a.txt"]);
    let done = user.takeback(&["rewind", "@", "-y"]);
    assert!(!done.out.contains("at work"), "a command that has ended: {done:?}");
}

#[test]
fn every_action_that_writes_files_names_the_agents_at_work() {
    let user = User::with(&[("a.txt", "1\n2\n3\n4\n5\n")]);
    let agent = Agent::start();
    let pid = agent.pid().to_string();
    let mut recorder = Recorder::start(&user, &["--pid", &pid]);
    recorder.record(&prompt("go"));
    edit(&user, &mut recorder, "one\n2\n3\n4\nfive\n");
    recorder.record(&json!({"event": "turn_end", "session": "s"}));
    user.write("a.txt", "one\n2\n3\n4\nfive, by me\n");
    user.succeeds(&["checkpoint", "mine"]);
    let open = "s is at work (Bash is running). What it writes afterwards is kept.";
    let was = "s was at work (Bash was running). What it writes afterwards is kept.";
    recorder.record(&prompt("more"));
    recorder.record(&before("s", "c"));
    for args in [
        &["revert", "go"][..],
        &["resolve", "--take", "before"],
        &["restore", "a.txt", "--from", "mine"],
    ] {
        let shown = user.terminal(90, 24).run(args, ASKED, "n\r").shown();
        assert!(shown.contains(open), "{args:?}\n{shown}");
        assert!(shown.find(open) < shown.find(ASKED), "before the question\n{shown}");
        let told = user.json(&[args, &["--dry-run"]].concat());
        assert_eq!(told["atWork"][0]["session"], "s", "{args:?}: {told}");
        let done = user.takeback(&[args, &["-y"]].concat());
        assert!(done.out.contains(was), "{args:?} {done:?}");
    }
    let undone = user.takeback(&["undo", "-y"]);
    assert!(!undone.out.contains("at work"), "{undone:?}");
    assert_eq!(recorder.close(), 0);
}
