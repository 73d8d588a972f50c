//! Completion: what `complete` answers, and what real shells make of it.

use std::path::Path;
use std::process::Command;
use std::time::{Duration, Instant};

use portable_pty::CommandBuilder;
use serde_json::json;

use crate::pty::Terminal;
use crate::user::User;

/// The candidates for the last word.
fn offered(user: &User, words: &[&str]) -> Vec<String> {
    // Not through `Answer`, where ids are replaced.
    let output = user.command(&[&["complete", "--"], words].concat()).output().expect("it runs");
    assert_eq!((output.status.code(), output.stderr.as_slice()), (Some(0), &[][..]), "{words:?}");
    let out = String::from_utf8(output.stdout).expect("text");
    out.lines().map(|line| line.split('\t').next().expect("a word").to_owned()).collect()
}

/// Two points, one with a label, and a session.
fn folder() -> User {
    let user = User::with(&[
        ("src/cart.rs", "1\n"),
        ("src/deep/a", "1\n"),
        ("my file.txt", "1\n"),
        ("gone.txt", "1\n"),
    ]);
    user.succeeds(&["checkpoint", "first"]);
    user.agent_turn("m", "Add discounts", ("Edit", &["src/cart.rs"]), || {
        user.write("src/cart.rs", "2\n");
    });
    user.remove("gone.txt");
    user.succeeds(&["checkpoint", "second"]);
    user
}

#[test]
fn commands_options_and_values_are_offered() {
    let user = User::new();
    let cases: &[(&[&str], &[&str])] = &[
        (
            &["re"],
            &["record", "rewind", "revert", "restore", "resolve", "redo", "recover", "relocate"],
        ),
        (&["h"], &["hook", "history", "help"]),
        (&["state", "re"], &["resume"]),
        (&["state", "r"], &["resume", "rollback"]),
        (&["help", "state", "s"], &["save", "show"]),
        (&["rewind", "--ex"], &["--exact"]),
        (&["rewind", "--exact", "--ex"], &[]),
        (&["log", "-"], &[]),
        (&["rewind", "--ambiguous", ""], &["leave", "take"]),
        (&["rewind", "--ambiguous=t"], &["--ambiguous=take"]),
        (&["--color", "a"], &["auto", "always"]),
        (&["completions", ""], &["bash", "zsh", "fish"]),
        (&["config", "archive"], &["archiveDays"]),
        (
            &["config", "p"],
            &["path", "pointsPerSession", "preciousFileMaxBytes", "preciousTotalBytes"],
        ),
        (&["config", "set", "durability", ""], &["full", "normal", "off"]),
        (&["config", "set", "archiveDays", ""], &["7"]),
        (&["config", "set", "archiveDays", "9", "--scope", ""], &["user", "project"]),
        (&["init", "--agent", "c"], &["claude", "codex", "copilot"]),
        (&["hook", "--agent=pi"], &["--agent=pi"]),
        (&["log", "--tool", "Ba"], &["Bash"]),
        (&["checkpoint", ""], &[]),
        (&["rewind", ""], &[]),
        (&["run", "--", "--"], &[]),
    ];
    for (words, expected) in cases {
        let found = offered(&user, words);
        if words.last() == Some(&"-") {
            assert!(
                found.contains(&"--by".to_owned()) && found.contains(&"-S".to_owned()),
                "{found:?}"
            );
        } else {
            assert_eq!(found, *expected, "{words:?}");
        }
    }
    assert!(offered(&user, &["run", "--", "gro"]).iter().all(|name| name.starts_with("gro")));
    assert!(offered(&user, &["run", "gi"]).contains(&"git".to_owned()));
    assert!(!user.home().join(".takeback").exists(), "completion creates nothing");
    assert_eq!(user.succeeds(&["complete"]).out, "");
    let mut command = user.command(&["complete", "--", "log", "--home"]);
    command.arg("").env_remove("HOME");
    assert_eq!(user.answer_of(command, "").code, 0, "no home, no error");
}

