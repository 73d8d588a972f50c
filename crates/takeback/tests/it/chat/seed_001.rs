//! The scenarios of the design for file checkpoints through the Claude Agent SDK, as a user sees them in the
//! terminal. Those about the list, its file and the agent are in takeback-agents.

use super::messages::{errors_at_start, log_of, program};
use super::sessions::{list, list_file};
use super::two_prompts::{after_two_prompts, after_two_prompts_of, two};
use crate::pty::{ENTER, ESC, Terminal, TerminalOptions};
use crate::user::User;

const VARIABLE: &str = "CLAUDE_CODE_ENABLE_SDK_FILE_CHECKPOINTING";

fn starts(place: &TerminalOptions<'_>) -> Terminal {
    let mut chat = place.start(&["chat", "--agent", "builtin"]);
    chat.sees("builtin");
    chat
}

// 双击 ESC 触发检查点菜单
#[test]
fn pressing_esc_twice_opens_the_checkpoint_menu() {
    let (_user, mut chat) = after_two_prompts();
    chat.types(ESC).types(ESC).sees("Checkpoints").sees("> 0 (current)");
    let shown = chat.shown();
    let at = |what: &str| shown.find(what).unwrap_or_else(|| panic!("no {what:?} in\n{shown}"));
    let newest = at("1 just now   Add multiply and divide functions to utils.ts");
    assert!(newest < at("2 just now   Create a file utils.ts"), "newest first:\n{shown}");
    assert!(at("(current)") < newest);
}

// 用户选择检查点并恢复: 应当在成功时显示绿色成功消息
#[test]
fn choosing_a_checkpoint_restores_it_in_green() {
    let (user, mut chat) = after_two_prompts();
    chat.goes_back_to("1").sees("Restored to checkpoint: Add multiply and divide functions");
    assert_eq!(chat.colour_of("Restored to"), vt100::Color::Idx(2));
    assert_eq!(user.read("utils.ts"), two());
}

// 用户选择检查点并恢复: 应当在失败时显示红色错误消息并记录日志
#[test]
fn a_checkpoint_that_cannot_be_restored_is_red_and_logged() {
    let user = User::with(&[("a.txt", "one\n")]);
    let program = program(&user, "exit 0");
    let mut chat =
        user.terminal(80, 24).start(&["chat", "--agent", "claude", "--program", &program]);
    chat.sees("The agent has exited").says("/checkpoint here").sees("“here”");
    chat.says("/rewind here").sees("esc back").types(ENTER).sees("Restore what?");
    chat.types(ENTER).sees("No active query session. Cannot restore checkpoint.");
    assert_eq!(chat.colour_of("Restore failed: "), vt100::Color::Idx(1));
    let log = log_of(&user);
    let logged = "restore failed: No active query session. Cannot restore checkpoint.";
    assert!(log.lines().any(|line| line.ends_with(logged)), "{log}");
}

// 检查点功能未启用时的提示
#[test]
fn a_message_when_the_checkpoint_feature_is_not_enabled() {
    let user = User::new();
    user.set(r#"{"enableFileCheckpointing": false}"#);
    let mut chat = starts(&user.terminal(80, 24));
    chat.types(ESC).types(ESC).sees("Checkpoint feature not enabled");
    assert_eq!(chat.colour_of("Checkpoint feature"), vt100::Color::Idx(3), "a warning");
    chat.types("no menu").sees("> no menu");
    assert!(!chat.shown().contains("(current)"), "{}", chat.shown());
}

// 无可用检查点时的提示
#[test]
fn a_message_when_there_are_no_checkpoints() {
    let user = User::new();
    let mut chat = starts(&user.terminal(80, 24));
    chat.types(ESC).types(ESC).sees("No checkpoints available");
    assert_eq!(chat.colour_of("No checkpoints"), vt100::Color::Idx(3), "a warning");
    chat.types("no menu").sees("> no menu");
    assert!(!chat.shown().contains("(current)"), "{}", chat.shown());
}

// 加载检查点配置选项
#[test]
fn the_checkpoint_options_are_loaded() {
    let user = User::new();
    let of = |key: &str| {
        let settings = user.json(&["config"]);
        let found = settings.as_array().expect("a list").iter().find(|one| one["key"] == key);
        found.unwrap_or_else(|| panic!("no {key} in {settings}"))["value"].clone()
    };
    assert_eq!(of("enableFileCheckpointing"), true, "by default");
    assert_eq!(of("checkpointKeepCount"), 10, "by default");
    user.set(r#"{"enableFileCheckpointing": false, "checkpointKeepCount": 3}"#);
    assert_eq!(
        (of("enableFileCheckpointing"), of("checkpointKeepCount")),
        (false.into(), 3.into())
    );
    user.write(".takeback/settings.json", r#"{"checkpointKeepCount": 4}"#);
    assert_eq!(of("checkpointKeepCount"), 4, "the folder's own");
}

// 环境变量与配置不一致时的警告
#[test]
fn a_warning_when_the_environment_and_the_settings_differ() {
    let user = User::new();
    user.set(r#"{"enableFileCheckpointing": true}"#);
    assert_eq!(
        errors_at_start(user.terminal(80, 24)),
        "Warning: File checkpointing enabled but environment variable not set\n\
         Set CLAUDE_CODE_ENABLE_SDK_FILE_CHECKPOINTING=1 to enable SDK checkpointing\n"
    );
    assert_eq!(errors_at_start(user.terminal(80, 24).with(VARIABLE, "1")), "");
}

// Application 初始化 CheckpointManager
#[test]
fn the_application_makes_the_list_of_checkpoints_when_a_session_begins() {
    let user = User::new();
    let sessions = user.home().join(".takeback/sessions");
    assert!(!sessions.exists());
    user.set(r#"{"enableFileCheckpointing": true}"#);
    let place = user.terminal(80, 24).with(VARIABLE, "1").errors_to(user.home().join("errors"));
    let chat = starts(&place);
    let errors = std::fs::read_to_string(user.home().join("errors")).expect("it was made");
    assert_eq!(errors, "", "the environment was looked at, and is right");
    let folder = list_file(&user).parent().expect("a folder").to_owned();
    assert!(folder.is_dir() && folder.starts_with(&sessions), "{}", folder.display());
    drop(chat);
}

// RunnerFactory 创建交互式运行器
#[test]
fn the_interactive_session_has_the_list_of_checkpoints_and_no_snapshots() {
    let user = User::with(&[(".claude/snapshots/old.json", "{}\n")]);
    let mut chat = after_two_prompts_of(&user);
    assert_eq!(list(&user)["checkpoints"].as_array().map(Vec::len), Some(2));
    chat.opens_the_menu();
    assert!(!chat.shown().contains("old.json"), "old snapshots are not offered");
    let names = std::fs::read_dir(user.work().join(".claude/snapshots")).expect("it is there");
    assert_eq!(names.count(), 1, "and no new ones made");
}

// InteractiveRunner 依赖 CheckpointManager
#[test]
fn the_interactive_session_rewinds_to_the_checkpoints_it_captured() {
    let (user, mut chat) = after_two_prompts();
    let listed = list(&user);
    let captured = listed["checkpoints"][0]["id"].as_str().expect("an id").to_owned();
    chat.says(&format!("/rewind {captured}")).sees("[x] ").types(ENTER);
    chat.sees("Restore what?").types(ENTER);
    chat.sees("Restored to checkpoint: Add multiply and divide functions");
    assert_eq!((user.read("utils.ts"), user.exists("index.ts")), (two(), false));
}
