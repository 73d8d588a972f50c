//! What the agents' transcripts say about the ends of calls.

mod claude;
mod codex;
mod copilot;
mod gemini;

use std::fs;
use std::path::Path;
use std::time::{Duration, Instant};

use takeback_agents::{
    AGENTS, AgentKind, CLAUDE, CODEX, COPILOT, GEMINI, HookEventKind as Kind, TranscriptEndKind,
};

use crate::recorded::payload;

/// A recorded transcript, without the program's instructions to its model, and with other folders.
fn transcript(name: &str) -> Vec<u8> {
    let recorded = Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/hook/recorded");
    fs::read(recorded.join(name)).unwrap()
}

/// How one call ended, and when.
fn end(agent: &AgentKind, transcript: &[u8], call: &str) -> Option<(TranscriptEndKind, i64)> {
    let ends = agent.transcript.ends(transcript, &[call]);
    assert!(ends.len() <= 1, "{ends:?}");
    let end = ends.first()?;
    assert_eq!(end.call, call);
    Some((end.how, end.at.unwrap().0))
}

/// The id that the hook before a call gives it.
fn called(agent: &AgentKind, folder: &str, name: &str) -> String {
    let hook_event = agent.parse(&payload(folder, name), name.split('-').next()).unwrap();
    let Kind::BeforeTool(call) = hook_event.kind else { panic!("{hook_event:?}") };
    call.id
}

#[test]
fn the_newest_answer_of_a_transcript_names_the_model() {
    for (agent, recording, model) in [
        (&CLAUDE, "claude/ends/main.jsonl", "claude-opus-5-5"),
        (&COPILOT, "copilot/ends/events.jsonl", "scripted"),
        (&GEMINI, "gemini/ends/chat.jsonl", "gemini-3.8-flash"),
    ] {
        let text = transcript(recording);
        let found = agent.transcript.model.and_then(|model| model(&text));
        assert_eq!(found.as_deref(), Some(model), "{agent:?}");
        for none in ["", "{", "\"model\"", "{\"model\": 1}\n"] {
            let found = agent.transcript.model.and_then(|model| model(none.as_bytes()));
            assert_eq!(found, None, "{agent:?} {none}");
        }
    }
}

#[test]
fn a_message_of_claude_code_itself_names_no_model() {
    let answer = |model: &str| {
        format!("{{\"type\":\"assistant\",\"message\":{{\"model\":\"{model}\",\"content\":[]}}}}\n")
    };
    let text = answer("claude-opus-5-5") + &answer("<synthetic>");
    let model = CLAUDE.transcript.model.and_then(|model| model(text.as_bytes()));
    assert_eq!(model.as_deref(), Some("claude-opus-5-5"));
}

#[test]
fn a_text_that_is_not_a_transcript_has_no_ends() {
    for agent in AGENTS {
        for text in ["", "\n", "{", "call", "{\"call\": 1}\n[\"call\"]\ncall", "\u{fffd}call\n"] {
            assert_eq!(agent.transcript.ends(text.as_bytes(), &["call"]), [], "{agent:?} {text}");
        }
        assert_eq!(agent.transcript.ends(b"{}", &[]), []);
    }
}

/// A hook reads the last megabyte. Lines without the call are not parsed; the limit leaves room for a
/// busy machine and a build without optimisation.
#[test]
fn a_megabyte_is_searched_fast() {
    let recorded = [
        (&CLAUDE, "claude/ends/main.jsonl", "toolu_a40bc5384ee746bba1c111"),
        (&CODEX, "codex/ends/rollout.jsonl", "call_01001e36e28e"),
        (&GEMINI, "gemini/ends/chat.jsonl", "no such call"),
        (&COPILOT, "copilot/ends/events.jsonl", "no such call"),
    ];
    for (agent, name, call) in recorded {
        let text = transcript(name);
        let said = format!("{{\"type\":\"said\",\"text\":\"{}\"}}\n", "x".repeat(2000));
        let mut megabyte = text.clone();
        while megabyte.len() < 1 << 20 {
            megabyte.extend_from_slice(said.as_bytes());
        }
        let began = Instant::now();
        let ends = agent.transcript.ends(&megabyte, &[call]);
        let took = began.elapsed();
        assert_eq!(ends, agent.transcript.ends(&text, &[call]));
        assert!(took < Duration::from_millis(250), "{agent:?}: {took:?}");
        println!("{agent:?}: {took:?}");
    }
}
