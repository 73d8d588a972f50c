//! Questions to the log, as the program answers them.

mod afternoon;
mod commit_times;
mod page;

use std::fs;
use std::io::Write as _;
use std::os::unix::ffi::OsStrExt as _;
use std::os::unix::fs::symlink;
use std::path::Path;
use std::process::{Command, Stdio};

use serde_json::{Value, json};
use takeback::Takeback;
use takeback::core::Outcome;

use crate::user::{User, column};

/// The library, on the store of the user's folder.
pub(crate) fn library(user: &User) -> Takeback {
    Takeback::open_with_home(user.work(), user.home().join(".takeback")).expect("it opens")
}

/// `git apply --check`, then `git apply`, in a folder.
#[track_caller]
fn apply(patch: &[u8], folder: &Path) {
    for arguments in [&["apply", "--check", "-"][..], &["apply", "-"]] {
        let mut git = Command::new("git");
        let git = git.args(arguments).current_dir(folder).stdin(Stdio::piped());
        let mut git = git.stderr(Stdio::piped()).spawn().expect("git runs");
        git.stdin.take().expect("piped").write_all(patch).expect("git reads");
        let output = git.wait_with_output().expect("it ends");
        let (patch, error) =
            (String::from_utf8_lossy(patch), String::from_utf8_lossy(&output.stderr));
        assert!(output.status.success(), "{error}\n{patch}");
    }
}

/// Each file has text, or a kind of entry, before; after the session's turn; after your edits.
type Names = [(&'static [u8], [Option<&'static str>; 3])];

const FILES: &Names = &[
    (
        b"both.txt",
        [
            Some("a\nb\nc\nd\ne\n"),
            Some("agent\na\nb\nc\nd\ne\n"),
            Some("agent\na\nb\nc\nd\ne\nyou\n"),
        ],
    ),
    (b"agents.txt", [Some("a\n"), Some("a\nb\n"), Some("a\nb\n")]),
    (b"yours.txt", [Some("a\n"), Some("a\n"), Some("a\nb\n")]),
    (b"dos.txt", [Some("a\r\nb\r\n"), Some("a\r\nB\r\n"), Some("a\r\nB\r\n")]),
    (b"unended", [Some("a\nb"), Some("a\nB"), Some("a\nB")]),
    (b"not-\xff-utf-8", [Some("a\n"), Some("a\nb\n"), Some("a\nb\n")]),
    (b"with blank and \"quote\"", [Some("a\n"), Some("b\n"), Some("b\n")]),
    (b"new-empty", [None, Some(""), Some("")]),
    (b"new/file", [None, Some("x\n"), Some("x\n")]),
    (b"gone", [Some("x\n"), None, None]),
    (b"yours-gone", [Some("x\n"), Some("x\n"), None]),
    (b"back", [Some("x\n"), Some("y\n"), Some("x\n")]),
    (b"moved", [Some("1\n2\n3\n"), None, None]),
    (b"moved-to", [None, Some("1\n2\n3\n"), Some("1\n2\n3\n4\n")]),
    (b"moved \xff and edited", [Some("5\n6\n"), None, None]),
    (b"you-moved", [Some("7\n8\n"), Some("7\n8\n"), None]),
    (b"you-moved \"it\"", [None, None, Some("7\n8\n")]),
    (b"picture", [Some("\0\n"), None, None]),
    (b"pictures/picture", [None, Some("\0\n"), Some("\0\n")]),
];

fn lay_out(root: &Path, at: usize) {
    for (name, texts) in FILES {
        let path = root.join(std::ffi::OsStr::from_bytes(name));
        match texts[at] {
            Some(text) => {
                fs::create_dir_all(path.parent().expect("below")).expect("folders");
                if fs::read_to_string(&path).ok().as_deref() != Some(text) {
                    fs::write(path, text).expect("written");
                }
            }
            None => drop(fs::remove_file(path)),
        }
    }
}

/// A session's turn, then your edits.
fn two_hands() -> User {
    let user = User::new();
    lay_out(&user.work(), 0);
    symlink("a", user.work().join("link")).expect("a link");
    user.write("run.sh", "echo\n");
    let library = library(&user);
    let turn = library.prompt_as("s", Some("m"), "change it all").expect("recorded");
    let call = turn.begin("c", takeback::Tool::shell("make everything"));
    lay_out(&user.work(), 1);
    fs::remove_file(user.work().join("link")).expect("it goes");
    symlink("b", user.work().join("link")).expect("a link");
    user.set_mode("run.sh", 0o755);
    call.end(Outcome::Done);
    turn.end();
    std::thread::sleep(std::time::Duration::from_millis(400));
    library.checkpoint(Some("after")).expect("a point");
    lay_out(&user.work(), 2);
    user
}

