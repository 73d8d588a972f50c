//! Hooks in a settings file that has other things in it, too: Claude Code, Codex, Gemini CLI, Qwen Code.
//!
//! All four have `{"hooks": {EVENT: [{"matcher": .., "hooks": [{"type": "command", ..}]}]}}`, in JSON that
//! may hold comments and commas before a closing bracket.

use jsonc_parser::ParseOptions;
use jsonc_parser::cst::{CstArray, CstInputValue, CstNode, CstObject, CstObjectProp, CstRootNode};
use serde_json::Value;

use super::command::{HookCommand, Program, line};
use super::{Found, FoundHook, SettingsError, Without};
use crate::hook::{Plugged, Wanted, wanted};

const HOOKS: &str = "hooks";
const BOM: &str = "\u{feff}";

pub(super) fn with_hooks(
    agent: Plugged,
    before: Option<&[u8]>,
    program: &Program<'_>,
) -> Result<Option<Vec<u8>>, SettingsError> {
    let text = Text::of(before.unwrap_or_default())?;
    let root = text.parse()?;
    let object = top(&root)?;
    let all = hooks_of(&object)?;
    let mut there: Vec<&Wanted> = Vec::new();
    let mut surplus = Vec::new();
    for hook in ours(all.as_ref(), agent) {
        let is_good = |wanted: &&Wanted| {
            wanted.event == hook.event && hook.is_for(wanted.matcher) && hook.is_command
        };
        match wanted(agent).iter().find(is_good) {
            Some(wanted) if !there.contains(&wanted) && (program.runs)(&hook.command.program) => {
                there.push(wanted);
            }
            _ => surplus.push(hook),
        }
    }
    let missing: Vec<&Wanted> =
        wanted(agent).iter().filter(|wanted| !there.contains(wanted)).collect();
    if missing.is_empty() && surplus.is_empty() {
        return Ok(None);
    }
    let is_filled_again = |pointer: &str| {
        let event = pointer.strip_prefix("/hooks").map(|rest| rest.trim_start_matches('/'));
        event.is_some_and(|event| {
            event.is_empty() || missing.iter().any(|wanted| wanted.event == event)
        })
    };
    for hook in surplus {
        hook.remove(&is_filled_again);
    }
    if !missing.is_empty() {
        let hooks = match hooks_of(&object)? {
            Some(hooks) => hooks,
            None => append(&object, HOOKS, CstInputValue::Object(Vec::new())).object_value_or_set(),
        };
        for wanted in missing {
            let list = match list_of(&hooks, wanted.event)? {
                Some(list) => list,
                None => append(&hooks, wanted.event, CstInputValue::Array(Vec::new()))
                    .array_value_or_set(),
            };
            if list.elements().is_empty() {
                list.ensure_multiline();
            }
            list.append(group(agent, wanted, program.word));
        }
    }
    text.faithful(agent, &root).map(Some)
}

pub(super) fn without_hooks(
    agent: Plugged,
    now: &[u8],
    first: Option<&[u8]>,
) -> Result<Without, SettingsError> {
    let text = Text::of(now)?;
    let root = text.parse()?;
    let object = top(&root)?;
    let hooks = hooks_of(&object)?;
    let ours = ours(hooks.as_ref(), agent);
    if ours.is_empty() {
        return Ok(Without::Same);
    }
    let first = first.and_then(|first| value_of(first).ok());
    let was_there = |pointer: &str| first.as_ref().is_some_and(|v| v.pointer(pointer).is_some());
    for hook in ours {
        hook.remove(&was_there);
    }
    let is_empty = object.properties().is_empty() && first.is_none() && !has_comments(&root);
    if is_empty {
        return Ok(Without::Nothing);
    }
    text.faithful(agent, &root).map(Without::Rest)
}

pub(super) fn find(agent: Plugged, contents: &[u8]) -> Result<Found, SettingsError> {
    let text = Text::of(contents)?;
    let root = text.parse()?;
    let object = top(&root)?;
    let hooks = ours(hooks_of(&object)?.as_ref(), agent);
    let hooks =
        hooks.into_iter().map(|hook| FoundHook { event: hook.event, command: hook.command });
    let value = root.to_serde_value().unwrap_or_default();
    Ok(Found { hooks: hooks.collect(), switched_off: switched_off(agent, &value), missing: vec![] })
}

/// The key in a settings file that keeps its hooks from running.
fn switched_off(agent: Plugged, settings: &Value) -> Option<&'static str> {
    let is = |pointer: &str, value: bool| settings.pointer(pointer) == Some(&Value::Bool(value));
    match agent {
        Plugged::Claude | Plugged::Qwen if is("/disableAllHooks", true) => Some("disableAllHooks"),
        Plugged::Gemini if is("/hooksConfig/enabled", false) => Some("hooksConfig.enabled"),
        Plugged::Gemini if is("/tools/enableHooks", false) => Some("tools.enableHooks"),
        _ => None,
    }
}

