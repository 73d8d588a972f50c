//! With `TAKEBACK_STATES_AS_JSON_FILES=true`.

use std::fs;
use std::path::PathBuf;

use serde_json::{Value, json};

use super::checkpoint;
use crate::user::{Answer, User, column};

fn run(user: &User, args: &[&str], input: &str) -> Answer {
    let mut command = user.command(args);
    command.env("TAKEBACK_STATES_AS_JSON_FILES", "true");
    user.answer_of(command, input)
}

fn saved(user: &User, last: u32) {
    for step in 1..=last {
        let answer = run(user, &["state", "save"], &checkpoint(step, &json!({})));
        assert_eq!(answer.code, 0, "{answer:?}");
    }
}

/// The folder of the states, which has the name of the store.
fn states(user: &User) -> PathBuf {
    let store = user.store();
    user.home().join(".takeback/projects").join(store.file_name().expect("it has a name"))
}

/// Three steps; the file of the last one is truncated.
fn with_a_damaged_head() -> User {
    let user = User::with(&[("a.txt", "one\n")]);
    saved(&user, 3);
    let path = find(states(&user), "ckpt-e-3.json").expect("it is there");
    let whole = fs::read(&path).expect("it can be read");
    fs::write(path, &whole[..whole.len() / 2]).expect("it is cut");
    user
}

fn find(below: PathBuf, name: &str) -> Option<PathBuf> {
    let mut entries =
        fs::read_dir(below).expect("a folder").map(|entry| entry.expect("one").path());
    entries.find_map(|path| match path.is_dir() {
        true => find(path, name),
        false => path.ends_with(name).then_some(path),
    })
}

#[test]
fn a_damaged_head_is_named_and_everything_else_works() {
    let ids = |answer: &Answer| -> Vec<Value> {
        column(&serde_json::from_str(&answer.out).expect("JSON"), "id")
    };
    let user = with_a_damaged_head();
    for _ in 0..2 {
        for args in [&["state", "list", "e"][..], &["state", "list"]] {
            let listed = run(&user, args, "");
            assert_eq!(listed.code, 3, "{listed:?}");
            assert!(listed.out.contains("ckpt-e-3.json"), "{listed:?}");
        }
        let listed = run(&user, &["state", "list", "e", "--json"], "");
        assert_eq!(listed.code, 3, "{listed:?}");
        assert_eq!(ids(&listed), ["ckpt-e-1", "ckpt-e-2"]);
        assert!(listed.err.contains("ckpt-e-3.json is damaged"), "{listed:?}");
    }
    let damaged = run(&user, &["state", "show", "ckpt-e-3"], "");
    assert_ne!(damaged.code, 0, "{damaged:?}");
    assert!(damaged.err.contains("ckpt-e-3.json is damaged"), "{damaged:?}");

    // Whether or not an earlier command has set the damaged file aside.
    for (args, says) in [
        (&["state", "show", "ckpt-e-1"][..], "ckpt-e-1"),
        (&["state", "show", "e"], "ckpt-e-2"),
        (&["state", "resume", "e"], "ckpt-e-2"),
        (&["state", "resume", "e", "--from-step", "3"], "ckpt-e-2"),
        (&["state", "rollback", "ckpt-e-1", "--state-only", "-y"], ""),
        (&["state", "delete", "ckpt-e-1", "-y"], "Deleted ckpt-e-1.a1  1 checkpoint"),
        (&["state", "delete", "e", "-y"], "Deleted e  2 checkpoints"),
    ] {
        for is_first in [true, false] {
            let user = with_a_damaged_head();
            if !is_first {
                assert_eq!(run(&user, &["state", "list", "e"], "").code, 3);
            }
            let answer = run(&user, args, "");
            assert_eq!(answer.code, 0, "{args:?}: {answer:?}");
            assert!(answer.out.contains(says), "{args:?}: {answer:?}");
        }
    }
    let user = with_a_damaged_head();
    let rolled = run(&user, &["state", "rollback", "ckpt-e-1", "--state-only", "-y"], "");
    assert_eq!(rolled.code, 0, "{rolled:?}");
    let listed = run(&user, &["state", "list", "e", "--json"], "");
    assert_eq!(ids(&listed), ["ckpt-e-1"]);
    let user = with_a_damaged_head();
    assert_eq!(run(&user, &["state", "delete", "e", "-y"], "").code, 0);
    let listed = run(&user, &["state", "list", "--json"], "");
    assert_eq!((listed.code, listed.out.trim()), (0, "[]"), "{listed:?}");
}

#[test]
fn json_states_are_forgotten_and_relocated_with_the_store() {
    let user = User::with(&[("a.txt", "one\n")]);
    saved(&user, 1);
    let before = states(&user);
    assert!(find(before.clone(), "ckpt-e-1.json").is_some());
    let (old, new) = (user.work(), user.work().with_file_name("moved"));
    fs::rename(&old, &new).expect("it moves");
    let there = |args: &[&str]| {
        let mut command = user.command(args);
        command.env("TAKEBACK_STATES_AS_JSON_FILES", "true").current_dir(&new);
        user.answer_of(command, "")
    };
    let moved = there(&["relocate", old.to_str().expect("utf-8")]);
    assert_eq!(moved.code, 0, "{moved:?}");
    let after = states(&user);
    assert_ne!(before, after);
    assert!(!before.exists());
    assert!(find(after.clone(), "ckpt-e-1.json").is_some());
    let listed = there(&["state", "list", "e"]);
    assert!(listed.code == 0 && listed.out.starts_with("ckpt-e-1 "), "{listed:?}");
    let forgotten = there(&["forget", "-y"]);
    assert_eq!(forgotten.code, 0, "{forgotten:?}");
    assert!(!after.exists());
}

#[test]
fn a_checkpoint_whose_file_was_deleted_is_reported() {
    let user = User::with(&[("a.txt", "one\n")]);
    saved(&user, 3);
    assert_eq!(run(&user, &["verify"], "").code, 0);
    assert_eq!(run(&user, &["state", "list", "e"], "").code, 0);
    fs::remove_file(find(states(&user), "ckpt-e-2.json").expect("it is there")).expect("it goes");
    let listed = run(&user, &["state", "list", "e"], "");
    assert_eq!(listed.code, 3, "{listed:?}");
    let gone = "its file is gone, and no command of Takeback deleted it";
    assert!(format!("{}{}", listed.out, listed.err).contains("ckpt-e-2.a1"), "{listed:?}");
    let all = run(&user, &["state", "list"], "");
    assert_eq!(all.code, 3, "{all:?}");
    let verified = run(&user, &["verify"], "");
    assert_eq!(verified.code, 1, "{verified:?}");
    assert!(format!("{}{}", verified.out, verified.err).contains(gone), "{verified:?}");

    // A checkpoint that a command deletes is not reported.
    assert_eq!(run(&user, &["state", "delete", "e", "-y"], "").code, 0);
    saved(&user, 3);
    assert_eq!(run(&user, &["state", "delete", "ckpt-e-2", "-y"], "").code, 0);
    assert_eq!(run(&user, &["verify"], "").code, 0);
    assert_eq!(run(&user, &["state", "list", "e"], "").code, 0);
}
