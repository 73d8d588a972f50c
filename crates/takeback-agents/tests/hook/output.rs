//! What hooks print for agents.

use serde_json::{Value, json};
use takeback_agents::AGENTS;

#[test]
fn each_agent_reads_a_context_in_its_own_form() {
    let printed = |event: &str, name: &str| {
        let agent = AGENTS.iter().find(|agent| agent.name == name).unwrap();
        let text = agent.hook_output(event, None, Some("a \"line\""));
        text.map(|text| serde_json::from_str::<Value>(&text).unwrap())
    };
    let specific = |event: &str| {
        let output = json!({"hookEventName": event, "additionalContext": "a \"line\""});
        Some(json!({ "hookSpecificOutput": output }))
    };
    for name in ["claude", "codex", "qwen"] {
        assert_eq!(printed("UserPromptSubmit", name), specific("UserPromptSubmit"), "{name}");
    }
    assert_eq!(printed("BeforeAgent", "gemini"), specific("BeforeAgent"));
    let copilot = Some(json!({"additionalContext": "a \"line\""}));
    assert_eq!(printed("userPromptSubmitted", "copilot"), copilot);
    for name in ["opencode", "pi"] {
        assert_eq!(printed("any", name), Some(json!({"context": "a \"line\""})), "{name}");
    }
}

#[test]
fn a_message_and_a_context_are_one_answer() {
    let agent = AGENTS.iter().find(|agent| agent.name == "claude").unwrap();
    let text = agent.hook_output("UserPromptSubmit", Some("for you"), Some("for it")).unwrap();
    let context = json!({"hookEventName": "UserPromptSubmit", "additionalContext": "for it"});
    let whole = json!({"systemMessage": "for you", "hookSpecificOutput": context});
    assert_eq!(serde_json::from_str::<Value>(&text).unwrap(), whole);
    assert_eq!(agent.hook_output("UserPromptSubmit", None, None), None);
}
