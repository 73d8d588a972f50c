//! What tools answer as JSON: the schemas, and how answers of `takeback serve` are cut to them.
//!
//! Some agents show their model this and not the text beside it: whatever a model has to know stands here
//! too. Lists go up to [`MOST`], and `leftOut` tells how many more there were; digests and modes are left
//! out.

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
                    "change": {"enum": ["created", "changed", "deleted", "first seen"]},
                    "author": {"type": "object", "properties": {"kind": {"type": "string"}}},
                    "evidence": {"type": "string"},
                    "time": {"type": "string"},
                },
                "required": ["filePath", "change", "author"],
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
                        "patch": {"type": "string"},
                    },
                    "required": ["filePath"],
                },
            },
            "note": {"type": "string"},
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
            "firstSeen": {
                "type": "array",
                "items": {"type": "object"},
                "description": "folders with files first seen after the point, which stay: new in an ignored folder, or not covered before",
            },
            "conflicts": notes("left alone, since both changed the same lines"),
            "ambiguous": notes("left alone, since it is not clear who changed them"),
            "notCaptured": notes("cannot come back, since they were not kept"),
            "errors": notes("went wrong"),
            "note": {"type": "string"},
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
            "outcome": {"enum": ["done", "nothingToDo", "declined", "cancelled"]},
            "message": {"type": "string"},
            "receipt": receipt(),
        },
        "required": ["outcome", "message"],
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

/// Of a point that is shown: what became of each path, in a word.
pub(crate) fn without_entries(mut point: Value) -> Value {
    for change in objects(&mut point["changes"]) {
        let (before, after) = (change.remove("before"), change.remove("after"));
        let kind = |entry: &Option<Value>| entry.as_ref()?["kind"].as_str().map(str::to_owned);
        let word = match (kind(&before).as_deref(), kind(&after).as_deref()) {
            (Some("unknown"), _) => "first seen",
            (Some("absent"), _) => "created",
            (_, Some("absent")) => "deleted",
            _ => "changed",
        };
        change.insert("change".to_owned(), json!(word));
    }
    point
}

/// Of the rows of a diff.
pub(crate) fn only_lines(mut files: Value) -> Value {
    for file in objects(&mut files) {
        file.remove("before");
        file.remove("after");
    }
    files
}

fn objects(list: &mut Value) -> impl Iterator<Item = &mut JsonObject> {
    list.as_array_mut().into_iter().flatten().filter_map(Value::as_object_mut)
}

/// Of a preview or a receipt. Reasons speak to the user; here a model reads them.
pub(crate) fn for_model(mut receipt: Value) -> Value {
    let said = |row: &Value| row["reason"].as_str().is_some_and(|reason| reason.contains("you"));
    let lists = receipt.as_object().into_iter().flat_map(JsonObject::values);
    let speaks = lists.filter_map(Value::as_array).flatten().any(said);
    if speaks {
        receipt["note"] = json!("“You” in a reason is the user.");
    }
    if let Some(receipt) = receipt.as_object_mut() {
        receipt.remove("mark");
    }
    cut(receipt)
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
    fn a_point_is_shown_in_words() {
        let change = |before: &str, after: &str| {
            json!({"filePath": "a", "before": {"kind": before, "digest": "d"},
                "after": {"kind": after}, "author": {"kind": "human"}})
        };
        let shown = json!({"id": "1", "changes": [change("absent", "file"), change("file", "absent"),
            change("file", "file"), change("unknown", "file")]});
        let words = ["created", "deleted", "changed", "first seen"];
        let expected =
            words.map(|word| json!({"filePath": "a", "change": word, "author": {"kind": "human"}}));
        assert_eq!(without_entries(shown), json!({"id": "1", "changes": expected}));
    }

    #[test]
    fn who_you_are_is_said_where_a_reason_says_you() {
        let kept = |reason: &str| json!({"keptFiles": [{"filePath": "you", "reason": reason}], "mark": "m"});
        assert_eq!(for_model(kept("changed by s1")).get("note"), None);
        let told = for_model(kept("changed by you"));
        assert_eq!(told["note"], "“You” in a reason is the user.");
        assert_eq!(told.get("mark"), None);
    }

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
