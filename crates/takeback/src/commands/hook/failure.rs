//! Why an event is not in the log, and what of it the user is told at once.

use std::error::Error;
use std::path::PathBuf;

use takeback_core::record::RecordError;
use takeback_store::{SessionId, StoreError, Timestamp};

use super::whole;
use crate::error::{CommandError, Trouble, causes, trouble};
use crate::marker::{ACKNOWLEDGE, Gone};
use crate::missed::{self, Missed};

/// What kept an event out of the log.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) struct Failure {
    pub(super) what: String,
    /// `None`: the heartbeat and the log file are where this is reported.
    pub(super) cause: Option<Cause>,
    /// The store that the event is not in, and its session; `None`: it never came so far.
    pub(super) missed: Option<(PathBuf, SessionId)>,
}

/// What keeps every event out of the log until the user does something about it.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Cause {
    Full,
    NotWritable,
    Failing,
    NewerStore,
    HistoryGone,
}

impl Cause {
    /// As a heartbeat remembers that the user was told.
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
        Some(match trouble(error)? {
            Trouble::Full => Self::Full,
            Trouble::NotAllowed => Self::NotWritable,
            Trouble::Failing => Self::Failing,
        })
    }
}

impl Failure {
    pub(super) fn of(error: &(dyn Error + 'static)) -> Self {
        Self { what: whole(error), cause: Cause::of(error), missed: None }
    }

    /// Leaves word of the event where there is room, so that the next recorder knows of it.
    pub(super) fn note(&self, time: Timestamp) {
        if let Some((store, session)) = &self.missed {
            let told = self.cause.map(|cause| cause.name().to_owned());
            let (session, why) = (session.clone(), self.what.clone());
            let version = env!("CARGO_PKG_VERSION").to_owned();
            missed::note(store, &Missed { session, at: time, why, told, version });
        }
    }

    /// The store that is too new for this Takeback.
    pub(super) fn refused_by(&self) -> Option<PathBuf> {
        let (store, _) = self.missed.as_ref()?;
        (self.cause == Some(Cause::NewerStore)).then(|| store.clone())
    }

    /// Whether the session's user was told of the cause before, as far as that could be noted.
    pub(super) fn was_told(&self, cause: Cause) -> bool {
        let is_of = |missed: &Missed, session: &SessionId| {
            missed.session == *session && missed.told.as_deref() == Some(cause.name())
        };
        self.missed.as_ref().is_some_and(|(store, session)| {
            missed::noted(store).iter().any(|missed| is_of(missed, session))
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

/// What the user is told at once, where the agent shows it.
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

    pub(super) fn of_loss(gone: &Gone) -> Self {
        let text = format!("Takeback: {}. {ACKNOWLEDGE}", gone.what());
        Self { cause: Cause::HistoryGone, text }
    }
}
