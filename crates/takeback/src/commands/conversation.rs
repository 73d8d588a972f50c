//! After a rewind: how to have the agent forget, too.

use std::io::{self, Write};

use takeback_agents::{Cut, PointPrompt, agent_named};
use takeback_core::Workspace;
use takeback_core::exchange::name_there;
use takeback_core::rewind::{RewindRequest, Target};
use takeback_store::StoreError;

use crate::installed_agents;
use crate::screen::{HINT, plain, width, wrap};

/// How the conversation that a rewind's point belongs to is cut there. `None` also where only some
/// paths went back: the agent need not forget the rest.
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
        session: name_there(&session.id).unwrap_or(&session.id.0),
        message_ids: &point.message_ids,
        text: &point.description,
    };
    // The files are restored; a conversation that cannot be read is no reason to report failure.
    Ok(cut(&agent.home.path(&homes), prompt).unwrap_or_default())
}

/// One way, or all.
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
