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

/// Replaces clap's guess from similar letters by what the word means elsewhere.
pub(super) fn explain(mut error: clap::Error, words: &[OsString]) -> clap::Error {
    if error.kind() != ErrorKind::InvalidSubcommand {
        return error;
    }
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
    fn a_wrong_command_names_what_was_probably_meant() {
        for (line, tip) in [
            ("takeback annotate", "did you mean `takeback blame PATH`?"),
            ("takeback undelete src", "did you mean `takeback restore PATH`?"),
            ("takeback op log", "did you mean `takeback log --ops`?"),
            ("takeback -C / stash", "did you mean `takeback checkpoint LABEL`?"),
            ("takeback state ls", "did you mean `takeback state list`?"),
            ("takeback session ls", "did you mean `takeback sessions`?"),
            ("takeback rewnd", "similar subcommands exist: 'record', 'rewind'"),
            ("takeback xyzzy", "`takeback help` lists the commands"),
        ] {
            let error = Args::of(&split(line)).unwrap_err().to_string();
            assert!(error.contains(tip), "{line}: {error}");
            assert_eq!(error.matches("tip:").count(), 1, "{line}: {error}");
        }
    }
}
