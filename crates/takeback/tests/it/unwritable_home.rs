//! A home that is full or read-only: the agent continues, the user gets a message, and the next hook that can
//! record does not assume that the tree is unchanged.

use std::fs;
use std::os::unix::fs::PermissionsExt as _;
use std::path::Path;
use std::process::Command;

use serde_json::{Value, json};

use crate::hook::{self, payload};
use crate::user::{Answer, User, unwrapped};

/// Runs a hook of Claude Code as an unprivileged user.
fn run_hook(user: &User, event: &str, more: &Value) -> Answer {
    run_hook_of(user, "claude", event, more)
}

fn run_hook_of(user: &User, agent: &str, event: &str, more: &Value) -> Answer {
    user.unprivileged_with_input(&["hook", "--agent", agent], &prompt_payload(user, event, more))
}

/// A payload of a hook in the turn `s-prompt`.
fn prompt_payload(user: &User, event: &str, more: &Value) -> String {
    let mut fields = json!({"prompt_id": "s-prompt"});
    fields.as_object_mut().expect("an object").extend(more.as_object().expect("an object").clone());
    payload(user, event, &fields)
}

fn write_tool(user: &User, call: &str, path: &str) -> Value {
    hook::write_tool(user, call, path, "by the agent\n")
}

/// The message of the hook before or after an edit of `a.txt`.
fn hook_message(user: &User, event: &str) -> Option<String> {
    run_hook(user, event, &write_tool(user, "c1", "a.txt")).system_message()
}

/// The message of the hook at the end of the turn.
fn stop_message(user: &User) -> Option<String> {
    run_hook(user, "Stop", &json!({"stop_hook_active": false})).system_message()
}

fn after_a_prompt() -> User {
    let user = User::with(&[("a.txt", "one\n"), ("b.txt", "one\n"), ("mine.txt", "mine\n")]);
    user.drop_privileges();
    let answer = run_hook(&user, "UserPromptSubmit", &json!({"prompt": "go"}));
    assert_eq!((answer.code, answer.out.as_str()), (0, ""), "{answer:?}");
    user
}

/// Makes everything below the home writable or read-only.
fn set_home(user: &User, writable: bool) {
    let home = user.home().join(".takeback");
    let mut chmod = Command::new("chmod");
    chmod.arg("-R").arg(if writable { "u+w" } else { "a-w" }).arg(home);
    assert!(chmod.status().expect("it runs").success());
}

/// The paths that changed after the prompt, with their authors.
fn authors(user: &User) -> Vec<(String, String)> {
    let answer = user.unprivileged(&["show", "s-prompt", "--json"]);
    let shown: Value = serde_json::from_str(&answer.out).expect("JSON");
    let changes = shown["changes"].as_array().unwrap_or_else(|| panic!("{shown}")).iter();
    let text = |value: &Value| value.as_str().unwrap_or_default().to_owned();
    changes.map(|change| (text(&change["filePath"]), change["author"].to_string())).collect()
}

#[test]
fn the_user_gets_one_message_and_the_agent_continues() {
    let user = after_a_prompt();
    set_home(&user, false);
    let told = hook_message(&user, "PreToolUse");
    let told = told.expect("it is told at once");
    assert!(told.starts_with("Takeback could not record this session: "), "{told}");
    assert!(told.contains("cannot be used") && told.contains("Make the store"), "{told}");
    user.write("a.txt", "by the agent\n");
    assert_eq!(hook_message(&user, "PostToolUse"), None);
    let doctor = user.unprivileged_exits(1, &["doctor"]);
    let out = doctor.unwrapped();
    assert!(
        out.contains(
            "✗ nothing can be recorded: ~/.takeback/workspaces/work-LONG-ID cannot be written to: \
             Permission denied"
        ),
        "{out}"
    );
    assert!(out.contains("chmod u+rwX"), "{out}");
    set_home(&user, true);
    let doctor = user.unprivileged(&["doctor"]);
    let out = doctor.unwrapped();
    assert_eq!(doctor.code, 0, "{out}");
    assert!(out.contains("! 2 events of session s could not be recorded by takeback"), "{out}");
    assert_eq!(stop_message(&user), None);
    let doctor = user.unprivileged(&["doctor"]);
    assert!(!doctor.out.contains("could not be recorded by"), "{doctor:?}");
}

