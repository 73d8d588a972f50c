//! `revert`: takes back one turn, one call or a range, and keeps what came later.

use takeback_core::Workspace;
use takeback_core::rewind::{ChosenChanges, RewindRequest, RewindScope, Target};
use takeback_store::{Call, CallId, CallKind, SessionId, Store as LogStore, Timestamp};

use super::rewind::{TitledRequest, called, from_root, known_sessions, run_request};
use super::show::details;
use crate::actions::{RevertQuery, RevertTarget};
use crate::args::{Options, RevertArgs};
use crate::error::{CommandError, Kind};
use crate::place::{self, Store};
use crate::point::find_in;
use crate::questions::point_of;
use crate::screen::{Screen, plain, shorten};

pub(crate) fn revert(
    options: &Options,
    args: &RevertArgs,
    screen: &mut Screen,
) -> Result<u8, CommandError> {
    let mut place = place::open_recovered(options, Store::MustExist)?;
    let titled = request(&mut place.workspace, options, args)?;
    run_request(&mut place.workspace, options, titled, &args.doing, screen)
}

/// The request, with what the preview and the log call it.
pub(crate) fn request(
    workspace: &mut Workspace,
    options: &Options,
    args: &RevertArgs,
) -> Result<TitledRequest, CommandError> {
    // What an open turn wrote last is taken back too.
    takeback_core::look_around(workspace)?;
    let what = find(workspace, args)?;
    let is_range = matches!(what, RevertTarget::Range { .. });
    if !is_range && (args.all_agents || !args.session.is_empty()) {
        let text = "a turn or a call has one session: --session and --all-agents are for ranges";
        return Err(CommandError::new(Kind::Usage, text).hint("Write A..B, or leave them out."));
    }
    let query = RevertQuery {
        what,
        paths: from_root(workspace, options, &args.paths)?,
        ambiguous: args.ambiguous.into(),
        conflicts: args.conflicts.into(),
    };
    request_for(workspace, &query)
}

/// [`request`] for changes that are named by their ids.
pub(crate) fn request_for(
    workspace: &Workspace,
    query: &RevertQuery,
) -> Result<TitledRequest, CommandError> {
    let Named { chosen, title } = chosen(workspace, &query.what)?;
    let mut request = RewindRequest::new(Target::Changes(chosen));
    request.paths.clone_from(&query.paths);
    request.ambiguous = query.ambiguous;
    request.conflicts = query.conflicts;
    request.title = Some(format!("revert of {title}"));
    Ok(TitledRequest { title: format!("Revert {title}"), request })
}

/// What is to be taken back.
struct Named {
    chosen: ChosenChanges,
    title: String,
}

fn chosen(workspace: &Workspace, what: &RevertTarget) -> Result<Named, CommandError> {
    let store = &*workspace.store;
    match what {
        RevertTarget::Turn(point) => {
            let point = point_of(workspace, *point)?;
            let chosen = ChosenChanges::of_turn(store, &point)?;
            Ok(Named { chosen, title: called(&point) })
        }
        RevertTarget::Call { session, call } => {
            let named = || format!("there is no call {} in {}", plain(&call.0), plain(&session.0));
            let found = store.call(session, call)?;
            of_call(store, &found.ok_or_else(|| CommandError::new(Kind::Error, named()))?)
        }
        RevertTarget::Range { from, to, scope } => {
            let from = point_of(workspace, *from)?;
            let to = to.map(|to| point_of(workspace, to)).transpose()?;
            if to.as_ref().is_some_and(|to| to.seq < from.seq) {
                return Err(CommandError::new(Kind::Usage, "the range ends before it begins")
                    .hint("Write the older point first: @~5..@~2."));
            }
            let chosen = ChosenChanges::of_range(store, &from, to.as_ref(), scope.clone())?;
            let end = to.as_ref().map_or_else(|| "now".to_owned(), called);
            Ok(Named { chosen, title: format!("{} to {end}", called(&from)) })
        }
    }
}

/// What the words name.
fn find(workspace: &Workspace, args: &RevertArgs) -> Result<RevertTarget, CommandError> {
    let store = &*workspace.store;
    let name = args.what.as_str();
    let of_point = match find_in(store, name) {
        Ok(point) => return Ok(RevertTarget::Turn(point.id)),
        Err(error) => error,
    };
    if let Some((from, to)) = name.split_once("..") {
        let from = find_in(store, from)?.id;
        let to = if to.is_empty() { None } else { Some(find_in(store, to)?.id) };
        let scope = match (args.all_agents, args.session.is_empty()) {
            (true, _) => Some(RewindScope::AllAgents),
            (false, false) => {
                Some(RewindScope::Sessions(known_sessions(workspace, &args.session)?))
            }
            (false, true) => None,
        };
        return Ok(RevertTarget::Range { from, to, scope });
    }
    if let Some((point, number)) = name.rsplit_once('.')
        && let Ok(number) = number.parse::<usize>()
        && let Ok(details) = details(workspace, point)
    {
        let call = details.answer.calls.iter().find(|call| call.number == Some(number));
        let call = call.ok_or_else(|| no_call(name, point))?;
        let session = SessionId::from(call.session.as_str());
        return Ok(RevertTarget::Call { session, call: CallId(call.id.clone()) });
    }
    match calls_called(store, name)?.as_slice() {
        [] => Err(of_point.hint("A call is POINT.N: `takeback show POINT` numbers the calls.")),
        [Call { session, id, .. }] => {
            Ok(RevertTarget::Call { session: session.clone(), call: id.clone() })
        }
        [..] => Err(CommandError::new(
            Kind::Error,
            format!("more than one call is called {}", plain(name)),
        )
        .hint("Write POINT.N: `takeback show POINT` numbers the calls.")),
    }
}

fn of_call(store: &dyn LogStore, call: &Call) -> Result<Named, CommandError> {
    let what = match &call.kind {
        CallKind::Shell { command: Some(command), .. } => {
            format!("{} `{}`", plain(&call.tool), shorten(&plain(command), 50))
        }
        _ => plain(&call.tool),
    };
    let title = format!("the call {what}");
    match ChosenChanges::of_call(store, call)? {
        Some(chosen) => Ok(Named { chosen, title }),
        None => Err(CommandError::new(Kind::Nothing, format!("{title} changed nothing"))),
    }
}

fn no_call(name: &str, point: &str) -> CommandError {
    CommandError::new(Kind::Error, format!("there is no call {}", plain(name)))
        .hint(format!("`takeback show {}` numbers the calls.", plain(point)))
}

/// The calls with this id, or whose id begins like this if it is long enough to be meant.
fn calls_called(store: &dyn LogStore, name: &str) -> Result<Vec<Call>, CommandError> {
    let mut calls = store.calls_since(Timestamp(0))?;
    if calls.iter().any(|call| call.id.0 == name) {
        calls.retain(|call| call.id.0 == name);
    } else {
        calls.retain(|call| name.len() >= 4 && call.id.0.starts_with(name));
    }
    Ok(calls)
}
