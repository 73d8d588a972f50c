//! Codex: its entry in the table of agents.

mod cut;
mod hook;
mod transcript;
mod trust;

use crate::hook::additional_context;
use crate::kind::{
    AgentKind, HomeFolder, HookContext, HooksFile, SessionFiles, SettingsFiles, TrustCheck,
};
use crate::tools::ToolNames;
use crate::transcript::Transcript;

const NAME: &str = "codex";

const HOME: HomeFolder =
    HomeFolder { variable: Some("CODEX_HOME"), subfolder: "", default: ".codex" };

/// Codex.
pub static CODEX: AgentKind = AgentKind {
    name: NAME,
    title: "Codex",
    program: "codex",
    home: HOME,
    hooks_file: HooksFile { user: "hooks.json", project: ".codex/hooks.json" },
    hooks: hook::HOOKS,
    settings: SettingsFiles {
        user: &["hooks.json", "config.toml"],
        project: &[".codex/hooks.json", ".codex/config.toml"],
        system: &[],
    },
    post_tool_events: &["PostToolUse"],
    tools: TOOLS,
    decode: hook::decode,
    context: Some(HookContext { print: additional_context, before_tool: true }),
    transcript: Transcript {
        end: Some(transcript::end),
        allowed_at: Some(transcript::allowed_at),
        ..Transcript::NONE
    },
    sessions: SessionFiles {
        folder: HOME,
        patterns: &[&["sessions", "*", "*", "*", "*.jsonl"]],
        id: &["/payload/session_id", "/payload/id"],
        began: &["/timestamp", "/payload/timestamp"],
    },
    cut: Some(cut::cut),
    copy: Some(cut::copy),
    trust: Some(TrustCheck { file: "config.toml", problem: trust::problem }),
    install_note: |_| {
        Some(
            "Codex runs new hooks only once you trust them: start `codex`, enter /hooks and press t.",
        )
    },
    ..AgentKind::DEFAULT
};

const TOOLS: ToolNames = ToolNames {
    // Matchers know apply_patch by Claude Code's names, too.
    edit: &["apply_patch", "Edit", "Write"],
    shell: &["exec_command", "local_shell", "shell_command", "container.exec"],
    read_only: &["update_plan"],
    quiet: &[
        "close_agent",
        "create_goal",
        "curr_time",
        "followup_task",
        "get_goal",
        "interrupt_agent",
        "list_agents",
        "list_mcp_resource_templates",
        "list_mcp_resources",
        "read_mcp_resource",
        "request_user_input",
        "request_user_input_async",
        "resume_agent",
        "send_input",
        "send_message",
        "sleep",
        "spawn_agent",
        "update_goal",
        "view_image",
        "wait_agent",
    ],
    prefixes: &["clock", "collaboration", "multi_agent_v1"],
};
