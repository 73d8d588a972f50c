//! Finds the id of a message that cannot be parsed: too large to keep, or not JSON. The scanner
//! reads byte by byte and keeps only the id, so that the error can name the call.
//!
//! Only a top-level `id` of an object counts, and only if there is exactly one.

use serde_json::value::RawValue;

/// The longest id that is found.
const LONGEST: usize = 256;

/// Reads the bytes of a message in pieces.
#[derive(Debug)]
pub(crate) struct IdScanner {
    at: Position,
    is_escaped: bool,
    key: Vec<u8>,
    value: Vec<u8>,
    found: Option<Vec<u8>>,
    is_ambiguous: bool,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Position {
    Start,
    BeforeKey,
    Key,
    AfterKey,
    Value {
        depth: usize,
        in_text: bool,
    },
    /// The object has ended, or the message is not an object.
    Over,
}

impl IdScanner {
    pub(crate) fn new() -> Self {
        Self {
            at: Position::Start,
            is_escaped: false,
            key: Vec::new(),
            value: Vec::new(),
            found: None,
            is_ambiguous: false,
        }
    }

    pub(crate) fn feed(&mut self, bytes: &[u8]) {
        for byte in bytes {
            self.at = self.after(*byte);
        }
    }

    pub(crate) fn id(&self) -> Option<Box<RawValue>> {
        let found =
            self.found.as_ref().filter(|found| !self.is_ambiguous && found.len() <= LONGEST)?;
        let id: Box<RawValue> = serde_json::from_slice(found).ok()?;
        is_id(&id).then_some(id)
    }

    fn after(&mut self, byte: u8) -> Position {
        let is_space = byte.is_ascii_whitespace();
        match (self.at, byte) {
            (Position::Over, _) => Position::Over,
            (Position::Start | Position::BeforeKey | Position::AfterKey, _) if is_space => self.at,
            (Position::Start, b'{') => Position::BeforeKey,
            (Position::BeforeKey, b'"') => {
                self.key.clear();
                Position::Key
            }
            (Position::Key, b'"') if !self.is_escaped => Position::AfterKey,
            (Position::Key, byte) => {
                push(&mut self.key, byte);
                self.is_escaped = byte == b'\\' && !self.is_escaped;
                Position::Key
            }
            (Position::AfterKey, b':') => {
                self.value.clear();
                Position::Value { depth: 0, in_text: false }
            }
            (Position::Value { depth, in_text }, byte) => self.in_value(depth, in_text, byte),
            (Position::Start | Position::BeforeKey | Position::AfterKey, _) => Position::Over,
        }
    }

    fn in_value(&mut self, depth: usize, in_text: bool, byte: u8) -> Position {
        let next = match byte {
            _ if in_text => {
                let ends = byte == b'"' && !self.is_escaped;
                self.is_escaped = byte == b'\\' && !self.is_escaped;
                Position::Value { depth, in_text: !ends }
            }
            b'"' => Position::Value { depth, in_text: true },
            b'{' | b'[' => Position::Value { depth: depth + 1, in_text },
            b',' if depth == 0 => Position::BeforeKey,
            b'}' | b']' if depth == 0 => Position::Over,
            b'}' | b']' => Position::Value { depth: depth - 1, in_text },
            _ => Position::Value { depth, in_text },
        };
        if matches!(next, Position::Value { .. }) {
            push(&mut self.value, byte);
        } else if self.key == b"id" {
            self.is_ambiguous |= self.found.is_some();
            self.found = Some(std::mem::take(&mut self.value));
        }
        next
    }
}

/// Keeps one byte over the limit, which marks the value as too long.
fn push(bytes: &mut Vec<u8>, byte: u8) {
    if bytes.len() <= LONGEST {
        bytes.push(byte);
    }
}

/// The id in a whole message.
pub(crate) fn id_in(message: &[u8]) -> Option<Box<RawValue>> {
    let mut scanner = IdScanner::new();
    scanner.feed(message);
    scanner.id()
}

/// A string, a number or `null`.
pub(crate) fn is_id(value: &RawValue) -> bool {
    !matches!(value.get().as_bytes(), [b'{' | b'[' | b't' | b'f', ..])
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn an_id_is_found_wherever_it_is_and_only_if_it_is_one() {
        for (message, expected) in [
            (r#"{"id":7,"method":"x"}"#, Some("7")),
            (r#" { "method" : "x" , "id" : "a\"b" } "#, Some(r#""a\"b""#)),
            (
                r#"{"params":{"id":1,"t":"}{\",\"id\":2"},"list":[{"id":3}],"id":1.50}"#,
                Some("1.50"),
            ),
            (r#"{"id":null}"#, Some("null")),
            // The message is not JSON, but its id is.
            (r#"{"id":7,"method":"x","params":{"#, Some("7")),
            (r#"{"id":7,"params":{'a'}}"#, Some("7")),
            (r#"{"id":7} and more"#, Some("7")),
            (r#"{"id":7,"method" "x"}"#, Some("7")),
            // Ambiguous, incomplete or invalid ids.
            (r#"{"id":7,"id":8}"#, None),
            (r#"{"id":7"#, None),
            (r#"{"id":7 "method":"x"}"#, None),
            (r#"{"id":{"a":1}}"#, None),
            (r#"{"id":true}"#, None),
            (r#"{"id":x}"#, None),
            (r#"[{"id":7}]"#, None),
            (r#""id":7"#, None),
            ("", None),
        ] {
            let found = id_in(message.as_bytes());
            assert_eq!(found.as_deref().map(RawValue::get), expected, "{message}");
        }
        let long = format!(r#"{{"id":"{}"}}"#, "x".repeat(LONGEST));
        assert!(id_in(long.as_bytes()).is_none());
        assert!(id_in(b"{\"id\":\"\xff\"}").is_none());
    }
}
