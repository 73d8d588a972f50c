//! Commands that begin with a slash: what they are called, and which of them a few letters may mean.

/// A command as the user sees it. What it does is the caller's business.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct SlashCommand {
    /// Without the slash.
    pub name: &'static str,
    pub aliases: &'static [&'static str],
    /// `[label]`, `FILE`, or nothing.
    pub arguments: &'static str,
    pub help: &'static str,
}

impl SlashCommand {
    pub fn names(&self) -> impl Iterator<Item = &'static str> {
        std::iter::once(self.name).chain(self.aliases.iter().copied())
    }

    /// `/checkpoint [label]`.
    #[must_use]
    pub fn usage(&self) -> String {
        format!("/{} {}", self.name, self.arguments).trim_end().to_owned()
    }
}

/// A line that begins with a slash: the command's name and what follows it.
#[must_use]
pub fn split(line: &str) -> Option<(&str, &str)> {
    let line = line.strip_prefix('/')?;
    let end = line.find(char::is_whitespace).unwrap_or(line.len());
    Some((&line[..end], line[end..].trim()))
}

/// The command of that name or alias.
#[must_use]
pub fn find(commands: &'static [SlashCommand], name: &str) -> Option<&'static SlashCommand> {
    commands.iter().find(|command| command.names().any(|known| known == name))
}

/// What the line may become, as long as only a name is being typed.
#[must_use]
pub fn candidates(
    commands: &'static [SlashCommand],
    line: &str,
) -> Vec<(&'static str, &'static SlashCommand)> {
    let Some(begun) = line.strip_prefix('/') else { return Vec::new() };
    if begun.contains(char::is_whitespace) {
        return Vec::new();
    }
    let fits = |command: &'static SlashCommand| {
        let name = command.names().find(|name| name.starts_with(begun))?;
        Some((name, command))
    };
    commands.iter().filter_map(fits).collect()
}

/// The longest beginning that all candidates share, with the slash; a lone one is complete.
#[must_use]
pub fn completed(candidates: &[(&'static str, &'static SlashCommand)]) -> Option<String> {
    match candidates {
        [] => None,
        [(name, command)] => {
            let space = if command.arguments.is_empty() { "" } else { " " };
            Some(format!("/{name}{space}"))
        }
        [(first, _), rest @ ..] => {
            let shared = rest.iter().fold(first.len(), |shared, (name, _)| {
                first.bytes().zip(name.bytes()).take(shared).take_while(|(a, b)| a == b).count()
            });
            Some(format!("/{}", &first[..shared]))
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const fn command(name: &'static str, aliases: &'static [&'static str]) -> SlashCommand {
        SlashCommand { name, aliases, arguments: "", help: "" }
    }

    static COMMANDS: [SlashCommand; 3] = [
        SlashCommand { name: "export", aliases: &[], arguments: "FILE", help: "" },
        command("exit", &["quit"]),
        command("rewind", &["restore"]),
    ];

    fn names(line: &str) -> Vec<&'static str> {
        candidates(&COMMANDS, line).into_iter().map(|(name, _)| name).collect()
    }

    #[test]
    fn a_line_is_a_name_and_the_rest() {
        assert_eq!(split("/rewind  @~2 "), Some(("rewind", "@~2")));
        assert_eq!(split("/"), Some(("", "")));
        assert_eq!(split("no slash"), None);
        assert_eq!(split("/label\nof two lines"), Some(("label", "of two lines")));
    }

    #[test]
    fn names_and_aliases_are_found_whole() {
        assert_eq!(find(&COMMANDS, "restore").map(|command| command.name), Some("rewind"));
        assert_eq!(find(&COMMANDS, "rest"), None);
    }

    #[test]
    fn candidates_begin_with_what_was_typed() {
        assert_eq!(names("/ex"), ["export", "exit"]);
        assert_eq!(names("/re"), ["rewind"], "one command is listed once");
        assert_eq!(names("/res"), ["restore"]);
        assert_eq!(names("/export x"), [""; 0]);
        assert_eq!(names("export"), [""; 0]);
    }

    #[test]
    fn completion_goes_as_far_as_it_is_clear() {
        let of = |line| completed(&candidates(&COMMANDS, line));
        assert_eq!(of("/e"), Some("/ex".to_owned()));
        assert_eq!(of("/exp"), Some("/export ".to_owned()));
        assert_eq!(of("/q"), Some("/quit".to_owned()));
        assert_eq!(of("/z"), None);
    }
}
