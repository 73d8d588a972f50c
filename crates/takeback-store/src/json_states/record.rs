//! Converts a checkpoint to the fields of a file and back.

use serde_json::{Map, Value};

use crate::id::{PointId, Timestamp};
use crate::state::{
    Attempt, BranchName, CheckpointId, CheckpointKey, ExecutionId, LineId, Record, StateError,
    Status, StepIndex, Values,
};

/// The deepest nesting of a value with which its file can still be parsed.
const DEEPEST: usize = 120;

/// A checkpoint as its file has it.
#[derive(Debug, Clone, PartialEq)]
pub(super) struct StoredCheckpoint {
    pub(super) execution: ExecutionId,
    pub(super) step: StepIndex,
    /// `None` if another program wrote it.
    pub(super) own: Option<OwnFields>,
    pub(super) branch: BranchName,
    pub(super) parent: Option<(StepIndex, Attempt)>,
    pub(super) step_name: String,
    pub(super) time: Timestamp,
    pub(super) status: Status,
    pub(super) error: Option<String>,
    pub(super) point: Option<PointId>,
    pub(super) values: Values,
}

/// The fields that only Takeback writes.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) struct OwnFields {
    pub(super) attempt: Attempt,
    pub(super) line: LineId,
    /// The number of this save within its execution, from 1.
    pub(super) position: u64,
}

impl StoredCheckpoint {
    pub(super) fn record(self, attempt: Attempt, is_newest: bool) -> (Record, Values) {
        let key = CheckpointKey { execution: self.execution, step: self.step, attempt };
        let record = Record {
            key,
            is_newest,
            branch: self.branch,
            parent: self.parent,
            step_name: self.step_name,
            time: self.time,
            status: self.status,
            error: self.error,
            point: self.point,
        };
        (record, self.values)
    }

    pub(super) fn fields(&self) -> Result<Map<String, Value>, StateError> {
        let mut fields = Map::new();
        let mut add = |name: &str, value: Value| {
            fields.insert(name.to_owned(), value);
        };
        let Self { execution, step, .. } = self;
        add("id", format!("ckpt-{execution}-{step}").into());
        add("execution_id", execution.as_str().into());
        add("step_name", self.step_name.clone().into());
        add("step_index", step.0.into());
        add("timestamp", time_text(self.time)?.into());
        for (name, value) in Values::NAMES.into_iter().zip(self.values.each()) {
            check_depth(name, value)?;
            add(name, value.clone());
        }
        add("status", self.status.name().into());
        add("error", self.error.clone().into());
        add("branch", self.branch.as_str().into());
        add("point", self.point.map(|point| point.to_string()).into());
        let parent = self.parent.map(|(step, attempt)| {
            CheckpointId { execution: execution.clone(), step, attempt: Some(attempt) }.to_string()
        });
        add("parent", parent.into());
        if let Some(OwnFields { attempt, line, position }) = self.own {
            add("attempt", attempt.0.get().into());
            add("line", line.0.into());
            add("position", position.into());
        }
        Ok(fields)
    }

    /// Parses the fields, or returns the name of the wrong one. Takeback's own fields may be
    /// missing, but only all of them.
    pub(super) fn from_fields(mut fields: Map<String, Value>) -> Result<Self, &'static str> {
        let execution = text(&fields, "execution_id").ok_or("execution_id")?;
        let execution = ExecutionId::new(execution).map_err(|_invalid| "execution_id")?;
        let step = number(&fields, "step_index").ok_or("step_index")?;
        let step = StepIndex(u32::try_from(step).map_err(|_large| "step_index")?);
        if text(&fields, "id") != Some(&format!("ckpt-{execution}-{step}")) {
            return Err("id");
        }
        let status = match fields.get("status") {
            None => Status::default(),
            Some(status) => status.as_str().and_then(Status::from_name).ok_or("status")?,
        };
        let own = match fields.get("attempt") {
            None => None,
            Some(attempt) => Some(OwnFields {
                attempt: attempt
                    .as_u64()
                    .and_then(|number| Attempt::new(u32::try_from(number).ok()?))
                    .ok_or("attempt")?,
                line: LineId(number(&fields, "line").ok_or("line")?),
                position: number(&fields, "position").ok_or("position")?,
            }),
        };
        let branch = match optional_text(&fields, "branch").ok_or("branch")? {
            None => BranchName::main(),
            Some(name) => BranchName::new(name).map_err(|_invalid| "branch")?,
        };
        let parent = match optional_text(&fields, "parent").ok_or("parent")? {
            None => None,
            Some(parent) => {
                let parent: CheckpointId = parent.parse().map_err(|_invalid| "parent")?;
                Some((parent.step, parent.attempt.ok_or("parent")?))
            }
        };
        let point = match optional_text(&fields, "point").ok_or("point")? {
            None => None,
            Some(point) => Some(point.parse().map_err(|_invalid| "point")?),
        };
        Ok(Self {
            step_name: text(&fields, "step_name").ok_or("step_name")?.to_owned(),
            time: text(&fields, "timestamp").and_then(time_of).ok_or("timestamp")?,
            error: optional_text(&fields, "error").ok_or("error")?.map(ToOwned::to_owned),
            values: Values {
                state: fields.remove("state").ok_or("state")?,
                context: fields.remove("context").ok_or("context")?,
                variables: fields.remove("variables").ok_or("variables")?,
                metadata: fields.remove("metadata").unwrap_or_else(|| Value::Object(Map::new())),
            },
            execution,
            step,
            own,
            branch,
            parent,
            status,
            point,
        })
    }
}

