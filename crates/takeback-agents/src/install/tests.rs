//! Hooks are added to settings files of every layout, and removed again.

use proptest::prelude::*;
use serde_json::json;

use super::*;
use crate::agents::AGENTS;
use crate::agents::CLAUDE;
use crate::agents::CODEX;
use crate::agents::COPILOT;
use crate::agents::GEMINI;
use crate::agents::OPENCODE;
use crate::agents::QWEN;

fn program<'a>() -> HookProgram<'a> {
    HookProgram { word: "takeback", runs: &|program| program == "takeback" }
}

fn with_hooks(agent: &AgentKind, before: &str) -> String {
    let after = match agent.install.is_own_file() {
        true => add_hooks(agent, Some(before.as_bytes()), &program()),
        // Also for files that the agent refuses.
        false => settings::add_hooks_unchecked(agent, Some(before.as_bytes()), &program()),
    };
    let after = after.unwrap_or_else(|error| panic!("{before:?}: {error}"));
    String::from_utf8(after.expect("there is something to do")).unwrap()
}

const OTHERS: &str = r#"{
  "model": "opus",
  "hooks": {
    "PreToolUse": [
      {
        "matcher": "Bash",
        "hooks": [{ "type": "command", "command": "mine" }]
      }
    ],
    "Notification": []
  },
  "permissions": { "allow": ["Bash(ls)"] }
}
"#;

const ODD: &[(&str, &str)] = &[
    ("an empty object", "{}"),
    ("an empty object on two lines", "{\n}\n"),
    ("plain", "{\n  \"a\": 1\n}\n"),
    ("no newline at the end", "{\n  \"a\": 1\n}"),
    ("one line", "{\"a\": 1, \"b\": [1, 2]}"),
    ("tabs", "{\n\t\"a\": {\n\t\t\"b\": 1\n\t}\n}\n"),
    ("four blanks", "{\n    \"a\": {\n        \"b\": 1\n    }\n}\n"),
    ("CRLF", "{\r\n  \"a\": 1\r\n}\r\n"),
    ("a byte order mark", "\u{feff}{\n  \"a\": 1\n}\n"),
    ("a comma at the end", "{\n  \"a\": 1,\n}\n"),
    (
        "commas at every end",
        "{\n  \"a\": [\n    1,\n  ],\n  \"hooks\": {\n    \"Stop\": [],\n  },\n}\n",
    ),
    (
        "comments",
        "// first\n{\n  // before\n  \"a\": 1, // beside\n  /* between */\n  \"b\": 2 // last\n  // end\n}\n// after\n",
    ),
    ("a comment alone", "{\n  // nothing yet\n}\n"),
    ("empty hooks", "{\n  \"hooks\": {}\n}\n"),
    ("an empty list", "{\n  \"hooks\": {\n    \"Stop\": []\n  }\n}\n"),
    ("hooks of others", OTHERS),
    ("blank lines", "\n\n{\n\n  \"a\": 1,\n\n  \"b\": 2\n\n}\n\n\n"),
    ("a comment before a closing bracket", "{ \"a\": 1 /* one */ }"),
    ("unicode", "{\n  \"größe\": \"日本 \\u0041 🦀\"\n}\n"),
];

#[test]
fn removing_restores_the_file_from_before() {
    // Blanks around an added hook may change.
    let spread = ["an empty object on two lines"];
    for (name, before) in ODD.iter().filter(|(name, _)| !spread.contains(name)) {
        let after = with_hooks(&CLAUDE, before);
        let rest = remove_hooks(&CLAUDE, after.as_bytes(), Some(before.as_bytes()));
        let Remainder::Rest(rest) = rest.unwrap() else { panic!("{name}") };
        assert_eq!(String::from_utf8(rest).unwrap(), *before, "{name}");
    }
}

/// As tested with the programs themselves: they ignore a file that they refuse as a whole.
#[test]
fn a_file_that_the_agent_refuses_is_not_changed() {
    let comment = "{\n  // mine\n  \"a\": 1\n}\n";
    let comma = "{\n  \"a\": 1,\n}\n";
    let mark = "\u{feff}{\"a\": 1}";
    for (agent, reads_comments, reads_mark) in [
        (&CLAUDE, false, true),
        (&CODEX, false, false),
        (&GEMINI, true, false),
        (&QWEN, true, true),
    ] {
        for (text, is_read) in
            [(comment, reads_comments), (comma, false), (mark, reads_mark), ("{\"a\": 1}", true)]
        {
            let put = add_hooks(agent, Some(text.as_bytes()), &program());
            assert_eq!(put.is_ok(), is_read, "{agent:?}: {text:?}: {put:?}");
            assert_eq!(
                settings_refusal(agent, text.as_bytes()).is_none(),
                is_read,
                "{agent:?}: {text:?}"
            );
        }
        // Hooks can still be removed from it.
        let text = with_hooks(agent, comma);
        let rest = remove_hooks(agent, text.as_bytes(), Some(comma.as_bytes())).unwrap();
        assert_eq!(rest, Remainder::Rest(comma.as_bytes().to_vec()));
    }
    let Err(error) = add_hooks(&CLAUDE, Some(comment.as_bytes()), &program()) else {
        panic!("it is refused");
    };
    assert!(error.to_string().starts_with("line 2, column 3: "), "{error}");
    // A file that is not JSON is another error.
    assert!(matches!(
        add_hooks(&CLAUDE, Some(b"{"), &program()),
        Err(SettingsError::NotJson { .. })
    ));
}

