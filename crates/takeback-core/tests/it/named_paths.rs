//! Paths that a command names, and further ids of a point.

use std::fs;
use std::path::PathBuf;
use std::time::Duration;

use takeback_core::find_point;
use takeback_core::lock::{Hold, lock};
use takeback_core::{AgentEvent, CallTargets, RecordOutcome, learn_ids};
use takeback_store::{CallId, CallKind, Entry, NotCapturedReason, SessionId};
use takeback_testkit::{Sandbox, path};

use crate::text::{assert_consistent, authors, history, report};

/// A command that carries a patch of these files.
fn before(sandbox: &mut Sandbox, call: &str, paths: &[PathBuf]) -> RecordOutcome {
    sandbox.tell(&AgentEvent::BeforeTool {
        session: SessionId::from("s"),
        call: CallId::from(call),
        tool: "Bash".to_owned(),
        touches: CallTargets::Anything {
            command: Some("apply_patch".to_owned()),
            paths: paths.to_vec(),
        },
    })
}

fn steps(sandbox: &Sandbox, of: &str) -> Vec<(Entry, Entry)> {
    history(sandbox, of).into_iter().map(|change| (change.before, change.after)).collect()
}

fn texts(sandbox: &Sandbox, of: &str) -> Vec<String> {
    let contents = |entry: Entry| match entry.digest() {
        Some(digest) => {
            let bytes = sandbox.workspace.store.contents(&digest).unwrap();
            String::from_utf8(bytes).unwrap().trim().to_owned()
        }
        None => format!("{entry:?}"),
    };
    steps(sandbox, of)
        .into_iter()
        .map(|(before, after)| format!("{} -> {}", contents(before), contents(after)))
        .collect()
}

fn with_a_derived_folder() -> Sandbox {
    let sandbox = Sandbox::new();
    sandbox.write("package.json", "{}\n");
    sandbox.write("node_modules/lib/index.js", "one\n");
    sandbox.write("a.txt", "one\n");
    sandbox
}

const DERIVED: &str = "node_modules/lib/index.js";

#[test]
fn paths_named_by_a_command_are_covered_everywhere() {
    let mut sandbox = with_a_derived_folder();
    let outside = sandbox.outside().join("elsewhere.txt");
    fs::write(&outside, "one\n").unwrap();
    let point = sandbox.prompt("s", "go");
    assert_eq!(history(&sandbox, DERIVED), []);
    let names = [sandbox.at(DERIVED), sandbox.at("node_modules/new/x.js"), outside.clone()];
    before(&mut sandbox, "c", &names);
    let call = sandbox.workspace.store.call(&"s".into(), &"c".into()).unwrap().expect("it is open");
    let CallKind::Shell { command, paths } = call.kind else { panic!("{call:?}") };
    let mut named = vec![
        path(outside.canonicalize().unwrap().to_str().unwrap()),
        path(DERIVED),
        path("node_modules/new"),
        path("node_modules/new/x.js"),
    ];
    named.sort();
    assert_eq!((command.as_deref(), paths), (Some("apply_patch"), named));

    sandbox.write(DERIVED, "two\n");
    sandbox.write("node_modules/new/x.js", "x\n");
    fs::write(&outside, "two\n").unwrap();
    sandbox.write("a.txt", "two\n");
    sandbox.after("s", "c");
    sandbox.turn_end("s");
    assert_eq!(texts(&sandbox, DERIVED), ["Unknown -> one", "one -> two"]);
    assert_eq!(authors(&sandbox, DERIVED), ["s c Bash named"]);
    assert_eq!(authors(&sandbox, "node_modules/new/x.js").last().unwrap(), "s c Bash named");
    assert_eq!(authors(&sandbox, "a.txt"), ["s c Bash window"]);
    assert_consistent(&sandbox);
    let receipt = sandbox.rewind_to(point);
    assert_eq!(sandbox.read(DERIVED), "one\n", "{:?}", report(&receipt));
    assert_eq!(sandbox.read("a.txt"), "one\n");
    assert_eq!(fs::read_to_string(&outside).unwrap(), "two\n", "outside, only on request");
}

#[test]
fn paths_named_by_an_unended_command_are_looked_at() {
    let mut sandbox = with_a_derived_folder();
    sandbox.prompt("s", "go");
    let names = [sandbox.at(DERIVED)];
    before(&mut sandbox, "c", &names);
    sandbox.write(DERIVED, "two\n");
    sandbox.turn_end("s");
    assert_eq!(texts(&sandbox, DERIVED), ["Unknown -> one", "one -> two"]);
    assert_eq!(authors(&sandbox, DERIVED), ["s c Bash named"]);
}

