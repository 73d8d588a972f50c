//! A user's lines directly next to the agent's: a rewind removes the agent's and keeps the user's.

use takeback_testkit::Sandbox;

use crate::text::report;

/// A file at the prompt, after the agent's edit, after the user's edit, and after the rewind; `None`:
/// the rewind is a conflict.
struct Row {
    name: &'static str,
    versions: [&'static str; 3],
    rewound: Option<&'static str>,
}

const ROWS: [Row; 6] = [
    Row {
        name: "lines directly below the agent's",
        versions: ["one\ntwo\n", "one\ntwo\nits\nits\n", "one\ntwo\nits\nits\nmine\nmine too\n"],
        rewound: Some("one\ntwo\nmine\nmine too\n"),
    },
    Row {
        name: "lines directly above the agent's",
        versions: ["one\ntwo\n", "one\ntwo\nits\nits\n", "one\ntwo\nmine\nmine too\nits\nits\n"],
        rewound: Some("one\ntwo\nmine\nmine too\n"),
    },
    Row {
        name: "lines above and below the agent's",
        versions: ["one\ntwo\n", "one\nits\ntwo\n", "one\nabove\nits\nbelow\ntwo\n"],
        rewound: Some("one\nabove\nbelow\ntwo\n"),
    },
    Row {
        name: "a changed line next to the agent's changed line",
        versions: ["1\n2\n3\n4\n5\n", "1\n2\nits\n4\n5\n", "1\n2\nits\nmine\n5\n"],
        rewound: Some("1\n2\n3\nmine\n5\n"),
    },
    Row {
        name: "a function below the agent's",
        versions: [
            "fn a() {\n    1\n}\n",
            "fn a() {\n    1\n}\n\nfn its() {\n    2\n}\n",
            "fn a() {\n    1\n}\n\nfn its() {\n    2\n}\n\nfn mine() {\n    3\n}\n",
        ],
        rewound: Some("fn a() {\n    1\n}\n\nfn mine() {\n    3\n}\n"),
    },
    Row {
        name: "a line between the agent's",
        versions: ["one\n", "one\nits\nits too\n", "one\nits\nmine\nits too\n"],
        rewound: None,
    },
];

#[test]
fn adjacent_lines_stay_and_lines_in_between_conflict() {
    for Row { name, versions: [before, agents, users], rewound } in ROWS {
        let mut sandbox = Sandbox::in_memory();
        sandbox.write("a.txt", before);
        let point = sandbox.prompt("s", "go");
        sandbox.agent_writes("s", "a.txt", agents);
        sandbox.turn_end("s");
        sandbox.write("a.txt", users);
        let expected = match rewound {
            Some(_) => ["success", "merged a.txt"],
            None => ["not all", "conflict a.txt: both changed the same lines"],
        };
        assert_eq!(report(&sandbox.rewind_to(point)), expected, "{name}");
        assert_eq!(sandbox.read("a.txt"), rewound.unwrap_or(users), "{name}");
        if rewound.is_some() {
            assert!(sandbox.undo().success, "{name}");
        }
        assert_eq!(sandbox.read("a.txt"), users, "{name}, undone");
    }
}

#[test]
fn lines_of_the_user_between_several_turns_stay() {
    let mut sandbox = Sandbox::in_memory();
    sandbox.write("a.txt", "one\n");
    let point = sandbox.prompt("s", "go");
    sandbox.agent_writes("s", "a.txt", "one\nits 1\n");
    sandbox.turn_end("s");
    sandbox.write("a.txt", "one\nits 1\nmine 1\n");
    sandbox.prompt("s", "go on");
    sandbox.agent_writes("s", "a.txt", "one\nits 1\nmine 1\nits 2\n");
    sandbox.turn_end("s");
    sandbox.write("a.txt", "one\nits 1\nmine 1\nits 2\nmine 2\n");
    assert_eq!(report(&sandbox.rewind_to(point)), ["success", "merged a.txt"]);
    assert_eq!(sandbox.read("a.txt"), "one\nmine 1\nmine 2\n");
}
