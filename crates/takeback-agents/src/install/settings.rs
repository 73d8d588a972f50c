//! Hooks in a settings file that has other things in it, too: Claude Code, Codex, Gemini CLI, Qwen Code.
//!
//! All four have `{"hooks": {EVENT: [{"matcher": .., "hooks": [{"type": "command", ..}]}]}}`, in JSON that
//! may hold comments and commas before a closing bracket. The text is changed one element at a time, and
//! read again after each.

mod read;

use serde_json::{Value, json};

use self::read::{HOOKS, Ours, Settings};
pub(super) use self::read::{refused, value_of};
use super::command::{HookCommand, Program, line};
use super::splice::{append, remove};
use super::{Found, FoundHook, SettingsError, Without};
use crate::hook::{Plugged, Wanted, wanted};

pub(super) fn with_hooks(
    agent: Plugged,
    before: Option<&[u8]>,
    program: &Program<'_>,
) -> Result<Option<Vec<u8>>, SettingsError> {
    // An agent that passes over the file would pass over the hooks.
    if let Some(error) = before.and_then(|before| refused(agent, before)) {
        return Err(error);
    }
    put_in(agent, before, program)
}

/// As [`with_hooks`], into whatever Takeback can read.
pub(super) fn put_in(
    agent: Plugged,
    before: Option<&[u8]>,
    program: &Program<'_>,
) -> Result<Option<Vec<u8>>, SettingsError> {
    let (bom, before) = read::text_of(before.unwrap_or_default())?;
    let mut text = before.to_owned();
    while let Some(surplus) = surplus(agent, &text, program)? {
        let stays = |event: &str| wanted(agent).iter().any(|wanted| wanted.event == event);
        text = without(&text, &surplus, &|event| event.is_none_or(stays))?;
    }
    for wanted in missing(agent, &text)? {
        text = with(agent, &text, wanted, program.word)?;
    }
    if text == before {
        return Ok(None);
    }
    faithful(agent, before, &text)?;
    Ok(Some(format!("{bom}{text}").into_bytes()))
}

pub(super) fn without_hooks(
    agent: Plugged,
    now: &[u8],
    first: Option<&[u8]>,
) -> Result<Without, SettingsError> {
    let (bom, before) = read::text_of(now)?;
    let first_value = first.and_then(|first| value_of(first).ok());
    let was_there = |event: Option<&str>| {
        let hooks = first_value.as_ref().and_then(|first| first.get(HOOKS));
        hooks.is_some_and(|hooks| event.is_none_or(|event| hooks.get(event).is_some()))
    };
    let mut text = before.to_owned();
    while let Some(ours) = Settings::read(&text)?.ours(agent).first() {
        text = without(&text, ours, &was_there)?;
    }
    if text == before {
        return Ok(Without::Same);
    }
    faithful(agent, before, &text)?;
    if first.is_none() && matches!(text.trim(), "" | "{}") {
        return Ok(Without::Nothing);
    }
    Ok(Without::Rest(format!("{bom}{text}").into_bytes()))
}

pub(super) fn find(agent: Plugged, contents: &[u8]) -> Result<Found, SettingsError> {
    let (_, text) = read::text_of(contents)?;
    let hooks = Settings::read(text)?.ours(agent).into_iter().map(|ours| FoundHook {
        event: ours.event,
        command: ours.command,
        position: ours.position,
    });
    let switched_off = switched_off(agent, &value_of(contents)?);
    Ok(Found { hooks: hooks.collect(), switched_off, missing: Vec::new() })
}

/// The key in a settings file that keeps hooks from running.
fn switched_off(agent: Plugged, settings: &Value) -> Option<&'static str> {
    let is = |pointer: &str, value: bool| settings.pointer(pointer) == Some(&Value::Bool(value));
    let disabled = settings.pointer("/hooksConfig/disabled").and_then(Value::as_array);
    let is_ours = |name: &Value| {
        let name = name.as_str().unwrap_or_default();
        name == NAME || HookCommand::read(name, agent).is_some()
    };
    match agent {
        Plugged::Claude | Plugged::Qwen if is("/disableAllHooks", true) => Some("disableAllHooks"),
        Plugged::Gemini if is("/hooksConfig/enabled", false) => Some("hooksConfig.enabled"),
        Plugged::Gemini if disabled.is_some_and(|names| names.iter().any(is_ours)) => {
            Some("hooksConfig.disabled")
        }
        _ => None,
    }
}

