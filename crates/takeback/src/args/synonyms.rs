//! Words that other programs use for what a command does, and how Takeback says it.

use std::ffi::OsString;

use clap::builder::StyledStr;
use clap::error::{ContextKind, ContextValue, ErrorKind};

/// A word or two that are not commands, and what to type instead.
const SYNONYMS: &[(&str, &str)] = &[
    ("annotate", "takeback blame PATH"),
    ("praise", "takeback blame PATH"),
    ("who", "takeback blame PATH"),
    ("reset", "takeback rewind POINT"),
    ("checkout", "takeback rewind POINT"),
    ("undelete", "takeback restore PATH"),
    ("backout", "takeback revert TURN"),
    ("drop", "takeback revert TURN"),
    ("rollback", "takeback rewind POINT"),
    ("back", "takeback rewind POINT"),
    ("goto", "takeback rewind POINT"),
    ("menu", "takeback rewind"),
    ("abandon", "takeback undo"),
    ("snapshot", "takeback checkpoint"),
    ("save", "takeback checkpoint"),
    ("commit", "takeback checkpoint LABEL"),
    ("stash", "takeback checkpoint LABEL"),
    ("new", "takeback checkpoint LABEL"),
    ("add", "takeback checkpoint"),
    ("points", "takeback log"),
    ("prompts", "takeback log"),
    ("changes", "takeback diff"),
    ("agents", "takeback sessions"),
    ("trace", "takeback export --agent-trace FILE"),
    ("unrewind", "takeback undo"),
    ("list", "takeback log"),
    ("ls", "takeback log"),
    ("timeline", "takeback log"),
    ("op", "takeback log --ops"),
    ("operations", "takeback log --ops"),
    ("reflog", "takeback log --ops"),
    ("grep", "takeback log -S TEXT"),
    ("search", "takeback log -S TEXT"),
    ("find", "takeback log -S TEXT"),
    ("details", "takeback show"),
    ("info", "takeback status"),
    ("st", "takeback status"),
    ("evolog", "takeback history PATH"),
    ("filelog", "takeback history PATH"),
    ("tag", "takeback label POINT LABEL"),
    ("bookmark", "takeback label POINT LABEL"),
    ("name", "takeback label POINT LABEL"),
    ("keep", "takeback pin POINT"),
    ("install", "takeback init"),
    ("setup", "takeback init"),
    ("hooks", "takeback init"),
    ("exec", "takeback run -- CMD"),
    ("gc", "takeback cleanup"),
    ("clean", "takeback cleanup"),
    ("prune", "takeback cleanup"),
    ("size", "takeback du"),
    ("fsck", "takeback verify"),
    ("check", "takeback verify"),
    ("repair", "takeback verify"),
    ("settings", "takeback config"),
    ("set", "takeback config set KEY VALUE"),
    ("get", "takeback config get KEY"),
    ("remove", "takeback forget"),
    ("delete", "takeback forget"),
    ("rm", "takeback purge PATH"),
    ("move", "takeback relocate OLD NEW"),
    ("mv", "takeback relocate OLD NEW"),
    ("completion", "takeback completions SHELL"),
    ("version", "takeback --version"),
    ("tutorial", "takeback demo"),
    ("notes add", "takeback notes write"),
    ("notes list", "takeback notes show"),
    ("session list", "takeback sessions"),
    ("session ls", "takeback sessions"),
    ("session rm", "takeback session delete ID"),
    ("session remove", "takeback session delete ID"),
    ("state ls", "takeback state list"),
    ("state log", "takeback state list EXECUTION"),
    ("state rm", "takeback state delete ID"),
    ("state load", "takeback state resume ID"),
    ("state retry", "takeback state resume EXECUTION --from-step N"),
    ("state restore", "takeback state rollback ID"),
    ("state rewind", "takeback state rollback ID"),
    ("state branch", "takeback state fork ID BRANCH"),
];

