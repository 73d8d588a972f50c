//! Unreadable folders and files do not count as unchanged. As an ordinary user.

use std::time::{Duration, Instant};

use serde_json::Value;

use crate::user::{Answer, User};

/// An ordinary user whose folder has a point.
fn ordinary_user(files: &[(&str, &str)]) -> User {
    let user = User::with(files);
    user.drop_privileges();
    user.unprivileged_exits(0, &["checkpoint", "start"]);
    user
}

fn run(user: &User, script: &str) -> Answer {
    user.unprivileged(&["run", "--", "/bin/sh", "-c", script])
}

fn json(user: &User, args: &[&str]) -> (i32, Value) {
    let answer = user.unprivileged(&[args, &["--json"]].concat());
    // Eight-digit numbers look like ids.
    let value = serde_json::from_str(&answer.out.replace(":ID", ":0"));
    (answer.code, value.unwrap_or_else(|error| panic!("{error}: {answer:?}")))
}

const DAMAGE: &str = "echo agent > dir/a.txt; rm dir/b.txt; echo new > dir/new.txt; \
                      echo agent > dir/sub/c.txt; mkdir dir/made; echo m > dir/made/m.txt; \
                      chmod 000 dir";

fn after_damage() -> User {
    let user = ordinary_user(&[
        ("dir/a.txt", "one\n"),
        ("dir/b.txt", "two\n"),
        ("dir/sub/c.txt", "three\n"),
        ("other.txt", "x\n"),
    ]);
    let answer = run(&user, DAMAGE);
    assert_eq!(answer.code, 0, "{answer:?}");
    assert!(answer.err.contains("not read: dir/"), "{answer:?}");
    user
}

#[test]
fn an_agent_that_makes_a_folder_unreadable_hides_nothing() {
    let user = after_damage();
    let preview = user.unprivileged_exits(4, &["rewind", "@", "--dry-run"]);
    assert!(preview.out.contains("made readable first"), "{preview:?}");
    assert_eq!(user.mode("dir"), 0, "a preview changes nothing");
    let answer = user.unprivileged_exits(0, &["rewind", "@", "-y"]);
    assert_eq!(user.mode("dir"), 0o755);
    assert_eq!(user.read("dir/a.txt"), "one\n");
    assert_eq!(user.read("dir/b.txt"), "two\n");
    assert_eq!(user.read("dir/sub/c.txt"), "three\n");
    assert!(!user.exists("dir/new.txt"), "what the agent made goes: {answer:?}");
    assert!(!user.exists("dir/made"), "{answer:?}");
    // An undo loses nothing either.
    user.unprivileged_exits(0, &["undo", "-y"]);
    assert_eq!(user.mode("dir"), 0);
    user.set_mode("dir", 0o755);
    assert_eq!(user.read("dir/a.txt"), "agent\n");
    assert_eq!(user.read("dir/new.txt"), "new\n");
    assert!(!user.exists("dir/b.txt"));
}

#[test]
fn a_closed_folder_in_a_closed_folder_is_opened_too() {
    let user = ordinary_user(&[("dir/sub/c.txt", "three\n"), ("dir/a.txt", "one\n")]);
    let answer = run(&user, "echo agent > dir/sub/c.txt; chmod 000 dir/sub; chmod 000 dir");
    assert_eq!(answer.code, 0, "{answer:?}");
    user.unprivileged_exits(0, &["rewind", "@", "-y"]);
    assert_eq!((user.mode("dir"), user.mode("dir/sub")), (0o755, 0o755));
    assert_eq!(user.read("dir/sub/c.txt"), "three\n");
}

#[test]
fn checkpoint_status_and_points_report_it() {
    let user = after_damage();
    user.unprivileged_exits(3, &["checkpoint", "blind"]).prints("not read: dir/");
    let (code, told) = json(&user, &["checkpoint", "again"]);
    assert_eq!((code, told["unreadable"][0]["filePath"].as_str()), (3, Some("dir")), "{told}");
    assert_eq!(told["unreadable"][0]["known"], 4, "{told}");
    let (_, told) = json(&user, &["status"]);
    assert_eq!(told["unreadable"][0]["filePath"], "dir", "{told}");
    assert!(user.unprivileged(&["status"]).out.contains("dir"), "in text too");
    let log = user.unprivileged(&["log"]);
    let line = log.out.lines().find(|line| line.contains("again")).unwrap_or_default();
    assert!(line.contains("4 not read"), "{log:?}");
    user.set_mode("dir", 0o755);
    user.unprivileged_exits(0, &["checkpoint", "seen"]);
}