#[test]
fn every_agent_gets_hooks_in_its_own_format() {
    let value = |agent| -> Value { serde_json::from_str(&with_hooks(agent, "")).unwrap() };
    let command = |agent: &str| format!("takeback hook --agent {agent}");
    let plain = |agent: &str, timeout: u64| {
        json!([{ "hooks": [
            { "type": "command", "command": command(agent), "timeout": timeout }
        ] }])
    };
    assert_eq!(value(&CLAUDE)["hooks"]["Stop"], plain("claude", 30));
    assert_eq!(value(&CLAUDE)["hooks"]["PreToolUse"][0]["matcher"], "*");
    assert_eq!(value(&CODEX)["hooks"]["Stop"], plain("codex", 30));
    assert_eq!(value(&CODEX)["hooks"]["SessionEnd"], plain("codex", 3));
    assert_eq!(value(&QWEN)["hooks"]["Stop"], plain("qwen", 30_000));
    let mut gemini = plain("gemini", 30_000);
    gemini[0]["hooks"][0]["name"] = json!("takeback");
    assert_eq!(value(&GEMINI)["hooks"]["AfterAgent"], gemini);
    let copilot = value(&COPILOT);
    let line = format!("{} --event agentStop", command("copilot"));
    let hook = json!([{ "type": "command", "bash": line, "timeoutSec": 30 }]);
    assert_eq!((&copilot["version"], &copilot["hooks"]["agentStop"]), (&json!(1), &hook));
    assert!(with_hooks(&OPENCODE, "").starts_with(include_str!("../agents/opencode/plugin.js")));
    for agent in AGENTS {
        let text = with_hooks(agent, "");
        let found = find_hooks(agent, text.as_bytes()).unwrap();
        assert_eq!((found.hooks.len(), found.missing), (agent.hooks.len(), vec![]));
        assert_eq!(add_hooks(agent, Some(text.as_bytes()), &program()).unwrap(), None);
        assert_eq!(remove_hooks(agent, text.as_bytes(), None).unwrap(), Remainder::Nothing);
    }
}

#[test]
fn an_own_file_follows_the_program_and_refuses_other_contents() {
    for agent in AGENTS.iter().filter(|agent| agent.install.is_own_file()) {
        let quoted = HookProgram { word: "'/my dir/takeback'", runs: &|p| p == "/my dir/takeback" };
        let text = add_hooks(agent, None, &quoted).unwrap().unwrap();
        let found = find_hooks(agent, &text).unwrap();
        assert!(found.hooks.iter().all(|hook| hook.command.program == "/my dir/takeback"));
        assert!(add_hooks(agent, Some(&text), &quoted).unwrap().is_none());
        let gone = add_hooks(agent, Some(&text), &program()).unwrap().unwrap();
        assert_eq!(String::from_utf8(gone).unwrap(), with_hooks(agent, ""));
        let foreign = br#"{"version":1,"hooks":{"agentStop":[{"type":"command","bash":"x"}]}}"#;
        let refused = add_hooks(agent, Some(foreign), &program());
        assert!(matches!(refused, Err(SettingsError::Foreign)), "{refused:?}");
    }
}

