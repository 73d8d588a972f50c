use crate::home::User;

#[test]
fn events_are_answered_line_by_line() {
    let user = User::with(&[("a.txt", "one\n")]);
    let events = [
        r#"{"event":"session_start","session":"s1","agent":"mine"}"#,
        r#"{"event":"prompt","session":"s1","message":"m1","text":"Change\nit"}"#,
        r#"{"event":"before_tool","session":"s1","call":"c1","tool":"Edit","paths":["a.txt"]}"#,
        r#"{"event":"after_tool","session":"s1","call":"c1","ok":true}"#,
        "not json",
        r#"{"event":"dance"}"#,
        r#"{"event":"turn_end","session":"s1"}"#,
        r#"{"event":"session_end","session":"s1"}"#,
    ];
    let answer = user.fed(&["record"], &events.join("\n"));
    insta::assert_snapshot!(answer.out, @r#"
    {"event":"session_start","notCaptured":[],"ok":true,"point":null,"seq":0}
    {"event":"prompt","notCaptured":[],"ok":true,"point":"LONG-ID","seq":1}
    {"event":"before_tool","notCaptured":[],"ok":true,"point":null,"seq":1}
    {"event":"after_tool","notCaptured":[],"ok":true,"point":null,"seq":1}
    {"error":"not an event: expected ident at line 1 column 2","ok":false}
    {"error":"not an event: unknown variant `dance`, expected one of `session_start`, `prompt`, `before_tool`, `after_tool`, `turn_end`, `session_end`, `step` at line 1 column 16","ok":false}
    {"event":"turn_end","notCaptured":[],"ok":true,"point":null,"seq":1}
    {"event":"session_end","notCaptured":[],"ok":true,"point":null,"seq":1}
    "#);
    assert_eq!(answer.code, 1, "some lines were no events");
    let point = &user.json(&["log"])[0];
    assert_eq!(
        (point["description"].as_str(), point["session"].as_str()),
        (Some("Change it"), Some("s1"))
    );
    assert_eq!(point["messageIds"], serde_json::json!(["m1"]));
    for name in ["m1", "s1:m1"] {
        assert_eq!(user.takeback(&["show", name]).code, 0, "{name}");
    }
}

#[test]
fn an_edit_told_from_outside_is_taken_back_from_outside() {
    let user = User::with(&[("a.txt", "one\n")]);
    let before = r#"{"event":"prompt","session":"s","text":"go"}
{"event":"before_tool","session":"s","call":"c","tool":"Write","paths":["a.txt","sub/b.txt"]}"#;
    assert_eq!(user.fed(&["record"], before).code, 0);
    user.write("a.txt", "two\n");
    user.write("sub/b.txt", "b\n");
    let after = r#"{"event":"after_tool","session":"s","call":"c"}
{"event":"turn_end","session":"s"}"#;
    assert_eq!(user.fed(&["record"], after).code, 0);
    let answer = user.takeback(&["rewind", "@", "-y"]);
    insta::assert_snapshot!(answer.out, @r"
    Rewind to ID “go” (just now)

      restored  a.txt
      deleted   sub/  and 1 in it

    1 restored, 2 deleted
    Done and checked on disk. `takeback undo` takes it back.
    ");
    assert!(!user.exists("sub"));
}

#[test]
fn reading_is_no_news_and_leaves_your_saves_yours() {
    let user = User::with(&[("a.txt", "one\n")]);
    let before = r#"{"event":"prompt","session":"s","text":"go"}
{"event":"before_tool","session":"s","call":"r","tool":"Read"}"#;
    assert_eq!(user.fed(&["record"], before).code, 0);
    user.write("a.txt", "mine\n");
    let after = r#"{"event":"after_tool","session":"s","call":"r","tool":"Read"}
{"event":"turn_end","session":"s"}"#;
    assert_eq!(user.fed(&["record"], after).code, 0);
    assert_eq!(user.json(&["show", "@"])["changes"][0]["author"]["kind"], "human");
}
