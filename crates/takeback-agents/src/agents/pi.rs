//! pi: its entry in the table of agents. It has extensions instead of hooks.

mod copy;
mod hook;

use crate::hook::plugin_context;
use crate::install::{HookFormat, HookScope, OwnFile, plugin};
use crate::kind::{AgentKind, HomeFolder, HookContext, HooksFile, SessionFiles};
use crate::tools::ToolNames;

const NAME: &str = "pi";

const HOME: HomeFolder =
    HomeFolder { variable: Some("PI_CODING_AGENT_DIR"), subfolder: "", default: ".pi/agent" };

/// pi. It waits for its extensions, which learn the end of every call: its transcript is not read. Other
/// extensions are programs: what they do after an edit cannot be read.
pub static PI: AgentKind = AgentKind {
    name: NAME,
    title: "pi",
    program: "pi",
    home: HOME,
    hooks_file: HooksFile { user: "extensions/takeback.js", project: ".pi/extensions/takeback.js" },
    hooks: hook::HOOKS,
    install: HookFormat::OwnFile(OwnFile {
        render: |program| plugin::render(EXTENSION, program),
        find: |text| Ok(plugin::find(&PI, text)),
    }),
    tools: TOOLS,
    decode: hook::decode,
    context: Some(HookContext { print: plugin_context, before_tool: false }),
    sessions: SessionFiles {
        folder: HOME,
        patterns: &[&["sessions", "*", "*.jsonl"]],
        id: &["/id"],
        began: &["/timestamp"],
    },
    copy: Some(copy::copy),
    ignores_untrusted_projects: true,
    install_note: |scope| match scope {
        HookScope::User => None,
        HookScope::Project => Some(
            "pi loads a project's extensions only in a folder that you trust: start `pi` there and say \
             yes.",
        ),
    },
    ..AgentKind::DEFAULT
};

const EXTENSION: &str = include_str!("pi/extension.js");

const TOOLS: ToolNames = ToolNames {
    edit: &["edit", "write"],
    shell: &["bash", "powershell"],
    read_only: &["grep", "read"],
    quiet: &["find", "ls"],
    ..ToolNames::NONE
};
