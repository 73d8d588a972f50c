//! Which kind of value each argument takes, and the values that need no store.

use std::path::PathBuf;

use clap::Arg;
use takeback_agents::AGENTS;

use super::Candidate;
use super::line::{Line, named_commands};
use super::paths::{PathKind, on_disk, programs, recorded};
use super::stored::StoredNames;
use crate::args::{Color, Options};
use crate::place::{self, Location};
use crate::settings::Settings;
use crate::settings::table::{KEYS, Value, key};

/// A kind of value.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Kind {
    /// A text that only the user knows.
    Free,
    Path,
    /// A path that may be gone from disk.
    RecordedPath,
    Folder,
    /// A program and its arguments.
    Program,
    Point,
    /// `A..B`
    PointRange,
    /// A point, or `A..B`
    PointOrRange,
    Operation,
    /// `POINT:PATH`
    PointAndPath,
    Session,
    Author,
    Tool,
    Agent,
    Setting,
    SettingValue,
    Execution,
    Checkpoint,
    ExecutionOrCheckpoint,
    Branch,
    /// A command of Takeback.
    Command,
}

/// The kind of each argument, by the name of its value; a command before the name narrows it. Arguments with
/// possible values of their own are not listed.
const KINDS: &[(&str, Kind)] = &[
    ("A..B", Kind::PointRange),
    ("ARGS", Kind::Free),
    ("AUTHOR", Kind::Author),
    ("BRANCH", Kind::Branch),
    ("BYTES", Kind::Free),
    ("CMD", Kind::Program),
    ("COMMAND", Kind::Program),
    ("COMMIT", Kind::Free),
    ("DIR", Kind::Folder),
    ("EVENT", Kind::Free),
    ("EXECUTION", Kind::Execution),
    ("EXECUTION|ID", Kind::ExecutionOrCheckpoint),
    ("FILE", Kind::Path),
    ("FROM", Kind::Point),
    ("ID", Kind::Session),
    ("ID|EXECUTION", Kind::ExecutionOrCheckpoint),
    ("KEY", Kind::Setting),
    ("LABEL", Kind::Free),
    ("LINES", Kind::Free),
    ("MODEL", Kind::Free),
    ("N", Kind::Free),
    ("NAME", Kind::Agent),
    ("NEW", Kind::Folder),
    ("OLD", Kind::Folder),
    ("OPERATION", Kind::Operation),
    ("PATH", Kind::RecordedPath),
    ("PATH:LINE", Kind::Path),
    ("PID", Kind::Free),
    ("POINT", Kind::Point),
    ("POINT:PATH", Kind::PointAndPath),
    ("PROMPT", Kind::Free),
    ("RANGE", Kind::Free),
    ("SECONDS", Kind::Free),
    ("SESSION", Kind::Session),
    ("TEMPLATE", Kind::Free),
    ("TEXT", Kind::Free),
    ("TIME", Kind::Free),
    ("TO", Kind::Point),
    ("TURN|CALL|A..B", Kind::PointOrRange),
    ("VALUE", Kind::SettingValue),
    ("chat ID", Kind::Free),
    ("help COMMAND", Kind::Command),
    ("log NAME", Kind::Tool),
    ("state FROM", Kind::Checkpoint),
    ("state ID", Kind::ExecutionOrCheckpoint),
    ("state KEY", Kind::Free),
    ("state TO", Kind::Checkpoint),
];

/// The line, and where its command would run.
pub(super) struct Context<'l, 'c> {
    line: &'l Line<'c>,
    /// The current folder, or the one that -C names.
    folder: PathBuf,
    location: Option<Location>,
}

impl<'l, 'c> Context<'l, 'c> {
    pub(super) fn new(line: &'l Line<'c>) -> Self {
        let options = Options {
            directory: line.directory.clone(),
            home: line.home.clone(),
            json: false,
            color: Color::Never,
            quiet: true,
            verbose: false,
            no_pager: true,
        };
        let folder = place::start(&options).unwrap_or_default();
        Self { line, folder, location: place::locate(&options).ok() }
    }

    /// The values of an argument that begin with `word`.
    pub(super) fn values(&self, argument: &Arg, word: &str) -> Vec<Candidate> {
        let possible = argument.get_possible_values();
        if !possible.is_empty() {
            let help = |value: &clap::builder::PossibleValue| {
                value.get_help().map(ToString::to_string).unwrap_or_default()
            };
            let listed = possible.iter().map(|value| Candidate::new(value.get_name(), help(value)));
            return beginning(listed, word);
        }
        let Some(kind) = kind_of(&self.line.name, argument) else { return Vec::new() };
        let root = self.line.explained();
        match kind {
            Kind::Free => Vec::new(),
            Kind::Path => on_disk(&self.folder, word, PathKind::Any),
            Kind::Folder => on_disk(&self.folder, word, PathKind::Folder),
            Kind::Program if self.line.is_first_of_program() => programs(&self.folder, word),
            Kind::Program => on_disk(&self.folder, word, PathKind::Any),
            Kind::Command => named_commands(root, word),
            Kind::Agent => {
                let agents = AGENTS.iter().map(|agent| Candidate::new(agent.name, agent.title));
                beginning(agents, word)
            }
            Kind::Setting => {
                beginning(KEYS.iter().map(|key| Candidate::new(key.name, key.meaning)), word)
            }
            Kind::SettingValue => self.setting_values(word),
            Kind::Tool => self.tools(word),
            stored => self.stored(stored, word).unwrap_or_default(),
        }
    }

