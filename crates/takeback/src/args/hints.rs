//! Checks that every option named in a message or help text exists on the command it is about.
//!
//! Messages are found as string literals in the sources of the crates that make up the binary. A new one is
//! checked without being listed here; one whose command cannot be determined fails the test.

use std::collections::BTreeSet;
use std::fs;
use std::path::{Path, PathBuf};

use clap::{Arg, Command, CommandFactory as _};

use super::Args;

/// Commands that print a receipt.
const RECEIPTS: &[&str] = &["rewind", "undo", "redo", "state rollback"];

/// Messages that do not name their command, in files that belong to none or to several: the file, the
/// beginning of the message, and the commands that may print it.
const PRINTED_BY: &[(&str, &str, &[&str])] = &[
    ("core/rewind/plan.rs", "outside the workspace", RECEIPTS),
    ("core/rewind/plan.rs", "its current contents could not be saved", RECEIPTS),
    ("core/rewind/plan.rs", "its current contents are ", RECEIPTS),
    // An undo takes back what a rewind did: `nothing_of_an_undo_is_unclear` in takeback-core.
    ("core/rewind/plan.rs", "it is not certain who wrote it", &["rewind", "state rollback"]),
    ("takeback/commands/rewind.rs", "--partial skips", &["state rollback"]),
    (
        "takeback/ask.rs",
        "Run it in a terminal",
        &[
            "rewind",
            "undo",
            "redo",
            "state rollback",
            "state delete",
            "session delete",
            "forget",
            "purge",
            "init",
            "uninstall",
        ],
    ),
    ("takeback/error.rs", "Raise --max-retries", &["state resume"]),
    ("takeback/error.rs", "--state-only restores", &["state rollback"]),
    ("takeback/commands/init/warnings.rs", " --scope project", &["init", "uninstall"]),
    ("takeback/commands/init.rs", "--agent NAME", &["init", "uninstall"]),
    ("takeback/commands/init.rs", "Change to a project's folder", &["init", "uninstall"]),
    // Options of other programs, and of commands that this program starts.
    ("takeback/commands/patch.rs", "diff --git", &[]),
    ("core/rewind/follow_up/git.rs", " --soft", &[]),
    ("takeback/commands/mcp.rs", "Install it: `cargo install", &[]),
    ("takeback/commands/doctor/cause.rs", "This is expected if it was started", &[]),
    ("takeback/commands/mcp.rs", "--home", &["serve"]),
    ("takeback/commands/export_series.rs", "POINT and --session", &["export"]),
    ("takeback/commands/export_series.rs", "`git am --keep-cr", &[]),
    ("takeback/commands/hook/deadline.rs", "--", &["finish-event"]),
];

#[test]
fn every_option_that_is_named_exists() {
    let root = Args::command();
    let mut wrong = Vec::new();
    let mut used = BTreeSet::new();
    for (file, literal) in literals() {
        for part in parts(&literal) {
            let of_message = || part.command(&root).map(|command| vec![command]);
            let commands = printed_by(&file, &literal, &mut used)
                .or_else(of_message)
                .or_else(|| of_file(&root, &file));
            let Some(commands) = commands else {
                wrong.push(format!("{file}: which command says {literal:?}?"));
                continue;
            };
            for command in commands.iter().filter(|command| !has(&root, command, part.option)) {
                let option = part.option;
                wrong.push(format!("{file}: `{command}` has no --{option}: {literal:?}"));
            }
        }
    }
    let unused = (0..PRINTED_BY.len()).filter(|at| !used.contains(at));
    wrong.extend(unused.map(|at| format!("no message is {:?}", PRINTED_BY[at])));
    assert!(wrong.is_empty(), "{}", wrong.join("\n"));
}

