//! What tools answer as JSON: the schemas, and how long lists are cut.
//!
//! The answers of `takeback serve` go through as they are, each list up to [`MOST`]; how many more there
//! were stands in `leftOut`.

use std::sync::Arc;

use rmcp::model::JsonObject;
use serde_json::{Map, Value, json};

/// Rows of a list that a model is given.
pub(crate) const MOST: usize = 200;

fn object(schema: Value) -> Arc<JsonObject> {
    match schema {
        Value::Object(object) => Arc::new(object),
        _ => unreachable!("every schema here is an object"),
    }
}

fn point(mut more: Value) -> Value {
    let mut properties = json!({
        "id": {"type": "string"},
        "kind": {"type": "string", "description": "prompt, manual, step, run or safety"},
        "session": {"type": ["string", "null"]},
        "messageIds": {"type": "array", "items": {"type": "string"}},
        "description": {"type": "string"},
        "label": {"type": ["string", "null"]},
        "pinned": {"type": "boolean"},
        "createdAt": {"type": "string"},
        "filesChanged": {"type": "integer", "description": "between this point and the next"},
        "insertions": {"type": "integer"},
        "deletions": {"type": "integer"},
        "notCaptured": {"type": "integer", "description": "files that could not be kept"},
    });
    if let (Some(all), Some(more)) = (properties.as_object_mut(), more.as_object_mut()) {
        all.append(more);
    }
    json!({"type": "object", "properties": properties, "required": ["id", "kind", "createdAt"]})
}

fn left_out() -> Value {
    json!({
        "type": "object",
        "description": "how many more there were of a list that was cut",
        "additionalProperties": {"type": "integer"},
    })
}

pub(crate) fn points() -> Arc<JsonObject> {
    object(json!({
        "type": "object",
        "properties": {
            "points": {"type": "array", "items": point(json!({})), "description": "newest first"},
            "hint": {"type": "string"},
        },
        "required": ["points"],
    }))
}

pub(crate) fn one_point() -> Arc<JsonObject> {
    let changes = json!({
        "changes": {
            "type": "array",
            "description": "what was changed after it, until the next point",
            "items": {
                "type": "object",
                "properties": {
                    "filePath": {"type": "string"},
                    "author": {"type": "object", "properties": {"kind": {"type": "string"}}},
                    "evidence": {"type": "string"},
                    "time": {"type": "string"},
                },
                "required": ["filePath", "author"],
            },
        },
        "leftOut": left_out(),
    });
    object(point(changes))
}

pub(crate) fn diff() -> Arc<JsonObject> {
    object(json!({
        "type": "object",
        "properties": {
            "files": {
                "type": "array",
                "items": {
                    "type": "object",
                    "properties": {
                        "filePath": {"type": "string"},
                        "insertions": {"type": ["integer", "null"], "description": "null: not text"},
                        "deletions": {"type": ["integer", "null"]},
                    },
                    "required": ["filePath"],
                },
            },
            "patchCut": {"type": "boolean", "description": "the text holds only a part of the patch"},
            "leftOut": left_out(),
        },
        "required": ["files"],
    }))
}

fn receipt() -> Value {
    let paths =
        |what: &str| json!({"type": "array", "items": {"type": "string"}, "description": what});
    let notes = |what: &str| {
        json!({
            "type": "array",
            "description": what,
            "items": {
                "type": "object",
                "properties": {"filePath": {"type": "string"}, "reason": {"type": "string"}},
                "required": ["filePath"],
            },
        })
    };
    json!({
        "type": "object",
        "properties": {
            "success": {"type": "boolean", "description": "all that was planned is done; nothing is in the way"},
            "point": {"type": ["string", "null"]},
            "safetyPoint": {"type": ["string", "null"], "description": "how it was just before"},
            "restoredFiles": paths("contents as at the point"),
            "deletedFiles": paths("were not there at the point"),
            "mergedFiles": notes("the agent's lines taken out, the user's kept"),
            "keptFiles": notes("left alone, since they are not the agent's"),
            "conflicts": notes("left alone, since both changed the same lines"),
            "ambiguous": notes("left alone, since it is not clear who changed them"),
            "notCaptured": notes("cannot come back, since they were not kept"),
            "errors": notes("went wrong"),
            "leftOut": left_out(),
        },
        "required": ["success", "restoredFiles", "deletedFiles"],
    })
}

pub(crate) fn preview() -> Arc<JsonObject> {
    object(receipt())
}

pub(crate) fn rewind() -> Arc<JsonObject> {
    object(json!({
        "type": "object",
        "properties": {
            "outcome": {"enum": ["done", "nothingToDo", "declined"]},
            "receipt": receipt(),
        },
        "required": ["outcome"],
    }))
}

pub(crate) fn checkpoint() -> Arc<JsonObject> {
    object(json!({
        "type": "object",
        "properties": {
            "id": {"type": "string"},
            "label": {"type": ["string", "null"]},
            "notCaptured": {"type": "integer"},
        },
        "required": ["id"],
    }))
}

/// Cuts the lists of an object.
pub(crate) fn cut(mut value: Value) -> Value {
    let Some(object) = value.as_object_mut() else { return value };
    let mut left_out = Map::new();
    for (key, list) in object.iter_mut() {
        if let Value::Array(list) = list
            && list.len() > MOST
        {
            left_out.insert(key.clone(), json!(list.len() - MOST));
            list.truncate(MOST);
        }
    }
    if !left_out.is_empty() {
        object.insert("leftOut".to_owned(), Value::Object(left_out));
    }
    value
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn long_lists_are_cut_and_counted() {
        let long: Vec<usize> = (0..MOST + 7).collect();
        let told = cut(json!({"success": true, "restoredFiles": long, "keptFiles": [1]}));
        assert_eq!(told["restoredFiles"].as_array().map(Vec::len), Some(MOST));
        assert_eq!(told["leftOut"], json!({"restoredFiles": 7}));
        let short = json!({"success": true, "restoredFiles": ["a"]});
        assert_eq!(cut(short.clone()), short);
    }
}
