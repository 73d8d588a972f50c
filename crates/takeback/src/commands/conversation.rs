//! After a rewind: how to have the agent forget, too.

use std::io::{self, Write};
use std::path::PathBuf;

use takeback_agents::cut::{AgentHomes, AskedFor, Cut, cut};
use takeback_core::Workspace;
use takeback_core::exchange::name_there;
use takeback_core::rewind::{RewindRequest, Target};
use takeback_store::StoreError;

use crate::place;
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
    let (Some(session), Some(homes)) = (session, homes()) else { return Ok(None) };
    let Some(agent) = &session.agent else { return Ok(None) };
    let asked = AskedFor {
        agent,
        session: name_there(&session.id).unwrap_or(&session.id.0),
        message_ids: &point.message_ids,
        text: &point.description,
    };
    // The files are back; a conversation that cannot be read is no reason to say otherwise.
    Ok(cut(&homes, asked).unwrap_or_default())
}

/// Where the agents keep their conversations for this user.
fn homes() -> Option<AgentHomes> {
    let named = |name: &str, folder: &str| {
        let own = place::environment(name).map(PathBuf::from);
        own.or_else(|| Some(place::user_home()?.join(folder)))
    };
    Some(AgentHomes {
        claude: named("CLAUDE_CONFIG_DIR", ".claude")?,
        codex: named("CODEX_HOME", ".codex")?,
    })
}

/// One way, or all.
pub(crate) fn say(cut: &Cut, all: bool, out: &mut dyn Write) -> io::Result<()> {
    writeln!(out, "{} still remembers what came after. To cut that too:", cut.title())?;
    let most = if all { cut.how.len() } else { 1 };
    for how in cut.how.iter().take(most) {
        for line in wrap(&plain(how), width().saturating_sub(2)) {
            writeln!(out, "  {HINT}{line}{HINT:#}")?;
        }
    }
    Ok(())
}
