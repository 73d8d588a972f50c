//! Why an event could not be recorded, and whether the agent shows a notice about it.

use std::error::Error;
use std::path::PathBuf;

use takeback_core::record::RecordError;
use takeback_store::{SessionId, StoreError, Timestamp};

use super::error_chain;
use crate::error::{CommandError, DiskProblem, causes, disk_problem};
use crate::marker::{ACKNOWLEDGE, LostHistory};
use crate::missed_events::{self, MissedEvent};

/// What kept an event out of the log.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) struct Failure {
    pub(super) what: String,
    /// `None`: reported only in the heartbeat and the log file.
    pub(super) cause: Option<Cause>,
    /// The store that misses the event, and the session; `None`: it failed before the store was known.
    pub(super) missed: Option<(PathBuf, SessionId)>,
}

/// A problem that stops all recording until the user fixes it.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Cause {
    Full,
    NotWritable,
    Failing,
    NewerStore,
    HistoryGone,
}

impl Cause {
    /// The name under which a heartbeat notes that the user was told.
    pub(super) const fn name(self) -> &'static str {
        match self {
            Self::Full => "full",
            Self::NotWritable => "notWritable",
            Self::Failing => "failing",
            Self::NewerStore => "newerStore",
            Self::HistoryGone => "historyGone",
        }
    }

    fn of(error: &(dyn Error + 'static)) -> Option<Self> {
        let of_store =
            causes(error).find_map(|cause| match cause.downcast_ref::<StoreError>()? {
                StoreError::Newer { .. } => Some(Self::NewerStore),
                StoreError::LostDatabase { .. } | StoreError::PreRelease { .. } => {
                    Some(Self::HistoryGone)
                }
                _ => None,
            });
        if of_store.is_some() {
            return of_store;
        }
        Some(match disk_problem(error)? {
            DiskProblem::Full => Self::Full,
            DiskProblem::NotAllowed => Self::NotWritable,
            DiskProblem::Failing => Self::Failing,
        })
    }
}

impl Failure {
    pub(super) fn of(error: &(dyn Error + 'static)) -> Self {
        Self { what: error_chain(error), cause: Cause::of(error), missed: None }
    }

    /// Notes the event outside the store, so that the next recorder knows of it.
    pub(super) fn note(&self, time: Timestamp) {
        if let Some((store, session)) = &self.missed {
            let told = self.cause.map(|cause| cause.name().to_owned());
            let (session, why) = (session.clone(), self.what.clone());
            let version = env!("CARGO_PKG_VERSION").to_owned();
            missed_events::add_event(store, &MissedEvent { session, at: time, why, told, version });
        }
    }

    /// The store, if it is too new for this Takeback.
    pub(super) fn refused_by(&self) -> Option<PathBuf> {
        let (store, _) = self.missed.as_ref()?;
        (self.cause == Some(Cause::NewerStore)).then(|| store.clone())
    }

    /// Whether the user was already told of the cause in this session, as far as could be noted.
    pub(super) fn was_told(&self, cause: Cause) -> bool {
        let is_of = |missed: &MissedEvent, session: &SessionId| {
            missed.session == *session && missed.told.as_deref() == Some(cause.name())
        };
        self.missed.as_ref().is_some_and(|(store, session)| {
            missed_events::read_events(store).iter().any(|missed| is_of(missed, session))
        })
    }
}

impl From<CommandError> for Failure {
    fn from(error: CommandError) -> Self {
        Self { what: error.line(), cause: Cause::of(&*error.source), missed: None }
    }
}

impl From<RecordError> for Failure {
    fn from(error: RecordError) -> Self {
        CommandError::from(error).into()
    }
}

impl From<String> for Failure {
    fn from(what: String) -> Self {
        Self { what, cause: None, missed: None }
    }
}

impl From<&str> for Failure {
    fn from(what: &str) -> Self {
        what.to_owned().into()
    }
}

/// A message that the agent shows to the user.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) struct Notice {
    pub(super) cause: Cause,
    pub(super) text: String,
}

impl Notice {
    pub(super) fn of_failure(failure: &Failure) -> Option<Self> {
        let text = format!("Takeback could not record this session: {}", failure.what);
        Some(Self { cause: failure.cause?, text })
    }

    pub(super) fn of_loss(gone: &LostHistory) -> Self {
        let text = format!("Takeback: {}. {ACKNOWLEDGE}", gone.what());
        Self { cause: Cause::HistoryGone, text }
    }
}
