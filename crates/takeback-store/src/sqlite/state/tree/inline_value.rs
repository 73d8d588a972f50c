//! Short values, written inline.

use serde_json::{Number, Value};

use super::{DEEPEST, FALSE, FLOAT, INLINE, LIST, MAP, NEGATIVE, NULL, TEXT, TRUE, UNSIGNED};
use crate::sqlite::varint::push_varint;

/// Writes a value inline if it is short and not nested too deeply; returns whether it did.
pub(super) fn push_if_short(value: &Value, depth: usize, out: &mut Vec<u8>) -> bool {
    if depth > DEEPEST {
        return false;
    }
    match value {
        Value::Null => out.push(NULL),
        Value::Bool(false) => out.push(FALSE),
        Value::Bool(true) => out.push(TRUE),
        Value::Number(number) => push_number(out, number),
        Value::String(text) => {
            if out.len() + text.len() > INLINE {
                return false;
            }
            out.push(TEXT);
            push_text(out, text);
        }
        Value::Array(items) => {
            out.push(LIST);
            push_varint(out, items.len() as u64);
            if !items.iter().all(|item| push_if_short(item, depth + 1, out)) {
                return false;
            }
        }
        Value::Object(items) => {
            let is_long =
                |value: &Value| matches!(value, Value::String(text) if text.len() > INLINE);
            if out.len() + 2 * items.len() > INLINE || items.values().any(is_long) {
                return false;
            }
            out.push(MAP);
            push_varint(out, items.len() as u64);
            let mut sorted: Vec<(&String, &Value)> = items.iter().collect();
            sorted.sort_unstable_by_key(|(key, _)| *key);
            for (key, item) in sorted {
                if out.len() + key.len() > INLINE {
                    return false;
                }
                push_text(out, key);
                if !push_if_short(item, depth + 1, out) {
                    return false;
                }
            }
        }
    }
    out.len() <= INLINE
}

pub(super) fn push_number(out: &mut Vec<u8>, number: &Number) {
    if let Some(number) = number.as_u64() {
        out.push(UNSIGNED);
        push_varint(out, number);
    } else if let Some(number) = number.as_i64() {
        out.push(NEGATIVE);
        push_varint(out, number.unsigned_abs());
    } else {
        out.push(FLOAT);
        let number = number.as_f64().expect("a number is one of the three");
        out.extend_from_slice(&number.to_bits().to_le_bytes());
    }
}

pub(super) fn push_text(out: &mut Vec<u8>, text: &str) {
    push_varint(out, text.len() as u64);
    out.extend_from_slice(text.as_bytes());
}
