//! Copilot CLI 1.0.102, in its terminal.

use std::path::{Path, PathBuf};

use takeback_agents::{COPILOT, HookEventKind as Kind, TranscriptEndKind};
use takeback_core::Outcome;
use takeback_store::Timestamp;

use super::{called, end, transcript};
use crate::recorded::payload;

fn events() -> Vec<u8> {
    transcript("copilot/ends/events.jsonl")
}

fn call(name: &str) -> String {
    called(&COPILOT, "copilot/ends", &format!("preToolUse-{name}"))
}

/// The stopped command is called again later.
fn until_the_second_call() -> Vec<u8> {
    let text = String::from_utf8(events()).unwrap();
    let again = text.find("359fbc71-1d8d-4993-82fc-5abc8c9f0db8").unwrap();
    let start = text[..again].rfind('\n').unwrap();
    text.as_bytes()[..start].to_vec()
}

#[test]
fn a_refusal_and_an_interrupt_are_distinguished() {
    let ends = [
        ("refused-write", TranscriptEndKind::Rejected, 1_794_828_527_627),
        ("refused-shell", TranscriptEndKind::Rejected, 1_794_828_538_255),
        ("waited", TranscriptEndKind::Finished, 1_794_828_554_341),
        ("failed", TranscriptEndKind::Finished, 1_794_828_565_420),
        ("stopped", TranscriptEndKind::Interrupted, 1_794_828_581_060),
    ];
    for (name, how, at) in ends {
        let end = end(&COPILOT, &until_the_second_call(), &call(name));
        assert_eq!(end, Some((how, at)), "{name}");
    }
    let written = end(&COPILOT, &events(), &call("waited-write"));
    assert_eq!(written, Some((TranscriptEndKind::Finished, 1_794_828_601_747)));
}

/// A new prompt in the middle of a command moves the command to the background.
#[test]
fn a_command_moved_to_the_background_has_no_end() {
    assert_eq!(end(&COPILOT, &events(), &call("stopped")), None);
    let hook_event =
        COPILOT.parse(&payload("copilot/ends", "postToolUse-stopped"), Some("postToolUse"));
    let Kind::AfterTool(_, ending) = hook_event.unwrap().kind else { panic!("no end") };
    assert_eq!(ending.outcome, Outcome::Background);
}

#[test]
fn the_time_of_a_permission_is_known() {
    let allowed = |name: &str| (COPILOT.transcript.allowed_at.unwrap())(&events(), &call(name));
    assert_eq!(allowed("waited"), Some(Timestamp(1_794_828_551_991)));
    assert_eq!(allowed("refused-shell"), None);
    assert_eq!(allowed("refused-write"), None);
}

#[test]
fn a_sessions_transcript_is_below_the_agents_folder() {
    let of = |session: &str| (COPILOT.transcript.path.unwrap())(Path::new("/u/.copilot"), session);
    let file = PathBuf::from("/u/.copilot/session-state/7e3d8d64-0d73/events.jsonl");
    assert_eq!(of("7e3d8d64-0d73"), Some(file));
    assert_eq!(of("../x"), None);
}
