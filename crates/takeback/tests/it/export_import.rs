use crate::user::{User, path_text};

/// A session with one prompt, a manual point, and an ignored file.
fn with_history() -> User {
    let user = User::with(&[
        ("a.txt", "one\n"),
        ("lib/b.txt", "b\n"),
        (".gitignore", ".env\n"),
        (".env", "KEY=1\n"),
    ]);
    let edit = ("Edit", &["a.txt"][..]);
    user.agent_turn("m1", "make it two", edit, || user.write("a.txt", "two\n"));
    user.succeeds(&["checkpoint", "done"]);
    user
}

/// Exports everything into another user's home.
fn export_to(from: &User, to: &User) -> String {
    let file = path_text(&to.home().join("bundle"));
    from.succeeds(&["export", &file]);
    file
}

#[test]
fn history_moves_from_one_folder_to_another() {
    let user = with_history();
    let exported = user.succeeds(&["export", "../bundle"]);
    insta::assert_snapshot!(exported.out.replace(char::is_numeric, "N"), @r"
    Exported N points and N change  NNN B in ../bundle
    N path left out: ignored, outside the workspace, or Takeback's own. --include-ignored includes the first two.
    ");
    let other = User::new();
    let imported =
        other.succeeds(&["import", user.home().join("../bundle").to_str().expect("utf-8")]);
    insta::assert_snapshot!(imported.out, @r"
    Imported 2 points and 2 sessions  1 change, 4 new blobs
      ID  make it two
      ID  [done]
    Your files were not changed. `takeback rewind ID --exact` restores the files of a point.
    ");
    assert!(!other.exists("a.txt"));
    let listed = other.json(&["log"]);
    let listed = listed.as_array().expect("a list").iter();
    let told: Vec<String> =
        listed.map(|point| format!("{} {}", point["kind"], point["description"])).collect();
    assert_eq!(told, [r#""manual" "done""#, r#""prompt" "make it two""#]);
    insta::assert_snapshot!(other.takeback(&["show", "done"]).out.lines().nth(3).unwrap_or(""), @"session  imported-ID");
    insta::assert_snapshot!(other.takeback(&["diff", "m1", "done"]).out, @r"
    diff --git a/a.txt b/a.txt
    --- a/a.txt
    +++ b/a.txt
    @@ -1 +1 @@
    -one
    +two
    ");
    other.succeeds(&["rewind", "m1", "--exact", "-y"]);
    assert_eq!((other.read("a.txt"), other.read("lib/b.txt")), ("one\n".into(), "b\n".into()));
    assert!(!other.exists(".env"));
    other.succeeds(&["verify"]);
}

#[test]
fn a_second_import_says_which_label_is_taken() {
    let user = with_history();
    let file = export_to(&user, &user);
    insta::assert_snapshot!(user.takeback(&["import", &file, "--dry-run"]).out, @r"
    Would import 2 points and 2 sessions  1 change, 0 new blobs
      ID  make it two
      ID  [done-2] done
                the label “done” is already used here
    ");
    assert_eq!(user.json(&["log"]).as_array().expect("a list").len(), 2);
    insta::assert_snapshot!(user.takeback(&["import", &file]).out, @r"
    Imported 2 points and 2 sessions  1 change, 0 new blobs
      ID  make it two
      ID  [done-2] done
                the label “done” is already used here
    Your files were not changed. `takeback rewind ID --exact` restores the files of a point.
    ");
    // Local points still come first, also when they are counted or named by message.
    insta::assert_snapshot!(user.takeback(&["log"]).out, @"
    ID  just now  by hand (imported)  [done-2] done  –
    ID  just now  s (imported)        make it two    1 file +1 -1
    ID  just now  by hand             [done]         –
    ID  just now  s                   make it two    1 file +1 -1
    ");
    insta::assert_snapshot!(user.takeback(&["show", "m1"]).out.lines().skip(3).collect::<Vec<_>>().join("\n"), @"
    session  s
    message  m1

      .1  Edit  a.txt

      a.txt  changed  s with Edit +1 -1
    ");
    insta::assert_snapshot!(user.takeback(&["show", "done"]).out.lines().skip(3).collect::<Vec<_>>().join("\n"), @"Nothing changed after it.");
    insta::assert_snapshot!(user.takeback(&["show"]).out.lines().next().unwrap_or(""), @"[done]");
}

#[test]
fn a_dry_run_of_an_import_works_without_a_store_and_creates_none() {
    let user = with_history();
    let other = User::new();
    let file = export_to(&user, &other);
    let told = other.succeeds(&["import", &file, "--dry-run"]);
    insta::assert_snapshot!(told.out, @r"
    Would import 2 points and 2 sessions  1 change, 4 new blobs
      ID  make it two
      ID  [done]
    ");
    assert_eq!(other.takeback(&["log"]).code, 10, "there is no store");
    assert!(!other.home().join("workspaces").exists());
    // A folder that cannot be protected is refused in a dry run too.
    other.exits(2, &["-C", "/", "import", &file, "--dry-run"]);
    assert_eq!(other.json(&["import", &file])["changes"], 1);
}

#[test]
fn answers_as_json() {
    let user = with_history();
    let other = User::new();
    let file = &path_text(&other.home().join("bundle"));
    let answer = user.json(&["export", file, "--session", "s"]);
    let bytes = std::fs::metadata(file).expect("it is there").len();
    let expected = serde_json::json!({
        "file": file, "points": 1, "changes": 1, "blobs": 4, "bytes": bytes, "leftOut": 1,
        "damaged": [], "statesLeftOut": 0,
    });
    assert_eq!(answer, expected);
    let answer = other.json(&["import", file]);
    let points = user.json(&["log", "--session", "s"]);
    let session = answer["sessions"][0]["id"].as_str().expect("a name").to_owned();
    let expected = serde_json::json!({
        "points": [{
            "id": answer["points"][0]["id"],
            "was": points[0]["id"],
            "label": null,
            "description": "make it two",
        }],
        "sessions": [{ "id": session, "was": "s" }],
        "changes": 1,
        "blobs": 4,
        "stepsWithoutState": 0,
    });
    assert_eq!(answer, expected);
    assert!(session.starts_with("imported-") && session.ends_with("-s"), "{session}");
    assert_eq!(other.json(&["log"])[0]["session"], session.as_str());
}

#[test]
fn through_a_pipe() {
    let user = with_history();
    let output = user.command(&["export", "-", "done", "--include-ignored"]).output();
    let output = output.expect("it runs");
    let said = String::from_utf8(output.stderr).expect("text");
    insta::assert_snapshot!(said.replace(char::is_numeric, "N"), @"Exported N point and N changes  NNN B in -");
    let other = User::new();
    let mut import = other.command(&["import", "-"]);
    import.stdin(std::process::Stdio::piped()).stdout(std::process::Stdio::null());
    let mut import = import.spawn().expect("it starts");
    let mut input = import.stdin.take().expect("it is piped");
    std::io::Write::write_all(&mut input, &output.stdout).expect("it listens");
    drop(input);
    assert!(import.wait().expect("it ends").success());
    other.succeeds(&["rewind", "done", "--exact", "-y"]);
    assert_eq!(other.read(".env"), "KEY=1\n");
}

#[test]
fn a_file_that_is_there_is_not_overwritten_unasked() {
    let user = with_history();
    user.write("taken", "mine\n");
    let answer = user.exits(2, &["export", "taken"]);
    insta::assert_snapshot!(answer.err, @r"
    takeback: taken already exists
      Choose another name, or replace it with --force.
    ");
    assert_eq!(user.read("taken"), "mine\n");
    user.succeeds(&["export", "taken", "--force"]);
    user.succeeds(&["import", "taken", "--dry-run"]);
    let answer = user.exits(1, &["export", "missing/folder"]);
    insta::assert_snapshot!(answer.err, @"takeback: cannot write missing/folder: No such file or directory (os error 2)");
}

#[test]
fn what_cannot_be_exported() {
    let user = with_history();
    let answer = user.exits(1, &["export", "x", "--session", "t"]);
    insta::assert_snapshot!(answer.err, @"
    takeback: there is no session t
      Did you mean s? `takeback sessions` lists the sessions.
    ");
    user.exits(2, &["export", "x", "done", "--session", "s"]);
    user.exits(1, &["export", "x", "nowhere"]);
    assert!(!user.exists("x"));
}

#[test]
fn a_file_that_is_refused_leaves_nothing_behind() {
    let user = with_history();
    let other = User::new();
    let file = export_to(&user, &other);
    let good = std::fs::read(&file).expect("it is there");
    let told = |bytes: &[u8], args: &[&str]| {
        std::fs::write(&file, bytes).expect("it is written");
        let answer = other.exits(1, &[&["import", &file], args].concat());
        assert_eq!(other.takeback(&["log"]).code, 10, "there is no store");
        answer.err
    };
    let mut flipped = good.clone();
    flipped[100] ^= 1;
    insta::assert_snapshot!(told(&flipped, &[]), @r"
    takeback: FOLDER/home/bundle is refused: it is damaged: its checksum is wrong
      Copy it or export it again; nothing was imported.
    ");
    insta::assert_snapshot!(told(&good[..good.len() - 1], &[]), @r"
    takeback: FOLDER/home/bundle is refused: it is cut short: its end is missing
      Copy it or export it again; nothing was imported.
    ");
    insta::assert_snapshot!(told(b"PK\x03\x04 something else entirely", &[]), @r"
    takeback: FOLDER/home/bundle is refused: it is not a Takeback bundle
      `takeback export` writes bundles; nothing was imported.
    ");
    let mut newer = good.clone();
    newer[16] = 9;
    insta::assert_snapshot!(told(&newer, &[]), @r"
    takeback: FOLDER/home/bundle is refused: it has version 9; this Takeback knows versions up to 1
      Update Takeback; nothing was imported.
    ");
    insta::assert_snapshot!(told(&good, &["--max-size", "3"]), @r"
    takeback: FOLDER/home/bundle is refused: its contents are larger than 3 bytes
      If you trust the file, --max-size allows more; nothing was imported.
    ");
    let folder = other.home();
    let answer = other.exits(1, &["import", folder.to_str().expect("utf-8")]);
    insta::assert_snapshot!(answer.err, @"takeback: FOLDER/home cannot be read: it is not a file");
    let answer = other.exits(1, &["import", "nowhere"]);
    insta::assert_snapshot!(answer.err, @"takeback: nowhere cannot be read: No such file or directory (os error 2)");
}

/// Saves a checkpoint of session `s`, with its files.
fn save_checkpoint(user: &User, execution: &str, step: u32) {
    let checkpoint = format!(
        r#"{{"execution_id":"{execution}","step_index":{step},"step_name":"n","state":{{}},"context":{{}},"session":"s"}}"#
    );
    user.write("step.txt", &format!("{execution} {step}\n"));
    assert_eq!(user.feed(&["state", "save"], &checkpoint).code, 0);
}

#[test]
fn states_left_out_are_reported_by_export_and_import() {
    let (user, other) = (with_history(), User::new());
    assert!(!user.takeback(&["export", "../none"]).out.contains("states"), "there are none");
    save_checkpoint(&user, "e", 1);
    save_checkpoint(&user, "e", 2);
    user.succeeds(&["checkpoint", "plain"]);

    let said = |answer: &crate::user::Answer| -> String {
        assert_eq!(answer.code, 0, "{answer:?}");
        answer.out.lines().filter(|line| line.contains("states are")).collect::<Vec<_>>().join("\n")
    };
    let file = &path_text(&other.home().join("bundle"));
    let whole = user.takeback(&["export", file]);
    insta::assert_snapshot!(said(&whole), @"Agent states are not included: 2 checkpoints of 1 execution left out.  `takeback state export EXECUTION` writes them.");
    let imported = other.takeback(&["import", file]);
    insta::assert_snapshot!(said(&imported), @"Agent states are not included: 2 steps of an agent have its files only.  `takeback state export` writes states.");
    assert_eq!(other.json(&["import", file, "--dry-run"])["stepsWithoutState"], 2);

    // Only states that belong to the exported points are counted.
    for (name, args, left_out) in [
        ("all", vec![], 2),
        ("of-s", vec!["--session", "s"], 2),
        ("with", vec!["@~1"], 1),
        ("plain", vec!["plain"], 0),
        ("early", vec!["done"], 0),
    ] {
        let file = format!("../{name}");
        let args = [&["export", file.as_str()][..], &args].concat();
        assert_eq!(user.json(&args)["statesLeftOut"], left_out, "{name}");
    }
    assert_eq!(said(&user.takeback(&["export", "../one", "plain"])), "");
    let plain = &path_text(&user.work().join("../one"));
    assert_eq!(said(&other.takeback(&["import", plain])), "");
    assert_eq!(user.takeback(&["export", "../quiet", "-q"]).out, "");
}

#[test]
fn a_session_is_exported_by_the_beginning_of_its_id() {
    let user = with_history();
    let told = |line: &str| user.record(line);
    for session in ["long-4711-a", "long-4711-b", "long-5", "solo-1b2c"] {
        told(&format!(
            r#"{{"event":"prompt","session":"{session}","message":"{session}","text":"go"}}"#
        ));
    }
    let exported = user.json(&["export", "../a", "--session", "long-4711-b"]);
    assert_eq!(exported["points"], 1);
    let by_prefix = user.json(&["export", "../b", "--session", "solo"]);
    assert_eq!(by_prefix["points"], 1);
    let whole = user.json(&["export", "../c", "--session", "solo-1b2c"]);
    assert_eq!((&whole["changes"], &whole["bytes"]), (&by_prefix["changes"], &by_prefix["bytes"]));
    let several = user.exits(1, &["export", "../d", "--session", "long"]);
    insta::assert_snapshot!(several.err, @"
    takeback: long is ambiguous: long-4711-a, long-4711-b or long-5
      Use more characters of the id.
    ");
    let unknown = user.exits(1, &["export", "../d", "--session", "solo-2"]);
    insta::assert_snapshot!(unknown.err, @"
    takeback: there is no session solo-2
      Did you mean solo-1b2c? `takeback sessions` lists the sessions.
    ");
    assert!(!user.work().join("../d").exists());
}
