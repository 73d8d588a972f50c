//! `takeback purge`: no byte of a path's contents, and none of its name, is left in the store.

use std::fs;
use std::path::{Path, PathBuf};

use serde_json::Value;

use crate::user::{User, path_text};

const NAME: &str = "conf/quartz-lantern.env";
const SECRETS: [&str; 3] = ["zebra-7731-first", "zebra-7731-second", "quartz-lantern"];

/// A workspace in which a secret was recorded in every possible way.
fn with_a_secret() -> User {
    let user = User::with(&[
        (NAME, "TOKEN=zebra-7731-first\n"),
        ("conf/other.txt", "kept for good\n"),
        ("twin.txt", "shared by two\n"),
        ("conf/quartz-lantern.shared", "shared by two\n"),
    ]);
    let filler: String = (0..200_000).map(|n| format!("{n} zebra-7731-first\n")).collect();
    user.write("conf/quartz-lantern.big", &filler);
    user.succeeds(&["checkpoint", "start"]);
    let path = &path_text(&user.work().join(NAME));
    let events = format!(
        r#"{{"event":"prompt","session":"s","message":"m","text":"put a token into {NAME}"}}
{{"event":"before_tool","session":"s","call":"1","tool":"Edit","paths":["{path}"]}}"#
    );
    user.record(&events);
    user.write(NAME, "TOKEN=zebra-7731-second\n");
    let events = r#"{"event":"after_tool","session":"s","call":"1"}
{"event":"turn_end","session":"s"}"#;
    user.record(events);
    let run = format!("echo zebra-7731-first >> {NAME}; echo more >> conf/other.txt");
    fs::write(user.home().join("script"), run).expect("a script");
    let script = &path_text(&user.home().join("script"));
    user.succeeds(&["run", "--", "sh", script, "quartz-lantern.env"]);
    user.succeeds(&["rewind", "@", "-y"]);
    user.succeeds(&["undo", "-y"]);
    fs::remove_file(script).expect("it goes");
    let chat = user.home().join(".takeback/sessions/chat-1/checkpoints");
    fs::create_dir_all(&chat).expect("a session's folder");
    let listed = format!(
        r#"{{"checkpoints":[{{"id":"u","timestamp":"2026-01-01T00:00:00Z",
            "description":"put a token into {NAME}","sessionId":"c"}}]}}"#
    );
    fs::write(chat.join("metadata.json"), listed).expect("a list of prompts");
    assert!(!found_in(&user.home()).is_empty(), "what is looked for can be found");
    user
}

fn found_in(home: &Path) -> Vec<(PathBuf, &'static str)> {
    find_secrets(home, &SECRETS)
}

