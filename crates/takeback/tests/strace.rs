//! The program itself, killed at its n-th system call that writes, for every n: with strace, which
//! delivers SIGKILL before the call is made. Whatever is left, `recover` and the same command again
//! get to the end.
//!
//! By default some forty n are tried for each command; all of them with `TAKEBACK_TEST_RUNS` set.

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

/// Everything by which the program can change the disk, except opening files.
const WRITING: &str = "write,pwrite64,writev,fsync,fdatasync,ftruncate,rename,renameat,renameat2,\
                       unlink,unlinkat,rmdir,mkdir,mkdirat,link,linkat,symlink,symlinkat,fchmod,\
                       fchmodat,fallocate";

const KILLS: usize = 40;

/// A workspace with its store. The store goes by the workspace's path, so copies come and go here.
struct Place {
    folder: TempDir,
}

impl Place {
    fn new() -> Self {
        let place = Self { folder: tempfile::tempdir().unwrap() };
        for name in ["now/work", "now/takeback", "home"] {
            fs::create_dir_all(place.at(name)).unwrap();
        }
        place
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

    /// Keeps workspace and store as they are now.
    fn keep(&self) {
        if self.at("kept").exists() {
            fs::remove_dir_all(self.at("kept")).unwrap();
        }
        copy(&self.at("now"), &self.at("kept"));
    }

    /// Brings back what was kept.
    fn bring_back(&self) {
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

    fn tell(&self, events: &str) {
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

    /// The system calls that write which a command makes in its main thread, by name, in order.
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

    /// Whether it was killed at its `n`-th call of this name, or came to its end before that.
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

/// What a command makes of the tree.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Does {
    /// Only the store changes.
    Record,
    /// The tree changes; this takes it back.
    TakeBack { with: &'static str },
}

/// Kills a command at its writing calls, one try each, and sees that nothing is lost by it.
fn kill_everywhere(place: &Place, args: &[&str], stdin: &str, does: Does) {
    place.keep();
    let (before, points) = (place.tree(), place.points());
    let writes = place.writes(args, stdin);
    let after = place.tree();
    assert_eq!(before == after, does == Does::Record);
    let all = std::env::var_os("TAKEBACK_TEST_RUNS").is_some();
    let step = if all { 1 } else { writes.len().div_ceil(KILLS) };
    println!("{args:?}: {} calls that write, every {step}. of them", writes.len());
    let mut kills = 0;
    for (at, name) in writes.iter().enumerate().step_by(step) {
        // strace counts each name for itself.
        let n = writes[..=at].iter().filter(|other| *other == name).count();
        place.bring_back();
        kills += usize::from(place.killed(name, n, args, stdin));
        let told = format!("{args:?}, killed at call {at}, {name} {n}");

        let recovered = place.run(&["recover"], "");
        // The first command of all may have been killed before there was a store.
        let no_store = points.is_empty() && recovered.status.code() == Some(10);
        assert!(recovered.status.success() || no_store, "{told}: {recovered:?}");
        if !no_store {
            place.succeeds(&["verify"], "");
        }
        let known = place.points();
        assert!(points.iter().all(|point| known.contains(point)), "{told}: {known:?}");
        assert!(!place.at("now/work/.takeback").exists(), "{told}");
        let now = place.tree();
        assert!(now == before || now == after, "{told}: {now:#?}");

        if now == before {
            place.succeeds(args, stdin);
            assert_eq!(place.tree(), after, "{told}, then done again");
        }
        if let Does::TakeBack { with } = does {
            place.succeeds(&[with, "-y"], "");
            assert_eq!(place.tree(), before, "{told}, then {with}");
        }
        place.succeeds(&["verify"], "");
    }
    let tries = writes.len().div_ceil(step);
    // What a command writes depends a little on when it runs; nearly all must have been met.
    assert!(kills > 10 && kills + 3 > tries, "killed only {kills} times of {tries}");
    place.bring_back();
}

fn lay_out(place: &Place) {
    place.write("a.txt", "one\n");
    place.write("lib/b.txt", "b\n");
    place.write("lib/deep/c.txt", "c\n");
    symlink("a.txt", place.at("now/work/link")).unwrap();
}

const PROMPT: &str = r#"{"event":"prompt","session":"s","text":"do it"}"#;
const BEFORE: &str =
    r#"{"event":"before_tool","session":"s","call":"1","tool":"Edit","paths":["a.txt"]}"#;
const AFTER: &str = r#"{"event":"after_tool","session":"s","call":"1"}"#;

#[test]
fn a_checkpoint() {
    let place = Place::new();
    lay_out(&place);
    kill_everywhere(&place, &["checkpoint"], "", Does::Record);
    place.succeeds(&["checkpoint", "first"], "");
    place.write("a.txt", "two\n");
    place.remove("lib");
    kill_everywhere(&place, &["checkpoint"], "", Does::Record);
}

#[test]
fn what_an_agent_reports() {
    let place = Place::new();
    lay_out(&place);
    place.succeeds(&["checkpoint", "first"], "");
    kill_everywhere(&place, &["record"], PROMPT, Does::Record);
    place.tell(PROMPT);
    place.write("a.txt", "a person was here\n");
    kill_everywhere(&place, &["record"], BEFORE, Does::Record);
    place.tell(BEFORE);
    place.write("a.txt", "the agent's\n");
    kill_everywhere(&place, &["record"], AFTER, Does::Record);
}

#[test]
fn a_rewind_and_its_undo() {
    let place = Place::new();
    lay_out(&place);
    place.tell(PROMPT);
    place.tell(r#"{"event":"before_tool","session":"s","call":"1","tool":"Bash","shell":"./run"}"#);
    place.write("a.txt", "the agent's\n");
    place.write("made/new.txt", "made\n");
    place.remove("lib");
    place.remove("link");
    symlink("made", place.at("now/work/link")).unwrap();
    place.tell(AFTER);
    place.tell(r#"{"event":"turn_end","session":"s"}"#);
    let point = place.points().pop().unwrap();
    kill_everywhere(&place, &["rewind", &point, "-y"], "", Does::TakeBack { with: "undo" });
    place.succeeds(&["rewind", &point, "-y"], "");
    kill_everywhere(&place, &["undo", "-y"], "", Does::TakeBack { with: "redo" });
}

/// A store is there whole, or it is gone and the next command clears what is left of it.
#[test]
fn forgetting_a_workspace() {
    let place = Place::new();
    lay_out(&place);
    place.succeeds(&["checkpoint", "first"], "");
    place.keep();
    let (before, points) = (place.tree(), place.points());
    let writes = place.writes(&["forget", "-y"], "");
    let (mut whole, mut gone) = (0, 0);
    for (at, name) in writes.iter().enumerate() {
        let n = writes[..=at].iter().filter(|other| *other == name).count();
        place.bring_back();
        place.killed(name, n, &["forget", "-y"], "");
        let told = format!("killed at call {at}, {name} {n}");
        assert_eq!(place.tree(), before, "{told}");
        match place.points() {
            known if known.is_empty() => {
                gone += 1;
                assert_eq!(place.succeeds(&["workspaces", "--json"], ""), "[]\n", "{told}");
                let left = fs::read_dir(place.at("now/takeback/workspaces")).unwrap().count();
                assert_eq!(left, 0, "{told}");
            }
            known => {
                whole += 1;
                assert_eq!(known, points, "{told}");
                place.succeeds(&["verify"], "");
            }
        }
    }
    assert!(whole > 0 && gone > 3, "{whole} times before it, {gone} times after it");
}

/// The history is found from the new place after the same command again, wherever it was cut off.
#[test]
fn a_folder_that_moved() {
    let place = Place::new();
    let old = place.at("now/old");
    let old = old.to_str().unwrap();
    fs::create_dir(old).unwrap();
    fs::write(place.at("now/old/a.txt"), "one\n").unwrap();
    place.succeeds(&["-C", old, "checkpoint", "first"], "");
    fs::remove_dir(place.at("now/work")).unwrap();
    fs::rename(old, place.at("now/work")).unwrap();
    place.keep();
    let writes = place.writes(&["relocate", old], "");
    let points = place.points();
    assert_eq!(points.len(), 1);
    for (at, name) in writes.iter().enumerate() {
        let n = writes[..=at].iter().filter(|other| *other == name).count();
        place.bring_back();
        place.killed(name, n, &["relocate", old], "");
        let told = format!("killed at call {at}, {name} {n}");
        if place.points().is_empty() {
            place.succeeds(&["relocate", old], "");
        }
        assert_eq!(place.points(), points, "{told}");
        place.succeeds(&["verify"], "");
        let stores = place.succeeds(&["workspaces", "--json"], "");
        let stores: serde_json::Value = serde_json::from_str(&stores).unwrap();
        let root = fs::canonicalize(place.at("now/work")).unwrap();
        assert_eq!(stores[0]["root"].as_str(), root.to_str(), "{told}: {stores}");
        assert_eq!(stores.as_array().unwrap().len(), 1, "{told}");
    }
}
