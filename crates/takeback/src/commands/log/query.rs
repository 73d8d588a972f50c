//! What the arguments of `log` ask for.

use takeback_core::history::{AuthorFilter, LogFilter, LogQuery, LogRows};
use takeback_core::rewind::PathFilter;
use takeback_core::{Workspace, git_state};
use takeback_store::{PointFilter, Session, SessionId, Timestamp, WorkPath};

use crate::args::{LogArgs, Options};
use crate::commands::rewind::from_root;
use crate::commands::sessions::{SessionNameError, find_session};
use crate::error::{CommandError, Kind};
use crate::screen::plain;
use crate::time::{now, parse_moment};

pub(crate) fn query(
    workspace: &Workspace,
    options: &Options,
    args: &LogArgs,
) -> Result<LogQuery, CommandError> {
    let session = args.session.as_ref().map(|name| session(workspace, name)).transpose()?;
    let patterns = from_root(workspace, options, &args.paths)?;
    let is_everything = patterns.iter().any(|pattern| pattern == "**");
    let paths = (!patterns.is_empty() && !is_everything).then(|| PathFilter::new(&patterns));
    let below = match patterns.as_slice() {
        [pattern] if !is_everything => WorkPath::new(pattern.trim_end_matches('/')).ok(),
        _ => None,
    };
    let time = |text: &Option<String>| text.as_deref().map(moment).transpose();
    Ok(LogQuery {
        limit: args.limit,
        rows: if args.ops { LogRows::Operations } else { LogRows::Both },
        points: kinds(args),
        session,
        git_now: git_state(workspace.root.path()),
        filter: LogFilter {
            paths: paths.transpose()?,
            below: below.filter(|_| !patterns[0].contains(GLOB)),
            by: args.by.as_deref().map(|name| author(workspace, name)).transpose()?,
            since: time(&args.since)?,
            until: time(&args.until)?,
            grep: args.grep.clone(),
            text: args.text.as_ref().map(|text| text.as_bytes().to_vec()),
            tool: args.tool.clone(),
        },
    })
}

/// Characters with a meaning in globs.
const GLOB: [char; 6] = ['*', '?', '[', ']', '{', '\\'];

/// Which kinds of points are listed.
pub(super) fn kinds(args: &LogArgs) -> PointFilter {
    if args.all { PointFilter::All } else { PointFilter::WithoutSafety }
}

/// The session that `--session` names.
fn session(workspace: &Workspace, name: &str) -> Result<SessionId, CommandError> {
    let found = find_session(workspace, name);
    let is_agent = |session: &Session| session.agent.as_deref() == Some(name);
    match found {
        Err(error) if workspace.store.sessions()?.iter().any(is_agent) => {
            let name = plain(name);
            Err(error.hint(format!("{name} is an agent: `--by {name}` lists what it changed.")))
        }
        found => found,
    }
}

/// An author by name: `you`, `agent`, an agent's name, or a session.
pub(crate) fn author(workspace: &Workspace, name: &str) -> Result<AuthorFilter, CommandError> {
    match name {
        "you" | "me" => return Ok(AuthorFilter::You),
        "agent" | "agents" => return Ok(AuthorFilter::Sessions(Vec::new())),
        _ => {}
    }
    let sessions = workspace.store.sessions()?;
    let of_agent: Vec<SessionId> = sessions
        .into_iter()
        .filter(|session| session.agent.as_deref() == Some(name))
        .map(|session| session.id)
        .collect();
    if !of_agent.is_empty() {
        return Ok(AuthorFilter::Sessions(of_agent));
    }
    match find_session(workspace, name) {
        Ok(session) => Ok(AuthorFilter::Sessions(vec![session])),
        Err(error)
            if matches!(error.source.downcast_ref(), Some(SessionNameError::NotFound { .. })) =>
        {
            let unknown = SessionNameError::NoAuthor { name: name.to_owned() };
            let hints = error.hints.into_iter();
            let own = "--by takes you (all edits that no agent made), agent, an agent's name, or a session.";
            let error = CommandError::new(error.kind, unknown).hint(own);
            Err(hints.fold(error, CommandError::hint))
        }
        Err(error) => Err(error),
    }
}

/// A time that the user wrote.
pub(crate) fn moment(text: &str) -> Result<Timestamp, CommandError> {
    parse_moment(text, now()).ok_or_else(|| {
        CommandError::new(Kind::Usage, format!("{text} is not a time")).hint(
            "Write how long ago (10m, 2h, 3d), a time of day (14:00), or a date (2026-11-19).",
        )
    })
}
