//! A rewind with a live agent: the agent restores its own copies as part of Takeback's rewind,
//! which then brings every file to its recorded contents.

use takeback_core::Workspace;
use takeback_core::rewind::Preview;
use takeback_core::rewind::{
    NativeOutcome, NativeRestore, Receipt, RewindError, RewindRequest, rewind, rewind_with,
};

use crate::chat_agent::{AgentError, ChatAgent, NativeFilesError, RestoreMode};

/// The result of a restore.
#[derive(Debug)]
pub struct RestoreReport {
    /// What the rewind did.
    pub receipt: Receipt,
    /// What happened to the agent's own copies.
    pub own: NativeFilesResult,
}

/// What happened to the agent's own copies. The files are the same in every case.
#[derive(Debug)]
pub enum NativeFilesResult {
    /// The agent was asked to restore them, unless that was unnecessary or could do harm.
    Asked(NativeOutcome),
    /// The agent keeps no copies.
    None,
    /// The agent could not report what it would do.
    Unavailable(NativeFilesError),
}

/// Why a restore failed.
#[derive(Debug, thiserror::Error)]
pub enum RestoreError {
    /// Nothing was changed. [`rewind`] needs no agent.
    #[error("No active query session. Cannot restore checkpoint.")]
    NotLive,
    /// The rewind itself failed.
    #[error(transparent)]
    Rewind(#[from] RewindError),
}

/// Carries out `request`; `message` is the agent's id of the prompt at that point. Missing, wrong
/// or partial copies of the agent do not change the result.
pub fn restore_with_agent(
    workspace: &mut Workspace,
    agent: &dyn ChatAgent,
    message: &str,
    request: &RewindRequest,
    shown: Option<&Preview>,
) -> Result<RestoreReport, RestoreError> {
    if !agent.is_live() {
        return Err(RestoreError::NotLive);
    }
    let own = match agent.rewind_files(message, RestoreMode::DryRun) {
        Ok(Some(files)) => {
            let paths = NativeRestore::meant(workspace, &files.paths);
            let mut run = || match agent.rewind_files(message, RestoreMode::Apply) {
                Ok(_) => Ok(()),
                Err(error) => Err(error.to_string()),
            };
            let mut helper = NativeRestore { paths, run: &mut run };
            let (receipt, helped) = rewind_with(workspace, request, shown, &mut helper)?;
            return Ok(RestoreReport { receipt, own: NativeFilesResult::Asked(helped) });
        }
        Err(NativeFilesError::Agent(AgentError::Ended(_))) => return Err(RestoreError::NotLive),
        Ok(None) => NativeFilesResult::None,
        Err(error) => NativeFilesResult::Unavailable(error),
    };
    Ok(RestoreReport { receipt: rewind(workspace, request, shown)?, own })
}
