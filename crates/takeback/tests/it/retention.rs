//! Labels, pins, sessions and clean-ups, as a user sees them.

use serde_json::Value;
use takeback::store::{Change, Log as _, Point, Seq, Session, SqliteStore, Timestamp, Write};

use crate::user::{User, until};

/// A session `s` with this many prompts, each of which writes `a.txt`.
fn session_of(user: &User, prompts: usize) {
    prompts_of(user, 0..prompts);
}

fn prompts_of(user: &User, numbers: std::ops::Range<usize>) {
    for number in numbers {
        let (message, text) = (format!("m{number}"), format!("prompt {number}"));
        user.agent_turn(&message, &text, ("Write", &["a.txt"]), || {
            user.write("a.txt", &format!("{number}\n"));
        });
    }
}

#[test]
fn unpin_says_what_keeps_a_point() {
    let user = User::with(&[("a.txt", "first\n")]);
    session_of(&user, 2);
    user.succeeds(&["label", "@", "good"]);
    insta::assert_snapshot!(user.takeback(&["unpin", "@"]).out, @"Was not pinned ID  [good] prompt 1  kept until the label is removed");
    insta::assert_snapshot!(user.takeback(&["pin", "@"]).out, @"Pinned ID  [good] prompt 1  kept until it is unpinned and the label is removed");
    insta::assert_snapshot!(user.takeback(&["unpin", "@"]).out, @"No longer pinned ID  [good] prompt 1  kept until the label is removed");
    assert_eq!(user.json(&["unpin", "@"])["label"], "good");
    insta::assert_snapshot!(user.takeback(&["label", "@", "--remove"]).out, @"No longer labelled ID  prompt 1  normal retention applies again");
    insta::assert_snapshot!(user.takeback(&["unpin", "@"]).out, @"Was not pinned ID  prompt 1  normal retention applies");
}