/// Other agents would interpret the output of a hook as something else.
#[test]
fn only_agents_that_show_a_message_get_one() {
    let user = after_a_prompt();
    set_home(&user, false);
    for (agent, shows) in [("claude", true), ("gemini", true), ("codex", false), ("qwen", false)] {
        let event = if agent == "gemini" { "BeforeTool" } else { "PreToolUse" };
        let tool = match agent {
            "claude" => write_tool(&user, "c1", "a.txt"),
            "codex" => {
                json!({"tool_name": "Bash", "tool_input": {"command": "make"}, "tool_use_id": "x", "turn_id": "t"})
            }
            _ => {
                json!({"tool_name": "run_shell_command", "tool_input": {"command": "make"}, "tool_use_id": "x"})
            }
        };
        // Otherwise the note about the first message would suppress the second.
        drop(fs::remove_dir_all(user.home().join(".local")));
        let answer = run_hook_of(&user, agent, event, &tool);
        assert_eq!(answer.system_message().is_some(), shows, "{agent}: {answer:?}");
    }
    set_home(&user, true);
}

/// The home is writable again when the next hook of any kind runs.
#[test]
fn missed_changes_are_found_and_unclear() {
    for event in ["PostToolUse", "PreToolUse", "Stop", "UserPromptSubmit"] {
        let more = |user: &User| match event {
            "PostToolUse" => write_tool(user, "c1", "a.txt"),
            "PreToolUse" => write_tool(user, "c9", "b.txt"),
            "Stop" => json!({"stop_hook_active": false}),
            _ => json!({"prompt": "next", "prompt_id": "s-prompt-2"}),
        };
        let user = after_a_prompt();
        set_home(&user, false);
        assert!(hook_message(&user, "PreToolUse").is_some());
        user.write("a.txt", "by the agent\n");
        user.write("new.txt", "by the agent\n");
        if event != "PostToolUse" {
            assert_eq!(hook_message(&user, "PostToolUse"), None);
        }
        set_home(&user, true);
        assert_eq!(run_hook(&user, event, &more(&user)).system_message(), None, "{event}");
        assert_eq!(stop_message(&user), None);
        let found = authors(&user);
        for path in ["a.txt", "new.txt"] {
            let author = &found.iter().find(|(found, _)| found == path).expect("it is found").1;
            assert!(
                author.contains("\"unclear\"") || author.contains("ambiguous"),
                "{event}: {author}"
            );
        }
        let log = fs::read_to_string(user.home().join(".takeback/logs/hooks.log")).expect("a log");
        assert!(log.contains("of session s could not be recorded"), "{event}: {log}");
        let doctor = user.unprivileged(&["doctor", "--json"]);
        assert!(!doctor.out.is_empty());
        // A rewind neither takes it back nor attributes it to the user.
        let rewind = user.unprivileged(&["rewind", "s-prompt", "-y"]);
        assert!(rewind.out.contains("unclear"), "{event}: {rewind:?}");
        assert_eq!(user.read("a.txt"), "by the agent\n");
    }
}

