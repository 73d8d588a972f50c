//! Hooks in a settings file that has other settings too.
//!
//! Agents that have one read `{"hooks": {EVENT: [{"matcher": .., "hooks": [{"type": "command", ..}]}]}}`, in
//! JSON that may hold comments and commas before a closing bracket. The text is changed one element at a
//! time, and read again after each.

mod read;

use serde_json::{Value, json};

pub use self::read::JsonDialect;
use self::read::{HOOKS, OwnHook, Settings};
pub(super) use self::read::{parse_settings, refusal};
use super::command::{HookProgram, command_line};
use super::splice::{append, remove};
use super::{HookFormat, HookInFile, HooksInFile, Remainder, SettingsError};
use crate::kind::{AgentKind, HookSpec};

/// How an agent's settings file has hooks in it.
#[derive(Debug, Clone, Copy)]
pub struct SettingsFormat {
    /// The JSON that the agent reads.
    pub dialect: JsonDialect,
    /// In what a timeout is counted.
    pub timeout: TimeUnit,
    /// The `name` of a hook, for agents that list hooks by it.
    pub hook_name: Option<&'static str>,
    /// The key that keeps Takeback's hooks from running, if it is set so.
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
    // An agent that passes over the file would pass over the hooks.
    if let Some(error) =
        before.and_then(|before| refusal(agent.title, SettingsFormat::of(agent).dialect, before))
    {
        return Err(error);
    }
    put_in(agent, before, program)
}

/// As [`add_hooks`], into whatever Takeback can read.
pub(super) fn put_in(
    agent: &AgentKind,
    before: Option<&[u8]>,
    program: &HookProgram<'_>,
) -> Result<Option<Vec<u8>>, SettingsError> {
    let (bom, before) = read::text_of(before.unwrap_or_default())?;
    let mut text = before.to_owned();
    while let Some(surplus) = surplus(agent, &text, program)? {
        let stays = |event: &str| agent.hooks.iter().any(|wanted| wanted.event == event);
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

pub(super) fn remove_hooks(
    agent: &AgentKind,
    now: &[u8],
    first: Option<&[u8]>,
) -> Result<Remainder, SettingsError> {
    let (bom, before) = read::text_of(now)?;
    let first_value = first.and_then(|first| parse_settings(first).ok());
    let was_there = |event: Option<&str>| {
        let hooks = first_value.as_ref().and_then(|first| first.get(HOOKS));
        hooks.is_some_and(|hooks| event.is_none_or(|event| hooks.get(event).is_some()))
    };
    let mut text = before.to_owned();
    while let Some(ours) = Settings::read(&text)?.own_hooks(agent.name).first() {
        text = without(&text, ours, &was_there)?;
    }
    if text == before {
        return Ok(Remainder::Same);
    }
    faithful(agent, before, &text)?;
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
    let (_, text) = read::text_of(contents)?;
    let hooks = Settings::read(text)?.own_hooks(agent.name).into_iter().map(|own| HookInFile {
        event: own.event,
        command: own.command,
        position: own.position,
    });
    let switched_off = (format.switched_off)(&parse_settings(contents)?);
    Ok(HooksInFile { hooks: hooks.collect(), switched_off, missing: Vec::new() })
}

/// The first hook of Takeback's that is of no use: for an event that is not wanted, a second one for the
/// same, or with a program that does not run.
fn surplus(
    agent: &AgentKind,
    text: &str,
    program: &HookProgram<'_>,
) -> Result<Option<OwnHook>, SettingsError> {
    let mut seen = Vec::new();
    Ok(Settings::read(text)?.own_hooks(agent.name).into_iter().find(|ours| {
        let wanted = agent.hooks.iter().find(|wanted| ours.is_for(wanted));
        let is_first = !seen.contains(&ours.event);
        seen.push(ours.event.clone());
        wanted.is_none() || !is_first || !(program.runs)(&ours.command.program)
    }))
}

fn missing(agent: &AgentKind, text: &str) -> Result<Vec<&'static HookSpec>, SettingsError> {
    let ours = Settings::read(text)?.own_hooks(agent.name);
    let is_there = |wanted: &&HookSpec| ours.iter().any(|ours| ours.event == wanted.event);
    Ok(agent.hooks.iter().filter(|wanted| !is_there(wanted)).collect())
}

/// The text with one more hook, behind those of others.
fn with(
    agent: &AgentKind,
    text: &str,
    wanted: &HookSpec,
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
    ours: &OwnHook,
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

/// Both texts say the same, but for hooks of Takeback's.
fn faithful(agent: &AgentKind, before: &str, after: &str) -> Result<(), SettingsError> {
    let others = |text: &str| Ok(read::others(parse_settings(text.as_bytes())?, agent.name));
    if others(before)? == others(after)? { Ok(()) } else { Err(SettingsError::Unfaithful) }
}
