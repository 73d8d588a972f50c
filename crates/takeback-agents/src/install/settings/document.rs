//! A parsed settings file, with the position of each part in the text.

use std::ops::Range;

use jsonc_parser::ast::{Array, Object, ObjectProp, Value as Node};
use jsonc_parser::common::Ranged as _;
use jsonc_parser::{CollectOptions, ParseOptions, parse_to_ast};
use serde_json::Value;

use super::super::command::HookCommand;
use super::super::splice::{Container, Layout};
use super::super::{HookPosition, SettingsError};
use crate::kind::HookSpec;

pub(super) const HOOKS: &str = "hooks";
const BOM: &str = "\u{feff}";

pub(super) struct SettingsDocument<'t> {
    text: &'t str,
    top: Option<Node<'t>>,
}

/// One of Takeback's hooks, and its position.
pub(super) struct OwnHook {
    pub(super) event: String,
    pub(super) command: HookCommand,
    pub(super) position: HookPosition,
    matcher: Option<String>,
    is_command: bool,
    /// The containers around it, outermost first, each with the number of the element that leads to it.
    pub(super) holders: [(Container, usize); 4],
}

impl OwnHook {
    /// Whether it is for the event and the tools of `wanted`.
    pub(super) fn is_for(&self, wanted: &HookSpec) -> bool {
        let all = |matcher: Option<&str>| matches!(matcher, None | Some("" | "*"));
        let own = self.matcher.as_deref();
        let tools = own == wanted.matcher || all(own) && all(wanted.matcher);
        self.event == wanted.event && self.is_command && tools
    }
}

impl<'t> SettingsDocument<'t> {
    pub(super) fn parse(text: &'t str) -> Result<Self, SettingsError> {
        Ok(Self { text, top: parse(text)? })
    }

    pub(super) fn layout(&self) -> Layout {
        Layout::of(self.text, self.object().ok().flatten().map(object_container).as_ref())
    }

    pub(super) fn top(&self) -> Result<Container, SettingsError> {
        let object = self.object()?;
        object.map(object_container).ok_or_else(|| shape_error("the file", "an object"))
    }

    pub(super) fn hooks(&self) -> Result<Option<Container>, SettingsError> {
        Ok(self.hooks_object()?.map(object_container))
    }

    pub(super) fn list(&self, event: &str) -> Result<Option<Container>, SettingsError> {
        let Some(hooks) = self.hooks_object()? else { return Ok(None) };
        let what = format!("{HOOKS}.{event}");
        let Some((_, property)) = unique_property(hooks, event, &what)? else { return Ok(None) };
        let list = property.value.as_array().ok_or_else(|| shape_error(&what, "a list"))?;
        Ok(Some(array_container(list)))
    }

    fn object(&self) -> Result<Option<&Object<'t>>, SettingsError> {
        let Some(top) = &self.top else { return Ok(None) };
        top.as_object().ok_or_else(|| shape_error("the file", "an object")).map(Some)
    }

    fn hooks_object(&self) -> Result<Option<&Object<'t>>, SettingsError> {
        let Some(object) = self.object()? else { return Ok(None) };
        let Some((_, property)) = unique_property(object, HOOKS, HOOKS)? else { return Ok(None) };
        property.value.as_object().ok_or_else(|| shape_error(HOOKS, "an object")).map(Some)
    }

    pub(super) fn own_hooks(&self, agent: &str) -> Vec<OwnHook> {
        let mut found = Vec::new();
        let Ok(Some(object)) = self.object() else { return found };
        let Ok(Some((number, _))) = unique_property(object, HOOKS, HOOKS) else { return found };
        let Ok(Some(hooks)) = self.hooks_object() else { return found };
        let top = (object_container(object), number);
        for (n, list) in hooks.properties.iter().enumerate() {
            let Some(groups) = list.value.as_array() else { continue };
            let holders = [top.clone(), (object_container(hooks), n)];
            for (group_number, group) in groups.elements.iter().enumerate() {
                let group_in = (array_container(groups), group_number);
                let Some(group) = group.as_object() else { continue };
                let Some(of_group) = group.get_array(HOOKS) else { continue };
                for (hook_number, hook) in of_group.elements.iter().enumerate() {
                    let Some(hook) = hook.as_object() else { continue };
                    let text = |name: &str| hook.get_string(name).map(|text| text.value.as_ref());
                    let line = text("command").unwrap_or_default();
                    let Some(command) = HookCommand::read(line, agent) else { continue };
                    let [first, second] = holders.clone();
                    found.push(OwnHook {
                        event: list.name.as_str().to_owned(),
                        command,
                        position: HookPosition { group: group_number, hook: hook_number },
                        matcher: group.get_string("matcher").map(|text| text.value.to_string()),
                        is_command: text("type") == Some("command"),
                        holders: [
                            first,
                            second,
                            group_in.clone(),
                            (array_container(of_group), hook_number),
                        ],
                    });
                }
            }
        }
        found
    }
}

/// The byte order mark of a file (or an empty text), and the text after it.
pub(super) fn text_of(bytes: &[u8]) -> Result<(&'static str, &str), SettingsError> {
    let text = std::str::from_utf8(bytes).map_err(|_error| SettingsError::NotText)?;
    Ok(match text.strip_prefix(BOM) {
        Some(text) => (BOM, text),
        None => ("", text),
    })
}

