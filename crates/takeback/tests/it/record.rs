use std::io::{BufRead as _, BufReader, Write as _};
use std::process::{Child, ChildStdin, ChildStdout, Command, Stdio};

use serde_json::{Value, json};

use crate::user::User;

/// A running `takeback record`.
pub(crate) struct Recorder {
    child: Child,
    input: ChildStdin,
    answers: BufReader<ChildStdout>,
}

impl Recorder {
    pub(crate) fn start(user: &User, args: &[&str]) -> Self {
        let mut command = user.command(&[&["record"], args].concat());
        let mut child =
            command.stdin(Stdio::piped()).stdout(Stdio::piped()).spawn().expect("it starts");
        let input = child.stdin.take().expect("it is piped");
        let answers = BufReader::new(child.stdout.take().expect("it is piped"));
        Self { child, input, answers }
    }

    /// Sends an event; its answer.
    pub(crate) fn send(&mut self, event: &Value) -> Value {
        writeln!(self.input, "{event}").expect("it listens");
        let mut line = String::new();
        self.answers.read_line(&mut line).expect("it answers");
        serde_json::from_str(&line).expect("JSON")
    }

    pub(crate) fn record(&mut self, event: &Value) {
        let answer = self.send(event);
        assert_eq!(answer["ok"], true, "{event}: {answer}");
    }

    /// A shell command of the agent, with the events before and after `work`.
    pub(crate) fn shell(&mut self, session: &str, call: &str, work: impl FnOnce()) {
        self.record(&before(session, call));
        work();
        self.record(&json!({ "event": "after_tool", "session": session, "call": call }));
    }

    /// Closes its input; the exit code.
    pub(crate) fn close(mut self) -> i32 {
        drop(self.input);
        self.child.wait().expect("it ends").code().expect("by itself")
    }

    pub(crate) fn kill(mut self) {
        self.child.kill().expect("it runs");
        self.child.wait().expect("it ends");
    }
}

/// Announces a command.
pub(crate) fn before(session: &str, call: &str) -> Value {
    json!({ "event": "before_tool", "session": session, "call": call, "tool": "Bash", "shell": "make" })
}

/// A process that does nothing until it is killed.
pub(crate) struct Agent(Child);

impl Agent {
    pub(crate) fn start() -> Self {
        Self(Command::new("sleep").arg("600").spawn().expect("it starts"))
    }

    pub(crate) fn pid(&self) -> u32 {
        self.0.id()
    }

    pub(crate) fn kill(mut self) {
        self.end();
    }

    fn end(&mut self) {
        self.0.kill().expect("it can be killed");
        self.0.wait().expect("it ends");
    }
}

