//! Claude Code 2.1.325, in its terminal.

use std::path::{Path, PathBuf};

use takeback_agents::{CLAUDE, TranscriptEndKind};

use super::{end, transcript};

const REFUSED: &str = "toolu_251e5349a8584ab58562b5";
const REFUSED_BY_ESC: &str = "toolu_3c2b0809b02f42c9a3df77";
const STOPPED: &str = "toolu_a40bc5384ee746bba1c111";
const WAITED: &str = "toolu_50b1e840a4354c63b20900";
const REFUSED_WITH_WORDS: &str = "toolu_3202a251725d4b249227b9";
const STOPPED_BY_PROMPT: &str = "toolu_71f4020e57224d8ead0b86";
const FAILED: &str = "toolu_a7719262f4034ff085df36";

fn in_file(name: &str, call: &str) -> Option<(TranscriptEndKind, i64)> {
    end(&CLAUDE, &transcript(&format!("claude/ends/{name}.jsonl")), call)
}

#[test]
fn a_refusal_and_an_interrupt_are_distinguished() {
    let ends = [
        (REFUSED, TranscriptEndKind::Rejected, 1_794_827_817_838),
        (REFUSED_BY_ESC, TranscriptEndKind::Rejected, 1_794_827_824_639),
        (STOPPED, TranscriptEndKind::Interrupted, 1_794_827_834_461),
        (WAITED, TranscriptEndKind::Finished, 1_794_827_846_441),
        (REFUSED_WITH_WORDS, TranscriptEndKind::Rejected, 1_794_827_855_175),
        (STOPPED_BY_PROMPT, TranscriptEndKind::Interrupted, 1_794_827_867_779),
        (FAILED, TranscriptEndKind::Finished, 1_794_827_875_749),
    ];
    for (call, how, at) in ends {
        assert_eq!(in_file("main", call), Some((how, at)), "{call}");
    }
    assert_eq!(in_file("main", "toolu_unknown"), None);
}

#[test]
fn several_calls_are_answered_at_once() {
    let main = transcript("claude/ends/main.jsonl");
    let ends = CLAUDE.transcript.ends(&main, &[STOPPED, "toolu_unknown", REFUSED]);
    let ends: Vec<(&str, TranscriptEndKind)> =
        ends.iter().map(|end| (&*end.call, end.how)).collect();
    assert_eq!(
        ends,
        [(STOPPED, TranscriptEndKind::Interrupted), (REFUSED, TranscriptEndKind::Rejected)]
    );
}

#[test]
fn calls_refused_by_rules_and_auto_mode_never_ran() {
    let by_auto_mode = in_file("auto_mode", "toolu_e32f98b18f204de3b8e530");
    assert_eq!(by_auto_mode, Some((TranscriptEndKind::Rejected, 1_794_827_918_068)));
    let by_rule = in_file("rule", "toolu_1c9195c8c70d48828621cf");
    assert_eq!(by_rule, Some((TranscriptEndKind::Rejected, 1_794_827_920_663)));
}

#[test]
fn a_subagents_transcript_has_its_calls() {
    let refused = in_file("subagent_refused", "toolu_c4251257eb034ffb94b52e");
    assert_eq!(refused, Some((TranscriptEndKind::Rejected, 1_794_827_885_135)));
    let stopped = in_file("subagent_stopped", "toolu_a836d9faac7c4621a907fe");
    assert_eq!(stopped, Some((TranscriptEndKind::Interrupted, 1_794_827_898_328)));
}

#[test]
fn a_transcript_may_be_cut_anywhere() {
    let main = transcript("claude/ends/main.jsonl");
    let answer = |call: &str| {
        let result = format!("\"tool_use_id\":\"{call}\"");
        main.windows(result.len()).position(|window| window == result.as_bytes()).unwrap()
    };
    let start = main[..answer(STOPPED)].iter().rposition(|byte| *byte == b'\n').unwrap() + 1;
    for from in [start - 1, start] {
        let how = end(&CLAUDE, &main[from..], STOPPED).map(|(how, _)| how);
        assert_eq!(how, Some(TranscriptEndKind::Interrupted), "{from}");
    }
    for from in [start + 1, answer(STOPPED)] {
        assert_eq!(end(&CLAUDE, &main[from..], STOPPED), None, "half a line");
    }
}

