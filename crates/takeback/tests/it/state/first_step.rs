//! Several processes start one execution; only one makes its first step.

use std::process::{Child, Stdio};

use serde_json::{Value, json};

use super::checkpoint;
use crate::user::User;

const PROCESSES: u32 = 8;

fn first(who: u32) -> Value {
    json!({ "parent": null, "expect": "newest", "state": { "by": who } })
}

/// Starts `takeback state save` and writes its input without closing it, so that the process waits.
fn begin(user: &User, who: u32) -> (Child, std::process::ChildStdin) {
    use std::io::Write as _;
    let mut command = user.patient_command(&["state", "save", "--json"]);
    command.stdin(Stdio::piped()).stdout(Stdio::piped()).stderr(Stdio::piped());
    let mut child = command.spawn().expect("it starts");
    let mut input = child.stdin.take().expect("it is piped");
    let text = checkpoint(1, &first(who));
    input.write_all(text.as_bytes()).expect("it listens");
    (child, input)
}

fn one_of_eight_makes_the_first_step(user: &User) {
    let mut begun: Vec<_> = (0..PROCESSES).map(|who| begin(user, who)).collect();
    // They continue when their input ends.
    let children: Vec<Child> = begun.drain(..).map(|(child, _input)| child).collect();
    let outputs = children.into_iter().map(|child| child.wait_with_output().expect("it ends"));
    let outputs: Vec<_> = outputs.collect();
    let codes = |code| outputs.iter().filter(|one| one.status.code() == Some(code)).count();
    assert_eq!((codes(0), codes(4)), (1, 7), "{outputs:#?}");
    for refused in outputs.iter().filter(|one| one.status.code() == Some(4)) {
        let told = String::from_utf8_lossy(&refused.stderr);
        let expected = "ckpt-e-1 must be the first, but branch main is at ckpt-e-1.a1";
        assert!(told.contains(expected), "{told}");
    }
    let listed = user.json(&["state", "list", "e", "--all"]);
    assert_eq!(listed.as_array().map(Vec::len), Some(1), "{listed}");
    // The point of the saved checkpoint exists.
    let point = listed[0]["point"].as_str().expect("a point").to_owned();
    user.succeeds(&["show", &point]);
}

#[test]
fn one_of_eight_processes_makes_the_first_step() {
    let user = User::with(&[("a.txt", "a\n")]);
    one_of_eight_makes_the_first_step(&user);
}

#[test]
fn one_of_eight_processes_makes_the_first_step_in_json_files() {
    let user = User::with(&[("a.txt", "a\n")]);
    user.set(r#"{"statesAsJsonFiles": true}"#);
    one_of_eight_makes_the_first_step(&user);
}

#[test]
fn a_null_parent_without_expect_expects_nothing() {
    let user = User::new();
    for who in 0..2 {
        let answer = user.save(1, &json!({ "parent": null, "state": { "by": who } }));
        assert_eq!(answer.code, 0, "{answer:?}");
    }
    assert_eq!(user.ids(&["e", "--all"]), ["ckpt-e-1.a1", "ckpt-e-1"]);
    let refused = user.save(1, &first(2));
    assert_eq!(refused.code, 4);
    insta::assert_snapshot!(refused.err, @"
    takeback: ckpt-e-1 must be the first, but branch main is at ckpt-e-1.a2
      Another process saved in the meantime: `takeback state list` shows the newest checkpoint.
    ");
}