#[test]
fn names_from_the_store_are_offered() {
    let user = folder();
    let ids = user.json(&["log"]);
    let id = |at: usize| ids[at]["id"].as_str().expect("an id")[..8].to_owned();
    let points = offered(&user, &["show", ""]);
    let ids = [id(0), id(1), id(2)];
    assert_eq!(points, [&["@", "second", "first"].map(str::to_owned)[..], &ids].concat());
    assert_eq!(offered(&user, &["rewind", "@"]), ["@", "@~1", "@~2"]);
    assert_eq!(offered(&user, &["rewind", &id(1)[..5]]), [id(1)]);
    assert_eq!(offered(&user, &["rewind", &id(1)])[0], id(1));
    assert_eq!(offered(&user, &["diff", "first", "sec"]), ["second"]);
    assert_eq!(offered(&user, &["bisect", "--good", "fi"]), ["first"]);
    assert_eq!(offered(&user, &["stats", "first..s"]), ["first..second"]);
    assert_eq!(offered(&user, &["log", "--by", ""])[..2], ["you", "agent"]);
    assert_eq!(offered(&user, &["log", "--session", ""]), ["s"]);
    assert_eq!(offered(&user, &["session", "delete", ""]), ["s"]);
    let described = user.succeeds(&["complete", "--", "show", &id(1)]).out;
    assert!(described.contains("\tAdd discounts ("), "{described}");

    assert_eq!(offered(&user, &["blame", "s"]), ["src/"]);
    assert_eq!(offered(&user, &["blame", "src/"]), ["src/cart.rs", "src/deep/"]);
    assert_eq!(offered(&user, &["history", "gone"]), ["gone.txt"], "from the log");
    assert_eq!(offered(&user, &["cat", "sec"]), ["second:"]);
    assert_eq!(offered(&user, &["cat", "@~1:src/c"]), ["@~1:src/cart.rs"]);
    assert_eq!(offered(&user, &["why", "src/c"]), ["src/cart.rs"]);
    let work = user.work();
    let work = work.to_str().expect("text");
    assert_eq!(
        offered(&user, &["-C", &format!("{work}/src"), "cat", "@:"]),
        ["@:cart.rs", "@:deep/"]
    );
    let elsewhere = user.command(&["complete", "--", "-C", work, "rewind", "fi"]);
    let mut elsewhere = elsewhere;
    elsewhere.current_dir(user.home());
    assert!(user.answer_of(elsewhere, "").out.starts_with("first\t"));

    let step =
        json!({"execution_id": "e", "step_name": "one", "step_index": 1, "state": 1, "context": 2});
    assert_eq!(user.feed(&["state", "save"], &step.to_string()).code, 0);
    assert_eq!(offered(&user, &["state", "resume", ""]), ["e", "ckpt-e-1"]);
    assert_eq!(offered(&user, &["state", "diff", "ckpt-e-1", ""]), ["ckpt-e-1"]);
    assert_eq!(offered(&user, &["state", "list", "e", "--branch", ""]), ["main"]);
}

#[test]
fn a_damaged_store_offers_nothing_and_says_nothing() {
    let user = folder();
    std::fs::write(user.store().join("timeline.db"), "no database").expect("it is damaged");
    assert_eq!(offered(&user, &["rewind", ""]), [""; 0]);
    assert_eq!(offered(&user, &["blame", "src/c"]), ["src/cart.rs"]);
    user.set("{ nonsense");
    assert_eq!(offered(&user, &["config", "set", "archiveDays", ""]), [""; 0]);
    assert_eq!(offered(&user, &["config", "set", "durability", "o"]), ["off"]);
}

/// Far above what it takes, and far below what reading every change would.
#[test]
fn a_thousand_points_are_no_burden() {
    let user = User::with(&[("a", "1")]);
    let mut lines = String::new();
    for n in 0..1000 {
        lines +=
            &format!("{{\"event\":\"prompt\",\"session\":\"s{}\",\"text\":\"p{n}\"}}\n", n / 40);
    }
    user.record(&lines);
    let quickest = (0..5).map(|_| {
        let start = Instant::now();
        assert_eq!(offered(&user, &["rewind", ""]).len(), 21);
        start.elapsed()
    });
    let quickest = quickest.min().expect("five");
    let most = if cfg!(debug_assertions) { 400 } else { 50 };
    assert!(quickest < Duration::from_millis(most), "{quickest:?}");
}

fn is_installed(shell: &str) -> bool {
    Command::new(shell).arg("-c").arg(":").status().is_ok_and(|status| status.success())
}

