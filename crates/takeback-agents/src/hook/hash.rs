//! An id for a tool call of an agent that sends none.

use serde_json::Value;

/// The same for the same tool and input, in every process.
#[must_use]
pub(crate) fn call_id(tool: &str, input: &Value) -> String {
    let hash = blake3::hash(format!("{tool} {input}").as_bytes());
    hash.to_hex().chars().take(16).collect()
}
