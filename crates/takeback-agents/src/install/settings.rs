//! Hooks in a settings file that has other settings too.
//!
//! Such a file holds `{"hooks": {EVENT: [{"matcher": .., "hooks": [{"type": "command", ..}]}]}}`, in
//! JSON that may have comments and trailing commas. The text is changed one element at a time, and parsed
//! again after each change.

mod document;

use serde_json::{Value, json};

pub use self::document::JsonDialect;
use self::document::{HOOKS, OwnHook, SettingsDocument};
pub(super) use self::document::{parse_settings, refusal};
use super::command::{HookProgram, command_line};
use super::splice::{append, remove};
use super::{HookFormat, HookInFile, HooksInFile, Remainder, SettingsError};
use crate::kind::{AgentKind, HookSpec};

/// How hooks are written in an agent's settings file.
#[derive(Debug, Clone, Copy)]
pub struct SettingsFormat {
    /// The JSON that the agent reads.
    pub dialect: JsonDialect,
    /// The unit of a timeout.
    pub timeout: TimeUnit,
    /// The `name` of a hook, for agents that list hooks by it.
    pub hook_name: Option<&'static str>,
    /// The key that switches Takeback's hooks off, if the settings do so.
    pub switched_off: fn(settings: &Value) -> Option<&'static str>,
}

impl SettingsFormat {
    /// Plain JSON, timeouts in seconds.
    pub const PLAIN: Self = Self {
        dialect: JsonDialect::JSON,
        timeout: TimeUnit::Seconds,
        hook_name: None,
        switched_off: |_| None,
    };

    fn of(agent: &AgentKind) -> &Self {
        match &agent.install {
            HookFormat::Settings(format) => format,
            HookFormat::OwnFile(_) => &Self::PLAIN,
        }
    }
}

/// A unit of timeouts.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum TimeUnit {
    /// 1 s.
    Seconds,
    /// 1 ms.
    Milliseconds,
}

pub(super) fn add_hooks(
    agent: &AgentKind,
    before: Option<&[u8]>,
    program: &HookProgram<'_>,
) -> Result<Option<Vec<u8>>, SettingsError> {
    // An agent that ignores the file would ignore the hooks.
    if let Some(error) =
        before.and_then(|before| refusal(agent.title, SettingsFormat::of(agent).dialect, before))
    {
        return Err(error);
    }
    add_hooks_unchecked(agent, before, program)
}

/// Like [`add_hooks`], also for a file that the agent refuses.
pub(super) fn add_hooks_unchecked(
    agent: &AgentKind,
    before: Option<&[u8]>,
    program: &HookProgram<'_>,
) -> Result<Option<Vec<u8>>, SettingsError> {
    let (bom, before) = document::text_of(before.unwrap_or_default())?;
    let mut text = before.to_owned();
    while let Some(surplus) = find_surplus(agent, &text, program)? {
        let stays = |event: &str| agent.hooks.iter().any(|wanted| wanted.event == event);
        text = without_hook(&text, &surplus, &|event| event.is_none_or(stays))?;
    }
    for wanted in missing_hooks(agent, &text)? {
        text = with_hook(agent, &text, wanted, program.word)?;
    }
    if text == before {
        return Ok(None);
    }
    check_others_unchanged(agent, before, &text)?;
    Ok(Some(format!("{bom}{text}").into_bytes()))
}

pub(super) fn remove_hooks(
    agent: &AgentKind,
    now: &[u8],
    first: Option<&[u8]>,
) -> Result<Remainder, SettingsError> {
    let (bom, before) = document::text_of(now)?;
    let first_value = first.and_then(|first| parse_settings(first).ok());
    let was_there = |event: Option<&str>| {
        let hooks = first_value.as_ref().and_then(|first| first.get(HOOKS));
        hooks.is_some_and(|hooks| event.is_none_or(|event| hooks.get(event).is_some()))
    };
    let mut text = before.to_owned();
    while let Some(ours) = SettingsDocument::parse(&text)?.own_hooks(agent.name).first() {
        text = without_hook(&text, ours, &was_there)?;
    }
    if text == before {
        return Ok(Remainder::Same);
    }
    check_others_unchanged(agent, before, &text)?;
    if first.is_none() && matches!(text.trim(), "" | "{}") {
        return Ok(Remainder::Nothing);
    }
    Ok(Remainder::Rest(format!("{bom}{text}").into_bytes()))
}

