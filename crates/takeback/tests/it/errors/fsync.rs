//! A disk that accepts writes and then does not confirm them.

use super::after_an_agent;
use crate::user::User;

/// Fails a command's n-th sync, or all from the n-th on, for every n. After each try the message is true, placed
/// files can be taken back, and no journal is open.
fn fail_everywhere(user: &User, args: &[&str]) -> (usize, usize) {
    let restore = user.backup();
    let before = user.tree();
    let mut tries = Vec::new();
    for call in ["fsync", "fdatasync"] {
        let calls = user.count_calls(call, args);
        restore();
        tries.extend((1..=calls).flat_map(|n| [(call, n, ""), (call, n, "+")]));
    }
    user.succeeds(args);
    let after = user.tree();
    assert_ne!(before, after);
    let (mut placed, mut untouched) = (0, 0);
    for (call, n, until) in tries {
        restore();
        let answer = user.with_failing(&format!("{call}:error=EIO:when={n}{until}"), None, args);
        let told = format!("{args:?} at {call} {n}{until}: {answer:?}");
        let now = user.tree();
        if answer.code == 0 {
            assert_eq!(now, after, "{told}");
            continue;
        }
        assert_eq!(answer.code, 1, "{told}");
        let all = format!("{}{}", answer.out, answer.err);
        if now == before {
            untouched += 1;
        } else {
            placed += 1;
            assert_eq!(now, after, "{told}");
            assert!(!all.contains("othing to take back"), "{told}");
            assert!(!all.contains("othing was changed"), "{told}");
            assert!(!all.contains("were not changed"), "{told}");
            assert!(all.contains("in place"), "{told}");
        }
        let recovered = user.takeback(&["recover"]);
        // A rollback is all or nothing: files are taken back if the state could not follow.
        let may_be = if args[0] == "state" { &[0, 4][..] } else { &[0] };
        assert!(may_be.contains(&recovered.code), "{told}: {recovered:?}");
        assert_eq!(user.takeback(&["verify"]).code, 0, "{told}");
        if user.tree() == after {
            let undone = user.takeback(&["undo", "-y"]);
            assert_eq!(undone.code, 0, "{told}: {undone:?}");
        }
        assert_eq!(user.tree(), before, "{told}");
    }
    (placed, untouched)
}

#[test]
fn an_unconfirmed_rewind_is_reported_and_can_be_undone() {
    let user = after_an_agent();
    let (placed, untouched) = fail_everywhere(&user, &["rewind", "m", "-y"]);
    assert!(placed > 2 && untouched > 2, "{placed} {untouched}");
    // With one folder, the main thread syncs it, so that its calls are counted.
    let user = after_an_agent();
    let (placed, _) = fail_everywhere(&user, &["rewind", "m", "-y", "--path", "a.txt"]);
    assert!(placed > 2, "{placed}");
}

#[test]
fn an_unconfirmed_rollback_is_reported_and_can_be_undone() {
    let user = crate::state::rollback::after_a_run();
    let (placed, untouched) = fail_everywhere(&user, &["state", "rollback", "ckpt-e-1", "-y"]);
    assert!(placed > 2 && untouched > 2, "{placed} {untouched}");
}

/// A file that cannot be opened from some moment of the rewind on.
#[test]
fn an_unverified_file_is_reported_and_can_be_undone() {
    let user = after_an_agent();
    let restore = user.backup();
    let mut placed = 0;
    for n in 1..=16 {
        restore();
        let rule = format!("openat:error=EIO:when={n}+");
        let answer = user.with_failing(&rule, Some("a.txt"), &["rewind", "m", "-y"]);
        let told = format!("{n}: {answer:?}");
        if answer.code == 0 {
            continue;
        }
        if user.read("a.txt") == "one\n" {
            placed += 1;
            assert!(!answer.out.contains("othing to take back"), "{told}");
            assert!(answer.out.contains("restored  a.txt"), "{told}");
        }
        assert_eq!(user.takeback(&["recover"]).code, 0, "{told}");
        if user.read("a.txt") == "one\n" {
            assert_eq!(user.takeback(&["undo", "-y"]).code, 0, "{told}");
        }
        assert_eq!(user.read("a.txt"), "two\n", "{told}");
    }
    assert!(placed > 0, "some of them come after the file is in place");
}
