//! After a rewind: how to make the agent forget what came after the point. After a fork: how its conversation
//! continues there.

use std::io::{self, Write};

use takeback_agents::{
    AgentKind, ConversationCopy, CopyExtent, Cut, Homes, PointPrompt, agent_named,
};
use takeback_core::Workspace;
use takeback_core::exchange::original_name;
use takeback_core::rewind::{RewindRequest, Target};
use takeback_store::{Point, PointKind, SessionId, StoreError};

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
    let Some(session) = &point.session else { return Ok(None) };
    let Some((agent, homes)) = agent_of(workspace, session)? else { return Ok(None) };
    let Some(cut) = agent.cut else { return Ok(None) };
    let prompt = prompt_of(&point, session);
    // The files are restored; an unreadable conversation must not turn that into a failure.
    Ok(cut(&agent.home.path(&homes), prompt).unwrap_or_default())
}

/// How the conversation at a point continues in a fork: up to the prompt of the point, or the newest one as a
/// whole if the point has just been made by hand.
pub(crate) fn copy_at(
    workspace: &Workspace,
    point: &Point,
) -> Result<Option<ConversationCopy>, StoreError> {
    let newest;
    let (session, is_whole) = match (point.kind, &point.session) {
        (PointKind::Prompt, Some(session)) => (session, false),
        (PointKind::Manual, None) if workspace.store.head()?.seq == point.seq => {
            let points = workspace.store.points()?;
            newest = points.into_iter().rev().find(|point| point.kind == PointKind::Prompt);
            let session = newest.as_ref().and_then(|point| point.session.as_ref());
            let Some(session) = session else { return Ok(None) };
            (session, true)
        }
        _ => return Ok(None),
    };
    let Some((agent, homes)) = agent_of(workspace, session)? else { return Ok(None) };
    let Some(copy) = agent.copy else { return Ok(None) };
    let prompt = prompt_of(point, session);
    let extent =
        if is_whole { CopyExtent::Whole(prompt.session) } else { CopyExtent::Before(prompt) };
    // The forks are made; an unreadable conversation must not turn that into a failure.
    Ok(copy(&agent.home.path(&homes), extent).unwrap_or_default())
}

/// The agent of a session, if it is a supported one.
fn agent_of(
    workspace: &Workspace,
    session: &SessionId,
) -> Result<Option<(&'static AgentKind, Homes)>, StoreError> {
    let sessions = workspace.store.sessions()?;
    let found = sessions.into_iter().find(|found| found.id == *session);
    let agent = found.and_then(|found| agent_named(found.agent.as_deref()?));
    Ok(agent.zip(installed_agents::homes().ok()))
}

fn prompt_of<'a>(point: &'a Point, session: &'a SessionId) -> PointPrompt<'a> {
    PointPrompt {
        session: original_name(session).unwrap_or(&session.0),
        message_ids: &point.message_ids,
        text: &point.description,
    }
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
