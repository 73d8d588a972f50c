//! Codex 0.166.0.

use std::path::{Path, PathBuf};

use serde_json::{Value, json};
use takeback_agents::{
    CODEX, HookEvent, HookEventKind as Kind, ToolCall, call_targets, default_tools,
};
use takeback_core::{CallTargets, Outcome};

use crate::recorded::{all_are_parsed_as, bare_event, payload};

const SESSION: &str = "01a1e141-1168-76e2-b14a-d62943403594";
const SUBAGENT: &str = "01a1e141-152c-7ac1-bae9-fc377addd69a";
/// A session with a model that has other tools.
const OTHER: &str = "01a1e141-182a-78a1-8ef0-4c1098904a34";
const OTHERS_SUBAGENT: &str = "01a1e141-1901-7b63-93a1-8eeb427f43fa";
const FIRST: &str = "01a1e141-1183-7b81-85cb-eaf17f875c71";
const SECOND: &str = "01a1e141-14c5-79a1-a17e-c46eed0bee63";
const PROJECT: &str = "/home/user/project";

const PATCH: &str = "*** Begin Patch\n*** Add File: new/added.txt\n+one\n*** Update File: kept.txt\n\
                     @@\n-old\n+new\n*** Update File: moved.txt\n*** Move to: new/there.txt\n@@\n-x\n\
                     +y\n*** Delete File: gone.txt\n*** End Patch\n";
const PATCH_IN_SHELL: &str = "apply_patch <<'EOF'\n*** Begin Patch\n*** Update File: kept.txt\n@@\n\
                              -new\n+newer\n*** End Patch\nEOF";

fn hook_event(event: &str, kind: Kind) -> HookEvent {
    HookEvent {
        transcript: Some(transcript("22-08-20", SESSION)),
        prompt: Some(FIRST.to_owned()),
        ..bare_event(SESSION, event, kind)
    }
}

fn of_subagent(event: &str, kind: Kind) -> HookEvent {
    let transcript = Some(transcript("22-08-21", SUBAGENT));
    HookEvent {
        subagent: Some(SUBAGENT.to_owned()),
        transcript,
        prompt: None,
        ..hook_event(event, kind)
    }
}

fn of_other(event: &str, kind: Kind) -> HookEvent {
    let transcript = Some(transcript("22-08-22", OTHER));
    let prompt = Some("01a1e141-185c-78f3-a2b1-fe064b11d181".to_owned());
    HookEvent { session: OTHER.to_owned(), transcript, prompt, ..hook_event(event, kind) }
}

fn transcript(time: &str, session: &str) -> PathBuf {
    let folder = Path::new("/home/user/.codex/sessions/2026/11/15");
    folder.join(format!("rollout-2026-11-15T{time}-{session}.jsonl"))
}

fn call(id: &str, tool: &str, command: &str) -> ToolCall {
    let input = json!({ "command": command });
    ToolCall { id: format!("exec-{id}"), tool: tool.to_owned(), input }
}

/// Outside of any turn.
fn between(event: &str, kind: Kind) -> HookEvent {
    HookEvent { prompt: None, ..hook_event(event, kind) }
}

fn later(event: &str, kind: Kind) -> HookEvent {
    HookEvent { prompt: Some(SECOND.to_owned()), ..hook_event(event, kind) }
}

fn prompt(recording: &str) -> Kind {
    let given: Value = serde_json::from_slice(&payload("codex", recording)).unwrap();
    Kind::Prompt { text: given["prompt"].as_str().unwrap().to_owned() }
}

