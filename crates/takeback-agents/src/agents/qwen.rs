//! Qwen Code: its entry in the table of agents.

mod hook;

use crate::hook::additional_context;
use crate::install::{HookFormat, JsonDialect, SettingsFormat, TimeUnit, disable_all_hooks};
use crate::kind::{AgentKind, HomeFolder, HookContext, HooksFile, SessionFiles, SettingsFiles};
use crate::tools::ToolNames;

const NAME: &str = "qwen";

const HOME: HomeFolder = HomeFolder { variable: None, subfolder: "", default: ".qwen" };

/// Qwen Code. Its transcript is not read: a call begins after the permission, and hooks report every end.
pub static QWEN: AgentKind = AgentKind {
    name: NAME,
    title: "Qwen Code",
    program: "qwen",
    home: HOME,
    hooks_file: HooksFile { user: "settings.json", project: ".qwen/settings.json" },
    hooks: hook::HOOKS,
    install: HookFormat::Settings(SettingsFormat {
        dialect: JsonDialect { trailing_commas: false, ..JsonDialect::ANY },
        timeout: TimeUnit::Milliseconds,
        switched_off: disable_all_hooks,
        ..SettingsFormat::PLAIN
    }),
    settings: SettingsFiles {
        user: &["settings.json"],
        project: &[".qwen/settings.json"],
        system: &[],
    },
    post_tool_events: &["PostToolUse", "PostToolBatch"],
    tools: TOOLS,
    decode: hook::decode,
    context: Some(HookContext { print: additional_context, before_tool: false }),
    sessions: SessionFiles {
        folder: HOME,
        patterns: &[&["projects", "*", "chats", "*.jsonl"]],
        id: &["/sessionId"],
        began: &["/timestamp"],
    },
    ignores_untrusted_projects: true,
    ..AgentKind::DEFAULT
};

const TOOLS: ToolNames = ToolNames {
    edit: &["write_file", "edit", "notebook_edit"],
    shell: &["run_shell_command"],
    read_only: &["glob", "list_directory", "read_file", "todo_write", "web_fetch"],
    quiet: &[
        "agent",
        "ask_user_question",
        "cron_create",
        "cron_delete",
        "cron_list",
        "display_image",
        "enter_plan_mode",
        "exit_plan_mode",
        "get_goal",
        "grep_search",
        "list_agents",
        "loop_wakeup",
        "propose_goal",
        "read_mcp_resource",
        "report_findings",
        "send_message",
        "skill",
        "task_create",
        "task_list",
        "task_stop",
        "task_update",
        "tool_search",
        "update_goal",
        "web_search",
        "zoom_image",
    ],
    ..ToolNames::NONE
};
