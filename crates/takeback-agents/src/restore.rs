//! Going back with an agent that is live: its own copies come back inside of Takeback's rewind, which
//! then brings every file to what was recorded.

use takeback_core::Workspace;
use takeback_core::rewind::journal::Preview;
use takeback_core::rewind::{
    Helped, Helper, Receipt, RewindError, RewindRequest, rewind, rewind_with,
};

use crate::talk::{Agent, AgentError, OwnFilesError, Trial};

/// What came of it.
#[derive(Debug)]
pub struct Restored {
    pub receipt: Receipt,
    pub own: OwnCopies,
}

/// What became of the agent's own copies. The files are the same in every case.
#[derive(Debug)]
pub enum OwnCopies {
    /// It was asked to restore them, unless there was no need to or it could have done harm.
    Asked(Helped),
    /// It keeps none.
    None,
    /// It could not even say what it would do.
    Unavailable(OwnFilesError),
}

#[derive(Debug, thiserror::Error)]
pub enum RestoreError {
    /// Nothing was changed. [`rewind`] needs no agent.
    #[error("No active query session. Cannot restore checkpoint.")]
    NotLive,
    #[error(transparent)]
    Rewind(#[from] RewindError),
}

/// Takes back what `request` asks for; `message` is the prompt by which the agent knows that moment.
/// An agent whose copies are missing, wrong or only half there changes nothing in what comes out.
pub fn restore(
    workspace: &mut Workspace,
    agent: &dyn Agent,
    message: &str,
    request: &RewindRequest,
    shown: Option<&Preview>,
) -> Result<Restored, RestoreError> {
    if !agent.is_live() {
        return Err(RestoreError::NotLive);
    }
    let own = match agent.rewind_files(message, Trial::Dry) {
        Ok(Some(files)) => {
            let paths = Helper::meant(workspace, &files.paths);
            let mut run = || match agent.rewind_files(message, Trial::Real) {
                Ok(_) => Ok(()),
                Err(error) => Err(error.to_string()),
            };
            let mut helper = Helper { paths, run: &mut run };
            let (receipt, helped) = rewind_with(workspace, request, shown, &mut helper)?;
            return Ok(Restored { receipt, own: OwnCopies::Asked(helped) });
        }
        Err(OwnFilesError::Agent(AgentError::Gone(_))) => return Err(RestoreError::NotLive),
        Ok(None) => OwnCopies::None,
        Err(error) => OwnCopies::Unavailable(error),
    };
    Ok(Restored { receipt: rewind(workspace, request, shown)?, own })
}
