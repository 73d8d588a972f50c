//! How a conversation is cut and copied, from recorded transcripts.

use std::fs;
use std::path::{Path, PathBuf};

use serde_json::{Value, json};
use takeback_agents::{ConversationCopy, CopyExtent, Cut, PointPrompt, agent_named};

const THREAD: &str = "01a1e143-f71b-7033-9b5a-1d57bbee37d5";
const TURNS: [&str; 2] =
    ["01a1e143-f734-7d72-a5c0-e35cb73cc426", "01a1e143-fa8e-7d93-bdf2-e5a91542f605"];

fn tests() -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("tests")
}

fn home(agent: &str) -> PathBuf {
    match agent {
        "codex" => tests().join("it/recorded/codex"),
        _ => tests().join("claude/recorded/history/2.1.325"),
    }
}

fn find_cut(agent: &str, session: &str, message: &str) -> Option<Cut> {
    find_cut_at(&home(agent), agent, session, message)
}

fn find_cut_at(home: &Path, agent: &str, session: &str, message: &str) -> Option<Cut> {
    let message_ids = &[message.to_owned()];
    let text = "a prompt\nof two lines";
    let cut = agent_named(agent).expect("it is known").cut?;
    cut(home, PointPrompt { session, message_ids, text }).expect("it can be read")
}

#[test]
fn a_codex_thread_is_forked_after_the_previous_turn() {
    let cut = find_cut("codex", THREAD, TURNS[1]).expect("the second turn");
    let resume = format!(
        "`codex resume {THREAD}`, then Esc while nothing is typed, back to “a prompt…”, Enter"
    );
    let params = json!({ "threadId": THREAD, "lastTurnId": TURNS[0] });
    let fork = cut.how[1].strip_prefix("its app server forks it without a model: thread/fork ");
    let given: Value = serde_json::from_str(fork.expect("the method")).expect("JSON");
    assert_eq!(given, params);
    let (session, message_id) = (THREAD.to_owned(), TURNS[1].to_owned());
    let how = vec![resume, cut.how[1].clone()];
    assert_eq!(
        cut,
        Cut { agent: "codex", title: "Codex", session, message_id, how, command: None }
    );
    let first = find_cut("codex", THREAD, TURNS[0]).expect("the first turn");
    assert_eq!(first.how[1], "the conversation began with that prompt: `codex` starts a new one");
}

#[test]
fn unknown_sessions_and_messages_have_no_cut() {
    assert_eq!(find_cut("codex", THREAD, "another"), None);
    assert_eq!(find_cut("codex", "another", TURNS[0]), None);
    assert_eq!(find_cut("codex", "../../..", TURNS[0]), None);
    assert_eq!(find_cut("gemini", THREAD, TURNS[0]), None);
    assert_eq!(find_cut("claude", THREAD, TURNS[0]), None);
    for agent in ["claude", "codex"] {
        assert_eq!(find_cut_at(Path::new("/nowhere"), agent, THREAD, TURNS[0]), None);
    }
}

/// The longer of the two recorded sessions: its id and its lines.
fn recorded() -> (String, Vec<Value>) {
    let folder = home("claude").join("projects/-home-user-project");
    let files = fs::read_dir(folder).expect("transcripts").map(|file| file.expect("a name").path());
    let file = files.max_by_key(|file| fs::metadata(file).expect("a file").len()).expect("one");
    let name = file.file_stem().expect("a name").to_str().expect("text").to_owned();
    let text = fs::read_to_string(file).expect("text");
    (name, text.lines().map(|line| serde_json::from_str(line).expect("JSON")).collect())
}

fn prompts(lines: &[Value]) -> Vec<&Value> {
    let said = |line: &&Value| line["type"] == "user" && line.get("toolUseResult").is_none();
    lines.iter().filter(said).collect()
}

fn word(value: &Value) -> &str {
    value.as_str().expect("text")
}

#[test]
fn a_claude_conversation_is_cut_before_the_prompt() {
    let (session, lines) = recorded();
    let prompts = prompts(&lines);
    assert_eq!(prompts.len(), 4);
    for prompt in &prompts[1..] {
        // By the message's id, and by the id that hooks receive.
        for id in [&prompt["uuid"], &prompt["promptId"]] {
            let cut = find_cut("claude", &session, word(id)).expect("it continues");
            let before = word(&prompt["parentUuid"]);
            let command =
                format!("claude -p --resume {session} --resume-session-at {before} --fork-session");
            assert_eq!(cut.command, Some(command));
            assert_eq!(cut.message_id, word(&prompt["uuid"]));
        }
    }
    assert_eq!(
        find_cut("claude", &session, word(&prompts[0]["uuid"])).map(|cut| cut.command),
        Some(None)
    );
}