/// The user closed the folder; the agent's earlier work below is taken back, and the mode stays.
#[test]
fn the_users_own_mode_stays() {
    let user = ordinary_user(&[("dir/a.txt", "one\n"), ("dir/b.txt", "two\n")]);
    assert_eq!(run(&user, "echo agent > dir/a.txt").code, 0);
    user.set_mode("dir", 0o000);
    user.unprivileged_exits(0, &["rewind", "@", "-y"]);
    assert_eq!(user.mode("dir"), 0);
    user.set_mode("dir", 0o755);
    assert_eq!((user.read("dir/a.txt"), user.read("dir/b.txt")), ("one\n".into(), "two\n".into()));
}

/// A folder that can be listed but not searched, and a file that cannot be read.
#[test]
fn names_without_their_metadata_are_no_evidence() {
    let user = ordinary_user(&[("dir/a.txt", "one\n"), ("b.txt", "two\n")]);
    let answer =
        run(&user, "echo agent > dir/a.txt; echo agent > b.txt; chmod 444 dir; chmod 0 b.txt");
    assert!(answer.err.contains("not read: dir/"), "{answer:?}");
    assert!(answer.err.contains("b.txt"), "{answer:?}");
    let answer = user.unprivileged(&["rewind", "@", "-y"]);
    assert_eq!(answer.code, 4, "the file's bytes cannot be kept: {answer:?}");
    assert_eq!((user.mode("dir"), user.read("dir/a.txt").as_str()), (0o755, "one\n"));
}

/// While it was closed, a call and the user may both have written, so the time alone decides nothing.
#[test]
fn unseen_changes_are_unclear_if_a_call_ran() {
    let user = ordinary_user(&[("dir/a.txt", "one\n"), ("dir/b.txt", "two\n")]);
    user.set_mode("dir", 0o000);
    user.unprivileged_exits(3, &["checkpoint"]);
    let script = "chmod 755 dir; echo two > dir/a.txt; chmod 000 dir; sleep 0.3";
    assert_eq!(run(&user, script).code, 0);
    user.set_mode("dir", 0o755);
    user.unprivileged_exits(4, &["rewind", "start", "-y"]).prints("unclear");
    assert_eq!(user.read("dir/a.txt"), "two\n");
}

/// The same without a call: the change is the user's.
#[test]
fn unseen_changes_are_the_users_if_no_call_ran() {
    let user = ordinary_user(&[("dir/a.txt", "one\n"), ("dir/b.txt", "two\n")]);
    assert_eq!(run(&user, "chmod 000 dir").code, 0);
    std::thread::sleep(Duration::from_millis(600));
    user.set_mode("dir", 0o755);
    user.write("dir/a.txt", "mine\n");
    let answer = user.unprivileged(&["rewind", "start", "-y"]);
    // Whether the agent had changed it before is unknown, and reported.
    assert_eq!(answer.code, 4, "{answer:?}");
    assert!(answer.out.contains("missing   dir/a.txt"), "{answer:?}");
    assert!(!answer.out.contains("b.txt"), "it is as it was: {answer:?}");
    assert_eq!((user.read("dir/a.txt"), user.read("dir/b.txt")), ("mine\n".into(), "two\n".into()));
    let (_, told) = json(&user, &["show", "@"]);
    let changes = told["changes"].as_array().expect("changes").iter();
    let of_a: Vec<&Value> = changes.filter(|change| change["filePath"] == "dir/a.txt").collect();
    assert_eq!(of_a.last().expect("it changed")["author"]["kind"], "human", "{told}");
}

