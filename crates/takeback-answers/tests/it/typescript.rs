//! TypeScript types from the schema: those of the JSON-RPC results, and what they refer to.

use std::collections::BTreeMap;
use std::fmt::Write as _;

use serde_json::{Map, Value};

const HEAD: &str = "\
// Generated from the Rust types: `UPDATE=1 cargo test -p takeback-answers` writes it again.

export type JsonValue = null | boolean | number | string | JsonValue[] | { [key: string]: JsonValue };
";

pub(crate) fn types(document: &Value) -> String {
    let mut writer = Writer { definitions: object(&document["$defs"]), types: BTreeMap::new() };
    let maps = [
        ("Results", "The result of every method.", &document["methods"]),
        ("Notifications", "What the server sends unasked.", &document["notifications"]),
    ];
    let mut text = String::new();
    for (name, what, entries) in maps {
        writeln!(text, "\n/** {what} */\nexport interface {name} {{").expect("text");
        for (entry, schema) in object(entries) {
            writeln!(text, "  {}: {};", key(entry), writer.reference(schema)).expect("text");
        }
        text += "}\n";
    }
    let types: Vec<String> = writer.types.into_values().collect();
    let methods = object(&document["methods"]).keys().map(|name| format!("  '{name}',\n"));
    let methods: String = methods.collect();
    let list = format!(
        "\n/** The methods that this client knows. */\nexport const METHODS = [\n{methods}] as const;\n"
    );
    format!("{HEAD}\n{}{text}{list}", types.join("\n"))
}

struct Writer<'a> {
    definitions: &'a Map<String, Value>,
    /// Declarations by name; empty while one is being written, since types may refer to themselves.
    types: BTreeMap<String, String>,
}

impl Writer<'_> {
    /// The name of a type, or the type itself where it has none.
    fn reference(&mut self, schema: &Value) -> String {
        if let Some(name) = schema["$ref"].as_str().and_then(|at| at.strip_prefix("#/$defs/")) {
            if !self.types.contains_key(name) {
                self.types.insert(name.to_owned(), String::new());
                let declaration = self.declaration(name);
                self.types.insert(name.to_owned(), declaration);
            }
            return name.to_owned();
        }
        if let Some(options) = schema["oneOf"].as_array().or(schema["anyOf"].as_array()) {
            return union(options.iter().map(|option| self.reference(option)));
        }
        if let Some(values) = schema["enum"].as_array() {
            return union(values.iter().map(literal));
        }
        if let Some(value) = schema.get("const") {
            return literal(value);
        }
        match &schema["type"] {
            Value::String(kind) => self.of_kind(kind, schema),
            Value::Array(kinds) => {
                let kinds = kinds.iter().filter_map(Value::as_str);
                union(kinds.map(|kind| self.of_kind(kind, schema)))
            }
            _ => "JsonValue".to_owned(),
        }
    }

    fn of_kind(&mut self, kind: &str, schema: &Value) -> String {
        match kind {
            "integer" | "number" => "number".to_owned(),
            "array" => match self.reference(&schema["items"]) {
                item if item.contains('|') => format!("Array<{item}>"),
                item => format!("{item}[]"),
            },
            "object" if schema["properties"].is_null() => {
                let value = self.reference(&schema["additionalProperties"]);
                format!("Record<string, {value}>")
            }
            "object" => {
                let fields = self.fields(schema, "").join(" ");
                format!("{{ {} }}", fields.trim_end_matches(';'))
            }
            other => other.to_owned(),
        }
    }

    fn declaration(&mut self, name: &str) -> String {
        let schema = &self.definitions[name];
        let comment = comment(schema, "");
        if schema["properties"].is_object() {
            let fields = self.fields(schema, "  ").join("\n");
            return format!("{comment}export interface {name} {{\n{fields}\n}}\n");
        }
        let mut alternatives = self.reference(schema);
        if schema["oneOf"].is_array() && alternatives.len() > 80 {
            alternatives = format!("\n  | {}", alternatives.replace(" | {", "\n  | {"));
        }
        let between = if alternatives.starts_with('\n') { "" } else { " " };
        format!("{comment}export type {name} ={between}{alternatives};\n")
    }

    /// Comments only where each field has a line of its own.
    fn fields(&mut self, schema: &Value, indent: &str) -> Vec<String> {
        let required = schema["required"].as_array().map_or(&[][..], Vec::as_slice);
        // Required keys in the order of the Rust type, then the others.
        let place = |name: &str| required.iter().position(|one| one == name);
        let mut fields: Vec<(&String, &Value)> = object(&schema["properties"]).iter().collect();
        fields.sort_by_key(|(name, _)| place(name).unwrap_or(usize::MAX));
        let fields = fields.into_iter().map(|(name, field)| {
            let optional = if place(name).is_some() { "" } else { "?" };
            let comment = if indent.is_empty() { String::new() } else { comment(field, indent) };
            format!("{comment}{indent}{}{optional}: {};", key(name), self.reference(field))
        });
        fields.collect()
    }
}

fn object(value: &Value) -> &Map<String, Value> {
    value.as_object().expect("an object")
}

fn union(options: impl Iterator<Item = String>) -> String {
    options.collect::<Vec<_>>().join(" | ")
}

fn literal(value: &Value) -> String {
    value.as_str().map_or_else(|| value.to_string(), |text| format!("'{text}'"))
}

fn key(name: &str) -> String {
    let plain = name.chars().all(|c| c.is_ascii_alphanumeric() || c == '_');
    if plain { name.to_owned() } else { format!("'{name}'") }
}

fn comment(schema: &Value, indent: &str) -> String {
    schema["description"]
        .as_str()
        .map(|text| format!("{indent}/** {} */\n", text.replace('\n', " ")))
        .unwrap_or_default()
}
