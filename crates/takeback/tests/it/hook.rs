//! `takeback hook`, with payloads as the agents send them.

#![expect(clippy::unwrap_used, reason = "a test that cannot continue panics")]

use std::fs;
use std::process::{Command, Stdio};

use serde_json::{Value, json};

use crate::user::{Answer, QUIET, User, path_text};

/// A hook payload of session `s` in the user's folder, with these fields besides or instead.
pub(crate) fn payload(user: &User, event: &str, more: &Value) -> String {
    merged(json!({"session_id": "s", "cwd": user.work(), "hook_event_name": event}), more)
        .to_string()
}

fn merged(mut object: Value, more: &Value) -> Value {
    object.as_object_mut().unwrap().extend(more.as_object().unwrap().clone());
    object
}

/// The fields of a call that writes a file.
pub(crate) fn write_tool(user: &User, call: &str, path: &str, text: &str) -> Value {
    let input = json!({"file_path": user.work().join(path), "content": text});
    json!({"tool_name": "Write", "tool_input": input, "tool_use_id": call})
}

/// A session of Claude Code, reported by its hooks.
pub(crate) struct Session<'u> {
    user: &'u User,
    id: &'static str,
    cwd: String,
    prompts: usize,
}

impl<'u> Session<'u> {
    pub(crate) fn of(user: &'u User, id: &'static str) -> Self {
        Self { user, id, cwd: user.work().display().to_string(), prompts: 0 }
    }

    fn below(mut self, folder: &str) -> Self {
        self.cwd = self.user.work().join(folder).display().to_string();
        self
    }

    pub(crate) fn payload(&self, event: &str, more: &Value) -> Value {
        let payload = json!({
            "session_id": self.id,
            "transcript_path": self.user.home().join("transcript.jsonl"),
            "cwd": self.cwd,
            "prompt_id": format!("{}-prompt-{}", self.id, self.prompts),
            "hook_event_name": event,
        });
        merged(payload, more)
    }

    /// Runs the hook.
    pub(crate) fn run(&self, event: &str, more: &Value) -> Answer {
        hook(self.user, &self.payload(event, more))
    }

    /// Runs the hook, which must print nothing.
    #[track_caller]
    pub(crate) fn send(&self, event: &str, more: &Value) {
        assert_eq!(self.run(event, more), QUIET, "{event}");
    }

    pub(crate) fn prompt(&mut self, text: &str) {
        assert_eq!(self.submit(text), QUIET, "{text}");
    }

    /// Submits a prompt, whose hook may answer.
    pub(crate) fn submit(&mut self, text: &str) -> Answer {
        self.prompts += 1;
        self.run("UserPromptSubmit", &json!({"prompt": text}))
    }

    pub(crate) fn around(&self, call: &str, tool: &str, input: &Value, work: impl FnOnce()) {
        let call = json!({"tool_name": tool, "tool_input": input, "tool_use_id": call});
        self.send("PreToolUse", &call);
        work();
        self.send("PostToolUse", &call);
    }

    pub(crate) fn write(&self, call: &str, path: &str, text: &str) {
        let call = write_tool(self.user, call, path, text);
        self.send("PreToolUse", &call);
        self.user.write(path, text);
        self.send("PostToolUse", &call);
    }

    pub(crate) fn bash(&self, call: &str, command: &str) {
        self.around(call, "Bash", &json!({"command": command}), || {
            let status = Command::new("sh").arg("-c").arg(command).current_dir(&self.cwd).status();
            assert!(status.unwrap().success());
        });
    }

    pub(crate) fn stop(&self) {
        self.send("Stop", &json!({"stop_hook_active": false}));
    }
}

fn hook(user: &User, payload: &Value) -> Answer {
    user.answer_of(user.patient_command(&["hook", "--agent", "claude"]), &payload.to_string())
}

fn heartbeat(user: &User) -> Value {
    let mut beats = heartbeats(user);
    beats.retain(|beat| beat["session"] != "not-understood");
    assert_eq!(beats.len(), 1, "there is one session: {beats:?}");
    beats.remove(0)
}

