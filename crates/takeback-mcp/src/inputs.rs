//! What tools are given, each with its schema. The words there are what a model reads; the kinds are
//! plain, since not every client understands unions.

use std::sync::Arc;

use rmcp::model::JsonObject;
use serde::Deserialize;
use serde_json::{Value, json};

#[derive(Debug, Default, Deserialize)]
#[serde(deny_unknown_fields, default)]
pub(crate) struct ListPoints {
    pub(crate) limit: Option<u64>,
    pub(crate) session_id: Option<String>,
}

/// The most points that are listed at once.
pub(crate) const POINTS_MOST: u64 = 200;
pub(crate) const POINTS_DEFAULT: u64 = 20;

#[derive(Debug, Deserialize)]
#[serde(deny_unknown_fields)]
pub(crate) struct ShowPoint {
    pub(crate) point: String,
}

#[derive(Debug, Default, Deserialize)]
#[serde(deny_unknown_fields, default)]
pub(crate) struct Diff {
    pub(crate) from: Option<String>,
    pub(crate) to: Option<String>,
    pub(crate) paths: Vec<String>,
    pub(crate) stat: bool,
}

/// Of a rewind and of its preview.
#[derive(Debug, Deserialize)]
#[serde(deny_unknown_fields)]
pub(crate) struct Rewind {
    pub(crate) point: String,
    #[serde(default)]
    pub(crate) paths: Vec<String>,
    #[serde(default)]
    pub(crate) exact: bool,
}

#[derive(Debug, Default, Deserialize)]
#[serde(deny_unknown_fields, default)]
pub(crate) struct Checkpoint {
    pub(crate) label: Option<String>,
}

const POINT: &str = "The point: its id or the beginning of it, its label, a message id, `@` (the newest), \
    `@~2` (two before the newest), or a time (`10m`, `14:00`).";
const PATHS: &str =
    "Only these paths and what is below them, relative to the workspace; globs are allowed.";

pub(crate) fn list_points() -> Arc<JsonObject> {
    let limit = json!({"type": "integer", "minimum": 1, "maximum": POINTS_MOST,
        "default": POINTS_DEFAULT, "description": "How many points at most, newest first."});
    let session = text("Only the points of this session: its id, or the beginning of it.");
    schema(&json!({"limit": limit, "session_id": session}), &[])
}

pub(crate) fn show_point() -> Arc<JsonObject> {
    schema(&json!({"point": text(POINT)}), &["point"])
}

pub(crate) fn diff() -> Arc<JsonObject> {
    let from = "The point to compare from: an id, a label, `@` (the newest; the default), `@~2`, or a time.";
    let to = "The point to compare to. Without it: the files as they are now.";
    let stat = flag("Only how many lines changed in which file, without the lines themselves.");
    schema(&json!({"from": text(from), "to": text(to), "paths": paths(), "stat": stat}), &[])
}

pub(crate) fn rewind() -> Arc<JsonObject> {
    let exact = flag(
        "Also take back what the user and others changed since the point. Only if the user asked for \
         exactly that.",
    );
    schema(&json!({"point": text(POINT), "paths": paths(), "exact": exact}), &["point"])
}

pub(crate) fn checkpoint() -> Arc<JsonObject> {
    let label = text("A short name for the point, by which it can be found again.");
    schema(&json!({"label": label}), &[])
}

fn text(description: &str) -> Value {
    json!({"type": "string", "description": description})
}

fn flag(description: &str) -> Value {
    json!({"type": "boolean", "default": false, "description": description})
}

fn paths() -> Value {
    json!({"type": "array", "items": {"type": "string"}, "description": PATHS})
}

fn schema(properties: &Value, required: &[&str]) -> Arc<JsonObject> {
    let schema = json!({"type": "object", "properties": properties, "required": required,
        "additionalProperties": false});
    match schema {
        Value::Object(object) => Arc::new(object),
        _ => unreachable!("it is written as one"),
    }
}

#[cfg(test)]
mod tests {
    use serde::de::DeserializeOwned;

    use super::*;

    /// A value of the right kind for every property.
    fn filled(schema: &JsonObject, properties: &[&str]) -> Value {
        let mut object = JsonObject::new();
        for name in properties {
            let value = match schema["properties"][name]["type"].as_str().unwrap() {
                "string" => json!("word"),
                "boolean" => json!(true),
                "integer" => json!(3),
                "array" => json!(["word"]),
                other => panic!("{other} is no kind that is used"),
            };
            object.insert((*name).to_owned(), value);
        }
        Value::Object(object)
    }

    fn fits<T: DeserializeOwned>(schema: &JsonObject) {
        let all: Vec<&str> =
            schema["properties"].as_object().unwrap().keys().map(String::as_str).collect();
        let required: Vec<&str> = schema["required"]
            .as_array()
            .unwrap()
            .iter()
            .map(|name| name.as_str().unwrap())
            .collect();
        let read = |value: Value| serde_json::from_value::<T>(value);
        assert!(read(filled(schema, &all)).is_ok(), "everything that is announced is known");
        assert!(read(filled(schema, &required)).is_ok(), "nothing else is needed");
        for name in &required {
            let others: Vec<&str> =
                required.iter().copied().filter(|other| other != name).collect();
            assert!(read(filled(schema, &others)).is_err(), "{name} is needed");
        }
        let mut more = filled(schema, &all);
        more["workspace"] = json!("/");
        assert!(read(more).is_err(), "what is not announced is refused");
    }

    #[test]
    fn schemas_say_what_is_read() {
        fits::<ListPoints>(&list_points());
        fits::<ShowPoint>(&show_point());
        fits::<Diff>(&diff());
        fits::<Rewind>(&rewind());
        fits::<Checkpoint>(&checkpoint());
    }
}
