//! Times and durations as agents write them.

use std::time::Duration;

use serde_json::Value;
use takeback_store::Timestamp;

/// A moment: milliseconds since 1970 as a number, or ISO 8601 as a text. `None`: it is neither.
#[must_use]
pub(crate) fn moment(value: &Value) -> Option<Timestamp> {
    match value {
        Value::Number(millis) => millis.as_i64().map(Timestamp),
        Value::String(text) => moment_of(text),
        _ => None,
    }
}

#[must_use]
pub(crate) fn moment_of(text: &str) -> Option<Timestamp> {
    let moment: jiff::Timestamp = text.parse().ok()?;
    Some(Timestamp(moment.as_millisecond()))
}

/// A duration in milliseconds. Agents write whole numbers and fractions.
#[must_use]
pub(crate) fn millis(value: f64) -> Option<Duration> {
    Duration::try_from_secs_f64(value / 1000.0).ok()
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    #[test]
    fn a_moment_is_a_number_or_a_text() {
        let at = Some(Timestamp(1_794_780_589_587));
        assert_eq!(moment(&json!("2026-11-15T22:09:49.587Z")), at);
        assert_eq!(moment(&json!(1_794_780_589_587_i64)), at);
        assert_eq!(moment(&json!("yesterday")), None);
        assert_eq!(moment(&json!(null)), None);
    }

    #[test]
    fn a_duration_is_never_negative() {
        assert_eq!(millis(2117.0), Some(Duration::from_millis(2117)));
        assert_eq!(millis(0.5), Some(Duration::from_micros(500)));
        assert_eq!(millis(-1.0), None);
        assert_eq!(millis(f64::NAN), None);
    }
}
