//! What Qwen Code gives its hooks.

use crate::hook::{HearError, Heard, Wanted};

pub const WANTED: &[Wanted] = &[];

pub fn hear(_given: &[u8]) -> Result<Heard, HearError> {
    Err(HearError::Lacks { agent: "qwen", field: "event" })
}
