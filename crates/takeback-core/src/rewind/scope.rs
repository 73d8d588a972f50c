//! Whose changes a plan takes back, and who else changed something since: the first line of a preview.

use std::collections::BTreeSet;

use takeback_store::{Author, Entry, PathRuns, SessionId};

use super::plan::Aim;
use super::request::RewindScope;
use crate::exchange::imported::is_imported;

/// Whose changes a plan is about.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Coverage {
    /// Whose changes are taken back.
    pub covers: Covered,
    /// Other sessions that changed something since. Their work stays.
    pub others: BTreeSet<SessionId>,
    /// Whether you changed something since, which stays.
    pub yours: bool,
}

/// Whose changes are taken back.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub enum Covered {
    /// Those of these sessions: the ones in scope that changed something, or if none did, all in scope.
    Sessions(BTreeSet<SessionId>),
    /// Some changes of these sessions; what came later stays.
    Chosen(BTreeSet<SessionId>),
    /// Those of every agent.
    AllAgents,
    /// Everyone's, yours too.
    Everyone,
    /// Those of an operation, or of none.
    #[default]
    Operation,
}

/// Of the histories that a plan is made from.
pub(super) fn coverage(aim: &Aim, histories: &[PathRuns]) -> Coverage {
    let scope = match aim {
        Aim::Point { scope, .. } => scope,
        Aim::WithoutChanges { chosen } => {
            let runs = histories.iter().flat_map(|history| &history.runs);
            let asked = runs.filter(|run| chosen.includes(run.seqs[0], &run.author));
            let own = asked.flat_map(|run| run.author.sessions()).cloned().collect();
            return Coverage { covers: Covered::Chosen(own), ..Coverage::default() };
        }
        Aim::Exact { .. } => return Coverage { covers: Covered::Everyone, ..Coverage::default() },
        Aim::Without { .. } | Aim::Incoming { .. } => return Coverage::default(),
    };
    let mut own = BTreeSet::new();
    let mut others = BTreeSet::new();
    let mut yours = false;
    for run in histories.iter().flat_map(|history| &history.runs) {
        if run.before == Entry::Unknown || is_imported(&run.author) {
            continue;
        }
        yours |= run.author == Author::Human;
        for session in run.author.sessions() {
            let of = match scope {
                RewindScope::AllAgents => &mut own,
                RewindScope::Sessions(chosen) if chosen.contains(session) => &mut own,
                RewindScope::Sessions(_) => &mut others,
            };
            if !of.contains(session) {
                of.insert(session.clone());
            }
        }
    }
    let covers = match scope {
        RewindScope::AllAgents => Covered::AllAgents,
        RewindScope::Sessions(chosen) if own.is_empty() => Covered::Sessions(chosen.clone()),
        RewindScope::Sessions(_) => Covered::Sessions(own),
    };
    Coverage { covers, others, yours }
}
