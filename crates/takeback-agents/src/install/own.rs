//! Hooks in a file that holds nothing else: Copilot CLI reads every file in a folder, opencode loads a
//! plugin.

use serde_json::{Value, json};

use super::command::{HookCommand, Program, line};
use super::{Found, FoundHook, SettingsError, Without};
use crate::hook::{Plugged, wanted};

pub(super) fn with_hooks(
    agent: Plugged,
    before: Option<&[u8]>,
    program: &Program<'_>,
) -> Result<Option<Vec<u8>>, SettingsError> {
    let mut word = program.word.to_owned();
    if let Some(before) = before.filter(|before| !before.trim_ascii().is_empty()) {
        let found = find(agent, before)?;
        if found.hooks.is_empty() {
            return Err(SettingsError::Foreign);
        }
        // A line that works stays: what is about it may have been chosen.
        if let Some(hook) = found.hooks.iter().find(|hook| (program.runs)(&hook.command.program)) {
            let end = hook.command.line.rfind(" hook --agent").unwrap_or_default();
            hook.command.line[..end].clone_into(&mut word);
        }
    }
    let whole = whole(agent, &word);
    Ok((before != Some(whole.as_slice())).then_some(whole))
}

pub(super) fn without_hooks(agent: Plugged, now: &[u8]) -> Result<Without, SettingsError> {
    let found = find(agent, now)?;
    Ok(if found.hooks.is_empty() { Without::Same } else { Without::Nothing })
}

pub(super) fn find(agent: Plugged, contents: &[u8]) -> Result<Found, SettingsError> {
    let text = std::str::from_utf8(contents).map_err(|_error| SettingsError::NotText)?;
    match agent {
        Plugged::Copilot => in_json(agent, text),
        _ => Ok(Found::default()),
    }
}

fn in_json(agent: Plugged, text: &str) -> Result<Found, SettingsError> {
    if text.trim().is_empty() {
        return Ok(Found::default());
    }
    let value: Value = serde_json::from_str(text).map_err(|error| SettingsError::NotJson {
        line: error.line(),
        column: error.column(),
        what: error.to_string(),
    })?;
    let mut found = Found::default();
    for (event, hooks) in value["hooks"].as_object().into_iter().flatten() {
        for hook in hooks.as_array().into_iter().flatten() {
            let line = hook["bash"].as_str().unwrap_or_default();
            let command = HookCommand::read(line, agent).ok_or(SettingsError::Foreign)?;
            found.hooks.push(FoundHook { event: event.clone(), command });
        }
    }
    Ok(found)
}

fn whole(agent: Plugged, program: &str) -> Vec<u8> {
    let mut hooks = serde_json::Map::new();
    for wanted in wanted(agent) {
        let hook = json!({
            "type": "command",
            "bash": line(agent, wanted.event, program),
            "timeoutSec": wanted.timeout_seconds,
        });
        hooks.insert(wanted.event.to_owned(), json!([hook]));
    }
    let mut text = format!("{:#}", json!({ "version": 1, "hooks": hooks })).into_bytes();
    text.push(b'\n');
    text
}
