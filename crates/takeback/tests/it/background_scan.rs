//! A prompt's hook returns before the tree has been scanned; the next hook waits for the scan.

#![expect(clippy::unwrap_used, reason = "a test that cannot continue panics")]

use std::fs::{self, File};
use std::io::Write as _;
use std::path::{Path, PathBuf};
use std::process::{Child, Command, Stdio};

use serde_json::{Value, json};

use crate::hook::{payload, write_tool};
use crate::user::{QUIET, User, until};

/// A hook of Claude Code that has not been started yet.
fn hook(user: &User) -> Command {
    let mut hook = user.patient_command(&["hook", "--agent", "claude"]);
    hook.env("TAKEBACK_BACKGROUND_SCAN_FILES", "0");
    hook
}

fn send(user: &User, event: &str, more: &Value) {
    let answer = user.answer_of(hook(user), &payload(user, event, more));
    assert_eq!(answer, QUIET, "{event}");
}

fn prompt(user: &User, text: &str) {
    send(user, "UserPromptSubmit", &json!({"prompt": text, "prompt_id": text}));
}

/// The agent's edit of `a.txt`, which the user has edited before the prompt.
fn edit(user: &User) -> Value {
    write_tool(user, "c1", "a.txt", "agent\n")
}

/// Starts the hook before the edit, and sends its payload.
fn before_edit(user: &User, mut hook: Command) -> Child {
    hook.stdin(Stdio::piped()).stdout(Stdio::null()).stderr(Stdio::null());
    let mut child = hook.spawn().unwrap();
    let payload = payload(user, "PreToolUse", &edit(user));
    child.stdin.take().unwrap().write_all(payload.as_bytes()).unwrap();
    child
}

/// The events that are not in the log yet.
fn inbox(user: &User) -> Vec<PathBuf> {
    let Ok(names) = fs::read_dir(user.store().join("inbox")) else { return Vec::new() };
    names.map(|name| name.unwrap().path()).collect()
}

/// The process that scans the tree for an event. Other stores have events of the same name.
fn scanning_process(user: &User, event: &Path) -> u32 {
    let name = event.file_name().unwrap().as_encoded_bytes();
    let root = fs::canonicalize(user.work()).unwrap();
    let is_it = |pid: &u32| {
        let line = fs::read(format!("/proc/{pid}/cmdline")).unwrap_or_default();
        let mut words = line.split(|byte| *byte == 0);
        words.any(|word| word == root.as_os_str().as_encoded_bytes())
            && words.any(|word| word == b"finish-event")
            && words.next() == Some(name)
    };
    let all = fs::read_dir("/proc").unwrap().map(|entry| entry.unwrap().file_name());
    all.filter_map(|name| name.to_str()?.parse().ok()).find(is_it).expect("a process scans")
}

fn signal(pid: u32, signal: &str) {
    assert!(Command::new("kill").args([signal, &pid.to_string()]).status().unwrap().success());
}

fn has_open(pid: u32, path: &Path) -> bool {
    let Ok(files) = fs::read_dir(format!("/proc/{pid}/fd")) else { return false };
    let mut files = files.filter_map(|file| fs::read_link(file.ok()?.path()).ok());
    files.any(|file| file == fs::canonicalize(path).unwrap_or_default())
}

/// One turn that is done, and a second prompt, whose scan was stopped before it began.
struct StoppedScan {
    user: User,
    event: PathBuf,
    scanner: u32,
}

impl StoppedScan {
    fn new() -> Self {
        let user = User::with(&[("a.txt", "one\n"), ("mine.txt", "one\n")]);
        prompt(&user, "first");
        send(&user, "Stop", &json!({}));
        until("the turn's end is in the log", || inbox(&user).is_empty());
        user.write("a.txt", "mine\n");
        user.write("mine.txt", "mine\n");
        // Locked as by a rewind, so that every reader waits.
        let held = File::options().write(true).open(user.store().join("lock")).unwrap();
        held.lock().unwrap();
        prompt(&user, "second");
        let [event] = inbox(&user).try_into().expect("one event is claimed");
        let scanner = scanning_process(&user, &event);
        // Stopped earlier, it might hold the database.
        until("it waits", || has_open(scanner, &user.store().join("lock")));
        signal(scanner, "-STOP");
        Self { user, event, scanner }
    }

    /// The agent finishes its edit and its turn.
    fn end(&self) {
        send(&self.user, "PostToolUse", &edit(&self.user));
        send(&self.user, "Stop", &json!({}));
        until("all is in the log", || inbox(&self.user).is_empty());
        assert_eq!(self.user.takeback(&["verify"]).code, 0);
    }

