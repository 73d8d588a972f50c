//! Errors of commands as the protocol tells them.

use std::error::Error;

use takeback_core::point_name::PointNameError;
use takeback_core::rewind::RewindError;
use takeback_ipc::Fault;
use takeback_store::{StateError, StoreError};

use crate::commands::sessions::SessionNameError;
use crate::error::{CommandError, Kind, causes};
use crate::place::NotEnabled;
use crate::point::NoneThatOld;

pub(super) const NO_STORE: i32 = -32000;
pub(super) const LOCKED: i32 = -32001;
pub(super) const UNKNOWN_POINT: i32 = -32002;
pub(super) const AMBIGUOUS_NAME: i32 = -32003;
pub(super) const NOT_ENABLED: i32 = -32004;
pub(super) const DAMAGED: i32 = -32005;
pub(super) const NOTHING_TO_DO: i32 = -32006;
pub(super) const UNKNOWN_SESSION: i32 = -32007;
pub(super) const UNKNOWN_STATE: i32 = -32008;
pub(super) const CONFLICT: i32 = -32009;
pub(super) const UNKNOWN_AGENT: i32 = -32010;
pub(super) const ANSWER_TOO_LARGE: i32 = -32011;

impl From<CommandError> for Fault {
    fn from(error: CommandError) -> Self {
        let (code, kind) =
            causes(&*error.source).find_map(by_cause).unwrap_or_else(|| by_kind(error.kind));
        let mut fault = Self::new(code, kind, error.what());
        if let Some(PointNameError::Several { first, second, .. }) = error.source.downcast_ref() {
            fault = fault.with("candidates", [first.as_str(), second.as_str()].as_slice());
        }
        if let Some(SessionNameError::Several { first, second, .. }) = error.source.downcast_ref() {
            fault = fault.with("candidates", [first.0.as_str(), second.0.as_str()].as_slice());
        }
        let hints = error.all_hints();
        if hints.is_empty() { fault } else { fault.with("hint", hints.join(" ")) }
    }
}

fn by_kind(kind: Kind) -> (i32, &'static str) {
    match kind {
        Kind::NoStore => (NO_STORE, "noStore"),
        Kind::Locked => (LOCKED, "locked"),
        Kind::Nothing => (NOTHING_TO_DO, "nothingToDo"),
        Kind::Conflicts => (CONFLICT, "conflict"),
        Kind::Usage => (Fault::INVALID_PARAMS, "invalidParams"),
        Kind::Error | Kind::Partly | Kind::CannotStart => (Fault::INTERNAL, "error"),
    }
}

/// What an error is about, where its exit code does not tell.
fn by_cause(cause: &(dyn Error + 'static)) -> Option<(i32, &'static str)> {
    if cause.is::<NotEnabled>() {
        return Some((NOT_ENABLED, "notEnabled"));
    }
    if cause.is::<NoneThatOld>() {
        return Some((UNKNOWN_POINT, "unknownPoint"));
    }
    if let Some(error) = cause.downcast_ref() {
        return Some(match error {
            PointNameError::NoPoints | PointNameError::NotFound { .. } => {
                (UNKNOWN_POINT, "unknownPoint")
            }
            PointNameError::Several { .. } => (AMBIGUOUS_NAME, "ambiguousName"),
        });
    }
    if let Some(error) = cause.downcast_ref() {
        return Some(match error {
            SessionNameError::NotFound { .. } => (UNKNOWN_SESSION, "unknownSession"),
            SessionNameError::Several { .. } => (AMBIGUOUS_NAME, "ambiguousName"),
        });
    }
    if let Some(RewindError::NoPoint(_)) = cause.downcast_ref() {
        return Some((UNKNOWN_POINT, "unknownPoint"));
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
        | (_, Some(StateError::Damaged { .. })) => Some((DAMAGED, "storeDamaged")),
        (
            _,
            Some(
                StateError::NotFound { .. }
                | StateError::MissingParent { .. }
                | StateError::NoExecution(_)
                | StateError::NoBranch { .. }
                | StateError::NoLine { .. },
            ),
        ) => Some((UNKNOWN_STATE, "unknownState")),
        _ => None,
    }
}