#[test]
fn recorded_payloads_are_parsed() {
    let before = |call: ToolCall| hook_event("PreToolUse", Kind::BeforeTool(call));
    let after =
        |call: ToolCall| hook_event("PostToolUse", Kind::AfterTool(call, Outcome::Done.into()));
    let patch = || call("475eee62-c173-4cee-a749-986af83924ef", "apply_patch", PATCH);
    let shell = || call("620e00ac-b09a-46f9-85ce-4226db69ba1f", "Bash", "printf shell > shell.txt");
    let fails = || call("da8bcf27-4436-45f0-9e2e-c4171af77929", "Bash", "echo no; exit 3");
    let helps = || call("6896ac37-85dc-4978-934a-6d7490668608", "Bash", "echo sub > sub.txt");
    let no_file = call(
        "94c09769-619a-49a7-bda3-cc24bc1d07e4",
        "apply_patch",
        "*** Begin Patch\n*** Update File: none.txt\n@@\n-x\n+y\n*** End Patch\n",
    );
    let patched = call("f0775e29-f110-403b-8213-6d5906c4d1a2", "Bash", PATCH_IN_SHELL);
    let first = prompt("UserPromptSubmit-first");
    let second = prompt("UserPromptSubmit-second");
    let asked = HookEvent {
        subagent: Some(OTHERS_SUBAGENT.to_owned()),
        transcript: Some(transcript("22-08-22", OTHERS_SUBAGENT)),
        prompt: None,
        ..of_other("UserPromptSubmit", Kind::Irrelevant)
    };
    // Its own conversation is in another field here.
    let stopped = HookEvent {
        transcript: Some(transcript("22-08-20", SESSION)),
        ..of_subagent("SubagentStop", Kind::SubagentStop)
    };
    all_are_parsed_as(
        &CODEX,
        "codex",
        &[
            ("SessionStart-new", between("SessionStart", Kind::SessionStart)),
            ("UserPromptSubmit-first", hook_event("UserPromptSubmit", first)),
            ("PreToolUse-apply_patch", before(patch())),
            ("PostToolUse-apply_patch", after(patch())),
            ("PreToolUse-Bash", before(shell())),
            ("PostToolUse-Bash", after(shell())),
            ("PreToolUse-Bash-exit-3", before(fails())),
            ("PostToolUse-Bash-exit-3", after(fails())),
            ("PreToolUse-Bash-apply_patch", before(patched)),
            ("PreToolUse-apply_patch-without-file", before(no_file)),
            ("PreToolUse-get_goal", hook_event("PreToolUse", Kind::Irrelevant)),
            ("Stop", hook_event("Stop", Kind::TurnEnd)),
            ("SessionEnd", between("SessionEnd", Kind::SessionEnd)),
            ("SessionStart-resume", between("SessionStart", Kind::SessionStart)),
            ("UserPromptSubmit-second", later("UserPromptSubmit", second)),
            ("PreToolUse-spawn_agent", later("PreToolUse", Kind::Irrelevant)),
            ("SubagentStart", of_subagent("SubagentStart", Kind::SubagentStart)),
            ("PreToolUse-subagent-Bash", of_subagent("PreToolUse", Kind::BeforeTool(helps()))),
            (
                "PostToolUse-subagent-Bash",
                of_subagent("PostToolUse", Kind::AfterTool(helps(), Outcome::Done.into())),
            ),
            ("SubagentStop", stopped),
            ("UserPromptSubmit-subagent", asked),
            ("PreToolUse-wait_agent", of_other("PreToolUse", Kind::Irrelevant)),
        ],
    );
}

#[test]
fn a_patch_names_its_files_and_a_command_with_a_patch_may_write_anything() {
    let touched = |tool: &str, command: &str| {
        let input = json!({ "command": command });
        call_targets(&default_tools(), tool, &input, Some(Path::new(PROJECT)))
    };
    let paths = ["new/added.txt", "kept.txt", "moved.txt", "new/there.txt", "gone.txt"];
    let paths = paths.map(|path| Path::new(PROJECT).join(path)).to_vec();
    assert_eq!(touched("apply_patch", PATCH), CallTargets::Paths(paths));
    let command = Some(PATCH_IN_SHELL.to_owned());
    let paths = vec![Path::new(PROJECT).join("kept.txt")];
    assert_eq!(touched("Bash", PATCH_IN_SHELL), CallTargets::Anything { command, paths });
}
