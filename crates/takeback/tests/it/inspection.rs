use serde_json::{Value, json};

use crate::user::{User, column};

/// Two manual points, with a change after each.
fn two_points() -> User {
    let user = User::with(&[
        ("a.txt", "one\ntwo\n"),
        ("bin", "\0\u{1}"),
        ("node_modules/x", ""),
        ("package.json", "{}"),
    ]);
    user.succeeds(&["checkpoint", "first"]);
    user.write("a.txt", "one\n2\n");
    user.write("bin", "\0\u{2}");
    user.succeeds(&["checkpoint", "second"]);
    user.write("new/n.txt", "n\n");
    user
}

#[test]
fn checkpoint_prints_the_point() {
    let user = User::with(&[("a.txt", "one\n")]);
    let answer = user.takeback(&["checkpoint", "before the storm"]);
    insta::assert_snapshot!(answer.out, @"Point ID “before the storm”  1 file in FOLDER/work");
}

#[test]
fn the_log_lists_points_newest_first() {
    let user = two_points();
    user.takeback(&["status"]);
    insta::assert_snapshot!(user.takeback(&["log"]).out, @"
    ID  just now  by hand  [second]  you +1
    ID  just now  by hand  [first]   you +1 -1
    ");
    insta::assert_snapshot!(user.takeback(&["log", "-n", "1"]).out, @"
    ID  just now  by hand  [second]  you +1
    1 older; -n shows more
    ");
}

#[test]
fn each_point_is_listed_with_its_own_changes() {
    let user = User::with(&[("a", "0\n")]);
    for n in 0..4 {
        user.succeeds(&["checkpoint", &format!("p{n}")]);
        for file in 0..=n {
            user.write(&format!("{n}-{file}"), "x\n");
        }
    }
    user.takeback(&["status"]);
    let told = user.json(&["log", "-n", "3"]);
    assert_eq!(column(&told, "label"), ["p3", "p2", "p1"]);
    assert_eq!(column(&told, "filesChanged"), [4, 3, 2]);
}

#[test]
fn an_empty_log_says_why() {
    let user = two_points();
    insta::assert_snapshot!(user.takeback(&["log", "-n", "0"]).out, @"2 not shown; -n shows more");
    for session in ["session-one", "session-two"] {
        let event = format!(r#"{{"event":"session_start","session":"{session}"}}"#);
        user.record(&event);
    }
    insta::assert_snapshot!(user.takeback(&["log", "--session", "session-one"]).out, @"session-one has no points.");
    let answer = user.exits(1, &["log", "--session", "sesion-one"]);
    insta::assert_snapshot!(answer.err, @r"
    takeback: there is no session sesion-one
      Did you mean session-one? `takeback sessions` lists the sessions.
    ");
    assert_eq!(user.takeback(&["log", "--session", "session-"]).code, 1, "it may mean either");
}

#[test]
fn an_agents_name_is_no_session_and_a_persons_name_no_author() {
    let user = two_points();
    user.record(r#"{"event":"session_start","session":"4f3a","agent":"codex"}"#);
    insta::assert_snapshot!(user.exits(1, &["log", "--session", "codex"]).err, @r"
    takeback: there is no session codex
      `takeback sessions` lists the sessions.
      codex is an agent: `--by codex` lists what it changed.
    ");
    assert_eq!(user.takeback(&["log", "--by", "codex"]).out, "No points match.\n");
    insta::assert_snapshot!(user.exits(1, &["diff", "first", "--by", "Ada"]).err, @r"
    takeback: there is no agent and no session Ada
      --by takes you (all edits that no agent made), agent, an agent's name, or a session.
      `takeback sessions` lists the sessions.
    ");
}

#[test]
fn the_old_name_in_a_history_is_whole_at_any_width() {
    let deep = "crates/a-long-name/src/commands/somewhere/below/the-old-name-of-this-file.rs";
    let user = User::with(&[(deep, "one\n")]);
    user.succeeds(&["checkpoint", "a point with a description that takes a lot of room in a row"]);
    std::fs::rename(user.work().join(deep), user.work().join("new.rs")).expect("renamed");
    insta::assert_snapshot!(user.takeback(&["history", "new.rs"]).out, @r"
    ID  just now  renamed     a point with a description that takes a lot of room in …  you 1 file
              from crates/a-long-name/src/commands/somewhere/below/the-old-name-of-this-file.rs
    –         just now  first seen  before the first point
    ");
}

#[test]
fn a_renamed_file_is_one_file_with_both_names() {
    let user = User::with(&[("old.rs", "one\ntwo\n"), ("pic", "\0\u{1}"), ("with blank", "x\n")]);
    user.succeeds(&["checkpoint", "first"]);
    std::fs::create_dir(user.work().join("src")).expect("a folder");
    for (from, to) in [("old.rs", "src/new.rs"), ("pic", "src/pic"), ("with blank", "a blank")] {
        std::fs::rename(user.work().join(from), user.work().join(to)).expect("renamed");
    }
    user.succeeds(&["checkpoint", "second"]);
    user.write("src/new.rs", "one\ntwo\nthree\n");
    user.set_mode("src/new.rs", 0o755);
    user.takeback(&["status"]);
    insta::assert_snapshot!(user.takeback(&["log"]).out, @r"
    ID  just now  by hand  [second]  you +1
    ID  just now  by hand  [first]   you 3 files
    ");
    insta::assert_snapshot!(user.takeback(&["log", "--stat", "-n", "2"]).out, @r"
    ID  just now  by hand  [second]  you +1
      src/new.rs  +1 -0  mode 644 → 755
    1 file, +1 -0

    ID  just now  by hand  [first]  you 3 files
      with blank => a blank  renamed
      src                    new folder
      old.rs => src/new.rs   renamed
      pic => src/pic         renamed
    3 files, +0 -0
    ");
    let shown = user.takeback(&["show", "first"]).out;
    let (_, files) = shown.split_once("\n\n").expect("a heading");
    insta::assert_snapshot!(files, @r"
      with blank => a blank  renamed     you
      src                    new folder  you
      old.rs => src/new.rs   renamed     you
      pic => src/pic         renamed     you
    ");
    insta::assert_snapshot!(user.takeback(&["diff", "first", "--stat"]).out, @r"
      with blank => a blank         renamed
      src                           new folder
      old.rs => src/new.rs   +1 -0  renamed, mode 644 → 755
      pic => src/pic                renamed
    3 files, +1 -0
    ");
    insta::assert_snapshot!(user.takeback(&["diff", "first"]).out, @r#"
    diff --git "a/with blank" "b/a blank"
    rename from "with blank"
    rename to "a blank"
    # src: new folder
    diff --git a/old.rs b/src/new.rs
    old mode 100644
    new mode 100755
    rename from old.rs
    rename to src/new.rs
    --- a/old.rs
    +++ b/src/new.rs
    @@ -1,2 +1,3 @@
     one
     two
    +three
    diff --git a/pic b/src/pic
    rename from pic
    rename to src/pic
    "#);
    insta::assert_snapshot!(user.takeback(&["diff", "second", "first"]).out, @r#"
    diff --git a/src/new.rs b/old.rs
    rename from src/new.rs
    rename to old.rs
    diff --git a/src/pic b/pic
    rename from src/pic
    rename to pic
    # src: folder deleted
    diff --git "a/a blank" "b/with blank"
    rename from "a blank"
    rename to "with blank"
    "#);
    insta::assert_snapshot!(user.takeback(&["history", "src/new.rs"]).out, @r"
    ID  just now  mode 644 → 755       second                  you +1
    ID  just now  renamed from old.rs  first                   you 1 file
    –         just now  first seen           before the first point
    ");
    let diffs = user.json(&["diff", "first", "second"]);
    let folders = |diff: &&Value| diff["filePath"] != "src";
    let files: Vec<&Value> = diffs.as_array().expect("a list").iter().filter(folders).collect();
    let names: Vec<[&str; 2]> = files
        .iter()
        .map(|diff| ["renamedFrom", "filePath"].map(|key| diff[key].as_str().expect("a path")))
        .collect();
    assert_eq!(names, [["with blank", "a blank"], ["old.rs", "src/new.rs"], ["pic", "src/pic"]]);
    let log = user.json(&["log", "-n", "2"]);
    for (key, counts) in [("filesChanged", [1, 3]), ("insertions", [1, 0]), ("deletions", [0, 0])] {
        assert_eq!(column(&log, key), counts, "{key}");
    }
}

#[test]
fn a_diff_shows_lines_and_what_lines_do_not_show() {
    let user = two_points();
    insta::assert_snapshot!(user.takeback(&["diff", "first"]).out, @r"
    diff --git a/a.txt b/a.txt
    --- a/a.txt
    +++ b/a.txt
    @@ -1,2 +1,2 @@
     one
    -two
    +2
    # bin: changed, not text
    # new: new folder
    diff --git a/new/n.txt b/new/n.txt
    new file mode 100644
    --- /dev/null
    +++ b/new/n.txt
    @@ -0,0 +1 @@
    +n
    ");
    insta::assert_snapshot!(user.takeback(&["diff", "first", "second", "--stat"]).out, @r"
      a.txt  +1 -1
      bin           changed, not text
    2 files, +1 -1
    ");
    insta::assert_snapshot!(user.takeback(&["diff", "second", "first", "--path", "a.txt"]).out, @r"
    diff --git a/a.txt b/a.txt
    --- a/a.txt
    +++ b/a.txt
    @@ -1,2 +1,2 @@
     one
    -2
    +two
    ");
    insta::assert_snapshot!(user.takeback(&["diff"]).out, @r"
    # new: new folder
    diff --git a/new/n.txt b/new/n.txt
    new file mode 100644
    --- /dev/null
    +++ b/new/n.txt
    @@ -0,0 +1 @@
    +n
    ");
}

#[test]
fn the_newest_point_is_shown_with_edits_that_no_event_reported() {
    let user = User::with(&[("a.txt", "one\n")]);
    user.succeeds(&["checkpoint"]);
    assert!(user.succeeds(&["show", "@"]).out.contains("Nothing changed after it."));
    user.write("a.txt", "two\n");
    let shown = user.succeeds(&["show", "@"]).out;
    assert!(shown.contains("a.txt") && shown.contains("you"), "{shown}");
}

#[test]
fn a_point_is_shown_with_who_changed_what_after_it() {
    let user = two_points();
    let shown = user.takeback(&["show", "first"]).out;
    let changes = shown.split("\n\n").nth(1).expect("what was changed");
    insta::assert_snapshot!(changes, @"
    a.txt  changed  you +1 -1
    bin    changed  you
    ");
}

#[test]
fn status_lists_what_is_not_covered() {
    let user = two_points();
    let told = user.takeback(&["status"]).out;
    let lines: Vec<&str> = told.lines().filter(|line| !line.contains("kept in")).collect();
    insta::assert_snapshot!(lines.join("\n"), @"
    FOLDER/work

    Not covered:
      build output:
        node_modules (0 B)
    ");
}

#[test]
fn verify_reads_every_byte() {
    let user = two_points();
    let answer = user.succeeds(&["verify"]);
    insta::assert_snapshot!(answer.out, @"No damage found. 2 points, 5 changes, every byte read and checked.");
    let packs = user.store().join("packs");
    let pack = std::fs::read_dir(packs).expect("packs").next().expect("one").expect("named").path();
    let mut bytes = std::fs::read(&pack).expect("it can be read");
    let last = bytes.len() - 1;
    bytes[last] ^= 1;
    std::fs::write(&pack, bytes).expect("damaged");
    user.exits(1, &["verify"]).prints("damaged");
}

#[test]
fn recover_says_when_there_is_nothing_to_do() {
    let user = two_points();
    insta::assert_snapshot!(user.takeback(&["recover"]).out, @"Nothing was interrupted.");
}

/// As an unprivileged user.
#[test]
fn unreadable_files_are_named_and_stop_nothing() {
    use std::os::unix::fs::PermissionsExt as _;
    let mode = |path: &std::path::Path, mode| {
        std::fs::set_permissions(path, std::fs::Permissions::from_mode(mode))
            .expect("a mode is set");
    };
    let user = User::with(&[
        ("a.txt", "one\n"),
        ("closed/in.txt", "x\n"),
        ("listed/in.txt", "x\n"),
        ("secret", "s\n"),
    ]);
    user.drop_privileges();
    mode(&user.work().join("secret"), 0o000);
    mode(&user.work().join("closed"), 0o000);
    mode(&user.work().join("listed"), 0o444);
    user.unprivileged_exits(3, &["checkpoint", "first"])
        .prints("not captured: secret  it could not be read")
        .prints("not read: closed/")
        .prints("not read: listed/");
    std::fs::write(user.work().join("a.txt"), "two\n").expect("it is written");
    let answer = user.unprivileged(&["rewind", "first", "--exact", "-y"]);
    assert_eq!((answer.code, user.read("a.txt").as_str()), (0, "one\n"), "{answer:?}");
    mode(&user.work().join("closed"), 0o755);
    mode(&user.work().join("listed"), 0o755);
}

#[test]
fn a_diff_of_nothing_says_so() {
    let user = two_points();
    insta::assert_snapshot!(user.takeback(&["diff", "@", "@", "--stat"]).out, @"No differences.");
    insta::assert_snapshot!(user.takeback(&["diff", "--stat", "--path", "typo"]).out, @"No differences match typo.");
    let answer = user.takeback(&["diff", "--path", "typo"]);
    assert_eq!((answer.code, answer.out.as_str()), (0, ""), "a patch of nothing");
    insta::assert_snapshot!(answer.err, @"takeback: No differences match typo.");
}

/// This includes a finished turn that changed nothing.
#[test]
fn in_json_a_point_has_the_whole_prompt_and_the_commands() {
    let user = User::with(&[("a", "1"), ("b", "1")]);
    let long = "word ".repeat(40).trim().to_owned() + "\n\nlast line";
    let record = |events: &[serde_json::Value]| {
        let lines: Vec<String> = events.iter().map(ToString::to_string).collect();
        let told = user.feed(&["record"], &lines.join("\n"));
        assert_eq!(told.code, 0, "{told:?}");
    };
    record(&[
        json!({"event": "prompt", "session": "s", "message": "quiet", "text": format!("no {long}")}),
        json!({"event": "turn_end", "session": "s"}),
        json!({"event": "prompt", "session": "s", "message": "busy", "text": long}),
        json!({"event": "before_tool", "session": "s", "call": "c", "tool": "Bash",
               "shell": "make all && rm -rf b"}),
    ]);
    user.write("a", "2");
    std::fs::remove_file(user.work().join("b")).expect("it goes");
    record(&[
        json!({"event": "after_tool", "session": "s", "call": "c"}),
        json!({"event": "before_tool", "session": "s", "call": "e", "tool": "Edit", "paths": ["a"]}),
    ]);
    user.write("a", "3");
    record(&[
        json!({"event": "after_tool", "session": "s", "call": "e"}),
        json!({"event": "turn_end", "session": "s"}),
    ]);
    let shown = user.json(&["show", "busy"]);
    assert_eq!(shown["prompt"], long);
    assert_eq!(
        shown["calls"],
        json!([
            {"session": "s", "id": "c", "tool": "Bash", "command": "make all && rm -rf b", "number": 1, "files": 2},
            // The first `record` ended the turn when it ended.
            {"session": "s", "id": "e", "tool": "Edit", "command": null, "number": null, "files": 1},
        ])
    );
    assert_eq!(user.json(&["show", "quiet"])["prompt"], format!("no {long}"));
    user.succeeds(&["checkpoint", "by hand"]);
    let by_hand = user.json(&["show", "by hand"]);
    assert_eq!((&by_hand["prompt"], &by_hand["calls"]), (&json!(null), &json!([])));
}

#[test]
fn a_prompt_that_was_cut_ends_in_dots_and_is_shown_whole() {
    let user = User::with(&[("a", "1")]);
    let (long, exact) = (format!("{} and so on", "word ".repeat(20)), "short");
    let events = format!(
        r#"{{"event":"prompt","session":"s","message":"long","text":"{long}\n\nlast line"}}
{{"event":"before_tool","session":"s","call":"c","tool":"Bash"}}"#
    );
    user.record(&events);
    user.write("a", "2");
    let events = format!(
        r#"{{"event":"after_tool","session":"s","call":"c"}}
{{"event":"turn_end","session":"s"}}
{{"event":"prompt","session":"s","message":"short","text":"{exact}"}}"#
    );
    user.record(&events);
    let shown = user.takeback(&["show", "long"]).out;
    let lines: Vec<&str> = shown.lines().filter(|line| !line.starts_with("made")).collect();
    insta::assert_snapshot!(lines.join("\n"), @"
    word word word word word word word word word word word word word word word word …
    point    LONG-ID
    session  s
    message  long
    prompt   word word word word word word word word word word word word word word word word word word
             word word  and so on
             
             last line

      .1  Bash  a

      a  changed  s while Bash ran +1 -1
    ");
    assert!(!user.takeback(&["show", "short"]).out.contains("prompt"));
    assert!(user.takeback(&["rewind", "long", "--dry-run"]).out.contains("…”"));
    let told = user.json(&["show", "long"])["description"].as_str().map(|d| d.chars().count());
    assert_eq!(told, Some(80), "the data are unchanged");
}

/// Takeback first reads a file outside the workspace when a call names it; that is not a change by the user.
#[test]
fn a_file_outside_that_only_an_agent_touched_is_not_yours() {
    let user = User::with(&[("a", "1\n")]);
    user.write("../outside.txt", "one\n");
    let before = r#"{"event":"prompt","session":"s","message":"m","text":"go"}
{"event":"before_tool","session":"s","call":"c","tool":"Edit","paths":["../outside.txt","../new.txt"]}
{"event":"before_tool","session":"s","call":"d","tool":"Edit","paths":["../unread.txt"]}"#;
    user.write("../unread.txt", "one\n");
    user.record(before);
    user.write("../outside.txt", "one\ntwo\n");
    user.write("../new.txt", "new\n");
    let after = r#"{"event":"after_tool","session":"s","call":"c"}
{"event":"after_tool","session":"s","call":"d"}
{"event":"turn_end","session":"s"}"#;
    user.record(after);
    let shown = user.takeback(&["show", "m"]).out;
    let (_, table) = shown.split_once("\n\n").expect("a head, then a table");
    insta::assert_snapshot!(table, @"
    .1  Edit  2 files
    .2  Edit  changed nothing

    FOLDER/new.txt      new         s with Edit +1
    FOLDER/outside.txt  changed     s with Edit +1
    FOLDER/unread.txt   first seen
    ");
}

/// Two Codex sessions that started in the same millisecond and changed the same file.
#[test]
fn sessions_with_a_common_prefix_are_distinguished_and_found_by_name() {
    let user = User::with(&[("a", "1\n"), ("b", "1\n")]);
    let ids = ["019a8b2c-1234-7aaa-8000-c1e560b4df84", "019a8b2c-1234-7aaa-8000-c1e56fffff84"];
    for (id, text) in ids.iter().zip(["2\n", "3\n"]) {
        let event = |event: &str| json!({ "event": event, "session": id, "call": "c" });
        let mut lines = vec![event("session_start"), event("prompt"), event("before_tool")];
        lines[0]["agent"] = json!("codex");
        lines[1]["text"] = json!("go");
        lines[2]["tool"] = json!("Edit");
        lines[2]["paths"] = json!(["a"]);
        let text_of =
            |lines: &[Value]| lines.iter().map(|line| format!("{line}\n")).collect::<String>();
        user.record(&text_of(&lines));
        user.write("a", text);
        let end = [event("after_tool"), event("turn_end")];
        user.record(&text_of(&end));
    }
    let names = ["codex 60b4df84", "codex 6fffff84"];
    let line = |session: &str| json!({ "event": "prompt", "session": session, "text": "more" });
    user.record(&line(ids[0]).to_string());
    for (command, each) in [(&["log"][..], 1), (&["sessions"], 1), (&["show", "@~1"], 0)] {
        let said = user.command(command).output().expect("it runs").stdout;
        let said = String::from_utf8(said).expect("text");
        let count = |name: &str| said.matches(name).count();
        assert!(count(names[0]) >= each && count(names[1]) >= 1, "{command:?}: {said}");
        assert!(!said.contains("codex 019a8b2c"), "{command:?}: {said}");
    }
    let said = |args: &[&str]| {
        String::from_utf8(user.command(args).output().expect("it runs").stdout).expect("text")
    };
    assert!(said(&["status"]).contains("codex 60b4df84 may be at work"), "{}", said(&["status"]));
    let preview = ["rewind", "@~2", "--dry-run", "--session", "6fffff84"];
    assert!(said(&preview).contains("restore"), "{}", said(&preview));
    let other = ["rewind", "@~1", "--dry-run", "--session", "codex 60b4df84"];
    assert!(said(&other).contains("changed by session codex 6fffff84"), "{}", said(&other));
    for name in ["60b4df84", "codex 60b4df84", ids[0], "019a8b2c-1234-7aaa-8000-c1e560"] {
        let sessions = column(&user.json(&["log", "--session", name]), "session");
        assert_eq!(sessions, [ids[0], ids[0]], "{name}");
    }
    assert_eq!(user.takeback(&["log", "--session", "019a8b2c"]).code, 1, "it may be either");
}
