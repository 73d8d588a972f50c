//! opencode: its entry in the table of agents. It has plugins instead of hooks.

mod hook;

use crate::hook::plugin_context;
use crate::install::{HookFormat, OwnFile, plugin};
use crate::kind::{AgentKind, HomeFolder, HookContext, HooksFile};
use crate::tools::ToolNames;

const NAME: &str = "opencode";

/// opencode. Other plugins are programs, so what they do after an edit is unknown. Conversations are in
/// a database, which is not read.
pub static OPENCODE: AgentKind = AgentKind {
    name: NAME,
    title: "opencode",
    program: "opencode",
    home: HomeFolder {
        variable: Some("XDG_CONFIG_HOME"),
        subfolder: "opencode",
        default: ".config/opencode",
    },
    hooks_file: HooksFile { user: "plugins/takeback.js", project: ".opencode/plugins/takeback.js" },
    hooks: hook::HOOKS,
    install: HookFormat::OwnFile(OwnFile {
        render: |program| plugin::render(PLUGIN, program),
        find: |text| Ok(plugin::find(&OPENCODE, text)),
    }),
    tools: ToolNames {
        edit: &["edit", "write", "multiedit", "patch", "apply_patch"],
        shell: &["bash"],
        read_only: &[
            "glob",
            "grep",
            "list",
            "read",
            "task",
            "todoread",
            "todowrite",
            "webfetch",
            "websearch",
        ],
        quiet: &["plan_enter", "plan_exit", "question", "skill"],
        ..ToolNames::NONE
    },
    decode: hook::decode,
    context: Some(HookContext { print: plugin_context, before_tool: false }),
    ..AgentKind::DEFAULT
};

const PLUGIN: &str = include_str!("opencode/plugin.js");
