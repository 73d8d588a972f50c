//! Two versions of Takeback on one machine: the older one meets a store of the newer one.
//!
//! The program under test plays the older version while the store has an unknown format number, and the newer
//! one when the number is restored.

use std::collections::BTreeMap;
use std::fs;
use std::path::{Path, PathBuf};

use serde_json::{Value, json};

use crate::hook::{Session, write_tool};
use crate::user::{User, unwrapped};

/// Sets the format number of the store's database, and returns the old one.
fn set_format(user: &User, format: i64) -> i64 {
    let db = user.database();
    let had = db.pragma_query_value(None, "user_version", |row| row.get(0)).expect("a number");
    db.pragma_update(None, "user_version", format).expect("it is set");
    had
}

/// Every file of the store except SQLite's shared memory.
fn files(folder: &Path) -> BTreeMap<PathBuf, Vec<u8>> {
    let mut found = BTreeMap::new();
    for entry in fs::read_dir(folder).expect("it is there") {
        let path = entry.expect("a name").path();
        if path.is_dir() {
            found.extend(files(&path));
        } else if !path.to_string_lossy().ends_with("-shm") {
            found.insert(path.clone(), fs::read(&path).expect("it reads"));
        }
    }
    found
}

#[test]
fn an_older_hook_refuses_a_newer_store_and_the_newer_version_reports_it() {
    let user = User::with(&[("a.txt", "one\n")]);
    let mut session = Session::of(&user, "s");
    session.prompt("go");
    let format = set_format(&user, 999);
    let before = files(&user.store());
    let told = session
        .run("PreToolUse", &write_tool(&user, "c1", "a.txt", "two\n"))
        .system_message()
        .expect("it is told");
    assert!(told.contains("has format 999") && told.contains("Update Takeback"), "{told}");
    user.write("a.txt", "two\n");
    assert_eq!(
        session.run("PostToolUse", &write_tool(&user, "c1", "a.txt", "two\n")).system_message(),
        None
    );
    // A hook whose deadline has passed puts nothing into the inbox either.
    let mut hurried = user.command(&["hook", "--agent", "claude"]);
    hurried.env("TAKEBACK_HOOK_DEADLINE_MS", "0").env("TAKEBACK_SCAN_BUDGET_MS", "0");
    let stop = session.payload("Stop", &json!({"stop_hook_active": false}));
    assert_eq!(user.answer_of(hurried, &stop.to_string()).system_message(), None);
    for command in [&["checkpoint"][..], &["status"], &["log"], &["rewind", "@", "-y"], &["doctor"]]
    {
        let answer = user.takeback(command);
        let told = unwrapped(&format!("{}{}", answer.out, answer.err));
        assert_eq!(answer.code, 1, "{command:?}: {answer:?}");
        assert!(told.contains("has format 999; this Takeback knows"), "{command:?}: {told}");
        assert!(told.contains("Update"), "{command:?}: {told}");
    }
    assert!(files(&user.store()) == before, "something was written into the newer store");

    set_format(&user, format);
    let doctor = user.takeback(&["doctor"]);
    let out = doctor.unwrapped();
    assert_eq!(doctor.code, 1, "{out}");
    let program = format!("takeback {} (", env!("CARGO_PKG_VERSION"));
    assert!(out.contains(&format!("✗ {program}")), "{out}");
    assert!(out.contains("is too old for ~/.takeback/workspaces/work-LONG-ID and recorded nothing there just now (session s of claude)"), "{out}");
    let status = user.json(&["status"]);
    assert_eq!(status["tooOld"]["session"], "s", "{status}");
    assert_eq!(status["tooOld"]["version"], env!("CARGO_PKG_VERSION"));
    let status = user.takeback(&["status"]).unwrapped();
    assert!(status.contains("is too old for this store and recorded nothing"), "{status}");
    // The change in between is unclear: neither the session's nor the user's.
    let shown = user.json(&["show", "s-prompt-1"]);
    let change = &shown["changes"][0];
    assert_eq!(
        (&change["filePath"], &change["author"]["kind"]),
        (&json!("a.txt"), &json!("ambiguous")),
        "{shown}"
    );
    // Once a hook of the newer version has run, it is only a warning.
    session.stop();
    let doctor = user.takeback(&["doctor"]);
    let out = doctor.unwrapped();
    assert_eq!(doctor.code, 0, "{out}");
    assert!(out.contains(&format!("! {program}")), "it is still a warning: {out}");
}

#[test]
fn a_store_of_a_pre_release_build_is_refused_until_it_is_forgotten() {
    let user = User::with(&[("a.txt", "one\n")]);
    let mut session = Session::of(&user, "s");
    session.prompt("go");
    let db = user.database();
    db.pragma_update(None, "application_id", 0x546b_426b).expect("it is set");
    db.pragma_update(None, "user_version", 7).expect("it is set");
    drop(db);
    let before = files(&user.store());
    let told = session
        .run("PreToolUse", &write_tool(&user, "c1", "a.txt", "two\n"))
        .system_message()
        .expect("it is told");
    assert!(told.contains("pre-release build"), "{told}");
    for command in [&["checkpoint"][..], &["status"], &["log"], &["doctor"]] {
        let answer = user.takeback(command);
        let told = unwrapped(&format!("{}{}", answer.out, answer.err));
        assert_eq!(answer.code, 1, "{command:?}: {answer:?}");
        assert!(told.contains("was written by a pre-release build of Takeback"), "{told}");
        assert!(
            told.contains("Remove it with `takeback forget`, or keep using that build."),
            "{told}"
        );
    }
    assert!(files(&user.store()) == before, "something was written into the old store");
    user.succeeds(&["forget", "-y"]);
    user.succeeds(&["checkpoint"]);
}

/// A note that an older version left, without some of today's fields.
#[test]
fn an_older_versions_note_is_reported_with_its_version_and_program() {
    let user = User::with(&[("a.txt", "one\n")]);
    user.succeeds(&["checkpoint"]);
    let folder = user.home().join(".takeback/hooks/gemini");
    fs::create_dir_all(&folder).expect("a folder");
    let now =
        std::time::SystemTime::now().duration_since(std::time::UNIX_EPOCH).expect("after 1970");
    let now = u64::try_from(now.as_millis()).expect("a number");
    let leave = |at: u64, program: Value| {
        let beat = json!({
            "agent": "gemini", "session": "g", "roots": [], "firstAt": at, "lastAt": at,
            "events": {"BeforeTool": 1}, "recorded": 0, "problem": null, "learnt": null, "version": "0.0.9",
            "refusal": {"at": at, "store": user.store(), "version": "0.0.9", "program": program},
        });
        fs::write(folder.join("0123456789abcdef.json"), beat.to_string()).expect("a file");
    };
    for (at, program, told) in [
        (now, json!("/opt/old/takeback"), Some("takeback 0.0.9 (/opt/old/takeback) is too old")),
        (now, Value::Null, Some("takeback 0.0.9 is too old")),
        (now - 8 * 24 * 60 * 60 * 1000, Value::Null, None),
    ] {
        leave(at, program);
        let doctor = user.takeback(&["doctor"]);
        let out = doctor.unwrapped();
        assert_eq!(doctor.code, i32::from(told.is_some()), "{out}");
        match told {
            Some(told) => assert!(out.contains(told), "{out}"),
            None => assert!(!out.contains("too old"), "{out}"),
        }
        let status = user.takeback(&["status"]).out;
        assert_eq!(status.contains("0.0.9"), told.is_some(), "{status}");
    }
}
