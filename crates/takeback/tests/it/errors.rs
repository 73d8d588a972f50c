//! Errors: one sentence, what to do next, an exit code, and nothing lost.

mod damage;
mod disk;
mod fsync;
mod locks;
mod permission;
mod store;
mod streams;
mod threads;
mod unreadable_files;

use crate::user::User;

/// A user whose agent has changed `a.txt`, made `new` and deleted `lib` since point `m`.
fn after_an_agent() -> User {
    let user = User::with(&[("a.txt", "one\n"), ("lib/b.txt", "b\n")]);
    user.agent_turn("m", "go", ("Bash", &[]), || {
        user.write("a.txt", "two\n");
        user.write("new", "new\n");
        user.remove("lib");
    });
    user
}

#[test]
fn a_folder_that_is_not_protected() {
    let user = User::new();
    for command in
        ["log", "show", "diff", "undo", "redo", "status", "recover", "verify", "export -"]
    {
        let answer = user.takeback(&command.split(' ').collect::<Vec<_>>());
        assert_eq!(answer.code, 10, "{command}: {answer:?}");
    }
    insta::assert_snapshot!(user.takeback(&["log"]).err, @r"
    takeback: FOLDER/work is not protected
      `takeback run -- CMD` or `takeback checkpoint` protects this folder.
    ");
}

#[test]
fn a_point_that_is_not_there_names_the_nearest() {
    let user = User::with(&[("a", "1")]);
    user.takeback(&["checkpoint", "before-refactor"]);
    insta::assert_snapshot!(user.exits(1, &["rewind", "before-refactr", "-y"]).err, @r#"
    takeback: no point is called "before-refactr"
      Did you mean before-refactor? `takeback log` lists the points.
    "#);
    user.exits(2, &["checkpoint", "before-refactor"]).reports("is taken by point");
}

#[test]
fn folders_that_are_refused() {
    let user = User::new();
    let home = user.home();
    insta::assert_snapshot!(user.exits(2, &["-C", home.to_str().expect("utf-8"), "checkpoint"]).err, @"takeback: FOLDER/home cannot be protected: it is your home folder; choose a project's folder in it");
    insta::assert_snapshot!(user.exits(2, &["-C", "/", "checkpoint"]).err, @"takeback: / cannot be protected: it is the whole file system; choose a project's folder");
    insta::assert_snapshot!(user.exits(2, &["--home", "inside", "checkpoint"]).err, @"takeback: FOLDER/work cannot be protected: it contains Takeback's own store; set TAKEBACK_HOME to a folder elsewhere");
    assert!(!user.exists("inside"), "nothing is made in a folder that is refused");
}

#[test]
fn errors_are_json_when_asked() {
    let user = User::new();
    let answer = user.takeback(&["log", "--json"]);
    assert_eq!((answer.code, answer.out.as_str()), (10, ""));
    insta::assert_snapshot!(answer.err, @r#"{"error":"FOLDER/work is not protected","hints":["`takeback run -- CMD` or `takeback checkpoint` protects this folder."],"code":10}"#);
}

#[test]
fn an_unpromised_stage_is_cleared_by_the_next_command() {
    let user = User::with(&[("a", "1")]);
    user.takeback(&["checkpoint"]);
    let store = std::fs::canonicalize(user.store()).expect("it is there");
    let mark = takeback_store::Digest::of(store.as_os_str().as_encoded_bytes()).to_string();
    user.write(&format!(".takeback/stage-00000000000000ff/unpromised-{}", &mark[..16]), "");
    user.write(".takeback/stage-00000000000000ff/new-0", "made for nothing");
    let answer = user.takeback(&["status"]);
    assert_eq!((answer.code, answer.err.as_str()), (0, ""));
    assert!(!user.exists(".takeback"));
}

/// A project may have anything under the name of a stage: no command fails, and only `recover` names it.
#[test]
fn a_file_named_like_a_stage_stops_no_command() {
    let places = [
        ".takeback/stage-00000000000000aa",
        ".takeback/stage-00000000000000aa/new-0",
        ".takeback/stage-00000000000000aa/sub/file",
    ];
    for place in places {
        let user = User::with(&[("a", "1")]);
        user.takeback(&["checkpoint"]);
        user.takeback(&["run", "--", "sh", "-c", "echo 2 > a"]);
        user.write(place, "mine");
        let commands =
            ["status", "checkpoint", "diff @", "run -- true", "rewind @~2 -y", "undo -y"];
        for command in commands.iter().chain(&["cleanup"]) {
            let answer = user.takeback(&command.split(' ').collect::<Vec<_>>());
            assert_eq!(answer.code, 0, "{place}: {command}: {answer:?}");
            let told = format!("{}{}", answer.out, answer.err);
            // `status` lists what is not covered, and a rewind what it keeps.
            let mentions = told.lines().filter(|line| line.contains("stage-"));
            for line in mentions.filter(|_| *command != "status") {
                assert!(line.contains("kept") && line.contains("by you"), "{command}: {told}");
            }
        }
        let answer = user.takeback(&["recover"]);
        assert_eq!((answer.code, answer.err.as_str()), (0, ""));
        insta::allow_duplicates! {
            insta::assert_snapshot!(answer.out, @r"
            Nothing was interrupted.
            Left alone: .takeback/stage-LONG-ID, which this store did not make or no longer knows
            ");
        }
        insta::allow_duplicates! {
            insta::assert_snapshot!(user.takeback(&["recover", "--json"]).out, @r#"{"finished":[],"clearedStages":0,"leftStages":[".takeback/stage-LONG-ID"],"drainedEvents":0,"mendedRoot":false}"#);
        }
        insta::allow_duplicates! {
            insta::assert_snapshot!(user.takeback(&["recover", "--dry-run"]).out, @"Nothing was interrupted.");
        }
        assert_eq!(user.read(place), "mine");
    }
}

#[test]
fn a_folder_that_is_not_there() {
    let user = User::new();
    insta::assert_snapshot!(user.exits(2, &["-C", "nowhere", "log"]).err, @r"
    takeback: cannot open nowhere: No such file or directory (os error 2)
      Name a folder that exists.
    ");
    user.write("gone/x", "");
    let script = "cd gone && rm -r ../gone && exec \"$0\" log";
    let mut command = std::process::Command::new("sh");
    command.args(["-c", script, env!("CARGO_BIN_EXE_takeback")]);
    command.current_dir(user.work()).env("HOME", user.home());
    let answer = user.answer_of(command, "");
    assert_eq!(answer.code, 2);
    insta::assert_snapshot!(answer.err, @r"
    takeback: the current folder cannot be used: No such file or directory (os error 2)
      Change to a folder that exists, or name one with -C DIR.
    ");
}

#[test]
fn no_home_folder() {
    let user = User::new();
    let mut command = user.command(&["log"]);
    command.env_remove("HOME");
    let answer = user.answer_of(command, "");
    assert_eq!(answer.code, 2);
    insta::assert_snapshot!(answer.err, @r"
    takeback: there is no home folder
      Set HOME or TAKEBACK_HOME, or use --home DIR.
    ");
}

#[test]
fn two_points_that_match() {
    let user = User::with(&[("a", "1")]);
    for session in ["s1", "s2"] {
        let event =
            format!(r#"{{"event":"prompt","session":"{session}","message":"m","text":"go"}}"#);
        user.record(&event);
    }
    insta::assert_snapshot!(user.exits(1, &["rewind", "m", "-y"]).err, @r#"
    takeback: "m" may mean LONG-ID or LONG-ID
      Name one of them by its id.
    "#);
    insta::assert_snapshot!(user.exits(1, &["rewind", "@~7", "-y"]).err, @r#"
    takeback: no point is called "@~7"
      `takeback log` lists the points.
    "#);
}

#[test]
fn a_file_in_place_of_takebacks_folder() {
    let user = after_an_agent();
    user.write(".takeback", "not a folder");
    let before = user.tree();
    let answer = user.takeback(&["rewind", "m", "-y"]);
    assert_eq!((answer.code, user.tree()), (1, before));
    insta::assert_snapshot!(answer.err, @"
    takeback: a file or link called .takeback is in the way of rewinds
      Nothing was changed.
      Move it aside.
    ");
}

#[test]
fn times_at_which_there_is_no_point() {
    let user = User::with(&[("a", "1")]);
    user.takeback(&["checkpoint"]);
    for (time, code) in [("1h", 1), ("25:00", 2), ("14:61:00", 2), ("no-time", 1)] {
        assert_eq!(user.takeback(&["show", time]).code, code, "{time}");
    }
    insta::assert_snapshot!(user.takeback(&["show", "1h"]).err, @r"
    takeback: no point is that old; the oldest is ID (just now)
      `takeback log` lists the points.
    ");
    insta::assert_snapshot!(user.takeback(&["rewind", "25:00", "-y"]).err, @r"
    takeback: 25:00 is not a time
      Write 14:00 or 14:00:30, or how long ago: 10m, 2h, 3d.
    ");
    user.succeeds(&["show", "0s"]);
}

#[test]
fn wrong_arguments_are_json_when_asked() {
    let user = User::new();
    for args in
        [&["--json"][..], &["log", "--jsn", "--json"], &["rewind", "--json"], &["--json", "lgo"]]
    {
        let answer = user.takeback(args);
        let error: serde_json::Value = serde_json::from_str(&answer.err).expect("one JSON value");
        assert_eq!((answer.code, &error["code"]), (2, &2.into()), "{args:?}");
    }
    insta::assert_snapshot!(user.takeback(&["lgo", "--json"]).err, @r#"{"error":"unrecognized subcommand 'lgo'","hints":["tip: `takeback help` lists the commands","Usage: takeback [OPTIONS] <COMMAND>"],"code":2}"#);
    assert!(user.takeback(&["lgo"]).err.starts_with("error: "), "as text for users");
    user.exits(3, &["run", "--", "sh", "-c", "exit 3", "--json"]);
}

#[test]
fn help_prints_the_same_as_the_help_option() {
    let user = User::new();
    for command in [&[][..], &["rewind"], &["session", "delete"]] {
        let asked = user.takeback(&[&["help"], command].concat());
        assert_eq!(asked, user.takeback(&[command, &["--help"]].concat()), "{command:?}");
        assert_eq!(asked.code, 0);
    }
    user.exits(2, &["help", "rewnd"]);
}
