//! The schema and the TypeScript types are generated from the Rust types and kept in the repository.
//!
//! `UPDATE=1 cargo test -p takeback-answers` writes them again.

mod typescript;

use std::path::Path;

use serde_json::Value;
use takeback_answers::schema;

#[test]
fn the_schema_is_up_to_date() {
    assert_current("docs/schema.json", &(printed(&schema::document(), 0) + "\n"));
}

#[test]
fn the_typescript_types_are_up_to_date() {
    assert_current("clients/typescript/src/types.ts", &typescript::types(&schema::document()));
}

/// JSON with what fits on one line, on one line.
fn printed(value: &Value, indent: usize) -> String {
    const WIDTH: usize = 110;
    let whole = value.to_string();
    let (open, close, items): (_, _, Vec<String>) = match value {
        Value::Object(map) if indent + whole.len() > WIDTH => {
            let item = |(key, value)| format!("{key:?}: {}", printed(value, indent + 2));
            ('{', '}', map.iter().map(item).collect())
        }
        Value::Array(list) if indent + whole.len() > WIDTH => {
            ('[', ']', list.iter().map(|value| printed(value, indent + 2)).collect())
        }
        _ => return whole,
    };
    let inner = " ".repeat(indent + 2);
    let lines = items.join(&format!(",\n{inner}"));
    format!("{open}\n{inner}{lines}\n{}{close}", " ".repeat(indent))
}

#[expect(clippy::disallowed_methods, reason = "the generator reads UPDATE and writes the files")]
fn assert_current(file: &str, generated: &str) {
    let path = Path::new(env!("CARGO_MANIFEST_DIR")).join("../..").join(file);
    if std::env::var_os("UPDATE").is_some() {
        std::fs::write(&path, generated).expect("the file can be written");
    }
    let kept = std::fs::read_to_string(&path).expect("the file is there");
    assert!(kept == generated, "{file} is out of date: UPDATE=1 cargo test -p takeback-answers");
}
