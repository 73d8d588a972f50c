//! The model that payloads name.

use std::collections::BTreeSet;

use takeback_agents::{AGENTS, AgentKind};

use crate::recorded::models;

#[test]
fn models_are_read_where_payloads_name_them() {
    let named = |agent: &AgentKind| -> BTreeSet<String> {
        models(agent, agent.name).into_values().collect()
    };
    let mut found = Vec::new();
    for agent in AGENTS {
        found.push((agent.name, named(agent).into_iter().collect::<Vec<_>>().join(", ")));
    }
    found.sort_unstable();
    let expected = [
        // Named in their transcripts only.
        ("claude", ""),
        ("codex", "gpt-6.1-sol, scripted"),
        ("copilot", ""),
        ("gemini", ""),
        ("opencode", "lab/scripted"),
        ("pi", ""),
        // Only when a session begins.
        ("qwen", "scripted"),
    ];
    let found: Vec<(&str, &str)> =
        found.iter().map(|(agent, models)| (*agent, models.as_str())).collect();
    assert_eq!(found, expected);
}
