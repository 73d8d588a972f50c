//! What Copilot CLI gives its hooks.

use crate::hook::{HearError, Heard, Wanted};

pub const WANTED: &[Wanted] = &[];

pub fn hear(_given: &[u8], _event: Option<&str>) -> Result<Heard, HearError> {
    Err(HearError::Lacks { agent: "copilot", field: "event" })
}
