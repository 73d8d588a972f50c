//! Side effects of a step outside the workspace, each done once.

use std::error::Error;

use serde_json::Value;
use takeback_core::Ambient;
use takeback_store::States;
use takeback_store::state::{Effect, ExecutionId, IntentOutcome, NewEffect, StepIndex};

use super::step::StepError;

/// What to do about an effect that was intended but has no receipt: it may have happened or not.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum EffectDecision {
    /// Do it (again): for effects that are harmless twice.
    Repeat,
    /// Count it as done, with `null` as its receipt: for effects that are worse twice than not at
    /// all.
    Skip,
    /// End the run, so that a person can check.
    Stop,
}

/// The side effects of a step. A rewind does not take them back: a mail stays sent.
pub struct Effects<'a> {
    pub(super) states: &'a dyn States,
    pub(super) ambient: &'a Ambient,
    pub(super) execution: &'a ExecutionId,
    pub(super) step: StepIndex,
    pub(super) on_ambiguous: &'a mut dyn FnMut(&Effect) -> EffectDecision,
}

impl Effects<'_> {
    /// Does something once in an execution, and returns its receipt: the value of `act`, from now
    /// or from the run that did it.
    ///
    /// `key` names the effect, the same in every attempt of the step. `intent` helps a person find
    /// out whether it happened. The intention is durable before `act` runs, the receipt before this
    /// returns. If `act` fails, it may still have had its effect, so the next attempt finds it
    /// ambiguous; an author who knows better calls [`Self::withdraw`].
    pub fn once<E: Into<Box<dyn Error + Send + Sync>>>(
        &mut self,
        key: &str,
        intent: &Value,
        act: impl FnOnce() -> Result<Value, E>,
    ) -> Result<Value, StepError> {
        let (execution, step) = (self.execution, Some(self.step));
        let time = (self.ambient.now)();
        let new = NewEffect { execution, key, step, intent, time };
        let IntentOutcome { effect, is_new } =
            self.states.declare_effect(&new).map_err(StepError::ledger)?;
        let receipt = match effect {
            _ if is_new => act(),
            Effect { receipt: Some((receipt, _)), .. } => return Ok(receipt),
            effect => match (self.on_ambiguous)(&effect) {
                EffectDecision::Repeat => act(),
                EffectDecision::Skip => Ok(Value::Null),
                EffectDecision::Stop => return Err(StepError::Ambiguous(Box::new(effect))),
            },
        };
        let receipt = receipt.map_err(|error| StepError::Failed(error.into()))?;
        let time = (self.ambient.now)();
        self.states
            .confirm_effect(self.execution, key, &receipt, time)
            .map_err(StepError::ledger)?;
        Ok(receipt)
    }

    /// Declares that an intended effect did not happen: the next attempt does it as if for the
    /// first time.
    pub fn withdraw(&mut self, key: &str) -> Result<bool, StepError> {
        self.states.withdraw_effect(self.execution, key).map_err(StepError::ledger)
    }
}