fn heartbeats(user: &User) -> Vec<Value> {
    let files = fs::read_dir(user.home().join(".takeback/hooks/claude")).unwrap();
    let files = files.map(|file| file.unwrap().path());
    let files = files.filter(|file| file.extension().is_some_and(|end| end == "json"));
    files.map(|file| serde_json::from_slice(&fs::read(file).unwrap()).unwrap()).collect()
}

/// The paths that changed after a point, with their authors as `show` prints them.
fn authors(user: &User, point: &str) -> Vec<(String, String)> {
    let text = |value: &Value| value.as_str().unwrap_or_default().to_owned();
    let shown = user.json(&["show", point]);
    let changes = shown["changes"].as_array().unwrap_or_else(|| panic!("{shown}")).iter();
    changes.map(|change| (text(&change["filePath"]), change["author"].to_string())).collect()
}

#[test]
fn a_session_reported_by_hooks_is_taken_back_and_yours_stays() {
    let user = User::with(&[("a.txt", "one\n"), ("gone.txt", "here\n"), ("mine.txt", "mine\n")]);
    let mut session = Session::of(&user, "s");
    session.send("SessionStart", &json!({"source": "startup"}));
    let before = user.tree();
    session.prompt("first");
    session.write("c1", "a.txt", "two\n");
    session.bash("c2", "rm gone.txt; echo made > made.txt");
    session.stop();
    user.write("mine.txt", "mine, and more\n");
    session.prompt("second");
    session.write("c3", "sub/b.txt", "b\n");
    session.stop();
    let whose = |author: &str| author.contains("\"s\"");
    for (path, author) in authors(&user, "@~1") {
        assert_eq!(whose(&author), path != "mine.txt", "{path}: {author}");
    }
    user.succeeds(&["rewind", "s-prompt-1", "-y"]);
    let mut expected = before;
    let mine = expected.get_mut(std::path::Path::new("mine.txt")).unwrap();
    if let takeback_testkit::Thing::File { bytes, .. } = mine {
        *bytes = b"mine, and more\n".to_vec();
    }
    assert_eq!(user.tree(), expected);
    let beat = heartbeat(&user);
    assert_eq!(beat["events"]["PreToolUse"], 3);
    assert_eq!((&beat["recorded"], &beat["problem"]), (&json!(11), &Value::Null));
}

#[test]
fn no_payload_stops_the_agent_or_prints_anything() {
    let user = User::with(&[("a.txt", "one\n")]);
    let session = Session::of(&user, "s");
    for payload in ["", "{", "[]", "{\"hook_event_name\":\"Stop\"}", "\u{0}"] {
        assert_eq!(user.feed(&["hook", "--agent", "claude"], payload), QUIET, "{payload:?}");
    }
    assert_eq!(user.feed(&["hook", "--agent", "nobody"], "{}"), QUIET);
    let log = fs::read_to_string(user.home().join(".takeback/logs/hooks.log")).unwrap();
    assert_eq!(log.lines().count(), 6, "{log}");
    let lost = heartbeats(&user).into_iter().find(|beat| beat["session"] == "not-understood");
    assert!(lost.unwrap()["problem"]["what"].as_str().unwrap().contains("cannot parse"), "{log}");
    assert!(log.contains("nobody: unknown agent; known agents: claude, codex"), "{log}");
    for args in [&["hook"][..], &["hook", "--agent"], &["hook", "--unknown"]] {
        let answer = user.feed(args, "{}");
        assert_eq!((answer.code, answer.out.as_str()), (0, ""), "{args:?}");
    }
    // A folder that cannot be protected.
    let mut at_home = session.payload("UserPromptSubmit", &json!({"prompt": "x"}));
    at_home["cwd"] = json!(user.home());
    assert_eq!(hook(&user, &at_home), QUIET);
    let problem = heartbeat(&user)["problem"]["what"].to_string();
    assert!(problem.contains("it is your home folder"), "{problem}");
    // A damaged store.
    session.send("SessionStart", &json!({"source": "startup"}));
    fs::write(user.store().join("timeline.db"), "no database, only text of some length").unwrap();
    session.send("UserPromptSubmit", &json!({"prompt": "x"}));
    let problem = heartbeat(&user)["problem"]["what"].to_string();
    assert!(problem.contains("timeline.db"), "{problem}");
}

