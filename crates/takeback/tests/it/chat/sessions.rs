//! Stored sessions, and how they are continued.

use std::fs;
use std::os::unix::fs::PermissionsExt as _;
use std::path::{Path, PathBuf};

use serde_json::{Value, json};

use super::two_prompts::{
    after_two_prompts, after_two_prompts_of, scenario, start_scenario, start_turns, two,
    write_scenario,
};
use crate::pty::{DOWN, ENTER, ESC, Terminal};
use crate::user::{User, column};

const FIRST: &str = "Create a file utils.ts with add and subtract functions";
const SECOND: &str = "Add multiply and divide functions to utils.ts";

fn folders(user: &User) -> Vec<PathBuf> {
    let sessions = fs::read_dir(user.home().join(".takeback/sessions"));
    let Ok(sessions) = sessions else { return Vec::new() };
    sessions.map(|entry| entry.expect("an entry").path()).collect()
}

/// The list of the only session.
pub(super) fn list_file(user: &User) -> PathBuf {
    let folders = folders(user);
    assert_eq!(folders.len(), 1, "{folders:?}");
    folders[0].join("checkpoints/metadata.json")
}

pub(super) fn list(user: &User) -> Value {
    serde_json::from_slice(&fs::read(list_file(user)).expect("it is there")).expect("JSON")
}

/// The sessions of the folder, newest first.
fn ids(user: &User) -> Vec<String> {
    let ids = column(&user.json(&["sessions"]), "id");
    ids.iter().map(|id| id.as_str().expect("an id").to_owned()).collect()
}

/// Continues a session after two prompts.
fn continues(user: &User, how: &[&str]) -> Terminal {
    let scenario = scenario(user);
    let mut chat = user.terminal(80, 24).start(&[&["chat", "--scenario", &scenario], how].concat());
    chat.sees("Continued after 2 prompts.").sees("divide too.");
    chat
}

/// A start that fails: its exit code and output.
fn failed_start(user: &User, how: &[&str]) -> (u32, String) {
    let mut chat = user.terminal(80, 24).start(&[&["chat"], how].concat());
    let code = chat.ends();
    (code, chat.shown())
}

#[test]
fn the_list_for_other_programs_has_every_prompt_newest_first() {
    let user = User::new();
    let mut chat = after_two_prompts_of(&user);
    let list = list(&user);
    let listed = list["checkpoints"].as_array().expect("a list").clone();
    let session = ids(&user).remove(0);
    let log = user.json(&["log"]);
    let messages = |text: &str| {
        let points = log.as_array().expect("a list").iter();
        let mut points = points.filter(|point| point["description"] == text);
        points.next().expect("a point")["messageIds"][0].clone()
    };
    let expected = |at: usize, text: &str| {
        json!({ "id": messages(text), "timestamp": listed[at]["timestamp"],
            "description": text, "sessionId": session })
    };
    assert_eq!(list, json!({ "checkpoints": [expected(0, SECOND), expected(1, FIRST)] }));
    let times = [0, 1].map(|at| listed[at]["timestamp"].as_str().expect("a time").to_owned());
    assert!(times[0] > times[1] && times.iter().all(|time| time.len() == 24), "{times:?}");
    let file = list_file(&user);
    assert!(file.starts_with(user.home().join(".takeback/sessions").join(&session)));
    let mode = |path: &Path| fs::metadata(path).expect("it is there").permissions().mode() & 0o777;
    let folder = file.parent().expect("a folder");
    assert_eq!((mode(&file), mode(folder)), (0o600, 0o700));
    assert_eq!(mode(folder.parent().expect("a folder")), 0o700);
    chat.exits();
}

