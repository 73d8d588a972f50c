//! The scenarios of the design for file checkpoints through the Claude Agent SDK that are about the
//! program itself: its arguments, its messages, and whether it runs.

use std::ffi::OsString;

use takeback_agents::{
    AgentError, ChatAgent as _, ChatEvent, Checkpoint, Metadata, NativeFiles, NativeFilesError,
    RestoreMode, checkpoint_description,
};
use takeback_store::{PointKind, Timestamp};
use takeback_testkit::Sandbox;

use crate::lab::SESSION;
use crate::replay::{
    MESSAGE, OWN_FILES, ReplayAgent, TURN, first_line, replay, replay_script, replay_with,
};

const VARIABLE: &str = "CLAUDE_CODE_ENABLE_SDK_FILE_CHECKPOINTING";

// 处理用户消息并捕获检查点
#[test]
fn a_user_message_is_accepted_and_captured_as_a_checkpoint() {
    let (ready, turn) = first_line(TURN);
    assert!(turn.matches(r#""type":"user""#).count() > 1, "results of tools are such messages too");
    let replayed = replay(&[&format!("{ready}\n"), turn]);
    replayed.claude.prompt(MESSAGE, "one").unwrap();
    let events = replayed.until(|event| matches!(event, ChatEvent::TurnEnd(_)));
    let prompted: Vec<(&str, Option<&str>)> = events
        .iter()
        .filter_map(|event| match event {
            ChatEvent::PromptAccepted { message, session, .. } => {
                Some((message.as_str(), session.as_deref()))
            }
            _ => None,
        })
        .collect();
    let theirs = "4156c62e-72b9-41e6-8779-ca3d55b29b8e";
    assert_eq!(prompted, [(MESSAGE, Some(theirs))], "the prompt, and nothing else");

    let points = replayed.sandbox.another_process().store.points().unwrap();
    let prompts: Vec<_> = points.iter().filter(|point| point.kind == PointKind::Prompt).collect();
    assert_eq!(prompts.len(), 1);
    assert_eq!(prompts[0].message_ids, [MESSAGE]);
    assert_eq!(prompts[0].session.as_ref().map(|id| id.0.as_str()), Some(SESSION));
    assert!(prompts[0].description.starts_with("one"), "{:?}", prompts[0].description);

    let sessions = replayed.sandbox.outside().join("sessions");
    let (mut metadata, _) = Metadata::open(&sessions, SESSION, 10).unwrap();
    let checkpoint = Checkpoint {
        id: prompted[0].0.to_owned(),
        timestamp: Timestamp(1_700_000_000_000),
        description: checkpoint_description(&"one".into(), "12:00:00"),
        session_id: theirs.to_owned(),
    };
    metadata.capture(checkpoint.clone()).unwrap();
    assert_eq!(Metadata::open(&sessions, SESSION, 10).unwrap().0.list(), [checkpoint]);
}

/// What a program was started with: its arguments, and the variable.
fn started_with(extra: &[&str], checkpointing: bool) -> (Vec<String>, String) {
    let sandbox = Sandbox::new();
    let file = sandbox.outside().join("started");
    let script = format!(
        "#!/bin/sh\n{{ echo \"${VARIABLE}\"; for one; do echo \"$one\"; done; }} > '{}'\nexit 0\n",
        file.display()
    );
    let replayed = replay_with(sandbox, &script, |options| {
        options.extra_args = extra.iter().map(OsString::from).collect();
        options.checkpointing = checkpointing;
    });
    replayed.until(|event| matches!(event, ChatEvent::Ended(_)));
    let text = std::fs::read_to_string(file).unwrap();
    let mut lines = text.lines().map(str::to_owned);
    let variable = lines.next().unwrap();
    (lines.collect(), variable)
}

// 启用文件检查点并配置 extraArgs
#[test]
fn file_checkpoints_are_enabled_and_extra_arguments_kept() {
    let has = |arguments: &[String], wanted: &[&str]| {
        let found = arguments.windows(wanted.len()).filter(|part| *part == wanted).count();
        assert_eq!(found, 1, "{wanted:?} in {arguments:?}");
    };
    let extra = ["--add-dir", "../lib", "--replay-user-messages", "--foo=bar"];
    let (arguments, variable) = started_with(&extra, true);
    assert_eq!(variable, "1");
    has(&arguments, &["--replay-user-messages"]);
    has(&arguments, &["--add-dir", "../lib"]);
    has(&arguments, &["--foo=bar"]);
    let (arguments, variable) = started_with(&extra, false);
    assert_eq!(variable, "", "copies were not requested");
    has(&arguments, &["--foo=bar"]);
}

// 提供 Query 实例访问
#[test]
fn only_a_live_conversation_can_be_asked() {
    let (ready, _) = first_line(TURN);
    let answers: Vec<String> =
        [ready].into_iter().chain(OWN_FILES.lines()).map(|line| format!("{line}\n")).collect();
    let live = replay(&answers.iter().map(String::as_str).collect::<Vec<_>>());
    assert!(live.claude.is_live());
    let files = live.claude.rewind_files(MESSAGE, RestoreMode::DryRun).unwrap();
    assert_eq!(files, Some(NativeFiles { paths: vec!["/proj/a.txt".into()] }));

    let ReplayAgent { claude: gone, received, sandbox } =
        replay_script(Sandbox::new(), "#!/bin/sh\nexit 0\n");
    let last = received.iter().find(|event| matches!(event, ChatEvent::Ended(_)));
    assert!(last.is_some() && !gone.is_live());
    let refused = gone.rewind_files(MESSAGE, RestoreMode::Apply);
    assert!(matches!(refused, Err(NativeFilesError::Agent(AgentError::Ended(_)))), "{refused:?}");
    assert!(matches!(gone.prompt(MESSAGE, "one"), Err(AgentError::Ended(_))));
    drop(sandbox);
}
