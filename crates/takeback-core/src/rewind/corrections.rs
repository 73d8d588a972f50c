//! Authors that the user corrects with a rewind: `--take` and `--mine`.

use takeback_store::{
    Author, CallId, ChangeRun, Correction, Entry, Evidence, PathRuns, PointQuery, RewindKind, Seq,
    SessionId, Store, StoreError, TurnId, Write,
};

use super::error::RewindError;
use super::journal::commit;
use super::path_filter::PathFilter;
use super::request::RewindRequest;

/// Sets the authors of changes at the named paths as the request says. Returns the corrections to
/// record.
///
/// `session` gets the changes that the user attributes to an agent where the log names none.
pub(super) fn correct(
    histories: &mut [PathRuns],
    request: &RewindRequest,
    session: Option<&SessionId>,
) -> Result<Vec<(Seq, Correction)>, RewindError> {
    let mut corrections = Vec::new();
    for (patterns, is_mine) in [(&request.take, false), (&request.mine, true)] {
        for pattern in patterns {
            let filter = PathFilter::new(std::slice::from_ref(pattern))?;
            let named = histories.iter_mut().filter(|history| filter.includes(&history.path));
            let mut is_known = false;
            for history in named {
                is_known = true;
                for run in &mut history.runs {
                    let correction = if is_mine {
                        is_an_agents(run).then_some(Correction::Mine)
                    } else {
                        agents(run, session)
                    };
                    if let Some(correction) = correction {
                        apply(run, &correction);
                        let seqs = run.seqs.iter();
                        corrections.extend(seqs.map(|seq| (*seq, correction.clone())));
                    }
                }
            }
            if !is_known {
                return Err(RewindError::NotChanged { pattern: pattern.clone() });
            }
        }
    }
    Ok(corrections)
}

fn is_an_agents(run: &ChangeRun) -> bool {
    matches!(run.author, Author::Agent { .. } | Author::Ambiguous { .. })
}

/// The session that made a change, if the user says that an agent did.
fn agents(run: &ChangeRun, session: Option<&SessionId>) -> Option<Correction> {
    let is_open = run.evidence == Evidence::OpenWindow;
    let session = match &run.author {
        Author::Agent { session, .. } if is_open => session,
        Author::Ambiguous { sessions } => {
            session.filter(|one| sessions.contains(one)).or(sessions.first())?
        }
        // A path that was only seen for the first time was not changed.
        Author::Human if run.before != Entry::Unknown => session?,
        _ => return None,
    };
    Some(Correction::Agent { session: session.clone() })
}

fn apply(run: &mut ChangeRun, correction: &Correction) {
    run.inferred.clear();
    run.evidence = Evidence::Named;
    run.author = match correction {
        Correction::Mine => Author::Human,
        Correction::Agent { session } => Author::Agent {
            session: session.clone(),
            turn: TurnId(0),
            call: CallId(String::new()),
            tool: String::new(),
        },
    };
}

/// The session that gets changes which the log attributes to none: the point's, or the last that began.
pub(super) fn session_to_correct(
    store: &dyn Store,
    kind: RewindKind,
) -> Result<Option<SessionId>, StoreError> {
    let Some(point) = kind.point() else { return Ok(None) };
    let point = store.find_points(PointQuery::Id(point))?.pop();
    match point.and_then(|point| point.session) {
        Some(session) => Ok(Some(session)),
        None => Ok(store.sessions()?.pop().map(|session| session.id)),
    }
}

pub(super) fn writes(corrections: &[(Seq, Correction)]) -> impl Iterator<Item = Write> {
    corrections.iter().map(|(change, correction)| Write::Correct {
        change: *change,
        correction: correction.clone(),
    })
}

/// Records corrections of a rewind that changes nothing else.
pub(super) fn remember(
    store: &mut dyn Store,
    corrections: &[(Seq, Correction)],
) -> Result<(), StoreError> {
    if corrections.is_empty() {
        return Ok(());
    }
    commit(store, |_| writes(corrections).collect())
}
