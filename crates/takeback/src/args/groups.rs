//! The commands in groups, as `takeback help` lists them.

use clap::Command;
use clap::builder::StyledStr;

use crate::screen::{width, wrap};

/// Each group's title and commands, most useful first. Every command that is not hidden is in one group.
pub(crate) const GROUPS: &[(&str, &[&str])] = &[
    (
        "Everyday",
        &[
            "log",
            "show",
            "diff",
            "rewind",
            "revert",
            "restore",
            "resolve",
            "undo",
            "redo",
            "checkpoint",
            "status",
        ],
    ),
    ("Agents", &["init", "chat", "run", "doctor", "uninstall", "demo"]),
    (
        "History",
        &[
            "blame", "why", "history", "cat", "stats", "bisect", "fork", "compare", "adopt",
            "label", "pin", "unpin", "sessions", "session", "notes", "export", "import",
        ],
    ),
    (
        "Upkeep",
        &[
            "config",
            "workspaces",
            "du",
            "cleanup",
            "verify",
            "recover",
            "purge",
            "forget",
            "relocate",
            "completions",
        ],
    ),
    ("Programs", &["record", "hook", "serve", "mcp", "state"]),
];

const ABOUT: &str = "Checkpoint and rewind for coding agents: records every change in a folder with its author, and takes back exactly what you ask.";

const FOOTER: &str = "`takeback help COMMAND` explains a command. New here? `takeback demo` shows a rewind in a temporary folder.";

/// Columns before the longest name and around it.
const MARGIN: usize = 2;
/// The narrowest column for what a command does.
const NARROWEST: usize = 20;

/// The program's help lists its commands in groups.
pub(super) fn with_groups(command: Command) -> Command {
    let header = command.get_styles().get_header().to_owned();
    let literal = command.get_styles().get_literal().to_owned();
    let names = || GROUPS.iter().flat_map(|(_, names)| *names);
    let longest = names().map(|name| name.len()).max().unwrap_or(0);
    let indent = MARGIN + longest + MARGIN;
    let room = width().min(100).saturating_sub(indent).max(NARROWEST);
    let mut text = wrap(ABOUT, width().min(100)).join("\n");
    text.push_str("\n\n{usage-heading} {usage}\n");
    for (title, names) in GROUPS {
        text.push_str(&format!("\n{header}{title}:{header:#}\n"));
        for sub in names.iter().filter_map(|name| command.find_subcommand(name)) {
            let name = sub.get_name();
            let about = sub.get_about().map(ToString::to_string).unwrap_or_default();
            text.push_str(&format!("  {literal}{name:longest$}{literal:#}  "));
            text.push_str(&wrap(&about, room).join(&format!("\n{:indent$}", "")));
            text.push('\n');
        }
    }
    text.push_str(&format!("\n{header}Options:{header:#}\n{{options}}\n\n"));
    text.push_str(&wrap(FOOTER, width().min(100)).join("\n"));
    command.help_template(StyledStr::from(text))
}

#[cfg(test)]
mod tests {
    use std::collections::BTreeSet;

    use clap::CommandFactory as _;

    use super::*;
    use crate::args::{Args, command_line};

    #[test]
    fn every_command_is_in_one_group() {
        let command = Args::command();
        let visible: BTreeSet<&str> = command
            .get_subcommands()
            .filter(|sub| !sub.is_hide_set())
            .map(Command::get_name)
            .collect();
        let grouped: Vec<&str> = GROUPS.iter().flat_map(|(_, names)| *names).copied().collect();
        assert_eq!(grouped.iter().copied().collect::<BTreeSet<_>>(), visible);
        assert_eq!(grouped.len(), visible.len(), "no command is in two groups");
    }

    #[test]
    fn what_a_command_does_fits_beside_its_name_in_80_columns() {
        for sub in Args::command().get_subcommands().filter(|sub| !sub.is_hide_set()) {
            let about = sub.get_about().expect("every command says what it does").to_string();
            assert!(about.chars().count() <= 65, "{}: {about}", sub.get_name());
        }
    }

    #[test]
    fn help_lists_each_group_with_what_its_commands_do() {
        let help = command_line().render_help().to_string();
        for (title, names) in GROUPS {
            assert!(help.contains(&format!("\n{title}:\n")), "{title}: {help}");
            for name in *names {
                assert!(help.contains(&format!("\n  {name} ")), "{name}: {help}");
            }
        }
        assert!(!help.contains("\n\n\n") && help.lines().count() < 80, "{help}");
        assert!(help.contains("--no-pager") && help.contains("--version"), "{help}");
    }
}
