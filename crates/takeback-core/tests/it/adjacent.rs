//! A person's lines directly next to the agent's: a rewind takes out the agent's and keeps theirs.

use takeback_testkit::Sandbox;

use crate::shown::said;

/// A file that goes through `versions`: at the prompt, after the agent's edit, after the person's.
/// It is rewound to the prompt; the answer is what the receipt says and what the file then holds.
fn rewound(versions: [&str; 3]) -> (Vec<String>, String) {
    let [before, agents, persons] = versions;
    let mut sandbox = Sandbox::in_memory();
    sandbox.write("a.txt", before);
    let point = sandbox.prompt("s", "go");
    sandbox.agent_writes("s", "a.txt", agents);
    sandbox.turn_end("s");
    sandbox.write("a.txt", persons);
    let receipt = sandbox.rewind_to(point);
    let text = sandbox.read("a.txt");

    assert!(sandbox.undo().success);
    assert_eq!(sandbox.read("a.txt"), persons, "undone");
    (said(&receipt), text)
}

fn merged(text: &str) -> (Vec<String>, String) {
    (["success", "merged a.txt"].map(str::to_owned).to_vec(), text.to_owned())
}

#[test]
fn lines_directly_below_what_the_agent_appended_stay() {
    let versions = ["one\ntwo\n", "one\ntwo\nits\nits\n", "one\ntwo\nits\nits\nmine\nmine too\n"];
    assert_eq!(rewound(versions), merged("one\ntwo\nmine\nmine too\n"));
}

#[test]
fn lines_directly_above_what_the_agent_appended_stay() {
    let versions = ["one\ntwo\n", "one\ntwo\nits\nits\n", "one\ntwo\nmine\nmine too\nits\nits\n"];
    assert_eq!(rewound(versions), merged("one\ntwo\nmine\nmine too\n"));
}

#[test]
fn lines_above_and_below_stay_when_those_between_go() {
    let versions = ["one\ntwo\n", "one\nits\ntwo\n", "one\nabove\nits\nbelow\ntwo\n"];
    assert_eq!(rewound(versions), merged("one\nabove\nbelow\ntwo\n"));
}

#[test]
fn a_line_changed_next_to_one_that_the_agent_changed_stays() {
    let versions = ["1\n2\n3\n4\n5\n", "1\n2\nits\n4\n5\n", "1\n2\nits\nmine\n5\n"];
    assert_eq!(rewound(versions), merged("1\n2\n3\nmine\n5\n"));
}

#[test]
fn a_function_below_the_agents_stays() {
    let versions = [
        "fn a() {\n    1\n}\n",
        "fn a() {\n    1\n}\n\nfn its() {\n    2\n}\n",
        "fn a() {\n    1\n}\n\nfn its() {\n    2\n}\n\nfn mine() {\n    3\n}\n",
    ];
    assert_eq!(rewound(versions), merged("fn a() {\n    1\n}\n\nfn mine() {\n    3\n}\n"));
}

#[test]
fn several_turns_with_lines_of_the_person_between_them() {
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
    assert_eq!(said(&sandbox.rewind_to(point)), ["success", "merged a.txt"]);
    assert_eq!(sandbox.read("a.txt"), "one\nmine 1\nmine 2\n");
}

#[test]
fn a_line_between_the_agents_is_a_conflict() {
    let mut sandbox = Sandbox::in_memory();
    sandbox.write("a.txt", "one\n");
    let point = sandbox.prompt("s", "go");
    sandbox.agent_writes("s", "a.txt", "one\nits\nits too\n");
    sandbox.turn_end("s");
    sandbox.write("a.txt", "one\nits\nmine\nits too\n");
    assert_eq!(
        said(&sandbox.rewind_to(point)),
        ["not all", "conflict a.txt: both changed the same lines"]
    );
    assert_eq!(sandbox.read("a.txt"), "one\nits\nmine\nits too\n");
}