/// One group with one hook, as the agent writes it.
fn group(agent: Plugged, wanted: &Wanted, program: &str) -> CstInputValue {
    let text = |text: &str| CstInputValue::String(text.to_owned());
    let timeout = match agent {
        Plugged::Gemini | Plugged::Qwen => u64::from(wanted.timeout_seconds) * 1000,
        _ => u64::from(wanted.timeout_seconds),
    };
    let mut hook = vec![
        ("type".to_owned(), text("command")),
        ("command".to_owned(), text(&line(agent, wanted.event, program))),
        ("timeout".to_owned(), CstInputValue::Number(timeout.to_string())),
    ];
    if agent == Plugged::Gemini {
        hook.insert(0, ("name".to_owned(), text("takeback")));
    }
    let mut group =
        vec![(HOOKS.to_owned(), CstInputValue::Array(vec![CstInputValue::Object(hook)]))];
    if let Some(matcher) = wanted.matcher {
        group.insert(0, ("matcher".to_owned(), text(matcher)));
    }
    CstInputValue::Object(group)
}

// --- one of Takeback's hooks, where it stands ---------------------------------------------------

struct Ours {
    event: String,
    command: HookCommand,
    matcher: Option<String>,
    is_command: bool,
    hook: CstNode,
    group: CstObject,
    list: CstObjectProp,
}

fn ours(hooks: Option<&CstObject>, agent: Plugged) -> Vec<Ours> {
    let mut found = Vec::new();
    for list in hooks.map(CstObject::properties).unwrap_or_default() {
        let event = list.decoded_name().unwrap_or_default();
        let groups = list.array_value().map(|list| list.elements()).unwrap_or_default();
        for group in groups.iter().filter_map(CstNode::as_object) {
            let matcher = text_of(&group, "matcher");
            let of_group = group.array_value(HOOKS).map(|hooks| hooks.elements());
            for hook in of_group.unwrap_or_default() {
                let Some(object) = hook.as_object() else { continue };
                let line = text_of(&object, "command");
                let command = line.and_then(|line| HookCommand::read(&line, agent));
                let Some(command) = command else { continue };
                let is_command = text_of(&object, "type").as_deref() == Some("command");
                found.push(Ours {
                    event: event.clone(),
                    command,
                    matcher: matcher.clone(),
                    is_command,
                    hook,
                    group: group.clone(),
                    list: list.clone(),
                });
            }
        }
    }
    found
}

impl Ours {
    /// Whether it runs for the tools that are meant.
    fn is_for(&self, wanted: Option<&str>) -> bool {
        let all = |matcher: Option<&str>| matches!(matcher, None | Some("" | "*"));
        let own = self.matcher.as_deref();
        own == wanted || all(own) && all(wanted)
    }

    /// Takes it away, and what held nothing else, unless `stays` says that it was there without it.
    fn remove(self, stays: &dyn Fn(&str) -> bool) {
        let is_empty = |list: Option<CstArray>| list.is_none_or(|list| list.elements().is_empty());
        self.hook.remove();
        if is_empty(self.group.array_value(HOOKS)) {
            self.group.remove();
        }
        let event = self.event.replace('~', "~0").replace('/', "~1");
        if is_empty(self.list.array_value()) && !stays(&format!("/{HOOKS}/{event}")) {
            let hooks = self.list.parent().and_then(|parent| parent.as_object());
            self.list.remove();
            if let Some(hooks) = hooks.filter(|hooks| hooks.properties().is_empty())
                && !stays(&format!("/{HOOKS}"))
                && let Some(property) = hooks.parent().and_then(|parent| parent.as_object_prop())
            {
                property.remove();
            }
        }
    }
}

// --- the parts of a settings file ---------------------------------------------------------------

/// The text of a file, and what stood before it.
struct Text<'a> {
    has_bom: bool,
    text: &'a str,
}

impl<'a> Text<'a> {
    fn of(bytes: &'a [u8]) -> Result<Self, SettingsError> {
        let text = std::str::from_utf8(bytes).map_err(|_error| SettingsError::NotText)?;
        let stripped = text.strip_prefix(BOM);
        Ok(Self { has_bom: stripped.is_some(), text: stripped.unwrap_or(text) })
    }