/// The user runs a command before the next hook.
#[test]
fn a_command_does_not_attribute_missed_changes_to_you() {
    for args in [&["checkpoint"][..], &["status"], &["rewind", "s-prompt", "--dry-run"]] {
        let user = after_a_prompt();
        set_home(&user, false);
        assert!(hook_message(&user, "PreToolUse").is_some());
        user.write("a.txt", "by the agent\n");
        set_home(&user, true);
        let answer = user.unprivileged(args);
        let told = unwrapped(&format!("{}{}", answer.out, answer.err));
        assert!(told.contains("1 event of session s could not be recorded"), "{args:?}: {told}");
        let found = authors(&user);
        assert!(
            found.iter().any(|(path, author)| path == "a.txt" && author.contains("ambiguous")),
            "{found:?}"
        );
        assert_eq!(user.unprivileged(&["checkpoint"]).err, "", "it is told once");
    }
}

/// Even without a note, the end of a call shows that its beginning is missing.
#[test]
fn the_end_of_a_call_reveals_a_missing_beginning() {
    let user = after_a_prompt();
    set_home(&user, false);
    let place = user.home().join(".local");
    drop(fs::remove_dir_all(&place));
    fs::write(&place, "no folder\n").expect("a file");
    let none = user.home().join("no-folder");
    fs::write(&none, "no folder\n").expect("a file");
    let ask = |event: &str| {
        let given = write_tool(&user, "c1", "a.txt");
        let mut given = given.as_object().expect("an object").clone();
        given.extend(
            json!({"session_id": "s", "cwd": user.work(), "hook_event_name": event})
                .as_object()
                .expect("an object")
                .clone(),
        );
        user.unprivileged_with(
            &["hook", "--agent", "claude"],
            &Value::Object(given).to_string(),
            &[("TMPDIR", &none)],
        )
    };
    assert!(ask("PreToolUse").system_message().is_some());
    user.write("a.txt", "by the agent\n");
    set_home(&user, true);
    assert_eq!(ask("PostToolUse").system_message(), None);
    let found = authors(&user);
    assert!(
        found.iter().any(|(path, author)| path == "a.txt" && author.contains("ambiguous")),
        "{found:?}"
    );
    let log = fs::read_to_string(user.home().join(".takeback/logs/hooks.log")).expect("a log");
    assert!(log.contains("the beginning of a call (Write) was not recorded"), "{log}");
}

/// The database cannot grow. The first hook reports it at once; `doctor` and `status` try to write.
#[test]
fn a_full_home() {
    let user = User::with(&[("a.txt", "one\n")]);
    let given = |event: &str, more: Value| {
        let mut given = json!({"session_id": "s", "cwd": user.work(), "hook_event_name": event, "prompt_id": "s-prompt"});
        given.as_object_mut().expect("it is").extend(more.as_object().expect("it is").clone());
        given.to_string()
    };
    let args = ["hook", "--agent", "claude"];
    let prompt = given("UserPromptSubmit", json!({"prompt": "go"}));
    assert_eq!(user.answer_of(user.patient_command(&args), &prompt).out, "");
    let before = given("PreToolUse", write_tool(&user, "c1", "a.txt"));
    let answer = user.with_failing_and_input("pwrite64:error=ENOSPC:when=1+", &args, &before);
    let told = answer.system_message().expect("it is told at once");
    assert!(told.contains("full"), "{told}");
    user.write("a.txt", "by the agent\n");
    let after = given("PostToolUse", write_tool(&user, "c1", "a.txt"));
    let answer = user.with_failing_and_input("pwrite64:error=ENOSPC:when=1+", &args, &after);
    assert_eq!(answer.system_message(), None, "once a session");
    for (command, code) in [("doctor", 1), ("status", 0)] {
        let answer = user.with_failing("fdatasync:error=ENOSPC:when=1+", None, &[command]);
        let out = answer.unwrapped();
        assert_eq!(answer.code, code, "{command}: {answer:?}");
        let what = "othing can be recorded: ~/.takeback/workspaces/work-LONG-ID cannot be written \
                    to: No space left on device";
        assert!(
            out.contains(what) && out.contains("Free some space on that disk"),
            "{command}: {out}"
        );
    }
    let status = user.json(&["status"]);
    assert_eq!(status["notWritable"], Value::Null);
    assert!(
        fs::read_dir(user.home().join(".takeback")).expect("it is there").all(|name| !name
            .expect("a name")
            .file_name()
            .to_string_lossy()
            .contains("probe"))
    );
    let mode = fs::metadata(user.home().join(".local/state/takeback"))
        .expect("notes")
        .permissions()
        .mode();
    assert_eq!(mode & 0o777, 0o700);
}