#[test]
fn a_prompt_that_was_cut_already_has_no_cut() {
    let (session, mut lines) = recorded();
    let (second, third) = {
        let prompts = prompts(&lines);
        (prompts[1].clone(), word(&prompts[2]["uuid"]).to_owned())
    };
    // The program rewound to before the second prompt and got another one.
    let mut another = second.clone();
    another["uuid"] = json!("00000000-0000-4000-8000-000000000001");
    lines.push(another);
    let folder = tempfile::tempdir().expect("a folder");
    let project = folder.path().join("projects/p");
    fs::create_dir_all(&project).expect("a folder");
    let text: Vec<String> = lines.iter().map(Value::to_string).collect();
    fs::write(project.join(format!("{session}.jsonl")), text.join("\n")).expect("a file");
    for gone in [word(&second["uuid"]), &third] {
        assert_eq!(find_cut_at(folder.path(), "claude", &session, gone), None, "{gone}");
    }
    let first = word(&prompts(&lines)[0]["uuid"]).to_owned();
    assert!(
        find_cut_at(folder.path(), "claude", &session, &first).is_some(),
        "it continues after the first"
    );
}

fn find_copy(home: &Path, agent: &str, extent: CopyExtent<'_>) -> Option<ConversationCopy> {
    let copy = agent_named(agent).expect("it is known").copy?;
    copy(home, extent).expect("it can be read")
}

fn find_copy_before(agent: &str, session: &str, message: &str) -> Option<ConversationCopy> {
    let message_ids = &[message.to_owned()];
    let prompt = PointPrompt { session, message_ids, text: "a prompt" };
    find_copy(&home(agent), agent, CopyExtent::Before(prompt))
}

#[test]
fn a_codex_thread_is_copied_whole_or_up_to_a_turn() {
    let copy = find_copy_before("codex", THREAD, TURNS[1]).expect("the second turn");
    let expected = ConversationCopy {
        agent: "codex",
        title: "Codex",
        session: THREAD.to_owned(),
        command: format!("codex fork -C . {THREAD}"),
        keys: Some("Esc while nothing is typed, back to “a prompt”, Enter".to_owned()),
        headless: None,
    };
    assert_eq!(copy, expected);
    let whole = find_copy(&home("codex"), "codex", CopyExtent::Whole(THREAD));
    let headless = Some(format!("codex exec fork --skip-git-repo-check {THREAD}"));
    assert_eq!(whole, Some(ConversationCopy { keys: None, headless, ..expected }));
    assert_eq!(find_copy_before("codex", THREAD, TURNS[0]), None, "nothing was said before");
}

#[test]
fn a_claude_session_is_copied_whole_or_up_to_a_prompt() {
    let (session, lines) = recorded();
    let prompts = prompts(&lines);
    let before = word(&prompts[1]["parentUuid"]);
    let copy = find_copy_before("claude", &session, word(&prompts[1]["promptId"]));
    let expected = ConversationCopy {
        agent: "claude",
        title: "Claude Code",
        session: session.clone(),
        command: format!("claude --resume {session} --fork-session"),
        keys: Some("Esc Esc, “a prompt”, Restore conversation".to_owned()),
        headless: Some(format!(
            "claude -p --resume {session} --resume-session-at {before} --fork-session"
        )),
    };
    assert_eq!(copy.as_ref(), Some(&expected));
    let whole = find_copy(&home("claude"), "claude", CopyExtent::Whole(&session));
    let headless = Some(format!("claude -p --resume {session} --fork-session"));
    assert_eq!(whole, Some(ConversationCopy { keys: None, headless, ..expected }));
    assert_eq!(find_copy_before("claude", &session, word(&prompts[0]["uuid"])), None);
}

#[test]
fn a_pi_session_is_copied_only_whole() {
    let folder = tempfile::tempdir().expect("a folder");
    let sessions = folder.path().join("sessions/--work--");
    fs::create_dir_all(&sessions).expect("a folder");
    fs::write(sessions.join("2026-11-20T01-25-17-852Z_one.jsonl"), "").expect("a file");
    let copy = |extent| find_copy(folder.path(), "pi", extent);
    let found = copy(CopyExtent::Whole("one")).expect("it is there");
    assert_eq!((found.command.as_str(), found.keys), ("pi --fork one", None));
    assert_eq!(copy(CopyExtent::Whole("another")), None);
    let prompt = PointPrompt { session: "one", message_ids: &[], text: "a prompt" };
    assert_eq!(copy(CopyExtent::Before(prompt)), None);
}

#[test]
fn conversations_that_are_not_kept_have_no_copy() {
    for agent in ["claude", "codex", "pi", "gemini", "qwen", "opencode", "copilot"] {
        for session in [THREAD, "../../.."] {
            let copy = find_copy(Path::new("/nowhere"), agent, CopyExtent::Whole(session));
            assert_eq!(copy, None, "{agent}");
        }
    }
}
