//! Altered records, a truncated write-ahead log, a missing database.

use std::fs;

use super::after_an_agent;

/// An entry ends with its mode: 0644 becomes 0744.
const FLIPPED: &str = "UPDATE change
    SET before = CAST(substr(before, 1, length(before) - 2) || x'e403' AS BLOB)
    WHERE path = (SELECT id FROM path WHERE bytes = CAST('a.txt' AS BLOB)) AND length(before) > 30";

#[test]
fn a_flipped_mode_is_found_and_costs_that_file_alone() {
    let user = after_an_agent();
    user.database().execute_batch(FLIPPED).expect("it is altered");
    insta::assert_snapshot!(user.exits(1, &["verify"]).out, @"
    damaged  change 4 of a.txt in the store is damaged: it is not what was recorded

    1 problem. Points that do not need what is damaged are intact.
    ");
    insta::assert_snapshot!(user.exits(4, &["rewind", "m", "-y"]).out, @"
    Rewind to ID “go” (just now)

      restored  lib/   and 1 in it
      deleted   new    did not exist then
      missing   a.txt  damaged in the store

    lib, lib/b.txt and new changed while `Bash` ran; may include yours.

    2 restored, 1 deleted · 1 missing
    Done as far as possible. `takeback undo` takes it back.
    `takeback verify` shows what is damaged.
    ");
    assert_eq!((user.read("a.txt").as_str(), user.read("lib/b.txt").as_str()), ("two\n", "b\n"));
    let undone = user.takeback(&["undo", "-y"]);
    assert_eq!((undone.code, user.exists("lib"), user.exists("new")), (0, false, true));
}

#[test]
fn a_truncated_log_is_reported_and_recording_continues() {
    let user = after_an_agent();
    let log = user.store().join("timeline.db-wal");
    let bytes = fs::read(&log).expect("a log");
    fs::write(&log, &bytes[..bytes.len() * 2 / 3]).expect("it is cut");
    fs::remove_file(user.store().join("timeline.db-shm")).expect("it goes");
    user.exits(1, &["verify"]).prints("are lost");
    user.succeeds(&["checkpoint"]).reports("history is damaged: commits");
    let quiet = user.takeback(&["log"]);
    assert_eq!((quiet.code, quiet.err.as_str()), (0, ""), "said once by what comes first");
    for args in [&["status"][..], &["doctor"], &["verify"]] {
        let answer = user.takeback(args);
        assert!(answer.out.contains("are lost"), "{args:?}: {answer:?}");
    }
    user.exits(1, &["verify"]);
    assert_eq!(user.json(&["status"])["losses"].as_array().map(Vec::len), Some(1));
}

#[test]
fn a_missing_database_is_never_recreated_next_to_its_log() {
    let user = after_an_agent();
    let before = user.tree();
    let database = user.store().join("timeline.db");
    fs::remove_file(&database).expect("it goes");
    for args in [
        &["log"][..],
        &["status"],
        &["verify"],
        &["checkpoint"],
        &["rewind", "m", "-y"],
        &["run", "--", "true"],
    ] {
        let answer = user.takeback(args);
        assert_ne!(answer.code, 0, "{args:?}: {answer:?}");
        assert!(answer.err.contains("timeline.db is gone"), "{args:?}: {answer:?}");
        assert!(!answer.err.contains("takeback checkpoint"), "{args:?}: {answer:?}");
        assert!(!database.exists(), "{args:?}");
    }
    insta::assert_snapshot!(user.takeback(&["log"]).err, @"
    takeback: the database FOLDER/home/.takeback/workspaces/work-LONG-ID/timeline.db is gone, but FOLDER/home/.takeback/workspaces/work-LONG-ID/timeline.db-wal is still there
      Restore the file from a backup. Without one, `takeback forget` deletes the rest, and recording starts over. Your files were not changed.
    ");
    let work = user.work();
    let prompt = serde_json::json!({
        "session_id": "x", "hook_event_name": "UserPromptSubmit", "prompt": "hi", "cwd": work,
        "transcript_path": work.join("t.jsonl"),
    });
    let hook = user.feed(&["hook", "--agent", "claude"], &prompt.to_string());
    assert_eq!((hook.code, database.exists()), (0, false), "an agent is never stopped: {hook:?}");
    let asked = user.takeback(&["doctor"]);
    assert!(asked.out.contains("timeline.db is gone"), "{asked:?}");
    assert_eq!(user.tree(), before);
    // Do what the hint says.
    user.succeeds(&["forget", "-y"]);
    user.succeeds(&["checkpoint"]);
}