/// Half of a killed rewind does not count as a session's work.
#[test]
fn an_interrupted_rewind_is_finished_before_the_scan() {
    for args in [&["status"][..], &["checkpoint"]] {
        let user = User::with(&[("a.txt", "one\n"), ("b.txt", "one\n"), ("c.txt", "one\n")]);
        let hook = |event: &str, more: Value| {
            let mut given = json!({"session_id": "s", "cwd": user.work(), "hook_event_name": event, "prompt_id": "s-prompt"});
            given.as_object_mut().expect("it is").extend(more.as_object().expect("it is").clone());
            given.to_string()
        };
        let hooks = ["hook", "--agent", "claude"];
        let tell = |given: String| {
            assert_eq!(user.answer_of(user.patient_command(&hooks), &given).out, "");
        };
        tell(hook("UserPromptSubmit", json!({"prompt": "go"})));
        let bash =
            json!({"tool_name": "Bash", "tool_input": {"command": "make"}, "tool_use_id": "c0"});
        tell(hook("PreToolUse", bash.clone()));
        user.write("b.txt", "two\n");
        user.write("c.txt", "two\n");
        tell(hook("PostToolUse", bash));
        let killed =
            user.failing("renameat2:signal=KILL:when=2", None, &["rewind", "s-prompt", "-y"]);
        let killed = user.output_of(killed);
        assert!(!killed.status.success(), "{killed:?}");
        assert_ne!(user.read("b.txt"), user.read("c.txt"), "it is half done");
        let before = hook("PreToolUse", write_tool(&user, "c1", "a.txt"));
        let answer = user.with_failing_and_input("pwrite64:error=ENOSPC:when=1+", &hooks, &before);
        assert!(answer.system_message().is_some());
        user.write("a.txt", "by the agent\n");
        user.succeeds(args);
        assert_eq!(
            (user.read("b.txt"), user.read("c.txt")),
            ("one\n".to_owned(), "one\n".to_owned())
        );
        let shown = user.json(&["show", "s-prompt"]);
        let ambiguous = shown["changes"].as_array().expect("a list").iter();
        let ambiguous = ambiguous.filter(|change| change["author"]["kind"] == "ambiguous");
        let paths: Vec<&str> = ambiguous.filter_map(|change| change["filePath"].as_str()).collect();
        assert_eq!(paths, ["a.txt"], "{args:?}: {shown}");
    }
}

#[test]
fn a_store_that_became_read_only_is_found() {
    let user = after_a_prompt();
    let set = |path: &Path, mode: u32| {
        fs::set_permissions(path, fs::Permissions::from_mode(mode)).expect("a mode is set");
    };
    let database = user.store().join("timeline.db");
    for (path, mode, back) in [(user.store(), 0o500, 0o700), (database, 0o400, 0o600)] {
        set(&path, mode);
        let doctor = user.unprivileged_exits(1, &["doctor"]);
        assert!(doctor.out.contains("nothing can be recorded"), "{doctor:?}");
        set(&path, back);
        user.unprivileged_exits(0, &["doctor"]);
    }
}

