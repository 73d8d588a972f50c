//! Under which prompt a change is counted.

use takeback_core::history::{Stats, authored_lines, settle, stats};
use takeback_core::{AgentEvent, look_around};
use takeback_store::{PointId, Seq, SessionId};
use takeback_testkit::{Sandbox, path};

fn counted(sandbox: &mut Sandbox) -> Stats {
    look_around(&mut sandbox.workspace).unwrap();
    let store = &*sandbox.workspace.store;
    let mut changes = store.changes_after(Seq(0)).unwrap();
    settle(store, &mut changes).unwrap();
    stats(store, &changes, &store.points().unwrap()).unwrap()
}

/// The added lines under each prompt.
fn by_prompt(stats: &Stats) -> Vec<(&str, usize)> {
    let row = |prompt: &'_ (takeback_store::Point, _)| prompt.0.description.clone();
    assert!(stats.prompts.iter().map(row).is_sorted(), "oldest first");
    let added = stats
        .prompts
        .iter()
        .map(|(point, written)| (point.description.as_str(), written.count.lines.insertions));
    added.collect()
}

fn points_of_lines(sandbox: &Sandbox, file: &str) -> Vec<Option<PointId>> {
    let lines = authored_lines(&sandbox.workspace, &path(file)).unwrap().lines;
    lines.iter().map(|line| line.writer.point.as_ref().map(|point| point.id)).collect()
}

#[test]
fn a_subagents_work_belongs_to_the_prompt_that_started_it() {
    let mut sandbox = Sandbox::in_memory();
    sandbox.write("a", "");
    sandbox.prompt("s", "0 before");
    sandbox.turn_end("s");
    let first = sandbox.prompt("s", "1 delegate");
    sandbox.agent_writes("s", "b", "main\n");
    for part in ["s/one", "s/two"] {
        sandbox.tell(&AgentEvent::SessionStart {
            session: SessionId::from(part),
            agent: None,
            parent: Some(SessionId::from("s")),
            owner: None,
            model: None,
        });
    }
    sandbox.agent_writes("s/one", "a", "one\n");
    sandbox.agent_writes("s/two", "a", "one\ntwo\n");
    sandbox.turn_end("s/two");
    sandbox.turn_end("s");
    // The first one continues in the background.
    let second = sandbox.prompt("s", "2 go on");
    sandbox.agent_writes("s/one", "a", "one\ntwo\nthree\n");
    sandbox.agent_writes("s/two", "a", "one\ntwo\nthree\nfour\n");
    let stats = counted(&mut sandbox);
    assert_eq!(by_prompt(&stats), [("1 delegate", 4), ("2 go on", 1)]);
    let points = points_of_lines(&sandbox, "a");
    assert_eq!(points, [first, first, first, second].map(Some));
}

#[test]
fn a_session_with_a_slash_in_its_name_is_no_subagent() {
    let mut sandbox = Sandbox::in_memory();
    sandbox.write("a", "");
    let mine = sandbox.prompt("s", "1 mine");
    sandbox.agent_writes("s/own", "a", "one\n");
    let stats = counted(&mut sandbox);
    assert_eq!(by_prompt(&stats), [("", 1)], "its first call has a point");
    assert_ne!(points_of_lines(&sandbox, "a"), [Some(mine)]);
}

#[test]
fn what_an_open_call_wrote_is_under_its_prompt_until_another_prompt_makes_it_doubtful() {
    let mut sandbox = Sandbox::in_memory();
    sandbox.write("a", "");
    sandbox.prompt("s", "1 edit");
    sandbox.before_edit("s", &["a"]);
    sandbox.write("a", "one\n");
    assert_eq!(by_prompt(&counted(&mut sandbox)), [("1 edit", 1)]);
    sandbox.prompt("s", "2 next");
    assert_eq!(by_prompt(&counted(&mut sandbox)), [("1 edit", 1)], "it was seen while it ran");

    let mut sandbox = Sandbox::in_memory();
    sandbox.write("a", "");
    sandbox.prompt("s", "1 edit");
    sandbox.before_edit("s", &["a"]);
    sandbox.write("a", "one\n");
    // The call may have been refused, and the edit yours.
    sandbox.prompt("s", "2 next");
    sandbox.agent_writes("s", "a", "one\ntwo\n");
    let stats = counted(&mut sandbox);
    assert_eq!(by_prompt(&stats), [("2 next", 1)]);
    assert_eq!(stats.unclear.count.lines.insertions, 1);
}
