//! Which moment a request restores, and which authors' changes it takes back. Pure: the request and
//! records of the log in, a [`Selection`] out.

use std::collections::BTreeSet;

use takeback_store::{PointId, RewindId, RewindKind, Seq, Session, SessionId};

use super::error::RewindError;
use super::plan::Aim;
use super::request::{Exactness, RewindRequest, RewindScope, Target};
use crate::exchange::imported::import_of;

/// Where a rewind goes.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) struct Selection {
    pub(super) aim: Aim,
    pub(super) kind: RewindKind,
    /// Changes after this moment are looked at.
    pub(super) at: Seq,
}

/// What a target depends on. Only what the request's own target needs has to be filled in.
#[derive(Debug, Default)]
pub(super) struct TargetRecords {
    pub(super) point: Option<PastPoint>,
    pub(super) sessions: Vec<Session>,
    /// Those that changed something, oldest first.
    pub(super) rewinds: Vec<PastRewind>,
    /// The newest rewind at the time when a later one found nothing to do.
    pub(super) idle_after: Option<RewindId>,
}

/// A position in the log, and the session it belongs to.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) struct PastPoint {
    pub(super) seq: Seq,
    /// `None`: a manual point.
    pub(super) session: Option<SessionId>,
}

/// What undo and redo need to know about a rewind.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) struct PastRewind {
    pub(super) id: RewindId,
    pub(super) kind: RewindKind,
    pub(super) began_at: Seq,
    pub(super) safety_point: PointId,
    pub(super) contents: PastContents,
    /// Something went wrong with a file. Files that were left on purpose are no failure.
    pub(super) has_failed: bool,
    /// An undo that only reverts what was done of a rewind that had to be all or nothing.
    pub(super) is_revert: bool,
}

/// Whether a rewind's plan is still in the store.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum PastContents {
    Kept,
    /// Deleted together with a session.
    Erased,
}

/// Selects where a request goes.
pub(super) fn select(
    request: &RewindRequest,
    records: &TargetRecords,
) -> Result<Selection, RewindError> {
    let selection = match &request.target {
        Target::State(_) => return Err(RewindError::NoState),
        Target::Changes(chosen) => {
            let kind = RewindKind::Revert { point: chosen.point };
            let aim = Aim::WithoutChanges { chosen: chosen.clone() };
            return Ok(Selection { aim, kind, at: chosen.stretch.0 });
        }
        Target::Incoming(incoming) => {
            let aim = Aim::Incoming { settles: incoming.settles };
            return Ok(Selection { aim, kind: incoming.kind, at: Seq(u64::MAX) });
        }
        Target::Restore(id) => {
            let point = records.point.as_ref().ok_or(RewindError::NoPoint(*id))?;
            let kind = RewindKind::Restore { point: *id };
            return Ok(Selection { aim: Aim::Exact { at: point.seq }, kind, at: point.seq });
        }
        Target::Operation(id) => {
            let of = records.rewinds.iter().find(|past| past.id == *id);
            let of = of.ok_or(RewindError::NoOperation(*id))?;
            if of.contents == PastContents::Erased {
                return Err(RewindError::SessionDeleted);
            }
            if is_taken_back(&records.rewinds, of.id) {
                return Err(RewindError::TakenBack(of.id));
            }
            let kind = match of.kind.is_undoable() {
                true => RewindKind::Undo { of: of.id },
                false => RewindKind::Redo { of: of.id },
            };
            Selection { aim: Aim::Without { rewind: of.id }, kind, at: of.began_at }
        }
        Target::Point(id) => {
            let point = records.point.as_ref().ok_or(RewindError::NoPoint(*id))?;
            let scope = scope_at(point, request.scope.as_ref(), &records.sessions);
            let aim = Aim::Point { at: point.seq, scope };
            Selection { aim, kind: RewindKind::Rewind { point: *id }, at: point.seq }
        }
        Target::Undo => {
            let of = present(undoable(&records.rewinds), records, RewindError::NothingToUndo)?;
            if records.idle_after == Some(of.id) {
                return Err(RewindError::RewoundNothing);
            }
            let aim = Aim::Without { rewind: of.id };
            Selection { aim, kind: RewindKind::Undo { of: of.id }, at: of.began_at }
        }
        Target::Redo => {
            let of = present(redoable(&records.rewinds), records, RewindError::NothingToRedo)?;
            let aim = Aim::Without { rewind: of.id };
            Selection { aim, kind: RewindKind::Redo { of: of.id }, at: of.began_at }
        }
    };
    Ok(match request.exactness {
        Exactness::AgentsOnly => selection,
        Exactness::Exact => Selection { aim: Aim::Exact { at: selection.at }, ..selection },
    })
}