fn text<'a>(fields: &'a Map<String, Value>, name: &str) -> Option<&'a str> {
    fields.get(name)?.as_str()
}

/// `Some(None)` if the field is missing or null, `None` if it is not a text.
#[expect(clippy::option_option, reason = "three answers: wrong, none, and a text")]
fn optional_text<'a>(fields: &'a Map<String, Value>, name: &str) -> Option<Option<&'a str>> {
    match fields.get(name) {
        None | Some(Value::Null) => Some(None),
        Some(value) => value.as_str().map(Some),
    }
}

fn number(fields: &Map<String, Value>, name: &str) -> Option<u64> {
    fields.get(name)?.as_u64()
}

/// ISO 8601 with an offset that every parser accepts.
pub(super) fn time_text(time: Timestamp) -> Result<String, StateError> {
    let text = jiff::Timestamp::from_millisecond(time.0)
        .map(|time| format!("{}+00:00", format!("{time:.3}").trim_end_matches('Z')));
    match text {
        Ok(text) if !text.starts_with('-') => Ok(text),
        _ => Err(StateError::Unserialisable {
            path: "timestamp".to_owned(),
            why: "it is not between the years 0 and 9999",
        }),
    }
}

/// A time without an offset counts as UTC, because the writer's time zone is not recorded.
pub(super) fn time_of(text: &str) -> Option<Timestamp> {
    if let Ok(time) = text.parse::<jiff::Timestamp>() {
        return Some(Timestamp(time.as_millisecond()));
    }
    let time: jiff::civil::DateTime = text.parse().ok()?;
    let time = jiff::tz::TimeZone::UTC.to_timestamp(time).ok()?;
    Some(Timestamp(time.as_millisecond()))
}

/// Refuses a value that is nested too deeply: it could be written but never parsed again.
pub(super) fn check_depth(path: &str, value: &Value) -> Result<(), StateError> {
    let mut level = vec![value];
    for _ in 0..=DEEPEST {
        level = level
            .into_iter()
            .flat_map(|value| match value {
                Value::Array(items) => items.iter().collect(),
                Value::Object(fields) => fields.values().collect(),
                _ => Vec::new(),
            })
            .collect();
        if level.is_empty() {
            return Ok(());
        }
    }
    Err(StateError::Unserialisable { path: path.to_owned(), why: "it is nested too deeply" })
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    #[test]
    fn times_read_back_and_foreign_times_parse() {
        for time in [0, 1, -1, 1_700_000_000_123, -62_135_596_800_000, 253_402_207_199_999] {
            let text = time_text(Timestamp(time)).unwrap();
            assert_eq!(time_of(&text), Some(Timestamp(time)), "{text}");
        }
        let text = time_text(Timestamp(1_700_000_000_120)).unwrap();
        assert_eq!(text, "2023-11-14T22:13:20.120+00:00");
        for (text, time) in [
            ("2023-11-14T22:13:20.123456", Some(1_700_000_000_123)),
            ("2023-11-14T22:13:20", Some(1_700_000_000_000)),
            ("2023-11-14T22:13:20Z", Some(1_700_000_000_000)),
            ("2023-11-15T00:13:20.5+02:00", Some(1_700_000_000_500)),
            ("", None),
            ("yesterday", None),
            ("1700000000", None),
        ] {
            assert_eq!(time_of(text), time.map(Timestamp), "{text}");
        }
        for time in [i64::MIN, i64::MAX, -99_999_999_999_999] {
            let refused = time_text(Timestamp(time));
            assert!(matches!(refused, Err(StateError::Unserialisable { .. })), "{refused:?}");
        }
    }

    #[test]
    fn a_value_of_the_allowed_depth_can_be_read() {
        let nested = |depth| (0..depth).fold(json!(1), |value, _| json!([value]));
        check_depth("state", &nested(DEEPEST)).unwrap();
        // The deepest position at which a file contains a value.
        let file = json!({ "effects": [{ "receipt": [nested(DEEPEST), 1] }] });
        assert_eq!(
            serde_json::from_slice::<Value>(&super::super::file::pretty(&file)).unwrap(),
            file
        );
        let refused = check_depth("state", &nested(DEEPEST + 1));
        assert!(matches!(refused, Err(StateError::Unserialisable { .. })), "{refused:?}");
    }
}
