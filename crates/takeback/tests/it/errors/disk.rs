//! A full disk, files that change while they are read, and a home on another file system.

use std::os::unix::fs::MetadataExt as _;
use std::path::Path;
use std::sync::atomic::{AtomicBool, Ordering};

use serde_json::Value;

use super::after_an_agent;
use crate::user::{User, path_text};

/// System calls that make a store grow.
const GROWING: [&str; 4] = ["write", "pwrite64", "ftruncate", "fallocate"];

/// Runs a command with a full disk at each of its writes, one try each. After each try the tree is as before or
/// as the command leaves it, and with free space the command succeeds.
fn fill_everywhere(user: &User, args: &[&str]) -> usize {
    let restore = user.backup();
    let before = user.tree();
    let mut calls = Vec::new();
    for call in GROWING {
        calls.extend((1..=user.count_calls(call, args)).map(|n| (call, n)));
        restore();
    }
    user.succeeds(args);
    let after = user.tree();
    let mut refused = 0;
    for (call, n) in calls {
        restore();
        // For SQLite's files the disk stays full; printing the answer must succeed.
        let until = if call == "write" { "" } else { "+" };
        let answer = user.with_failing(&format!("{call}:error=ENOSPC:when={n}{until}"), None, args);
        let told = format!("{args:?} at {call} {n}: {answer:?}");
        if answer.code != 0 {
            refused += 1;
            assert_eq!(answer.code, 1, "{told}");
            let hinted = ["Free some disk space", "The disk is full or failing"];
            assert!(hinted.iter().any(|hint| answer.err.contains(hint)), "{told}");
        }
        assert_eq!(user.takeback(&["recover"]).code, 0, "{told}");
        assert_eq!(user.takeback(&["verify"]).code, 0, "{told}");
        let now = user.tree();
        assert!(now == before || now == after, "{told}");
        if answer.code != 0 && now == before {
            assert_eq!(user.takeback(args).code, 0, "{told}, then with room");
            assert_eq!(user.tree(), after, "{told}, then with room");
        }
    }
    refused
}

#[test]
fn a_full_disk_loses_nothing_that_was_recorded() {
    let user = after_an_agent();
    user.write("more", "something new\n");
    assert!(fill_everywhere(&user, &["checkpoint"]) > 10);
}

#[test]
fn a_full_disk_loses_nothing_in_a_rewind() {
    let user = after_an_agent();
    assert!(fill_everywhere(&user, &["rewind", "m", "-y"]) > 10);
}

