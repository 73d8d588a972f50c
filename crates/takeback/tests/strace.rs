//! Kills the program at its n-th writing system call, for every n. strace delivers SIGKILL before the call.
//! Afterwards `recover` and the same command again must finish the job.
//!
//! By default about forty n are tried per command; with `TAKEBACK_TEST_RUNS` all of them.

#![expect(clippy::disallowed_methods, reason = "tests lay out their own trees")]
#![expect(clippy::unwrap_used, reason = "a test that cannot go on has failed")]
#![expect(clippy::print_stdout, reason = "shown only when a test fails")]

use std::collections::BTreeMap;
use std::fs;
use std::io::Write as _;
use std::os::unix::fs::symlink;
use std::os::unix::process::ExitStatusExt as _;
use std::path::{Path, PathBuf};
use std::process::{Command, Output, Stdio};

use takeback_testkit::{Thing, tree};
use tempfile::TempDir;

/// All calls that can change the disk, except opening files.
const WRITING: &str = "write,pwrite64,writev,fsync,fdatasync,ftruncate,rename,renameat,renameat2,\
                       unlink,unlinkat,rmdir,mkdir,mkdirat,link,linkat,symlink,symlinkat,fchmod,\
                       fchmodat,fallocate";

const KILLS: usize = 40;

/// A workspace with its store. A store belongs to the workspace's path, so copies are restored to the same place.
struct Sandbox {
    folder: TempDir,
}

impl Sandbox {
    fn new() -> Self {
        let sandbox = Self { folder: tempfile::tempdir().unwrap() };
        for name in ["now/work", "now/takeback", "home"] {
            fs::create_dir_all(sandbox.at(name)).unwrap();
        }
        sandbox
    }

    fn at(&self, path: &str) -> PathBuf {
        self.folder.path().join(path)
    }

    fn write(&self, path: &str, text: &str) {
        let path = self.at("now/work").join(path);
        fs::create_dir_all(path.parent().unwrap()).unwrap();
        fs::write(path, text).unwrap();
    }

    fn remove(&self, path: &str) {
        let path = self.at("now/work").join(path);
        if path.is_dir() { fs::remove_dir_all(path) } else { fs::remove_file(path) }.unwrap();
    }

    fn tree(&self) -> BTreeMap<PathBuf, Thing> {
        tree(&self.at("now/work"))
    }

    /// Copies workspace and store.
    fn backup(&self) {
        if self.at("kept").exists() {
            fs::remove_dir_all(self.at("kept")).unwrap();
        }
        copy(&self.at("now"), &self.at("kept"));
    }

    /// Restores the copy.
    fn restore(&self) {
        fs::remove_dir_all(self.at("now")).unwrap();
        copy(&self.at("kept"), &self.at("now"));
    }

    fn command(&self, program: &str) -> Command {
        let mut command = Command::new(program);
        command
            .current_dir(self.at("now/work"))
            .env("HOME", self.at("home"))
            .env("TAKEBACK_HOME", self.at("now/takeback"))
            .stdin(Stdio::piped())
            .stdout(Stdio::piped())
            .stderr(Stdio::piped());
        command
    }

    fn run(&self, args: &[&str], stdin: &str) -> Output {
        answer(self.command(env!("CARGO_BIN_EXE_takeback")).args(args), stdin)
    }

    #[track_caller]
    fn succeeds(&self, args: &[&str], stdin: &str) -> String {
        let output = self.run(args, stdin);
        assert!(output.status.success(), "{args:?}: {output:?}");
        String::from_utf8(output.stdout).unwrap()
    }

    fn record(&self, events: &str) {
        self.succeeds(&["record"], events);
    }

    /// The ids of all points, newest first; none if there is no store.
    fn points(&self) -> Vec<String> {
        let output = self.run(&["log", "--json", "--all", "-n", "1000"], "");
        match output.status.code() {
            Some(0) => {}
            Some(10) => return Vec::new(),
            _ => panic!("{output:?}"),
        }
        let points: serde_json::Value = serde_json::from_slice(&output.stdout).unwrap();
        let id = |point: &serde_json::Value| point["id"].as_str().unwrap().to_owned();
        points.as_array().unwrap().iter().map(id).collect()
    }

