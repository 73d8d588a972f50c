//! Settings, their origin, and what a project may not change.

use std::process::Command;

use serde_json::json;

use crate::user::User;

const PROJECT: &str = ".takeback/settings.json";

/// The lines of `config` with values that are not the default.
fn set(user: &User) -> String {
    let told = user.takeback(&["config"]).out;
    let lines: Vec<&str> = told.lines().filter(|line| !line.ends_with("default")).collect();
    lines.join("\n")
}

#[test]
fn every_setting_is_listed_with_its_origin() {
    let user = User::new();
    let answer = user.takeback(&["config"]);
    assert_eq!((answer.code, answer.err.as_str()), (0, ""));
    insta::assert_snapshot!(answer.out, @"
    enableFileCheckpointing  true                                                          default
    pointsPerSession         50                                                            default
    archiveDays              7                                                             default
    maxStoreBytes            5368709120                                                    default
    maxHomeBytes             21474836480                                                   default
    editCaptureMaxBytes      1048576                                                       default
    editTools                write_file, edit_file, create_file, str_replace_editor, Wri…  default
    shellTools               Bash, shell, bash, exec_command, local_shell, shell_command…  default
    readOnlyTools            Read, Glob, Grep, LS, NotebookRead, WebFetch, WebSearch, To…  default
    preciousFileMaxBytes     ID                                                      default
    preciousTotalBytes       268435456                                                     default
    derivedFolders           none                                                          default
    hookDeadlineMs           1000                                                          default
    scanBudgetMs             10000                                                         default
    backgroundScanFiles      20000                                                         default
    statesAsJsonFiles        false                                                         default
    checkpointKeepCount      10                                                            default
    doubleEscMs              300                                                           default
    rewindKey                esc                                                           default
    allowAgentRewind         false                                                         default
    tellAgent                true                                                          default
    warnOnOverwrite          false                                                         default
    durability               full                                                          default
    ");
    assert!(!user.home().join(".takeback").exists(), "looking makes no store");
}

#[test]
fn the_environment_overrides_the_project_and_the_project_your_file() {
    let user = User::new();
    user.set(r#"{"pointsPerSession": 60, "archiveDays": 8, "editCaptureMaxBytes": 5}"#);
    user.write(PROJECT, r#"{"pointsPerSession": 70, "archiveDays": 9, "shellTools": ["make"]}"#);
    let mut command = user.command(&["config"]);
    command.env("TAKEBACK_POINTS_PER_SESSION", "55").env("TAKEBACK_DERIVED_FOLDERS", "gen, out");
    let answer = user.answer_of(command, "");
    let lines: Vec<&str> = answer.out.lines().filter(|line| !line.ends_with("default")).collect();
    insta::assert_snapshot!(lines.join("\n"), @"
    pointsPerSession         55                                                            TAKEBACK_POINTS_PER_SESSION
    archiveDays              9                                                             FOLDER/work/.takeback/settings.json
    editCaptureMaxBytes      5                                                             FOLDER/home/.takeback/settings.json
    shellTools               Bash, shell, bash, exec_command, local_shell, shell_command…  FOLDER/work/.takeback/settings.json
    derivedFolders           gen, out                                                      TAKEBACK_DERIVED_FOLDERS
    ");
    assert_eq!(
        user.json(&["config", "shellTools"])["value"].as_array().expect("a list").last(),
        Some(&json!("make"))
    );
    insta::assert_snapshot!(user.takeback(&["config", "pointsPerSession"]).out, @"70");
    assert_eq!(
        user.json(&["config", "archiveDays"])["origin"],
        json!(user.work().join(PROJECT).canonicalize().expect("it is there"))
    );
}

#[test]
fn a_project_cannot_lower_protection() {
    let user = User::with(&[("a.txt", "one\n"), ("lib/b.txt", "b\n")]);
    user.set(r#"{"pointsPerSession": 60}"#);
    user.write(
        PROJECT,
        r#"{"enableFileCheckpointing": false, "pointsPerSession": 1, "archiveDays": 0,
            "checkpointKeepCount": 0, "editCaptureMaxBytes": 0, "preciousFileMaxBytes": 0,
            "preciousTotalBytes": 0, "editTools": ["mcp__run"], "readOnlyTools": ["Bash"],
            "derivedFolders": ["lib"], "hookDeadlineMs": 0, "home": "/tmp"}"#,
    );
    insta::assert_snapshot!(set(&user), @r#"
    pointsPerSession         60                                                            FOLDER/home/.takeback/settings.json
    refused: enableFileCheckpointing = false in FOLDER/work/.takeback/settings.json
      a project cannot switch recording off
    refused: pointsPerSession = 1 in FOLDER/work/.takeback/settings.json
      a project can only raise it
    refused: archiveDays = 0 in FOLDER/work/.takeback/settings.json
      a project can only raise it
    refused: editCaptureMaxBytes = 0 in FOLDER/work/.takeback/settings.json
      a project can only raise it
    refused: editTools = ["mcp__run"] in FOLDER/work/.takeback/settings.json
      only your own settings may set it
    refused: readOnlyTools = ["Bash"] in FOLDER/work/.takeback/settings.json
      only your own settings may set it
    refused: preciousFileMaxBytes = 0 in FOLDER/work/.takeback/settings.json
      a project can only raise it
    refused: preciousTotalBytes = 0 in FOLDER/work/.takeback/settings.json
      a project can only raise it
    refused: derivedFolders = ["lib"] in FOLDER/work/.takeback/settings.json
      only your own settings may set it
    refused: hookDeadlineMs = 0 in FOLDER/work/.takeback/settings.json
      only your own settings may set it
    refused: checkpointKeepCount = 0 in FOLDER/work/.takeback/settings.json
      a project can only choose 1 or more
    "#);
    let told = user.json(&["config"]);
    assert_eq!(told[1]["value"], 60);
    assert_eq!(told[1]["refused"]["why"], "a project can only raise it");
    assert_eq!(
        told.as_array().expect("a list").iter().filter(|s| s["refused"].is_object()).count(),
        11
    );

    insta::assert_snapshot!(user.succeeds(&["checkpoint", "first"]).err, @"takeback: FOLDER/work/.takeback/settings.json: enableFileCheckpointing has no effect: a project cannot switch recording off (1 more: `takeback config`)");
    insta::assert_snapshot!(user.takeback(&["config"]).err, @"takeback: FOLDER/work/.takeback/settings.json: there is no setting home; did you mean maxHomeBytes?");
    assert_eq!(user.takeback(&["checkpoint", "-q"]).err, "");
    assert!(user.home().join(".takeback/workspaces").exists(), "the store is where it was");
    user.agent_turn("m", "go", ("Bash", &[]), || user.remove("lib"));
    user.succeeds(&["rewind", "@", "-y"]);
    assert_eq!(user.read("lib/b.txt"), "b\n");
}

/// Recording continues, whatever is in place of the file.
#[test]
fn a_projects_invalid_settings_have_no_effect() {
    let user = User::with(&[("a", "1"), (PROJECT, "{ nonsense")]);
    insta::assert_snapshot!(user.succeeds(&["checkpoint"]).err, @"takeback: FOLDER/work/.takeback/settings.json has no effect: key must be a string at line 1 column 3");
    user.write(PROJECT, r#"{"archiveDays": "many"}"#);
    insta::assert_snapshot!(user.takeback(&["checkpoint"]).err, @"takeback: FOLDER/work/.takeback/settings.json: archiveDays has no effect: it must be a whole number");
    let file = user.work().join(PROJECT);
    std::fs::remove_file(&file).expect("it goes");
    assert!(Command::new("mkfifo").arg(&file).status().expect("it runs").success());
    insta::assert_snapshot!(user.succeeds(&["checkpoint"]).err, @"takeback: FOLDER/work/.takeback/settings.json has no effect: it is not a file");
    std::fs::remove_dir_all(user.work().join(".takeback")).expect("it goes");
    user.write(".takeback", "not even a folder");
    let answer = user.feed(&["record"], r#"{"event":"prompt","session":"s","text":"go"}"#);
    assert_eq!((answer.code, answer.err.as_str()), (0, ""));
}

#[test]
fn unreadable_settings_are_not_called_invalid() {
    let user = User::with(&[("a", "1")]);
    user.set("{}");
    let file = user.home().join(".takeback/settings.json");
    std::fs::remove_file(&file).expect("it goes");
    std::os::unix::fs::symlink("settings.json", &file).expect("a link to itself");
    insta::assert_snapshot!(user.exits(1, &["checkpoint"]).err, @"takeback: FOLDER/home/.takeback/settings.json cannot be read: Too many levels of symbolic links (os error 40)");
}

#[test]
fn your_own_settings_must_be_valid() {
    let user = User::with(&[("a", "1")]);
    user.set("{ nonsense");
    insta::assert_snapshot!(user.exits(2, &["checkpoint"]).err, @"
    takeback: FOLDER/home/.takeback/settings.json is invalid: key must be a string at line 1 column 3
      Fix it (`takeback config edit`) or move it away.
    ");
    user.set(r#"{"archiveDays": "many"}"#);
    insta::assert_snapshot!(user.exits(2, &["log"]).err, @"
    takeback: FOLDER/home/.takeback/settings.json: archiveDays must be a whole number
      Fix it: `takeback config edit`.
    ");
    user.set("{}");
    let mut command = user.command(&["config"]);
    command.env("TAKEBACK_ARCHIVE_DAYS", "many");
    let answer = user.answer_of(command, "");
    assert_eq!(answer.code, 2);
    insta::assert_snapshot!(answer.err, @"takeback: TAKEBACK_ARCHIVE_DAYS must be a whole number");
    let mut command = user.command(&["config"]);
    command.env("TAKEBACK_DURABILITY", "some");
    let answer = user.answer_of(command, "");
    assert_eq!(answer.code, 2);
    insta::assert_snapshot!(answer.err, @"takeback: TAKEBACK_DURABILITY must be full, normal or off");
}

#[test]
fn points_made_at_any_durability_come_back() {
    let user = User::with(&[("a", "1")]);
    for (number, level) in [("2", "full"), ("3", "normal"), ("4", "off")] {
        user.set(&format!(r#"{{"durability": "{level}"}}"#));
        assert_eq!(user.takeback(&["checkpoint", level]).code, 0, "{level}");
        user.write("a", number);
    }
    for (level, text) in [("full", "1"), ("off", "3"), ("normal", "2")] {
        let answer = user.takeback(&["rewind", level, "-y", "--exact"]);
        assert_eq!((answer.code, user.read("a").as_str()), (0, text), "{level}: {}", answer.err);
    }
    user.succeeds(&["verify"]);
}

#[test]
fn a_key_that_is_not_known_is_named_once_with_the_nearest() {
    let user = User::with(&[("a", "1")]);
    user.set(r#"{"pointPerSession": 3, "durability": "full", "doubleEscMs": 1}"#);
    insta::assert_snapshot!(user.succeeds(&["checkpoint"]).err, @"takeback: FOLDER/home/.takeback/settings.json: there is no setting pointPerSession; did you mean pointsPerSession?");
    assert_eq!(user.takeback(&["-q", "checkpoint"]).err, "");
    let answer = user.feed(&["record"], r#"{"event":"turn_end","session":"s"}"#);
    assert_eq!(answer.out.lines().count(), 1, "answers are answers: {answer:?}");
    let answer = user.takeback(&["log", "--json"]);
    insta::assert_snapshot!(answer.err, @r#"{"warning":"FOLDER/home/.takeback/settings.json: there is no setting pointPerSession; did you mean pointsPerSession?"}"#);

    let answer = user.exits(2, &["config", "pointPerSession"]);
    insta::assert_snapshot!(answer.err.lines().skip(1).collect::<Vec<_>>().join("\n"), @"
    takeback: there is no setting pointPerSession
      Did you mean pointsPerSession? `takeback config` lists them.
    ");
}

#[test]
fn you_can_switch_recording_off() {
    let user = User::with(&[("a.txt", "one\n")]);
    user.set(r#"{"enableFileCheckpointing": false}"#);
    insta::assert_snapshot!(user.exits(2, &["checkpoint"]).err, @"
    takeback: Checkpoint feature not enabled
      enableFileCheckpointing is false (FOLDER/home/.takeback/settings.json); set it to true to record again.
    ");
    let answer = user.takeback(&["run", "--", "sh", "-c", "echo out; echo two > a.txt; exit 7"]);
    assert_eq!(
        (answer.code, answer.out.as_str(), user.read("a.txt").as_str()),
        (7, "out\n", "two\n")
    );
    insta::assert_snapshot!(answer.err, @"takeback: Checkpoint feature not enabled: nothing is recorded (enableFileCheckpointing is false (FOLDER/home/.takeback/settings.json); set it to true to record again.)");
    user.exits(125, &["run", "--", "no-such-program"]);
    let events = r#"{"event":"prompt","session":"s","text":"go"}
{"event":"turn_end","session":"s"}"#;
    let answer = user.feed(&["record"], events);
    assert_eq!(answer.code, 1);
    insta::assert_snapshot!(answer.out, @r#"
    {"ok":false,"error":"Checkpoint feature not enabled"}
    {"ok":false,"error":"Checkpoint feature not enabled"}
    "#);
    assert!(!user.home().join(".takeback/workspaces").exists(), "nothing was recorded");
    // The user can enable it for one command.
    let mut command = user.command(&["checkpoint"]);
    command.env("TAKEBACK_ENABLE_FILE_CHECKPOINTING", "true");
    assert_eq!(user.answer_of(command, "").code, 0);
    let status = user.takeback(&["status"]);
    insta::assert_snapshot!(status.out.lines().nth(1).expect("a line"), @"  Recording is off: enableFileCheckpointing is false (FOLDER/home/.takeback/settings.json)");
    assert_eq!(user.json(&["status"])["recording"], false);
}

#[test]
fn retention_settings_apply_and_a_project_cannot_lower_them() {
    let user =
        User::with(&[("a", "1"), (PROJECT, r#"{"pointsPerSession": 1, "archiveDays": 30}"#)]);
    user.set(r#"{"pointsPerSession": 2, "archiveDays": 9}"#);
    for n in 0..4 {
        let event = format!(r#"{{"event":"prompt","session":"s","text":"{n}"}}"#);
        user.record(&event);
    }
    user.succeeds(&["cleanup"]);
    assert_eq!(user.descriptions(), ["3", "2"]);
    assert_eq!(user.json(&["session", "archive", "s"])["keptDays"], 30);
}

#[test]
fn a_projects_settings_cannot_flood_you() {
    let user = User::with(&[("a", "1")]);
    let keys: Vec<String> = (0..30_000).map(|n| format!(r#""unknown-{n:05}": 1"#)).collect();
    user.write(PROJECT, &format!("{{{}}}", keys.join(",")));
    user.succeeds(&["checkpoint", "-q"]);
    insta::assert_snapshot!(user.takeback(&["log"]).err, @"takeback: FOLDER/work/.takeback/settings.json: there is no setting unknown-00000; did you mean maxHomeBytes? (5 more: `takeback config`)");
    let answer = user.takeback(&["config"]);
    assert_eq!(answer.err.lines().count(), 6, "{}", answer.err);
    insta::assert_snapshot!(answer.err.lines().last().expect("a line"), @"takeback: FOLDER/work/.takeback/settings.json: and 29995 more unknown settings");
    user.write(PROJECT, &format!(r#"{{"{}": 1}}"#, "k".repeat(1_000_000)));
    insta::assert_snapshot!(user.takeback(&["log"]).err, @"takeback: FOLDER/work/.takeback/settings.json: there is no setting kkkkkkkkkkkkkkkkkkkkkkkkkkkkkkkkkkkkkkkkkkkkkkkkkkkkkkkkkkkkkkk…");
    user.write(PROJECT, &format!(r#"{{"{}": 1}}"#, "k".repeat(1 << 20)));
    insta::assert_snapshot!(user.takeback(&["log"]).err, @"takeback: FOLDER/work/.takeback/settings.json has no effect: it is larger than 1 MiB");
    let answer = user.takeback(&["config", &"k".repeat(1000)]);
    assert_eq!((answer.code, answer.err.len() < 400), (2, true), "{}", answer.err);
}

#[test]
fn a_setting_is_changed_and_the_rest_of_the_file_stays() {
    let user = User::new();
    insta::assert_snapshot!(user.succeeds(&["config", "set", "archiveDays", "30"]).out, @"
    archiveDays is 30
      set in ~/.takeback/settings.json
    ");
    let file = user.home().join(".takeback/settings.json");
    let text = || std::fs::read_to_string(&file).expect("it is there");
    assert_eq!(text(), "{\n  \"archiveDays\": 30\n}\n");
    assert_eq!(user.takeback(&["config", "get", "archiveDays"]).out, "30\n");
    let own = "{\n  // Long.\n  \"archiveDays\": 30, // days\n  \"durability\": \"off\",\n}\n";
    user.set(own);
    user.succeeds(&["config", "set", "archiveDays", "60"]);
    assert_eq!(text(), own.replace("30", "60"));
    user.succeeds(&["config", "set", "derivedFolders", "out,gen"]);
    user.succeeds(&["config", "set", "derivedFolders", r#"["out", "a,b"]"#]);
    assert_eq!(user.json(&["config", "derivedFolders"])["value"], json!(["out", "a,b"]));
    insta::assert_snapshot!(user.succeeds(&["config", "unset", "archiveDays"]).out, @"
    archiveDays is 7
      the default
    ");
    assert!(text().contains("\"durability\": \"off\"") && !text().contains("archiveDays"));
    let mut command = user.command(&["config", "set", "archiveDays", "5"]);
    command.env("TAKEBACK_ARCHIVE_DAYS", "6");
    insta::assert_snapshot!(user.answer_of(command, "").out, @"
    archiveDays is 6
      TAKEBACK_ARCHIVE_DAYS overrides ~/.takeback/settings.json
    ");
    let answer = user.json(&["config", "set", "durability", "normal"]);
    assert_eq!(
        (&answer["value"], &answer["setting"]["value"]),
        (&json!("normal"), &json!("normal"))
    );
    assert!(!user.home().join(".takeback/workspaces").exists(), "settings make no store");
}

#[test]
fn a_value_that_a_setting_does_not_take_is_refused_with_what_it_takes() {
    let user = User::new();
    user.set("{\"archiveDays\": 8}");
    let refused = |args: &[&str]| user.exits(2, &[&["config", "set"], args].concat()).err;
    insta::assert_snapshot!(refused(&["archiveDays", "many"]), @r#"
    takeback: archiveDays must be a whole number, not "many"
      archiveDays: days an archived session is kept.
    "#);
    insta::assert_snapshot!(refused(&["pointsPerSession", "0"]), @r#"
    takeback: pointsPerSession must be 1 or more, not "0"
      pointsPerSession: points kept per session; the oldest are dropped first.
    "#);
    insta::assert_snapshot!(refused(&["durability", "some"]), @r#"
    takeback: durability must be full, normal or off, not "some"
      durability: how recording syncs to disk: full, normal or off; a power loss may cost the last seconds.
    "#);
    insta::assert_snapshot!(refused(&["rewindKey", "x"]), @r#"
    takeback: rewindKey must be esc, tab, f1 to f12, ctrl- with a letter other than c, d, h, i, j or m, or alt- with a character, not "x"
      rewindKey: key that opens the rewind menu when pressed twice.
    "#);
    insta::assert_snapshot!(refused(&["archiveDay", "7"]), @"
    takeback: there is no setting archiveDay
      Did you mean archiveDays? `takeback config` lists them.
    ");
    let project = ["--scope", "project"];
    insta::assert_snapshot!(refused(&[&["archiveDays", "7"][..], &project].concat()), @"
    takeback: the project's settings cannot have archiveDays = 7: a project can only raise it
      `takeback config set KEY VALUE --scope user` sets it for you, in all projects.
    ");
    insta::assert_snapshot!(refused(&[&["allowAgentRewind", "true"][..], &project].concat()), @"
    takeback: the project's settings cannot have allowAgentRewind = true: only your own settings may set it
      `takeback config set KEY VALUE --scope user` sets it for you, in all projects.
    ");
    assert!(!user.work().join(PROJECT).exists());
    user.succeeds(&["config", "set", "archiveDays", "9", "--scope", "project"]);
    assert_eq!(user.read(PROJECT), "{\n  \"archiveDays\": 9\n}\n");
    assert_eq!(user.takeback(&["config", "archiveDays"]).out, "9\n");
    user.set("{ nonsense");
    let before = user.exits(2, &["config", "set", "archiveDays", "1"]);
    before.reports("is invalid").reports("takeback config edit");
}

#[test]
fn the_editor_gets_a_copy_that_replaces_the_file_only_if_it_is_valid() {
    let user = User::new();
    user.set("{ nonsense");
    let edit = |editor: &str| {
        let mut command = user.command(&["config", "edit"]);
        command.env("EDITOR", editor);
        user.answer_of(command, "")
    };
    let text =
        || std::fs::read_to_string(user.home().join(".takeback/settings.json")).expect("text");
    let unchanged = |answer: &crate::user::Answer| {
        assert_eq!(text(), "{ nonsense");
        answer.reports("Nothing was changed.");
    };
    let answer = edit("false");
    unchanged(answer.reports("the editor false failed"));
    let answer = edit(r#"sh -c 'echo "{\"archiveDay\": 1, \"durability\": 3}" > "$0"'"#);
    unchanged(answer.exited(2, &[]).reports("did you mean archiveDays?"));
    assert_eq!(edit("true").exited(0, &[]).out, "No changes.\n");
    let answer = edit(r#"sh -c 'echo "{\"archiveDays\": 1} // short" > "$0"'"#).exited(0, &[]);
    assert_eq!(answer.out, "Saved ~/.takeback/settings.json.\n");
    assert_eq!(user.takeback(&["config", "archiveDays"]).out, "1\n");
    let path = user.takeback(&["config", "path"]).out;
    assert!(path.ends_with("/home/.takeback/settings.json\n"), "{path}");
}
