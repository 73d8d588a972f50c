//! `completions`: the script for a shell; and `complete`, which the script runs at every Tab.
//!
//! `complete` prints one candidate per line, with a tab before its description. It creates nothing, waits for
//! nothing, and is silent if something fails: an error would end up in the user's command line.

mod line;
mod paths;
mod stored;
mod values;

use std::io::Write as _;
use std::sync::mpsc;
use std::thread;
use std::time::Duration;

use self::line::Cursor;
use self::values::Context;
use crate::args::{CompleteArgs, CompletionsArgs, ShellName, command_line};
use crate::error::CommandError;
use crate::screen::{Screen, plain};

/// How long a shell waits for candidates.
const PATIENCE: Duration = Duration::from_millis(500);

/// What can be typed at the cursor.
#[derive(Debug, Clone, PartialEq, Eq)]
struct Candidate {
    /// The whole word.
    word: String,
    description: String,
}

impl Candidate {
    fn new(word: impl Into<String>, description: impl Into<String>) -> Self {
        Self { word: word.into(), description: description.into() }
    }
}

pub(crate) fn completions(args: &CompletionsArgs, screen: &mut Screen) -> Result<u8, CommandError> {
    let script = match args.shell {
        ShellName::Bash => include_str!("completions/takeback.bash"),
        ShellName::Zsh => include_str!("completions/takeback.zsh"),
        ShellName::Fish => include_str!("completions/takeback.fish"),
    };
    screen.bare()?.write_all(script.as_bytes())?;
    Ok(0)
}

pub(crate) fn complete(args: &CompleteArgs, screen: &mut Screen) -> Result<u8, CommandError> {
    let words = args.words.iter().map(|word| word.to_str().map(str::to_owned));
    let Some(words) = words.collect::<Option<Vec<String>>>() else { return Ok(0) };
    let (send, received) = mpsc::channel();
    // A store that another process has locked must not hold up the user's shell.
    thread::spawn(move || send.send(candidates(&command_line(), &words)));
    for Candidate { word, description } in received.recv_timeout(PATIENCE).unwrap_or_default() {
        if plain(&word) == word {
            writeln!(screen.out, "{word}\t{}", plain(&description))?;
        }
    }
    Ok(0)
}

/// The candidates for the last of `words`, which follow the program's name.
fn candidates(root: &clap::Command, words: &[String]) -> Vec<Candidate> {
    let Some(line) = line::read(root, words) else { return Vec::new() };
    let context = Context::new(&line);
    let mut found = match &line.cursor {
        Cursor::Option { word } => line.options(word),
        Cursor::Value { argument, before, word } => {
            let values = context.values(argument, word);
            let prefixed = |mut value: Candidate| {
                value.word = format!("{before}{}", value.word);
                value
            };
            values.into_iter().map(prefixed).collect()
        }
        Cursor::Word { argument, word } => {
            let mut found = line.subcommands(word);
            found.extend(argument.iter().flat_map(|argument| context.values(argument, word)));
            found
        }
    };
    let mut seen = std::collections::HashSet::new();
    found.retain(|candidate| seen.insert(candidate.word.clone()));
    found
}