impl Drop for Agent {
    fn drop(&mut self) {
        self.end();
    }
}

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
    let answer = user.feed(&["record"], &events.join("\n"));
    insta::assert_snapshot!(answer.out, @r#"
    {"ok":true,"event":"session_start","seq":0,"point":null,"notCaptured":[]}
    {"ok":true,"event":"prompt","seq":1,"point":"LONG-ID","notCaptured":[]}
    {"ok":true,"event":"before_tool","seq":1,"point":null,"notCaptured":[],"checkpoint":"LONG-ID","checkpoints":[{"id":"LONG-ID","filePath":"a.txt"}]}
    {"ok":true,"event":"after_tool","seq":1,"point":null,"notCaptured":[]}
    {"ok":false,"error":"not an event: expected ident at line 1 column 2"}
    {"ok":false,"error":"not an event: unknown variant `dance`, expected one of `session_start`, `prompt`, `before_tool`, `after_tool`, `turn_end`, `session_end`, `step` at line 1 column 16"}
    {"ok":true,"event":"turn_end","seq":1,"point":null,"notCaptured":[]}
    {"ok":true,"event":"session_end","seq":1,"point":null,"notCaptured":[]}
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
fn a_line_that_cannot_be_right_is_refused_with_what_is_wrong() {
    let user = User::with(&[("a.txt", "one\n")]);
    let events = [
        r#"{"event":"session_start","session":"s","cwd":"/somewhere"}"#,
        r#"{"event":"prompt","session":"s","txt":"Change it"}"#,
        r#"{"event":"prompt","session":"s","text":"Change it"}"#,
        r#"{"event":"before_tool","session":"s","call":"c1","tool":"Edit","path":"a.txt"}"#,
        r#"{"event":"before_tool","session":"s","call":"c1","tool":"Edit"}"#,
        r#"{"event":"before_tool","session":"s","call":"c1","tool":"Edit","paths":[]}"#,
        r#"{"event":"before_tool","session":"s","call":"c1","tool":"Edit","shell":true}"#,
        r#"{"event":"after_tool","session":"s","call":"c2","ok":true}"#,
        r#"{"event":"after_tool","session":"s","call":"c1","ok":true,"colour":"red"}"#,
        r#"{"event":"after_tool","session":"s","call":"c1","ok":true}"#,
        r#"{"event":"after_tool","session":"s","call":"r","tool":"Read"}"#,
    ];
    let answer = user.feed(&["record"], &events.join("\n"));
    insta::assert_snapshot!(answer.out, @r#"
    {"ok":true,"event":"session_start","seq":0,"point":null,"notCaptured":[]}
    {"ok":false,"event":"prompt","error":"prompt has no field \"txt\"; did you mean text?"}
    {"ok":true,"event":"prompt","seq":1,"point":"LONG-ID","notCaptured":[]}
    {"ok":false,"event":"before_tool","error":"before_tool has no field \"path\"; did you mean paths?"}
    {"ok":false,"event":"before_tool","error":"Edit edits files: name its `paths`, or set `shell` if it may write anything"}
    {"ok":false,"event":"before_tool","error":"Edit edits files: name its `paths`, or set `shell` if it may write anything"}
    {"ok":true,"event":"before_tool","seq":1,"point":null,"notCaptured":[],"checkpoint":null,"checkpoints":[]}
    {"ok":false,"event":"after_tool","error":"no before_tool of the call \"c2\" in session \"s\" is recorded; what changed since is unclear"}
    {"ok":false,"event":"after_tool","error":"after_tool has no field \"colour\"; its fields are session, call, ok, background, interrupted, rejected, duration_ms, tool"}
    {"ok":true,"event":"after_tool","seq":1,"point":null,"notCaptured":[]}
    {"ok":true,"event":"after_tool","seq":1,"point":null,"notCaptured":[]}
    "#);
    assert_eq!(answer.code, 1);
    let point = user.json(&["show", "@"]);
    assert_eq!(point["calls"].as_array().map(Vec::len), Some(1), "{point}");
}

#[test]
fn what_changed_in_an_unopened_call_is_unclear() {
    let user = User::with(&[("a.txt", "one\n")]);
    user.record(r#"{"event":"prompt","session":"s","text":"go"}"#);
    user.write("a.txt", "two\n");
    let end = r#"{"event":"after_tool","session":"s","call":"c","ok":true}"#;
    let answer = user.feed(&["record"], end);
    assert_eq!(answer.code, 1, "{answer:?}");
    let changes = &user.json(&["show", "@"])["changes"];
    assert_eq!(changes[0]["author"]["kind"], "ambiguous", "{changes}");
}

#[test]
fn a_recorded_edit_is_taken_back() {
    let user = User::with(&[("a.txt", "one\n")]);
    let before = r#"{"event":"prompt","session":"s","text":"go"}
{"event":"before_tool","session":"s","call":"c","tool":"Write","paths":["a.txt","sub/b.txt"]}"#;
    user.record(before);
    user.write("a.txt", "two\n");
    user.write("sub/b.txt", "b\n");
    let after = r#"{"event":"after_tool","session":"s","call":"c"}
{"event":"turn_end","session":"s"}"#;
    user.record(after);
    let answer = user.takeback(&["rewind", "@", "-y"]);
    insta::assert_snapshot!(answer.out, @r"
    Rewind to ID “go” (just now)

      restored  a.txt
      deleted   sub/  and 1 in it

    1 restored, 2 deleted
    Done and verified on disk. `takeback undo` takes it back.
    ");
    assert!(!user.exists("sub"));
}

#[test]
fn a_read_only_tool_leaves_your_changes_yours() {
    let user = User::with(&[("a.txt", "one\n")]);
    let before = r#"{"event":"prompt","session":"s","text":"go"}
{"event":"before_tool","session":"s","call":"r","tool":"Read"}"#;
    user.record(before);
    user.write("a.txt", "mine\n");
    let after = r#"{"event":"after_tool","session":"s","call":"r","tool":"Read"}
{"event":"turn_end","session":"s"}"#;
    user.record(after);
    assert_eq!(user.json(&["show", "@"])["changes"][0]["author"]["kind"], "human");
}

/// The paths that changed after the newest point, with their authors.
fn authors(user: &User) -> Vec<(String, String)> {
    let shown = user.json(&["show", "@"]);
    let changes = shown["changes"].as_array().expect("changes").iter();
    let text = |value: &Value| value.as_str().expect("a text").to_owned();
    changes.map(|one| (text(&one["filePath"]), text(&one["author"]["kind"]))).collect()
}

fn open_calls(user: &User) -> Value {
    user.json(&["status"])["openCalls"].clone()
}

#[test]
fn the_end_of_the_input_ends_the_calls_that_were_opened_through_it() {
    let user = User::with(&[("a.txt", "one\n")]);
    let mut elsewhere = Recorder::start(&user, &[]);
    elsewhere.record(&json!({ "event": "prompt", "session": "s", "text": "go" }));
    let mut recorder = Recorder::start(&user, &[]);
    recorder.record(&json!({ "event": "prompt", "session": "t", "text": "go" }));
    recorder.record(&before("t", "c1"));
    user.write("a.txt", "half\n");
    assert_eq!(open_calls(&user), json!(1));
    assert_eq!(recorder.close(), 0);
    assert_eq!(open_calls(&user), json!(0));
    let turns = user.json(&["sessions"]);
    let at_work = |id: &str| {
        let one = turns.as_array().expect("a list").iter().find(|one| one["id"] == id);
        one.expect("it is listed")["atWork"].clone()
    };
    assert_eq!((at_work("t"), at_work("s")), (json!(false), json!(true)));
    user.write("b.txt", "mine\n");
    assert_eq!(elsewhere.close(), 0);
    user.takeback(&["status"]);
    let is = |path: &str, kind: &str| (path.to_owned(), kind.to_owned());
    assert_eq!(authors(&user), [is("a.txt", "agent"), is("b.txt", "human")]);
}

#[test]
fn calls_of_the_session_that_others_opened_stay_open_and_so_does_the_background() {
    let user = User::with(&[("a.txt", "one\n")]);
    let mut first = Recorder::start(&user, &[]);
    first.record(&json!({ "event": "prompt", "session": "s", "text": "go" }));
    first.record(&before("s", "server"));
    first.record(
        &json!({ "event": "after_tool", "session": "s", "call": "server", "background": true }),
    );
    let mut second = Recorder::start(&user, &[]);
    second.record(&before("s", "elsewhere"));
    first.record(&before("s", "here"));
    assert_eq!(open_calls(&user), json!(3));
    assert_eq!(first.close(), 0);
    assert_eq!(open_calls(&user), json!(2));
    assert_eq!(user.json(&["sessions"])[0]["atWork"], true, "its turn goes on");
    assert_eq!(second.close(), 0);
    assert_eq!(open_calls(&user), json!(1));
}

#[test]
fn a_call_ended_through_another_input_ends_only_then() {
    let user = User::with(&[("a.txt", "one\n")]);
    let mut first = Recorder::start(&user, &[]);
    first.record(&json!({ "event": "prompt", "session": "s", "text": "go" }));
    first.record(&before("s", "c"));
    assert_eq!(first.close(), 0);
    user.write("a.txt", "two\n");
    let mut second = Recorder::start(&user, &[]);
    second.record(&json!({ "event": "after_tool", "session": "s", "call": "c" }));
    assert_eq!(second.close(), 0);
    assert_eq!(authors(&user), [("a.txt".to_owned(), "agent".to_owned())]);
}

/// An agent may start `record` for each event.
#[test]
fn calls_through_separate_inputs_belong_to_one_turn() {
    let user = User::with(&[("a.txt", "one\n")]);
    for call in ["c", "d"] {
        let mut first = Recorder::start(&user, &[]);
        first.record(&before("s", call));
        assert_eq!(first.close(), 0);
        user.write("a.txt", call);
        let mut second = Recorder::start(&user, &[]);
        second.record(&json!({ "event": "after_tool", "session": "s", "call": call }));
        assert_eq!(second.close(), 0);
    }
    assert_eq!(user.json(&["log"]).as_array().map(Vec::len), Some(1));
    let is = |path: &str, kind: &str| (path.to_owned(), kind.to_owned());
    assert_eq!(authors(&user), [is("a.txt", "agent"), is("a.txt", "agent")]);
}

#[test]
fn the_death_of_the_named_process_ends_the_session() {
    let user = User::with(&[("a.txt", "one\n")]);
    for named in ["by the event", "by the option"] {
        let agent = Agent::start();
        let pid = agent.pid().to_string();
        let args = ["--pid", &pid];
        let by_event = named == "by the event";
        let mut recorder = Recorder::start(&user, if by_event { &[] } else { &args });
        if by_event {
            let start = json!({ "event": "session_start", "session": named, "pid": agent.pid() });
            recorder.record(&start);
        }
        recorder.record(&json!({ "event": "prompt", "session": named, "text": "go" }));
        recorder.record(&before(named, "c"));
        recorder.kill();
        user.takeback(&["status"]);
        assert_eq!(open_calls(&user), json!(1), "{named}: it runs");
        agent.kill();
        user.takeback(&["status"]);
        assert_eq!(open_calls(&user), json!(0), "{named}: it is dead");
    }
}

#[test]
fn a_process_that_is_not_running_is_refused() {
    let user = User::with(&[("a.txt", "one\n")]);
    let agent = Agent::start();
    let pid = agent.pid();
    agent.kill();
    let mut recorder = Recorder::start(&user, &[]);
    let answer = recorder.send(&json!({ "event": "session_start", "session": "s", "pid": pid }));
    let error = format!("no process has the id {pid}");
    assert_eq!(answer, json!({ "ok": false, "event": "session_start", "error": error }));
    assert_eq!(recorder.close(), 1);
    let refused = user.feed(&["record", "--pid", &pid.to_string()], "");
    assert_eq!(
        (refused.code, refused.err),
        (2, format!("takeback: {error}\n  --pid must name a running process.\n"))
    );
    assert_eq!(user.json(&["sessions"]), json!([]), "no session was recorded");
}

/// For example `prompt` instead of `text`: the point would have no description.
#[test]
fn a_prompt_without_text_is_refused() {
    let user = User::new();
    let input = [
        json!({"event": "prompt", "session": "s", "prompt": "go"}),
        json!({"event": "prompt", "session": "s", "text": null}),
        json!({"event": "prompt", "session": "s", "text": ""}),
    ];
    let input = input.map(|event| event.to_string()).join("\n");
    let answer = user.feed(&["record"], &input);
    assert_eq!(answer.code, 1);
    let answers: Vec<Value> =
        answer.out.lines().map(|line| serde_json::from_str(line).expect("JSON")).collect();
    assert!(
        answers[0]["error"]
            .as_str()
            .is_some_and(|error| error.contains("its fields are session, message, text"))
    );
    let ok: Vec<&Value> = answers.iter().map(|answer| &answer["ok"]).collect();
    assert_eq!(ok, [false, false, true], "an empty text is a prompt without words: a picture");
    assert_eq!(user.json(&["log"]).as_array().map(Vec::len), Some(1));
}

/// No command could refer to it.
#[test]
fn a_session_without_a_name_is_refused() {
    let user = User::new();
    let told = user.feed(&["record"], r#"{"event":"prompt","session":"","text":"go"}"#);
    assert_eq!(told.code, 1);
    assert!(told.out.contains("`session` is empty"), "{told:?}");
    assert_eq!(user.json(&["sessions"]), json!([]));
}

#[test]
fn a_line_that_is_too_long_is_refused_and_the_next_is_read() {
    let user = User::new();
    let long = "x".repeat((64 << 20) + 1);
    let input = format!(
        "{{\"event\": \"prompt\", \"session\": \"s\", \"text\": \"{long}\"}}\n{}\n",
        json!({"event": "prompt", "session": "s", "text": "go"})
    );
    let answer = user.feed(&["record"], &input);
    assert_eq!(answer.code, 1, "{}", answer.err);
    let answers: Vec<Value> =
        answer.out.lines().map(|line| serde_json::from_str(line).expect("JSON")).collect();
    assert_eq!(answers[0], json!({"ok": false, "error": "the line is longer than 64 MiB"}));
    assert_eq!((answers.len(), &answers[1]["ok"]), (2, &json!(true)));
}
