//! Claude Code's entry in the table of agents.

use super::{cut, hook, transcript};
use crate::hook::{additional_context, system_message};
use crate::install::{HookFormat, JsonDialect, SettingsFormat, disable_all_hooks};
use crate::kind::{AgentKind, HomeFolder, HookContext, HooksFile, SessionFiles, SettingsFiles};
use crate::tools::ToolNames;
use crate::transcript::Transcript;

const HOME: HomeFolder =
    HomeFolder { variable: Some("CLAUDE_CONFIG_DIR"), subfolder: "", default: ".claude" };

/// Claude Code.
pub static CLAUDE: AgentKind = AgentKind {
    name: super::NAME,
    title: "Claude Code",
    program: "claude",
    home: HOME,
    hooks_file: HooksFile { user: "settings.json", project: ".claude/settings.json" },
    hooks: hook::HOOKS,
    install: HookFormat::Settings(SettingsFormat {
        dialect: JsonDialect { byte_order_mark: true, ..JsonDialect::JSON },
        switched_off: disable_all_hooks,
        ..SettingsFormat::PLAIN
    }),
    settings: SettingsFiles {
        user: &["settings.json"],
        project: &[".claude/settings.json", ".claude/settings.local.json"],
        system: &["/etc/claude-code/managed-settings.json"],
    },
    post_tool_events: &["PostToolUse", "PostToolBatch"],
    tools: TOOLS,
    decode: hook::decode,
    message: Some(system_message),
    context: Some(HookContext { print: additional_context, before_tool: true }),
    transcript: Transcript {
        end: Some(transcript::end),
        subagent_path: Some(transcript::subagent_path),
        parent: Some(transcript::parent),
        prompts: Some(transcript::prompts),
        message: Some(transcript::message),
        model: Some(transcript::model),
        ..Transcript::NONE
    },
    sessions: SessionFiles {
        folder: HOME,
        patterns: &[&["projects", "*", "*.jsonl"]],
        id: &["/sessionId"],
        began: &["/timestamp"],
    },
    cut: Some(cut::cut),
    copy: Some(cut::copy),
    runs_equal_hooks_once: true,
    ..AgentKind::DEFAULT
};

/// Of its tools that only read, the setting `readOnlyTools` decides.
pub(super) const TOOLS: ToolNames = ToolNames {
    edit: &["Write", "Edit", "MultiEdit", "NotebookEdit"],
    shell: &["Bash"],
    quiet: &[
        "Agent",
        "AskUserQuestion",
        "BashOutput",
        "CronCreate",
        "CronDelete",
        "CronList",
        "EnterPlanMode",
        "ExitPlanMode",
        "KillShell",
        "ListAgents",
        "ListMcpResourcesTool",
        "ReadMcpResourceTool",
        "ReportFindings",
        "ScheduleWakeup",
        "SendMessage",
        "Task",
        "TaskCreate",
        "TaskGet",
        "TaskList",
        "TaskOutput",
        "TaskStop",
        "TaskUpdate",
        "TodoWrite",
        "ToolSearch",
    ],
    ..ToolNames::NONE
};