pub(super) fn find_hooks(
    agent: &AgentKind,
    format: &SettingsFormat,
    contents: &[u8],
) -> Result<HooksInFile, SettingsError> {
    let (_, text) = document::text_of(contents)?;
    let hooks = SettingsDocument::parse(text)?
        .own_hooks(agent.name)
        .into_iter()
        .map(|own| HookInFile { event: own.event, command: own.command, position: own.position });
    let switched_off = (format.switched_off)(&parse_settings(contents)?);
    Ok(HooksInFile { hooks: hooks.collect(), switched_off, missing: Vec::new() })
}

/// The first hook of Takeback's to remove: its event is not wanted or has a hook already, or its program
/// does not run.
fn find_surplus(
    agent: &AgentKind,
    text: &str,
    program: &HookProgram<'_>,
) -> Result<Option<OwnHook>, SettingsError> {
    let mut seen = Vec::new();
    Ok(SettingsDocument::parse(text)?.own_hooks(agent.name).into_iter().find(|ours| {
        let wanted = agent.hooks.iter().find(|wanted| ours.is_for(wanted));
        let is_first = !seen.contains(&ours.event);
        seen.push(ours.event.clone());
        wanted.is_none() || !is_first || !(program.runs)(&ours.command.program)
    }))
}

fn missing_hooks(agent: &AgentKind, text: &str) -> Result<Vec<&'static HookSpec>, SettingsError> {
    let ours = SettingsDocument::parse(text)?.own_hooks(agent.name);
    let is_there = |wanted: &&HookSpec| ours.iter().any(|ours| ours.event == wanted.event);
    Ok(agent.hooks.iter().filter(|wanted| !is_there(wanted)).collect())
}

/// The text with one more hook, after those of others.
fn with_hook(
    agent: &AgentKind,
    text: &str,
    wanted: &HookSpec,
    program: &str,
) -> Result<String, SettingsError> {
    if text.trim().is_empty() {
        return with_hook(agent, "{}\n", wanted, program);
    }
    let settings = SettingsDocument::parse(text)?;
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
    Ok(append(text, &container, &layout, &|indent| document::pretty(&element, indent, &layout)))
}

/// The text without one hook, and without the containers that are empty then. `stays`: whether an empty
/// list of an event (`None`: an empty `hooks`) stays.
fn without_hook(
    text: &str,
    ours: &OwnHook,
    stays: &dyn Fn(Option<&str>) -> bool,
) -> Result<String, SettingsError> {
    let holders = ours.holders.iter().rev();
    let mut cut = None;
    for (level, (container, number)) in holders.enumerate() {
        let is_alone = container.elements.len() == 1;
        cut = Some((container, *number));
        // An empty group is removed, then an empty list of the event, then an empty `hooks`.
        let removes_more = is_alone
            && match level {
                0 => true,
                1 => !stays(Some(&ours.event)),
                _ => !stays(None),
            };
        if !removes_more {
            break;
        }
    }
    cut.map(|(container, number)| remove(text, container, number))
        .ok_or(SettingsError::ChangesOthers)
}

/// One group with one hook, as JSON without blanks.
fn group(agent: &AgentKind, hook: &HookSpec, program: &str) -> String {
    let format = SettingsFormat::of(agent);
    let timeout = u64::from(hook.timeout_seconds)
        * match format.timeout {
            TimeUnit::Seconds => 1,
            TimeUnit::Milliseconds => 1000,
        };
    let key = |key: &str, value: Option<&str>| {
        value.map(|value| format!("\"{key}\":{},", json!(value))).unwrap_or_default()
    };
    let (matcher, name) = (key("matcher", hook.matcher), key("name", format.hook_name));
    let line = json!(command_line(agent, hook.event, program));
    format!(
        "{{{matcher}\"{HOOKS}\":[{{{name}\"type\":\"command\",\"command\":{line},\"timeout\":{timeout}}}]}}"
    )
}

/// Fails if the texts differ in more than Takeback's hooks.
fn check_others_unchanged(
    agent: &AgentKind,
    before: &str,
    after: &str,
) -> Result<(), SettingsError> {
    let others =
        |text: &str| Ok(document::without_own_hooks(parse_settings(text.as_bytes())?, agent.name));
    if others(before)? == others(after)? { Ok(()) } else { Err(SettingsError::ChangesOthers) }
}
