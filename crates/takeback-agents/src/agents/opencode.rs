//! opencode: its entry in the table of agents. It has plugins instead of hooks.

mod hook;

use serde_json::json;

use crate::install::{HookCommand, HookFormat, HookInFile, HookPosition, HooksInFile, OwnFile};
use crate::kind::{AgentKind, HomeFolder, HooksFile};
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
        render: |program| plugin(&program.path),
        find: |text| Ok(find(text)),
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
    ..AgentKind::DEFAULT
};

const PLUGIN: &str = include_str!("opencode/plugin.js");
const FIRST_LINE: &str = "// Tells Takeback what opencode does.";

/// The plugin, which runs `program`: a name on the `PATH`, or a path.
fn plugin(program: &str) -> String {
    let constant = format!("const TAKEBACK = {};", json!(program));
    PLUGIN.replace("const TAKEBACK = \"takeback\";", &constant)
}

/// The plugin names the program that it runs on a line of its own.
fn find(text: &str) -> HooksInFile {
    let program = text.lines().find_map(|line| {
        let value = line.strip_prefix("const TAKEBACK = ")?.strip_suffix(';')?;
        serde_json::from_str::<String>(value).ok()
    });
    let Some(program) = program.filter(|_| text.starts_with(FIRST_LINE)) else {
        return HooksInFile::default();
    };
    let command = HookCommand { line: program.clone(), program };
    let hooks = hook::HOOKS.iter().map(|spec| HookInFile {
        event: spec.event.to_owned(),
        command: command.clone(),
        position: HookPosition::default(),
    });
    HooksInFile { hooks: hooks.collect(), ..HooksInFile::default() }
}
