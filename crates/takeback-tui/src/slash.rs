//! Slash commands: their names, and completion of a partial name.

/// A command as the user sees it. The caller implements it.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct SlashCommand {
    /// Without the slash.
    pub name: &'static str,
    /// Other names, without the slash.
    pub aliases: &'static [&'static str],
    /// `[label]`, `FILE`, or empty.
    pub arguments: &'static str,
    /// One line for `/help` and completion.
    pub help: &'static str,
}

/// A command and the name or alias that matches the typed text.
pub(crate) type Candidate = (&'static str, &'static SlashCommand);

impl SlashCommand {
    /// The name, then the aliases.
    pub fn names(&self) -> impl Iterator<Item = &'static str> {
        std::iter::once(self.name).chain(self.aliases.iter().copied())
    }

    /// `/checkpoint [label]`.
    #[must_use]
    pub fn usage(&self) -> String {
        format!("/{} {}", self.name, self.arguments).trim_end().to_owned()
    }
}

/// Splits a line that starts with a slash into the command's name and its argument.
#[must_use]
pub fn split_slash(line: &str) -> Option<(&str, &str)> {
    let line = line.strip_prefix('/')?;
    let end = line.find(char::is_whitespace).unwrap_or(line.len());
    Some((&line[..end], line[end..].trim()))
}

/// The commands that a partly typed name may mean; none once an argument has begun.
pub(crate) fn candidates(commands: &'static [SlashCommand], line: &str) -> Vec<Candidate> {
    let Some(prefix) = line.strip_prefix('/') else { return Vec::new() };
    if prefix.contains(char::is_whitespace) {
        return Vec::new();
    }
    let matching = |command: &'static SlashCommand| {
        let name = command.names().find(|name| name.starts_with(prefix))?;
        Some((name, command))
    };
    commands.iter().filter_map(matching).collect()
}

/// The longest prefix that all candidates share, with the slash; a single candidate is completed.
pub(crate) fn complete(candidates: &[Candidate]) -> Option<String> {
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
    fn a_line_is_a_name_and_an_argument() {
        assert_eq!(split_slash("/rewind  @~2 "), Some(("rewind", "@~2")));
        assert_eq!(split_slash("/"), Some(("", "")));
        assert_eq!(split_slash("no slash"), None);
        assert_eq!(split_slash("/label\nof two lines"), Some(("label", "of two lines")));
    }

    #[test]
    fn candidates_start_with_the_typed_text() {
        assert_eq!(names("/ex"), ["export", "exit"]);
        assert_eq!(names("/re"), ["rewind"], "one command is listed once");
        assert_eq!(names("/res"), ["restore"]);
        assert_eq!(names("/export x"), [""; 0]);
        assert_eq!(names("export"), [""; 0]);
    }

    #[test]
    fn completion_stops_where_names_differ() {
        let of = |line| complete(&candidates(&COMMANDS, line));
        assert_eq!(of("/e"), Some("/ex".to_owned()));
        assert_eq!(of("/exp"), Some("/export ".to_owned()));
        assert_eq!(of("/q"), Some("/quit".to_owned()));
        assert_eq!(of("/z"), None);
    }
}
