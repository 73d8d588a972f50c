//! What a step does to the world outside the workspace, once.

use std::error::Error;

use serde_json::Value;
use takeback_core::Ambient;
use takeback_store::StateStore;
use takeback_store::state::{Effect, ExecutionId, Intended, NewEffect, StepIndex};

use super::step::StepError;

/// What to do about an effect of which only the intention is known: it may have happened, or not.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Ambiguous {
    /// Do it (again): for what does no harm twice.
    Repeat,
    /// Count it as done, with `null` for its receipt: for what does more harm twice than not at all.
    Skip,
    /// End the run, so that somebody can look.
    Stop,
}

/// The side effects of a step. They are not taken back when the step is: a mail stays sent.
pub struct Effects<'a> {
    pub(super) states: &'a dyn StateStore,
    pub(super) ambient: &'a Ambient,
    pub(super) execution: &'a ExecutionId,
    pub(super) step: StepIndex,
    pub(super) on_ambiguous: &'a mut dyn FnMut(&Effect) -> Ambiguous,
}

impl Effects<'_> {
    /// Does something once in an execution, and answers its receipt: what `act` answered, now or when
    /// it was done before.
    ///
    /// `key` names the effect: the same in every try of the step. `intent` is for whoever has to find
    /// out what became of it. The intention is durable before `act` begins, the receipt before this
    /// answers. If `act` fails, nobody knows whether it had its effect, and the next try finds it
    /// ambiguous; an author who does know says so with [`Self::withdraw`].
    pub fn once<E: Into<Box<dyn Error + Send + Sync>>>(
        &mut self,
        key: &str,
        intent: &Value,
        act: impl FnOnce() -> Result<Value, E>,
    ) -> Result<Value, StepError> {
        let (execution, step) = (self.execution, Some(self.step));
        let time = (self.ambient.now)();
        let new = NewEffect { execution, key, step, intent, time };
        let Intended { effect, is_new } = self.states.intend(&new).map_err(StepError::ledger)?;
        let receipt = match effect {
            _ if is_new => act(),
            Effect { receipt: Some((receipt, _)), .. } => return Ok(receipt),
            effect => match (self.on_ambiguous)(&effect) {
                Ambiguous::Repeat => act(),
                Ambiguous::Skip => Ok(Value::Null),
                Ambiguous::Stop => return Err(StepError::Ambiguous(Box::new(effect))),
            },
        };
        let receipt = receipt.map_err(|error| StepError::Failed(error.into()))?;
        let time = (self.ambient.now)();
        self.states.receive(self.execution, key, &receipt, time).map_err(StepError::ledger)?;
        Ok(receipt)
    }

    /// Says that an intended effect has certainly not happened: the next try does it as if for the
    /// first time.
    pub fn withdraw(&mut self, key: &str) -> Result<bool, StepError> {
        self.states.withdraw(self.execution, key).map_err(StepError::ledger)
    }
}
