//! The program's own copies of files.

use std::collections::BTreeSet;

use serde_json::json;
use takeback_agents::{
    AgentError, ChatAgent as _, ChatEvent, NativeFiles, NativeFilesError, RestoreMode,
};

use crate::lab::{LabOptions, lab, run, trusting};

#[test]
fn copies_are_restored_for_a_prompt_that_has_some() {
    let Some(lab) = trusting() else { return };
    lab.sandbox.write("a.txt", "0\n");
    let read = json!([{ "name": "Read", "input": { "file_path": lab.at("a.txt") } }]);
    let script = json!([read, lab.edit("a.txt", "0", "1"), lab.write("b.txt", "b\n"), "ok"]);
    let (message, _) = lab.turn("one", &script);
    let dry = lab.claude.rewind_files(&message, RestoreMode::DryRun).unwrap().unwrap();
    let paths: BTreeSet<_> = dry.paths.into_iter().collect();
    assert_eq!(paths, BTreeSet::from([lab.sandbox.at("a.txt"), lab.sandbox.at("b.txt")]));
    assert_eq!(lab.sandbox.read("a.txt"), "1\n");
    let real = lab.claude.rewind_files(&message, RestoreMode::Apply).unwrap();
    assert_eq!(real, Some(NativeFiles::default()));
    assert_eq!(lab.sandbox.read("a.txt"), "0\n");
    assert!(!lab.sandbox.exists("b.txt"));
    for mode in [RestoreMode::DryRun, RestoreMode::Apply] {
        let unknown = lab.claude.rewind_files("00000000-0000-4000-8000-000000000099", mode);
        assert!(matches!(unknown, Err(NativeFilesError::NoCheckpoint)), "{mode:?} {unknown:?}");
    }
}

#[test]
fn copies_are_not_restored_while_a_turn_runs() {
    let Some(lab) = trusting() else { return };
    let (first, _) = lab.turn("one", &json!([lab.write("a.txt", "1\n"), "ok"]));
    lab.prompt("two", &json!([run("until [ -e go ]; do sleep 0.1; done"), "ok"]));
    lab.until(|event| matches!(event, ChatEvent::Tool { .. }));
    let real = lab.claude.rewind_files(&first, RestoreMode::Apply);
    assert!(matches!(real, Err(NativeFilesError::Agent(AgentError::Busy))), "{real:?}");
    let dry = lab.claude.rewind_files(&first, RestoreMode::DryRun).unwrap().unwrap();
    assert_eq!(dry.paths, [lab.sandbox.at("a.txt")]);
    lab.sandbox.write("go", "");
    lab.until(|event| matches!(event, ChatEvent::TurnEnd(_)));
    assert_eq!(lab.sandbox.read("a.txt"), "1\n");
}

#[test]
fn there_are_no_copies_if_switched_off() {
    let args = ["--permission-mode", "acceptEdits"];
    let options = LabOptions { extra_args: &args, no_copies: true };
    let Some(lab) = lab(&options) else { return };
    let (message, _) = lab.turn("one", &json!([lab.write("a.txt", "1\n"), "ok"]));
    assert_eq!(lab.claude.rewind_files(&message, RestoreMode::Apply).unwrap(), None);
    assert_eq!(lab.sandbox.read("a.txt"), "1\n");
}