/// A command, an option that it does not have (without its dashes), and what to type instead.
const OPTIONS: &[(&str, &str, &str)] = &[
    ("diff", "author", "takeback diff --by you"),
    ("diff", "name-only", "takeback diff --stat"),
    ("log", "author", "takeback log --by you"),
    ("log", "rewinds", "takeback log --ops"),
    ("log", "operations", "takeback log --ops"),
    ("log", "reflog", "takeback log --ops"),
    ("log", "max-count", "takeback log -n N"),
    ("log", "after", "takeback log --since TIME"),
    ("log", "before", "takeback log --until TIME"),
    ("log", "follow", "takeback history PATH"),
    ("rewind", "hard", "takeback rewind POINT --exact"),
    ("rewind", "force", "takeback rewind POINT -y"),
    ("rewind", "all", "takeback rewind POINT --all-agents"),
    ("rewind", "file", "takeback rewind POINT --path PATH"),
    ("checkpoint", "message", "takeback checkpoint LABEL"),
    ("checkpoint", "m", "takeback checkpoint LABEL"),
    ("checkpoint", "label", "takeback checkpoint LABEL"),
];

/// A command, an option that is not needed, and why.
const NEEDLESS: &[(&str, &str, &str)] =
    &[("log", "oneline", "`takeback log` has one line for each point already")];

/// A command that takes fewer words, and how to write them.
const WORDS: &[(&str, &str)] = &[
    ("bisect", "write the command after two dashes: `takeback bisect -- COMMAND`"),
    ("cat", "write point and path with a colon between: `takeback cat POINT:PATH`"),
    ("why", "write path and line with a colon between: `takeback why PATH:LINE`"),
    ("blame", "choose a line with an option: `takeback blame PATH -L LINE`"),
    ("stats", "write two points with dots between: `takeback stats A..B`"),
    ("diff", "choose paths with an option: `takeback diff POINT --path PATH`"),
    ("rewind", "choose paths with an option: `takeback rewind POINT --path PATH`"),
];

/// Replaces clap's guess from similar letters by what the word means elsewhere.
pub(super) fn explain(error: clap::Error, words: &[OsString]) -> clap::Error {
    match error.kind() {
        ErrorKind::InvalidSubcommand => explain_command(error, words),
        ErrorKind::UnknownArgument => explain_argument(error),
        _ => error,
    }
}

fn explain_argument(mut error: clap::Error) -> clap::Error {
    let (command, tip) = {
        let (Some(ContextValue::String(argument)), Some(ContextValue::StyledStr(usage))) =
            (error.get(ContextKind::InvalidArg), error.get(ContextKind::Usage))
        else {
            return error;
        };
        // `Usage: takeback diff --path <PATH> [FROM] [TO]`
        let usage = usage.to_string();
        let Some(command) = usage.split_whitespace().nth(2) else { return error };
        let is_it = |of: &str, option: &str| {
            of == command && argument.starts_with('-') && option == argument.trim_start_matches('-')
        };
        let option = OPTIONS.iter().find(|(of, option, _)| is_it(of, option));
        let needless = NEEDLESS.iter().find(|(of, option, _)| is_it(of, option));
        let word = WORDS.iter().find(|(of, _)| *of == command && !argument.starts_with('-'));
        let tip = match (option, needless, word) {
            (Some((.., meant)), ..) => format!("did you mean `{meant}`?"),
            (_, Some((.., why)), _) => (*why).to_owned(),
            (.., Some((_, how))) => (*how).to_owned(),
            _ => return error,
        };
        (command.to_owned(), tip)
    };
    error.remove(ContextKind::SuggestedArg);
    // clap's usage contains the option that it guessed.
    let mut program = super::command_line();
    program.build();
    if let Some(command) = program.find_subcommand_mut(&command) {
        error.insert(ContextKind::Usage, ContextValue::StyledStr(command.render_usage()));
    }
    error.insert(ContextKind::Suggested, ContextValue::StyledStrs(vec![StyledStr::from(tip)]));
    error
}

fn explain_command(mut error: clap::Error, words: &[OsString]) -> clap::Error {
    let Some(ContextValue::String(word)) = error.get(ContextKind::InvalidSubcommand) else {
        return error;
    };
    let at = words.iter().position(|other| other == word.as_str());
    let above = at.and_then(|at| words.get(at.checked_sub(1)?)?.to_str());
    let meant =
        above.and_then(|above| meaning(&format!("{above} {word}"))).or_else(|| meaning(word));
    let tip = match meant {
        Some(meant) => format!("did you mean `{meant}`?"),
        None if error.get(ContextKind::SuggestedSubcommand).is_none() => {
            "`takeback help` lists the commands".to_owned()
        }
        None => return error,
    };
    error.remove(ContextKind::SuggestedSubcommand);
    error.insert(ContextKind::Suggested, ContextValue::StyledStrs(vec![StyledStr::from(tip)]));
    error
}