    /// The paths that changed after a point, each with its author's kind.
    fn changes(&self, point: &str) -> Vec<(String, String)> {
        let shown = self.user.json(&["show", point]);
        let text = |value: &Value| value.as_str().unwrap_or_default().to_owned();
        let changes = shown["changes"].as_array().unwrap().iter();
        changes.map(|change| (text(&change["filePath"]), text(&change["author"]["kind"]))).collect()
    }
}

impl Drop for StoppedScan {
    fn drop(&mut self) {
        // A stopped process would outlive the test.
        drop(Command::new("kill").args(["-KILL", &self.scanner.to_string()]).status());
    }
}

#[test]
fn an_edit_waits_for_the_scan() {
    let scan = StoppedScan::new();
    let user = &scan.user;
    let mut edit = before_edit(user, hook(user));
    until("it waits", || has_open(edit.id(), &scan.event));
    assert_eq!(edit.try_wait().unwrap(), None, "it still waits");
    signal(scan.scanner, "-CONT");
    assert!(edit.wait().unwrap().success());
    assert_eq!(inbox(user), Vec::<PathBuf>::new(), "the prompt is in the log");
    user.write("a.txt", "agent\n");
    scan.end();
    assert_eq!(user.descriptions(), ["second", "first"]);
    let pair = |path: &str, author: &str| (path.to_owned(), author.to_owned());
    assert_eq!(scan.changes("second"), [pair("a.txt", "agent")]);
    let answer = user.takeback(&["rewind", "second", "-y"]);
    assert_eq!((answer.code, user.read("a.txt").as_str()), (0, "mine\n"), "{answer:?}");
}

#[test]
fn an_edit_whose_deadline_passes_first_is_marked() {
    let scan = StoppedScan::new();
    let user = &scan.user;
    let mut hasty = hook(user);
    hasty.env("TAKEBACK_HOOK_DEADLINE_MS", "100").env("TAKEBACK_SCAN_BUDGET_MS", "100");
    assert!(before_edit(user, hasty).wait().unwrap().success());
    user.write("a.txt", "agent\n");
    signal(scan.scanner, "-CONT");
    until("the prompt is in the log", || !scan.event.exists());
    scan.end();
    assert_eq!(user.descriptions(), ["second", "first"]);
    let changes = scan.changes("second");
    assert!(changes.iter().all(|(_, author)| author != "human"), "{changes:?}");
    let shown = user.json(&["show", "second"]);
    assert!(shown.to_string().contains("deadline"), "{shown}");
    let answer = user.takeback(&["rewind", "second", "-y"]);
    assert!(answer.out.contains("missing   a.txt"), "{answer:?}");
    assert_eq!((answer.code, user.read("a.txt").as_str()), (4, "agent\n"), "{answer:?}");
}

#[test]
fn the_event_of_a_killed_process_is_recorded_late() {
    let scan = StoppedScan::new();
    let user = &scan.user;
    signal(scan.scanner, "-KILL");
    assert!(before_edit(user, hook(user)).wait().unwrap().success());
    assert_eq!(inbox(user), Vec::<PathBuf>::new(), "the prompt is in the log");
    user.write("a.txt", "agent\n");
    scan.end();
    assert_eq!(user.descriptions(), ["second", "first"]);
    // The contents before the edit were saved, though their author is not known.
    let shown = user.json(&["show", "second"]);
    assert!(!shown.to_string().contains("deadline"), "{shown}");
}

#[test]
fn unread_files_are_read_in_the_background() {
    let user = User::with(&[("a.txt", "one\n")]);
    prompt(&user, "first");
    until("the prompt is in the log", || inbox(&user).is_empty());
    let path = user.store().join("inbox/scan");
    fs::create_dir_all(path.parent().unwrap()).unwrap();
    fs::write(&path, r#"{"read":430,"of":1000}"#).unwrap();
    let reader = File::open(&path).unwrap();
    reader.lock().unwrap();
    let answer = user.takeback(&["status"]);
    let said = "Files are being read in the background: 43 % of 1.0 KB";
    assert!(answer.code == 0 && answer.out.contains(said), "{answer:?}");
    let status = user.json(&["status"]);
    assert_eq!(status["goingOn"], json!({"readBytes": 430, "ofBytes": 1000}));
    assert_eq!((&status["locked"], &status["files"]), (&json!(false), &Value::Null));
    send(&user, "Stop", &json!({}));
    assert!(path.exists(), "a process works on it");
    // As if it had been killed.
    drop(reader);
    user.write("a.txt", "two\n");
    send(&user, "SessionStart", &json!({"source": "startup"}));
    until("nothing is left", || !path.exists());
    assert_eq!(user.json(&["status"])["goingOn"], Value::Null);
    user.succeeds(&["verify"]);
}
