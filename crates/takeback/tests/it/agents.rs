//! The real agents, used as they are: their hooks run this `takeback`, and a server of the tests plays
//! their model.
//!
//! A program is the one that `TAKEBACK_CODEX` (and so on) names, or that `scripts/install-agents` put
//! into `target/agents`. Where it is not there, its test says that it is skipped; with
//! `TAKEBACK_E2E=require` those fail instead that `TAKEBACK_E2E_AGENTS` lists (`claude`, unless it says
//! otherwise).

mod claude;
mod codex;
mod copilot;
mod desk;
mod gemini;
mod opencode;
mod pi;
mod qwen;
mod stories;
mod terminal;

use std::collections::{BTreeMap, BTreeSet};
use std::path::{Path, PathBuf};
use std::process::Command;
use takeback_agents::AgentKind;

use serde_json::{Value, json};
use takeback_testkit::Thing;

use self::desk::Desk;

/// An agent as its tests drive it.
trait Driven {
    const AGENT: &'static AgentKind;

    /// Writes the settings with which the program finds the model and runs the hooks.
    fn settle(desk: &Desk);

    /// The program, asked something.
    fn ask(desk: &Desk, conversation: Conversation, prompt: &str) -> Command;

    /// What the model says, message by message, to make a file with its edit tool.
    fn write(desk: &Desk, path: &str, text: &str) -> Vec<Value>;

    /// To put another line in place of one.
    fn replace(desk: &Desk, path: &str, line: &str, with: &str) -> Vec<Value>;

    fn run(command: &str) -> Vec<Value>;
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Conversation {
    New,
    /// The one before goes on.
    Goes,
}

const FILES: &[(&str, &str)] = &[
    ("notes.txt", "one\n"),
    ("gone.txt", "here\n"),
    ("mine.txt", "mine\n"),
    ("shared.txt", "top\n1\n2\n3\n4\nbottom\n"),
];

/// What is changed after the first prompt and before the second, and by whom.
const AFTER_FIRST: &[(&str, &str)] = &[
    ("notes.txt", "agent"),
    ("made", "agent"),
    ("made/new.txt", "agent"),
    ("shared.txt", "agent"),
    ("gone.txt", "agent"),
    ("shell.txt", "agent"),
    ("empty", "agent"),
    ("mine.txt", "human"),
    ("shared.txt", "human"),
    ("human", "human"),
    ("human/made.txt", "human"),
];

const AFTER_SECOND: &[(&str, &str)] = &[
    ("notes.txt", "agent"),
    ("shared.txt", "agent"),
    ("made/later.txt", "agent"),
    ("shell.txt", "agent"),
    ("made/new.txt", "agent"),
];

/// Two prompts with edits and commands, the user's own work in between, and back to before the first.
fn is_taken_back_and_yours_stays<A: Driven>() {
    let Some(desk) = Desk::of::<A>(FILES) else { return };
    let user = &desk.user;
    let before = user.tree();
    let script = [
        A::replace(&desk, "notes.txt", "one", "two"),
        A::write(&desk, "made/new.txt", "new\n"),
        A::replace(&desk, "shared.txt", "top", "top, the agent's"),
        A::run("rm gone.txt; echo shell > shell.txt; mkdir empty"),
    ];
    desk.ask::<A>(Conversation::New, "First", &script.concat());
    assert_eq!(user.read("notes.txt"), "two\n");
    assert!(user.exists("shell.txt") && user.exists("empty") && !user.exists("gone.txt"));

    user.write("mine.txt", "mine, and more\n");
    user.write("shared.txt", "top, the agent's\n1\n2\n3\n4\nbottom, mine\n");
    user.write("human/made.txt", "mine\n");
    let expected = with_yours(before, &user.tree());

    let script = [
        A::replace(&desk, "notes.txt", "two", "three"),
        A::replace(&desk, "shared.txt", "top, the agent's", "top, the agent's again"),
        A::write(&desk, "made/later.txt", "later\n"),
        A::run("echo more >> shell.txt; echo more >> made/new.txt"),
    ];
    desk.ask::<A>(Conversation::Goes, "Second", &script.concat());
    assert_eq!(user.read("notes.txt"), "three\n");
    assert_eq!(user.read("made/new.txt"), "new\nmore\n");

    let session = desk.session::<A>();
    let points = user.json(&["log"]);
    let told: Vec<&str> = points.as_array().into_iter().flatten().filter_map(described).collect();
    assert_eq!(told, ["Second", "First"], "{points}");
    assert_eq!(authors(&user.json(&["show", "@~1"]), &session), named(AFTER_FIRST));
    assert_eq!(authors(&user.json(&["show", "@"]), &session), named(AFTER_SECOND));

    let first = points[1]["id"].as_str().expect("it has an id");
    let answer = user.takeback(&["rewind", first, "-y"]);
    assert_eq!(answer.code, 0, "{answer:?}");
    assert_eq!(user.tree(), expected, "{answer:?}");
    assert_eq!(user.takeback(&["verify"]).code, 0);
}

/// The tree as it was before the first prompt, with what the user has done since.
fn with_yours(mut before: Tree, now: &Tree) -> Tree {
    for path in ["mine.txt", "human", "human/made.txt"].map(PathBuf::from) {
        let yours = now[&path].clone();
        before.insert(path, yours);
    }
    let Some(Thing::File { bytes, .. }) = before.get_mut(Path::new("shared.txt")) else {
        panic!("it is a file");
    };
    *bytes = b"top\n1\n2\n3\n4\nbottom, mine\n".to_vec();
    before
}

type Tree = BTreeMap<PathBuf, Thing>;

/// What a point was made for, without the script that its prompt carries.
fn described(point: &Value) -> Option<&str> {
    point["description"].as_str()?.split('.').next()
}

/// Which path was changed by whom after a point: `agent`, if it was this session.
fn authors(shown: &Value, session: &str) -> BTreeSet<(String, String)> {
    let changes = shown["changes"].as_array().unwrap_or_else(|| panic!("{shown}"));
    let author = |change: &Value| {
        let author = &change["author"];
        let kind = author["kind"].as_str().unwrap_or_else(|| panic!("{change}"));
        assert!(kind != "agent" || author["session"] == session, "{change}");
        (change["filePath"].as_str().unwrap_or_default().to_owned(), kind.to_owned())
    };
    changes.iter().map(author).collect()
}

fn named(expected: &[(&str, &str)]) -> BTreeSet<(String, String)> {
    expected.iter().map(|(path, author)| ((*path).to_owned(), (*author).to_owned())).collect()
}

/// A message in which the model calls one tool.
fn calls(tool: &str, input: &Value) -> Vec<Value> {
    vec![json!([{"name": tool, "input": input}])]
}

fn absolute(desk: &Desk, path: &str) -> String {
    desk.user.work().join(path).display().to_string()
}