/// A shell in the user's folder that has loaded the script.
fn shell(user: &User, words: &[&str], load: &str) -> Terminal {
    let mut command = CommandBuilder::new(words[0]);
    command.args(&words[1..]);
    command.cwd(user.work());
    command.env_clear();
    let program = Path::new(env!("CARGO_BIN_EXE_takeback")).parent().expect("a folder");
    command.env("PATH", format!("{}:/usr/bin:/bin", program.display()));
    command.env("HOME", user.home());
    command.env("TERM", "xterm-256color");
    command.env("LC_ALL", "C.UTF-8");
    let mut terminal = Terminal::start(command, 100, 30);
    terminal.types(load).types("\r");
    terminal.types("echo loaded-$((40 + 2))\r").sees("loaded-42");
    terminal
}

/// What the user has typed, and what the line must become after a Tab.
const TYPED: &[(&str, &str)] = &[
    ("takeback rewi", "takeback rewind "),
    ("takeback show sec", "takeback show second "),
    ("takeback rewind --exa", "takeback rewind --exact "),
    ("takeback log --by=yo", "takeback log --by=you "),
    ("takeback cat sec", "takeback cat second:"),
    ("takeback cat @~1:src/ca", "takeback cat @~1:src/cart.rs "),
    ("takeback blame src/de", "takeback blame src/deep/"),
    ("takeback blame my", "takeback blame my\\ file.txt "),
    ("takeback config set pointsP", "takeback config set pointsPerSession "),
    ("takeback -C src blame ca", "takeback -C src blame cart.rs "),
];

fn lines_become(terminal: &mut Terminal, tilde: &str) {
    for (n, (typed, becomes)) in TYPED.iter().enumerate() {
        // The cursor's place shows whether a space follows.
        terminal.types(CLEAR).types(&format!("echo line-{n}\r")).sees(&format!("\nline-{n}"));
        terminal.types(typed).types("\t").types("Z");
        terminal.sees(&format!("{}Z", becomes.replace('~', tilde)));
        terminal.types(CLEAR);
    }
}

/// Ctrl-U.
const CLEAR: &str = "\x15";

#[test]
fn bash_completes() {
    let user = folder();
    let load = "source <(takeback completions bash); PS1='$ '";
    let mut terminal = shell(&user, &["bash", "--norc", "--noprofile", "-i"], load);
    lines_become(&mut terminal, "~");
    // Two candidates: the part they share, then a list.
    terminal.types("takeback show ").types("\t\t").sees("second").sees("first");
}

#[test]
fn zsh_completes() {
    if !is_installed("zsh") {
        eprintln!("skipped: zsh is not installed");
        return;
    }
    let user = folder();
    let load =
        "autoload -Uz compinit && compinit -u -D; source <(takeback completions zsh); PS1='$ '";
    let mut terminal = shell(&user, &["zsh", "-f", "-i"], load);
    // With the option extended_glob, ~ means something else in zsh.
    lines_become(&mut terminal, "\\~");
    terminal.types("takeback show ").types("\t").sees("Add discounts (");
}

#[test]
fn fish_completes() {
    if !is_installed("fish") {
        eprintln!("skipped: fish is not installed");
        return;
    }
    let user = folder();
    let complete = |line: &str| {
        let mut command = Command::new("fish");
        command.arg("--no-config").arg("-c");
        command.arg(format!("takeback completions fish | source; complete -C '{line}'"));
        let program = Path::new(env!("CARGO_BIN_EXE_takeback")).parent().expect("a folder");
        command.env_clear().env("PATH", format!("{}:/usr/bin:/bin", program.display()));
        command.env("HOME", user.home()).current_dir(user.work());
        let output = command.output().expect("fish runs");
        assert_eq!(String::from_utf8_lossy(&output.stderr), "");
        let out = String::from_utf8(output.stdout).expect("text");
        out.lines()
            .map(|line| line.split('\t').next().expect("a word").to_owned())
            .collect::<Vec<_>>()
    };
    for (typed, becomes) in TYPED {
        let word = becomes.trim_end().replace("takeback blame my\\ file.txt", "my file.txt");
        let word = word
            .rsplit_once(' ')
            .filter(|_| word != "my file.txt")
            .map_or(word.as_str(), |(_, word)| word);
        assert_eq!(complete(typed), [word], "{typed}");
    }
    assert_eq!(complete("takeback show ")[..2], ["@", "second"]);
}
