//! Reads an unfinished command line: which command it is, and what the cursor is at.

use std::path::PathBuf;

use clap::{Arg, ArgAction, Command};

use super::Candidate;
use super::paths::expanded;

/// A command line up to the cursor.
pub(super) struct Line<'c> {
    root: &'c Command,
    pub(super) command: &'c Command,
    /// The command's full name (`state save`); empty for the program.
    pub(super) name: String,
    /// The values of -C and --home.
    pub(super) directory: Option<PathBuf>,
    pub(super) home: Option<PathBuf>,
    /// The arguments given so far, with the words after the command that are no options.
    pub(super) given: Vec<&'c Arg>,
    pub(super) positionals: Vec<String>,
    pub(super) cursor: Cursor<'c>,
}

/// What the cursor is at.
pub(super) enum Cursor<'c> {
    /// The name of an option.
    Option { word: String },
    /// The value of an option. `before` is in the same word: `--by=`.
    Value { argument: &'c Arg, before: String, word: String },
    /// A subcommand or the next positional argument.
    Word { argument: Option<&'c Arg>, word: String },
}

/// Reads the words after the program's name. The last one is at the cursor.
pub(super) fn read<'c>(root: &'c Command, words: &[String]) -> Option<Line<'c>> {
    let (word, before) = words.split_last()?;
    let mut line = Line {
        root,
        command: root,
        name: String::new(),
        directory: None,
        home: None,
        given: Vec::new(),
        positionals: Vec::new(),
        cursor: Cursor::Word { argument: None, word: String::new() },
    };
    let mut waiting = None;
    let mut is_escaped = false;
    for word in before {
        if let Some(argument) = waiting.take() {
            line.note(argument, word);
        } else if is_escaped {
            line.positionals.push(word.clone());
        } else if word == "--" {
            is_escaped = true;
        } else if word.starts_with('-') && word.len() > 1 {
            waiting = line.option(word);
        } else {
            line.word(word);
            is_escaped = line.next_positional(false).is_some_and(Arg::is_trailing_var_arg_set)
                && !line.positionals.is_empty();
        }
    }
    line.cursor = match waiting {
        Some(argument) => Cursor::Value { argument, before: String::new(), word: word.clone() },
        None if !is_escaped && word.starts_with('-') => line.at_option(word),
        None => Cursor::Word { argument: line.next_positional(is_escaped), word: word.clone() },
    };
    Some(line)
}

impl<'c> Line<'c> {
    /// A finished word that is no option.
    fn word(&mut self, word: &str) {
        match self.command.find_subcommand(word) {
            Some(command) if self.positionals.is_empty() => {
                self.command = command;
                self.name = format!("{} {word}", self.name).trim_start().to_owned();
            }
            _ => self.positionals.push(word.to_owned()),
        }
    }