#[test]
fn a_session_below_the_root_and_after_a_change_of_folder_is_in_the_same_log() {
    let user = User::with(&[("a.txt", "one\n"), ("sub/deep/b.txt", "b\n"), (".git/HEAD", "x\n")]);
    user.write("sub/nested/.git/HEAD", "x\n");
    let mut session = Session::of(&user, "s").below("sub");
    session.prompt("go");
    session.cwd = user.work().join("sub/nested").display().to_string();
    session.bash("c1", "echo made > made.txt; echo two > ../../a.txt");
    // Relative paths start in the agent's current folder.
    let input = json!({"file_path": "../deep/b.txt", "content": "c"});
    session.around("c2", "Write", &input, || user.write("sub/deep/b.txt", "c"));
    session.stop();
    let paths: Vec<String> = authors(&user, "@").into_iter().map(|(path, _)| path).collect();
    assert_eq!(paths, ["a.txt", "sub/nested/made.txt", "sub/deep/b.txt"]);
    assert_eq!(heartbeat(&user)["roots"], json!([user.work().canonicalize().unwrap()]));
}

#[test]
fn a_worktree_inside_a_workspace_is_its_own_workspace() {
    let user = User::with(&[("a.txt", "one\n")]);
    let git = |args: &[&str]| {
        let mut command = Command::new("git");
        command.args(["-c", "user.name=n", "-c", "user.email=e"]).args(args);
        command.current_dir(user.work()).env("HOME", user.home()).stdout(Stdio::null());
        assert!(command.stderr(Stdio::null()).status().unwrap().success());
    };
    git(&["init"]);
    user.write(".gitignore", "trees/\n");
    git(&["add", "."]);
    git(&["commit", "-m", "x"]);
    git(&["worktree", "add", "trees/t"]);
    let mut session = Session::of(&user, "s");
    session.prompt("go");
    session.bash("c1", "echo outer > outer.txt");
    let mut inside = Session::of(&user, "s").below("trees/t");
    inside.prompts = 1;
    inside.bash("c2", "echo inner > inner.txt; rm a.txt");
    inside.stop();
    // A session that started in one and ended in the other has ended in both.
    user.write("mine.txt", "mine");
    user.write("trees/t/mine.txt", "mine");
    let tree = &path_text(&user.work().join("trees/t"));
    user.succeeds(&["-C", tree, "rewind", "@", "-y"]);
    assert!(!user.exists("trees/t/inner.txt") && user.exists("outer.txt"));
    assert_eq!(user.read("trees/t/a.txt"), "one\n");
    user.succeeds(&["rewind", "@", "-y"]);
    assert!(!user.exists("outer.txt") && user.exists("mine.txt"));
    assert!(user.exists("trees/t/mine.txt"));
}

#[test]
fn an_agent_that_changes_folders_stays_in_its_workspace() {
    let user = User::with(&[("proj/a.txt", "one\n"), ("proj/.git/HEAD", "x\n"), ("other/b", "b")]);
    let mut session = Session::of(&user, "s").below("proj");
    session.prompt("go");
    session.cwd = user.work().display().to_string();
    session.bash("c1", "echo two > proj/a.txt");
    session.cwd = "/".to_owned();
    session.write("c2", "proj/new.txt", "n");
    // Named edits elsewhere are recorded, too.
    session.write("c3", "other/b", "c");
    session.stop();
    let proj = &path_text(&user.work().join("proj"));
    user.succeeds(&["-C", proj, "rewind", "@", "--outside", "-y"]);
    assert_eq!((user.read("proj/a.txt"), user.read("other/b")), ("one\n".into(), "b".into()));
    assert!(!user.exists("proj/new.txt"));
    let workspaces = user.json(&["workspaces"]);
    assert_eq!(workspaces.as_array().unwrap().len(), 1, "{workspaces}");
}

