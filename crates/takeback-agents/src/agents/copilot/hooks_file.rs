//! The file with Takeback's hooks for Copilot CLI, which reads every file in its folder of hooks.

use serde_json::{Value, json};

use super::COPILOT;
use crate::install::{
    HookCommand, HookInFile, HookPosition, HooksInFile, ProgramWord, SettingsError, command_line,
};

pub(super) fn render(program: &ProgramWord) -> String {
    let lists: Vec<String> = COPILOT
        .hooks
        .iter()
        .map(|hook| {
            let (event, seconds) = (json!(hook.event), hook.timeout_seconds);
            let line = json!(command_line(&COPILOT, hook.event, &program.word));
            format!(
                "    {event}: [\n      {{ \"type\": \"command\", \"bash\": {line}, \
                 \"timeoutSec\": {seconds} }}\n    ]"
            )
        })
        .collect();
    format!("{{\n  \"version\": 1,\n  \"hooks\": {{\n{}\n  }}\n}}\n", lists.join(",\n"))
}

pub(super) fn find(text: &str) -> Result<HooksInFile, SettingsError> {
    if text.trim().is_empty() {
        return Ok(HooksInFile::default());
    }
    let value: Value = serde_json::from_str(text).map_err(|error| SettingsError::NotJson {
        line: error.line(),
        column: error.column(),
        what: error.to_string(),
    })?;
    let mut found = HooksInFile::default();
    for (event, hooks) in value["hooks"].as_object().into_iter().flatten() {
        for (group, hook) in hooks.as_array().into_iter().flatten().enumerate() {
            let line = hook["bash"].as_str().unwrap_or_default();
            let command = HookCommand::read(line, COPILOT.name).ok_or(SettingsError::Foreign)?;
            let position = HookPosition { group, hook: 0 };
            found.hooks.push(HookInFile { event: event.clone(), command, position });
        }
    }
    Ok(found)
}
