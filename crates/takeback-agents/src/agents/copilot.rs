//! Copilot CLI: its entry in the table of agents.

mod hook;
mod hooks_file;
mod transcript;
mod trust;

use serde_json::json;

use crate::install::{HookFormat, HookScope, OwnFile};
use crate::kind::{
    AgentKind, HomeFolder, HookContext, HooksFile, SessionFiles, SettingsFiles, TrustCheck,
};
use crate::tools::ToolNames;
use crate::transcript::Transcript;

const NAME: &str = "copilot";

const HOME: HomeFolder =
    HomeFolder { variable: Some("COPILOT_HOME"), subfolder: "", default: ".copilot" };

/// Copilot CLI.
pub static COPILOT: AgentKind = AgentKind {
    name: NAME,
    title: "Copilot CLI",
    program: "copilot",
    home: HOME,
    hooks_file: HooksFile { user: "hooks/takeback.json", project: ".github/hooks/takeback.json" },
    hooks: hook::HOOKS,
    install: HookFormat::OwnFile(OwnFile { render: hooks_file::render, find: hooks_file::find }),
    command_suffix: hook::command_suffix,
    settings: SettingsFiles {
        user: &["hooks/*.json"],
        // In folders that it trusts it runs Claude Code's hooks, too.
        project: &[".github/hooks/*.json", ".claude/settings.json", ".claude/settings.local.json"],
        system: &[],
    },
    post_tool_events: &["postToolUse", "PostToolUse"],
    tools: TOOLS,
    decode: hook::decode,
    context: Some(HookContext {
        print: |_, text| json!({ "additionalContext": text }),
        before_tool: true,
    }),
    transcript: Transcript {
        end: Some(transcript::end),
        allowed_at: Some(transcript::allowed_at),
        path: Some(transcript::path),
        model: Some(transcript::model),
        ..Transcript::NONE
    },
    sessions: SessionFiles {
        folder: HOME,
        patterns: &[&["session-state", "*", "events.jsonl"], &["history-session-state", "*.json"]],
        id: &["/data/sessionId", "/sessionId"],
        began: &["/data/startTime", "/startTime", "/timestamp"],
    },
    trust: Some(TrustCheck { file: "config.json", problem: trust::problem }),
    install_note: |scope| match scope {
        HookScope::User => None,
        HookScope::Project => Some(
            "Copilot CLI runs a project's hooks only in a folder that you trust: start `copilot` there \
             and say yes.",
        ),
    },
    ..AgentKind::DEFAULT
};

const TOOLS: ToolNames = ToolNames {
    // The last two under Claude Code's names for events.
    edit: &["create", "edit", "apply_patch", "Edit", "Write"],
    shell: &["bash"],
    read_only: &["glob", "grep", "report_intent", "task", "view"],
    quiet: &[
        "Agent",
        "Read",
        "fetch_copilot_cli_documentation",
        "list_agents",
        "list_bash",
        "read_agent",
        "read_bash",
        "rg",
        "session_store_sql",
        "skill",
        "sql",
        "stop_bash",
        "write_agent",
    ],
    ..ToolNames::NONE
};
