//! The files that hold everything that was measured.

use std::path::Path;

use serde::Serialize;
use serde_json::json;

use crate::Result;
use crate::machine::{Machine, date, load_average};

/// Writes what was measured today to `bench/results`, with the machine it was measured on.
#[expect(clippy::disallowed_methods, reason = "the bench's own file")]
pub fn save(name: &str, measured: &impl Serialize) -> Result<()> {
    let file = Path::new(env!("CARGO_MANIFEST_DIR"))
        .join("results")
        .join(format!("{}-{name}.json", date()?));
    let report = json!({
        "date": date()?,
        "machine": Machine::this()?,
        "load": load_average()?,
        "measured": measured,
    });
    Ok(std::fs::write(file, serde_json::to_string_pretty(&report)? + "\n")?)
}
