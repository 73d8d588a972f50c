//! Command errors as JSON-RPC errors.

use std::error::Error;

use takeback_core::PointNameError;
use takeback_core::history::BlameError;
use takeback_core::rewind::RewindError;
use takeback_ipc::Fault;
use takeback_store::{StateError, StoreError};

use crate::commands::history::PathError;
use crate::commands::sessions::SessionNameError;
use crate::error::{CommandError, Kind, causes};
use crate::place::DisabledFeature;
use crate::point::TooFarBackError;

/// A JSON-RPC error code and its `kind`.
pub(super) type ErrorCode = (i32, &'static str);

pub(super) const NO_STORE: ErrorCode = (-32000, "noStore");
pub(super) const LOCKED: ErrorCode = (-32001, "locked");
pub(super) const UNKNOWN_POINT: ErrorCode = (-32002, "unknownPoint");
pub(super) const AMBIGUOUS_NAME: ErrorCode = (-32003, "ambiguousName");
pub(super) const NOT_ENABLED: ErrorCode = (-32004, "notEnabled");
pub(super) const DAMAGED: ErrorCode = (-32005, "storeDamaged");
pub(super) const NOTHING_TO_DO: ErrorCode = (-32006, "nothingToDo");
pub(super) const UNKNOWN_SESSION: ErrorCode = (-32007, "unknownSession");
pub(super) const UNKNOWN_STATE: ErrorCode = (-32008, "unknownState");
pub(super) const CONFLICT: ErrorCode = (-32009, "conflict");
pub(super) const UNKNOWN_AGENT: ErrorCode = (-32010, "unknownAgent");
pub(super) const ANSWER_TOO_LARGE: ErrorCode = (Fault::ANSWER_TOO_LARGE, "answerTooLarge");
const UNKNOWN_PATH: ErrorCode = (-32013, "unknownPath");
const NOT_TEXT: ErrorCode = (-32014, "notText");
const CHANGED: ErrorCode = (-32012, "changed");
const INVALID_PARAMS: ErrorCode = (Fault::INVALID_PARAMS, "invalidParams");
const INTERNAL: ErrorCode = (Fault::INTERNAL, "error");

/// Bytes of contents in one answer.
pub(super) const MOST_BYTES: usize = 64 << 20;

pub(super) fn fault((code, kind): ErrorCode, message: impl Into<String>) -> Fault {
    Fault::new(code, kind, message)
}

impl From<CommandError> for Fault {
    fn from(error: CommandError) -> Self {
        let sort = causes(&*error.source).find_map(by_cause).unwrap_or_else(|| by_kind(error.kind));
        let mut answer = fault(sort, error.what());
        if let Some(PointNameError::Several { first, second, .. }) = error.source.downcast_ref() {
            answer = answer.with("candidates", [first.as_str(), second.as_str()].as_slice());
        }
        if let Some(SessionNameError::Several { candidates, .. }) = error.source.downcast_ref() {
            let candidates: Vec<String> = candidates.iter().map(ToString::to_string).collect();
            answer = answer.with("candidates", candidates);
        }
        let hints = error.all_hints();
        if hints.is_empty() { answer } else { answer.with("hint", hints.join(" ")) }
    }
}

fn by_kind(kind: Kind) -> ErrorCode {
    match kind {
        Kind::NoStore => NO_STORE,
        Kind::Locked => LOCKED,
        Kind::Nothing => NOTHING_TO_DO,
        Kind::Conflicts => CONFLICT,
        Kind::Usage => INVALID_PARAMS,
        Kind::Error | Kind::Partly | Kind::CannotStart => INTERNAL,
    }
}

/// The error code, if a cause is more specific than the exit code.
fn by_cause(cause: &(dyn Error + 'static)) -> Option<ErrorCode> {
    if cause.is::<DisabledFeature>() {
        return Some(NOT_ENABLED);
    }
    if cause.is::<TooFarBackError>() {
        return Some(UNKNOWN_POINT);
    }
    if let Some(error) = cause.downcast_ref() {
        return Some(match error {
            PointNameError::NoPoints | PointNameError::NotFound { .. } => UNKNOWN_POINT,
            PointNameError::Several { .. } => AMBIGUOUS_NAME,
        });
    }
    if let Some(error) = cause.downcast_ref() {
        return Some(match error {
            SessionNameError::NotFound { .. } | SessionNameError::NoAuthor { .. } => {
                UNKNOWN_SESSION
            }
            SessionNameError::Several { .. } => AMBIGUOUS_NAME,
        });
    }
    if let Some(error) = cause.downcast_ref() {
        return Some(match error {
            PathError::NeverRecorded(_)
            | PathError::NotAtPoint { .. }
            | PathError::NoLine { .. } => UNKNOWN_PATH,
            PathError::NotText { .. } => NOT_TEXT,
        });
    }
    match cause.downcast_ref() {
        Some(BlameError::NotRecorded { .. } | BlameError::NotAFile { .. }) => {
            return Some(UNKNOWN_PATH);
        }
        Some(BlameError::NotText { .. } | BlameError::NotCaptured { .. }) => return Some(NOT_TEXT),
        Some(BlameError::Store(_)) | None => {}
    }
    match cause.downcast_ref() {
        Some(RewindError::NoPoint(_)) => return Some(UNKNOWN_POINT),
        Some(RewindError::Changed(_)) => return Some(CHANGED),
        _ => {}
    }
    match (cause.downcast_ref(), cause.downcast_ref()) {
        (
            Some(
                StoreError::DamagedDatabase { .. }
                | StoreError::DamagedRecord { .. }
                | StoreError::DamagedBlob { .. }
                | StoreError::MissingBlob { .. },
            ),
            _,
        )
        | (_, Some(StateError::Damaged { .. })) => Some(DAMAGED),
        (
            _,
            Some(
                StateError::NotFound { .. }
                | StateError::MissingParent { .. }
                | StateError::NoExecution(_)
                | StateError::NoBranch { .. }
                | StateError::NoLine { .. },
            ),
        ) => Some(UNKNOWN_STATE),
        _ => None,
    }
}

#[cfg(test)]
mod tests {
    use takeback_ipc::TOO_MANY_CLIENTS;

    use super::*;

    #[test]
    fn every_code_is_in_the_document_and_no_other() {
        let document = std::fs::read_to_string(concat!(
            env!("CARGO_MANIFEST_DIR"),
            "/../../docs/design/protocol.md"
        ))
        .unwrap();
        let rows: Vec<(i32, String)> = document
            .lines()
            .filter_map(|line| {
                let mut cells = line.strip_prefix("| -")?.split('|').map(str::trim);
                let code: i32 = cells.next()?.parse().ok()?;
                Some((-code, cells.next()?.replace('`', "")))
            })
            .collect();
        let sorts = [
            (Fault::PARSE, "parse"),
            (Fault::INVALID_REQUEST, "invalidRequest, tooLarge"),
            (Fault::NO_METHOD, "unknownMethod"),
            INVALID_PARAMS,
            INTERNAL,
            NO_STORE,
            LOCKED,
            UNKNOWN_POINT,
            AMBIGUOUS_NAME,
            NOT_ENABLED,
            DAMAGED,
            NOTHING_TO_DO,
            UNKNOWN_SESSION,
            UNKNOWN_STATE,
            CONFLICT,
            UNKNOWN_AGENT,
            ANSWER_TOO_LARGE,
            CHANGED,
            UNKNOWN_PATH,
            NOT_TEXT,
            (TOO_MANY_CLIENTS, "tooManyClients"),
        ];
        assert_eq!(rows, sorts.map(|(code, kind)| (code, kind.to_owned())));
    }
}
