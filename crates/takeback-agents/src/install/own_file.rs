//! Hooks in a file with nothing else in it. Takeback owns such a file and writes it as a whole.

use super::command::{HookProgram, ProgramWord};
use super::{HooksInFile, Remainder, SettingsError};

/// A file that only Takeback writes.
#[derive(Debug, Clone, Copy)]
pub struct OwnFile {
    /// Its text, with hooks that run this program.
    pub render: fn(&ProgramWord) -> String,
    /// The hooks in its text. A file with other contents is [`SettingsError::Foreign`], or has no hooks.
    pub find: fn(text: &str) -> Result<HooksInFile, SettingsError>,
}

impl OwnFile {
    pub(super) fn add_hooks(
        &self,
        before: Option<&[u8]>,
        program: &HookProgram<'_>,
    ) -> Result<Option<Vec<u8>>, SettingsError> {
        let mut word = ProgramWord::new(program.word);
        if let Some(before) = before.filter(|before| !before.trim_ascii().is_empty()) {
            let found = self.find_hooks(before)?;
            if found.hooks.is_empty() {
                return Err(SettingsError::Foreign);
            }
            // A program that runs stays: the user may have chosen it.
            let runs = found.hooks.iter().find(|hook| (program.runs)(&hook.command.program));
            word = runs.map_or(word, |hook| hook.command.word());
        }
        let whole = (self.render)(&word).into_bytes();
        Ok((before != Some(whole.as_slice())).then_some(whole))
    }

    pub(super) fn remove_hooks(&self, now: &[u8]) -> Result<Remainder, SettingsError> {
        let is_empty = self.find_hooks(now)?.hooks.is_empty();
        Ok(if is_empty { Remainder::Same } else { Remainder::Nothing })
    }

    pub(super) fn find_hooks(&self, contents: &[u8]) -> Result<HooksInFile, SettingsError> {
        let text = std::str::from_utf8(contents).map_err(|_error| SettingsError::NotText)?;
        (self.find)(text)
    }
}