#[test]
fn an_unpaired_surrogate_loses_nothing_else() {
    let user = User::with(&[("a.txt", "one\n")]);
    let mut session = Session::of(&user, "s");
    session.prompt("go");
    let call = write_tool(&user, "c1", "a.txt", "HALF");
    for event in ["PreToolUse", "PostToolUse"] {
        let payload = session.payload(event, &call).to_string().replace("HALF", "\\ud83d");
        let command = user.patient_command(&["hook", "--agent", "claude"]);
        assert_eq!(user.answer_of(command, &payload).code, 0);
        user.write("a.txt", "two \u{fffd}");
    }
    session.stop();
    user.succeeds(&["rewind", "@", "-y"]);
    assert_eq!(user.read("a.txt"), "one\n");
}

#[test]
fn parallel_sessions_have_separate_changes() {
    const EACH: usize = 5;
    let user = User::with(&[("a.txt", "one\n")]);
    std::thread::scope(|scope| {
        for id in ["s1", "s2", "s3"] {
            let user = &user;
            scope.spawn(move || {
                let mut session = Session::of(user, id);
                session.prompt("go");
                for n in 0..EACH {
                    session.write(&format!("{id}-c{n}"), &format!("{id}/{n}.txt"), id);
                }
                session.stop();
            });
        }
    });
    let answer = user.succeeds(&["rewind", "s2:s2-prompt-1", "-y"]);
    let there = ["s1", "s2", "s3"].map(|id| user.exists(&format!("{id}/4.txt")));
    assert_eq!(there, [true, false, true], "{answer:?}");
    user.succeeds(&["verify"]);
}

#[test]
fn subagents_belong_to_the_session() {
    let user = User::with(&[("a.txt", "one\n")]);
    let mut session = Session::of(&user, "s");
    session.prompt("go");
    let part = json!({"agent_id": "p1", "agent_type": "general-purpose"});
    session.send("SubagentStart", &part);
    let call = merged(write_tool(&user, "c1", "p.txt", "p"), &part);
    session.send("PreToolUse", &call);
    user.write("p.txt", "p");
    session.send("PostToolUse", &call);
    session.send("SubagentStop", &part);
    session.stop();
    let authors = authors(&user, "@");
    assert!(authors[0].1.contains("s/p1"), "{authors:?}");
    assert_eq!(user.json(&["log"]).as_array().unwrap().len(), 1, "one prompt, one point");
    user.succeeds(&["rewind", "@", "-y"]);
    assert!(!user.exists("p.txt"));
}

#[test]
fn an_event_past_its_deadline_waits_and_is_marked() {
    let user = User::with(&[("a.txt", "one\n")]);
    let mut session = Session::of(&user, "s");
    session.prompt("go");
    let call = write_tool(&user, "c1", "a.txt", "two");
    let mut late = user.command(&["hook", "--agent", "claude"]);
    late.env("TAKEBACK_HOOK_DEADLINE_MS", "0");
    let answer = user.answer_of(late, &session.payload("PreToolUse", &call).to_string());
    assert_eq!(answer, QUIET);
    let problem = heartbeat(&user)["problem"]["what"].to_string();
    assert!(problem.contains("it is in the inbox"), "{problem}");
    user.write("a.txt", "two\n");
    session.send("PostToolUse", &call);
    session.stop();
    user.exits(4, &["rewind", "@", "-y"]).prints("missing   a.txt");
    assert_eq!(user.read("a.txt"), "two\n");
}

