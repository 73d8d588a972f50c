//! Closed standard input, and output without a reader.

use std::process::{Command, Stdio};

use super::after_an_agent;
use crate::user::{Answer, User};

/// Runs a shell script, which can close streams.
fn in_shell(user: &User, script: &str) -> Answer {
    let mut command = Command::new("bash");
    command.args(["-c", script, env!("CARGO_BIN_EXE_takeback")]);
    command.current_dir(user.work()).env_clear().env("HOME", user.home());
    command.env("PATH", std::env::var_os("PATH").unwrap_or_default());
    user.answer_of(command, "")
}

#[test]
fn input_that_is_closed() {
    let user = after_an_agent();
    let before = user.tree();
    let answer = in_shell(&user, r#""$0" record <&-"#);
    assert_eq!(answer, Answer { code: 0, out: String::new(), err: String::new() });
    for command in ["rewind m", "forget"] {
        let answer = in_shell(&user, &format!(r#""$0" {command} <&-"#));
        assert_eq!(answer.code, 2, "{answer:?}");
        assert!(answer.err.contains("needs confirmation"), "{answer:?}");
    }
    insta::assert_snapshot!(in_shell(&user, r#""$0" rewind m <&-"#).err, @r"
    takeback: this changes files and needs confirmation
      Run it in a terminal, or pass -y; --dry-run shows what it would do.
    ");
    assert_eq!(in_shell(&user, r#""$0" run -- cat <&-"#).code, 0);
    assert_eq!(user.tree(), before);
}

#[test]
fn output_that_is_closed() {
    let user = after_an_agent();
    for command in ["log", "log --json", "status", "checkpoint"] {
        let answer = in_shell(&user, &format!(r#""$0" {command} >&-"#));
        assert_eq!(answer, Answer { code: 0, out: String::new(), err: String::new() }, "{command}");
    }
}

/// Runs with a pipe without a reader as standard output.
fn run_without_reader(user: &User, args: &[&str], input: &str) -> Answer {
    let (reader, writer) = std::io::pipe().expect("a pipe");
    drop(reader);
    let mut command = user.command(args);
    command.stdin(Stdio::piped()).stdout(writer).stderr(Stdio::piped());
    let mut child = command.spawn().expect("it starts");
    drop(command);
    std::io::Write::write_all(&mut child.stdin.take().expect("piped"), input.as_bytes())
        .expect("it listens to the end");
    let output = child.wait_with_output().expect("it ends");
    Answer {
        code: output.status.code().expect("it ends by itself"),
        out: String::new(),
        err: String::from_utf8(output.stderr).expect("text"),
    }
}

#[test]
fn a_command_that_only_reads_succeeds_without_a_reader() {
    let user = after_an_agent();
    for args in [
        &["log"][..],
        &["show"],
        &["diff", "m"],
        &["status"],
        &["config"],
        &["workspaces"],
        &["sessions"],
        &["du"],
    ] {
        for json in [&[][..], &["--json"]] {
            let answer = run_without_reader(&user, &[args, json].concat(), "");
            assert_eq!((answer.code, answer.err.as_str()), (0, ""), "{args:?} {json:?}");
        }
    }
    let answer = run_without_reader(&user, &["demo"], "");
    assert_eq!((answer.code, answer.err.as_str()), (0, ""));
}

#[test]
fn a_command_that_changes_something_finishes_without_a_reader() {
    let user = after_an_agent();
    user.write("new", "mine now\n");
    let answer = run_without_reader(&user, &["rewind", "m", "-y"], "");
    assert_eq!(
        (answer.code, answer.err.as_str()),
        (4, ""),
        "the file that both wrote is a conflict"
    );
    assert_eq!((user.read("a.txt").as_str(), user.read("lib/b.txt").as_str()), ("one\n", "b\n"));
    assert_eq!(run_without_reader(&user, &["undo", "-y", "--json"], "").code, 0);
    assert_eq!(user.read("a.txt"), "two\n");
    assert_eq!(run_without_reader(&user, &["checkpoint", "unread", "--json"], "").code, 0);
    user.succeeds(&["show", "unread"]);
    let events = r#"{"event":"prompt","session":"t","message":"m1","text":"go"}
{"event":"prompt","session":"t","message":"m2","text":"on"}
"#;
    let answer = run_without_reader(&user, &["record"], events);
    assert_eq!((answer.code, answer.err.as_str()), (0, ""));
    assert_eq!(user.takeback(&["show", "m2"]).code, 0, "an agent that does not listen is recorded");
    assert_eq!(run_without_reader(&user, &["verify"], "").code, 0);
    std::fs::remove_dir_all(user.store().join("packs")).expect("damaged");
    assert_eq!(
        run_without_reader(&user, &["verify"], "").code,
        1,
        "damage is told by the exit code"
    );
}

#[test]
fn a_reader_that_closes_the_pipe_is_no_error() {
    let user = User::with(&[("a", "1")]);
    for n in 0..30 {
        user.takeback(&["checkpoint", &format!("point number {n}")]);
    }
    let line = format!("{} log -n 1000 | head -n 1", env!("CARGO_BIN_EXE_takeback"));
    let output = std::process::Command::new("sh")
        .args(["-c", &line])
        .current_dir(user.work())
        .env("HOME", user.home())
        .output()
        .expect("it runs");
    assert!(output.stderr.is_empty(), "{}", String::from_utf8_lossy(&output.stderr));
}