    /// The names of the writing system calls in a command's main thread, in order.
    fn writes(&self, args: &[&str], stdin: &str) -> Vec<String> {
        let trace = self.at("trace");
        let mut command = self.command("strace");
        command.args(["-qq", "-e", "signal=none", "-e"]).arg(format!("trace={WRITING}"));
        command.arg("-o").arg(&trace).arg(env!("CARGO_BIN_EXE_takeback")).args(args);
        let output = answer(&mut command, stdin);
        assert!(output.status.success(), "{args:?}: {output:?}");
        let trace = fs::read_to_string(trace).unwrap();
        let name = |line: &str| line.split('(').next().unwrap().to_owned();
        trace.lines().map(name).collect()
    }

    /// Whether it was killed at its `n`-th call of this name; if not, it ended before.
    fn killed(&self, name: &str, n: usize, args: &[&str], stdin: &str) -> bool {
        let mut command = self.command("strace");
        command.args(["-f", "-qq", "-o", "/dev/null", "-e"]).arg(format!("trace={name}"));
        command.arg("-e").arg(format!("inject={name}:signal=SIGKILL:when={n}"));
        let output = answer(command.arg(env!("CARGO_BIN_EXE_takeback")).args(args), stdin);
        match (output.status.signal(), output.status.code()) {
            (Some(9), _) => true,
            (_, Some(0)) => false,
            _ => panic!("{args:?} at {name} {n}: {output:?}"),
        }
    }
}

fn answer(command: &mut Command, stdin: &str) -> Output {
    let mut child = command.spawn().unwrap_or_else(|error| {
        panic!(
            "{:?} cannot be run ({error}). These tests need strace: install it",
            command.get_program()
        )
    });
    // It may be killed before it reads.
    drop(child.stdin.take().unwrap().write_all(stdin.as_bytes()));
    child.wait_with_output().unwrap()
}

fn copy(from: &Path, to: &Path) {
    let status = Command::new("cp").arg("-a").arg(from).arg(to).status().unwrap();
    assert!(status.success());
}

/// What a command does to the tree.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Effect {
    /// Only the store changes.
    Record,
    /// The tree changes; this takes it back.
    TakeBack { with: &'static str },
}

/// Kills a command at each of its writing calls, and checks that nothing is lost.
fn kill_everywhere(sandbox: &Sandbox, args: &[&str], stdin: &str, effect: Effect) {
    sandbox.backup();
    let (before, points) = (sandbox.tree(), sandbox.points());
    let writes = sandbox.writes(args, stdin);
    let after = sandbox.tree();
    assert_eq!(before == after, effect == Effect::Record);
    let all = std::env::var_os("TAKEBACK_TEST_RUNS").is_some();
    let step = if all { 1 } else { writes.len().div_ceil(KILLS) };
    println!("{args:?}: {} calls that write, every {step}. of them", writes.len());
    let mut kills = 0;
    for (at, name) in writes.iter().enumerate().step_by(step) {
        // strace counts each name separately.
        let n = writes[..=at].iter().filter(|other| *other == name).count();
        sandbox.restore();
        kills += usize::from(sandbox.killed(name, n, args, stdin));
        let told = format!("{args:?}, killed at call {at}, {name} {n}");

        let recovered = sandbox.run(&["recover"], "");
        // The very first command may have been killed before there was a store.
        let no_store = points.is_empty() && recovered.status.code() == Some(10);
        assert!(recovered.status.success() || no_store, "{told}: {recovered:?}");
        if !no_store {
            sandbox.succeeds(&["verify"], "");
        }
        let known = sandbox.points();
        assert!(points.iter().all(|point| known.contains(point)), "{told}: {known:?}");
        assert!(!sandbox.at("now/work/.takeback").exists(), "{told}");
        let now = sandbox.tree();
        assert!(now == before || now == after, "{told}: {now:#?}");

        if now == before {
            sandbox.succeeds(args, stdin);
            assert_eq!(sandbox.tree(), after, "{told}, then done again");
        }
        if let Effect::TakeBack { with } = effect {
            sandbox.succeeds(&[with, "-y"], "");
            assert_eq!(sandbox.tree(), before, "{told}, then {with}");
        }
        sandbox.succeeds(&["verify"], "");
    }
    let tries = writes.len().div_ceil(step);
    // Timing changes a command's writes a little; nearly all must have been reached.
    assert!(kills > 10 && kills + 3 > tries, "killed only {kills} times of {tries}");
    sandbox.restore();
}