#[test]
fn labels_and_pins_are_set_and_removed() {
    let user = User::with(&[("a.txt", "first\n")]);
    session_of(&user, 2);
    insta::assert_snapshot!(user.takeback(&["label", "@~1", "good"]).out, @"Labelled “good” ID  [good] prompt 0  kept until the label is removed");
    insta::assert_snapshot!(user.takeback(&["pin", "@"]).out, @"Pinned ID  (pinned) prompt 1  kept until it is unpinned");
    let pinned = user.json(&["pin", "@"]);
    assert_eq!((&pinned["pinned"], &pinned["label"]), (&Value::Bool(true), &Value::Null));
    insta::assert_snapshot!(user.takeback(&["unpin", "@"]).out, @"No longer pinned ID  prompt 1  normal retention applies again");
    user.succeeds(&["show", "good"]);
    let taken = user.exits(2, &["label", "@", "good"]);
    insta::assert_snapshot!(taken.err, @r#"
    takeback: the label "good" is taken by point LONG-ID
      Choose another label.
    "#);
    insta::assert_snapshot!(user.exits(2, &["label", "@", "@~3"]).err, @"
    takeback: a label cannot be empty, begin with `@` or hold control characters: \"@~3\"
      Choose another label.
    ");
    assert_eq!(user.takeback(&["checkpoint", "@"]).code, 2, "the same for a new point");
    insta::assert_snapshot!(user.takeback(&["label", "good", "better"]).out, @"Labelled “better” instead of “good” ID  [better] prompt 0  kept until the label is removed");
    insta::assert_snapshot!(user.takeback(&["label", "better", "better"]).out, @"Labelled “better” ID  [better] prompt 0  kept until the label is removed");
    user.succeeds(&["label", "better", "--remove"]);
    user.exits(1, &["show", "better"]);
    assert_eq!(user.takeback(&["label", "@"]).code, 2, "neither a name nor --remove");
}

/// `rewind 10m` always means ten minutes ago.
#[test]
fn a_label_that_reads_as_a_time_or_an_id_is_refused() {
    let user = User::with(&[("a.txt", "first\n")]);
    session_of(&user, 1);
    for label in ["10m", "14:00", "25:99", "3d", "0a1b2c3d", "feedbeefcafe", "12ab"] {
        for command in [vec!["label", "@", label], vec!["checkpoint", label]] {
            let refused = user.takeback(&command);
            assert_eq!(refused.code, 2, "{command:?} {refused:?}");
            assert!(refused.err.contains(" looks like a"), "{refused:?}");
        }
    }
    user.exits(2, &["label", "@", "5e0c5d2a-8a43-4f4b-9a3a-0d8b7a1c2e3f"]);
    insta::assert_snapshot!(user.takeback(&["checkpoint", "2h"]).err, @r#"
    takeback: the label "2h" looks like a time
      Choose another label: times and ids name points, too.
    "#);
    for label in ["m0", "s:m0"] {
        let taken = user.takeback(&["checkpoint", label]);
        assert_eq!(taken.code, 2, "a message of a point is called so: {taken:?}");
        assert!(taken.err.contains("is taken by point"), "{taken:?}");
    }
    for label in ["cafe", "added", "v2", "step 3", "2nd", "before-2"] {
        assert_eq!(user.takeback(&["checkpoint", label]).code, 0, "{label}");
    }
    assert_eq!(user.json(&["log"]).as_array().map(Vec::len), Some(7), "none was made in vain");
}

#[test]
fn points_per_session_are_limited() {
    let user = User::with(&[("a.txt", "first\n")]);
    session_of(&user, 1);
    user.takeback(&["pin", "m0"]);
    prompts_of(&user, 1..55);
    let kept = user.descriptions();
    assert_eq!(
        (kept.len(), kept[0].as_str(), kept[49].as_str(), kept[50].as_str()),
        (51, "prompt 54", "prompt 5", "prompt 0")
    );
    insta::assert_snapshot!(user.takeback(&["cleanup"]).out, @"Nothing to expire.  reclaimed 0 B");
    user.exits(1, &["rewind", "m1", "-y"]);
    user.succeeds(&["rewind", "m5", "-y"]);
    assert_eq!(user.read("a.txt"), "4\n");
    user.succeeds(&["rewind", "m0", "-y"]);
    assert_eq!(user.read("a.txt"), "first\n");
    user.succeeds(&["verify"]);
}

/// A hook has no time for that, so another process drops them.
#[test]
fn hooks_keep_no_more_points_than_allowed() {
    let user = User::with(&[("a.txt", "first\n")]);
    user.set(r#"{"pointsPerSession": 3}"#);
    for number in 0..8 {
        let given = serde_json::json!({
            "session_id": "s", "transcript_path": "", "cwd": user.work(), "prompt_id": format!("p{number}"),
            "hook_event_name": "UserPromptSubmit", "prompt": format!("prompt {number}"),
        });
        let hook = user
            .answer_of(user.patient_command(&["hook", "--agent", "claude"]), &given.to_string());
        assert_eq!(hook.code, 0, "{hook:?}");
    }
    // Not `log`, which would drop them itself.
    until("three points are left", || user.json(&["status"])["points"] == 3);
    assert_eq!(user.descriptions(), ["prompt 7", "prompt 6", "prompt 5"]);
    user.succeeds(&["verify"]);
}

#[test]
fn recording_cleans_up_once_a_day() {
    let user = User::with(&[("a.txt", "first\n")]);
    user.set(r#"{"pointsPerSession": 100}"#);
    session_of(&user, 52);
    let begun = user.takeback(&["checkpoint"]);
    assert_eq!((begun.err.as_str(), user.descriptions().len()), ("", 53), "it was done today");
    user.set("{}");
    user.change_database("UPDATE meta SET last_cleanup = last_cleanup - 90000000");
    insta::assert_snapshot!(user.takeback(&["run", "--", "true"]).err.lines().next().unwrap_or_default(), @"takeback: Removed 2 points  reclaimed 0 B");
    assert_eq!(user.descriptions().len(), 52);
    user.change_database("UPDATE meta SET last_cleanup = last_cleanup + 2 * 86400000");
    let begun = user.succeeds(&["run", "--", "true"]);
    assert!(
        begun.err.starts_with("takeback: nothing was cleaned up: the clock went back (it is "),
        "{begun:?}"
    );
    user.exits(1, &["cleanup"]);
    user.succeeds(&["cleanup", "--trust-clock"]);
    assert_eq!(user.takeback(&["run", "--", "true"]).err.lines().count(), 1, "all is well again");
}

#[test]
fn a_clock_jump_is_not_trusted() {
    let user = User::with(&[("a.txt", "first\n")]);
    user.set(r#"{"pointsPerSession": 100}"#);
    session_of(&user, 51);
    user.set("{}");
    let day = 86_400_000_i64;
    user.change_database(&format!(
            "UPDATE meta SET last_cleanup = last_cleanup - 31 * {day}, last_scan = last_scan - 31 * {day}"
        ),
    );
    // Through the store, which updates the checksums.
    let mut store = SqliteStore::open(&user.store()).expect("it opens");
    let earlier = |time: Timestamp| Timestamp(time.0 - 31 * day);
    let points = store.points().unwrap().into_iter();
    let points =
        points.map(|point| Write::Point(Point { created_at: earlier(point.created_at), ..point }));
    let changes = store.changes_after(Seq(0)).unwrap().into_iter();
    let changes =
        changes.map(|change| Write::ReplaceChange(Change { time: earlier(change.time), ..change }));
    let sessions = store.sessions().unwrap().into_iter();
    let sessions =
        sessions.map(|one| Write::Session(Session { started_at: earlier(one.started_at), ..one }));
    let writes: Vec<Write> = points.chain(changes).chain(sessions).collect();
    let head = store.head().unwrap();
    store.commit(head, &writes).expect("it is written");
    drop(store);
    let asked = user.exits(1, &["cleanup"]);
    let words: String = asked.err.chars().filter(|c| !c.is_ascii_digit()).collect();
    insta::assert_snapshot!(words, @"
    takeback: nothing was cleaned up: the clock seems to have jumped (from -- :: to -- ::, with nothing in between)
      Correct the clock or, if it is right, pass --trust-clock.
    ");
    assert_eq!(user.json(&["status"])["points"], 51);
    user.succeeds(&["cleanup", "--trust-clock"]);
    assert_eq!(user.json(&["status"])["points"], 50);
}

#[test]
fn sessions_are_listed_archived_and_deleted() {
    let user = User::with(&[("a.txt", "first\n")]);
    user.exits(10, &["sessions"]);
    user.takeback(&["checkpoint"]);
    insta::assert_snapshot!(user.takeback(&["sessions"]).out, @"No sessions yet. `takeback run -- CMD` starts one.");
    session_of(&user, 2);
    user.takeback(&["pin", "m1"]);
    insta::assert_snapshot!(user.takeback(&["sessions"]).out, @"s  just now  idle  2 points  prompt 0");
    let told = user.json(&["sessions"]);
    assert_eq!(
        (&told[0]["id"], &told[0]["points"], &told[0]["atWork"]),
        (&Value::from("s"), &Value::from(2), &Value::from(false))
    );

    insta::assert_snapshot!(user.takeback(&["session", "archive", "s"]).out, @"Archived s  its data is deleted in 7 days, except labelled and pinned points");
    assert!(user.takeback(&["sessions"]).out.contains("archived"));
    insta::assert_snapshot!(user.exits(1, &["session", "archive", "nobody"]).err, @"
    takeback: there is no session nobody
      `takeback sessions` lists the sessions.
    ");

    insta::assert_snapshot!(user.exits(2, &["session", "delete", "s"]).err, @"
    takeback: this deletes points and needs confirmation
      Run it in a terminal, or pass -y; --dry-run shows what it would do.
    ");
    insta::assert_snapshot!(user.takeback(&["session", "delete", "s", "--dry-run"]).out, @"
    Delete session s

      2 points would be deleted, 1 of them labelled or pinned
      files are not touched; this cannot be undone
    ");
    assert_eq!(user.descriptions().len(), 3);
    user.succeeds(&["session", "delete", "s", "-y"]);
    assert_eq!(user.descriptions(), [""]);
    assert_eq!(user.read("a.txt"), "1\n", "files are not touched");
    user.exits(1, &["session", "delete", "s", "-y"]);
}

#[test]
fn du_shows_disk_usage() {
    let user = User::with(&[("a.txt", &"a line\n".repeat(1000)), ("b/c.txt", "small\n")]);
    user.takeback(&["checkpoint"]);
    user.write("a.txt", &"another line\n".repeat(1000));
    user.takeback(&["checkpoint"]);
    let told = user.json(&["du", "-n", "1"]);
    assert_eq!(told["contentBytes"], 7000 + 13000 + 6);
    assert_eq!((&told["contents"], &told["unusedBytes"]), (&Value::from(3), &Value::from(0)));
    assert_eq!(
        told["paths"],
        serde_json::json!([{ "filePath": "a.txt", "versions": 2, "bytes": 20000 }])
    );
    let out = user.takeback(&["du"]).out;
    assert!(out.contains("contents: 3 versions, 20.0 KB uncompressed"), "{out}");
    assert!(out.contains("20.0 KB  a.txt"), "{out}");
}

#[test]
fn an_empty_name_means_no_session() {
    let user = User::with(&[("a", "1")]);
    let event = r#"{"event":"prompt","session":"only-one","text":"go"}"#;
    user.record(event);
    for args in [
        &["session", "delete", "", "-y"][..],
        &["session", "archive", ""],
        &["log", "--session", ""],
        &["rewind", "@", "--session", "", "-y"],
    ] {
        let answer = user.takeback(args);
        assert_eq!(answer.code, 2, "{args:?}: {answer:?}");
        assert!(answer.err.contains("the session's name is empty"), "{answer:?}");
    }
    assert_eq!(user.json(&["sessions"]).as_array().map(Vec::len), Some(1));
}
