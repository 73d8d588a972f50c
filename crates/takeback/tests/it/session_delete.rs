//! `takeback session delete` leaves nothing that the session wrote in the store, even after a rewind.

use crate::purge::find_secrets;
use crate::user::User;

const SECRETS: [&str; 2] = ["otter-5512-written", "otter-5512-asked"];

/// A session wrote a secret, and a rewind took it back. There is also a manual point.
fn after_a_rewind() -> User {
    let user = User::with(&[("a.txt", "base\n")]);
    user.succeeds(&["checkpoint", "mine"]);
    user.agent_turn("m", "write otter-5512-asked", ("Edit", &["a.txt"]), || {
        user.write("a.txt", "otter-5512-written\n");
    });
    user.succeeds(&["rewind", "@", "-y"]);
    assert_eq!(user.read("a.txt"), "base\n");
    assert!(!find_secrets(&user.home(), &SECRETS).is_empty(), "what is looked for can be found");
    user
}

#[test]
fn nothing_is_left_and_undo_says_why_it_cannot() {
    let user = after_a_rewind();
    assert_eq!(user.json(&["session", "delete", "s", "--dry-run"])["rewinds"], 1);
    let would = user.takeback(&["session", "delete", "s", "--dry-run"]);
    assert!(would.out.contains("  1 rewind could no longer be undone\n"), "{would:?}");
    let deleted = user.takeback(&["session", "delete", "s", "-y"]);
    assert_eq!(deleted.code, 0, "{}", deleted.err);
    assert!(deleted.out.ends_with("1 rewind can no longer be undone.\n"), "{deleted:?}");
    assert_eq!(find_secrets(&user.home(), &SECRETS), []);
    let undo = user.takeback(&["undo", "-y"]);
    insta::assert_snapshot!(undo.err, @"
    takeback: the last rewind cannot be undone or redone: it was deleted together with a session
      `takeback log` lists the points that are left.
    ");
    assert_eq!(undo.code, 5);
    user.exits(5, &["redo", "-y"]);
    user.succeeds(&["verify"]);
    assert_eq!(user.read("a.txt"), "base\n");

    // Later rewinds can be undone.
    user.write("a.txt", "by hand\n");
    user.succeeds(&["rewind", "mine", "--exact", "-y"]);
    assert_eq!((user.takeback(&["undo", "-y"]).code, user.read("a.txt")), (0, "by hand\n".into()));
    user.exits(5, &["undo", "-y"]);
}

#[test]
fn an_interrupted_deletion_is_finished_by_the_next_command() {
    let user = after_a_rewind();
    let restore = user.backup();
    let mut deleted = 0;
    for number in 1.. {
        restore();
        let rule = format!("fsync,fdatasync:signal=KILL:when={number}");
        if !user.killed_unprivileged(&rule, &["session", "delete", "s", "-y"]) {
            break;
        }
        let recovered = user.takeback(&["recover"]);
        assert_eq!(recovered.code, 0, "{number}: {}", recovered.err);
        let sessions = user.json(&["sessions"]);
        if sessions.as_array().is_some_and(Vec::is_empty) {
            deleted += 1;
            assert_eq!(find_secrets(&user.home(), &SECRETS), [], "killed at sync {number}");
        }
    }
    assert!(deleted > 0, "some were killed after the session was gone from the log");
}