#[test]
fn a_background_command_ends_with_its_notification() {
    let user = User::with(&[("a.txt", "one\n")]);
    let mut session = Session::of(&user, "s");
    session.prompt("go");
    let call = json!({
        "tool_name": "Bash", "tool_input": {"command": "server &"}, "tool_use_id": "c1",
        "tool_response": {"backgroundTaskId": "b1"},
    });
    session.send("PreToolUse", &call);
    session.send("PostToolUse", &call);
    user.write("served.txt", "1");
    let notification = |call: &str| {
        let prompt = format!(
            "<task-notification>\n<task-id>b1</task-id>\n<tool-use-id>{call}</tool-use-id>\n\
             <status>completed</status>\n</task-notification>"
        );
        session.send("UserPromptSubmit", &json!({"prompt": prompt}));
    };
    // A subagent's task, whose call is unknown.
    notification("c0");
    notification("c1");
    user.write("mine.txt", "1");
    session.stop();
    let authors = authors(&user, "@");
    assert_eq!(authors.len(), 2, "{authors:?}");
    assert!(authors.iter().any(|(path, author)| path == "served.txt" && author.contains("\"s\"")));
    assert!(authors.iter().any(|(path, author)| path == "mine.txt" && author.contains("human")));
    assert_eq!(user.json(&["log"]).as_array().unwrap().len(), 1, "no client asked for anything");
}

#[test]
fn hooks_under_run_only_show_that_they_work() {
    let user = User::with(&[("a.txt", "one\n")]);
    let session = Session::of(&user, "s");
    let payload = session.payload("UserPromptSubmit", &json!({"prompt": "x"})).to_string();
    let inner = format!("echo '{payload}' | \"$0\" hook --agent claude");
    let program = env!("CARGO_BIN_EXE_takeback");
    user.succeeds(&["run", "--", "sh", "-c", &inner, program]);
    assert_eq!(user.json(&["sessions"]).as_array().unwrap().len(), 1);
    assert_eq!(heartbeat(&user)["events"], json!({"UserPromptSubmit": 1}));
}

#[test]
fn a_long_running_program_sends_hook_events_to_the_server() {
    let user = User::with(&[("a.txt", "one\n")]);
    let mut session = Session::of(&user, "s");
    session.prompts = 1;
    let call = write_tool(&user, "c1", "new.txt", "n");
    let ask = |id: u32, agent: &str, payload: Value| {
        let params = json!({"agent": agent, "payload": payload, "pid": std::process::id()});
        json!({"jsonrpc": "2.0", "id": id, "method": "event:hook", "params": params}).to_string()
    };
    let lines = [
        ask(1, "claude", session.payload("UserPromptSubmit", &json!({"prompt": "go"}))),
        ask(2, "claude", session.payload("PreToolUse", &call)),
        ask(3, "claude", json!({"hook_event_name": "Stop"})),
        ask(4, "nobody", json!({})),
    ];
    // The server's own environment says nothing about its clients.
    let mut serve = user.patient_command(&["serve", "--stdio"]);
    serve.env("TAKEBACK_SESSION", "another");
    let answer = user.answer_of(serve, &(lines.join("\n") + "\n"));
    let answers: Vec<Value> =
        answer.out.lines().map(|line| serde_json::from_str(line).unwrap()).collect();
    assert_eq!(answers[0]["result"], json!({"ok": true}), "{answer:?}");
    assert_eq!(answers[1]["result"], json!({"ok": true}), "{answer:?}");
    let refused = answers[2]["result"]["error"].as_str().unwrap();
    assert!(refused.contains("session_id"), "{refused}");
    assert_eq!(answers[3]["error"]["message"], "unknown agent nobody");
    user.write("new.txt", "n");
    session.stop();
    user.succeeds(&["rewind", "@", "-y"]);
    assert!(!user.exists("new.txt"));
    assert_eq!(heartbeat(&user)["events"]["PreToolUse"], 1);
}

