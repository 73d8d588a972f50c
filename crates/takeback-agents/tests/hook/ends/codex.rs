//! Codex 0.166.0, in its terminal, with `approval_policy = "on-request"`.

use std::time::Duration;

use takeback_agents::{CODEX, TranscriptEndKind};

use super::{end, transcript};

const REFUSED: &str = "call_3ead8ef25775";
const REFUSED_BY_ESC: &str = "call_ac6d1c704cff";
const STOPPED: &str = "call_03642d08e8ed";
const WAITED: &str = "call_01001e36e28e";
const REFUSED_PATCH: &str = "call_d14be01ca93b";
const PATCH: &str = "call_03c135f6f67b";
const FAILED: &str = "call_71c7f477359b";

fn rollout() -> Vec<u8> {
    transcript("codex/ends/rollout.jsonl")
}

#[test]
fn calls_that_ran_have_an_end() {
    let ends = [
        (WAITED, TranscriptEndKind::Finished, 1_794_828_882_192),
        (FAILED, TranscriptEndKind::Finished, 1_794_828_947_530),
        (PATCH, TranscriptEndKind::Finished, 1_794_828_936_834),
        (REFUSED_PATCH, TranscriptEndKind::Rejected, 1_794_828_892_953),
    ];
    for (call, how, at) in ends {
        assert_eq!(end(&CODEX, &rollout(), call), Some((how, at)), "{call}");
    }
}

/// The command waited for eight seconds and ran for two.
#[test]
fn the_time_that_a_command_waited_does_not_count() {
    let ends = CODEX.transcript.ends(&rollout(), &[WAITED]);
    assert_eq!(ends[0].took, Some(Duration::new(1, 873_401_937)));
}

/// Codex writes the same for both. The second one ran to its end.
#[test]
fn a_refused_call_looks_like_a_stopped_one() {
    for (call, at) in [(REFUSED, 1_794_828_958_239), (REFUSED_BY_ESC, 1_794_828_852_629)] {
        let given_up = Some((TranscriptEndKind::Abandoned, at));
        assert_eq!(end(&CODEX, &rollout(), call), given_up, "{call}");
    }
    let rollout = String::from_utf8(rollout()).unwrap();
    let is_item = |line: &&str| line.contains("\"item_completed\"") && line.contains(STOPPED);
    let number = rollout.lines().position(|line| is_item(&line)).unwrap();
    let before: Vec<&str> = rollout.lines().take(number).collect();
    let end = |text: &str| end(&CODEX, text.as_bytes(), STOPPED);
    assert_eq!(end(&before.join("\n")), Some((TranscriptEndKind::Abandoned, 1_794_828_866_393)));
    assert_eq!(end(&rollout), Some((TranscriptEndKind::Finished, 1_794_828_892_395)), "26 s later");
}