/// The files below a folder that contain one of the secrets, raw or compressed.
pub(crate) fn find_secrets(home: &Path, secrets: &[&'static str]) -> Vec<(PathBuf, &'static str)> {
    let mut found = Vec::new();
    let mut open = vec![home.to_owned()];
    while let Some(folder) = open.pop() {
        for entry in fs::read_dir(folder).expect("it can be read") {
            let path = entry.expect("it has a name").path();
            if path.is_dir() {
                open.push(path);
                continue;
            }
            let bytes = fs::read(&path).expect("it can be read");
            let unpacked = frames_in(&bytes);
            for secret in secrets.iter().copied() {
                let is_in = |bytes: &[u8]| {
                    bytes.windows(secret.len()).any(|part| part == secret.as_bytes())
                };
                if is_in(&bytes) || unpacked.iter().any(|frame| is_in(frame)) {
                    found.push((path.clone(), secret));
                }
            }
        }
    }
    found
}

/// The zstd frames in these bytes, decompressed.
fn frames_in(bytes: &[u8]) -> Vec<Vec<u8>> {
    const MAGIC: [u8; 4] = [0x28, 0xb5, 0x2f, 0xfd];
    let starts = bytes.windows(4).enumerate().filter(|(_, part)| *part == MAGIC);
    starts
        .filter_map(|(at, _)| {
            let mut decoder = zstd::stream::Decoder::new(&bytes[at..]).ok()?.single_frame();
            let mut frame = Vec::new();
            // Of a truncated frame, the part that could be decompressed counts.
            drop(std::io::copy(&mut decoder, &mut frame));
            Some(frame)
        })
        .collect()
}

#[test]
fn nothing_of_a_purged_folder_is_left_in_the_store() {
    let user = with_a_secret();
    let would = user.json(&["purge", "conf", "--dry-run"]);
    assert_eq!((&would["purged"], &would["onDisk"]), (&Value::from(false), &Value::from(true)));
    assert!(!found_in(&user.home()).is_empty(), "a dry run removes nothing");
    let done = user.json(&["purge", "conf", "-y"]);
    assert_eq!(done["purged"], true, "{done}");
    assert_eq!((&done["paths"], &done["shared"]), (&Value::from(5), &Value::from(1)), "{done}");
    assert_eq!(done["versions"], would["versions"]);
    assert!(done["bytes"].as_u64().is_some_and(|bytes| bytes > 4_000_000), "{done}");
    assert_eq!(found_in(&user.home()), []);
    assert_eq!(user.read(NAME).lines().count(), 2, "the file itself stays");
    user.succeeds(&["verify"]);
}

#[test]
fn one_file_is_purged_and_its_points_say_so() {
    let user = with_a_secret();
    for path in [NAME, "conf/quartz-lantern.big", "conf/quartz-lantern.shared"] {
        user.succeeds(&["purge", path, "-y"]).prints("stays on disk").prints(".takebackignore");
    }
    assert_eq!(found_in(&user.home()), []);
    user.write(".takebackignore", "conf/q*\n");
    user.write("conf/other.txt", "changed\n");
    user.exits(4, &["rewind", "start", "--exact", "-y"]).prints("purged from the store");
    assert_eq!(user.read("conf/other.txt"), "kept for good\n", "the rest comes back");
    assert_eq!(user.read(NAME).lines().count(), 2, "and the file stays as it is");
    // An excluded file is not recorded again. The index has the names of skipped files.
    let index = user.store().join("index");
    let recorded: Vec<_> =
        found_in(&user.home()).into_iter().filter(|(p, _)| *p != index).collect();
    assert_eq!(recorded, []);
    // Other files that had the same contents keep them.
    fs::remove_file(user.work().join("twin.txt")).expect("it goes");
    user.succeeds(&["rewind", "start", "--exact", "--path", "twin.txt", "-y"]);
    assert_eq!(user.read("twin.txt"), "shared by two\n");
}

#[test]
fn purge_asks_first() {
    let user = User::with(&[("a.txt", "one\n")]);
    user.succeeds(&["checkpoint"]);
    user.exits(2, &["purge", "a.txt"]);
    let ran = user.terminal(80, 70).run(&["purge", "a.txt"], "[y/N]", "n\r");
    assert_eq!(ran.code, 5, "{}", ran.shown());
    let ran = user.terminal(80, 70).run(&["purge", "a.txt"], "[y/N]", "y\r");
    assert_eq!(ran.code, 0, "{}", ran.shown());
    user.exits(5, &["purge", "a.txt", "-y"]);
    user.exits(2, &["purge", ".", "-y"]);
}

/// It is recorded again with an unknown past, so no rewind deletes it.
#[test]
fn a_purged_file_that_is_still_covered_does_not_count_as_new() {
    let user = User::with(&[("a.txt", "one\n"), ("b.txt", "b\n")]);
    user.succeeds(&["checkpoint", "start"]);
    user.succeeds(&["purge", "a.txt", "-y"]);
    user.succeeds(&["run", "--", "sh", "-c", "echo 2 > b.txt"]);
    let answer = user.takeback(&["rewind", "@", "-y"]);
    assert_eq!((answer.code, user.read("b.txt").as_str()), (0, "b\n"), "{answer:?}");
    assert_eq!(user.read("a.txt"), "one\n");
}