/// A settings file as JSON; an empty file is an empty object.
pub(in super::super) fn parse_settings(bytes: &[u8]) -> Result<Value, SettingsError> {
    let value = parse(text_of(bytes)?.1)?.map(Value::from);
    Ok(value.unwrap_or_else(|| Value::Object(serde_json::Map::new())))
}

/// The settings without Takeback's hooks. Groups, lists and `hooks` itself are left out if empty.
pub(super) fn without_own_hooks(mut settings: Value, agent: &str) -> Value {
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

/// Lays out JSON without blanks on several lines: one line for each element of a list or an object.
/// `indent`: the indentation of the first line.
pub(super) fn pretty(json: &str, indent: &str, layout: &Layout) -> String {
    let mut text = String::new();
    let (mut depth, mut in_string, mut escaped) = (0, false, false);
    let line = |depth| format!("{}{indent}{}", layout.newline, layout.step.repeat(depth));
    for c in json.chars() {
        let is_inside = in_string;
        if c == '"' && !escaped {
            in_string = !in_string;
        }
        escaped = is_inside && c == '\\' && !escaped;
        match c {
            _ if is_inside || in_string => text.push(c),
            '{' | '[' => {
                depth += 1;
                text.push(c);
                text.push_str(&line(depth));
            }
            '}' | ']' => {
                depth -= 1;
                text.push_str(&line(depth));
                text.push(c);
            }
            ',' => {
                text.push(c);
                text.push_str(&line(depth));
            }
            ':' => text.push_str(": "),
            c => text.push(c),
        }
    }
    text
}

/// The JSON that an agent accepts in its settings, as tested with the programs themselves.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct JsonDialect {
    /// `//` and `/* */`.
    pub comments: bool,
    /// A comma before a closing bracket.
    pub trailing_commas: bool,
    /// U+FEFF at the beginning.
    pub byte_order_mark: bool,
}

impl JsonDialect {
    /// Everything that any agent accepts, and what Takeback accepts.
    pub const ANY: Self = Self { comments: true, trailing_commas: true, byte_order_mark: true };
    /// RFC 8259.
    pub const JSON: Self = Self { comments: false, trailing_commas: false, byte_order_mark: false };
}

/// What makes an agent refuse a settings file.
pub(in super::super) fn refusal(
    agent: &'static str,
    dialect: JsonDialect,
    bytes: &[u8],
) -> Option<SettingsError> {
    let (mark, text) = text_of(bytes).ok()?;
    // A file that Takeback cannot parse either is another error.
    parse(text).ok()?;
    let (line, column, what) = match parse_as(text, dialect) {
        _ if !mark.is_empty() && !dialect.byte_order_mark => {
            (1, 1, "A byte order mark is not allowed".to_owned())
        }
        Err(SettingsError::NotJson { line, column, what }) => (line, column, what),
        _ => return None,
    };
    Some(SettingsError::Refused { agent, line, column, what })
}

fn parse(text: &str) -> Result<Option<Node<'_>>, SettingsError> {
    parse_as(text, JsonDialect::ANY)
}

fn parse_as(text: &str, dialect: JsonDialect) -> Result<Option<Node<'_>>, SettingsError> {
    let options = ParseOptions {
        allow_comments: dialect.comments,
        allow_trailing_commas: dialect.trailing_commas,
        allow_loose_object_property_names: false,
        allow_missing_commas: false,
        allow_single_quoted_strings: false,
        allow_hexadecimal_numbers: false,
        allow_unary_plus_numbers: false,
        allow_bare_decimal_point_numbers: false,
        allow_non_finite_numbers: false,
        allow_extended_string_escapes: false,
    };
    let parsed = parse_to_ast(text, &CollectOptions::default(), &options);
    parsed.map(|parsed| parsed.value).map_err(|error| SettingsError::NotJson {
        line: error.line_display(),
        column: error.column_display(),
        what: error.kind().to_string(),
    })
}

/// Fails if a key appears twice: agents use the last one, which would hide a hook in the first.
fn unique_property<'o, 't>(
    object: &'o Object<'t>,
    name: &str,
    what: &str,
) -> Result<Option<(usize, &'o ObjectProp<'t>)>, SettingsError> {
    let properties = object.properties.iter().enumerate();
    let mut named = properties.filter(|(_, property)| property.name.as_str() == name);
    match (named.next(), named.next()) {
        (_, Some(_)) => Err(SettingsError::Twice { what: what.to_owned() }),
        (property, None) => Ok(property),
    }
}

fn object_container(object: &Object<'_>) -> Container {
    let elements = object.properties.iter().map(|property| range(property.range));
    Container { range: range(object.range), elements: elements.collect() }
}

fn array_container(array: &Array<'_>) -> Container {
    let elements = array.elements.iter().map(|element| range(element.range()));
    Container { range: range(array.range), elements: elements.collect() }
}

fn range(range: jsonc_parser::common::Range) -> Range<usize> {
    range.start..range.end
}

fn shape_error(what: &str, must_be: &'static str) -> SettingsError {
    SettingsError::Shape { what: what.to_owned(), must_be }
}