/// By which Gemini CLI lists a hook.
const NAME: &str = "takeback";

/// The first hook of Takeback's that is of no use: for an event that is not wanted, a second one for the
/// same, or with a program that does not run.
fn surplus(
    agent: Plugged,
    text: &str,
    program: &Program<'_>,
) -> Result<Option<Ours>, SettingsError> {
    let mut seen = Vec::new();
    Ok(Settings::read(text)?.ours(agent).into_iter().find(|ours| {
        let wanted = wanted(agent).iter().find(|wanted| ours.is_for(wanted));
        let is_first = !seen.contains(&ours.event);
        seen.push(ours.event.clone());
        wanted.is_none() || !is_first || !(program.runs)(&ours.command.program)
    }))
}

fn missing(agent: Plugged, text: &str) -> Result<Vec<&'static Wanted>, SettingsError> {
    let ours = Settings::read(text)?.ours(agent);
    let is_there = |wanted: &&Wanted| ours.iter().any(|ours| ours.event == wanted.event);
    Ok(wanted(agent).iter().filter(|wanted| !is_there(wanted)).collect())
}

/// The text with one more hook, behind those of others.
fn with(
    agent: Plugged,
    text: &str,
    wanted: &Wanted,
    program: &str,
) -> Result<String, SettingsError> {
    if text.trim().is_empty() {
        return with(agent, "{}\n", wanted, program);
    }
    let settings = Settings::read(text)?;
    let layout = settings.layout();
    let group = group(agent, wanted, program);
    let list = format!("[{group}]");
    let (container, element) = match (settings.hooks()?, settings.list(wanted.event)?) {
        (_, Some(list)) => (list, group),
        (Some(hooks), None) => (hooks, format!("{}:{list}", json!(wanted.event))),
        (None, None) => {
            (settings.top()?, format!("\"{HOOKS}\":{{{}:{list}}}", json!(wanted.event)))
        }
    };
    Ok(append(text, &container, &layout, &|indent| read::pretty(&element, indent, &layout)))
}

/// The text without one hook, and without what held nothing else. `stays`: whether the list of an event,
/// or all of `hooks`, is left, though it is empty.
fn without(
    text: &str,
    ours: &Ours,
    stays: &dyn Fn(Option<&str>) -> bool,
) -> Result<String, SettingsError> {
    let holders = ours.holders.iter().rev();
    let mut cut = None;
    for (level, (container, number)) in holders.enumerate() {
        let is_alone = container.elements.len() == 1;
        cut = Some((container, *number));
        // A hook goes with its group, a group with its event's list, that with all of `hooks`.
        let goes_on = is_alone
            && match level {
                0 => true,
                1 => !stays(Some(&ours.event)),
                _ => !stays(None),
            };
        if !goes_on {
            break;
        }
    }
    cut.map(|(container, number)| remove(text, container, number)).ok_or(SettingsError::Unfaithful)
}

/// One group with one hook, as the agent reads it: JSON without blanks.
fn group(agent: Plugged, wanted: &Wanted, program: &str) -> String {
    let timeout = match agent {
        Plugged::Gemini | Plugged::Qwen => u64::from(wanted.timeout_seconds) * 1000,
        _ => u64::from(wanted.timeout_seconds),
    };
    let name =
        if agent == Plugged::Gemini { format!("\"name\":\"{NAME}\",") } else { String::new() };
    let line = json!(line(agent, wanted.event, program));
    let matcher = wanted.matcher.map(|matcher| format!("\"matcher\":{},", json!(matcher)));
    format!(
        "{{{}\"{HOOKS}\":[{{{name}\"type\":\"command\",\"command\":{line},\"timeout\":{timeout}}}]}}",
        matcher.unwrap_or_default()
    )
}

/// Both texts say the same, but for hooks of Takeback's.
fn faithful(agent: Plugged, before: &str, after: &str) -> Result<(), SettingsError> {
    let others = |text: &str| Ok(read::others(value_of(text.as_bytes())?, agent));
    if others(before)? == others(after)? { Ok(()) } else { Err(SettingsError::Unfaithful) }
}
