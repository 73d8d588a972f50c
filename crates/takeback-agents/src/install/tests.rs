//! Hooks go into files of every look, and come out again.

use super::*;

fn program<'a>() -> Program<'a> {
    Program { word: "takeback", runs: &|program| program == "takeback" }
}

fn put_in(agent: Plugged, before: &str) -> String {
    let after = with_hooks(agent, Some(before.as_bytes()), &program());
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
    ("unicode", "{\n  \"größe\": \"日本 \\u0041 🦀\"\n}\n"),
];

/// Without knowing what was there before anybody changed it since.
#[test]
fn what_goes_in_comes_out_again() {
    // Blanks around what is put in may change with it.
    let spread = ["one line", "an empty object on two lines", "blank lines"];
    for (name, before) in ODD.iter().filter(|(name, _)| !spread.contains(name)) {
        let after = put_in(Plugged::Claude, before);
        let rest = without_hooks(Plugged::Claude, after.as_bytes(), Some(before.as_bytes()));
        let Without::Rest(rest) = rest.unwrap() else { panic!("{name}") };
        assert_eq!(String::from_utf8(rest).unwrap(), *before, "{name}");
    }
}
