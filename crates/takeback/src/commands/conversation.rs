//! After a rewind: how to make the agent forget what came after the point.

use std::io::{self, Write};

use takeback_agents::{Cut, PointPrompt, agent_named};
use takeback_core::Workspace;
use takeback_core::exchange::original_name;
use takeback_core::rewind::{RewindRequest, Target};
use takeback_store::StoreError;

use crate::installed_agents;
use crate::screen::{HINT, plain, width, wrap};

/// How to cut the point's conversation at the point. `None` also if only some paths were rewound: the agent
/// should not forget the rest.
pub(crate) fn cut_of(
    workspace: &Workspace,
    request: &RewindRequest,
) -> Result<Option<Cut>, StoreError> {
    let Target::Point(id) = request.target else { return Ok(None) };
    if !request.paths.is_empty() {
        return Ok(None);
    }
    let points = workspace.store.points()?;
    let Some(point) = points.into_iter().find(|point| point.id == id) else { return Ok(None) };
    let sessions = workspace.store.sessions()?;
    let session = sessions.into_iter().find(|session| Some(&session.id) == point.session.as_ref());
    let Some(session) = session else { return Ok(None) };
    let agent = session.agent.as_deref().and_then(agent_named);
    let cut = agent.and_then(|agent| Some((agent, agent.cut?)));
    let (Some((agent, cut)), Ok(homes)) = (cut, installed_agents::homes()) else { return Ok(None) };
    let prompt = PointPrompt {
        session: original_name(&session.id).unwrap_or(&session.id.0),
        message_ids: &point.message_ids,
        text: &point.description,
    };
    // The files are restored; an unreadable conversation must not turn that into a failure.
    Ok(cut(&agent.home.path(&homes), prompt).unwrap_or_default())
}

/// Prints one way to do it, or all.
pub(crate) fn say(cut: &Cut, all: bool, out: &mut dyn Write) -> io::Result<()> {
    writeln!(out, "{} still remembers what came after. To remove that too:", cut.title)?;
    let most = if all { cut.how.len() } else { 1 };
    for how in cut.how.iter().take(most) {
        for line in wrap(&plain(how), width().saturating_sub(2)) {
            writeln!(out, "  {HINT}{line}{HINT:#}")?;
        }
    }
    Ok(())
}
