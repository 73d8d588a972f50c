//! Every tool: what it does, what it refuses, and its messages.

use std::os::unix::fs::symlink;

use serde_json::json;

use super::*;

/// Runs calls in order; for each: whether it succeeded, its line, and the text for the model.
fn run(sandbox: &Sandbox, calls: &[(&str, Value)]) -> Vec<(bool, String, String)> {
    let steps: Vec<Value> =
        calls.iter().map(|(tool, input)| json!({"tool": tool, "input": input})).collect();
    let script = json!({"turns": [{"steps": steps}]});
    let mut options = scenario(&script.to_string());
    options.shell_limit = Duration::from_secs(20);
    let mut talk = ChatFixture::start(sandbox, options);
    let events = talk.turn("go");
    assert_eq!(ending(&events), &TurnResult::Done);
    let memory = talk.agent.memory();
    let results = memory["messages"][2]["content"].as_array().unwrap().clone();
    talk.agent.close();
    let all = tools(&events).into_iter().zip(results);
    let all = all.map(|((_, ok, line), result)| {
        assert_eq!(result["is_error"], !ok);
        (ok, line, result["content"].as_str().unwrap().to_owned())
    });
    all.collect()
}

/// The lines of calls that are all refused.
fn refusals(sandbox: &Sandbox, calls: &[(&str, Value)]) -> Vec<String> {
    let before = sandbox.tree();
    let refused = run(sandbox, calls).into_iter().map(|(ok, line, text)| {
        assert!(!ok && line == text, "{line}: {text}");
        line
    });
    let refused = refused.collect();
    assert_eq!(sandbox.tree(), before);
    refused
}

fn path(path: &str) -> Value {
    json!({"path": path})
}

fn write(path: &str) -> Value {
    json!({"path": path, "content": "pwned"})
}

fn edit(path: &str, old: &str, new: &str) -> Value {
    json!({"path": path, "old_string": old, "new_string": new})
}

#[test]
fn files_are_written_read_edited_and_listed() {
    let sandbox = Sandbox::new();
    sandbox.write("crlf.txt", "one\r\ntwo\r\none\r\n");
    sandbox.set_mode("crlf.txt", 0o755);
    sandbox.write("empty", "");
    let inside = sandbox.at("new/deep/file.txt");
    let done = run(
        &sandbox,
        &[
            ("write_file", json!({"path": inside.to_str().unwrap(), "content": "a\nb\nc\n"})),
            ("write_file", json!({"path": "./new/deep/../deep/file.txt", "content": "a\nb\nc\nd"})),
            ("read_file", path("new/deep/file.txt")),
            ("read_file", json!({"path": "new/deep/file.txt", "offset": 2, "limit": 2})),
            ("read_file", path("empty")),
            ("edit_file", edit("crlf.txt", "two\r\n", "2\r\n")),
            (
                "edit_file",
                json!({"path": "crlf.txt", "old_string": "one", "new_string": "1", "replace_all": true}),
            ),
            ("list_files", json!({})),
            ("list_files", path("new")),
        ],
    );
    let ok = |line: &str, text: &str| (true, line.to_owned(), text.to_owned());
    let whole = inside.to_str().unwrap();
    assert_eq!(
        done,
        [
            ok("created, 3 lines", &format!("{whole} was created.")),
            ok("replaced, 4 lines", "./new/deep/../deep/file.txt was replaced."),
            ok("4 lines", "a\nb\nc\nd"),
            ok("lines 2 to 3 of 4", "b\nc\n\n[4 lines in total; continue with offset 4]"),
            ok("0 lines", "[the file is empty]"),
            ok("1 replacement", "1 replacement in crlf.txt."),
            ok("2 replacements", "2 replacements in crlf.txt."),
            ok("3 names", "crlf.txt\nempty\nnew/"),
            ok("1 name", "deep/"),
        ]
    );
    assert_eq!(sandbox.read("crlf.txt"), "1\r\n2\r\n1\r\n");
    let mode = std::fs::metadata(sandbox.at("crlf.txt")).unwrap().permissions();
    assert_eq!(std::os::unix::fs::PermissionsExt::mode(&mode) & 0o777, 0o755);
}

