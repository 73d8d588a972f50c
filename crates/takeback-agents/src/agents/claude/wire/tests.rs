//! The types, checked against lines of the real program.

use serde_json::json;

use super::*;

const RECORDED: [&str; 3] = [
    include_str!("../../../../tests/claude/recorded/turn.jsonl"),
    include_str!("../../../../tests/claude/recorded/interrupted.jsonl"),
    include_str!("../../../../tests/claude/recorded/own_files.jsonl"),
];

/// A short name for a line.
fn kind(line: &str) -> String {
    match serde_json::from_str(line).expect("a line of the program is understood") {
        WireOut::System(system) => format!("system {}", system.subtype),
        WireOut::User(message) if message.is_replay => "replay".to_owned(),
        WireOut::User(_) => "user".to_owned(),
        WireOut::Assistant(_) => "assistant".to_owned(),
        WireOut::StreamEvent { .. } => "event".to_owned(),
        WireOut::Result(result) => format!("result {}", result.subtype),
        WireOut::ControlRequest { request, .. } => {
            match serde_json::from_value(request).expect("a request is understood") {
                WireControlRequest::HookCallback { input: WireHook::Other } => {
                    "unknown hook".to_owned()
                }
                WireControlRequest::HookCallback { .. } => "hook".to_owned(),
                WireControlRequest::CanUseTool { tool_name, .. } => format!("asks {tool_name}"),
            }
        }
        WireOut::ControlResponse { response: WireAnswer::Success { .. } } => "answer".to_owned(),
        WireOut::ControlResponse { response: WireAnswer::Error { .. } } => "error".to_owned(),
        WireOut::ControlCancelRequest { .. } => "cancel".to_owned(),
        WireOut::CommandLifecycle { state, .. } => state,
        WireOut::Other => "unknown".to_owned(),
    }
}

#[test]
fn every_recorded_line_is_parsed() {
    let mut counts = std::collections::BTreeMap::new();
    for line in RECORDED.iter().flat_map(|recorded| recorded.lines()) {
        *counts.entry(kind(line)).or_insert(0) += 1;
    }
    let expected = [
        ("answer", 24),
        ("asks Bash", 2),
        ("asks Write", 3),
        ("assistant", 8),
        ("cancel", 1),
        ("error", 1),
        ("event", 39),
        ("hook", 15),
        ("queued", 2),
        ("replay", 2),
        ("result error_during_execution", 1),
        ("result success", 1),
        ("started", 2),
        ("system init", 2),
        ("system status", 6),
        ("system task_notification", 1),
        ("system task_progress", 1),
        ("system task_started", 1),
        ("system task_updated", 1),
        ("user", 8),
    ];
    let counts: Vec<(&str, i32)> = counts.iter().map(|(kind, n)| (kind.as_str(), *n)).collect();
    assert_eq!(counts, expected);
}

#[test]
fn written_lines_are_what_the_program_reads() {
    let cases = [
        (
            WireIn::prompt("U", "hello"),
            json!({
                "type": "user",
                "uuid": "U",
                "message": { "role": "user", "content": [{ "type": "text", "text": "hello" }] },
                "parent_tool_use_id": null,
                "session_id": "",
            }),
        ),
        (
            WireIn::request("r", WireRequest::initialize(&["Stop"])),
            json!({
                "type": "control_request",
                "request_id": "r",
                "request": {
                    "subtype": "initialize",
                    "hooks": { "Stop": [{ "hookCallbackIds": ["Stop"], "timeout": 600 }] },
                },
            }),
        ),
        (
            WireIn::request("r", WireRequest::Interrupt),
            json!({
                "type": "control_request",
                "request_id": "r",
                "request": { "subtype": "interrupt" },
            }),
        ),
        (
            WireIn::request(
                "r",
                WireRequest::RewindFiles { user_message_id: "U".to_owned(), dry_run: true },
            ),
            json!({
                "type": "control_request",
                "request_id": "r",
                "request": { "subtype": "rewind_files", "user_message_id": "U", "dry_run": true },
            }),
        ),
        (
            WireIn::reply("q", WireReplyBody::Nothing {}),
            json!({
                "type": "control_response",
                "response": { "subtype": "success", "request_id": "q", "response": {} },
            }),
        ),
        (
            WireIn::reply(
                "q",
                WireReplyBody::Permission(WirePermission::Allow {
                    updated_input: json!({ "a": 1 }),
                }),
            ),
            json!({
                "type": "control_response",
                "response": {
                    "subtype": "success",
                    "request_id": "q",
                    "response": { "behavior": "allow", "updatedInput": { "a": 1 } },
                },
            }),
        ),
        (
            WireIn::reply(
                "q",
                WireReplyBody::Permission(WirePermission::Deny { message: "no".to_owned() }),
            ),
            json!({
                "type": "control_response",
                "response": {
                    "subtype": "success",
                    "request_id": "q",
                    "response": { "behavior": "deny", "message": "no" },
                },
            }),
        ),
        (
            WireIn::error_reply("q", "what?"),
            json!({
                "type": "control_response",
                "response": { "subtype": "error", "request_id": "q", "error": "what?" },
            }),
        ),
    ];
    for (written, expected) in cases {
        assert_eq!(serde_json::to_value(&written).unwrap(), expected);
    }
}
