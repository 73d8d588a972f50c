//! Gemini CLI 0.61.0, in its terminal.

use takeback_agents::hook::{EndKind, Ending, News, Plugged, Question, hear};
use takeback_core::Outcome;

use super::{called, end, transcript};
use crate::recorded::given;

fn in_chat(name: &str) -> Option<(EndKind, i64)> {
    let call = called(Plugged::Gemini, "gemini/ends", &format!("BeforeTool-{name}"));
    end(Plugged::Gemini, &transcript("gemini/ends/chat.jsonl"), &call)
}

#[test]
fn a_refusal_and_an_interruption_are_told_apart() {
    let ends = [
        ("refused-write", EndKind::Rejected, 1_794_828_590_031),
        ("refused-shell", EndKind::Rejected, 1_794_828_662_247),
        ("stopped", EndKind::Interrupted, 1_794_828_606_803),
        ("waited", EndKind::Finished, 1_794_828_623_546),
        ("failed", EndKind::Finished, 1_794_828_702_408),
    ];
    for (name, how, at) in ends {
        assert_eq!(in_chat(name), Some((how, at)), "{name}");
    }
}

#[test]
fn the_hook_after_a_command_that_was_stopped_says_so() {
    let heard = hear(Plugged::Gemini, &given("gemini/ends", "AfterTool-stopped"), None).unwrap();
    let News::After(_, ending) = heard.news else { panic!("{heard:?}") };
    assert_eq!(ending, Ending { outcome: Outcome::Failed, took: None, interrupted: true });
}

#[test]
fn a_notification_says_that_the_person_is_asked_about_a_command() {
    let news = |name| hear(Plugged::Gemini, &given("gemini/ends", name), None).unwrap().news;
    let command = Question::Command("echo made > made.txt".to_owned());
    assert_eq!(news("Notification-command"), News::Asks(command));
    // An edit names what it writes.
    assert_eq!(news("Notification-edit"), News::Nothing);
    let of_server = br#"{"session_id": "s", "hook_event_name": "Notification",
        "notification_type": "ToolPermission",
        "details": {"type": "mcp", "serverName": "disk", "toolName": "wipe"}}"#;
    let wipe = Question::Tool("mcp_disk_wipe".to_owned());
    assert_eq!(hear(Plugged::Gemini, of_server, None).unwrap().news, News::Asks(wipe));
}
