//! The command line of a hook of Takeback's: written, and known again.
//!
//! It stays the same from release to release: Codex asks its user again about every hook whose line has
//! changed.

use crate::hook::Plugged;

/// The program that is to record, and which programs can.
pub struct Program<'a> {
    /// As it stands in a command line, quoted for a shell.
    pub word: &'a str,
    /// Whether a program, as it stands in a command line that was found, can be run. A hook with one that
    /// can is left as it is.
    pub runs: &'a dyn Fn(&str) -> bool,
}

/// A command line that is known to be Takeback's.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct HookCommand {
    pub line: String,
    /// The program, without its quotes.
    pub program: String,
}

const NAME: &str = "takeback";

const WHATEVER: &str = " || true";

pub(super) fn line(agent: Plugged, event: &str, program: &str) -> String {
    let line = format!("{program} hook --agent {}", agent.name());
    match (agent, event) {
        // A hook of this one that cannot be run keeps Copilot CLI from every tool: also when Takeback was
        // taken away, or lies elsewhere now.
        (Plugged::Copilot, "preToolUse") => format!("{line} --event {event}{WHATEVER}"),
        (Plugged::Copilot, _) => format!("{line} --event {event}"),
        _ => line,
    }
}

impl HookCommand {
    /// What stands in the line before `hook`.
    pub(super) fn word(&self) -> &str {
        self.line.rfind(" hook --agent").map_or(&self.line, |end| &self.line[..end])
    }

    /// Whatever path the program has, and whatever stands before it.
    pub(super) fn read(line: &str, agent: Plugged) -> Option<Self> {
        let trimmed = line.trim();
        let suffix = format!(" hook --agent {}", agent.name());
        let at = trimmed.rfind(&suffix)?;
        let rest = trimmed[at + suffix.len()..].trim_start();
        let known = rest.is_empty()
            || rest
                .strip_prefix("--event ")
                .map(|event| event.strip_suffix(WHATEVER).unwrap_or(event))
                .is_some_and(|event| !event.trim().contains(' '));
        let program = last_word(trimmed[..at].trim_end());
        let name = program.rsplit(['/', '\\']).next();
        (known && name == Some(NAME)).then(|| Self { line: line.to_owned(), program })
    }
}

/// A word as a shell understands it: without its quotes.
pub(super) fn word_of(quoted: &str) -> String {
    last_word(quoted)
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

    const COPILOTS: (Plugged, &str) = (Plugged::Copilot, "preToolUse");

    #[test]
    fn without_takeback_copilot_runs_its_tools() {
        let (agent, event) = COPILOTS;
        let line = line(agent, event, "/nowhere/takeback");
        let ran = std::process::Command::new("sh").args(["-c", &line]).output().unwrap();
        assert!(ran.status.success());
    }

    #[test]
    fn what_is_written_is_known_again() {
        let programs = [
            ("takeback", "takeback"),
            ("/usr/bin/takeback", "/usr/bin/takeback"),
            ("'/my dir/it'\\''s/takeback'", "/my dir/it's/takeback"),
            ("\"/my dir/takeback\"", "/my dir/takeback"),
            ("TAKEBACK_HOME=/x takeback", "takeback"),
        ];
        for (word, program) in programs {
            for (agent, event) in
                Plugged::ALL.map(|agent| (agent, "Event")).into_iter().chain([COPILOTS])
            {
                let line = line(agent, event, word);
                let program = program.to_owned();
                let read = HookCommand::read(&line, agent);
                assert_eq!(read, Some(HookCommand { line, program }));
            }
        }
    }

    #[test]
    fn what_others_wrote_is_not() {
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
            assert_eq!(HookCommand::read(line, Plugged::Claude), None, "{line}");
        }
    }
}