#[test]
fn nothing_outside_is_read_or_written() {
    let sandbox = Sandbox::new();
    let outside = sandbox.outside();
    std::fs::write(outside.join("secret"), "secret").unwrap();
    std::fs::create_dir(outside.join("elsewhere")).unwrap();
    sandbox.write("here/file", "mine");
    symlink(outside.join("secret"), sandbox.at("to-file")).unwrap();
    symlink("../elsewhere", sandbox.at("to-folder")).unwrap();
    symlink(outside.join("not-there-yet"), sandbox.at("to-nothing")).unwrap();
    symlink(&outside, sandbox.at("here/up")).unwrap();
    let absolute = outside.join("secret");
    let absolute = absolute.to_str().unwrap();

    let ways = [absolute, "../secret", "to-file", "here/../../secret", "here/up/secret"];
    let mut calls: Vec<(&str, Value)> = Vec::new();
    for way in ways {
        calls.push(("read_file", path(way)));
        calls.push(("write_file", write(way)));
        calls.push(("edit_file", edit(way, "secret", "pwned")));
    }
    for way in ["../new", "to-folder/new", "to-nothing", "here/up/work/../new", "/tmp/../new"] {
        calls.push(("write_file", write(way)));
    }
    for way in ["..", "/", "to-folder", "here/up"] {
        calls.push(("list_files", path(way)));
    }
    let expected: Vec<String> = calls
        .iter()
        .map(|(_, input)| {
            let path = input["path"].as_str().unwrap();
            format!("{path} is refused: it leads outside of the workspace")
        })
        .collect();
    assert_eq!(refusals(&sandbox, &calls), expected);
    assert_eq!(std::fs::read_to_string(outside.join("secret")).unwrap(), "secret");
    let mut left: Vec<_> = std::fs::read_dir(&outside)
        .unwrap()
        .map(|entry| entry.unwrap().file_name().into_string().unwrap())
        .collect();
    left.sort();
    assert_eq!(left, ["elsewhere", "secret", "store", "work"]);
}

#[test]
fn a_link_with_a_missing_target_never_leads_outside() {
    let sandbox = Sandbox::new();
    symlink("../elsewhere", sandbox.at("link")).unwrap();
    std::fs::create_dir_all(sandbox.outside().join("elsewhere/deep")).unwrap();
    let done = run(
        &sandbox,
        &[
            ("write_file", write("link/deep/../../new")),
            ("write_file", write("link/missing/../new")),
        ],
    );
    assert!(!sandbox.outside().join("new").exists(), "{done:?}");
    assert!(!sandbox.outside().join("elsewhere/new").exists(), "{done:?}");
}

#[test]
fn each_refusal_is_one_line() {
    let sandbox = Sandbox::new();
    sandbox.write("folder/text", "a a\n");
    sandbox.write("binary", b"\x00\x01\x02");
    sandbox.write("latin", b"caf\xe9");
    std::fs::File::create(sandbox.at("huge")).unwrap().set_len(17 << 20).unwrap();
    make_pipe(&sandbox);
    symlink("loop", sandbox.at("loop")).unwrap();
    std::fs::create_dir(sandbox.at(".git")).unwrap();
    std::fs::write(sandbox.at(".git/config"), "[core]\n").unwrap();
    let calls = [
        ("read_file", path("missing"), "missing does not exist"),
        ("read_file", path("folder"), "folder is a folder"),
        ("read_file", path("binary"), "binary is binary (3 bytes)"),
        ("read_file", path("latin"), "latin is binary (4 bytes)"),
        ("read_file", path("huge"), "huge is too large (17 MiB): use the shell"),
        ("read_file", path("pipe"), "pipe is not a plain file"),
        ("read_file", json!({"path": "folder/text", "offset": 2}), "folder/text has only 1 line"),
        ("read_file", path("folder/text/x"), "folder/text/x: a parent of it is not a folder"),
        ("write_file", write("folder"), "folder is a folder"),
        ("write_file", write("pipe"), "pipe is not a plain file"),
        ("write_file", write("folder/text/x"), "folder/text/x: a parent of it is not a folder"),
        ("write_file", write("."), ". is a folder"),
        (
            "write_file",
            write(".git/config"),
            ".git/config is refused: it belongs to version control or to Takeback",
        ),
        ("edit_file", edit("missing", "a", "b"), "missing does not exist"),
        ("edit_file", edit("binary", "a", "b"), "binary is binary (3 bytes)"),
        ("edit_file", edit("folder/text", "b", "c"), "old_string does not occur in folder/text"),
        (
            "edit_file",
            edit("folder/text", "", "c"),
            "old_string is empty: use write_file to create a file",
        ),
        ("edit_file", edit("folder/text", "a", "a"), "old_string and new_string are the same"),
        (
            "edit_file",
            edit("folder/text", "a", "b"),
            "old_string occurs 2 times in folder/text: include more of the surrounding text, or set \
             replace_all",
        ),
        ("list_files", path("folder/text"), "folder/text is not a folder"),
        ("list_files", path("missing"), "missing does not exist"),
    ];
    let (asked, expected): (Vec<_>, Vec<_>) =
        calls.into_iter().map(|(tool, input, why)| ((tool, input), why)).unzip();
    // A tree with a pipe in it cannot be compared as a whole, so its files are compared by name.
    let refused: Vec<String> = run(&sandbox, &asked)
        .into_iter()
        .map(|(ok, line, text)| {
            assert!(!ok && line == text, "{line}: {text}");
            line
        })
        .collect();
    assert_eq!(refused, expected);
    assert_eq!(sandbox.read("folder/text"), "a a\n");
    assert_eq!(sandbox.read(".git/config"), "[core]\n");
    let looped = run(&sandbox, &[("read_file", path("loop")), ("write_file", write("loop"))]);
    assert!(looped.iter().all(|(ok, _, _)| !ok), "{looped:?}");
}

