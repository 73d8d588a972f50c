//! Writes and recognizes the command lines of Takeback's hooks.
//!
//! A line must stay the same from release to release: Codex asks its user again about every hook whose line
//! has changed.

use crate::kind::AgentKind;

/// The program that new hooks run, and which programs of installed hooks still work.
pub struct HookProgram<'a> {
    /// As written in a command line, quoted for a shell.
    pub word: &'a str,
    /// Whether the program of an installed hook can be run. If it can, the hook is left as it is.
    pub runs: &'a dyn Fn(&str) -> bool,
}

/// A program as a shell reads it.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct ProgramWord {
    /// Quoted, with everything before it in the command line.
    pub word: String,
    /// Without its quotes.
    pub path: String,
}

impl ProgramWord {
    pub(super) fn new(word: &str) -> Self {
        Self { word: word.to_owned(), path: last_word(word) }
    }
}

/// A command line recognized as Takeback's.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct HookCommand {
    /// The whole line.
    pub line: String,
    /// The program, without its quotes.
    pub program: String,
}

const NAME: &str = "takeback";

/// Ends a command line whose failure must not matter.
pub(crate) const IGNORE_FAILURE: &str = " || true";

/// The command line of a hook. `program`: quoted for a shell.
#[must_use]
pub fn command_line(agent: &AgentKind, event: &str, program: &str) -> String {
    format!("{program} hook --agent {}{}", agent.name, (agent.command_suffix)(event))
}

impl HookCommand {
    /// The program, with what precedes it in the line.
    pub(super) fn word(&self) -> ProgramWord {
        let end = self.line.rfind(" hook --agent").unwrap_or(self.line.len());
        ProgramWord { word: self.line[..end].to_owned(), path: self.program.clone() }
    }

    /// Recognizes a line for the agent of this name. The program may have any path, and other words may
    /// precede it.
    pub(crate) fn read(line: &str, agent: &str) -> Option<Self> {
        let trimmed = line.trim();
        let suffix = format!(" hook --agent {agent}");
        let at = trimmed.rfind(&suffix)?;
        let rest = trimmed[at + suffix.len()..].trim_start();
        let known = rest.is_empty()
            || rest
                .strip_prefix("--event ")
                .map(|event| event.strip_suffix(IGNORE_FAILURE).unwrap_or(event))
                .is_some_and(|event| !event.trim().contains(' '));
        let program = last_word(trimmed[..at].trim_end());
        let name = program.rsplit(['/', '\\']).next();
        (known && name == Some(NAME)).then(|| Self { line: line.to_owned(), program })
    }
}

/// The last word of a shell's command line, without its quotes.
fn last_word(text: &str) -> String {
    let mut word = String::new();
    let mut chars = text.chars();
    let mut quote = None;
    while let Some(c) = chars.next() {
        match (quote, c) {
            (None, '\'' | '"') => quote = Some(c),
            (Some(open), c) if c == open => quote = None,
            (None | Some('"'), '\\') => word.extend(chars.next()),
            (None, c) if c.is_whitespace() || matches!(c, ';' | '&' | '|' | '(') => word.clear(),
            (_, c) => word.push(c),
        }
    }
    word
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::agents::AGENTS;

    #[test]
    fn without_takeback_copilot_runs_its_tools() {
        let line = command_line(&crate::agents::COPILOT, "preToolUse", "/nowhere/takeback");
        let ran = std::process::Command::new("sh").args(["-c", &line]).output().unwrap();
        assert!(ran.status.success());
    }

    #[test]
    fn written_lines_are_recognized() {
        let programs = [
            ("takeback", "takeback"),
            ("/usr/bin/takeback", "/usr/bin/takeback"),
            ("'/my dir/it'\\''s/takeback'", "/my dir/it's/takeback"),
            ("\"/my dir/takeback\"", "/my dir/takeback"),
            ("TAKEBACK_HOME=/x takeback", "takeback"),
        ];
        for (word, program) in programs {
            for (agent, hook) in
                AGENTS.iter().flat_map(|agent| agent.hooks.iter().map(move |hook| (agent, hook)))
            {
                let line = command_line(agent, hook.event, word);
                let program = program.to_owned();
                let read = HookCommand::read(&line, agent.name);
                assert_eq!(read, Some(HookCommand { line, program }));
            }
        }
    }

    #[test]
    fn lines_of_others_are_not_recognized() {
        for line in [
            "takeback hook --agent codex",
            "takeback hook --agent claude-next",
            "takeback hook --agent claude; rm -r /tmp/x",
            "takeback hook --agent claude | tee log",
            "mytakeback hook --agent claude",
            "takeback-mine hook --agent claude",
            "echo takeback; hook --agent claude",
            "takeback status",
            "hook --agent claude",
            "",
        ] {
            assert_eq!(HookCommand::read(line, "claude"), None, "{line}");
        }
    }
}