/// The newest operation that is no undo or redo, and is not taken back.
pub(super) fn undoable(rewinds: &[PastRewind]) -> Option<&PastRewind> {
    rewinds.iter().rev().find(|past| past.kind.is_undoable() && !is_taken_back(rewinds, past.id))
}

/// The newest undo that is not taken back and that no rewind follows.
fn redoable(rewinds: &[PastRewind]) -> Option<&PastRewind> {
    let standing = undoable(rewinds).map(|past| past.id);
    let mut since = rewinds.iter().rev().take_while(|past| Some(past.id) != standing);
    since.find(|past| {
        // A rewind that was reverted because not all of it could be done is not redone in part.
        matches!(past.kind, RewindKind::Undo { .. })
            && !past.is_revert
            && !is_taken_back(rewinds, past.id)
    })
}

/// Whether an undo or redo of `id` is in effect, itself not taken back. One that failed for some files
/// does not count: it can be repeated.
pub(super) fn is_taken_back(rewinds: &[PastRewind], id: RewindId) -> bool {
    rewinds.iter().any(|past| match past.kind {
        RewindKind::Undo { of } | RewindKind::Redo { of } => {
            of == id && !past.has_failed && !is_taken_back(rewinds, past.id)
        }
        _ => false,
    })
}

/// `found`, if its plan is still there; else why there is nothing.
fn present<'r>(
    found: Option<&'r PastRewind>,
    records: &TargetRecords,
    nothing: RewindError,
) -> Result<&'r PastRewind, RewindError> {
    let is_erased = |past: &PastRewind| past.contents == PastContents::Erased;
    match found {
        Some(past) if !is_erased(past) => Ok(past),
        None if !records.rewinds.iter().any(is_erased) => Err(nothing),
        _ => Err(RewindError::SessionDeleted),
    }
}

fn scope_at(point: &PastPoint, asked: Option<&RewindScope>, sessions: &[Session]) -> RewindScope {
    match (asked, &point.session) {
        (Some(RewindScope::AllAgents), Some(session)) => all_agents(sessions, session),
        (Some(scope), _) => scope.clone(),
        (None, Some(session)) => RewindScope::Sessions(continued_by(sessions, session)),
        (None, None) => RewindScope::AllAgents,
    }
}

/// All agents, as seen from a point of `session`: if it was imported, also those of the same import.
fn all_agents(sessions: &[Session], session: &SessionId) -> RewindScope {
    let Some(import) = import_of(session) else { return RewindScope::AllAgents };
    let here = |id: &&SessionId| import_of(id).is_none_or(|other| other == import);
    RewindScope::Sessions(
        sessions.iter().map(|session| &session.id).filter(here).cloned().collect(),
    )
}

/// A session and all that were resumed or forked from it.
pub(crate) fn continued_by(sessions: &[Session], session: &SessionId) -> BTreeSet<SessionId> {
    let mut chosen = BTreeSet::from([session.clone()]);
    loop {
        let continues = |one: &&Session| {
            one.parent.as_ref().is_some_and(|parent| chosen.contains(parent))
                && !chosen.contains(&one.id)
        };
        let more: Vec<SessionId> =
            sessions.iter().filter(continues).map(|one| one.id.clone()).collect();
        if more.is_empty() {
            return chosen;
        }
        chosen.extend(more);
    }
}

#[cfg(test)]
mod tests {
    use takeback_store::Timestamp;

    use super::*;

    fn past(id: u64, kind: RewindKind) -> PastRewind {
        PastRewind {
            id: RewindId(id),
            kind,
            began_at: Seq(id * 10),
            safety_point: PointId(id * 100),
            contents: PastContents::Kept,
            has_failed: false,
            is_revert: false,
        }
    }

    fn rewind(id: u64) -> PastRewind {
        past(id, RewindKind::Rewind { point: PointId(1) })
    }

    fn undo(id: u64, of: u64) -> PastRewind {
        past(id, RewindKind::Undo { of: RewindId(of) })
    }

    fn redo(id: u64, of: u64) -> PastRewind {
        past(id, RewindKind::Redo { of: RewindId(of) })
    }

    fn failed(past: PastRewind) -> PastRewind {
        PastRewind { has_failed: true, ..past }
    }

    fn erased(past: PastRewind) -> PastRewind {
        PastRewind { contents: PastContents::Erased, ..past }
    }

    fn revert(past: PastRewind) -> PastRewind {
        PastRewind { is_revert: true, ..past }
    }

