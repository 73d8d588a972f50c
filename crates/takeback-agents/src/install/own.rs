//! Hooks in a file that holds nothing else: Copilot CLI reads every file in a folder, opencode loads a
//! plugin. Such a file is Takeback's and is written as a whole.

use serde_json::{Value, json};

use super::command::{HookCommand, Program, line, word_of};
use super::{Found, FoundHook, Position, SettingsError, Without};
use crate::hook::{Plugged, wanted};
use crate::opencode;

pub(super) fn with_hooks(
    agent: Plugged,
    before: Option<&[u8]>,
    program: &Program<'_>,
) -> Result<Option<Vec<u8>>, SettingsError> {
    let mut word = program.word.to_owned();
    let mut bare = word_of(&word);
    if let Some(before) = before.filter(|before| !before.trim_ascii().is_empty()) {
        let found = find(agent, before)?;
        if found.hooks.is_empty() {
            return Err(SettingsError::Foreign);
        }
        // A program that runs stays: it may have been chosen.
        if let Some(hook) = found.hooks.iter().find(|hook| (program.runs)(&hook.command.program)) {
            hook.command.word().clone_into(&mut word);
            bare.clone_from(&hook.command.program);
        }
    }
    let whole = match agent {
        Plugged::Opencode => opencode::plugin(&bare).into_bytes(),
        _ => as_json(agent, &word).into_bytes(),
    };
    Ok((before != Some(whole.as_slice())).then_some(whole))
}

pub(super) fn without_hooks(agent: Plugged, now: &[u8]) -> Result<Without, SettingsError> {
    let found = find(agent, now)?;
    Ok(if found.hooks.is_empty() { Without::Same } else { Without::Nothing })
}

pub(super) fn find(agent: Plugged, contents: &[u8]) -> Result<Found, SettingsError> {
    let text = std::str::from_utf8(contents).map_err(|_error| SettingsError::NotText)?;
    match agent {
        Plugged::Opencode => Ok(in_plugin(text)),
        _ => in_json(agent, text),
    }
}

/// The plugin says on a line of its own which program it runs.
fn in_plugin(text: &str) -> Found {
    let mut lines = text.lines();
    let is_ours = text.starts_with("// Tells Takeback what opencode does.");
    let program = lines.find_map(|line| {
        let value = line.strip_prefix("const TAKEBACK = ")?.strip_suffix(';')?;
        serde_json::from_str::<String>(value).ok()
    });
    let Some(program) = program.filter(|_| is_ours) else { return Found::default() };
    let command = HookCommand { line: program.clone(), program };
    let hook = |event: &str| FoundHook {
        event: event.to_owned(),
        command: command.clone(),
        position: Position::default(),
    };
    let events = wanted(Plugged::Opencode).iter().map(|wanted| wanted.event);
    Found { hooks: events.map(hook).collect(), ..Found::default() }
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
        for (group, hook) in hooks.as_array().into_iter().flatten().enumerate() {
            let line = hook["bash"].as_str().unwrap_or_default();
            let command = HookCommand::read(line, agent).ok_or(SettingsError::Foreign)?;
            let position = Position { group, hook: 0 };
            found.hooks.push(FoundHook { event: event.clone(), command, position });
        }
    }
    Ok(found)
}

fn as_json(agent: Plugged, program: &str) -> String {
    let lists: Vec<String> = wanted(agent)
        .iter()
        .map(|wanted| {
            let (event, seconds) = (json!(wanted.event), wanted.timeout_seconds);
            let line = json!(line(agent, wanted.event, program));
            format!(
                "    {event}: [\n      {{ \"type\": \"command\", \"bash\": {line}, \
                 \"timeoutSec\": {seconds} }}\n    ]"
            )
        })
        .collect();
    format!("{{\n  \"version\": 1,\n  \"hooks\": {{\n{}\n  }}\n}}\n", lists.join(",\n"))
}
