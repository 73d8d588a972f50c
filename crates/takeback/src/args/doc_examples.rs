//! Every `takeback …` in the docs is a command that the program understands.

use std::fs;
use std::path::{Path, PathBuf};

use clap::Parser as _;
use clap::error::ErrorKind;

use super::Args;

/// The pages for users.
fn pages() -> Vec<PathBuf> {
    let top = Path::new(env!("CARGO_MANIFEST_DIR")).join("../..");
    let mut pages = vec![top.join("README.md"), top.join("docs/library.md")];
    let concepts = fs::read_dir(top.join("docs/concepts")).expect("the pages are there");
    pages.extend(concepts.map(|entry| entry.expect("it has a name").path()));
    pages.sort();
    pages
}

/// The commands of shell blocks, and those in the text.
fn commands(page: &str) -> Vec<String> {
    let mut commands = Vec::new();
    for (at, part) in page.split("```").enumerate() {
        let is_block = at % 2 == 1;
        if is_block && (part.starts_with("console\n") || part.starts_with("sh\n")) {
            // With a prompt, the lines without one are output, which may name commands, too.
            let has_prompt = part.lines().any(|line| line.starts_with("$ "));
            let prompt = if has_prompt { "$ " } else { "" };
            let lines = part.lines().filter_map(|line| line.strip_prefix(prompt));
            commands.extend(lines.filter(|line| line.starts_with("takeback ")).map(str::to_owned));
        } else if !is_block {
            let spans = part.split('`').skip(1).step_by(2);
            commands.extend(spans.filter(|span| span.starts_with("takeback ")).map(str::to_owned));
        }
    }
    commands
}

/// The arguments of the first command of a line, without redirections.
fn arguments(line: &str) -> Vec<String> {
    let mut words = vec![String::new()];
    let mut quote = None;
    for c in line.chars() {
        match (quote, c) {
            (None, ' ' | '\n') => words.push(String::new()),
            (None, '\'' | '"') => quote = Some(c),
            (Some(open), c) if c == open => quote = None,
            (_, c) => words.last_mut().expect("there is one").push(c),
        }
    }
    words.retain(|word| !word.is_empty());
    let end = |word: &String| matches!(word.as_str(), "#" | "|" | "&&" | "&" | ";" | "\\" | "…");
    let end = words.iter().position(|word| end(word) || word.starts_with(['>', '<']));
    words.truncate(end.unwrap_or(words.len()));
    words
}

#[test]
fn every_command_in_the_docs_is_understood() {
    let mut found = 0;
    for page in pages() {
        let text = fs::read_to_string(&page).expect("it can be read");
        for command in commands(&text) {
            found += 1;
            if let Err(error) = Args::try_parse_from(arguments(&command)) {
                let is_help = matches!(
                    error.kind(),
                    ErrorKind::DisplayHelp
                        | ErrorKind::DisplayVersion
                        | ErrorKind::DisplayHelpOnMissingArgumentOrSubcommand
                );
                // In running text a command may be named without its arguments.
                let is_named = error.kind() == ErrorKind::MissingRequiredArgument
                    && arguments(&command).len() <= 3;
                assert!(is_help || is_named, "{}: `{command}`\n{error}", page.display());
            }
        }
    }
    assert!(found > 60, "{found} commands");
}
