//! Calls that ran while paths changed, without naming them: shells, mostly. What they are blamed for may
//! include the user's own changes, so previews and receipts name them.

use std::collections::HashMap;

use serde::Serialize;
use takeback_store::{Author, CallId, CallKind, Evidence, SessionId, Store, StoreError};

use super::plan::Plan;

/// A call and how many paths changed while it ran.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
#[serde(rename_all = "camelCase")]
pub struct Window {
    pub session: SessionId,
    pub call: CallId,
    pub tool: String,
    /// The command, where the call had one.
    pub command: Option<String>,
    pub paths: usize,
}

/// The windows that a plan takes back changes of, in the order of its steps.
pub fn windows(store: &dyn Store, plan: &Plan) -> Result<Vec<Window>, StoreError> {
    let mut windows: Vec<Window> = Vec::new();
    let mut known: HashMap<(&SessionId, &CallId), usize> = HashMap::new();
    for cause in plan.actions().flat_map(|step| &step.because) {
        let (Author::Agent { session, call, tool, .. }, Evidence::Window | Evidence::OpenWindow) =
            (&cause.author, cause.evidence)
        else {
            continue;
        };
        if let Some(at) = known.get(&(session, call)) {
            windows[*at].paths += 1;
            continue;
        }
        let command = store.call(session, call)?.and_then(|call| match call.kind {
            CallKind::Shell { command, .. } => command,
            CallKind::Edit { .. } => None,
        });
        known.insert((session, call), windows.len());
        windows.push(Window {
            session: session.clone(),
            call: call.clone(),
            tool: tool.clone(),
            command,
            paths: 1,
        });
    }
    Ok(windows)
}