    fn stored(&self, kind: Kind, word: &str) -> Option<Vec<Candidate>> {
        let on_disk = || on_disk(&self.folder, word, PathKind::Any);
        let Some(names) = self.location.as_ref().and_then(StoredNames::open) else {
            return (kind == Kind::RecordedPath).then(on_disk);
        };
        let found = match kind {
            Kind::RecordedPath => {
                let found = on_disk();
                // Reading all recorded paths takes longer.
                if found.is_empty() { self.recorded(&names, word) } else { found }
            }
            Kind::PointAndPath => match word.rsplit_once(':') {
                Some((point, path)) => prefixed(&format!("{point}:"), self.recorded(&names, path)),
                None => suffixed(names.points(word), ":"),
            },
            Kind::PointRange => match word.rsplit_once("..") {
                Some((from, to)) => prefixed(&format!("{from}.."), names.points(to)),
                None => suffixed(names.points(word), ".."),
            },
            Kind::PointOrRange => match word.rsplit_once("..") {
                Some((from, to)) => prefixed(&format!("{from}.."), names.points(to)),
                None => names.points(word),
            },
            Kind::Operation => beginning(names.operations(), word),
            Kind::Point => names.points(word),
            Kind::Session => beginning(names.sessions(), word),
            Kind::Author => beginning(names.authors(), word),
            Kind::Execution => beginning(names.executions(), word),
            Kind::Checkpoint => beginning(names.checkpoints(), word),
            Kind::ExecutionOrCheckpoint => {
                beginning(names.executions().into_iter().chain(names.checkpoints()), word)
            }
            Kind::Branch => beginning(names.branches(self.line.positionals.first()?), word),
            _ => Vec::new(),
        };
        Some(found)
    }

    fn recorded(&self, names: &StoredNames, word: &str) -> Vec<Candidate> {
        let root = self.location.as_ref().map(|location| location.root.as_path());
        let below = root.and_then(|root| self.folder.strip_prefix(root).ok());
        let below = below.and_then(|below| below.to_str()).unwrap_or_default();
        recorded(&names.paths(), below, word)
    }

    fn settings(&self) -> Option<Settings> {
        let location = self.location.as_ref()?;
        Settings::load(&location.root, &location.home).ok()
    }

    /// Of `config set KEY VALUE`: what the key takes, and its current value.
    fn setting_values(&self, word: &str) -> Vec<Candidate> {
        let Some(key) = self.line.positionals.first().and_then(|name| key(name)) else {
            return Vec::new();
        };
        let fixed: &[&str] = match (key.default)() {
            Value::Flag(_) => &["true", "false"],
            Value::Durability(_) => &["full", "normal", "off"],
            _ => &[],
        };
        let now = self.settings().map(|settings| settings.setting(key.name).value.clone());
        let now = now.map(|value| value.to_string().replace(", ", ","));
        let now = now.filter(|value| !value.is_empty() && !fixed.contains(&value.as_str()));
        let now = now.map(|value| Candidate::new(value, "the current value"));
        beginning(fixed.iter().map(|value| Candidate::new(*value, "")).chain(now), word)
    }

    fn tools(&self, word: &str) -> Vec<Candidate> {
        let Some(settings) = self.settings() else { return Vec::new() };
        let tools = settings.tools();
        let edit = tools.edit.into_iter().map(|tool| Candidate::new(tool, "edits files"));
        let shell = tools.shell.into_iter().map(|tool| Candidate::new(tool, "runs commands"));
        beginning(edit.chain(shell), word)
    }
}

/// The most specific row of the table for an argument of the command `name`.
fn kind_of(name: &str, argument: &Arg) -> Option<Kind> {
    let value = match argument.get_value_names() {
        Some([value, ..]) => value.to_string(),
        _ => argument.get_id().as_str().to_uppercase(),
    };
    let above = name.split(' ').next().unwrap_or_default();
    [format!("{name} {value}"), format!("{above} {value}"), value]
        .iter()
        .find_map(|row| KINDS.iter().find(|(of, _)| of == row).map(|(_, kind)| *kind))
}

fn beginning(all: impl IntoIterator<Item = Candidate>, word: &str) -> Vec<Candidate> {
    all.into_iter().filter(|candidate| candidate.word.starts_with(word)).collect()
}

fn prefixed(before: &str, mut found: Vec<Candidate>) -> Vec<Candidate> {
    found.iter_mut().for_each(|candidate| candidate.word.insert_str(0, before));
    found
}

fn suffixed(mut found: Vec<Candidate>, after: &str) -> Vec<Candidate> {
    found.iter_mut().for_each(|candidate| candidate.word.push_str(after));
    found
}

#[cfg(test)]
mod tests {
    use clap::Command;

    use super::*;
    use crate::args::command_line;

    fn missing(command: &Command, name: &str) -> Vec<String> {
        let of_command = command
            .get_arguments()
            .filter(|argument| argument.get_action().takes_values())
            .filter(|argument| argument.get_possible_values().is_empty())
            .filter(|argument| kind_of(name, argument).is_none())
            .map(|argument| format!("{name}: {}", argument.get_id()));
        let mut found: Vec<String> = of_command.collect();
        let visible = command.get_subcommands().filter(|sub| !sub.is_hide_set());
        for sub in visible {
            found.extend(missing(sub, format!("{name} {}", sub.get_name()).trim_start()));
        }
        found
    }

    #[test]
    fn the_table_has_every_argument() {
        assert_eq!(missing(&command_line(), ""), [""; 0], "they need a row in KINDS");
    }
}