#[test]
fn every_option_that_help_names_exists() {
    let root = Args::command();
    let mut wrong = Vec::new();
    for (name, command) in all(&root) {
        let about = [command.get_about(), command.get_long_about()].into_iter().flatten();
        let of_args = |arg: &Arg| {
            [arg.get_help(), arg.get_long_help()]
                .into_iter()
                .flatten()
                .map(ToString::to_string)
                .collect()
        };
        let args = command.get_arguments().flat_map(|arg| -> Vec<String> { of_args(arg) });
        for text in about.map(ToString::to_string).chain(args) {
            for part in parts(&text) {
                // `takeback state` may name any option of its subcommands.
                let has_below = |of: &str| {
                    let below = all(&root).into_iter().filter(|(other, _)| other.starts_with(of));
                    below.into_iter().any(|(other, _)| has(&root, &other, part.option))
                };
                if !has_below(&name) && !part.command(&root).is_some_and(|of| has_below(&of)) {
                    wrong.push(format!("{name} has no --{}: {text:?}", part.option));
                }
            }
        }
    }
    assert!(wrong.is_empty(), "{}", wrong.join("\n"));
}

/// An option in a message, with the text before it.
struct Part<'a> {
    before: &'a str,
    option: &'a str,
}

impl Part<'_> {
    /// The command that the message itself names before the option: the last one.
    fn command(&self, root: &Command) -> Option<String> {
        let (_, words) = self.before.rsplit_once("takeback ")?;
        let mut found = Vec::new();
        let mut command = root;
        for word in words.split([' ', '`']) {
            let Some(next) = command.find_subcommand(word) else { break };
            found.push(word);
            command = next;
        }
        Some(found.join(" "))
    }
}

/// The options that a message names. Of `takeback state effect {} KEY --receipt`, the last word.
fn parts(text: &str) -> Vec<Part<'_>> {
    let mut parts = Vec::new();
    for (at, _) in text.match_indices("--") {
        let name = &text[at + 2..];
        let end = name.find(|c: char| !(c.is_ascii_lowercase() || c == '-')).unwrap_or(name.len());
        let starts =
            text[..at].chars().next_back().is_none_or(|c| !c.is_alphanumeric() && c != '-');
        let option = name[..end].trim_end_matches('-');
        if starts && option.starts_with(|c: char| c.is_ascii_lowercase()) {
            parts.push(Part { before: &text[..at], option });
        }
    }
    parts
}

fn printed_by(file: &str, literal: &str, used: &mut BTreeSet<usize>) -> Option<Vec<String>> {
    let fits = |(of, begins, _): &(&str, &str, &[&str])| *of == file && literal.starts_with(begins);
    let at = PRINTED_BY.iter().position(fits)?;
    used.insert(at);
    Some(PRINTED_BY[at].2.iter().map(|command| (*command).to_owned()).collect())
}

/// `commands/state/list.rs` is about `state list`; everything in `commands/serve/` is about `serve`. Global
/// options may appear anywhere.
fn of_file(root: &Command, file: &str) -> Option<Vec<String>> {
    let Some(path) = file.strip_prefix("takeback/commands/") else {
        return file.starts_with("takeback/").then(|| vec![String::new()]);
    };
    let mut command = root;
    let mut found = Vec::new();
    for part in path.trim_end_matches(".rs").split('/') {
        let Some(next) = command.find_subcommand(part) else { break };
        found.push(part);
        command = next;
    }
    (!found.is_empty()).then(|| vec![found.join(" ")])
}

fn has(root: &Command, command: &str, option: &str) -> bool {
    let named = |arg: &Arg| arg.get_long() == Some(option);
    let words = command.split(' ').filter(|word| !word.is_empty());
    let found =
        words.fold(root, |at, word| at.find_subcommand(word).expect("there is such a command"));
    ["help", "version"].contains(&option)
        || found.get_arguments().any(named)
        || root.get_arguments().any(|arg| arg.is_global_set() && named(arg))
}

/// Every command with its name.
fn all(root: &Command) -> Vec<(String, &Command)> {
    let mut found = vec![(String::new(), root)];
    let mut at = 0;
    while let Some((name, command)) = found.get(at).cloned() {
        let full = |sub: &Command| format!("{name} {}", sub.get_name()).trim_start().to_owned();
        found.extend(command.get_subcommands().map(|sub| (full(sub), sub)));
        at += 1;
    }
    found
}

