//! What the person says of authors with a rewind: `--take` and `--mine`.

use takeback_store::{
    Author, CallId, Correction, Entry, Evidence, PathStretches, Seq, SessionId, Store, StoreError,
    Stretch, TurnId, Write,
};

use super::journal::{RewindError, RewindRequest};
use super::path_filter::PathFilter;

/// Gives the changes at the named paths the authors that the request says they have. Answers the
/// corrections to remember.
///
/// `session`: whose changes become those that the person says are an agent's, where the log names none.
pub(super) fn correct(
    histories: &mut [PathStretches],
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
                for stretch in &mut history.stretches {
                    let correction = if is_mine {
                        is_an_agents(stretch).then_some(Correction::Mine)
                    } else {
                        agents(stretch, session)
                    };
                    if let Some(correction) = correction {
                        apply(stretch, &correction);
                        let seqs = stretch.seqs.iter();
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

fn is_an_agents(stretch: &Stretch) -> bool {
    matches!(stretch.author, Author::Agent { .. } | Author::Ambiguous { .. })
}

/// The session that made a change, if the person says that one did.
fn agents(stretch: &Stretch, session: Option<&SessionId>) -> Option<Correction> {
    let is_open = stretch.evidence == Evidence::OpenWindow;
    let session = match &stretch.author {
        Author::Agent { session, .. } if is_open => session,
        Author::Ambiguous { sessions } => {
            session.filter(|one| sessions.contains(one)).or(sessions.first())?
        }
        // That it came into sight is no change.
        Author::Human if stretch.before != Entry::Unknown => session?,
        _ => return None,
    };
    Some(Correction::Agent { session: session.clone() })
}

fn apply(stretch: &mut Stretch, correction: &Correction) {
    stretch.unnamed.clear();
    stretch.evidence = Evidence::Named;
    stretch.author = match correction {
        Correction::Mine => Author::Human,
        Correction::Agent { session } => Author::Agent {
            session: session.clone(),
            turn: TurnId(0),
            call: CallId(String::new()),
            tool: String::new(),
        },
    };
}

/// As they go into the log.
pub(super) fn writes(corrections: &[(Seq, Correction)]) -> impl Iterator<Item = Write> {
    corrections.iter().map(|(change, correction)| Write::Correct {
        change: *change,
        correction: correction.clone(),
    })
}

/// Remembers what was said where nothing else is to be done.
pub(super) fn remember(
    store: &mut dyn Store,
    corrections: &[(Seq, Correction)],
) -> Result<(), StoreError> {
    if corrections.is_empty() {
        return Ok(());
    }
    let writes: Vec<Write> = writes(corrections).collect();
    loop {
        let head = store.head()?;
        match store.commit(head, &writes) {
            Err(StoreError::Moved) => {}
            done => return done.map(drop),
        }
    }
}