fn lay_out(sandbox: &Sandbox) {
    sandbox.write("a.txt", "one\n");
    sandbox.write("lib/b.txt", "b\n");
    sandbox.write("lib/deep/c.txt", "c\n");
    symlink("a.txt", sandbox.at("now/work/link")).unwrap();
}

const PROMPT: &str = r#"{"event":"prompt","session":"s","text":"do it"}"#;
const BEFORE: &str =
    r#"{"event":"before_tool","session":"s","call":"1","tool":"Edit","paths":["a.txt"]}"#;
const AFTER: &str = r#"{"event":"after_tool","session":"s","call":"1"}"#;

#[test]
fn a_checkpoint() {
    let sandbox = Sandbox::new();
    lay_out(&sandbox);
    kill_everywhere(&sandbox, &["checkpoint"], "", Effect::Record);
    sandbox.succeeds(&["checkpoint", "first"], "");
    sandbox.write("a.txt", "two\n");
    sandbox.remove("lib");
    kill_everywhere(&sandbox, &["checkpoint"], "", Effect::Record);
}

#[test]
fn what_an_agent_reports() {
    let sandbox = Sandbox::new();
    lay_out(&sandbox);
    sandbox.succeeds(&["checkpoint", "first"], "");
    kill_everywhere(&sandbox, &["record"], PROMPT, Effect::Record);
    sandbox.record(PROMPT);
    sandbox.write("a.txt", "a person was here\n");
    kill_everywhere(&sandbox, &["record"], BEFORE, Effect::Record);
    sandbox.record(BEFORE);
    sandbox.write("a.txt", "the agent's\n");
    kill_everywhere(&sandbox, &["record"], AFTER, Effect::Record);
}