/// A folder with the files of one time.
fn folder_at(at: usize) -> tempfile::TempDir {
    let folder = tempfile::tempdir().expect("a folder");
    lay_out(folder.path(), at);
    if at == 0 {
        symlink("a", folder.path().join("link")).expect("a link");
        fs::write(folder.path().join("run.sh"), "echo\n").expect("written");
    }
    folder
}

#[track_caller]
fn patch(user: &User, args: &[&str]) -> Vec<u8> {
    let output = user.command(args).output().expect("it runs");
    let error = String::from_utf8_lossy(&output.stderr);
    assert!(output.status.success(), "{args:?}: {error}");
    assert_eq!(error, "", "{args:?}");
    output.stdout
}

fn texts(root: &Path) -> Vec<Option<String>> {
    let read = |name: &[u8]| fs::read_to_string(root.join(std::ffi::OsStr::from_bytes(name))).ok();
    FILES.iter().map(|(name, _)| read(name)).collect()
}

#[test]
fn what_each_author_did_is_a_patch_that_git_applies() {
    let user = two_hands();
    // What the session did leads from the first state to the second, and so does its turn.
    for args in [&["diff", "m", "after", "--by", "agent"][..], &["diff", "m!"]] {
        let folder = folder_at(0);
        apply(&patch(&user, args), folder.path());
        let expected: Vec<Option<String>> =
            FILES.iter().map(|(_, texts)| texts[1].map(str::to_owned)).collect();
        assert_eq!(texts(folder.path()), expected, "{args:?}");
        assert_eq!(fs::read_link(folder.path().join("link")).unwrap(), Path::new("b"));
    }
    // What you did, without the session's lines.
    let folder = folder_at(0);
    apply(
        &patch(&user, &["diff", "m", "--by", "you", "--path", "both.txt", "--path", "yours*"]),
        folder.path(),
    );
    let read = |name: &str| fs::read_to_string(folder.path().join(name)).ok();
    assert_eq!(read("both.txt").as_deref(), Some("a\nb\nc\nd\ne\nyou\n"));
    assert_eq!(read("yours.txt").as_deref(), Some("a\nb\n"));
    assert_eq!(read("yours-gone"), None);
    // Together with the session's part, in its place, it is everything.
    let folder = folder_at(1);
    apply(&patch(&user, &["diff", "after", "--by", "you"]), folder.path());
    assert_eq!(texts(folder.path()), texts(&user.work()));
}

#[test]
fn the_patches_of_a_point_follow_each_other() {
    let user = two_hands();
    // `show` reads the log and not the disk.
    user.succeeds(&["status"]);
    for (point, at) in [("m", 0), ("after", 1)] {
        let shown = patch(&user, &["show", point, "-p"]);
        // The heading is for people.
        let start = shown.windows(6).position(|text| text == b"# s wh" || text == b"# you\n");
        let start = start.unwrap_or_else(|| panic!("{}", String::from_utf8_lossy(&shown)));
        let folder = folder_at(at);
        apply(&shown[start..], folder.path());
        let expected: Vec<Option<String>> =
            FILES.iter().map(|(_, texts)| texts[at + 1].map(str::to_owned)).collect();
        assert_eq!(texts(folder.path()), expected, "{point}");
    }
}

#[test]
fn cat_prints_the_bytes_of_any_file_at_any_point() {
    let user = two_hands();
    for (point, at) in [("m", 0), ("after", 1)] {
        for (name, texts) in FILES {
            let mut argument = format!("{point}:").into_bytes();
            argument.extend_from_slice(name);
            let mut command = user.command(&["cat"]);
            let output = command.arg(std::ffi::OsStr::from_bytes(&argument)).output().unwrap();
            let name = String::from_utf8_lossy(name);
            match texts[at] {
                Some(text) => assert_eq!(output.stdout, text.as_bytes(), "{point}:{name}"),
                None => assert_eq!(output.status.code(), Some(1), "{point}:{name}"),
            }
        }
    }
}

#[test]
fn blame_history_log_and_why_take_any_file_name() {
    let user = two_hands();
    for (name, texts) in FILES {
        let shown = String::from_utf8_lossy(name);
        let path = std::ffi::OsStr::from_bytes(name);
        let run = |arguments: &[&str]| {
            let mut command = user.command(&[arguments, &["--json"]].concat());
            let output = command.arg(path).output().expect("it runs");
            let error = String::from_utf8_lossy(&output.stderr).into_owned();
            let answer: Value = serde_json::from_slice(&output.stdout).unwrap_or(json!(error));
            answer
        };
        let rows = run(&["history"]);
        assert!(rows.is_array(), "{shown}: {rows}");
        // A glob is UTF-8, and `?` stands for any byte.
        let points = match std::str::from_utf8(name) {
            Ok(_) => run(&["log"]),
            Err(_) => user.json(&["log", &shown.replace('\u{fffd}', "?")]),
        };
        let changed = (0..2).filter(|at| texts[*at] != texts[at + 1]).count();
        assert_eq!(points.as_array().map(Vec::len), Some(changed), "log {shown}: {points}");
        if texts[2].is_some_and(|text| text.contains('\0')) {
            continue;
        }
        if texts[2].is_some() {
            let lines = run(&["blame"]);
            let expected = texts[2].unwrap_or_default().lines().count();
            assert_eq!(lines.as_array().map(Vec::len), Some(expected), "blame {shown}: {lines}");
        }
        if texts[2].is_some_and(|text| !text.is_empty()) {
            let mut argument = name.to_vec();
            argument.extend_from_slice(b":1");
            let mut command = user.command(&["why", "--json"]);
            let output = command.arg(std::ffi::OsStr::from_bytes(&argument)).output().unwrap();
            assert!(output.status.success(), "why {shown}: {output:?}");
        }
    }
}

