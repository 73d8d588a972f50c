//! The slash commands of a session: the table, and how a line is parsed.

use takeback_core::edit_distance;
use takeback_tui::{SlashCommand, split_slash};

/// What a command does.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Verb {
    Checkpoint,
    Rewind,
    Restore,
    Revert,
    Resolve,
    Undo,
    Redo,
    Diff,
    Points,
    Show,
    Blame,
    Why,
    History,
    Stats,
    Status,
    Save,
    Load,
    Conversations,
    Delete,
    Export,
    Import,
    Help,
    Clear,
    Exit,
}

const fn command(
    name: &'static str,
    aliases: &'static [&'static str],
    arguments: &'static str,
    help: &'static str,
) -> SlashCommand {
    SlashCommand { name, aliases, arguments, help }
}

/// In the order of `/help`, which is that of [`VERBS`].
static REGISTRY: [SlashCommand; 24] = [
    command(
        "checkpoint",
        &[],
        "[label]",
        "create a point with this label; without one, open the rewind menu",
    ),
    command("rewind", &[], "[point]", "go back to a point; without one, open the rewind menu"),
    command(
        "restore",
        &[],
        "[point|path]",
        "the same; with a path, bring it back as it was at the last prompt",
    ),
    command(
        "revert",
        &[],
        "[turn]",
        "take back one turn (POINT), call (POINT.N) or range (A..B) and keep what came later; without one, the \
         last prompt's",
    ),
    command(
        "resolve",
        &[],
        "[mine|before]",
        "settle all conflicts with your lines, or with those of before; without a word, list them",
    ),
    command("undo", &[], "", "undo the last rewind"),
    command("redo", &[], "", "undo the last undo"),
    command("diff", &[], "", "show what changed since the last prompt"),
    command("points", &["log"], "", "list points, newest first"),
    command(
        "show",
        &[],
        "[point]",
        "show a point and who changed what after it; without one, the last prompt",
    ),
    command("blame", &[], "PATH", "show who wrote each line of a file"),
    command("why", &[], "PATH:LINE", "show the prompt and the change that wrote a line"),
    command("history", &[], "PATH", "list the points after which a file changed"),
    command("stats", &[], "", "show who wrote how much, and what is left of it"),
    command("status", &[], "", "show what is recorded, and where"),
    command("save", &[], "[name]", "save this conversation under a name"),
    command("load", &[], "NAME", "continue a saved conversation"),
    command("conversations", &[], "", "list saved conversations"),
    command("delete", &[], "NAME", "delete a saved conversation"),
    command("export", &[], "FILE", "write all points to a file"),
    command("import", &[], "FILE", "import points from a file"),
    command("help", &["?"], "", "list commands and keys"),
    command("clear", &[], "", "start a new conversation; files and points stay"),
    command("exit", &["quit"], "", "end the session"),
];

const VERBS: [Verb; 24] = [
    Verb::Checkpoint,
    Verb::Rewind,
    Verb::Restore,
    Verb::Revert,
    Verb::Resolve,
    Verb::Undo,
    Verb::Redo,
    Verb::Diff,
    Verb::Points,
    Verb::Show,
    Verb::Blame,
    Verb::Why,
    Verb::History,
    Verb::Stats,
    Verb::Status,
    Verb::Save,
    Verb::Load,
    Verb::Conversations,
    Verb::Delete,
    Verb::Export,
    Verb::Import,
    Verb::Help,
    Verb::Clear,
    Verb::Exit,
];

pub(super) fn registry() -> &'static [SlashCommand] {
    &REGISTRY
}

/// The command of a line and its argument, or why the line has none.
pub(super) fn parse(line: &str) -> Result<(Verb, Option<&str>), String> {
    let Some((name, rest)) = split_slash(line) else { return Err("not a command".to_owned()) };
    let found = REGISTRY.iter().zip(VERBS).find(|(command, _)| command.names().any(|n| n == name));
    let Some((command, verb)) = found else { return Err(unknown(name)) };
    let argument = Some(rest).filter(|rest| !rest.is_empty());
    if command.arguments.starts_with(|c: char| c.is_uppercase()) && argument.is_none() {
        return Err(format!("/{name} needs a {}", command.arguments.to_lowercase()));
    }
    if command.arguments.is_empty() && argument.is_some() {
        return Err(format!("/{name} takes no argument"));
    }
    Ok((verb, argument))
}

fn unknown(name: &str) -> String {
    let names = REGISTRY.iter().flat_map(SlashCommand::names);
    // More changes than this turn any name into any other.
    let most = name.len().div_ceil(3);
    let close =
        names.map(|known| (edit_distance(known, name), known)).filter(|(far, _)| *far <= most);
    match close.min() {
        Some((_, known)) => format!("there is no command /{name}; did you mean /{known}?"),
        None if name.len() <= 24 => format!("there is no command /{name}; /help lists them"),
        None => "there is no such command; /help lists them".to_owned(),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_name_means_its_own_verb() {
        let verbs: Vec<String> = REGISTRY
            .iter()
            .map(|command| {
                let argument = if command.arguments.is_empty() { "" } else { " x" };
                let (verb, _) =
                    parse(&format!("/{}{argument}", command.name)).expect("it is known");
                format!("{verb:?}").to_lowercase()
            })
            .collect();
        let names: Vec<&str> = REGISTRY.iter().map(|command| command.name).collect();
        assert_eq!(verbs, names);
        assert_eq!(parse("/restore @~1"), Ok((Verb::Restore, Some("@~1"))));
        assert_eq!(parse("/quit"), Ok((Verb::Exit, None)));
    }

    #[test]
    fn errors_say_what_is_wrong() {
        assert_eq!(
            parse("/rewnd"),
            Err("there is no command /rewnd; did you mean /rewind?".to_owned())
        );
        assert_eq!(
            parse("/frobnicate"),
            Err("there is no command /frobnicate; /help lists them".to_owned())
        );
        assert_eq!(parse("/load"), Err("/load needs a name".to_owned()));
        assert_eq!(parse("/undo now"), Err("/undo takes no argument".to_owned()));
    }
}
