//! `checkpoint:list`, `checkpoint:rewind`, `checkpoint:cleanup`: files by session and message, in the terms
//! of the file checkpoint service that other programs use.

use base64::Engine as _;
use base64::engine::general_purpose::STANDARD;
use takeback_core::history::{FileCheckpoint, file_checkpoints};
use takeback_core::retention::Clock;
use takeback_core::rewind::{RewindRequest, Target};
use takeback_ipc::{Fault, NamedParams, Outcome, Outlet};
use takeback_store::{Entry, NotCapturedReason, Point, PointKind, SessionId, StoreError};

use super::client::{Client, result};
use super::fault::{self, MOST_BYTES, fault};
use super::points::conflicts;
use crate::answers;
use crate::args::ApplyArgs;
use crate::commands::cleanup::clean_up_now;
use crate::commands::rewind::run_unattended;
use crate::error::CommandError;
use crate::place::Store;

pub(super) fn list(client: &mut Client, params: &NamedParams, _: &Outlet) -> Outcome {
    let session = SessionId(params.required("sessionId")?);
    let contents = params.optional("contents")?.unwrap_or(true);
    let at = client.at(params, Store::MustExist)?;
    let store = &*at.handle.place.workspace.store;
    let listed = file_checkpoints(store, &session).map_err(CommandError::from)?;
    let bytes: u64 = listed.iter().map(|one| size_of(&one.original)).sum();
    if contents && bytes > MOST_BYTES as u64 {
        let why = format!("the contents have {bytes} bytes; an answer has at most {MOST_BYTES}");
        return Err(fault(fault::ANSWER_TOO_LARGE, why)
            .with("limit", MOST_BYTES)
            .with("hint", "Set contents to false to leave them out."));
    }
    let points = store.points().map_err(CommandError::from)?;
    let each = listed.iter().map(|one| {
        let content = if contents { content_of(store, &one.original)? } else { None };
        Ok(answer(one, content, &points))
    });
    result(&each.collect::<Result<Vec<_>, StoreError>>().map_err(CommandError::from)?)
}

fn size_of(entry: &Entry) -> u64 {
    match entry {
        Entry::File { size, .. } => *size,
        _ => 0,
    }
}

fn content_of(
    store: &dyn takeback_store::Store,
    entry: &Entry,
) -> Result<Option<Vec<u8>>, StoreError> {
    Ok(match entry {
        Entry::File { digest, .. } => Some(store.contents(digest)?),
        Entry::Symlink { target } => Some(target.clone()),
        _ => None,
    })
}

fn answer(
    one: &FileCheckpoint,
    content: Option<Vec<u8>>,
    points: &[Point],
) -> answers::FileCheckpoint {
    let (text, bytes) = match content.map(String::from_utf8) {
        None => (None, None),
        Some(Ok(text)) => (Some(text), None),
        Some(Err(bytes)) => (None, Some(STANDARD.encode(bytes.as_bytes()))),
    };
    let before = points.iter().rev().filter(|point| point.created_at <= one.time);
    let made_for = before
        .filter(|point| point.kind == PointKind::Prompt)
        .find(|point| point.session.as_ref() == Some(&one.session));
    let of_point = || made_for.map(|point| point.id.to_string()).unwrap_or_default();
    answers::FileCheckpoint {
        id: answers::Id::new(one.id),
        session_id: one.session.0.clone(),
        message_id: one.message.clone().unwrap_or_else(of_point),
        path: answers::path(&one.path),
        original_content: text,
        original_content_base64: bytes,
        file_existed: one.original != Entry::Absent,
        created_at: one.time.0,
        not_captured: match &one.original {
            Entry::NotCaptured { reason } => Some(NotCapturedReason::describe(*reason).to_owned()),
            Entry::Unknown => Some("not read before".to_owned()),
            _ => None,
        },
    }
}

pub(super) fn rewind(client: &mut Client, params: &NamedParams, _: &Outlet) -> Outcome {
    let session = SessionId(params.required("sessionId")?);
    let message: String = params.required("messageId")?;
    let at = client.mended(params, Store::MustExist)?;
    let workspace = &mut at.handle.place.workspace;
    let points = workspace.store.points().map_err(CommandError::from)?;
    let point = of_message(&points, &session, &message)?;
    let mut request = RewindRequest::new(Target::Point(point.id));
    request.conflicts = conflicts(params)?.into();
    let (receipt, _) = run_unattended(workspace, &at.options, request, &ApplyArgs::default())?;
    result(&receipt)
}

/// The point before a message of a session, by the message's id or the point's.
fn of_message<'a>(
    points: &'a [Point],
    session: &SessionId,
    message: &str,
) -> Result<&'a Point, Fault> {
    let own = || points.iter().filter(|point| point.session.as_ref() == Some(session));
    own()
        .find(|point| point.message_ids.iter().any(|id| id == message))
        .or_else(|| own().find(|point| point.id.to_string() == message))
        .ok_or_else(|| {
            let why = format!("session {session} has no point for message {message}");
            fault(fault::UNKNOWN_POINT, why)
        })
}

pub(super) fn cleanup(client: &mut Client, params: &NamedParams, _: &Outlet) -> Outcome {
    let clock = if params.or_default("trustClock")? { Clock::Trusted } else { Clock::Doubted };
    let at = client.mended(params, Store::MustExist)?;
    let done = clean_up_now(&mut at.handle.place, &at.options, clock)?;
    result(&done.points)
}