#[test]
fn a_disk_that_fails_is_no_evidence() {
    for errno in ["EIO", "EMFILE", "ENFILE", "EACCES"] {
        let user = User::with(&[("dir/a.txt", "one\n"), ("b.txt", "two\n")]);
        user.succeeds(&["checkpoint", "start"]);
        user.write("dir/a.txt", "changed\n");
        user.write("dir/new.txt", "new\n");
        let rule = format!("openat2:error={errno}:when=1+");
        let answer = user.with_failing(&rule, Some("dir"), &["checkpoint", "blind"]);
        assert_eq!(answer.code, 3, "{errno}: {answer:?}");
        assert!(answer.out.contains("not read: dir/"), "{errno}: {answer:?}");
        // The next scan finds the contents that were there all the time.
        let answer = user.takeback(&["checkpoint", "seen"]);
        assert_eq!(answer.code, 0, "{errno}: {answer:?}");
        let answer = user.takeback(&["rewind", "start", "--exact", "-y"]);
        // The point in between does not know whether the new file existed.
        assert_eq!((answer.code, user.read("dir/a.txt").as_str()), (4, "one\n"), "{answer:?}");
        assert!(answer.out.contains("missing   dir/new.txt"), "{answer:?}");
    }
}

/// The root itself is unreadable: the command keeps its exit code, and the failure is reported.
#[test]
fn a_root_that_cannot_be_read_is_an_error() {
    let user = ordinary_user(&[("a.txt", "one\n"), ("dir/b.txt", "two\n")]);
    let answer = run(&user, "echo agent > a.txt; chmod 000 .");
    assert_eq!(answer.code, 0, "{answer:?}");
    assert!(answer.err.contains("cannot scan"), "{answer:?}");
    user.set_mode(".", 0o755);
    let answer = user.unprivileged(&["rewind", "@", "-y"]);
    assert_eq!(answer.code, 4, "the end of the command was not seen: {answer:?}");
    assert!(answer.out.contains("unclear   a.txt"), "{answer:?}");
}

/// After a crash while the folder is open, its mode is restored.
#[test]
fn a_crash_while_it_is_open_puts_the_mode_right() {
    let user = after_damage();
    assert!(user.killed_unprivileged("renameat2:signal=SIGKILL:when=1", &["rewind", "@", "-y"]));
    user.unprivileged_exits(0, &["recover"]);
    assert_eq!(user.mode("dir"), 0o755);
    assert_eq!(user.read("dir/a.txt"), "one\n");
}

/// The same at each wait for the disk: the folder has its earlier mode or the point's, and no other.
#[test]
fn a_crash_at_any_moment_leaves_no_folder_open() {
    let mut was_closed_again = false;
    for at in 1.. {
        let user = after_damage();
        let rule = format!("fsync,fdatasync:signal=SIGKILL:when={at}");
        let was_killed = user.killed_unprivileged(&rule, &["rewind", "@", "-y"]);
        let was_open = user.mode("dir") == 0o700;
        let answer = user.unprivileged(&["recover"]);
        let mode = user.mode("dir");
        assert!(matches!(mode, 0 | 0o755), "{at}: {mode:o} {answer:?}");
        was_closed_again |= was_open && mode == 0;
        let answer = user.unprivileged(&["rewind", "@", "-y"]);
        assert!(matches!(answer.code, 0 | 5), "{at}: {answer:?}");
        assert_eq!((user.mode("dir"), user.read("dir/a.txt").as_str()), (0o755, "one\n"));
        if !was_killed {
            break;
        }
    }
    assert!(was_closed_again, "one of them came between opening and planning");
}

#[test]
fn ten_thousand_names_are_no_burden() {
    let user = User::new();
    for at in 0..10_000 {
        user.write(&format!("dir/{}/{at}.txt", at % 20), "x\n");
    }
    user.drop_privileges();
    user.unprivileged_exits(0, &["checkpoint", "start"]);
    let began = Instant::now();
    let answer = run(&user, "echo y > dir/1/1.txt; chmod 000 dir");
    assert_eq!(answer.code, 0, "{answer:?}");
    assert!(answer.err.lines().count() < 40, "{answer:?}");
    assert!(answer.err.contains("10020"), "{answer:?}");
    let answer = user.unprivileged(&["rewind", "@", "-y"]);
    assert_eq!((answer.code, user.read("dir/1/1.txt").as_str()), (0, "x\n"), "{answer:?}");
    assert!(began.elapsed() < Duration::from_secs(30), "{:?}", began.elapsed());
}
