use crate::home::User;

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
    let answer = user.takeback(&["rewind", "before-refactr", "-y"]);
    assert_eq!(answer.code, 1);
    insta::assert_snapshot!(answer.err, @r#"
    takeback: no point is called "before-refactr"
      Did you mean before-refactor? `takeback log` lists the points.
    "#);
    let answer = user.takeback(&["checkpoint", "before-refactor"]);
    assert_eq!(answer.code, 2);
    assert!(answer.err.contains("is taken by point"), "{answer:?}");
}

#[test]
fn folders_that_are_refused() {
    let user = User::new();
    let home = user.home();
    let answer = user.takeback(&["-C", home.to_str().expect("utf-8"), "checkpoint"]);
    assert_eq!(answer.code, 2);
    insta::assert_snapshot!(answer.err, @"takeback: FOLDER/home cannot be protected: it is your home folder; choose a project's folder in it");
    let answer = user.takeback(&["-C", "/", "checkpoint"]);
    assert_eq!(answer.code, 2);
    let answer = user.takeback(&["--home", "inside", "checkpoint"]);
    assert_eq!(answer.code, 2);
    insta::assert_snapshot!(answer.err, @"takeback: FOLDER/work cannot be protected: Takeback's own store lies in it; set TAKEBACK_HOME to a folder elsewhere");
    assert!(!user.exists("inside"), "nothing is made in a folder that is refused");
}

#[test]
fn a_store_from_the_future_or_of_somebody_else() {
    let user = User::with(&[("a", "1")]);
    user.takeback(&["checkpoint"]);
    let database = user.store().join("timeline.db");
    let mut bytes = std::fs::read(&database).expect("it can be read");
    bytes[60..64].copy_from_slice(&999_u32.to_be_bytes());
    std::fs::write(&database, bytes).expect("a newer format");
    let answer = user.takeback(&["log"]);
    assert_eq!(answer.code, 1);
    insta::assert_snapshot!(answer.err, @r"
    takeback: the store at FOLDER/home/.takeback/workspaces/work-LONG-ID/timeline.db has format 999; this Takeback knows formats up to 2
      Update Takeback; nothing was changed.
    ");
    std::fs::write(&database, "something else entirely").expect("foreign");
    let answer = user.takeback(&["log"]);
    assert_eq!(answer.code, 1);
    insta::assert_snapshot!(answer.err, @r"
    takeback: FOLDER/home/.takeback/workspaces/work-LONG-ID/timeline.db is not a Takeback store
      Move it aside, or choose another folder with --home or TAKEBACK_HOME.
    ");
}

#[test]
fn settings_that_make_no_sense() {
    let user = User::with(&[("a", "1"), (".takeback/settings.json", "{ nonsense")]);
    let answer = user.takeback(&["checkpoint"]);
    assert_eq!(answer.code, 2);
    insta::assert_snapshot!(answer.err, @r"
    takeback: FOLDER/work/.takeback/settings.json is not valid: key must be a string at line 1 column 3
      Mend it or move it aside.
    ");
}

#[test]
fn errors_are_json_when_asked() {
    let user = User::new();
    let answer = user.takeback(&["log", "--json"]);
    assert_eq!((answer.code, answer.out.as_str()), (10, ""));
    insta::assert_snapshot!(answer.err, @r#"
    {"code":10,"error":"FOLDER/work is not protected","hints":["`takeback run -- CMD` or `takeback checkpoint` protects this folder."]}
    "#);
}

#[test]
fn a_reader_that_goes_away_is_no_error() {
    let user = User::with(&[("a", "1")]);
    for n in 0..30 {
        user.takeback(&["checkpoint", &format!("point number {n}")]);
    }
    let line = format!("{} log -n 1000 | head -n 1", env!("CARGO_BIN_EXE_takeback"));
    let output = std::process::Command::new("sh")
        .args(["-c", &line])
        .current_dir(user.work())
        .env("HOME", user.home())
        .output()
        .expect("it runs");
    assert!(output.stderr.is_empty(), "{}", String::from_utf8_lossy(&output.stderr));
}

#[test]
fn what_a_rewind_left_that_never_began_is_cleared_by_the_next_command() {
    let user = User::with(&[("a", "1")]);
    user.takeback(&["checkpoint"]);
    user.write(".takeback/stage-00000000000000ff/new-0", "made for nothing");
    assert_eq!(user.takeback(&["status"]).code, 0);
    assert!(!user.exists(".takeback"));
}
