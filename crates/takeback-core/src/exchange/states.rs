//! Counts the agents' states that an export leaves behind: a bundle has none.

use takeback_store::{SessionId, StateError, States, StoreError};

use super::export::Selection;

/// Agents' checkpoints that belong to the exported points and are not in the bundle.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub struct OmittedStates {
    /// Executions with such checkpoints.
    pub executions: usize,
    /// The checkpoints.
    pub checkpoints: u64,
}

/// Those of the points in `selection`. `None`: the states cannot be read.
pub(super) fn omitted_states(states: &dyn States, selection: &Selection) -> Option<OmittedStates> {
    match count(states, selection) {
        // Nothing was ever saved.
        Err(StateError::Store(StoreError::Missing { .. })) => Some(OmittedStates::default()),
        counted => counted.ok(),
    }
}

fn count(states: &dyn States, selection: &Selection) -> Result<OmittedStates, StateError> {
    if let Selection::Point(point) = selection {
        let is_carried = states.points()?.contains(point);
        let (executions, checkpoints) = (usize::from(is_carried), u64::from(is_carried));
        return Ok(OmittedStates { executions, checkpoints });
    }
    let all = states.executions()?;
    let mut left_out = OmittedStates::default();
    for execution in &all.executions {
        let own = SessionId(execution.id.to_string());
        let is_chosen = match selection {
            Selection::Session(session) => {
                *session == own || execution.session.as_ref() == Some(session)
            }
            Selection::Everything | Selection::Point(_) => true,
        };
        if is_chosen {
            left_out.executions += 1;
            left_out.checkpoints += execution.checkpoints;
        }
    }
    // Their owner is unknown.
    if *selection == Selection::Everything {
        left_out.checkpoints += all.damaged.len() as u64;
    }
    Ok(left_out)
}