#[test]
fn the_list_is_as_long_as_the_settings_say() {
    let user = User::new();
    user.set(r#"{"checkpointKeepCount": 2}"#);
    let turn = |text: &str| json!({ "steps": [{ "say": text }] });
    let turns = json!({ "turns": [turn("first."), turn("second."), turn("third.")] });
    let mut chat = start_turns(&user, &turns);
    chat.says("one").sees("first.").sees("1 point ").says("two\u{3000}zwei");
    chat.sees("second.").sees("2 points").says("three").sees("third.").sees("3 points");
    assert_eq!(column(&list(&user)["checkpoints"], "description"), ["three", "two\u{3000}zwei"]);
    // The menu shows as many, and the rest on request.
    chat.types(ESC).types(ESC).sees("older…").sees("1 more in this session").types(DOWN);
    chat.types(DOWN).types(DOWN).types(ENTER).sees_no("older…").sees("> 3 just now");
}

/// The list as it can be rebuilt from the log.
fn listed_in_the_log(user: &User) -> Value {
    let session = ids(user).remove(0);
    let points = user.json(&["log"]);
    let points = points.as_array().expect("a list").iter();
    let points = points.filter(|point| point["kind"] == "prompt").map(|point| {
        json!({ "id": point["messageIds"][0], "timestamp": point["createdAt"],
            "description": point["description"], "sessionId": session })
    });
    json!({ "checkpoints": points.collect::<Vec<_>>() })
}

/// With three digits after the second.
fn with_milliseconds(mut list: Value) -> Value {
    for one in list["checkpoints"].as_array_mut().expect("a list") {
        let time = one["timestamp"].as_str().expect("a time").trim_end_matches('Z');
        let (seconds, rest) = time.split_once('.').unwrap_or((time, ""));
        one["timestamp"] = format!("{seconds}.{rest:0<3}Z").into();
    }
    list
}

#[test]
fn a_damaged_list_is_set_aside_and_filled_from_the_log() {
    let user = User::new();
    after_two_prompts_of(&user).exits();
    let file = list_file(&user);
    let whole = list(&user);
    assert_eq!(whole, with_milliseconds(listed_in_the_log(&user)), "the log knows all of it");
    fs::write(&file, "{ rubbish").expect("it is damaged");
    let mut chat = continues(&user, &["--continue"]);
    chat.sees("metadata.json was damaged").sees("damaged-1").sees("2 checkpoints were restored");
    let aside = file.with_file_name("metadata.json.damaged-1");
    assert_eq!(fs::read_to_string(aside).expect("it is there"), "{ rubbish");
    assert_eq!(list(&user), whole);
    chat.says("a third thing").sees("Half of it is done.").types(ESC).sees("interrupted");
    let mut later = list(&user);
    let third = later["checkpoints"].as_array_mut().expect("a list").remove(0);
    assert_eq!((third["description"].as_str(), later), (Some("a third thing"), whole));
    let log = super::messages::log_of(&user);
    assert!(log.contains("metadata.json was damaged"), "{log}");
}

#[test]
fn a_deleted_list_is_rebuilt_from_the_log_up_to_the_configured_length() {
    let user = User::new();
    after_two_prompts_of(&user).exits();
    let whole = list(&user);
    let file = list_file(&user);
    fs::remove_file(&file).expect("it goes");
    // Another session's prompt is in the log too.
    let event = r#"{"event":"prompt","session":"other","message":"m","text":"of another"}"#;
    user.record(event);
    continues(&user, &["--continue"]).exits();
    assert_eq!(list(&user), whole);
    user.set(r#"{"checkpointKeepCount": 1}"#);
    fs::write(&file, [0, 159, 146, 150]).expect("it is damaged");
    let mut chat = continues(&user, &["--continue"]);
    chat.sees("1 checkpoint was restored");
    assert_eq!(list(&user)["checkpoints"], json!([whole["checkpoints"][0]]));
    chat.exits();
}

#[test]
fn a_continued_session_rewinds_to_earlier_prompts() {
    let user = User::new();
    after_two_prompts_of(&user).exits();
    let session = ids(&user);
    let mut chat = continues(&user, &["--continue"]);
    chat.sees("2 points").sees(&session[0]);
    chat.goes_back_to("1").sees(&format!("Restored to checkpoint: {SECOND}"));
    assert_eq!((user.read("utils.ts"), user.exists("index.ts")), (two(), false));
    chat.sees_no("divide too.").sees(&format!("> {SECOND}")).types(ENTER).sees("divide too.");
    assert!(user.exists("index.ts"));
    assert_eq!(ids(&user), session, "it is the same one");
    chat.sees("3 points");
    assert_eq!(column(&list(&user)["checkpoints"], "description"), [SECOND, SECOND, FIRST]);
}

#[test]
fn a_cut_conversation_stays_cut_after_a_restart() {
    let (user, mut chat) = after_two_prompts();
    chat.goes_back_to("1").sees("Restored to checkpoint: ").types("\x15");
    chat.exits();
    let mut chat = start_scenario(&user, &["--continue"]);
    chat.sees("Continued after 1 prompt.").sees("It has add and subtract.");
    assert!(!chat.shown().contains("divide too."), "{}", chat.shown());
    chat.says("again").sees("divide too.");
}

#[test]
fn a_session_is_named_by_its_id_or_the_beginning_of_it() {
    let user = User::new();
    let (code, said) = failed_start(&user, &["--continue"]);
    assert_eq!(code, 1, "{said}");
    assert!(said.contains("there is no conversation to continue here"), "{said}");
    after_two_prompts_of(&user).exits();
    let first = ids(&user).remove(0);
    continues(&user, &["--resume", &first]).exits();
    continues(&user, &["--resume", &first[..first.len() - 1]]).exits();

    let (code, said) = failed_start(&user, &["--resume", "unknown"]);
    assert_eq!(code, 1, "{said}");
    assert!(said.contains("there is no conversation unknown"), "{said}");
    let mut chat = user.terminal(80, 24).start(&["chat", "--agent", "builtin"]);
    chat.sees("builtin").says("hello").sees("1 point ").types(ESC).sees("Type a prompt");
    chat.exits();
    let second = ids(&user).remove(0);
    let (code, said) = failed_start(&user, &["--resume", "chat-"]);
    assert_eq!(code, 2, "{said}");
    assert!(said.contains("chat- is ambiguous: "), "{said}");
    assert!(said.contains(&first) && said.contains(&second), "{said}");
}

#[test]
fn a_point_of_another_session_is_restored() {
    let user = User::new();
    after_two_prompts_of(&user).exits();
    let scenario = scenario(&user);
    let mut chat = user.terminal(120, 30).start(&["chat", "--scenario", &scenario]);
    chat.sees("builtin").sees("0 points");
    chat.opens_the_menu().sees("other sessions").sees("Add multiply").types(DOWN).types(ENTER);
    chat.sees("[x] ").types(ENTER).sees("Restore what?").sees("Files only");
    assert!(!chat.shown().contains("onversation only"), "{}", chat.shown());
    chat.types(ENTER).sees(&format!("Restored to checkpoint: {SECOND}"));
    assert_eq!((user.read("utils.ts"), user.exists("index.ts")), (two(), false));
}

#[test]
fn a_deleted_session_leaves_neither_conversation_nor_folder() {
    let user = User::new();
    after_two_prompts_of(&user).exits();
    let id = ids(&user).remove(0);
    assert!(list_file(&user).exists());
    let kept = user.takeback(&["session", "delete", &id, "--dry-run"]);
    assert_eq!((kept.code, folders(&user).len()), (0, 1), "{kept:?}");
    user.succeeds(&["session", "delete", &id, "-y"]);
    assert!(folders(&user).is_empty(), "{:?}", folders(&user));
    let (code, said) = failed_start(&user, &["--resume", &id]);
    assert_eq!(code, 1, "{said}");
    assert!(said.contains("there is no conversation"), "{said}");
    assert!(user.exists("utils.ts") && user.exists("index.ts"), "files are not touched");
}

/// A session with one prompt, and a list as `chat` writes it.
fn session_with_list(user: &User, session: &str) -> PathBuf {
    let event = json!({ "event": "prompt", "session": session, "text": "go" });
    user.record(&event.to_string());
    let folder = user.home().join(".takeback/sessions").join(session).join("checkpoints");
    fs::create_dir_all(&folder).expect("a folder");
    fs::write(folder.join("metadata.json"), r#"{"checkpoints":[]}"#).expect("a list");
    user.home().join(".takeback/sessions").join(session)
}

/// Makes a session look archived long ago, and the last clean-up older than a day.
fn archived_long_ago(user: &User, session: &str) {
    user.succeeds(&["session", "archive", session]);
    let day = 86_400_000_i64;
    user.change_database(&format!(
        "UPDATE session SET archived_at = archived_at - 9 * {day} WHERE name = '{session}'"
    ));
    user.change_database(&format!("UPDATE meta SET last_cleanup = last_cleanup - 2 * {day}"));
}

#[test]
fn clean_up_and_forget_remove_session_folders() {
    let user = User::with(&[("a.txt", "one\n")]);
    let [asked, due, stays] = ["asked", "due", "stays"].map(|id| session_with_list(&user, id));
    archived_long_ago(&user, "asked");
    let done = user.json(&["cleanup"]);
    assert_eq!(done["sessions"], json!(["asked"]));
    assert!(!asked.exists() && due.exists() && stays.exists());

    archived_long_ago(&user, "due");
    let mut chat = user.terminal(80, 24).start(&["chat", "--agent", "builtin"]);
    chat.sees("builtin");
    assert!(!due.exists() && stays.exists());
    chat.exits();
    assert_eq!(folders(&user).len(), 2);

    let other = user.home().join(".takeback/sessions/of-another-folder");
    fs::create_dir(&other).expect("a folder");
    user.succeeds(&["forget", "-y"]);
    assert_eq!(folders(&user), [other]);
}

#[test]
fn old_snapshots_are_left_alone() {
    let old = ".claude/snapshots/1.json";
    let user = User::with(&[(old, "{}\n"), ("a.txt", "one\n")]);
    let before = |path: &str| fs::metadata(user.work().join(path)).expect("it is there");
    let time = before(old).modified().expect("a time");
    let mut chat = after_two_prompts_of(&user);
    chat.goes_back_to("2").sees("Restored to checkpoint: ").types("\x15");
    chat.exits();
    assert_eq!(user.read(old), "{}\n");
    assert_eq!(before(old).modified().expect("a time"), time);
    let names = fs::read_dir(user.work().join(".claude/snapshots")).expect("it is there");
    assert_eq!(names.count(), 1);
}

#[test]
fn a_session_killed_in_its_first_turn_can_be_continued() {
    let user = User::new();
    let turns = json!({ "turns": [
        { "steps": [
            { "tool": "write_file", "input": { "path": "half.ts", "content": "half\n" } },
            { "say": "Half of it is done." },
            { "pauseMs": 600_000 },
        ] },
    ] });
    let scenario = write_scenario(&user, &turns);
    let args = ["chat", "--scenario", &scenario];
    let mut chat = user.terminal(80, 24).start(&args);
    chat.sees("builtin").says("Do the first thing").sees("Half of it is done.");
    let kill = std::process::Command::new("kill").args(["-9", &chat.pid().to_string()]).status();
    assert!(kill.expect("it runs").success());
    chat.ends();
    let mut chat = user.terminal(80, 24).start(&["chat", "--scenario", &scenario, "--continue"]);
    chat.sees("Continued after 1 prompt").sees("> Do the first thing");
    chat.goes_back_to("1").sees("Restored to checkpoint: Do the first thing");
    assert!(!user.exists("half.ts"));
    chat.sees_no("Continued after").sees("> Do the first thing");
}

#[test]
fn one_conversation_cannot_be_open_twice() {
    let (user, mut chat) = after_two_prompts();
    let mut other = start_scenario(&user, &["--continue"]);
    assert_eq!(other.ends(), 1);
    assert!(other.shown().contains("is open in process"), "{}", other.shown());
    chat.exits();
    let mut other = start_scenario(&user, &["--continue"]);
    other.sees("Continued after 2 prompts");
}
