//! Long answers on a terminal go through the user's pager.

use std::fs;
use std::path::PathBuf;

use crate::pty::TerminalOptions;
use crate::user::User;

/// Forty points: more than 24 rows.
fn long_log() -> User {
    let user = User::with(&[("a", "1")]);
    for n in 0..40 {
        user.takeback(&["checkpoint", &format!("number {n}")]);
    }
    user
}

const LOG: [&str; 3] = ["log", "-n", "100"];

fn terminal(user: &User) -> TerminalOptions<'_> {
    user.terminal(80, 24)
}

/// A pager that marks each line.
const MARKS: &str = "sed s/^/paged:/";

/// A pager that reads one line and exits; it writes its process id.
fn impatient(user: &User) -> (String, PathBuf) {
    let note = user.home().join("pager.pid");
    (format!("echo $$ > '{}'; head -n 1", note.display()), note)
}

#[test]
fn a_long_answer_waits_in_less_until_it_is_left() {
    let user = long_log();
    let ran = terminal(&user).run(&LOG, "number 20", "q");
    assert_eq!(ran.code, 0);
    assert!(ran.written.contains("number 39"), "{}", ran.written);
    assert!(!ran.written.contains("number 2]"), "only the first screen: {}", ran.written);
    assert!(ran.written.contains("\x1b[36m"), "in colours: {}", ran.written);
}

#[test]
fn the_users_own_pager_has_priority() {
    let user = long_log();
    let other = terminal(&user).with("PAGER", MARKS).run(&LOG, "", "");
    assert!(other.shown().contains("paged:"), "{}", other.shown());
    let own = terminal(&user).with("PAGER", "no-such").with("TAKEBACK_PAGER", MARKS);
    assert!(own.run(&LOG, "", "").shown().contains("paged:"));
}

#[test]
fn what_fits_the_terminal_is_not_paged() {
    let user = long_log();
    let short = terminal(&user).with("PAGER", MARKS).run(&["log", "-n", "20"], "", "");
    assert_eq!((short.shown().contains("paged:"), short.code), (false, 0), "{}", short.shown());
    let longer = terminal(&user).with("PAGER", MARKS).run(&["log", "-n", "23"], "", "");
    assert!(
        longer.shown().contains("paged:"),
        "with the line about older ones: 24 rows and the prompt"
    );
}

#[test]
fn no_pager_without_a_terminal_or_if_turned_off() {
    let user = long_log();
    let marked = || terminal(&user).with("PAGER", MARKS);
    for (terminal, args) in [
        (marked(), &["--no-pager", "log", "-n", "100"][..]),
        (marked(), &["--json", "log", "-n", "100"]),
        (marked().with("TERM", "dumb"), &LOG),
        (terminal(&user).with("PAGER", "cat"), &LOG),
    ] {
        let ran = terminal.run(args, "", "");
        assert_eq!(ran.code, 0);
        assert!(ran.written.contains("number 0"), "{args:?}: {}", ran.written);
        assert!(!ran.written.contains("paged:"), "{args:?}: {}", ran.written);
    }
    let piped = user.command(&LOG).env("PAGER", MARKS).env("TERM", "xterm").output();
    assert!(!String::from_utf8_lossy(&piped.expect("it runs").stdout).contains("paged:"));
}

#[test]
fn a_pager_that_cannot_be_started_is_skipped() {
    let user = long_log();
    for pager in ["no-such-pager --at-all", "no-such-pager 'quoted'", "/"] {
        let ran = terminal(&user).with("PAGER", pager).run(&LOG, "", "");
        assert_eq!(ran.code, 0, "{pager}");
        for n in [0, 20, 39] {
            let line = format!("number {n}]");
            assert_eq!(ran.written.matches(&line).count(), 1, "{pager}: {}", ran.written);
        }
    }
}

/// The output exceeds a pipe's buffer, so the missing pager is noticed while there is more to write.
#[test]
fn a_pager_that_is_not_there_loses_nothing_of_a_long_answer() {
    let user = User::new();
    user.takeback(&["checkpoint"]);
    let lines: String = (0..20_000).map(|n| format!("line {n}\n")).collect();
    user.write("long.txt", &lines);
    let ran = terminal(&user).with("PAGER", "no-such 'quoted'").run(&["diff"], "", "");
    assert_eq!(ran.code, 0);
    let shown = ran.written.lines().filter(|line| line.contains("line ")).count();
    assert_eq!(shown, 20_000);
}

#[test]
fn leaving_the_pager_early_is_no_error_and_leaves_no_process() {
    let user = User::new();
    let lines: String = (0..200_000).map(|n| format!("line {n}\n")).collect();
    user.takeback(&["checkpoint"]);
    user.write("long.txt", &lines);
    let (pager, note) = impatient(&user);
    let ran = terminal(&user).with("PAGER", pager).run(&["diff"], "", "");
    assert_eq!(ran.code, 0, "{}", ran.shown());
    assert!(ran.shown().starts_with("long.txt"), "{}", ran.shown());
    assert!(!ran.shown().contains("takeback:"), "{}", ran.shown());
    let pid = fs::read_to_string(note).expect("it ran");
    let left = PathBuf::from("/proc").join(pid.trim());
    assert!(!left.exists(), "{left:?} is still there");
}

#[test]
fn ctrl_c_goes_to_the_pager() {
    let user = long_log();
    let ran = terminal(&user)
        .with("PAGER", "trap 'echo interrupted; exit' INT; echo ready; while :; do sleep 0.1; done")
        .run(&LOG, "ready", "\x03");
    assert!(ran.shown().contains("interrupted"), "{}", ran.shown());
    assert_eq!(ran.code, 0);
}
