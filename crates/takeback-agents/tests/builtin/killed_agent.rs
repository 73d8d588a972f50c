//! A process is killed in the middle of a call, and another one continues.

use std::path::Path;
use std::process::Command;
use std::time::Instant;

use serde_json::json;
use takeback_agents::last_memory;

use super::*;
use crate::real_workspace::open;

const FOLDER: &str = "TAKEBACK_TEST_FOLDER";

fn talk_in(
    folder: &Path,
    start: impl FnOnce(BuiltinOptions, Capture, Sender<ChatEvent>) -> Result<Builtin, AgentError>,
) -> ChatFixture {
    // The command ends when the process that runs it is gone.
    let command =
        "echo x > half; touch begun; while kill -0 $PPID; do sleep 0.05; done 2>/dev/null";
    let script = json!({"turns": [
        {"steps": [{"tool": "write_file", "input": {"path": "a", "content": "a"}}, {"say": "one"}]},
        {"steps": [
            {"tool": "list_files"},
            {"tool": "shell", "input": {"command": command}},
            {"say": "never"},
        ]},
        {"steps": [{"say": "three"}]},
    ]});
    let (say, received) = mpsc::channel();
    let capture = Capture {
        workspace: open(folder),
        session: SessionId::from(SESSION),
        tools: takeback_agents::default_tools(),
        say: say.clone(),
        recording: true,
        formatter: false,
    };
    let agent = start(scenario(&script.to_string()), capture, say).unwrap();
    ChatFixture { agent, received, prompts: 0 }
}

/// The process that is killed. Run as a test, it does nothing.
#[test]
fn killed_process() {
    let Ok(folder) = std::env::var(FOLDER) else { return };
    let mut talk = talk_in(Path::new(&folder), Builtin::start);
    talk.turn("one");
    talk.turn("two");
}

#[test]
fn the_next_process_resumes_with_every_call_answered() {
    let folder = tempfile::tempdir().unwrap();
    std::fs::create_dir(folder.path().join("work")).unwrap();
    let mut child = Command::new(std::env::current_exe().unwrap())
        .args(["--exact", "killed_agent::killed_process"])
        .env(FOLDER, folder.path())
        .spawn()
        .unwrap();
    let begun = Instant::now();
    while !folder.path().join("work/begun").exists() {
        assert!(begun.elapsed() < TIMEOUT && child.try_wait().unwrap().is_none());
        std::thread::sleep(Duration::from_millis(5));
    }
    child.kill().unwrap();
    child.wait().unwrap();

    let states = open(folder.path()).states;
    let memory = last_memory(&*states, &execution()).unwrap().unwrap();
    let results = memory["messages"].as_array().unwrap().last().unwrap()["content"].clone();
    let contents: Vec<&Value> =
        results.as_array().unwrap().iter().map(|result| &result["content"]).collect();
    assert_eq!(contents, ["a", "interrupted"]);

    let mut talk = talk_in(folder.path(), Builtin::resume);
    talk.prompts = 2;
    assert_eq!(talk.agent.memory(), memory);
    assert_eq!(text(&talk.turn("three")), "three\n");
    talk.agent.cut(&message(2)).unwrap();
    assert_eq!(talk.agent.memory()["messages"].as_array().unwrap().len(), 4);
    let query = ListQuery {
        execution: &execution(),
        scope: ListScope::Branch(None),
        after: None,
        limit: None,
    };
    let names: Vec<String> =
        states.list(&query).unwrap().records.into_iter().map(|record| record.step_name).collect();
    assert_eq!(names, ["start", "prompt", "model", "tool write_file", "model"]);
}
