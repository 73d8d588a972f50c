//! Calls that ran while paths changed, without naming them: shells, mostly. The changes attributed to
//! them may include the user's own changes, so previews and receipts name them.

use std::collections::HashMap;

use serde::Serialize;
use takeback_store::{
    Author, CallId, CallKind, Evidence, RewindRecord, SessionId, Store, StoreError, WorkPath,
};

use super::error::RewindError;
use super::plan::stream::for_each_step;
use super::plan::{Plan, Step};

/// A call and how many paths changed while it ran.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
#[serde(rename_all = "camelCase")]
pub struct Window {
    /// The session.
    pub session: SessionId,
    /// The call.
    pub call: CallId,
    /// The tool's name.
    pub tool: String,
    /// The command, where the call had one.
    pub command: Option<String>,
    /// How many paths changed while it ran.
    pub paths: usize,
    /// The first of these paths, at most [`Self::NAMED`].
    #[serde(skip)]
    pub first_paths: Vec<WorkPath>,
}

impl Window {
    /// How many paths are named.
    pub const NAMED: usize = 3;

    /// All paths, if they are few.
    #[must_use]
    pub fn all_paths(&self) -> Option<&[WorkPath]> {
        (self.first_paths.len() == self.paths).then_some(&self.first_paths)
    }
}

/// The windows that a plan takes back changes of, in the order of its steps.
pub(super) fn windows(store: &dyn Store, plan: &Plan) -> Result<Vec<Window>, StoreError> {
    let mut counts = WindowCounts::default();
    plan.actions().for_each(|step| counts.add(step));
    counts.finish(store)
}

/// The same for a rewind that the store has.
pub fn windows_of(store: &dyn Store, record: &RewindRecord) -> Result<Vec<Window>, RewindError> {
    let mut counts = WindowCounts::default();
    let read = for_each_step(&record.plan, |step| {
        if step.goal().is_some() {
            counts.add(&step);
        }
    });
    read.map_err(|source| RewindError::DamagedPlan { id: record.id, source })?;
    Ok(counts.finish(store)?)
}

#[derive(Default)]
struct WindowCounts {
    /// Without their commands.
    windows: Vec<Window>,
    places: HashMap<(SessionId, CallId), usize>,
}

impl WindowCounts {
    fn add(&mut self, step: &Step) {
        for cause in &step.because {
            let (Evidence::Window | Evidence::OpenWindow) = cause.evidence else { continue };
            let Author::Agent { session, call, tool, .. } = &cause.author else { continue };
            // Neighbouring steps mostly have the same call.
            let is_its = |window: &Window| window.call == *call && window.session == *session;
            let place = match self.windows.last() {
                Some(last) if is_its(last) => self.windows.len() - 1,
                _ => *self.places.entry((session.clone(), call.clone())).or_insert_with(|| {
                    self.windows.push(Window {
                        session: session.clone(),
                        call: call.clone(),
                        tool: tool.clone(),
                        command: None,
                        paths: 0,
                        first_paths: Vec::new(),
                    });
                    self.windows.len() - 1
                }),
            };
            let window = &mut self.windows[place];
            window.paths += 1;
            if window.first_paths.len() < Window::NAMED {
                window.first_paths.push(step.path.clone());
            }
        }
    }

    fn finish(mut self, store: &dyn Store) -> Result<Vec<Window>, StoreError> {
        for window in &mut self.windows {
            let call = store.call(&window.session, &window.call)?;
            window.command = call.and_then(|call| match call.kind {
                CallKind::Shell { command, .. } => command,
                CallKind::Edit { .. } => None,
            });
        }
        Ok(self.windows)
    }
}