#[test]
fn a_command_that_names_a_path_is_its_author() {
    let mut sandbox = with_a_derived_folder();
    sandbox.prompt("s", "go");
    let names = [sandbox.at("a.txt")];
    before(&mut sandbox, "names it", &names);
    // A part of the same session runs something else meanwhile.
    sandbox.tell(&AgentEvent::SessionStart {
        session: SessionId::from("s/part"),
        agent: None,
        parent: Some(SessionId::from("s")),
        owner: None,
        model: None,
    });
    let later = sandbox.before_shell("s/part", "make");
    sandbox.write("a.txt", "two\n");
    sandbox.write("b.txt", "b\n");
    sandbox.after("s/part", &later);
    assert_eq!(authors(&sandbox, "a.txt"), ["s names it Bash named"]);
    assert_eq!(authors(&sandbox, "b.txt"), ["s/part call-1 Bash window"]);
}

#[test]
fn paths_named_during_a_lock_are_reported_as_not_captured() {
    let mut sandbox = with_a_derived_folder();
    let point = sandbox.prompt("s", "go");
    sandbox.workspace.limits.recorder_patience = Duration::ZERO;
    let held = lock(&sandbox.workspace.store_dir.join("lock"), Hold::Exclusive, Duration::ZERO);
    let names = [sandbox.at(DERIVED), sandbox.at("a.txt"), sandbox.at("none.txt")];
    let recorded = before(&mut sandbox, "c", &names);
    let missing = ["a.txt", DERIVED, "none.txt"].map(|of| (path(of), NotCapturedReason::Deadline));
    assert_eq!((recorded.late, &recorded.not_captured[..]), (true, &missing[..]));
    drop(held);
    sandbox.write(DERIVED, "two\n");
    sandbox.after("s", "c");
    sandbox.turn_end("s");
    let unread = Entry::NotCaptured { reason: NotCapturedReason::Deadline };
    let derived = steps(&sandbox, DERIVED);
    assert_eq!(derived[0], (Entry::Unknown, unread.clone()));
    assert_eq!(derived[1].0, unread);
    assert_eq!(authors(&sandbox, DERIVED), ["s c Bash named"]);
    // What the scan knows to be as it was is not in doubt.
    assert_eq!((steps(&sandbox, "a.txt").len(), history(&sandbox, "none.txt").len()), (1, 0));
    sandbox.rewind_to(point);
    assert_eq!(sandbox.read(DERIVED), "two\n");
}

// --- points learn ids -----------------------------------------------------------------------------

fn ids(sandbox: &Sandbox) -> Vec<Vec<String>> {
    let points = sandbox.workspace.store.points().unwrap();
    points.into_iter().map(|point| point.message_ids).collect()
}

fn learn(sandbox: &mut Sandbox, session: &str, known: &str, also: &[&str]) -> bool {
    let also: Vec<String> = also.iter().map(|id| (*id).to_owned()).collect();
    learn_ids(&mut sandbox.workspace, &SessionId::from(session), known, &also).unwrap()
}

#[test]
fn a_point_is_found_by_every_id_it_has_learned() {
    let mut sandbox = Sandbox::new();
    sandbox.prompt("s", "a");
    let point = sandbox.prompt("s", "b");
    assert!(learn(&mut sandbox, "s", "message b", &["uuid", "message b", "uuid", "other"]));
    let expected = [vec!["message a"], vec!["message b", "uuid", "other"]];
    assert_eq!(ids(&sandbox), expected);
    assert!(learn(&mut sandbox, "s", "uuid", &["third"]), "any of them will do");

    sandbox.reopen();
    let points = sandbox.workspace.store.points().unwrap();
    for name in ["message b", "uuid", "other", "third", "s:uuid"] {
        assert_eq!(find_point(&points, name, &|_| None).unwrap().id, point, "{name}");
    }
}

#[test]
fn nothing_is_written_where_there_is_nothing_to_learn() {
    let mut sandbox = Sandbox::new();
    sandbox.prompt("s", "a");
    sandbox.prompt("t", "b");
    let head = sandbox.workspace.store.head().unwrap();
    for (session, known, also) in [
        ("s", "message a", &["message a"][..]),
        ("s", "message a", &[]),
        ("s", "message b", &["another session's"]),
        ("unknown", "message a", &["no such session"]),
    ] {
        assert!(!learn(&mut sandbox, session, known, also), "{session} {known}");
    }
    assert_eq!(sandbox.workspace.store.head().unwrap(), head);
}

#[test]
fn the_newest_of_several_points_with_an_id_learns() {
    let mut sandbox = Sandbox::new();
    sandbox.prompt("s", "again");
    sandbox.prompt("s", "other");
    sandbox.prompt("s", "again");
    assert!(learn(&mut sandbox, "s", "message again", &["uuid"]));
    let expected = [vec!["message again"], vec!["message other"], vec!["message again", "uuid"]];
    assert_eq!(ids(&sandbox), expected);
}
