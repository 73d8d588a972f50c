//! Strict parsing of JSON from agents: one value. A value that could not be stored exactly is refused, with
//! its location.

use std::borrow::Cow;
use std::collections::HashSet;

use serde_json::{Map, Value};
use takeback_core::edit_distance;
use takeback_ipc::LARGEST_MESSAGE;
use takeback_store::state::{
    Attempt, BranchName, CheckpointId, ExecutionId, ExpectedHead, InvalidKey, Status, StepIndex,
    Values,
};
use takeback_store::{SessionId, Timestamp};

use crate::error::{CommandError, Kind};
use crate::screen::shorten;
use crate::time::parse_iso;

#[derive(Debug, thiserror::Error)]
pub(crate) enum InputError {
    #[error("standard input is empty; one JSON value is expected")]
    Empty,
    #[error("standard input is larger than {} MiB", LARGEST_MESSAGE >> 20)]
    TooLarge,
    #[error("invalid JSON: {0}")]
    NotJson(#[source] serde_json::Error),
    #[error("there is more than one JSON value")]
    Several,
    #[error("the number {number} at {at} does not fit in 64 bits and would be rounded")]
    Rounded { at: String, number: String },
    #[error("duplicate key {at}")]
    Twice { at: String },
    #[error("a checkpoint is an object, not {found}")]
    NoObject { found: String },
    #[error("the field {field} is missing")]
    Missing { field: &'static str },
    #[error("the field {field} must be {expected}, not {found}")]
    Unfit { field: &'static str, expected: &'static str, found: String },
    #[error("a checkpoint has no field {field:?}{}", meant.map_or_else(String::new, |meant| format!("; did you mean {meant}?")))]
    Unknown { field: String, meant: Option<&'static str> },
    #[error("the field {field} cannot be used: {source}")]
    Key { field: &'static str, source: InvalidKey },
    #[error("the field id is {id}, but execution_id and step_index say {implied}")]
    OtherId { id: String, implied: String },
    #[error("the field id names attempt {id}, but attempt is {attempt}")]
    OtherAttempt { id: Attempt, attempt: Attempt },
    #[error("the field parent says that {parent} must be the newest, but expect is \"anything\"")]
    OtherExpected { parent: CheckpointId },
    #[error("the event's session is {event:?}, but its checkpoint's is {checkpoint:?}")]
    OtherSession { event: String, checkpoint: String },
}

impl From<InputError> for CommandError {
    fn from(error: InputError) -> Self {
        Self::new(Kind::Usage, error).hint("`takeback state save --help` names the fields.")
    }
}

/// A checkpoint as an agent sent it.
#[derive(Debug, Clone, PartialEq)]
pub(crate) struct CheckpointInput {
    pub(crate) execution: ExecutionId,
    pub(crate) step: StepIndex,
    pub(crate) attempt: Option<Attempt>,
    pub(crate) step_name: String,
    pub(crate) time: Option<Timestamp>,
    pub(crate) status: Status,
    pub(crate) error: Option<String>,
    pub(crate) values: Values,
    pub(crate) expect: Expected,
    pub(crate) branch: Option<BranchName>,
    pub(crate) session: Option<SessionId>,
}

/// The expected head of the branch, as an agent sent it.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) enum Expected {
    Anything,
    Newest(Option<CheckpointId>),
}

impl Expected {
    pub(crate) fn borrowed(&self) -> ExpectedHead<'_> {
        match self {
            Self::Anything => ExpectedHead::Anything,
            Self::Newest(parent) => ExpectedHead::Newest(parent.as_ref()),
        }
    }

    /// A parent without `expect` must be the newest checkpoint. That there must be none is said by `expect`,
    /// since many agents write `null` for a field they do not use.
    fn read(fields: &mut Fields) -> Result<Self, InputError> {
        let parent = fields.key("parent", |id| id.parse::<CheckpointId>())?;
        match (fields.text("expect")?.as_deref(), parent) {
            (None, None) | (Some("anything"), None) => Ok(Self::Anything),
            (None, Some(parent)) => Ok(Self::Newest(Some(parent))),
            (Some("newest"), parent) => Ok(Self::Newest(parent)),
            (Some("anything"), Some(parent)) => Err(InputError::OtherExpected { parent }),
            (Some(other), _) => Err(InputError::Unfit {
                field: "expect",
                expected: "newest or anything",
                found: brief(&Value::String(other.to_owned())),
            }),
        }
    }
}

const FIELDS: [&str; 16] = [
    "id",
    "execution_id",
    "step_name",
    "step_index",
    "timestamp",
    "state",
    "context",
    "variables",
    "status",
    "error",
    "metadata",
    "parent",
    "expect",
    "branch",
    "attempt",
    "session",
];

impl CheckpointInput {
    pub(crate) fn read(value: Value) -> Result<Self, InputError> {
        let mut fields = match value {
            Value::Object(map) => Fields(map),
            other => return Err(InputError::NoObject { found: brief(&other) }),
        };
        if let Some(field) = fields.0.keys().find(|key| !FIELDS.contains(&key.as_str())) {
            return Err(InputError::Unknown {
                field: shorten(field, 80),
                meant: nearest(&FIELDS, field),
            });
        }
        let execution = fields.key("execution_id", ExecutionId::new)?;
        let execution = execution.ok_or(InputError::Missing { field: "execution_id" })?;
        let step = fields.whole("step_index", "a whole number from 0 to 4294967295")?;
        let step = StepIndex(step.ok_or(InputError::Missing { field: "step_index" })?);
        let step_name = fields.text("step_name")?;
        let step_name = step_name.ok_or(InputError::Missing { field: "step_name" })?;
        let attempt = "a whole number from 1 to 4294967295";
        let attempt = match fields.whole("attempt", attempt)? {
            Some(number) => Some(Attempt::new(number).ok_or(InputError::Unfit {
                field: "attempt",
                expected: attempt,
                found: "0".to_owned(),
            })?),
            None => None,
        };
        let id = fields.key("id", |id| id.parse::<CheckpointId>())?;
        let attempt = agreed(id.as_ref(), &execution, step, attempt)?;
        let time = match fields.text("timestamp")? {
            Some(text) => Some(parse_iso(&text).ok_or_else(|| InputError::Unfit {
                field: "timestamp",
                expected: "an ISO 8601 time",
                found: brief(&Value::String(text)),
            })?),
            None => None,
        };
        let status = match fields.text("status")? {
            Some(name) => Status::from_name(&name).ok_or_else(|| InputError::Unfit {
                field: "status",
                expected: "success, failed or pending",
                found: brief(&Value::String(name)),
            })?,
            None => Status::default(),
        };
        let default = Values::default();
        Ok(Self {
            step,
            attempt,
            step_name,
            time,
            status,
            error: fields.text("error")?,
            values: Values {
                state: fields.value("state").ok_or(InputError::Missing { field: "state" })?,
                context: fields.value("context").ok_or(InputError::Missing { field: "context" })?,
                variables: fields.value("variables").unwrap_or(default.variables),
                metadata: fields.value("metadata").unwrap_or(default.metadata),
            },
            expect: Expected::read(&mut fields)?,
            branch: fields.key("branch", BranchName::new)?,
            session: session(fields.text("session")?)?,
            execution,
        })
    }
}

/// The attempt named by `id` or `attempt`, which must agree.
fn agreed(
    id: Option<&CheckpointId>,
    execution: &ExecutionId,
    step: StepIndex,
    attempt: Option<Attempt>,
) -> Result<Option<Attempt>, InputError> {
    let Some(id) = id else { return Ok(attempt) };
    if (&id.execution, id.step) != (execution, step) {
        let implied = CheckpointId { execution: execution.clone(), step, attempt: None };
        let (id, implied) = (shorten(&id.to_string(), 200), shorten(&implied.to_string(), 200));
        return Err(InputError::OtherId { id, implied });
    }
    match (id.attempt, attempt) {
        (Some(id), Some(attempt)) if id != attempt => Err(InputError::OtherAttempt { id, attempt }),
        (id, attempt) => Ok(id.or(attempt)),
    }
}

fn session(name: Option<String>) -> Result<Option<SessionId>, InputError> {
    match name {
        Some(name) if name.is_empty() => Err(InputError::Unfit {
            field: "session",
            expected: "a name",
            found: "empty".to_owned(),
        }),
        name => Ok(name.map(SessionId)),
    }
}

struct Fields(Map<String, Value>);

impl Fields {
    /// The value, including `null`.
    fn value(&mut self, field: &'static str) -> Option<Value> {
        self.0.remove(field)
    }

    /// The value; `null` counts as absent.
    fn given(&mut self, field: &'static str) -> Option<Value> {
        self.value(field).filter(|value| !value.is_null())
    }

    fn text(&mut self, field: &'static str) -> Result<Option<String>, InputError> {
        match self.given(field) {
            Some(Value::String(text)) => Ok(Some(text)),
            Some(other) => {
                Err(InputError::Unfit { field, expected: "a string", found: brief(&other) })
            }
            None => Ok(None),
        }
    }

    fn whole(
        &mut self,
        field: &'static str,
        expected: &'static str,
    ) -> Result<Option<u32>, InputError> {
        let Some(value) = self.given(field) else { return Ok(None) };
        let number = value.as_u64().and_then(|number| u32::try_from(number).ok());
        let number =
            number.ok_or_else(|| InputError::Unfit { field, expected, found: brief(&value) })?;
        Ok(Some(number))
    }

    fn key<T>(
        &mut self,
        field: &'static str,
        read: impl FnOnce(String) -> Result<T, InvalidKey>,
    ) -> Result<Option<T>, InputError> {
        let text = self.text(field)?;
        text.map(read).transpose().map_err(|source| InputError::Key { field, source })
    }
}

/// The one of these fields that the caller may have meant.
pub(crate) fn nearest(fields: &[&'static str], name: &str) -> Option<&'static str> {
    const LONGEST: usize = 32;
    if name.len() > LONGEST {
        return None;
    }
    let near = fields.iter().map(|field| (edit_distance(field, name), *field));
    near.filter(|(distance, field)| *distance <= field.len() / 3)
        .min_by_key(|(distance, _)| *distance)
        .map(|(_, field)| field)
}

/// A short description of a value.
pub(crate) fn brief(value: &Value) -> String {
    match value {
        Value::Array(_) => "a list".to_owned(),
        Value::Object(_) => "an object".to_owned(),
        scalar => shorten(&scalar.to_string(), 60),
    }
}

/// The one value in `text`.
pub(crate) fn read_one(text: &[u8]) -> Result<Value, InputError> {
    let mut values = serde_json::Deserializer::from_slice(text).into_iter::<Value>();
    let value = values.next().ok_or(InputError::Empty)?.map_err(InputError::NotJson)?;
    let rest = text.get(values.byte_offset()..).unwrap_or_default();
    if !rest.trim_ascii().is_empty() {
        return Err(InputError::Several);
    }
    check_exact(text)?;
    Ok(value)
}

/// Checks that parsing `text`, which is JSON, loses nothing: no integer that would be rounded, no duplicate
/// key.
pub(crate) fn check_exact(text: &[u8]) -> Result<(), InputError> {
    let mut open: Vec<OpenContainer<'_>> = Vec::new();
    let mut at = 0;
    while let Some(&byte) = text.get(at) {
        let end = match byte {
            b'"' => at + end_of_text(&text[at..]),
            b'-' | b'0'..=b'9' => {
                at + text[at..].iter().take_while(|byte| is_numeric(**byte)).count()
            }
            _ => at + 1,
        };
        match byte {
            b'{' => open.push(OpenContainer::Object {
                keys: HashSet::new(),
                key: Cow::Borrowed(""),
                is_next: true,
            }),
            b'[' => open.push(OpenContainer::List(0)),
            b'}' | b']' => drop(open.pop()),
            b',' => match open.last_mut() {
                Some(OpenContainer::List(index)) => *index += 1,
                Some(OpenContainer::Object { is_next, .. }) => *is_next = true,
                None => {}
            },
            b'"' => {
                if let Some(OpenContainer::Object { keys, key, is_next }) = open.last_mut()
                    && *is_next
                {
                    (*key, *is_next) = (decoded(&text[at..end]), false);
                    if !keys.insert(key.clone()) {
                        return Err(InputError::Twice { at: pointer(&open) });
                    }
                }
            }
            b'-' | b'0'..=b'9' if is_rounded(&text[at..end]) => {
                let number = shorten(&String::from_utf8_lossy(&text[at..end]), 60);
                return Err(InputError::Rounded { at: pointer(&open), number });
            }
            _ => {}
        }
        at = end;
    }
    Ok(())
}

/// A list or object that is not closed yet.
enum OpenContainer<'a> {
    List(usize),
    /// Decoded keys: a key can be written in several ways.
    Object {
        keys: HashSet<Cow<'a, str>>,
        key: Cow<'a, str>,
        is_next: bool,
    },
}

/// Decodes a JSON string, including its quotes.
fn decoded(written: &[u8]) -> Cow<'_, str> {
    if written.contains(&b'\\')
        && let Ok(text) = serde_json::from_slice(written)
    {
        return Cow::Owned(text);
    }
    String::from_utf8_lossy(written.get(1..written.len() - 1).unwrap_or_default())
}

fn end_of_text(text: &[u8]) -> usize {
    let mut at = 1;
    while let Some(&byte) = text.get(at) {
        match byte {
            b'"' => return at + 1,
            b'\\' => at += 2,
            _ => at += 1,
        }
    }
    text.len()
}

fn is_numeric(byte: u8) -> bool {
    matches!(byte, b'-' | b'+' | b'.' | b'e' | b'E' | b'0'..=b'9')
}

fn is_rounded(number: &[u8]) -> bool {
    let whole = number.iter().all(|byte| matches!(byte, b'-' | b'0'..=b'9'));
    let text = String::from_utf8_lossy(number);
    whole && text.parse::<u64>().is_err() && text.parse::<i64>().is_err()
}

fn pointer(open: &[OpenContainer<'_>]) -> String {
    let mut pointer = String::new();
    for open in open {
        pointer.push('/');
        match open {
            OpenContainer::List(index) => pointer.push_str(&index.to_string()),
            OpenContainer::Object { key, .. } => pointer.push_str(&escaped(key)),
        }
    }
    pointer
}

/// A key as part of a JSON pointer.
pub(crate) fn escaped(key: &str) -> String {
    key.replace('~', "~0").replace('/', "~1")
}

#[cfg(test)]
mod tests {
    use super::*;

    fn refusal(text: &str) -> String {
        let read = read_one(text.as_bytes()).and_then(CheckpointInput::read);
        read.map_or_else(|error| error.to_string(), |given| format!("read: {given:?}"))
    }

    /// A checkpoint with the required fields and `fields`.
    fn with(fields: &str) -> String {
        format!(
            r#"{{"execution_id":"e","step_name":"s","step_index":1,"state":{{}},"context":{{}}{fields}}}"#
        )
    }

    #[test]
    fn whole_numbers_are_kept_or_refused_wherever_they_stand() {
        for exact in [
            "18446744073709551615",
            "-9223372036854775808",
            "1e300",
            "0.1",
            "-0",
            r#"["\"99999999999999999999", {"99999999999999999999": 1}]"#,
            r#"{"a": {"x": 1}, "b": {"x": 1}}"#,
            r#"{"a": 1, "\\u0061": 2, "A": "\u0061"}"#,
        ] {
            assert!(read_one(exact.as_bytes()).is_ok(), "{exact}");
        }
        for (text, refused) in [
            (
                r#"{"a/b":[0,{"~":18446744073709551616}]}"#,
                "the number 18446744073709551616 at /a~1b/1/~0 does not fit in 64 bits and would be rounded",
            ),
            (
                r#"[{}, [], "a\"b,", -9223372036854775809]"#,
                "the number -9223372036854775809 at /3 does not fit in 64 bits and would be rounded",
            ),
            (r#"{"a":1,"b":{"x":[{"k":1,"k":2}]}}"#, "duplicate key /b/x/0/k"),
            (r#"{"a":1,"\u0061":2}"#, "duplicate key /a"),
            (r#"[{"\ud83d\ude00\/":1,"x":"\ud83d\ude00/","😀/":2}]"#, "duplicate key /0/😀~1"),
        ] {
            assert_eq!(read_one(text.as_bytes()).unwrap_err().to_string(), refused);
        }
    }

    #[test]
    fn what_is_wrong_is_named() {
        for (text, refused) in [
            ("", "standard input is empty; one JSON value is expected"),
            (" \n", "standard input is empty; one JSON value is expected"),
            ("{", "invalid JSON: EOF while parsing an object at line 1 column 1"),
            ("{} {}", "there is more than one JSON value"),
            ("[]", "a checkpoint is an object, not a list"),
            ("{}", "the field execution_id is missing"),
            (r#"{"execution_id":7}"#, "the field execution_id must be a string, not 7"),
            (
                r#"{"execution_id":""}"#,
                "the field execution_id cannot be used: the name of an execution is empty",
            ),
            (
                r#"{"execution_id":"e","step_index":-1}"#,
                "the field step_index must be a whole number from 0 to 4294967295, not -1",
            ),
            (
                r#"{"execution_id":"e","step_index":4294967296}"#,
                "the field step_index must be a whole number from 0 to 4294967295, not 4294967296",
            ),
            (
                r#"{"execution_id":"e","step_index":1.0}"#,
                "the field step_index must be a whole number from 0 to 4294967295, not 1.0",
            ),
            (r#"{"execution_id":"e","step_index":1}"#, "the field step_name is missing"),
            (
                r#"{"execution_id":"e","step_index":1,"step_name":"s","context":{}}"#,
                "the field state is missing",
            ),
            (
                r#"{"execution_id":"e","step_index":1,"step_name":"s","state":null}"#,
                "the field context is missing",
            ),
        ] {
            assert_eq!(refusal(text), refused, "{text}");
        }
        for (fields, refused) in [
            (r#","stat":1"#, "a checkpoint has no field \"stat\"; did you mean state?"),
            (r#","\u001b":1"#, "a checkpoint has no field \"\\u{1b}\""),
            (
                r#","status":"done""#,
                "the field status must be success, failed or pending, not \"done\"",
            ),
            (r#","error":{}"#, "the field error must be a string, not an object"),
            (
                r#","timestamp":"yesterday""#,
                "the field timestamp must be an ISO 8601 time, not \"yesterday\"",
            ),
            (r#","timestamp":1700000000"#, "the field timestamp must be a string, not 1700000000"),
            (
                r#","attempt":0"#,
                "the field attempt must be a whole number from 1 to 4294967295, not 0",
            ),
            (
                r#","id":"ckpt-e-2""#,
                "the field id is ckpt-e-2, but execution_id and step_index say ckpt-e-1",
            ),
            (
                r#","id":"ckpt-e-1.a2","attempt":3"#,
                "the field id names attempt 2, but attempt is 3",
            ),
            (r#","session":"""#, "the field session must be a name, not empty"),
            (r#","branch":[]"#, "the field branch must be a string, not a list"),
            (r#","expect":"none""#, "the field expect must be newest or anything, not \"none\""),
            (
                r#","expect":"anything","parent":"ckpt-e-0""#,
                "the field parent says that ckpt-e-0 must be the newest, but expect is \"anything\"",
            ),
        ] {
            assert_eq!(refusal(&with(fields)), refused, "{fields}");
        }
        let refused = refusal(&with(r#","parent":"e-1""#));
        assert!(
            refused.starts_with("the field parent cannot be used: \"e-1\" is not"),
            "{refused}"
        );
    }

    #[test]
    fn what_is_left_out_has_its_default() {
        let read = |text: &str| CheckpointInput::read(read_one(text.as_bytes()).unwrap()).unwrap();
        let given = read(&with(""));
        assert_eq!((given.status, given.attempt, given.time), (Status::Success, None, None));
        assert_eq!(given.values, Values::default());
        assert_eq!(read(&with(r#","id":null,"error":null,"parent":null"#)), given);
        let given = read(&with(
            r#","id":"ckpt-e-1.a2","timestamp":"2024-01-02T03:04:05.678901","parent":"ckpt-e-0"#
        ).replace("ckpt-e-0", "ckpt-e-0\""));
        assert_eq!(given.attempt, Attempt::new(2));
        assert_eq!(given.time, Some(Timestamp(1_704_164_645_678)));
        let parent = "ckpt-e-0".parse().unwrap();
        assert_eq!(given.expect, Expected::Newest(Some(parent)));
    }

    #[test]
    fn no_parent_means_none_yet_only_with_expect() {
        let read = |fields: &str| {
            CheckpointInput::read(read_one(with(fields).as_bytes()).unwrap()).unwrap().expect
        };
        for fields in ["", r#","parent":null"#, r#","expect":null"#, r#","expect":"anything""#] {
            assert_eq!(read(fields), Expected::Anything, "{fields}");
        }
        for fields in [r#","expect":"newest""#, r#","parent":null,"expect":"newest""#] {
            assert_eq!(read(fields), Expected::Newest(None), "{fields}");
        }
        let parent = Expected::Newest(Some("ckpt-e-0".parse().unwrap()));
        for fields in [r#","parent":"ckpt-e-0""#, r#","parent":"ckpt-e-0","expect":"newest""#] {
            assert_eq!(read(fields), parent, "{fields}");
        }
    }
}
