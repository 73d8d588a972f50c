//! Whose changes the menu takes back: from the user's choice to a request.

use takeback_core::Workspace;
use takeback_core::rewind::{Exactness, RewindRequest, RewindScope};
use takeback_store::Point;
use takeback_tui::MenuCoverage;

use crate::actions::{RevertQuery, RevertTarget};
use crate::commands::revert;
use crate::commands::rewind::{TitledRequest, name_of};
use crate::error::CommandError;

/// The request that the user chose for this point. `rewind`: a rewind to it, with the options of the command.
pub(crate) fn covered(
    workspace: &Workspace,
    mut rewind: RewindRequest,
    point: &Point,
    coverage: MenuCoverage,
) -> Result<TitledRequest, CommandError> {
    let exactness = match coverage {
        MenuCoverage::Everyone => Exactness::Exact,
        _ => Exactness::AgentsOnly,
    };
    rewind.exactness = exactness;
    match coverage {
        MenuCoverage::Session if rewind.scope == Some(RewindScope::AllAgents) => {
            rewind.scope = None;
        }
        MenuCoverage::Session => {}
        MenuCoverage::AllAgents => rewind.scope = Some(RewindScope::AllAgents),
        MenuCoverage::Everyone => {
            rewind.scope = None;
            // Authors do not matter.
            rewind.take.clear();
            rewind.mine.clear();
        }
        MenuCoverage::Turn => {
            let query = RevertQuery {
                paths: rewind.paths,
                ambiguous: rewind.ambiguous,
                conflicts: rewind.conflicts,
                ..RevertQuery::new(RevertTarget::Turn(point.id))
            };
            return revert::request_for(workspace, &query);
        }
    }
    Ok(TitledRequest { title: format!("Rewind to {}", name_of(point)), request: rewind })
}