#[test]
fn a_rewind_and_its_undo() {
    let sandbox = Sandbox::new();
    lay_out(&sandbox);
    sandbox.record(PROMPT);
    sandbox.record(
        r#"{"event":"before_tool","session":"s","call":"1","tool":"Bash","shell":"./run"}"#,
    );
    sandbox.write("a.txt", "the agent's\n");
    sandbox.write("made/new.txt", "made\n");
    sandbox.remove("lib");
    sandbox.remove("link");
    symlink("made", sandbox.at("now/work/link")).unwrap();
    sandbox.record(AFTER);
    sandbox.record(r#"{"event":"turn_end","session":"s"}"#);
    let point = sandbox.points().pop().unwrap();
    kill_everywhere(&sandbox, &["rewind", &point, "-y"], "", Effect::TakeBack { with: "undo" });
    sandbox.succeeds(&["rewind", &point, "-y"], "");
    kill_everywhere(&sandbox, &["undo", "-y"], "", Effect::TakeBack { with: "redo" });
}

const TEN: &str = "1\n2\n3\n4\n5\n6\n7\n8\n9\n10\n";

#[test]
fn a_revert_a_restore_a_settling_and_an_undo_by_id() {
    let sandbox = Sandbox::new();
    lay_out(&sandbox);
    sandbox.write("a.txt", TEN);
    sandbox.record(PROMPT);
    sandbox.record(
        r#"{"event":"before_tool","session":"s","call":"1","tool":"Bash","shell":"./run"}"#,
    );
    let agents = TEN.replace("2\n", "two\n").replace("8\n", "eight\n");
    sandbox.write("a.txt", &agents);
    sandbox.write("made/new.txt", "made\n");
    sandbox.remove("lib");
    sandbox.record(AFTER);
    sandbox.record(r#"{"event":"turn_end","session":"s"}"#);
    let turn = sandbox.points().pop().unwrap();
    kill_everywhere(&sandbox, &["revert", &turn, "-y"], "", Effect::TakeBack { with: "undo" });
    let restore = ["restore", "lib", "a.txt", "--from", &turn, "-y"];
    kill_everywhere(&sandbox, &restore, "", Effect::TakeBack { with: "undo" });

    sandbox.write("a.txt", &agents.replace("two\n", "mine\n"));
    assert_eq!(sandbox.run(&["revert", &turn, "-y"], "").status.code(), Some(4));
    let settle = ["resolve", "--take", "before", "-y"];
    kill_everywhere(&sandbox, &settle, "", Effect::TakeBack { with: "undo" });
    let operations = sandbox.succeeds(&["log", "--ops", "--json"], "");
    let operations: serde_json::Value = serde_json::from_str(&operations).unwrap();
    let revert = operations[0]["id"].as_str().unwrap();
    kill_everywhere(&sandbox, &["undo", revert, "-y"], "", Effect::TakeBack { with: "redo" });
}

/// The store is complete, or it is gone and the next command removes the rest of it.
#[test]
fn forgetting_a_workspace() {
    let sandbox = Sandbox::new();
    lay_out(&sandbox);
    sandbox.succeeds(&["checkpoint", "first"], "");
    sandbox.backup();
    let (before, points) = (sandbox.tree(), sandbox.points());
    let writes = sandbox.writes(&["forget", "-y"], "");
    let (mut whole, mut gone) = (0, 0);
    for (at, name) in writes.iter().enumerate() {
        let n = writes[..=at].iter().filter(|other| *other == name).count();
        sandbox.restore();
        sandbox.killed(name, n, &["forget", "-y"], "");
        let told = format!("killed at call {at}, {name} {n}");
        assert_eq!(sandbox.tree(), before, "{told}");
        match sandbox.points() {
            known if known.is_empty() => {
                gone += 1;
                assert_eq!(sandbox.succeeds(&["workspaces", "--json"], ""), "[]\n", "{told}");
                let left = fs::read_dir(sandbox.at("now/takeback/workspaces")).unwrap().count();
                assert_eq!(left, 0, "{told}");
            }
            known => {
                whole += 1;
                assert_eq!(known, points, "{told}");
                sandbox.succeeds(&["verify"], "");
            }
        }
    }
    assert!(whole > 0 && gone > 3, "{whole} times before it, {gone} times after it");
}

/// Wherever `relocate` is killed, running it again makes the history available from the new place.
#[test]
fn a_folder_that_moved() {
    let sandbox = Sandbox::new();
    let old = sandbox.at("now/old");
    let old = old.to_str().unwrap();
    fs::create_dir(old).unwrap();
    fs::write(sandbox.at("now/old/a.txt"), "one\n").unwrap();
    sandbox.succeeds(&["-C", old, "checkpoint", "first"], "");
    fs::remove_dir(sandbox.at("now/work")).unwrap();
    fs::rename(old, sandbox.at("now/work")).unwrap();
    sandbox.backup();
    let writes = sandbox.writes(&["relocate", old], "");
    let points = sandbox.points();
    assert_eq!(points.len(), 1);
    for (at, name) in writes.iter().enumerate() {
        let n = writes[..=at].iter().filter(|other| *other == name).count();
        sandbox.restore();
        sandbox.killed(name, n, &["relocate", old], "");
        let told = format!("killed at call {at}, {name} {n}");
        if sandbox.points().is_empty() {
            sandbox.succeeds(&["relocate", old], "");
        }
        assert_eq!(sandbox.points(), points, "{told}");
        sandbox.succeeds(&["verify"], "");
        let stores = sandbox.succeeds(&["workspaces", "--json"], "");
        let stores: serde_json::Value = serde_json::from_str(&stores).unwrap();
        let root = fs::canonicalize(sandbox.at("now/work")).unwrap();
        assert_eq!(stores[0]["root"].as_str(), root.to_str(), "{told}: {stores}");
        assert_eq!(stores.as_array().unwrap().len(), 1, "{told}");
    }
}
