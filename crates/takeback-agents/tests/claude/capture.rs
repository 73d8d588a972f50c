//! What is recorded while the program works, and when.

use std::collections::BTreeSet;
use std::time::Duration;

use serde_json::json;
use takeback_agents::{ChatEvent, TurnResult};
use takeback_core::lock::{Hold, lock};
use takeback_store::{Author, Change, PointKind};
use takeback_testkit::model::{Answer, Block};

use crate::lab::{run, trusting};

/// While another process has locked the workspace, nothing can be recorded, so the program has to wait.
///
/// Long enough that it would have continued by then; a slow machine makes the test pass, not fail.
const LONG_ENOUGH: Duration = Duration::from_millis(700);

#[test]
fn a_tool_waits_until_what_it_may_overwrite_is_durable() {
    let Some(mut lab) = trusting() else { return };
    lab.sandbox.write("a.txt", "mine\n");
    let calls = [
        Block::tool("Bash", json!({ "command": "echo theirs > a.txt" })),
        Block::tool("Write", lab.write("b.txt", "theirs\n")[0]["input"].clone()),
    ];
    for call in calls {
        // The model thinks until the workspace is locked.
        let answer = Answer::Later(Duration::from_millis(300), Box::new(Answer::Says(vec![call])));
        lab.model.answer(answer);
        let message = lab.prompt("one", &json!(["never", "ok"]));
        lab.until(|event| matches!(event, ChatEvent::PromptAccepted { .. }));
        let held =
            lock(&lab.lock_file(), Hold::Exclusive, Duration::from_secs(60)).unwrap().unwrap();
        lab.until(|event| matches!(event, ChatEvent::Tool { .. }));
        std::thread::sleep(LONG_ENOUGH);
        assert_eq!(lab.sandbox.read("a.txt"), "mine\n");
        assert!(!lab.sandbox.exists("b.txt"));
        drop(held);
        let events = lab.until(|event| matches!(event, ChatEvent::TurnEnd(_)));
        assert_eq!(events.last(), Some(&ChatEvent::TurnEnd(TurnResult::Done)));
        assert!(
            !events.iter().any(|event| matches!(event, ChatEvent::NotRecorded(_))),
            "{events:#?}"
        );
        assert!(lab.sandbox.read("a.txt") == "theirs\n" || lab.sandbox.exists("b.txt"));
        assert!(lab.rewind_to(&message).is_whole());
        assert_eq!(lab.sandbox.read("a.txt"), "mine\n");
        assert!(!lab.sandbox.exists("b.txt"));
    }
}

/// The next call comes after the last one was recorded.
#[test]
fn the_model_continues_when_a_tools_changes_are_durable() {
    let Some(lab) = trusting() else { return };
    let script = json!([run("until [ -e go ]; do sleep 0.1; done"), "ok"]);
    lab.prompt("one", &script);
    lab.until(|event| matches!(event, ChatEvent::Tool { .. }));
    // The call is in the log as soon as the program may begin it.
    while lab.sandbox.workspace.store.live_calls().unwrap().is_empty() {
        std::thread::yield_now();
    }
    let asked = lab.model.asked().len();
    let held = lock(&lab.lock_file(), Hold::Exclusive, Duration::from_secs(60)).unwrap().unwrap();
    lab.sandbox.write("go", "");
    std::thread::sleep(LONG_ENOUGH);
    assert_eq!(lab.model.asked().len(), asked);
    drop(held);
    lab.until(|event| matches!(event, ChatEvent::TurnEnd(_)));
    assert!(lab.model.asked().len() > asked);
    assert!(lab.sandbox.workspace.store.live_calls().unwrap().is_empty());
}

#[test]
fn concurrent_subagents_are_rewound_with_the_prompt() {
    let Some(mut lab) = trusting() else { return };
    lab.sandbox.write("mine.txt", "mine\n");
    let before = lab.sandbox.tree();
    // Each waits for the other, so both calls are open at once.
    let meet = |mine: &str, other: &str| {
        run(&format!(
            "echo x > {mine}; until [ -e {other} ]; do sleep 0.05; done; echo y >> {mine}"
        ))
    };
    let first = json!([meet("one", "two"), lab.write("deep/one.txt", "1\n"), "done one"]);
    let second = json!([meet("two", "one"), run("rm mine.txt"), "done two"]);
    let tasks = json!([lab.task("first job", &first), lab.task("second job", &second)]);
    let (message, events) = lab.turn("go", &json!([tasks, "all done"]));
    let titles: Vec<&str> = events
        .iter()
        .filter_map(|event| match event {
            ChatEvent::Tool { title, .. } => Some(title.as_str()),
            _ => None,
        })
        .collect();
    assert!(
        titles.contains(&"Task first job") && titles.contains(&"Write deep/one.txt"),
        "{titles:?}"
    );
    let event: String = events
        .iter()
        .filter_map(|event| match event {
            ChatEvent::Text(text) => Some(text.as_str()),
            _ => None,
        })
        .collect();
    assert_eq!(event, "all done", "what subagents say is for the agent");
    let ends =
        events.iter().filter(|event| matches!(event, ChatEvent::ToolEnd { ok: true, .. })).count();
    assert_eq!(ends, titles.len());
    assert!(!lab.sandbox.exists("mine.txt"));

    let store = &lab.sandbox.workspace.store;
    // The agent saves a file through a temporary name next to it. The other subagent's hook may scan at
    // that moment and see it.
    let is_temporary = |change: &Change| change.path.display().starts_with("deep/one.txt.tmp.");
    let changes: Vec<Change> = store
        .changes_after(takeback_store::Seq(0))
        .unwrap()
        .into_iter()
        .filter(|change| !is_temporary(change))
        .collect();
    let by_subagents = |author: &Author| match author {
        Author::Agent { session, .. } => session.0.starts_with("talk/"),
        _ => false,
    };
    let theirs: BTreeSet<String> = changes
        .iter()
        .filter(|change| by_subagents(&change.author))
        .map(|change| change.path.display())
        .collect();
    let expected = ["deep", "deep/one.txt", "mine.txt", "one", "two"].map(str::to_owned);
    assert_eq!(theirs, BTreeSet::from(expected));
    let in_doubt =
        changes.iter().filter(|change| matches!(change.author, Author::Ambiguous { .. }));
    assert_eq!(in_doubt.count(), 0, "{changes:#?}");
    let points = store.points().unwrap();
    assert_eq!(points.iter().filter(|point| point.kind == PointKind::Prompt).count(), 1);
    let sessions = store.sessions().unwrap();
    assert_eq!(sessions.len(), 3);
    assert!(sessions.iter().all(|session| session.open_turn.is_none()), "{sessions:#?}");

    let receipt = lab.rewind_to(&message);
    assert!(receipt.is_whole(), "{receipt:#?}");
    assert_eq!(lab.sandbox.tree(), before);
}

#[test]
fn a_users_edit_between_two_turns_stays() {
    let Some(mut lab) = trusting() else { return };
    let (first, _) = lab.turn("one", &json!([lab.write("a.txt", "1\n2\n3\n4\n5\n"), "ok"]));
    let (second, _) = lab.turn("two", &json!([lab.edit("a.txt", "5", "five"), "ok"]));
    lab.sandbox.write("a.txt", "ONE\n2\n3\n4\nfive\n");
    assert!(lab.rewind_to(&second).is_whole());
    assert_eq!(lab.sandbox.read("a.txt"), "ONE\n2\n3\n4\n5\n");
    lab.rewind_to(&first);
    assert!(lab.sandbox.exists("a.txt"), "what a person added to it is not deleted");
}
