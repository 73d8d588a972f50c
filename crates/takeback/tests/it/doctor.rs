//! `doctor`: hooks in a settings file are not enough; they must run.

use std::fs;
use std::os::unix::fs::symlink;
use std::path::PathBuf;
use std::process::{Command, Output};
use std::time::Duration;

use serde_json::{Value, json};
use takeback_testkit::model::{Answer, Block, ModelServer};

use crate::chat::claude::setup;
use crate::init::{bin, exits, program, takeback, with_agents};
use crate::user::{User, column};

#[test]
fn each_state_has_its_message() {
    let user = with_agents(&[("claude", "2.1.325 (Claude Code)")]);
    let mut told = String::new();
    let mut doctor = |title: &str| {
        let answer = takeback(&user, &["doctor"]);
        told.push_str(&format!("{title}: {}\n{}", answer.code, answer.out));
    };
    doctor("nothing done");
    exits(&user, 0, &["init", "-y"]);
    doctor("hooks put in");
    let settings = user.home().join(".claude/settings.json");
    let text = fs::read_to_string(&settings).expect("settings");
    fs::write(&settings, text.replacen("\"Stop\"", "\"Halt\"", 1)).expect("settings");
    doctor("one is missing");
    fs::write(&settings, text.replace(env!("CARGO_BIN_EXE_takeback"), "/gone/takeback"))
        .expect("settings");
    doctor("the program is gone");
    fs::write(&settings, "{ no").expect("settings");
    doctor("no settings");
    fs::write(&settings, &text).expect("settings");
    let prompt = r#"{"session_id":"s1","cwd":"/nowhere/at/all","hook_event_name":"SessionStart"}"#;
    let mut hook = user.command(&["hook", "--agent", "claude"]);
    hook.env("PATH", "/usr/bin:/bin");
    assert_eq!(user.answer_of(hook, prompt).code, 0);
    doctor("one ran");
    insta::assert_snapshot!(without_sizes(&told), @"
    nothing done: 0
    takeback 0.1.0
    ! Claude Code 2.1.325: no hooks
        `takeback init` installs them.
    hooks put in: 0
    takeback 0.1.0
    ✓ Claude Code 2.1.325: hooks in ~/.claude/settings.json, no session since they were installed
    ✓ ~/.takeback: SIZE in 0 workspaces
    one is missing: 0
    takeback 0.1.0
    ! Claude Code 2.1.325: 10 of 11 hooks in ~/.claude/settings.json
        `takeback init` completes them.
    ✓ ~/.takeback: SIZE in 0 workspaces
    the program is gone: 1
    takeback 0.1.0
    ✗ Claude Code 2.1.325: the hooks in ~/.claude/settings.json run /gone/takeback, which does not
      exist
        `takeback init` fixes them.
    ✓ ~/.takeback: SIZE in 0 workspaces
    no settings: 0
    takeback 0.1.0
    ! Claude Code 2.1.325: ~/.claude/settings.json cannot be read: line 1, column 3: Expected string
      for object property
        Fix the file.
    ✓ ~/.takeback: SIZE in 0 workspaces
    one ran: 0
    takeback 0.1.0
    ! Claude Code 2.1.325: hooks ran just now (1 in session s1); problem in session s1 just now: /
      cannot be protected: it is the whole file system; choose a project's folder
    ✓ ~/.takeback: SIZE in 0 workspaces
    ");
}

/// The length of the temporary folder's name, and so the size, differs between systems.
fn without_sizes(told: &str) -> String {
    let line = |line: &str| match line.split_once("~/.takeback: ") {
        Some((before, after)) if after.ends_with("in 0 workspaces") => {
            format!("{before}~/.takeback: SIZE in 0 workspaces\n")
        }
        _ => format!("{line}\n"),
    };
    told.lines().map(line).collect()
}

/// Writes the heartbeat of a Claude Code session of this age.
fn leave_trace(user: &User, session: &str, age: Duration, problem: Option<&str>) {
    let folder = user.home().join(".takeback/hooks/claude");
    fs::create_dir_all(&folder).expect("a folder");
    let now = std::time::SystemTime::now().duration_since(std::time::UNIX_EPOCH).expect("a time");
    let at = (now - age).as_millis();
    let beat = serde_json::json!({
        "agent": "claude", "session": session, "root": null, "firstAt": at, "lastAt": at,
        "events": {"Stop": 1}, "recorded": 0,
        "problem": problem.map(|what| serde_json::json!({"at": at, "what": what})),
        "learnt": null, "version": "0.1.0",
    });
    fs::write(folder.join(format!("{session}.json")), beat.to_string()).expect("a trace");
}

#[test]
fn recent_problems_of_every_session_are_reported() {
    const HOUR: Duration = Duration::from_secs(60 * 60);
    let user = with_agents(&[("claude", "2.1.325 (Claude Code)")]);
    exits(&user, 0, &["init", "-y"]);
    let mut told = String::new();
    let mut doctor = |title: &str| {
        let agent = crate::init::json(&user, &["doctor"])["agents"][0].clone();
        let text = |value: &Value| value.as_str().unwrap_or("none").to_owned();
        let (health, what) = (text(&agent["health"]), text(&agent["what"]));
        let fired = text(&agent["fired"]["session"]);
        told.push_str(&format!("{title}: {health}, fired {fired}\n  {what}\n"));
    };
    leave_trace(&user, "old", 24 * 8 * HOUR, Some("long ago"));
    doctor("more than a week ago");
    leave_trace(&user, "not-understood", 3 * HOUR, Some("no session_id in it"));
    doctor("an unknown event");
    leave_trace(&user, "fine", HOUR, None);
    doctor("and a session that went well");
    leave_trace(&user, "bad", 2 * HOUR, Some("the disk is full"));
    doctor("and one that did not");
    insta::assert_snapshot!(told, @"
    more than a week ago: good, fired old
      Claude Code 2.1.325: hooks ran 8 days ago (1 in session old)
    an unknown event: warning, fired old
      Claude Code 2.1.325: hooks ran 8 days ago (1 in session old); an event could not be parsed 3 h ago: no session_id in it
    and a session that went well: warning, fired fine
      Claude Code 2.1.325: hooks ran 1 h ago (1 in session fine); an event could not be parsed 3 h ago: no session_id in it
    and one that did not: warning, fired fine
      Claude Code 2.1.325: hooks ran 1 h ago (1 in session fine); problem in session bad 2 h ago: the disk is full (1 more in the last week)
    ");
}

#[test]
fn only_regular_files_are_read() {
    let user = with_agents(&[("claude", "2.1.325 (Claude Code)")]);
    exits(&user, 0, &["init", "-y"]);
    let pipe = |path: std::path::PathBuf| {
        fs::create_dir_all(path.parent().expect("a folder")).expect("a folder");
        assert!(Command::new("mkfifo").arg(path).status().expect("it runs").success());
    };
    // All other files that `doctor` reads.
    pipe(user.work().join(".claude/settings.local.json"));
    pipe(user.home().join(".claude/projects/-work/s.jsonl"));
    let answer = takeback(&user, &["doctor"]);
    assert!(answer.out.contains("no session since they were installed"), "{answer:?}");
    pipe(user.work().join(".claude/settings.json"));
    let answer = takeback(&user, &["doctor"]);
    let what = "work/.claude/settings.json cannot be read: it is not a regular file";
    let out = answer.unwrapped();
    assert!(out.contains("! Claude Code") && out.contains(what), "{answer:?}");
}

#[test]
fn a_session_without_a_heartbeat_is_found() {
    let user = with_agents(&[("claude", "2.1.325 (Claude Code)")]);
    exits(&user, 0, &["init", "-y"]);
    let project = user.home().join(".claude/projects/-work");
    fs::create_dir_all(&project).expect("a folder");
    let line = r#"{"type":"user","sessionId":"s2","timestamp":"2999-01-01T00:00:00.000Z"}"#;
    fs::write(project.join("s2.jsonl"), line).expect("a transcript");
    let answer = exits(&user, 1, &["doctor"]);
    assert!(answer.out.contains("hooks did not run in session s2"), "{answer:?}");
    let settings = user.home().join(".claude/settings.json");
    let later = std::time::SystemTime::now() + Duration::from_secs(60);
    let file = fs::File::options().append(true).open(settings).expect("settings");
    file.set_modified(later).expect("a time is set");
    let answer = takeback(&user, &["doctor"]);
    assert_eq!(answer.code, 0, "it may have been fixed since: {answer:?}");
    assert!(answer.out.contains("changed since"), "{answer:?}");
    let old = line.replace("2999", "1999");
    fs::write(project.join("s2.jsonl"), old).expect("a transcript");
    assert_eq!(takeback(&user, &["doctor"]).code, 0, "it began before the hooks were there");
}

#[test]
fn untrusted_hooks_are_reported() {
    let user = with_agents(&[("codex", "codex-cli 0.166.0"), ("copilot", "1.0.102")]);
    exits(&user, 0, &["init", "-y", "--agent", "codex"]);
    let project = ["init", "-y", "--agent", "copilot", "--scope", "project"];
    exits(&user, 0, &project);
    let mut told = String::new();
    let mut doctor = |title: &str| {
        let answer = takeback(&user, &["doctor", "--json"]);
        let value: Value = serde_json::from_str(&answer.out).expect("JSON");
        told.push_str(&format!("{title}: {}\n", answer.code));
        let agents = value["agents"].as_array().expect("a list").iter();
        for agent in agents.filter(|agent| agent["health"] != "none") {
            let text = |key: &str| agent[key].as_str().expect("text").to_owned();
            told.push_str(&format!("  {}: {}\n", text("health"), text("what")));
            let next = agent["next"].as_array().expect("a list").iter().filter_map(Value::as_str);
            next.for_each(|next| told.push_str(&format!("    {next}\n")));
        }
    };
    doctor("nothing is trusted");
    let day = user.home().join(".codex/sessions/2999/01/01");
    fs::create_dir_all(&day).expect("folders");
    let line =
        r#"{"timestamp":"2999-01-01T00:00:00Z","type":"session_meta","payload":{"id":"c1"}}"#;
    fs::write(day.join("rollout-c1.jsonl"), line).expect("a record");
    let session = user.home().join(".copilot/session-state/p1");
    fs::create_dir_all(&session).expect("folders");
    let line =
        r#"{"type":"session.start","data":{"sessionId":"p1","startTime":"2999-01-01T00:00:00Z"}}"#;
    fs::write(session.join("events.jsonl"), line).expect("a record");
    doctor("sessions without a sign of life");
    let folder = user.work().canonicalize().expect("it is there");
    let config = format!("// written by Copilot CLI\n{{\"trustedFolders\":[{folder:?}]}}");
    fs::write(user.home().join(".copilot/config.json"), config).expect("a file");
    fs::remove_dir_all(session).expect("it goes");
    doctor("the folder is trusted");
    insta::assert_snapshot!(told, @"
    nothing is trusted: 0
      warning: Codex 0.166.0: hooks in ~/.codex/hooks.json will not run: 8 of 8 hooks not trusted
        Start `codex`, enter /hooks and press t.
      warning: Copilot CLI 1.0.102: hooks in FOLDER/work/.github/hooks/takeback.json will not run: Copilot CLI does not trust this folder and ignores its hooks
        Start `copilot` there and trust the folder, or use `takeback init` without --scope project.
    sessions without a sign of life: 1
      broken: Codex 0.166.0: hooks did not run in session c1 (just now): 8 of 8 hooks not trusted
        Start `codex`, enter /hooks and press t.
      broken: Copilot CLI 1.0.102: hooks did not run in session p1 (just now): Copilot CLI does not trust this folder and ignores its hooks
        Start `copilot` there and trust the folder, or use `takeback init` without --scope project.
    the folder is trusted: 1
      broken: Codex 0.166.0: hooks did not run in session c1 (just now): 8 of 8 hooks not trusted
        Start `codex`, enter /hooks and press t.
      good: Copilot CLI 1.0.102: hooks in FOLDER/work/.github/hooks/takeback.json, no session since they were installed
    ");
}

/// The real Claude Code, with Takeback's hooks installed.
struct RealClaude {
    user: User,
    model: ModelServer,
    program: PathBuf,
}

impl RealClaude {
    /// `None` if it is not installed.
    fn with_hooks() -> Option<Self> {
        let program = setup::program()?;
        let user = User::with(&[("a.txt", "1\n")]);
        let claude = Self { user, model: ModelServer::start(), program };
        assert_eq!(claude.takeback(&["init", "-y", "--agent", "claude"]).code, 0);
        Some(claude)
    }

    fn takeback(&self, args: &[&str]) -> crate::user::Answer {
        let mut command = self.user.command(args);
        command.envs(setup::environment(&self.user, &self.model.url()));
        self.user.answer_of(command, "")
    }

    /// The exit code of `doctor`, and what it says about Claude Code.
    fn doctor(&self) -> (i32, Value) {
        let answer = self.takeback(&["doctor", "--json"]);
        let value: Value = serde_json::from_str(&answer.out).expect("JSON");
        (answer.code, value["agents"][0].clone())
    }

    fn prompt(&self, text: &str) -> Output {
        self.model.answer(Answer::Says(vec![Block::text("done")]));
        let mut command = Command::new(&self.program);
        command.args(["-p", text]).current_dir(self.user.work()).env_clear();
        command.env("HOME", self.user.home());
        command.env("PATH", std::env::var_os("PATH").unwrap_or_default());
        command.envs(setup::environment(&self.user, &self.model.url()));
        self.user.output_of(command)
    }
}

#[test]
fn the_real_program_shows_whether_hooks_run() {
    let Some(claude) = RealClaude::with_hooks() else { return };
    let (code, told) = claude.doctor();
    assert_eq!((code, &told["fired"]), (0, &Value::Null), "{told}");
    assert!(claude.prompt("first").status.success());
    let (code, told) = claude.doctor();
    assert_eq!((code, &told["health"]), (0, &"good".into()), "{told}");
    assert_eq!(told["fired"]["session"], told["lastSession"]["session"], "{told}");
    assert_eq!(told["fired"]["problem"], Value::Null, "{told}");
    assert!(told["fired"]["recorded"].as_u64() > Some(0), "{told}");
    let settings = setup::config(&claude.user).join("settings.json");
    let text = fs::read_to_string(&settings).expect("settings");
    let off = text.replacen('{', "{\n  \"disableAllHooks\": true,", 1);
    fs::write(&settings, off).expect("settings");
    // File times advance in ticks that may be longer than all of this takes.
    std::thread::sleep(Duration::from_millis(20));
    assert!(claude.prompt("second").status.success());
    let (code, told) = claude.doctor();
    assert_eq!((code, &told["health"]), (1, &"broken".into()), "{told}");
    assert!(told["what"].as_str().expect("text").contains("disableAllHooks"), "{told}");
    assert_ne!(told["fired"]["session"], told["lastSession"]["session"], "{told}");
}

#[test]
fn hooks_that_run_an_older_takeback_are_found() {
    let user = with_agents(&[("claude", "2")]);
    symlink(env!("CARGO_BIN_EXE_takeback"), bin(&user).join("takeback")).expect("a link");
    exits(&user, 0, &["init", "-y"]);
    let settings = fs::read_to_string(user.home().join(".claude/settings.json")).expect("settings");
    assert!(settings.contains("\"takeback hook --agent claude\""), "by its name: {settings}");
    exits(&user, 0, &["doctor"]);
    for (version, code) in [("takeback 0.0.1", 1), ("takeback 99.0.0", 0), ("none", 0)] {
        fs::remove_file(bin(&user).join("takeback")).expect("it goes");
        program(&user, "takeback", &format!("#!/bin/sh\necho '{version}'\n"));
        let answer = takeback(&user, &["doctor"]);
        assert_eq!(answer.code, code, "{version}: {answer:?}");
        let out = answer.unwrapped();
        let what = "Claude Code 2: the hooks in ~/.claude/settings.json run ~/bin/takeback, which is \
            takeback 0.0.1, older than this one (0.1.0)";
        assert_eq!(out.contains(what), code == 1, "{version}: {out}");
    }
    fs::remove_file(bin(&user).join("takeback")).expect("it goes");
    let answer = takeback(&user, &["doctor"]);
    assert_eq!(answer.code, 1, "not on PATH at all: {answer:?}");
    assert!(answer.out.contains("run takeback, which does not exist"), "{answer:?}");
}

#[test]
fn hooks_that_ran_with_an_older_takeback_are_found() {
    let user = with_agents(&[("claude", "2")]);
    exits(&user, 0, &["init", "-y"]);
    let folder = user.home().join(".takeback/hooks/claude");
    fs::create_dir_all(&folder).expect("a folder");
    for (last, code) in [(1_000, 0), (32_472_144_000_000_i64, 1)] {
        let beat = json!({
            "agent": "claude", "session": "s", "roots": [], "firstAt": 1_000, "lastAt": last,
            "events": {"Stop": 1}, "recorded": 1, "problem": null, "learnt": null, "version": "0.0.1",
        });
        fs::write(folder.join("0123456789abcdef.json"), beat.to_string()).expect("a file");
        let answer = takeback(&user, &["doctor"]);
        assert_eq!(answer.code, code, "{answer:?}");
        assert_eq!(answer.out.contains("with takeback 0.0.1, older"), code == 1, "{answer:?}");
    }
}

/// The version of an agent that hangs is left out, and its process is ended.
#[test]
fn agents_are_asked_in_parallel_with_a_time_limit() {
    let user = with_agents(&[("claude", "2")]);
    for agent in ["codex", "gemini", "qwen"] {
        program(&user, agent, "#!/bin/sh\necho $$ > \"$0.pid\"\nexec sleep 1000\n");
    }
    let mut command = user.command(&["doctor", "--json"]);
    command.env("PATH", format!("{}:/usr/bin:/bin", bin(&user).display()));
    command.env("TAKEBACK_VERSION_PATIENCE_MS", "3000");
    let answer = user.answer_of(command, "");
    let value: Value = serde_json::from_str(&answer.out).expect("JSON");
    let versions = column(&value["agents"], "version");
    assert_eq!(versions[..4], [json!("2"), Value::Null, Value::Null, Value::Null]);
    for agent in ["codex", "gemini", "qwen"] {
        let pid = fs::read_to_string(bin(&user).join(format!("{agent}.pid"))).expect("it began");
        let gone = !std::path::Path::new("/proc").join(pid.trim()).exists();
        assert!(gone, "{agent} is left behind");
    }
}

/// The real program ignores a whole settings file that is not plain JSON.
#[test]
fn the_real_program_refuses_the_settings_that_doctor_reports() {
    let Some(claude) = RealClaude::with_hooks() else { return };
    let settings = setup::config(&claude.user).join("settings.json");
    let plain = fs::read_to_string(&settings).expect("settings");
    let end = plain.trim_end().strip_suffix('}').expect("an object").trim_end();
    let changed = [
        ("as it is", plain.clone(), true),
        ("a comment", format!("// mine\n{plain}"), false),
        ("a block", plain.replacen('{', "{ /* mine */", 1), false),
        ("a byte order mark", format!("\u{feff}{plain}"), true),
        ("a comma too many", format!("{end},\n}}\n"), false),
    ];
    for (title, text, is_read) in changed {
        fs::write(&settings, &text).expect("settings");
        drop(fs::remove_dir_all(claude.user.home().join(".takeback/hooks")));
        let output = claude.prompt("go");
        let ran = claude.user.home().join(".takeback/hooks/claude").exists();
        assert_eq!(ran, is_read, "{title}: {output:?}");
        let (code, told) = claude.doctor();
        assert_eq!(code, i32::from(!is_read), "{title}: {told}");
        let is_reported = told["what"].to_string().contains("; Claude Code ignores the whole file");
        assert_eq!(is_reported, !is_read, "{title}: {told}");
    }
}