/// The answer is written before the line that distinguishes a refusal from an interrupt.
#[test]
fn an_answer_without_its_next_line_is_undecided() {
    let main = String::from_utf8(transcript("claude/ends/main.jsonl")).unwrap();
    let upto = |call: &str, more: usize| {
        let is_answer = |line: &str| line.contains(&format!("\"tool_use_id\":\"{call}\""));
        let number = main.lines().position(is_answer).unwrap();
        let lines: Vec<&str> = main.lines().take(number + 1 + more).collect();
        end(&CLAUDE, lines.join("\n").as_bytes(), call).map(|(how, _)| how)
    };
    assert_eq!(upto(REFUSED, 0), None);
    assert_eq!(upto(REFUSED, 1), Some(TranscriptEndKind::Rejected));
    assert_eq!(upto(STOPPED, 0), None);
    assert_eq!(upto(STOPPED, 1), Some(TranscriptEndKind::Interrupted));
    assert_eq!(
        upto(REFUSED_WITH_WORDS, 0),
        Some(TranscriptEndKind::Rejected),
        "a decision says enough"
    );
}

/// Older versions do not say why a call was denied: it may have run.
#[test]
fn without_the_kind_of_denial_a_call_counts_as_interrupted() {
    let main = String::from_utf8(transcript("claude/ends/main.jsonl")).unwrap();
    let earlier = main.replace("\"toolDenialKind\":\"user-rejected\",", "");
    let how = end(&CLAUDE, earlier.as_bytes(), REFUSED).map(|(how, _)| how);
    assert_eq!(how, Some(TranscriptEndKind::Interrupted));
}

#[test]
fn a_subagent_has_a_transcript_of_its_own() {
    let of = |transcript: &str, part: &str| {
        (CLAUDE.transcript.subagent_path.unwrap())(Path::new(transcript), part)
    };
    let session = "/home/user/.claude/projects/-home-user-project/51d7b7d3";
    let own = PathBuf::from(format!("{session}/subagents/agent-ada6f406ea7cb3cc4.jsonl"));
    assert_eq!(of(&format!("{session}.jsonl"), "ada6f406ea7cb3cc4"), Some(own));
    assert_eq!(of(session, "ada6f406ea7cb3cc4"), None);
    assert_eq!(of(&format!("{session}.jsonl"), "../../x"), None);
}

#[test]
fn a_branch_names_its_parent() {
    let (parent, branch) =
        ("51d7b7d3-4245-43ce-a603-cc1c7bd3e58f", "b9932c23-1f84-46af-a34a-1ab0b3701230");
    let parent_of = |file: &str, session: &str| {
        (CLAUDE.transcript.parent.unwrap())(
            &transcript(&format!("claude/forks/{file}.jsonl")),
            session,
        )
    };
    assert_eq!(parent_of("by_branch", branch), Some(parent.to_owned()));
    assert_eq!(parent_of("by_branch", parent), None, "it is no fork itself");
    assert_eq!(parent_of("by_option", branch), None, "--fork-session names none");
}

/// `--fork-session` copies the messages of the parent, with their ids.
#[test]
fn a_fork_has_its_parents_prompts() {
    let prompts = |file: &str| (CLAUDE.transcript.prompts.unwrap())(&transcript(file));
    let parent = prompts("claude/ends/rule.jsonl");
    assert_eq!(parent, ["d1948205-dbdb-4944-b5be-762342034b75"]);
    let own = "18a49861-cfdc-45d3-b146-57a0550c82cc".to_owned();
    assert_eq!(prompts("claude/forks/by_option.jsonl"), [&parent[..], &[own]].concat());
    let main = prompts("claude/ends/main.jsonl");
    assert_eq!(main.len(), 10, "neither interruptions nor notifications are prompts: {main:#?}");
    let branch = prompts("claude/forks/by_branch.jsonl");
    assert_eq!(branch[..10], main[..]);
    assert_eq!(branch.len(), 11);
}