    fn parse(&self) -> Result<CstRootNode, SettingsError> {
        let options = ParseOptions {
            allow_comments: true,
            allow_trailing_commas: true,
            allow_loose_object_property_names: false,
            allow_missing_commas: false,
            allow_single_quoted_strings: false,
            allow_hexadecimal_numbers: false,
            allow_unary_plus_numbers: false,
            allow_bare_decimal_point_numbers: false,
            allow_non_finite_numbers: false,
            allow_extended_string_escapes: false,
        };
        CstRootNode::parse(self.text, &options).map_err(|error| SettingsError::NotJson {
            line: error.line_display(),
            column: error.column_display(),
            what: error.kind().to_string(),
        })
    }

    /// What the tree has become, if it reads as before but for hooks of Takeback's.
    fn faithful(&self, agent: Plugged, root: &CstRootNode) -> Result<Vec<u8>, SettingsError> {
        let bom = if self.has_bom { BOM } else { "" };
        let mut after = format!("{bom}{root}").into_bytes();
        if self.text.trim().is_empty() {
            after.push(b'\n');
        }
        let others = |bytes: &[u8]| value_of(bytes).map(|value| others(value, agent));
        if others(self.text.as_bytes())? != others(&after)? {
            return Err(SettingsError::Unfaithful);
        }
        Ok(after)
    }
}

/// What a settings file says; nothing, if it is empty.
fn value_of(bytes: &[u8]) -> Result<Value, SettingsError> {
    let root = Text::of(bytes)?.parse()?;
    Ok(root.to_serde_value().unwrap_or_else(|| Value::Object(serde_json::Map::new())))
}

/// What a settings file says beside Takeback's hooks; what is empty without them counts as not there.
fn others(mut settings: Value, agent: Plugged) -> Value {
    let Some(hooks) = settings.get_mut(HOOKS).and_then(Value::as_object_mut) else {
        return settings;
    };
    let is_ours = |hook: &Value| {
        let line = hook["command"].as_str();
        line.is_some_and(|line| HookCommand::read(line, agent).is_some())
    };
    for groups in hooks.values_mut().filter_map(Value::as_array_mut) {
        for hooks in groups.iter_mut().filter_map(|group| group.get_mut(HOOKS)?.as_array_mut()) {
            hooks.retain(|hook| !is_ours(hook));
        }
        let is_empty = |group: &Value| group[HOOKS].as_array().is_some_and(Vec::is_empty);
        groups.retain(|group| !is_empty(group));
    }
    hooks.retain(|_, groups| groups.as_array().is_none_or(|groups| !groups.is_empty()));
    if hooks.is_empty()
        && let Some(settings) = settings.as_object_mut()
    {
        settings.remove(HOOKS);
    }
    settings
}

fn top(root: &CstRootNode) -> Result<CstObject, SettingsError> {
    let not_object = || SettingsError::Shape { what: "the file".into(), must_be: "an object" };
    root.object_value_or_create().ok_or_else(not_object)
}

fn hooks_of(object: &CstObject) -> Result<Option<CstObject>, SettingsError> {
    let Some(property) = only(object, HOOKS, HOOKS)? else { return Ok(None) };
    let not_object = || SettingsError::Shape { what: HOOKS.into(), must_be: "an object" };
    property.object_value().ok_or_else(not_object).map(Some)
}

fn list_of(hooks: &CstObject, event: &str) -> Result<Option<CstArray>, SettingsError> {
    let what = format!("{HOOKS}.{event}");
    let Some(property) = only(hooks, event, &what)? else { return Ok(None) };
    property.array_value().ok_or(SettingsError::Shape { what, must_be: "a list" }).map(Some)
}

/// Agents take the last of two, which would hide what is put into the first.
fn only(
    object: &CstObject,
    name: &str,
    what: &str,
) -> Result<Option<CstObjectProp>, SettingsError> {
    let properties = object.properties().into_iter();
    let mut named = properties.filter(|property| property.decoded_name().as_deref() == Some(name));
    match (named.next(), named.next()) {
        (_, Some(_)) => Err(SettingsError::Twice { what: what.to_owned() }),
        (property, None) => Ok(property),
    }
}

fn append(object: &CstObject, name: &str, value: CstInputValue) -> CstObjectProp {
    // In one that is not empty, the blanks between what is there are its owner's.
    if object.properties().is_empty() {
        object.ensure_multiline();
    }
    object.append(name, value)
}

fn text_of(object: &CstObject, name: &str) -> Option<String> {
    object.get(name)?.value()?.as_string_lit()?.decoded_value().ok()
}

fn has_comments(root: &CstRootNode) -> bool {
    fn any(nodes: &[CstNode]) -> bool {
        nodes.iter().any(|node| node.is_comment() || any(&node.children()))
    }
    any(&root.children())
}
