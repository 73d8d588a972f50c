//! The commands of the interactive session.

use takeback_core::point_name::distance;
use takeback_tui::slash::{SlashCommand, find, split};

/// What a command does.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Verb {
    Checkpoint,
    Rewind,
    Undo,
    Redo,
    Diff,
    Points,
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

/// In the order in which `/help` lists them.
static REGISTRY: [SlashCommand; 16] = [
    command(
        "checkpoint",
        &[],
        "[label]",
        "make a point of that name; without one, choose where to go back to",
    ),
    command("rewind", &["restore"], "[point]", "go back to a point, or choose one"),
    command("undo", &[], "", "take back the last rewind"),
    command("redo", &[], "", "take back the last undo"),
    command("diff", &[], "", "what changed since the last prompt"),
    command("points", &["log"], "", "list the points, newest first"),
    command("status", &[], "", "what is recorded, and where"),
    command("save", &[], "[name]", "keep this conversation under a name"),
    command("load", &[], "NAME", "go on from a conversation that was saved"),
    command("conversations", &[], "", "list the conversations that were saved"),
    command("delete", &[], "NAME", "delete a conversation that was saved"),
    command("export", &[], "FILE", "write all points into one file"),
    command("import", &[], "FILE", "add the points of such a file"),
    command("help", &["?"], "", "list the commands and keys"),
    command("clear", &[], "", "begin a new conversation; files and points stay"),
    command("exit", &["quit"], "", "leave"),
];

fn verb_of(name: &str) -> Verb {
    match name {
        "checkpoint" => Verb::Checkpoint,
        "rewind" => Verb::Rewind,
        "undo" => Verb::Undo,
        "redo" => Verb::Redo,
        "diff" => Verb::Diff,
        "points" => Verb::Points,
        "status" => Verb::Status,
        "save" => Verb::Save,
        "load" => Verb::Load,
        "conversations" => Verb::Conversations,
        "delete" => Verb::Delete,
        "export" => Verb::Export,
        "import" => Verb::Import,
        "clear" => Verb::Clear,
        "exit" => Verb::Exit,
        _ => Verb::Help,
    }
}

pub(super) fn registry() -> &'static [SlashCommand] {
    &REGISTRY
}

/// The command of a line and its argument; or why there is none.
pub(super) fn parse(line: &str) -> Result<(Verb, Option<&str>), String> {
    let Some((name, rest)) = split(line) else { return Err("not a command".to_owned()) };
    let Some(command) = find(&REGISTRY, name) else { return Err(unknown(name)) };
    let verb = verb_of(command.name);
    let argument = Some(rest).filter(|rest| !rest.is_empty());
    if command.arguments.starts_with(|c: char| c.is_uppercase()) && argument.is_none() {
        return Err(format!("/{name} needs a {}", command.arguments.to_lowercase()));
    }
    if command.arguments.is_empty() && argument.is_some() {
        return Err(format!("/{name} takes nothing after it"));
    }
    Ok((verb, argument))
}

fn unknown(name: &str) -> String {
    let names = REGISTRY.iter().flat_map(SlashCommand::names);
    let nearest = names.min_by_key(|known| distance(known, name));
    match nearest {
        Some(nearest) if name.len() <= 24 => {
            format!("there is no command /{name}; did you mean /{nearest}?")
        }
        _ => "there is no such command; /help lists them".to_owned(),
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
        assert_eq!(parse("/restore @~1"), Ok((Verb::Rewind, Some("@~1"))));
        assert_eq!(parse("/quit"), Ok((Verb::Exit, None)));
    }

    #[test]
    fn what_is_wrong_is_told() {
        assert_eq!(
            parse("/rewnd"),
            Err("there is no command /rewnd; did you mean /rewind?".to_owned())
        );
        assert_eq!(parse("/load"), Err("/load needs a name".to_owned()));
        assert_eq!(parse("/undo now"), Err("/undo takes nothing after it".to_owned()));
    }
}
