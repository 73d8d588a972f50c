//! Recorded output of the real program, replayed by a script: these tests need no `claude`.
//!
//! `recorded/` is from version 2.1.325 against a scripted model; long lists and paths were shortened.

use std::ffi::OsString;
use std::os::unix::fs::PermissionsExt as _;
use std::sync::mpsc::Receiver;
use std::time::Duration;

use serde_json::Value;
use takeback_agents::{
    AgentError, ChatAgent as _, ChatEvent, Claude, ClaudeOptions, NativeFiles, NativeFilesError,
    RestoreMode, TurnResult,
};
use takeback_testkit::Sandbox;

use crate::lab::start;

pub(crate) struct ReplayAgent {
    pub(crate) claude: Claude,
    pub(crate) received: Receiver<ChatEvent>,
    pub(crate) sandbox: Sandbox,
}

/// A program that answers each line that it reads with the next of `answers`.
pub(crate) fn replay(answers: &[&str]) -> ReplayAgent {
    let sandbox = Sandbox::new();
    let mut script = String::from("#!/bin/sh\n");
    for (number, answer) in answers.iter().enumerate() {
        let file = sandbox.outside().join(format!("answer-{number}"));
        std::fs::write(&file, answer).unwrap();
        script += &format!("read -r line\ncat '{}'\n", file.display());
    }
    script += "while read -r line; do :; done\n";
    replay_script(sandbox, &script)
}

pub(crate) fn replay_script(sandbox: Sandbox, script: &str) -> ReplayAgent {
    replay_with(sandbox, script, |_| {})
}

/// Runs `script` as the program, with options changed by `adjust`.
pub(crate) fn replay_with(
    sandbox: Sandbox,
    script: &str,
    adjust: impl FnOnce(&mut ClaudeOptions),
) -> ReplayAgent {
    let program = sandbox.outside().join("claude");
    std::fs::write(&program, script).unwrap();
    std::fs::set_permissions(&program, std::fs::Permissions::from_mode(0o755)).unwrap();
    let mut options = ClaudeOptions {
        program,
        extra_args: Vec::new(),
        folder: sandbox.root(),
        model: None,
        environment: vec![(OsString::from("PATH"), std::env::var_os("PATH").unwrap_or_default())],
        checkpointing: true,
        resume: Value::Null,
    };
    adjust(&mut options);
    let (claude, received) = start(&sandbox, &options);
    ReplayAgent { claude, received, sandbox }
}

impl ReplayAgent {
    pub(crate) fn until(&self, ends: impl Fn(&ChatEvent) -> bool) -> Vec<ChatEvent> {
        let mut events = Vec::new();
        loop {
            let event = self.received.recv_timeout(Duration::from_secs(60));
            events.push(event.unwrap_or_else(|_| panic!("no such event; got: {events:#?}")));
            if events.last().is_some_and(&ends) {
                return events;
            }
        }
    }
}

pub(crate) const MESSAGE: &str = "00000000-0000-4000-8000-000000000001";
pub(crate) const TURN: &str = include_str!("recorded/turn.jsonl");
const INTERRUPTED: &str = include_str!("recorded/interrupted.jsonl");
pub(crate) const OWN_FILES: &str = include_str!("recorded/own_files.jsonl");

pub(crate) fn first_line(text: &str) -> (&str, &str) {
    text.split_once('\n').unwrap()
}

/// Describes an event, without what differs from run to run.
fn describe(event: &ChatEvent) -> String {
    match event {
        ChatEvent::Ready { session, model } => {
            format!("ready {} {}", session.is_some(), model.as_deref().unwrap_or("-"))
        }
        ChatEvent::PromptAccepted { message, session, point } => {
            format!("prompted {} {} {}", message == MESSAGE, session.is_some(), point.is_some())
        }
        ChatEvent::Text(text) => format!("text {text}"),
        ChatEvent::TurnBegin => "turn begin".to_owned(),
        ChatEvent::TextEnd => "text end".to_owned(),
        ChatEvent::Tool { title, .. } => format!("tool {title}"),
        ChatEvent::ToolEnd { ok, line, changes, .. } => {
            format!("tool end {ok} {line} {}", changes.is_some())
        }
        ChatEvent::PermissionRequest(permission) => {
            format!("asks {}: {}", permission.title, permission.detail)
        }
        ChatEvent::TurnEnd(ending) => format!("turn end {ending:?}"),
        ChatEvent::NotRecorded(why) => format!("unrecorded {why}"),
        ChatEvent::Note(note) => format!("note {note}"),
        ChatEvent::Ended(why) => format!("gone {why}"),
    }
}

