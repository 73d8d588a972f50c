//! `notes` and `export --agent-trace`, and `blame` in a folder that has no history.

#![expect(clippy::unwrap_used, reason = "a test that cannot go on panics")]

use std::fs;
use std::process::Command;

use serde_json::{Value, json};

use crate::hook::Session;
use crate::schema::Schema;
use crate::user::User;

pub(crate) fn git(user: &User, line: &str) -> String {
    let output = Command::new("git")
        .args(line.split(' '))
        .current_dir(user.work())
        .env("GIT_CONFIG_GLOBAL", "/dev/null")
        .env("GIT_CONFIG_SYSTEM", "/dev/null")
        .output()
        .expect("git runs");
    assert!(output.status.success(), "git {line}: {output:?}");
    String::from_utf8(output.stdout).unwrap()
}

/// A repository in which an agent has added a line, committed.
pub(crate) fn project() -> User {
    let user = User::with(&[("a.txt", "one\n")]);
    git(&user, "init -q -b main");
    git(&user, "config user.name Me");
    git(&user, "config user.email me@example.com");
    git(&user, "add -A");
    git(&user, "commit -qm base");
    let mut session = Session::of(&user, "s");
    session.prompt("Add two.");
    session.write("c", "a.txt", "one\ntwo\n");
    session.stop();
    git(&user, "commit -qam work");
    user
}

fn outcomes(answer: &Value) -> Vec<&str> {
    let commits = answer["commits"].as_array().unwrap();
    commits.iter().map(|commit| commit["outcome"].as_str().unwrap()).collect()
}

#[test]
fn notes_are_written_shown_and_left_when_they_are_anothers() {
    let (user, schema) = (project(), Schema::read());
    let json = |args: &[&str]| {
        let answer = user.json(&[&["notes"], args].concat());
        schema.check(&format!("notes-{}", args[0]), &answer, args);
        answer
    };
    user.exits(1, &["notes", "show"]).reports("has no note");
    let dry = json(&["write", "--dry-run"]);
    assert_eq!((outcomes(&dry), &dry["written"]), (vec!["written"], &json!(1)));
    user.succeeds(&["notes", "write", "--dry-run"])
        .prints("would write")
        .prints("\"tool\": \"claude\"");
    assert_eq!(git(&user, "for-each-ref refs/notes"), "");
    user.succeeds(&["notes", "write", "HEAD~1.."]).prints("1 line by agents");
    assert_eq!(outcomes(&json(&["write"])), ["unchanged"]);
    assert_eq!(outcomes(&json(&["write", "HEAD~1"])), ["nothingKnown"]);
    let shown = json(&["show"]);
    assert_eq!(shown["isOwn"], true);
    user.succeeds(&["notes", "show"]).prints("authorship/3.0.0");
    git(&user, "notes --ref=ai add -f -m theirs");
    user.exits(4, &["notes", "write"]).prints("another tool wrote its note").prints("--replace");
    user.succeeds(&["notes", "write", "--replace"]).prints("replaced");
    user.exits(1, &["notes", "write", "nowhere"]).reports("HEAD, v1.0, main..HEAD");
}

#[test]
fn records_are_exported_and_both_are_read_where_there_is_no_history() {
    let user = project();
    user.succeeds(&["notes", "write"]);
    let trace = user.home().join("trace.jsonl");
    let name = trace.to_str().unwrap();
    let answer = user.json(&["export", "--agent-trace", name]);
    assert_eq!(
        (&answer["records"], &answer["aiLines"], &answer["files"]),
        (&json!(1), &json!(1), &json!(1))
    );
    user.exits(2, &["export", "--agent-trace", name]).reports("--force");
    user.succeeds(&["export", "--agent-trace", name, "--force"]).prints("1 by agents");
    let record: Value = serde_json::from_str(&fs::read_to_string(&trace).unwrap()).unwrap();
    assert_eq!(record["vcs"]["revision"], git(&user, "rev-parse HEAD").trim());
    let printed = user.succeeds(&["export", "--agent-trace", "-"]);
    assert!(printed.out.starts_with("{\"version\":\"0.1.0\""), "{}", printed.out);
    fs::remove_dir_all(user.store()).unwrap();
    let sources = |source: &str| {
        let lines = user.json(&["blame", "a.txt"]);
        let lines: Vec<Value> = lines
            .as_array()
            .unwrap()
            .iter()
            .map(|line| json!([line["author"], line["source"]]))
            .collect();
        assert_eq!(lines, [json!(["other", "git"]), json!(["agent", source])]);
    };
    sources("note");
    git(&user, "update-ref -d refs/notes/ai");
    fs::create_dir(user.work().join(".agent-trace")).unwrap();
    fs::copy(&trace, user.work().join(".agent-trace/traces.jsonl")).unwrap();
    sources("trace");
    user.succeeds(&["blame", "a.txt", "-L", "2"])
        .prints("claude")
        .reports("only git, notes and traces were asked");
    fs::remove_dir_all(user.work().join(".git")).unwrap();
    user.exits(10, &["blame", "a.txt"]);
    user.exits(1, &["notes", "write"]).reports("is not in a git repository");
}