    /// A finished option. Returns the argument whose value is the next word.
    fn option(&mut self, word: &str) -> Option<&'c Arg> {
        let Cursor::Value { argument, word: value, .. } = self.at_option(word) else {
            let argument = match word.strip_prefix("--") {
                Some(long) => self.find(|arg| arg.get_long() == Some(long)),
                None => self.find(|arg| arg.get_short() == word.chars().last()),
            }?;
            self.given.push(argument);
            return takes_value(argument).then_some(argument);
        };
        self.note(argument, &value);
        None
    }

    /// The option that the cursor is at: its name, or a value in the same word (`--by=you`, `-n5`).
    fn at_option(&self, word: &str) -> Cursor<'c> {
        let name = || Cursor::Option { word: word.to_owned() };
        let value = |argument, at: usize| {
            let (before, word) = word.split_at(at);
            Cursor::Value { argument, before: before.to_owned(), word: word.to_owned() }
        };
        if let Some(long) = word.strip_prefix("--") {
            let Some((long, _)) = long.split_once('=') else { return name() };
            let found = self.find(|arg| arg.get_long() == Some(long) && takes_value(arg));
            return found.map_or_else(name, |argument| value(argument, "--=".len() + long.len()));
        }
        for (at, short) in word.char_indices().skip(1) {
            let is = |arg: &Arg| arg.get_short() == Some(short) && takes_value(arg);
            if let Some(argument) = self.find(is) {
                let at = at + short.len_utf8();
                return if at < word.len() { value(argument, at) } else { name() };
            }
        }
        name()
    }

    fn note(&mut self, argument: &'c Arg, value: &str) {
        self.given.push(argument);
        match argument.get_id().as_str() {
            "directory" => self.directory = Some(expanded(value)),
            "home" => self.home = Some(expanded(value)),
            _ => {}
        }
    }

    fn find(&self, is: impl Fn(&Arg) -> bool) -> Option<&'c Arg> {
        self.arguments().find(|argument| is(argument))
    }

    /// The command's options, and those for all commands.
    fn arguments(&self) -> impl Iterator<Item = &'c Arg> + use<'c> {
        let root = self.root;
        let global = root.get_arguments().filter(|argument| argument.is_global_set());
        self.command.get_arguments().filter(|argument| !argument.is_global_set()).chain(global)
    }

    /// The positional argument that comes next. After `--`, the one that only `--` can introduce.
    fn next_positional(&self, is_escaped: bool) -> Option<&'c Arg> {
        let all = || self.command.get_positionals();
        if is_escaped && let Some(last) = all().find(|argument| argument.is_last_set()) {
            return Some(last);
        }
        let open: Vec<&Arg> = all().filter(|argument| !argument.is_last_set()).collect();
        let repeated = open.last().filter(|last| matches!(last.get_action(), ArgAction::Append));
        open.get(self.positionals.len()).or(repeated).copied()
    }

    /// The names of options that start like `word`, without those that were given and cannot be repeated.
    pub(super) fn options(&self, word: &str) -> Vec<Candidate> {
        let may_follow = |argument: &&Arg| {
            let is_given = self.given.iter().any(|given| given.get_id() == argument.get_id());
            let is_repeatable = matches!(argument.get_action(), ArgAction::Append);
            !argument.is_hide_set() && !argument.is_positional() && (!is_given || is_repeatable)
        };
        let described = |argument: &Arg, name: String| {
            let help = argument.get_help().map(ToString::to_string).unwrap_or_default();
            Candidate::new(name, help)
        };
        let names = self.arguments().filter(may_follow).flat_map(|argument| {
            let long = argument.get_long().map(|long| format!("--{long}"));
            let short = argument.get_short().map(|short| format!("-{short}"));
            // One name is enough, unless only the short one fits.
            let first = long.filter(|long| long.starts_with(word));
            let second = short.filter(|short| first.is_none() && short.starts_with(word));
            first.into_iter().chain(second).map(move |name| described(argument, name))
        });
        let mut found: Vec<Candidate> = names.collect();
        if "--help".starts_with(word) {
            found.push(Candidate::new("--help", "Print help"));
        }
        found
    }

    /// Whether the cursor is at the program of `run -- PROGRAM`, and not at its arguments.
    pub(super) fn is_first_of_program(&self) -> bool {
        self.positionals.is_empty()
    }

    pub(super) fn subcommands(&self, word: &str) -> Vec<Candidate> {
        if !self.positionals.is_empty() {
            return Vec::new();
        }
        let mut found = named_commands(self.command, word);
        if self.name.is_empty() && "help".starts_with(word) {
            found.push(Candidate::new("help", "Explain a command"));
        }
        found
    }

    /// The command that `takeback help` would explain.
    pub(super) fn explained(&self) -> &'c Command {
        let words = self.positionals.iter();
        words.fold(self.root, |at, word| at.find_subcommand(word).unwrap_or(at))
    }
}

pub(super) fn named_commands(command: &Command, word: &str) -> Vec<Candidate> {
    let visible = command.get_subcommands().filter(|sub| !sub.is_hide_set());
    let named = visible.filter(|sub| sub.get_name().starts_with(word));
    let about = |sub: &Command| sub.get_about().map(ToString::to_string).unwrap_or_default();
    named.map(|sub| Candidate::new(sub.get_name(), about(sub))).collect()
}

fn takes_value(argument: &Arg) -> bool {
    argument.get_action().takes_values()
}