fn meaning(words: &str) -> Option<&'static str> {
    let words = words.to_lowercase();
    SYNONYMS.iter().find(|(synonym, _)| *synonym == words).map(|(_, meant)| *meant)
}

#[cfg(test)]
mod tests {
    use clap::CommandFactory as _;

    use super::*;
    use crate::args::Args;

    fn split(line: &str) -> Vec<OsString> {
        line.split(' ').map(OsString::from).collect()
    }

    #[test]
    fn no_command_is_called_a_synonym_and_each_meaning_is_valid() {
        for (synonym, meant) in SYNONYMS {
            let error = Args::of(&split(&format!("takeback {synonym}"))).unwrap_err();
            assert_eq!(error.kind(), ErrorKind::InvalidSubcommand, "{synonym} is a command");
            let filled = meant.replace("KEY VALUE", "archiveDays 9").replace(" N", " 3");
            let filled = filled.replace("SHELL", "bash").replace("KEY", "archiveDays");
            match Args::of(&split(&filled)) {
                Err(error) if error.kind() == ErrorKind::DisplayVersion => {}
                parsed => drop(parsed.unwrap_or_else(|error| panic!("{synonym}: {error}"))),
            }
        }
        assert!(Args::command().find_subcommand("annotate").is_none());
    }

    #[test]
    fn no_command_has_these_options_and_each_meaning_is_valid() {
        let options = OPTIONS.iter().map(|(command, option, meant)| (command, option, *meant));
        let needless =
            NEEDLESS.iter().map(|(command, option, _)| (command, option, "takeback log"));
        for (command, option, meant) in options.chain(needless) {
            let dashes = if option.len() == 1 { "-" } else { "--" };
            let line = format!("takeback {command} {dashes}{option}");
            let error = Args::of(&split(&line)).unwrap_err();
            assert_eq!(error.kind(), ErrorKind::UnknownArgument, "{command} {option}");
            let filled = split(&meant.replace(" N", " 3").replace("TIME", "2h"));
            drop(Args::of(&filled).unwrap_or_else(|error| panic!("{command} {option}: {error}")));
        }
        for (command, how) in WORDS {
            let (_, meant) = how.split_once('`').unwrap();
            let filled = split(&meant.trim_end_matches('`').replace("PATH:LINE", "a:1"));
            drop(Args::of(&filled).unwrap_or_else(|error| panic!("{command}: {error}")));
        }
    }

    #[test]
    fn a_wrong_command_names_what_was_probably_meant() {
        for (line, tip) in [
            ("takeback annotate", "did you mean `takeback blame PATH`?"),
            ("takeback undelete src", "did you mean `takeback restore PATH`?"),
            ("takeback op log", "did you mean `takeback log --ops`?"),
            ("takeback -C / stash", "did you mean `takeback checkpoint LABEL`?"),
            ("takeback state ls", "did you mean `takeback state list`?"),
            ("takeback session ls", "did you mean `takeback sessions`?"),
            ("takeback diff --author me", "did you mean `takeback diff --by you`?"),
            ("takeback log --author=me", "did you mean `takeback log --by you`?"),
            ("takeback log --rewinds", "did you mean `takeback log --ops`?"),
            ("takeback log --oneline", "`takeback log` has one line for each point already"),
            ("takeback rewind --hard @", "did you mean `takeback rewind POINT --exact`?"),
            ("takeback checkpoint -m x", "did you mean `takeback checkpoint LABEL`?"),
            ("takeback bisect ./check", "after two dashes: `takeback bisect -- COMMAND`"),
            ("takeback bisect --good @ npm test", "after two dashes: `takeback bisect -- COMMAND`"),
            ("takeback cat @~2 src/a.rs", "a colon between: `takeback cat POINT:PATH`"),
            ("takeback why a.rs 12", "a colon between: `takeback why PATH:LINE`"),
            ("takeback stats @~2 @", "dots between: `takeback stats A..B`"),
            ("takeback diff @~2 @ src", "an option: `takeback diff POINT --path PATH`"),
            ("takeback log --patsh", "a similar argument exists: '--patch'"),
            ("takeback rewnd", "similar subcommands exist: 'record', 'rewind'"),
            ("takeback xyzzy", "`takeback help` lists the commands"),
        ] {
            let error = Args::of(&split(line)).unwrap_err().to_string();
            assert!(error.contains(tip), "{line}: {error}");
            assert_eq!(error.matches("tip:").count(), 1, "{line}: {error}");
        }
    }
}
