//! Which tools write what, by name: of each agent, and of agents that are not in the table.

use takeback_core::Tools;

use crate::agents::AGENTS;

/// An agent's tools. A tool in none of these lists may write anything.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct ToolNames {
    /// They write only the paths that they name.
    pub edit: &'static [&'static str],
    /// They may write anything.
    pub shell: &'static [&'static str],
    /// They write nothing, and no other known agent has a writing tool of that name: these are defaults of
    /// the setting `readOnlyTools`.
    pub read_only: &'static [&'static str],
    /// More tools of this agent that write nothing themselves: they talk, or start something that sends its
    /// own events. Another agent's tool of that name may write.
    pub quiet: &'static [&'static str],
    /// A prefix that the names in `read_only` and `quiet` may have.
    pub prefixes: &'static [&'static str],
}

impl ToolNames {
    /// No tools.
    pub const NONE: Self =
        Self { edit: &[], shell: &[], read_only: &[], quiet: &[], prefixes: &[] };

    /// Whether this agent's tool writes nothing.
    #[must_use]
    pub fn writes_nothing(&self, tool: &str) -> bool {
        let bare = self.prefixes.iter().find_map(|prefix| tool.strip_prefix(prefix));
        let bare = bare.unwrap_or(tool);
        self.read_only.contains(&bare) || self.quiet.contains(&bare)
    }
}

/// Tools of agents that are not in the table: those built on an SDK, or that report their own events.
const COMMON: ToolNames = ToolNames {
    edit: &["write_file", "edit_file", "create_file", "str_replace_editor"],
    shell: &["Bash", "shell", "bash"],
    // The first eight are Claude Code's too. They are not in its entry, so that the setting alone decides
    // about them.
    read_only: &[
        "Read",
        "Glob",
        "Grep",
        "LS",
        "NotebookRead",
        "WebFetch",
        "WebSearch",
        "TodoWrite",
        "read_file",
        "list_files",
        "search_file_content",
    ],
    ..ToolNames::NONE
};

/// Every tool that is known by name: the default of the settings `editTools`, `shellTools` and
/// `readOnlyTools`.
#[must_use]
pub fn default_tools() -> Tools {
    let names = |of: fn(&ToolNames) -> &'static [&'static str]| {
        let mut names: Vec<String> = Vec::new();
        let all = std::iter::once(&COMMON).chain(AGENTS.iter().map(|agent| &agent.tools));
        for name in all.flat_map(of) {
            if !names.iter().any(|known| known == name) {
                names.push((*name).to_owned());
            }
        }
        names
    };
    Tools {
        edit: names(|tools| tools.edit),
        shell: names(|tools| tools.shell),
        read_only: names(|tools| tools.read_only),
    }
}

#[cfg(test)]
mod tests {
    use std::collections::HashSet;
    use std::path::PathBuf;

    use takeback_core::CallTargets;

    use super::*;

    #[test]
    fn an_unknown_tool_may_write_anything() {
        let tools = default_tools();
        let paths = || vec![PathBuf::from("a.txt")];
        let anything = || CallTargets::anything(None);
        let make = || Some("make".to_owned());
        for (tool, paths, command, touches) in [
            ("Edit", paths(), None, CallTargets::Paths(paths())),
            ("write_file", paths(), None, CallTargets::Paths(paths())),
            ("MultiEdit", paths(), None, CallTargets::Paths(paths())),
            ("NotebookEdit", paths(), None, CallTargets::Paths(paths())),
            ("Edit", Vec::new(), None, anything()),
            ("Read", paths(), None, CallTargets::Nothing),
            ("Grep", Vec::new(), None, CallTargets::Nothing),
            ("Bash", Vec::new(), make(), CallTargets::anything(make())),
            ("Bash", Vec::new(), None, anything()),
            ("Bash", paths(), make(), CallTargets::Anything { command: make(), paths: paths() }),
            (
                "container.exec",
                paths(),
                None,
                CallTargets::Anything { command: None, paths: paths() },
            ),
            ("apply_patch", paths(), None, CallTargets::Paths(paths())),
            ("apply_patch", Vec::new(), None, anything()),
            // Its `command` is `create` or `view`, not a shell command.
            ("str_replace_editor", paths(), make(), CallTargets::Paths(paths())),
            ("view", paths(), None, CallTargets::Nothing),
            ("task", Vec::new(), make(), CallTargets::anything(make())),
            // It may read the paths that it names, and write others.
            ("mcp__files__move", paths(), None, anything()),
            ("mystery", paths(), make(), CallTargets::anything(make())),
            ("Task", Vec::new(), None, anything()),
            ("save_memory", Vec::new(), None, anything()),
            ("mystery", Vec::new(), make(), CallTargets::anything(make())),
        ] {
            assert_eq!(tools.touches(tool, paths.clone(), command), touches, "{tool} of {paths:?}");
        }
    }

    #[test]
    fn no_tool_is_in_two_lists() {
        let Tools { edit, shell, read_only } = default_tools();
        let all: Vec<&String> = edit.iter().chain(&shell).chain(&read_only).collect();
        let different: HashSet<&&String> = all.iter().collect();
        assert_eq!(different.len(), all.len(), "{all:?}");
    }
}
