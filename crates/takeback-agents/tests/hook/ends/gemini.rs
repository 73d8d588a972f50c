//! Gemini CLI 0.61.0, in its terminal.

use takeback_agents::{
    CallEnd, GEMINI, HookEventKind as Kind, PermissionQuestion, TranscriptEndKind,
};
use takeback_core::Outcome;

use super::{called, end, transcript};
use crate::recorded::payload;

fn in_chat(name: &str) -> Option<(TranscriptEndKind, i64)> {
    let call = called(&GEMINI, "gemini/ends", &format!("BeforeTool-{name}"));
    end(&GEMINI, &transcript("gemini/ends/chat.jsonl"), &call)
}

#[test]
fn a_refusal_and_an_interrupt_are_distinguished() {
    let ends = [
        ("refused-write", TranscriptEndKind::Rejected, 1_794_828_590_031),
        ("refused-shell", TranscriptEndKind::Rejected, 1_794_828_662_247),
        ("stopped", TranscriptEndKind::Interrupted, 1_794_828_606_803),
        ("waited", TranscriptEndKind::Finished, 1_794_828_623_546),
        ("failed", TranscriptEndKind::Finished, 1_794_828_702_408),
    ];
    for (name, how, at) in ends {
        assert_eq!(in_chat(name), Some((how, at)), "{name}");
    }
}

#[test]
fn the_hook_after_a_stopped_command_says_so() {
    let hook_event = GEMINI.parse(&payload("gemini/ends", "AfterTool-stopped"), None).unwrap();
    let Kind::AfterTool(_, ending) = hook_event.kind else { panic!("{hook_event:?}") };
    assert_eq!(ending, CallEnd { outcome: Outcome::Failed, took: None, interrupted: true });
}

#[test]
fn a_notification_is_a_permission_question() {
    let kind = |name| GEMINI.parse(&payload("gemini/ends", name), None).unwrap().kind;
    let command = PermissionQuestion::Command("echo made > made.txt".to_owned());
    assert_eq!(kind("Notification-command"), Kind::PermissionAsked(command));
    // An edit names what it writes.
    assert_eq!(kind("Notification-edit"), Kind::Irrelevant);
    let of_server = br#"{"session_id": "s", "hook_event_name": "Notification",
        "notification_type": "ToolPermission",
        "details": {"type": "mcp", "serverName": "disk", "toolName": "wipe"}}"#;
    let wipe = PermissionQuestion::Tool("mcp_disk_wipe".to_owned());
    assert_eq!(GEMINI.parse(of_server, None).unwrap().kind, Kind::PermissionAsked(wipe));
}