/// The string literals with an option in them, and their files as `takeback/ask.rs`. Options that agents'
/// programs are started with are skipped.
fn literals() -> Vec<(String, String)> {
    let crates = Path::new(env!("CARGO_MANIFEST_DIR")).parent().expect("a folder of crates");
    let mut found = Vec::new();
    for (folder, name) in
        [("takeback", "takeback"), ("takeback-core", "core"), ("takeback-store", "store")]
    {
        let source = crates.join(folder).join("src");
        for path in sources(&source) {
            let text = fs::read_to_string(&path).expect("a source");
            // Tests are at the foot of their file.
            let text = text.split("#[cfg(test)]\nmod tests").next().unwrap_or_default();
            let file = path.strip_prefix(&source).expect("it is below").display();
            let named = strings(text).into_iter().filter(|literal| !parts(literal).is_empty());
            found.extend(named.map(|literal| (format!("{name}/{file}"), literal)));
        }
    }
    assert!(found.len() > 30, "they are found: {}", found.len());
    found
}

fn sources(folder: &Path) -> Vec<PathBuf> {
    let mut found = Vec::new();
    for entry in fs::read_dir(folder).expect("a folder") {
        let path = entry.expect("it can be read").path();
        if path.is_dir() {
            found.extend(sources(&path));
        } else if path.extension().is_some_and(|end| end == "rs")
            && !path.ends_with("args/hints.rs")
            && !path.ends_with("commands/resolve/merge_tool.rs")
            // Options of git.
            && !path.ends_with("takeback-core/src/git.rs")
            && !folder.ends_with("takeback-core/src/git")
        {
            found.push(path);
        }
    }
    found
}

/// The string literals of a Rust source, with escapes left as they are, except at line ends.
fn strings(source: &str) -> Vec<String> {
    let mut found = Vec::new();
    let mut rest = source;
    while let Some(c) = rest.chars().next() {
        let next = &rest[c.len_utf8()..];
        rest = if rest.starts_with("//") {
            rest.split_once('\n').map_or("", |(_, rest)| rest)
        } else if let Some(raw) = raw_string(rest) {
            found.push(raw.0);
            raw.1
        } else if c == '\'' {
            // A character literal may be a quotation mark; a lifetime has no closing quote.
            let quoted =
                ["'\"'", "'\\\"'", "'\\''"].iter().find_map(|quoted| rest.strip_prefix(*quoted));
            quoted.unwrap_or(next)
        } else if c == '"' {
            let end = end_of_string(next);
            found.push(joined(&next[..end]));
            &next[end + 1..]
        } else {
            next
        };
    }
    found
}

fn raw_string(source: &str) -> Option<(String, &str)> {
    let hashes = source.strip_prefix('r')?;
    let text = hashes.trim_start_matches('#');
    let close = format!("\"{}", &hashes[..hashes.len() - text.len()]);
    let (text, rest) = text.strip_prefix('"')?.split_once(&close)?;
    Some((text.to_owned(), rest))
}

fn end_of_string(text: &str) -> usize {
    let mut is_escaped = false;
    for (at, c) in text.char_indices() {
        match c {
            '"' if !is_escaped => return at,
            _ => is_escaped = c == '\\' && !is_escaped,
        }
    }
    text.len() - 1
}

/// Joins a literal that continues on the next line.
fn joined(literal: &str) -> String {
    let mut lines = literal.split("\\\n");
    let first = lines.next().unwrap_or_default().to_owned();
    lines.fold(first, |text, line| text + line.trim_start())
}

#[test]
fn literals_are_read_as_the_compiler_reads_them() {
    let source = r##"
        // "no" 'x "no"
        let a = "one \"two\" \\"; let b = '"'; let c: &'static str = r#"raw "text""#;
        let d = "goes \
                 on"; let e = '\''; let f = b"bytes";
    "##;
    assert_eq!(strings(source), ["one \\\"two\\\" \\\\", "raw \"text\"", "goes on", "bytes"]);
}
