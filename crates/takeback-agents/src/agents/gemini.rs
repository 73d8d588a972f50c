//! Gemini CLI: its entry in the table of agents.

mod hook;
mod transcript;

use serde_json::Value;

use crate::hook::{additional_context, system_message};
use crate::install::{HookCommand, HookFormat, JsonDialect, SettingsFormat, TimeUnit};
use crate::kind::{AgentKind, HomeFolder, HookContext, HooksFile, SessionFiles, SettingsFiles};
use crate::tools::ToolNames;
use crate::transcript::Transcript;

const NAME: &str = "gemini";

/// The name under which it lists Takeback's hooks.
const HOOK_NAME: &str = "takeback";

const HOME: HomeFolder = HomeFolder { variable: None, subfolder: "", default: ".gemini" };

/// Gemini CLI.
pub static GEMINI: AgentKind = AgentKind {
    name: NAME,
    title: "Gemini CLI",
    program: "gemini",
    home: HOME,
    hooks_file: HooksFile { user: "settings.json", project: ".gemini/settings.json" },
    hooks: hook::HOOKS,
    install: HookFormat::Settings(SettingsFormat {
        dialect: JsonDialect { comments: true, ..JsonDialect::JSON },
        timeout: TimeUnit::Milliseconds,
        hook_name: Some(HOOK_NAME),
        switched_off,
    }),
    settings: SettingsFiles {
        user: &["settings.json"],
        project: &[".gemini/settings.json"],
        system: &[],
    },
    post_tool_events: &["AfterTool"],
    tools: TOOLS,
    decode: hook::decode,
    message: Some(system_message),
    context: Some(HookContext { print: additional_context, before_tool: false }),
    transcript: Transcript {
        end: Some(transcript::end),
        model: Some(transcript::model),
        ..Transcript::NONE
    },
    sessions: SessionFiles {
        folder: HOME,
        patterns: &[&["tmp", "*", "chats", "*.jsonl"], &["tmp", "*", "chats", "*.json"]],
        id: &["/sessionId"],
        began: &["/startTime"],
    },
    ignores_untrusted_projects: true,
    ..AgentKind::DEFAULT
};

const TOOLS: ToolNames = ToolNames {
    edit: &["write_file", "replace"],
    shell: &["run_shell_command"],
    read_only: &[
        "ask_user",
        "glob",
        "google_web_search",
        "list_directory",
        "read_file",
        "read_many_files",
        "web_fetch",
    ],
    quiet: &[
        "activate_skill",
        "complete_task",
        "enter_plan_mode",
        "exit_plan_mode",
        "get_internal_docs",
        "grep_search",
        "invoke_agent",
        "list_background_processes",
        "list_mcp_resources",
        "read_background_output",
        "read_mcp_resource",
        "update_topic",
        "write_todos",
    ],
    ..ToolNames::NONE
};

fn switched_off(settings: &Value) -> Option<&'static str> {
    let config = &settings["hooksConfig"];
    let is_ours = |name: &Value| {
        let name = name.as_str().unwrap_or_default();
        name == HOOK_NAME || HookCommand::read(name, NAME).is_some()
    };
    let is_listed = config["disabled"].as_array().is_some_and(|names| names.iter().any(is_ours));
    match config["enabled"] {
        Value::Bool(false) => Some("hooksConfig.enabled"),
        _ => is_listed.then_some("hooksConfig.disabled"),
    }
}
