//! Schemas of tools from Rust types, in a form that every client understands: everything inline, no unions,
//! `null` only together with another type.

use std::sync::Arc;

use rmcp::model::JsonObject;
use schemars::JsonSchema;
use schemars::Schema;
use schemars::generate::SchemaSettings;
use schemars::transform::{Transform, transform_subschemas};
use serde_json::{Value, json};

/// The schema of a tool's input.
pub(crate) fn input<T: JsonSchema>() -> Arc<JsonObject> {
    plain::<T>(SchemaSettings::draft2020_12())
}

/// The schema of a tool's answer.
pub(crate) fn output<T: JsonSchema>() -> Arc<JsonObject> {
    plain::<T>(SchemaSettings::draft2020_12().for_serialize())
}

fn plain<T: JsonSchema>(mut settings: SchemaSettings) -> Arc<JsonObject> {
    settings.inline_subschemas = true;
    settings.meta_schema = None;
    let mut schema =
        settings.with_transform(PlainSchema).into_generator().into_root_schema_for::<T>();
    schema.remove("title");
    match schema.to_value() {
        Value::Object(object) => Arc::new(object),
        _ => unreachable!("the schema of a struct is an object"),
    }
}

#[derive(Clone)]
struct PlainSchema;

impl Transform for PlainSchema {
    fn transform(&mut self, schema: &mut Schema) {
        transform_subschemas(self, schema);
        for keyword in ["format", "minLength", "maxLength"] {
            schema.remove(keyword);
        }
        if let Some(text) = schema.get("description").and_then(Value::as_str) {
            let text = text.replace('\n', " ");
            schema.insert("description".to_owned(), json!(text));
        }
        join_null(schema);
        merge_variants(schema);
        drop_null(schema);
    }
}

/// `anyOf: [X, null]` as X that can also be null.
fn join_null(schema: &mut Schema) {
    let Some(Value::Array(options)) = schema.get("anyOf") else { return };
    let options = options.clone();
    let [Value::Object(one), null] = options.as_slice() else { return };
    if null["type"] != "null" {
        return;
    }
    schema.remove("anyOf");
    for (keyword, says) in one {
        let says = if keyword == "type" { json!([says, "null"]) } else { says.clone() };
        // A field's own description says more than its type's.
        schema.ensure_object().entry(keyword.clone()).or_insert(says);
    }
}

/// The variants of an enum as one object with the keys of all.
fn merge_variants(schema: &mut Schema) {
    let Some(Value::Array(options)) = schema.remove("oneOf").or_else(|| schema.remove("anyOf"))
    else {
        return;
    };
    let mut properties = JsonObject::new();
    for option in &options {
        for (key, property) in option["properties"].as_object().into_iter().flatten() {
            properties.insert(key.clone(), json!({ "type": property["type"] }));
        }
    }
    if options.iter().all(|option| option["type"] == "object") {
        schema.insert("type".to_owned(), json!("object"));
        schema.insert("properties".to_owned(), Value::Object(properties));
    }
}

/// An optional key is absent rather than null.
fn drop_null(schema: &mut Schema) {
    let required = schema.get("required").and_then(Value::as_array).cloned().unwrap_or_default();
    let properties = schema.get_mut("properties").and_then(Value::as_object_mut);
    for (name, property) in properties.into_iter().flatten() {
        let kind = property["type"].as_array().and_then(|kinds| kinds.first()).cloned();
        if let Some(kind) = kind.filter(|_| !required.iter().any(|one| one == name)) {
            property["type"] = kind;
            if let Some(values) = property.get_mut("enum").and_then(Value::as_array_mut) {
                values.retain(|value| !value.is_null());
            }
        }
        if property["default"].is_null()
            && let Some(property) = property.as_object_mut()
        {
            property.remove("default");
        }
    }
}