#[test]
fn hooks_of_others_in_the_same_group_stay() {
    let mine =
        |name: &str| format!(r#"{{ "hooks": [{{ "type": "command", "command": "{name}" }}] }}"#);
    let before = format!("{{\n  \"hooks\": {{ \"Stop\": [ {} ] }}\n}}\n", mine("first"));
    let after = with_hooks(&CLAUDE, &before);
    // Other hooks are added before and after it in its group.
    let at = after.find("takeback hook").unwrap();
    let open = after[..at].rfind("{").unwrap();
    let close = at + after[at..].find('}').unwrap() + 1;
    let beside = r#"{ "type": "prompt", "prompt": "beside" }"#;
    let text =
        format!("{}{beside}, {}, {beside}{}", &after[..open], &after[open..close], &after[close..]);
    let found = find_hooks(&CLAUDE, text.as_bytes()).unwrap();
    assert_eq!(found.hooks[0].position, HookPosition { group: 1, hook: 1 });
    let Remainder::Rest(rest) = remove_hooks(&CLAUDE, text.as_bytes(), None).unwrap() else {
        panic!("others are left")
    };
    let rest = String::from_utf8(rest).unwrap();
    let value = parse_settings(rest.as_bytes()).unwrap();
    let beside: Value = serde_json::from_str(beside).unwrap();
    let first: Value = serde_json::from_str(&mine("first")).unwrap();
    assert_eq!(value, json!({ "hooks": { "Stop": [first, { "hooks": [beside, beside] }] } }));
}

/// A settings file in the layout that `choices` select.
fn any_file(choices: &mut dyn Iterator<Item = u8>) -> String {
    let names = ["a", "hooks", "b", "model"];
    let properties =
        names.iter().filter(|_| choices.next().unwrap_or(0) % 2 == 1).collect::<Vec<_>>();
    let properties: Vec<String> = properties
        .into_iter()
        .map(|name| {
            let value = if *name == "hooks" { any_hooks(choices) } else { any_value(choices) };
            format!("\"{name}\"{}:{}{value}", blank(choices), blank(choices))
        })
        .collect();
    format!("{}{}{}", blank(choices), in_brackets("{", &properties, "}", choices), blank(choices))
}

fn any_hooks(choices: &mut dyn Iterator<Item = u8>) -> String {
    let mut lists = Vec::new();
    for event in ["Stop", "Foreign", "PreToolUse", "SessionEnd"] {
        let count = choices.next().unwrap_or(0) % 4;
        if count < 3 {
            let groups: Vec<String> = (0..count).map(|_| any_value(choices)).collect();
            let list = in_brackets("[", &groups, "]", choices);
            lists.push(format!("\"{event}\":{}{list}", blank(choices)));
        }
    }
    in_brackets("{", &lists, "}", choices)
}

fn any_value(choices: &mut dyn Iterator<Item = u8>) -> String {
    let values = [
        "1",
        "\"// no comment, {[\\\" \"",
        "{\"hooks\":[{\"type\":\"command\",\"command\":\"mine\"}]}",
        "{ }",
        "[ 1, 2, ]",
        "null",
    ];
    values[usize::from(choices.next().unwrap_or(0)) % values.len()].to_owned()
}

fn in_brackets(
    open: &str,
    elements: &[String],
    close: &str,
    choices: &mut dyn Iterator<Item = u8>,
) -> String {
    let mut text = open.to_owned();
    if elements.is_empty() {
        // Brackets with only blanks cannot be restored without the bytes from before.
        let inside = blank(choices);
        text.push_str(if inside.contains('/') { inside } else { "" });
        return text + close;
    }
    for (at, element) in elements.iter().enumerate() {
        text.push_str(&format!("{}{element}{}", blank(choices), blank(choices)));
        if at + 1 < elements.len() || choices.next().unwrap_or(0).is_multiple_of(3) {
            text.push(',');
        }
    }
    text + blank(choices) + close
}

fn blank(choices: &mut dyn Iterator<Item = u8>) -> &'static str {
    const BLANKS: [&str; 10] =
        ["", "", " ", "\n", "\n  ", "\t", "\r\n", " // one\n", "/* two */", "\n\n // é\n  "];
    BLANKS[usize::from(choices.next().unwrap_or(0)) % BLANKS.len()]
}

proptest! {
    #![proptest_config(ProptestConfig { cases: 300, failure_persistence: None, ..ProptestConfig::default() })]

    #[test]
    fn any_file_comes_back_byte_for_byte(choices in prop::collection::vec(any::<u8>(), 0..90)) {
        let before = any_file(&mut choices.into_iter());
        let after = settings::add_hooks_unchecked(&CLAUDE, Some(before.as_bytes()), &program());
        let after = after.map_err(|error| TestCaseError::fail(format!("{before:?}: {error}")))?;
        let after = after.expect("there is something to do");
        let found = find_hooks(&CLAUDE, &after).unwrap();
        prop_assert_eq!((found.hooks.len(), found.missing.len()), (11, 0));
        let rest = remove_hooks(&CLAUDE, &after, Some(before.as_bytes())).unwrap();
        let Remainder::Rest(rest) = rest else { panic!("{rest:?}") };
        let after = String::from_utf8(after).unwrap();
        prop_assert_eq!(String::from_utf8(rest).unwrap(), before, "{}", after);
    }
}