#[test]
fn a_turn_with_a_subagent_is_reported_in_order() {
    let (ready, turn) = first_line(TURN);
    let replayed = replay(&[&format!("{ready}\n"), turn]);
    replayed.claude.prompt(MESSAGE, "one").unwrap();
    let events = replayed.until(|event| matches!(event, ChatEvent::TurnEnd(_)));
    let events: Vec<String> = events.iter().map(describe).collect();
    // The tools' paths are in another folder than that of this test.
    let expected = [
        "ready false -",
        "prompted true true true",
        "ready true claude-opus-5-5",
        "text Now.",
        "text end",
        "tool Write /proj/a.txt",
        "asks Write /proj/a.txt: one\n",
        "tool end true created false",
        "tool $ echo deny > b.txt; exit 0",
        "asks $ echo deny > b.txt; exit 0: echo deny > b.txt; exit 0",
        "tool end false not that false",
        "tool $ exit 3",
        "asks $ exit 3: exit 3",
        "tool end false exit 3 false",
        "tool Task a job",
        "tool Write /proj/sub.txt",
        "asks Write /proj/sub.txt: x",
        "tool end true created false",
        "tool end true done false",
        "text all done",
        "text end",
        "turn end Done",
    ];
    assert_eq!(events, expected);
    let memory = replayed.claude.memory();
    assert_eq!(memory["prompts"], serde_json::json!([{ "message": MESSAGE, "after": null }]));
    assert!(TURN.contains(memory["upTo"].as_str().unwrap()));
}

#[test]
fn an_interrupted_turn_ends_as_such() {
    let (ready, _) = first_line(TURN);
    let replayed = replay(&[&format!("{ready}\n"), INTERRUPTED]);
    replayed.claude.prompt("00000000-0000-4000-8000-000000000002", "two").unwrap();
    let events = replayed.until(|event| matches!(event, ChatEvent::TurnEnd(_)));
    assert_eq!(events.last(), Some(&ChatEvent::TurnEnd(TurnResult::Interrupted)));
    let [.., ChatEvent::ToolEnd { ok: false, line, .. }, _] = events.as_slice() else {
        panic!("{events:#?}")
    };
    assert_eq!(line, "interrupted");
}

#[test]
fn rewind_answers_and_errors_are_parsed() {
    let (ready, _) = first_line(TURN);
    let answers: Vec<String> =
        [ready].into_iter().chain(OWN_FILES.lines()).map(|line| format!("{line}\n")).collect();
    let replayed = replay(&answers.iter().map(String::as_str).collect::<Vec<_>>());
    let dry = replayed.claude.rewind_files(MESSAGE, RestoreMode::DryRun).unwrap();
    assert_eq!(dry, Some(NativeFiles { paths: vec!["/proj/a.txt".into()] }));
    let real = replayed.claude.rewind_files(MESSAGE, RestoreMode::Apply).unwrap();
    assert_eq!(real, Some(NativeFiles::default()));
    for mode in [RestoreMode::DryRun, RestoreMode::Apply] {
        let unknown = replayed.claude.rewind_files(MESSAGE, mode);
        assert!(matches!(unknown, Err(NativeFilesError::NoCheckpoint)), "{mode:?} {unknown:?}");
    }
}