#[test]
fn a_full_disk_says_what_to_do() {
    let user = after_an_agent();
    // Once files are older than a clock tick, the next scan is the last that writes the index.
    std::thread::sleep(std::time::Duration::from_millis(50));
    user.takeback(&["status"]);
    let before = user.tree();
    let in_workspace = user.with_failing("write:error=ENOSPC:when=1", None, &["rewind", "m", "-y"]);
    assert_eq!(in_workspace.code, 1);
    insta::assert_snapshot!(in_workspace.err, @"
    takeback: cannot stage a.txt: No space left on device (os error 28)
      Nothing was changed.
      Free some disk space and try again; nothing was lost.
    ");
    let no_folder = user.with_failing("mkdirat:error=ENOSPC:when=1", None, &["rewind", "m", "-y"]);
    insta::assert_snapshot!(no_folder.err, @r"
    takeback: cannot stage .takeback: No space left on device (os error 28)
      Nothing was changed.
      Free some disk space and try again; nothing was lost.
    ");
    assert_eq!(user.tree(), before);
    user.write("more", "something new\n");
    let in_pack = user.with_failing("write:error=ENOSPC:when=1", None, &["checkpoint"]);
    assert_eq!(in_pack.code, 1);
    insta::assert_snapshot!(in_pack.err, @r"
    takeback: FOLDER/home/.takeback/workspaces/work-LONG-ID/packs/ID.pack cannot be used (appending to it): No space left on device (os error 28)
      Free some disk space and try again; nothing was lost.
    ");
    let in_database = user.with_failing("pwrite64:error=ENOSPC:when=1+", None, &["checkpoint"]);
    insta::assert_snapshot!(in_database.err, @"
    takeback: FOLDER/home/.takeback/workspaces/work-LONG-ID/timeline.db cannot be used (opening it): Input/output error (os error 5)
      The disk is full or failing: fix that and try again. Your files were not changed.
    ");
    let calls = user.count_calls("pwrite64", &["checkpoint"]);
    user.write("more", "something newer\n");
    let mut late = (1..=calls).map(|n| {
        user.with_failing(&format!("pwrite64:error=ENOSPC:when={n}+"), None, &["checkpoint"]).err
    });
    let late = late.find(|err| err.contains("database or disk is full"));
    insta::assert_snapshot!(late.expect("the database grows"), @"
    takeback: FOLDER/home/.takeback/workspaces/work-LONG-ID/timeline.db cannot be used (committing to it): database or disk is full
      Free some disk space and try again; nothing was lost.
    ");
}

#[test]
fn an_answer_that_cannot_be_written() {
    let user = after_an_agent();
    let full = |args: &[&str]| {
        let file = std::fs::OpenOptions::new().write(true).open("/dev/full").expect("it is there");
        let output = user.command(args).stdout(file).output().expect("it runs");
        (output.status.code(), String::from_utf8(output.stderr).expect("text"))
    };
    let (code, err) = full(&["log"]);
    assert_eq!(code, Some(1));
    insta::assert_snapshot!(err, @r"
    takeback: the answer could not be written: No space left on device (os error 28)
      Free some disk space and try again; nothing was lost.
    ");
    let (code, err) = full(&["log", "--json"]);
    assert_eq!(code, Some(1));
    insta::assert_snapshot!(err, @r#"{"error":"the answer could not be written: No space left on device (os error 28)","hints":["Free some disk space and try again; nothing was lost."],"code":1}"#);
}

#[test]
fn a_file_that_vanishes_while_it_is_read_is_absent_and_stops_nothing() {
    let user = User::with(&[("a.txt", "one\n"), ("b.txt", "b\n")]);
    let answer = user.with_failing("openat:error=ENOENT:when=1", Some("a.txt"), &["checkpoint"]);
    assert_eq!(answer.code, 0, "it came back: {answer:?}");
    assert!(!answer.out.contains("not captured"), "{answer:?}");
    user.write("a.txt", "two\n");
    let answer = user.with_failing("openat:error=ENOENT:when=1+", Some("a.txt"), &["checkpoint"]);
    assert_eq!(answer.code, 0);
    insta::assert_snapshot!(answer.out, @r"
    Point ID  2 files in FOLDER/work
      not captured: a.txt  it kept changing while it was read
    ");
    user.succeeds(&["checkpoint"]);
    assert_eq!(user.json(&["log"])[0]["notCaptured"], 0, "it is kept as soon as it can be");
}

#[test]
fn a_file_that_is_shorter_than_it_was_is_not_kept_by_halves() {
    let user = User::with(&[("a.txt", "one\n")]);
    let file = &path_text(&user.work().join("a.txt"));
    let answer = user.with_failing("read:retval=0:when=1", Some(file), &["checkpoint"]);
    assert_eq!((answer.code, answer.out.contains("not captured")), (0, false), "{answer:?}");
    user.write("a.txt", "three\n");
    let answer = user.with_failing("read:retval=0:when=1+", Some(file), &["checkpoint", "torn"]);
    assert_eq!(answer.code, 0);
    insta::assert_snapshot!(answer.out, @r"
    Point ID “torn”  1 file in FOLDER/work
      not captured: a.txt  it kept changing while it was read
    ");
}

/// Whatever state is recorded, it is complete.
#[test]
fn a_file_that_grows_while_it_is_read() {
    let user = User::with(&[("log.txt", "")]);
    let done = AtomicBool::new(false);
    std::thread::scope(|scope| {
        scope.spawn(|| {
            use std::io::Write as _;
            let file = std::fs::OpenOptions::new().append(true).open(user.work().join("log.txt"));
            let mut file = file.expect("it opens");
            while !done.load(Ordering::Relaxed) {
                file.write_all(b"0123456789abcde\n").expect("it grows");
            }
        });
        for _ in 0..10 {
            user.succeeds(&["checkpoint"]);
        }
        done.store(true, Ordering::Relaxed);
    });
    let answer = user.takeback(&["checkpoint", "quiet"]);
    assert!(!answer.out.contains("not captured"), "{answer:?}");
    user.succeeds(&["verify"]);
    let whole = user.read("log.txt");
    user.write("log.txt", "cut\n");
    user.succeeds(&["rewind", "quiet", "--exact", "-y"]);
    assert!(user.read("log.txt") == whole);
}

#[test]
fn a_home_on_another_file_system() {
    let user = User::with(&[("a.txt", "one\n"), ("lib/b.txt", "b\n")]);
    let device = |path: &Path| std::fs::metadata(path).expect("it is there").dev();
    let elsewhere = ["/dev/shm", "/tmp", "/var/tmp", env!("CARGO_TARGET_TMPDIR")]
        .map(Path::new)
        .into_iter()
        .filter(|folder| folder.is_dir())
        .find(|folder| device(folder) != device(&user.work()))
        .expect("this test needs two file systems that can be written to");
    let home = tempfile::tempdir_in(elsewhere).expect("a folder there");
    let home = &path_text(&home.path().join("home"));
    let run = |args: &[&str]| user.takeback(&[&["--home", home], args].concat());
    assert_eq!(run(&["checkpoint", "first"]).code, 0);
    let before = user.tree();
    assert_eq!(
        run(&["run", "--", "sh", "-c", "rm -r lib; echo two > a.txt; echo n > new"]).code,
        0
    );
    let after = user.tree();
    assert_eq!(run(&["rewind", "first", "-y"]).code, 0);
    assert_eq!(user.tree(), before);
    assert_eq!(run(&["undo", "-y"]).code, 0);
    assert_eq!(user.tree(), after);
    assert_eq!(run(&["verify"]).code, 0);
}

/// File systems on which a file without a name cannot get one, other file systems, no `/proc`. With few files,
/// which one thread makes, and with many, which several threads make.
#[test]
fn file_systems_without_unnamed_files() {
    for files in [2, 12] {
        let user = User::new();
        let write = |text: &str| {
            for number in 0..files {
                user.write(&format!("d{}/{number}", number % 3), &format!("{number}: {text}\n"));
            }
        };
        write("before");
        let before = user.tree();
        user.agent_turn("m", "go", ("Bash", &[]), || write("by the agent"));
        let restore = user.backup();
        for error in ["ENOENT", "EXDEV", "EOPNOTSUPP"] {
            restore();
            let rule = format!("linkat:error={error}:when=1+");
            let answer = user.with_failing(&rule, None, &["rewind", "m", "-y"]);
            assert_eq!((answer.code, answer.err.as_str()), (0, ""), "{error}: {answer:?}");
            assert_eq!(user.tree(), before, "{error}");
        }
    }
}

#[test]
fn an_undo_that_failed_for_a_file_is_repeated_for_it() {
    let user = after_an_agent();
    let after = user.tree();
    user.succeeds(&["rewind", "m", "-y"]);
    let restore = user.backup();
    let renames = user.count_calls("renameat2", &["undo", "-y"]);
    let mut repeated = 0;
    for n in 1..=renames {
        restore();
        let rule = format!("renameat2:error=EIO:when={n}");
        let failed = user.with_failing(&rule, None, &["undo", "-y", "--json"]);
        let receipt: Value = serde_json::from_str(&failed.out).unwrap_or_default();
        if receipt["errors"].as_array().is_none_or(Vec::is_empty) {
            continue;
        }
        assert_eq!(failed.code, 1, "{failed:?}");
        assert_ne!(user.tree(), after, "{failed:?}");
        let again = user.takeback(&["undo", "-y"]);
        assert_eq!(again.code, 0, "{again:?}, after {failed:?}");
        assert_eq!(user.tree(), after, "{again:?}");
        assert_eq!(user.takeback(&["undo", "-y"]).code, 5, "it is taken back");
        repeated += 1;
    }
    assert!(repeated > 0, "of {renames} renames");
}
