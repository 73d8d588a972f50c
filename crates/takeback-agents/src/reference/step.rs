//! One step of an agent, and how it can fail.

use std::error::Error;

use takeback_core::Touches;
use takeback_store::StateError;
use takeback_store::state::{Effect, Values};

use super::effects::Effects;

type Run<'a> = dyn FnMut(&mut Values, &mut Effects<'_>) -> Result<(), StepError> + 'a;

/// A named piece of an agent's work.
pub struct Step<'a> {
    /// Kept with every checkpoint of the step: an execution goes on only with the steps it began with.
    pub name: String,
    /// What it may write. As long as a step runs that may write anything, whatever the user saves
    /// counts as the step's; one that names its paths leaves all others the user's.
    pub touches: Touches,
    /// Does the work: changes the working state, writes files. It begins with the state and the files
    /// of the last success, however often it is tried.
    pub run: Box<Run<'a>>,
}

impl<'a> Step<'a> {
    /// A step that may write anything.
    pub fn new(
        name: impl Into<String>,
        run: impl FnMut(&mut Values, &mut Effects<'_>) -> Result<(), StepError> + 'a,
    ) -> Self {
        let name = name.into();
        Self { name, touches: Touches::anything(None), run: Box::new(run) }
    }
}

/// Why a step did not succeed. Any error becomes [`Self::Failed`] with `?`.
#[derive(Debug)]
pub enum StepError {
    /// It is tried again, from the last success.
    Failed(Box<dyn Error + Send + Sync>),
    /// An effect may have happened or not, and the agent's author wants to be asked: the run ends.
    Ambiguous(Box<Effect>),
    /// An effect could not be noted, so it was not done: the run ends.
    Ledger(Box<StateError>),
}

impl StepError {
    /// For a failure that is only words.
    pub fn failed(why: impl Into<String>) -> Self {
        Self::Failed(why.into().into())
    }

    pub(super) fn ledger(error: StateError) -> Self {
        Self::Ledger(Box::new(error))
    }
}

// `StepError` is not an `Error` itself, or this would be refused.
impl<E: Error + Send + Sync + 'static> From<E> for StepError {
    fn from(error: E) -> Self {
        Self::Failed(error.into())
    }
}
