//! Agents in forks: several at once, and one that continues its conversation.

use std::path::Path;
use std::sync::Arc;

use serde_json::{Value, json};
use takeback_testkit::Thing;

use super::claude::CLAUDE;
use super::codex::CODEX;
use super::gemini::GEMINI;
use super::pi::PI;
use super::setup::AgentSetup;
use super::{AgentDriver, Conversation};
use crate::follow_up::git;
use crate::user::{User, column};

const FILES: &[(&str, &str)] =
    &[("price.txt", "top\n1\n2\n3\n4\ntotal\n"), ("mine.txt", "mine\n"), ("old.txt", "old\n")];

const TRIES: [&str; 3] = ["../try-1", "../try-2", "../try-3"];

const AGENTS: [&AgentDriver; 3] = [&CLAUDE, &CODEX, &GEMINI];

/// What the command of `compare` looks for, and only the second agent writes.
const WANTED: &str = "total with discount";

/// `takeback ARGS --json` in another folder.
fn json_in(user: &User, folder: &Path, args: &[&str]) -> Value {
    let mut command = user.command(&[args, &["--json"]].concat());
    command.current_dir(folder);
    let output = user.output_of(command);
    serde_json::from_slice(&output.stdout)
        .unwrap_or_else(|error| panic!("{args:?}: {error}: {output:?}"))
}

fn file(text: &str) -> Thing {
    Thing::File { bytes: text.as_bytes().to_vec(), mode: 0o644 }
}

#[test]
fn three_agents_try_at_once_and_the_best_is_adopted() {
    let user = Arc::new(User::with(FILES));
    let folder = |name: &str| user.work().join(name);
    let setups = [0, 1, 2].map(|at| {
        let fork = user.work().with_file_name(format!("try-{}", at + 1));
        AgentSetup::of(AGENTS[at], Arc::clone(&user), fork)
    });
    let [Some(claude), Some(codex), Some(gemini)] = &setups else { return };
    for line in ["init -q", "add -A", "commit -qm first"] {
        git(&user, line);
    }
    user.write("mine.txt", "mine, not committed\n");
    user.write("draft.txt", "a draft\n");
    user.succeeds(&["fork", "now", "../try", "--count", "3"]);

    let agents = [
        (
            claude,
            [
                claude.replace("price.txt", "total", "total of Claude"),
                claude.write("claude.txt", "claude\n"),
            ]
            .concat(),
        ),
        (
            codex,
            [
                codex.replace("price.txt", "total", WANTED),
                codex.write("made/discount.txt", "10 %\n"),
                codex.run("rm old.txt; echo more >> draft.txt"),
            ]
            .concat(),
        ),
        (
            gemini,
            gemini.run("sed -i s/total/sum/ price.txt; rm mine.txt; echo gemini > gemini.txt"),
        ),
    ];
    std::thread::scope(|scope| {
        for (setup, script) in &agents {
            setup.model.hold();
            scope.spawn(|| {
                setup.prompt(Conversation::New, "Add a discount", std::slice::from_ref(script));
            });
        }
        // Each has begun its turn before any goes on.
        agents.iter().for_each(|(setup, _)| setup.model.wait_for(1));
        user.write("price.txt", "top, mine\n1\n2\n3\n4\ntotal\n");
        user.write("mine.txt", "mine, since then\n");
        agents.iter().for_each(|(setup, _)| setup.model.release());
    });

    for (fork, agent) in TRIES.iter().zip(AGENTS) {
        let log = json_in(&user, &folder(fork), &["log", "--by", agent.kind.name]);
        let prompts: Vec<Value> = column(&log, "kind");
        assert_eq!(prompts, ["prompt"], "{fork}: {log}");
    }
    assert_eq!(user.json(&["sessions"]), json!([]));

    let compare = [&["compare"], &TRIES[..], &["--json", "--", "grep", "-q", WANTED, "price.txt"]];
    let output = user.output_of(user.command(&compare.concat()));
    let compared: Value = serde_json::from_slice(&output.stdout).expect("JSON");
    let forks = compared["forks"].as_array().expect("forks");
    let codes: Vec<&Value> = forks.iter().map(|fork| &fork["command"]["exitCode"]).collect();
    assert_eq!(codes, [1, 0, 1], "{compared}");
    let agents: Vec<Value> =
        forks.iter().flat_map(|fork| column(&fork["sessions"], "agent")).collect();
    assert_eq!(agents, ["claude", "codex", "gemini"]);
    let files: Vec<&Value> = forks.iter().map(|fork| &fork["files"]).collect();
    assert_eq!(files, [2, 4, 3], "{compared}");

    let before = user.tree();
    let mut expected = before.clone();
    expected.remove(Path::new("old.txt"));
    expected.insert("made".into(), Thing::Folder { mode: 0o755 });
    for (path, text) in [
        ("price.txt", "top, mine\n1\n2\n3\n4\ntotal with discount\n"),
        ("made/discount.txt", "10 %\n"),
        ("draft.txt", "a draft\nmore\n"),
    ] {
        expected.insert(path.into(), file(text));
    }
    let receipt = user.json(&["adopt", TRIES[1], "-y"]);
    assert_eq!(receipt["success"], true, "{receipt}");
    assert_eq!(user.tree(), expected, "{receipt}");
    assert_eq!(user.read("mine.txt"), "mine, since then\n");
    user.succeeds(&["verify"]);

    user.succeeds(&["undo", "-y"]);
    assert_eq!(user.tree(), before);
}

/// After two prompts and a fork, the command that `fork` shows continues the conversation in the fork. The
/// model reads the first prompt, and the second one if it should.
fn continues_in_a_fork(driver: &'static AgentDriver, point: &str, second: bool) {
    let Some(setup) = AgentSetup::new(driver, FILES) else { return };
    let user = &setup.user;
    setup.prompt(Conversation::New, "Say ALPHA", &[]);
    setup.prompt(Conversation::Continued, "Say BETA", &[]);
    let forked = user.json(&["fork", point, "../try"]);
    let command = forked["conversation"]["headless"][0].as_str();
    let command = command.unwrap_or_else(|| panic!("{forked}"));
    let before = setup.model.asked().len();
    setup.shell(&format!("{command} 'Say GAMMA'"));

    let asked: Vec<String> =
        setup.model.asked()[before..].iter().map(ToString::to_string).collect();
    let asked = asked.iter().find(|body| body.contains("Say GAMMA")).expect("the prompt was sent");
    let said = ["ALPHA", "BETA"].map(|word| asked.contains(&format!("Say {word}")));
    assert_eq!(said, [true, second], "{command}: {asked}");
    let fork = user.work().with_file_name("try");
    assert!(asked.contains(&fork.display().to_string()), "it works there: {asked}");
}

#[test]
fn claude_continues_before_the_prompt() {
    continues_in_a_fork(&CLAUDE, "@", false);
}

#[test]
fn claude_continues_where_it_is_now() {
    continues_in_a_fork(&CLAUDE, "now", true);
}

#[test]
fn codex_continues_where_it_is_now() {
    continues_in_a_fork(&CODEX, "now", true);
}

#[test]
fn pi_continues_where_it_is_now() {
    continues_in_a_fork(&PI, "now", true);
}