fn make_pipe(sandbox: &Sandbox) {
    let made = std::process::Command::new("mkfifo").arg(sandbox.at("pipe")).status().unwrap();
    assert!(made.success());
}

#[test]
fn long_texts_are_cut_with_a_note() {
    let sandbox = Sandbox::new();
    let lines: String = (1..=9000).map(|number| format!("line {number}\n")).collect();
    sandbox.write("long", &lines);
    sandbox.write("wide", "é".repeat(40_000));
    for number in 0..1010 {
        sandbox.write(&format!("many/{number}"), "");
    }
    let done = run(
        &sandbox,
        &[
            ("read_file", path("long")),
            ("read_file", path("wide")),
            ("list_files", path("many")),
            ("shell", json!({"command": "cat long"})),
        ],
    );
    assert!(done.iter().all(|(ok, _, text)| *ok && text.chars().count() < 30_100), "{done:?}");
    assert!(
        done[0].2.ends_with("\n[9000 lines in total; continue with offset 3111]"),
        "{}",
        done[0].1
    );
    assert_eq!(done[0].1, "lines 1 to 3110 of 9000");
    assert!(done[1].2.ends_with("é\n[the line continues]"));
    assert!(done[2].2.ends_with("\n[10 left out]"));
    assert!(done[3].2.starts_with("line 1\n") && done[3].2.ends_with("line 9000\n"));
    assert!(done[3].2.contains("characters left out]"));
}

#[test]
fn a_command_runs_in_the_folder_and_returns_output_and_exit_code() {
    let sandbox = Sandbox::new();
    sandbox.write("a", "");
    let shell = |command: &str| ("shell", json!({"command": command}));
    let done = run(
        &sandbox,
        &[
            shell("pwd"),
            shell("echo out; echo err >&2; ls"),
            shell("cat; echo 'nothing to read'"),
            shell("kill -9 $$"),
            shell("no-such-command-here 2>/dev/null"),
            shell("printf 'a\\377b'"),
        ],
    );
    let result = |ok, line: &str, text: &str| (ok, line.to_owned(), text.to_owned());
    let root = std::fs::canonicalize(sandbox.root()).unwrap();
    let root = root.to_str().unwrap();
    assert_eq!(
        done,
        [
            result(true, root, &format!("{root}\n")),
            result(true, "a", "out\nerr\na\n"),
            result(true, "nothing to read", "nothing to read\n"),
            result(false, "ended by signal 9", "[ended by signal 9]"),
            result(false, "exit 127", "[exit code 127]"),
            result(true, "a\u{fffd}b", "a\u{fffd}b"),
        ]
    );
}

#[test]
fn background_processes_of_a_command_end_with_it() {
    let sandbox = Sandbox::new();
    let command = "(sleep 600; touch late) & echo $! > pid; echo begun";
    let done = run(&sandbox, &[("shell", json!({"command": command}))]);
    assert_eq!(done, [(true, "begun".to_owned(), "begun\n".to_owned())]);
    wait_until_gone(&sandbox.read("pid"));
}

#[test]
fn a_command_that_takes_too_long_is_ended() {
    let sandbox = Sandbox::new();
    let command = "echo $$ > pid; echo slow; sleep 600";
    let script = json!({"turns": [{"steps": [{"tool": "shell", "input": {"command": command}}]}]});
    let mut options = scenario(&script.to_string());
    options.shell_limit = Duration::from_secs(1);
    let mut talk = ChatFixture::start(&sandbox, options);
    let events = talk.turn("go");
    assert_eq!(tools(&events), [called(&format!("$ {command}"), false, "stopped after 1 s")]);
    let events = talk.agent.memory()["messages"][2]["content"][0]["content"].clone();
    assert_eq!(events, "slow\n[stopped after 1 s]");
    wait_until_gone(&sandbox.read("pid"));
}