#[test]
fn a_conversation_belongs_to_the_process_that_continues_it() {
    let user = User::with(&[("a.txt", "one\n")]);
    let mut session = Session::of(&user, "s");
    session.prompts = 1;
    let call = write_tool(&user, "c1", "a.txt", "two\n");
    let tell = |pid: u32, event: &str, more: Value| {
        let params =
            json!({"agent": "claude", "payload": session.payload(event, &more), "pid": pid});
        let call = json!({"jsonrpc": "2.0", "id": 1, "method": "event:hook", "params": params});
        let answer =
            user.answer_of(user.patient_command(&["serve", "--stdio"]), &format!("{call}\n"));
        assert!(answer.out.contains(r#""ok":true"#), "{answer:?}");
    };
    let mut first = Command::new("sleep").arg("60").spawn().unwrap();
    tell(first.id(), "UserPromptSubmit", json!({"prompt": "go"}));
    first.kill().unwrap();
    first.wait().unwrap();
    tell(std::process::id(), "PreToolUse", call.clone());
    user.write("a.txt", "two\n");
    tell(std::process::id(), "PostToolUse", call);
    let answer = user.takeback(&["rewind", "@", "-y"]);
    assert_eq!((answer.code, user.read("a.txt").as_str()), (0, "one\n"), "{answer:?}");
}

#[test]
fn a_preview_says_what_was_formatted_after_the_edit() {
    let formats = json!({"hooks": {"PostToolUse": [{"matcher": "Write",
        "hooks": [{"type": "command", "command": "npx prettier --write ."}]}]}});
    let user = User::with(&[("a.js", "one\n"), ("b.js", "one\n")]);
    user.write(".claude/settings.json", &formats.to_string());
    let mut session = Session::of(&user, "s");
    session.send("SessionStart", &json!({"source": "startup"}));
    session.prompt("go");
    session.write("c1", "a.js", "two\n");
    session.write("c2", "b.js", "two\n");
    user.write("b.js", "two;\n");
    session.bash("c3", "echo made > made.js");
    session.stop();
    let shown = |flags: &[&str]| {
        let answer = user.succeeds(&[&["rewind", "@", "--dry-run"], flags].concat());
        answer.out.split_once("\n\n").unwrap().1.to_owned()
    };
    insta::assert_snapshot!(shown(&[]), @r"
      restore   a.js
      restore   b.js     formatted right after the edit
      delete    made.js  did not exist then

    made.js changed while `echo made > made.js` ran; may include yours.

    2 to restore, 1 to delete
    ");
    insta::assert_snapshot!(shown(&["-v"]), @r"
      restore   a.js     evidence: named
      restore   b.js     evidence: after edit
      delete    made.js  did not exist then; evidence: window

    made.js changed while `echo made > made.js` ran; may include yours.

    2 to restore, 1 to delete
    ");
}

#[test]
fn the_model_is_read_from_the_transcript_when_the_answer_is_complete() {
    let user = User::with(&[("a.txt", "")]);
    let mut session = Session::of(&user, "s");
    let answer = |model: &str| {
        let message = json!({"model": model, "content": [{"type": "text", "text": "done"}]});
        format!("{}\n", json!({"type": "assistant", "message": message}))
    };
    let transcript = user.home().join("transcript.jsonl");
    for (prompt, model, text) in
        [("first", "claude-opus-5-5", "one\n"), ("second", "claude-haiku-5", "one\ntwo\n")]
    {
        session.prompt(prompt);
        session.write(prompt, "a.txt", text);
        let mut all = fs::read_to_string(&transcript).unwrap_or_default();
        all.push_str(&answer(model));
        fs::write(&transcript, all).unwrap();
        session.stop();
    }
    let models = |answer: Value| -> Vec<Value> {
        answer.as_array().unwrap().iter().map(|one| one["model"].clone()).collect()
    };
    assert_eq!(models(user.json(&["blame", "a.txt"])), ["claude-opus-5-5", "claude-haiku-5"]);
    assert_eq!(models(user.json(&["sessions"])), ["claude-haiku-5"]);
    let stats = user.json(&["stats"]);
    assert_eq!(models(stats["models"].clone()), ["claude-haiku-5", "claude-opus-5-5"]);
    assert_eq!(models(stats["sessions"].clone()), ["claude-haiku-5"]);
    assert_eq!(user.json(&["show", "@"])["model"], "claude-haiku-5");
    user.succeeds(&["stats"]).prints("claude-opus-5-5");
}