    /// What an undo and a redo are about, or why there is none.
    fn again(rewinds: &[PastRewind]) -> [String; 2] {
        let records = TargetRecords { rewinds: rewinds.to_vec(), ..TargetRecords::default() };
        [Target::Undo, Target::Redo].map(|target| {
            match select(&RewindRequest::new(target), &records) {
                Ok(Selection { kind: RewindKind::Undo { of }, at, .. })
                | Ok(Selection { kind: RewindKind::Redo { of }, at, .. }) => {
                    assert_eq!(at, Seq(of.0 * 10));
                    of.0.to_string()
                }
                Ok(other) => panic!("{other:?}"),
                Err(RewindError::NothingToUndo | RewindError::NothingToRedo) => "nothing".into(),
                Err(RewindError::SessionDeleted) => "deleted".into(),
                Err(error) => panic!("{error}"),
            }
        })
    }

    #[test]
    fn undo_and_redo_by_history() {
        for (rewinds, expected) in [
            (vec![], ["nothing", "nothing"]),
            (vec![rewind(1)], ["1", "nothing"]),
            (vec![rewind(1), rewind(2)], ["2", "nothing"]),
            (vec![rewind(1), undo(2, 1)], ["nothing", "2"]),
            (vec![rewind(1), undo(2, 1), redo(3, 2)], ["1", "nothing"]),
            (vec![rewind(1), undo(2, 1), redo(3, 2), undo(4, 1)], ["nothing", "4"]),
            (vec![rewind(1), rewind(2), undo(3, 2)], ["1", "3"]),
            (vec![rewind(1), rewind(2), undo(3, 2), undo(4, 1)], ["nothing", "4"]),
            // A rewind after the undo: there is nothing left to redo.
            (vec![rewind(1), undo(2, 1), rewind(3)], ["3", "nothing"]),
            // An undo that failed can be repeated, and be redone as far as it went.
            (vec![rewind(1), failed(undo(2, 1))], ["1", "2"]),
            (vec![rewind(1), revert(undo(2, 1))], ["nothing", "nothing"]),
            (vec![erased(rewind(1))], ["deleted", "deleted"]),
            (vec![rewind(1), erased(rewind(2))], ["deleted", "deleted"]),
            (vec![erased(rewind(1)), rewind(2)], ["2", "deleted"]),
        ] {
            assert_eq!(again(&rewinds), expected, "{rewinds:?}");
        }
    }

    #[test]
    fn an_undo_after_a_rewind_that_changed_nothing_is_not_for_the_one_before_it() {
        let records = TargetRecords {
            rewinds: vec![rewind(1)],
            idle_after: Some(RewindId(1)),
            ..TargetRecords::default()
        };
        let selected = select(&RewindRequest::new(Target::Undo), &records);
        assert!(matches!(selected, Err(RewindError::RewoundNothing)), "{selected:?}");
    }

    fn session(id: &str, parent: Option<&str>) -> Session {
        Session {
            id: SessionId::from(id),
            agent: None,
            parent: parent.map(SessionId::from),
            owner: None,
            started_at: Timestamp(0),
            ended_at: None,
            archived_at: None,
            open_turn: None,
            model: None,
        }
    }

    fn sessions(names: &[&str]) -> RewindScope {
        RewindScope::Sessions(names.iter().map(|name| SessionId::from(*name)).collect())
    }

    #[test]
    fn the_scope_of_a_point() {
        let known = [
            session("s", None),
            session("child", Some("s")),
            session("grandchild", Some("child")),
            session("other", None),
        ];
        for (of, asked, expected) in [
            (Some("s"), None, sessions(&["child", "grandchild", "s"])),
            (Some("child"), None, sessions(&["child", "grandchild"])),
            (Some("s"), Some(RewindScope::AllAgents), RewindScope::AllAgents),
            (Some("s"), Some(sessions(&["other"])), sessions(&["other"])),
            (None, None, RewindScope::AllAgents),
        ] {
            let point = PastPoint { seq: Seq(5), session: of.map(SessionId::from) };
            let request =
                RewindRequest { scope: asked, ..RewindRequest::new(Target::Point(PointId(7))) };
            let records = TargetRecords {
                point: Some(point),
                sessions: known.to_vec(),
                ..TargetRecords::default()
            };
            let selection = select(&request, &records).expect("there is a point");
            assert_eq!(selection.aim, Aim::Point { at: Seq(5), scope: expected });
            let exact = RewindRequest { exactness: Exactness::Exact, ..request };
            let selection = select(&exact, &records).expect("there is a point");
            assert_eq!(selection.aim, Aim::Exact { at: Seq(5) });
        }
    }
}
