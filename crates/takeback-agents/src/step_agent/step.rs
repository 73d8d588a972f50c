//! One step of an agent, and how it can fail.

use std::error::Error;

use takeback_core::CallTargets;
use takeback_store::StateError;
use takeback_store::state::{Effect, Values};

use super::effects::Effects;

type Run<'a> = dyn FnMut(&mut Values, &mut Effects<'_>) -> Result<(), StepError> + 'a;

/// A named piece of an agent's work.
pub struct Step<'a> {
    /// Saved with every checkpoint of the step: an execution only continues with the steps it began
    /// with.
    pub name: String,
    /// What the step may write. While a step may write anything, the user's changes are also
    /// attributed to the step; a step that names its paths leaves all others to the user.
    pub touches: CallTargets,
    /// Does the work: changes the state, writes files. Every attempt starts with the state and
    /// files of the last success.
    pub run: Box<Run<'a>>,
}

impl<'a> Step<'a> {
    /// A step that may write anything.
    pub fn new(
        name: impl Into<String>,
        run: impl FnMut(&mut Values, &mut Effects<'_>) -> Result<(), StepError> + 'a,
    ) -> Self {
        let name = name.into();
        Self { name, touches: CallTargets::anything(None), run: Box::new(run) }
    }
}

/// Why a step did not succeed. Any error becomes [`Self::Failed`] with `?`.
#[derive(Debug)]
pub enum StepError {
    /// It is retried from the last success.
    Failed(Box<dyn Error + Send + Sync>),
    /// An effect may or may not have happened, and the agent's author wants to decide: the run
    /// ends.
    Ambiguous(Box<Effect>),
    /// An effect could not be recorded, so it was not done: the run ends.
    Ledger(Box<StateError>),
}

impl StepError {
    /// A failure described by a text.
    pub fn failed(why: impl Into<String>) -> Self {
        Self::Failed(why.into().into())
    }

    pub(super) fn ledger(error: StateError) -> Self {
        Self::Ledger(Box::new(error))
    }
}

// `StepError` must not implement `Error`, or this would conflict with the reflexive `From`.
impl<E: Error + Send + Sync + 'static> From<E> for StepError {
    fn from(error: E) -> Self {
        Self::Failed(error.into())
    }
}
