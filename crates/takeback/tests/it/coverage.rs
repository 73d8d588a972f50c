//! What is covered and what is not; only the user can change that.

use serde_json::json;

use crate::user::User;

/// What `status` says about coverage, without the lines that depend on the machine.
fn not_covered(user: &User) -> String {
    let told = user.takeback(&["status"]).out;
    let lines: Vec<&str> = told.lines().filter(|line| !line.contains("kept in")).collect();
    lines.join("\n")
}

fn agent(user: &User, changes: impl FnOnce(&User)) {
    user.agent_turn("m", "go", ("Bash", &[]), || changes(user));
}

#[test]
fn precious_ignored_files_are_restored_and_build_output_is_not_copied() {
    let user = User::with(&[
        (".gitignore", ".env\n*.db\nsettings.local.json\nnode_modules/\ntarget/\n"),
        (".env", "SECRET=1\n"),
        ("local.db", "rows"),
        ("conf/settings.local.json", "{}\n"),
        ("package.json", "{}"),
        ("node_modules/dep/index.js", "0123456789"),
        ("Cargo.toml", ""),
        ("target/debug/out", "01234"),
    ]);
    user.succeeds(&["checkpoint"]);
    agent(&user, |user| {
        for path in [".env", "local.db", "conf", "node_modules"] {
            user.remove(path);
        }
    });
    user.succeeds(&["rewind", "@", "-y"]);
    assert_eq!(
        [".env", "local.db", "conf/settings.local.json"].map(|path| user.read(path)),
        ["SECRET=1\n", "rows", "{}\n"]
    );
    assert!(!user.exists("node_modules"), "there is no copy");
    user.write("node_modules/dep/index.js", "0123456789");
    insta::assert_snapshot!(not_covered(&user), @"
    FOLDER/work
      3 of them ignored but recorded: 16 B of 268.4 MB used

    Not covered:
      build output:
        node_modules (10 B), target (5 B)
    ");
    let told = user.json(&["status"]);
    assert_eq!(
        told["precious"],
        json!({ "files": 3, "bytes": 16, "fileMax": 16 << 20, "totalMax": 256 << 20 })
    );
    assert_eq!(
        told["notCovered"],
        json!([
            { "filePath": "node_modules", "reason": "derived", "size": 10, "atLeast": false },
            { "filePath": "target", "reason": "derived", "size": 5, "atLeast": false },
        ])
    );
}

#[test]
fn files_over_the_budget_are_listed_with_the_reason() {
    let user = User::with(&[
        (".gitignore", "*.db\nbuild/\n"),
        ("a.db", "12345678"),
        ("b.db", "123"),
        ("large.db", "12345678901"),
        ("build/out", "123"),
        (".takebackignore", "*.iso\n"),
        ("disk.iso", "1234"),
    ]);
    user.set(r#"{"preciousFileMaxBytes": 10, "preciousTotalBytes": 9}"#);
    user.takeback(&["checkpoint"]);
    insta::assert_snapshot!(not_covered(&user), @"
    FOLDER/work
      1 of them ignored but recorded: 8 B of 9 B used

    Ignored folders, recorded within the same budget:
      build/  0 files, 0 B, 1 not covered

    Not covered:
      ignored, and larger than preciousFileMaxBytes:
        large.db (11 B)
      ignored, and preciousTotalBytes is used up:
        b.db (3 B), build/out (3 B)
      excluded by .takebackignore:
        disk.iso (4 B)
    ");
    let reasons: Vec<_> = user.json(&["status"])["notCovered"]
        .as_array()
        .expect("a list")
        .iter()
        .map(|one| format!("{} {}", one["filePath"], one["reason"]))
        .collect();
    assert_eq!(
        reasons,
        [
            r#""b.db" "overBudget""#,
            r#""build/out" "overBudget""#,
            r#""disk.iso" "excluded""#,
            r#""large.db" "ignoredFile""#
        ]
    );
}

#[test]
fn a_large_folder_does_not_hold_up_status() {
    let user = User::with(&[("package.json", "{}")]);
    let folder = user.work().join("node_modules");
    std::fs::create_dir(&folder).expect("a folder");
    for n in 0..20_001 {
        std::fs::File::create(folder.join(n.to_string())).expect("a file");
    }
    user.takeback(&["checkpoint"]);
    let told = user.json(&["status"]);
    assert_eq!(
        (&told["notCovered"][0]["size"], &told["notCovered"][0]["atLeast"]),
        (&json!(0), &json!(true))
    );
    assert!(not_covered(&user).contains("node_modules (at least 0 B)"), "{}", not_covered(&user));
}

/// An agent or a repository may write any rules.
#[test]
fn a_projects_rules_neither_uncover_known_files_nor_delete_any() {
    let user = User::with(&[
        ("a.txt", "a\n"),
        ("lib/b.txt", "b\n"),
        (".gitignore", ".env\n"),
        (".takebackignore", "out/\n"),
        (".env", "SECRET=1\n"),
        ("out/mine.txt", "never recorded\n"),
    ]);
    user.succeeds(&["checkpoint"]);
    agent(&user, |user| {
        user.write(".takebackignore", "*\n");
        user.write(".gitignore", "*\n");
        user.write(
            ".takeback/settings.json",
            r#"{"enableFileCheckpointing": false, "derivedFolders": ["lib"],
                "preciousFileMaxBytes": 0, "preciousTotalBytes": 0}"#,
        );
    });
    let second = r#"{"event":"before_tool","session":"s","call":"d","tool":"Bash"}"#;
    user.record(second);
    for path in ["lib", "a.txt", ".env"] {
        user.remove(path);
    }
    user.write(".takebackignore", "");
    user.write(".gitignore", "");
    let end = r#"{"event":"after_tool","session":"s","call":"d","tool":"Bash"}
{"event":"turn_end","session":"s"}"#;
    user.record(end);
    for kind in [&["-y"][..], &["-y", "--exact"]] {
        let answer = user.takeback(&[&["rewind", "m"], kind].concat());
        assert_eq!(answer.code, 4, "what came into scope has no past: {answer:?}");
        assert_eq!(
            ["a.txt", "lib/b.txt", ".env", ".gitignore", ".takebackignore", "out/mine.txt"]
                .map(|path| user.read(path)),
            ["a\n", "b\n", "SECRET=1\n", ".env\n", "out/\n", "never recorded\n"]
        );
    }
}

/// In an ignored folder with small files, an agent deletes one, and a rewind restores it.
#[test]
fn small_files_in_ignored_folders_are_covered_and_listed() {
    let user = User::with(&[
        (".gitignore", "data/\n"),
        ("data/x.csv", "1,2\n"),
        ("data/deep/y.csv", "3,4\n"),
        ("data/large.bin", "12345678901"),
    ]);
    user.set(r#"{"preciousFileMaxBytes": 10}"#);
    user.succeeds(&["checkpoint"]);
    agent(&user, |user| {
        user.remove("data/x.csv");
        user.write("data/deep/y.csv", "agent\n");
    });
    user.succeeds(&["rewind", "@", "-y"]);
    assert_eq!(
        (user.read("data/x.csv"), user.read("data/deep/y.csv")),
        ("1,2\n".into(), "3,4\n".into())
    );
    insta::assert_snapshot!(not_covered(&user), @"
    FOLDER/work
      2 of them ignored but recorded: 8 B of 268.4 MB used

    Ignored folders, recorded within the same budget:
      data/  2 files, 8 B, 1 not covered

    Not covered:
      ignored, and larger than preciousFileMaxBytes:
        data/large.bin (11 B)
    ");
    let told = user.json(&["status"]);
    assert_eq!(
        told["ignoredFolders"],
        json!([{ "filePath": "data", "files": 2, "bytes": 8, "notCovered": 1 }])
    );
    // A change beyond the budget is noticed and reported.
    std::thread::sleep(std::time::Duration::from_millis(30));
    user.takeback(&["checkpoint"]);
    agent(&user, |user| user.write("data/large.bin", "changed by the agent"));
    user.exits(4, &["rewind", "m", "-y"]).prints("missing   data/large.bin");
    assert_eq!(user.read("data/large.bin"), "changed by the agent");
}

/// A rewind keeps new files in ignored folders, like build output, and the commands report them.
#[test]
fn new_files_in_an_ignored_folder_are_kept_and_reported() {
    let user = User::with(&[(".gitignore", "data/\n"), ("data/x.csv", "1\n"), ("a.txt", "a\n")]);
    user.succeeds(&["checkpoint"]);
    let make = "mkdir data/made && touch data/made/1 data/made/2 data/new.csv";
    let ran = user.takeback(&["run", "--", "sh", "-c", make]);
    insta::assert_snapshot!(ran.err.lines().take(3).collect::<Vec<_>>().join("\n"), @"
    takeback: 0 files changed
      first seen: data/  1 file; a rewind keeps what is new there
      first seen: data/made/  2 files; a rewind keeps what is new there
    ");
    let ran = user.takeback(&["run", "--json", "--", "sh", "-c", "touch data/made/3 && rm a.txt"]);
    let told: serde_json::Value = serde_json::from_str(&ran.err).expect("JSON");
    assert_eq!(told["firstSeen"], json!([{"filePath": "data/made", "names": 1}]));
    let told = user.takeback(&["rewind", "@~1", "--all-agents", "--dry-run"]);
    insta::assert_snapshot!(told.out, @r"
    Rewind to ID “sh -c mkdir data/made && touch data/made/1 data/made/2 data…” (just now)
    Takes back: all agents

      restore   a.txt
      keep      data/       1 file first seen since then
      keep      data/made/  3 files first seen since then

    a.txt changed while `sh -c touch data/made/3 && rm a.txt` ran; may include yours.

    1 to restore
    ");
    let told = user.succeeds(&["rewind", "@~1", "--all-agents", "-y", "--json"]);
    let told: serde_json::Value = serde_json::from_str(&told.out).expect("JSON");
    assert_eq!(
        told["firstSeen"],
        json!([{"filePath": "data", "names": 1}, {"filePath": "data/made", "names": 3}])
    );
    assert!(user.exists("data/made/3") && user.exists("data/new.csv"));
}
