//! `--format`: a text with fields of a row in braces.

use serde_json::Value;

use crate::answers;
use crate::error::{CommandError, Kind};

/// A parsed template.
#[derive(Debug)]
pub(super) struct Template(Vec<Part>);

#[derive(Debug)]
enum Part {
    Text(String),
    /// The names of a field and of the objects around it.
    Field(String),
}

impl Template {
    /// Parses `{field}` and `{object.field}`, `\n`, `\t`, and `{{` for a brace.
    pub(super) fn parse(text: &str) -> Result<Self, CommandError> {
        let wrong = |why: &str| {
            CommandError::new(Kind::Usage, format!("the template {text:?} {why}"))
                .hint("Write fields of `takeback log --json` in braces: '{id} {description}'.")
        };
        let mut parts = Vec::new();
        let mut plain = String::new();
        let mut rest = text;
        while let Some(at) = rest.find(['{', '}', '\\']) {
            plain.push_str(&rest[..at]);
            let (here, after) = (&rest[at..at + 1], &rest[at + 1..]);
            rest = match (here, after.chars().next()) {
                ("{", Some('{')) | ("}", Some('}')) | ("\\", Some('\\')) => {
                    plain.push_str(here);
                    &after[1..]
                }
                ("\\", Some('n')) => {
                    plain.push('\n');
                    &after[1..]
                }
                ("\\", Some('t')) => {
                    plain.push('\t');
                    &after[1..]
                }
                ("{", _) => {
                    let (name, after) =
                        after.split_once('}').ok_or_else(|| wrong("has a { without a }"))?;
                    parts.push(Part::Text(std::mem::take(&mut plain)));
                    parts.push(Part::Field(name.trim().to_owned()));
                    after
                }
                ("}", _) => return Err(wrong("has a } without a {; write }} for a brace")),
                _ => {
                    plain.push_str(here);
                    after
                }
            };
        }
        plain.push_str(rest);
        parts.push(Part::Text(plain));
        Ok(Self(parts))
    }

    /// The text for one row. A field that is absent or `null` is empty.
    pub(super) fn fill(&self, row: &answers::Point) -> Result<String, CommandError> {
        let value = serde_json::to_value(row).expect("plain data");
        let mut text = String::new();
        for part in &self.0 {
            match part {
                Part::Text(plain) => text.push_str(plain),
                Part::Field(name) => text.push_str(&field(&value, name)?),
            }
        }
        Ok(text)
    }
}

/// Keys that are left out of the JSON where they say nothing.
const OPTIONAL: [&str; 3] = ["unreadable", "of", "gitMoved"];

fn field(row: &Value, name: &str) -> Result<String, CommandError> {
    let mut value = row;
    for (depth, key) in name.split('.').enumerate() {
        value = match value.get(key) {
            Some(value) => value,
            None if depth == 0 && OPTIONAL.contains(&key) => return Ok(String::new()),
            None => {
                let keys = row.as_object().map(|object| {
                    object.keys().map(String::as_str).chain(OPTIONAL).collect::<Vec<_>>()
                });
                let keys = keys.unwrap_or_default().join(", ");
                let unknown = format!("the template names {{{name}}}, which log does not have");
                return Err(
                    CommandError::new(Kind::Usage, unknown).hint(format!("The fields are {keys}."))
                );
            }
        };
    }
    Ok(match value {
        Value::Null => String::new(),
        Value::String(text) => crate::screen::plain(text),
        Value::Array(values) => {
            let texts = values
                .iter()
                .map(|one| one.as_str().map_or_else(|| one.to_string(), str::to_owned));
            texts.collect::<Vec<_>>().join(",")
        }
        other => other.to_string(),
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn braces_and_escapes_are_read_and_mistakes_are_named() {
        let parts = |text: &str| match Template::parse(text) {
            Ok(Template(parts)) => parts
                .iter()
                .map(|part| match part {
                    Part::Text(text) => text.clone(),
                    Part::Field(name) => format!("<{name}>"),
                })
                .collect::<String>(),
            Err(error) => format!("error: {error:?}").chars().take(5).collect(),
        };
        for (text, read) in [
            ("{id} {byAuthor.agent.files}!", "<id> <byAuthor.agent.files>!"),
            ("{{id}} \\t\\n\\\\ \\x", "{id} \t\n\\ \\x"),
            ("{ id }é", "<id>é"),
            ("", ""),
            ("{id", "error"),
            ("id}", "error"),
        ] {
            assert_eq!(parts(text), read, "{text}");
        }
    }
}
