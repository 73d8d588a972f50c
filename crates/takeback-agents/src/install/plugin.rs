//! A plugin: a file of JavaScript that an agent loads instead of running hooks. It is the agent's own
//! script, followed by what all plugins share: how they report to Takeback (`plugin.js`).

use serde_json::json;

use super::command::{HookCommand, ProgramWord};
use super::{HookInFile, HookPosition, HooksInFile};
use crate::kind::AgentKind;

const SHARED: &str = include_str!("plugin.js");

/// The plugin, which runs `program`: a name on the `PATH`, or a path. `script`: the agent's part, which
/// begins with the line that [`find`] looks for and names the agent in `AGENT`.
pub(crate) fn render(script: &str, program: &ProgramWord) -> String {
    let constant = format!("const TAKEBACK = {};", json!(program.path));
    let shared = SHARED.replace("const TAKEBACK = \"takeback\";", &constant);
    format!("{script}\n{shared}")
}

/// The hooks in a file. It is the plugin for `agent`, of any release, if its first line says so and a line
/// of its own names the program that it runs.
pub(crate) fn find(agent: &AgentKind, text: &str) -> HooksInFile {
    let first = format!("// Tells Takeback what {} does.", agent.title);
    let program = text.lines().find_map(|line| {
        let value = line.strip_prefix("const TAKEBACK = ")?.strip_suffix(';')?;
        serde_json::from_str::<String>(value).ok()
    });
    let Some(program) = program.filter(|_| text.starts_with(&first)) else {
        return HooksInFile::default();
    };
    let command = HookCommand { line: program.clone(), program };
    let hooks = agent.hooks.iter().map(|spec| HookInFile {
        event: spec.event.to_owned(),
        command: command.clone(),
        position: HookPosition::default(),
    });
    HooksInFile { hooks: hooks.collect(), ..HooksInFile::default() }
}