#[test]
fn a_name_that_is_not_utf_8_is_found_from_any_folder_and_shown_in_errors() {
    let user = User::new();
    let name = |bytes: &[u8]| std::ffi::OsString::from(std::ffi::OsStr::from_bytes(bytes));
    let folder = user.work().join(name(b"caf\xe9"));
    fs::create_dir(&folder).expect("a folder");
    fs::write(folder.join(name(b"a:b\xff")), "one\ntwo\n").expect("written");
    user.succeeds(&["checkpoint", "first"]);
    let run = |folder: &Path, command: &str, argument: &[u8]| {
        let mut command = user.command(&[command]);
        let output = command.arg(name(argument)).current_dir(folder).output().expect("it runs");
        let text =
            String::from_utf8_lossy(&output.stdout) + String::from_utf8_lossy(&output.stderr);
        (output.status.code(), text.into_owned())
    };
    for (folder, path) in [(&user.work(), &b"caf\xe9/a:b\xff"[..]), (&folder, b"./a:b\xff")] {
        let with_point = [b"first:", path].concat();
        assert_eq!(run(folder, "cat", &with_point), (Some(0), "one\ntwo\n".to_owned()));
        let (code, text) = run(folder, "why", &[path, b":2"].concat());
        assert!(code == Some(0) && text.contains("two"), "{text}");
        for command in ["blame", "history"] {
            let (code, text) = run(folder, command, path);
            assert_eq!(code, Some(0), "{command}: {text}");
        }
    }
    let (code, text) = run(&user.work(), "history", b"th\xe9");
    assert_eq!((code, text.contains(r"th\xe9 was never recorded")), (Some(1), true), "{text}");
    for (command, argument) in [("why", &b"caf\xe9"[..]), ("cat", b"caf\xe9"), ("why", b"a:\xe9")] {
        let (code, text) = run(&user.work(), command, argument);
        assert!(code == Some(2) && text.contains(r"\xe9"), "{text}");
    }
}

#[test]
fn a_line_of_a_command_is_shown_as_doubtful() {
    let user = two_hands();
    let person = user.succeeds(&["--color", "always", "blame", "both.txt"]).out;
    let person = anstream::adapter::strip_str(&person).to_string();
    let lines: Vec<&str> = person.lines().collect();
    assert!(lines[0].contains("s?"), "{person}");
    assert!(!lines[1].contains('?') && !lines[6].contains('?'), "{person}");
    assert!(person.contains("? written while a command ran"), "{person}");
    let lines = user.json(&["blame", "both.txt"]);
    assert_eq!(column(&lines, "author")[0], "agent");
    assert_eq!(column(&lines, "evidence")[0], "window");
    user.succeeds(&["why", "both.txt:1"]).prints("make everything");
}

#[test]
fn bisect_finds_the_call_in_a_timeline_of_a_thousand_points() {
    let user = User::new();
    user.set(r#"{"pointsPerSession": 5000, "durability": "off"}"#);
    user.write("n.txt", "0\n");
    let library = library(&user);
    for n in 1..=1000 {
        let turn = library.prompt("s", &format!("count to {n}")).expect("recorded");
        let write = || fs::write(user.work().join("n.txt"), format!("{n}\n"));
        turn.call(&format!("call-{n}"), takeback::Tool::edit("n.txt"), write).expect("written");
        turn.end();
    }
    // Nothing else has the store.
    drop(library);
    let script = "echo x >> \"$RUNS\"; test $(cat n.txt) -lt 777";
    let mut command = user.command(&["bisect", "--json", "--", "sh", "-c", script]);
    let runs = user.home().join("runs");
    let output = command.env("RUNS", &runs).output().expect("it runs");
    let answer: Value = serde_json::from_slice(&output.stdout)
        .unwrap_or_else(|_| panic!("{}", String::from_utf8_lossy(&output.stderr)));
    assert_eq!(answer["prompt"], "count to 777", "{answer}");
    assert_eq!(answer["call"], "call-777", "{answer}");
    let runs = fs::read_to_string(runs).expect("it ran").lines().count();
    assert!(runs <= 11, "{runs} runs");
    assert_eq!(answer["runs"], runs, "{answer}");
}