/// The same on a disk that really is full, and on a read-only one. It needs a mount of its own, which not
/// every system allows; the tests above need none.
#[test]
fn a_small_disk_that_is_full_and_then_read_only() {
    let user = User::with(&[("a.txt", "one\n")]);
    let script = r#"
        mkdir -p "$HOME/.takeback"
        mount -t tmpfs -o size=4m,mode=700 t "$HOME/.takeback" || exit 77
        hook() { printf '%s' "$1" | "$TAKEBACK" hook --agent claude; }
        hook "$PROMPT"
        head -c 100000 /dev/urandom > big.bin
        cat /dev/zero > "$HOME/.takeback/fill" 2>/dev/null || true
        echo "full:"; hook "$BEFORE"; hook "$AFTER"
        "$TAKEBACK" doctor > doctor.out && exit 70
        grep -q "No space left" doctor.out || exit 71
        rm doctor.out "$HOME/.takeback/fill"
        echo "room:"; hook "$STOP"
        "$TAKEBACK" doctor > ../doctor.out || exit 72
        mount -o remount,ro "$HOME/.takeback"
        echo "read-only:"; hook "$BEFORE"; hook "$AFTER"
        "$TAKEBACK" doctor > ../doctor.out && exit 73
        grep -q "Read-only file system" ../doctor.out || exit 74
        mount -o remount,rw "$HOME/.takeback"
        echo "writable:"; hook "$STOP"
        "$TAKEBACK" doctor > ../doctor.out || exit 75
        cp -r "$HOME/.takeback/logs/hooks.log" ../hooks.log
        "$TAKEBACK" verify > ../verify.out || exit 76
    "#;
    let given = |event: &str, more: Value| {
        let mut given = json!({"session_id": "s", "cwd": user.work(), "hook_event_name": event, "prompt_id": "p"});
        given.as_object_mut().expect("it is").extend(more.as_object().expect("it is").clone());
        given.to_string()
    };
    let tool = json!({"tool_name": "Bash", "tool_input": {"command": "make"}, "tool_use_id": "c"});
    let mut command = Command::new("unshare");
    command.args(["-Urm", "sh", "-ec", script]).current_dir(user.work()).env_clear();
    command.env("PATH", std::env::var_os("PATH").unwrap_or_default()).env("HOME", user.home());
    command.env("TAKEBACK", env!("CARGO_BIN_EXE_takeback"));
    command.env("TAKEBACK_HOOK_DEADLINE_MS", "60000").env("TAKEBACK_SCAN_BUDGET_MS", "60000");
    command.env("PROMPT", given("UserPromptSubmit", json!({"prompt": "go"})));
    command.env("BEFORE", given("PreToolUse", tool.clone()));
    command.env("AFTER", given("PostToolUse", tool));
    command.env("STOP", given("Stop", json!({"stop_hook_active": false})));
    let output = command.output().expect("it runs");
    let (out, err) =
        (String::from_utf8_lossy(&output.stdout), String::from_utf8_lossy(&output.stderr));
    if output.status.code() == Some(77) || err.contains("unshare") {
        eprintln!("skipped: no file system can be mounted here");
        return;
    }
    assert_eq!(output.status.code(), Some(0), "{out}\n{err}");
    let told: Vec<&str> =
        out.lines().map(|line| if line.starts_with('{') { "message" } else { line }).collect();
    assert_eq!(told, ["full:", "message", "room:", "read-only:", "message", "writable:"], "{out}");
    let log = fs::read_to_string(user.work().with_file_name("hooks.log")).expect("a log");
    assert_eq!(log.matches("2 events of session s could not be recorded").count(), 2, "{log}");
}

#[test]
fn a_writable_store_needs_no_writable_parent() {
    let user = User::with(&[("a.txt", "one\n")]);
    user.drop_privileges();
    user.unprivileged_exits(0, &["checkpoint"]);
    let home = user.home().join(".takeback");
    fs::set_permissions(&home, fs::Permissions::from_mode(0o555)).expect("its mode");
    let (status, made) = (user.unprivileged(&["status"]), user.unprivileged(&["checkpoint"]));
    fs::set_permissions(&home, fs::Permissions::from_mode(0o755)).expect("its mode");
    assert!(!status.out.contains("othing can be recorded"), "{status:?}");
    assert_eq!(made.code, 0, "{made:?}");
}
