//! What a hook tells the agent's model: at a prompt what was taken back, before an edit what it would overwrite.

use takeback_core::{AgentEvent, Workspace, last_prompt, notice, overwrite_warning};
use takeback_store::{Seq, SessionId, StoreError, Timestamp, WorkPath};

use super::deadline::Task;
use super::error_chain;
use crate::heartbeat::FileRead;

/// What the model may be told.
#[derive(Debug, Clone, Default)]
pub(super) struct Telling {
    /// At a prompt: which of its changes were taken back.
    pub(super) taken_back: bool,
    /// Before an edit: that others changed the file. The files that the session was seen to read.
    pub(super) overwrites: Option<Vec<FileRead>>,
}

impl Task {
    /// Until where the session was told what was taken back: its last prompt, before this one is recorded.
    pub(super) fn told_until(&self, workspace: &Workspace) -> Result<Option<Seq>, StoreError> {
        match &self.event {
            AgentEvent::Prompt { session, .. } if self.telling.taken_back => {
                last_prompt(&*workspace.store, session)
            }
            _ => Ok(None),
        }
    }

    /// What the model should know once the event is recorded, and why that could not be read.
    pub(super) fn context(
        &self,
        workspace: &Workspace,
        told: Result<Option<Seq>, StoreError>,
    ) -> (Option<String>, Option<String>) {
        match told.and_then(|told| self.read_context(workspace, told)) {
            Ok(context) => (context, None),
            Err(error) => {
                let why = error_chain(&error);
                (None, Some(format!("what the agent should know cannot be read: {why}")))
            }
        }
    }

    fn read_context(
        &self,
        workspace: &Workspace,
        told: Option<Seq>,
    ) -> Result<Option<String>, StoreError> {
        let store = &*workspace.store;
        match (&self.event, &self.telling.overwrites) {
            (AgentEvent::Prompt { session, .. }, _) => match told {
                Some(told) => notice(store, session, told),
                None => Ok(None),
            },
            (AgentEvent::BeforeTool { session, call, .. }, Some(reads)) => {
                let read_at = |path: &WorkPath| read_at(workspace, reads, session, path);
                overwrite_warning(store, session, call, &read_at)
            }
            _ => Ok(None),
        }
    }
}

/// When a session was last seen to read a file. A subagent knows only what it read itself.
fn read_at(
    workspace: &Workspace,
    reads: &[FileRead],
    session: &SessionId,
    path: &WorkPath,
) -> Option<Timestamp> {
    let path = workspace.absolute(path);
    let of_file = reads.iter().filter(|read| read.path == path && read.session == *session);
    of_file.map(|read| read.at).max()
}