/// Lines of a script that answer a request with any id.
const ANSWER: &str = r#"read -r line
id=${line#*\"request_id\":\"}
echo '{"type":"control_response","response":{"subtype":"success","request_id":"'"${id%%\"*}"'"}}'
"#;

#[test]
fn a_program_that_restores_too_slowly_is_killed() {
    let sandbox = Sandbox::new();
    let pid = sandbox.outside().join("pid");
    let script = format!(
        "#!/bin/sh\necho $$ > '{}'\n{ANSWER}while read -r line; do :; done\n",
        pid.display()
    );
    let ReplayAgent { claude, received, sandbox } = replay_script(sandbox, &script);
    let claude = claude.with_files_timeout(Duration::from_millis(50));
    let replayed = ReplayAgent { claude, received, sandbox };
    replayed.until(|event| matches!(event, ChatEvent::Ready { .. }));
    let real = replayed.claude.rewind_files(MESSAGE, RestoreMode::Apply);
    assert!(matches!(real, Err(NativeFilesError::Agent(AgentError::Timeout(_)))), "{real:?}");
    let pid: u32 = std::fs::read_to_string(pid).unwrap().trim().parse().unwrap();
    assert!(!std::path::Path::new(&format!("/proc/{pid}")).exists(), "{pid} still runs");
    assert!(!replayed.claude.is_live());
    let events = replayed.until(|event| matches!(event, ChatEvent::Ended(_)));
    assert_eq!(events, [ChatEvent::Ended("it did not answer in time".to_owned())]);
    replayed.claude.load(&Value::Null).unwrap();
    assert!(replayed.claude.is_live());
}

#[test]
fn invalid_json_is_reported_once_and_unknown_messages_are_ignored() {
    let (ready, _) = first_line(TURN);
    let odd = "oh\n{\"type\":\"weather\",\"sun\":1}\n{\"type\":\"user\"}\n\nno\n";
    let result = "{\"type\":\"result\",\"subtype\":\"success\"}\n";
    let replayed = replay(&[&format!("{ready}\n"), &format!("{odd}{result}")]);
    replayed.claude.prompt(MESSAGE, "one").unwrap();
    let events = replayed.until(|event| matches!(event, ChatEvent::TurnEnd(_)));
    let events: Vec<String> = events.iter().map(describe).collect();
    let expected =
        ["ready false -", "note claude printed a line that is not JSON: oh", "turn end Done"];
    assert_eq!(events, expected);
}

#[test]
fn the_end_of_the_program_has_a_reason() {
    let script = "#!/bin/sh\nread -r line\necho first >&2\necho 'not logged in' >&2\nexit 3\n";
    let replayed = replay_script(Sandbox::new(), script);
    let events = replayed.until(|event| matches!(event, ChatEvent::Ended(_)));
    assert_eq!(events, [ChatEvent::Ended("not logged in".to_owned())]);
    assert!(!replayed.claude.is_live());
    let silent = replay_script(Sandbox::new(), "#!/bin/sh\nread -r line\nexit 3\n");
    let events = silent.until(|event| matches!(event, ChatEvent::Ended(_)));
    assert_eq!(events, [ChatEvent::Ended("it ended with code 3".to_owned())]);
}

#[test]
fn a_program_that_ignores_an_interrupt_is_killed() {
    let (ready, _) = first_line(TURN);
    let replayed = replay(&[&format!("{ready}\n")]);
    replayed.claude.prompt(MESSAGE, "one").unwrap();
    replayed.claude.interrupt().unwrap();
    let events = replayed.until(|event| matches!(event, ChatEvent::Ended(_)));
    let events: Vec<String> = events.iter().map(describe).collect();
    let expected =
        ["ready false -", "turn end Interrupted", "gone it did not stop when it was interrupted"];
    assert_eq!(events, expected);
}

const RESULT: &str = "{\"type\":\"result\",\"subtype\":\"success\"}\n";

fn lifecycle() -> String {
    let is_started = |line: &&str| line.contains("command_lifecycle") && line.contains("started");
    format!("{}\n", TURN.lines().find(is_started).unwrap())
}

#[test]
fn a_waiting_prompt_is_interrupted_when_its_turn_starts() {
    let (ready, _) = first_line(TURN);
    let aborted = INTERRUPTED.lines().last().unwrap();
    assert!(aborted.contains("aborted_tools"));
    // The start, the prompt, the interrupt, and the second one after the turn has started.
    let replayed = replay(&[&format!("{ready}\n"), "", &lifecycle(), &format!("{aborted}\n")]);
    replayed.claude.prompt(MESSAGE, "one").unwrap();
    replayed.claude.interrupt().unwrap();
    let events =
        replayed.until(|event| matches!(event, ChatEvent::TurnEnd(_) | ChatEvent::Ended(_)));
    assert_eq!(events.last(), Some(&ChatEvent::TurnEnd(TurnResult::Interrupted)));
    assert!(replayed.claude.is_live(), "it was not killed for that");
}

#[test]
fn the_end_of_the_programs_own_turn_does_not_end_the_prompts_turn() {
    let (ready, _) = first_line(TURN);
    let is_hook = |line: &&str| line.contains("\"UserPromptSubmit\"");
    let itself = TURN.lines().find(is_hook).unwrap().replace("one <<LAB", "a task has ended");
    let answer = format!("{itself}\n{RESULT}{}{RESULT}", lifecycle());
    let replayed = replay(&[&format!("{ready}\n"), &answer]);
    replayed.claude.prompt(MESSAGE, "one").unwrap();
    let events = replayed.until(|event| matches!(event, ChatEvent::TurnEnd(_)));
    let events: Vec<String> = events.iter().map(describe).collect();
    assert_eq!(events, ["ready false -", "prompted true true true", "turn end Done"]);
}

#[test]
fn a_program_that_may_not_stop_continues_the_same_turn() {
    let (ready, _) = first_line(TURN);
    let stop = TURN.lines().find(|line| line.contains("\"callback_id\":\"Stop\"")).unwrap();
    let hook = |name: &str| {
        let is_it = |line: &&str| {
            line.contains(&format!("\"callback_id\":\"{name}\"")) && line.contains("\"Bash\"")
        };
        TURN.lines().find(is_it).unwrap()
    };
    let (call, called) = (hook("PreToolUse"), hook("PostToolUseFailure"));
    let answer = format!("{}{stop}\n{call}\n{called}\n{stop}\n{RESULT}", lifecycle());
    let replayed = replay(&[&format!("{ready}\n"), &answer]);
    replayed.claude.prompt(MESSAGE, "one").unwrap();
    replayed.until(|event| matches!(event, ChatEvent::TurnEnd(_)));
    let store = &replayed.sandbox.workspace.store;
    let points: Vec<String> =
        store.points().unwrap().into_iter().map(|point| point.description).collect();
    assert_eq!(points, ["one"]);
    let session = takeback_store::SessionId::from(crate::lab::SESSION);
    assert_eq!(store.session(&session).unwrap().unwrap().open_turn, None);
}

#[test]
fn changes_are_in_the_log_before_the_program_may_stop() {
    let stop = TURN.lines().find(|line| line.contains("\"callback_id\":\"Stop\"")).unwrap();
    let sandbox = Sandbox::new();
    let answer = sandbox.outside().join("answer");
    std::fs::write(&answer, format!("{}{stop}\n", lifecycle())).unwrap();
    let script = format!(
        "#!/bin/sh\n{ANSWER}read -r line\necho mine > mine.txt\ncat '{}'\nread -r line\n\
         echo '{{\"type\":\"system\",\"subtype\":\"init\",\"session_id\":\"stopped\"}}'\n\
         while read -r line; do :; done\n",
        answer.display()
    );
    let replayed = replay_script(sandbox, &script);
    replayed.claude.prompt(MESSAGE, "one").unwrap();
    replayed.until(|event| matches!(event, ChatEvent::Ready { session: Some(_), .. }));
    let changes = replayed.sandbox.workspace.store.changes_after(takeback_store::Seq(0)).unwrap();
    assert!(changes.iter().any(|change| change.path == takeback_testkit::path("mine.txt")));
}

/// A program that is killed while its shell continues, which writes `late.txt` when `go` exists. `start`
/// starts the shell.
fn killed_in_a_command(start: &str) -> ReplayAgent {
    let sandbox = Sandbox::new();
    let hook = |name: &str| {
        let is_it = |line: &&str| line.contains(&format!("\"callback_id\":\"{name}\""));
        TURN.lines().filter(is_it).find(|line| name == "Stop" || line.contains("\"Bash\"")).unwrap()
    };
    let answer = sandbox.outside().join("answer");
    std::fs::write(&answer, format!("{}{}\n", lifecycle(), hook("PreToolUse"))).unwrap();
    let pid = sandbox.outside().join("pid");
    let shell = "echo $$ > \"$0\"; until [ -e go ]; do sleep 0.05; done; echo late > late.txt";
    let script = format!(
        "#!/bin/sh\n{ANSWER}read -r line\ncat '{}'\nread -r line\n\
         {start} setsid sh -c '{shell}' '{pid}' >/dev/null 2>&1 </dev/null &\n\
         until [ -s '{pid}' ]; do sleep 0.05; done\nkill -9 $$\n",
        answer.display(),
        pid = pid.display(),
    );
    let replayed = replay_script(sandbox, &script);
    replayed.claude.prompt(MESSAGE, "one").unwrap();
    let events = replayed.until(|event| matches!(event, ChatEvent::Ended(_)));
    assert_eq!(events.last(), Some(&ChatEvent::Ended("it was killed by signal 9".to_owned())));
    replayed
}

#[test]
fn a_command_of_a_killed_program_is_killed_too() {
    let replayed = killed_in_a_command("");
    let pid = std::fs::read_to_string(replayed.sandbox.outside().join("pid")).unwrap();
    let environment = std::fs::read(format!("/proc/{}/environ", pid.trim())).unwrap_or_default();
    assert_eq!(environment, b"", "it still runs");
    let store = &replayed.sandbox.workspace.store;
    assert_eq!(store.live_calls().unwrap(), []);
    let session = takeback_store::SessionId::from(crate::lab::SESSION);
    assert_eq!(store.session(&session).unwrap().unwrap().open_turn, None);
}

#[test]
fn writes_of_a_command_that_outlived_its_program_are_not_the_users() {
    let mut replayed = killed_in_a_command("env -i PATH=\"$PATH\"");
    replayed.claude.close();
    replayed.sandbox.write("go", "");
    while !replayed.sandbox.exists("late.txt") {
        std::thread::yield_now();
    }
    takeback_core::look_around(&mut replayed.sandbox.workspace).unwrap();
    let changes = replayed.sandbox.workspace.store.changes_after(takeback_store::Seq(0)).unwrap();
    let late = changes.iter().find(|change| change.path == takeback_testkit::path("late.txt"));
    let known = replayed.sandbox.workspace.store.attribution(late.unwrap()).unwrap();
    let session = takeback_store::SessionId::from(crate::lab::SESSION);
    assert_eq!(known.author.sessions(), [session]);
    assert_eq!(known.evidence, takeback_store::Evidence::OpenWindow);
}

#[test]
fn a_subagents_message_is_not_part_of_the_conversation() {
    let (ready, turn) = first_line(TURN);
    let is_subagents = |line: &str| line.contains("\"parent_tool_use_id\":\"toolu");
    let until = turn.lines().position(|line| is_subagents(line) && line.contains("\"tool_use\""));
    let lines: Vec<&str> = turn.lines().take(until.unwrap() + 1).collect();
    let replayed = replay(&[&format!("{ready}\n"), &format!("{}\n", lines.join("\n"))]);
    replayed.claude.prompt(MESSAGE, "one").unwrap();
    replayed.until(|event| describe(event) == "tool Write /proj/sub.txt");
    let memory = replayed.claude.memory();
    let last = memory["upTo"].as_str().unwrap();
    let line = TURN.lines().find(|line| line.contains(&format!("\"uuid\":\"{last}\""))).unwrap();
    assert!(!is_subagents(line), "{line}");
}
