//! Helpers for the cases: names, plain checkpoints, short queries.

use std::sync::LazyLock;

use serde_json::{Value, json};

use super::good;
use crate::id::Timestamp;
use crate::state::{
    Attempt, BranchName, CheckpointId, CheckpointKey, ExecutionId, ListQuery, ListScope,
    NewCheckpoint, Page, Record, States, StepIndex, Values,
};

pub(super) fn execution(name: &str) -> ExecutionId {
    ExecutionId::new(name).expect("a plain name")
}

pub(super) fn branch(name: &str) -> BranchName {
    BranchName::new(name).expect("a plain name")
}

pub(super) fn id(text: &str) -> CheckpointId {
    text.parse().expect("an id")
}

pub(super) fn attempt(number: u32) -> Attempt {
    Attempt::new(number).expect("not 0")
}

pub(super) fn key(execution: &ExecutionId, step: u32, number: u32) -> CheckpointKey {
    CheckpointKey { execution: execution.clone(), step: StepIndex(step), attempt: attempt(number) }
}

pub(super) fn state(state: Value) -> Values {
    Values { state, ..Values::default() }
}

/// A plain success of a step.
pub(super) fn new(execution: &ExecutionId, step: u32) -> NewCheckpoint<'_> {
    static EMPTY: LazyLock<Values> = LazyLock::new(Values::default);
    NewCheckpoint::success(
        execution,
        StepIndex(step),
        "a step",
        Timestamp(1_700_000_000_000 + i64::from(step)),
        &EMPTY,
    )
}

/// Saves a new step whose state is `{"is": text}`.
#[track_caller]
pub(super) fn save(store: &dyn States, execution: &ExecutionId, step: u32, text: &str) -> Record {
    let values = state(json!({ "is": text }));
    let saved = good(store.save(&NewCheckpoint { values: &values, ..new(execution, step) }));
    assert!(saved.is_new, "{saved:?}");
    saved.record
}

/// Steps 1 to `last`, each with its number as its state.
pub(super) fn steps(store: &dyn States, execution: &ExecutionId, last: u32) {
    for step in 1..=last {
        save(store, execution, step, &step.to_string());
    }
}

#[track_caller]
pub(super) fn page(store: &dyn States, execution: &ExecutionId, scope: ListScope<'_>) -> Page {
    let page = good(store.list(&ListQuery { execution, scope, after: None, limit: None }));
    assert_eq!((&page.damaged[..], page.more), (&[][..], false));
    page
}

/// The newest attempts on the current branch.
#[track_caller]
pub(super) fn listed(store: &dyn States, execution: &ExecutionId) -> Vec<Record> {
    page(store, execution, ListScope::Branch(None)).records
}

#[track_caller]
pub(super) fn all(store: &dyn States, execution: &ExecutionId) -> Vec<Record> {
    page(store, execution, ListScope::All).records
}

pub(super) fn places(records: &[Record]) -> Vec<(u32, u32)> {
    records.iter().map(|record| (record.key.step.0, record.key.attempt.0.get())).collect()
}

/// The text that [`save`] put into the checkpoint with this id, if it exists.
#[track_caller]
pub(super) fn text_of(store: &dyn States, text: &str) -> Option<String> {
    let loaded = good(store.load(&id(text)))?;
    assert_eq!(good(store.find(&id(text))), Some(loaded.record));
    Some(loaded.values.state["is"].as_str().expect("it was saved here").to_owned())
}

/// The step and attempt of the head of the current branch.
#[track_caller]
pub(super) fn head(store: &dyn States, execution: &ExecutionId) -> Option<(u32, u32)> {
    let record = good(store.head(execution, None)).expect("the execution exists").record?;
    assert_eq!(record.key.execution, *execution);
    Some((record.key.step.0, record.key.attempt.0.get()))
}
