//! Which points are kept, decided on the lists of points and rewinds alone. The oracle's log stays
//! complete; a kept point must behave as if nothing had been dropped.

use std::collections::{BTreeMap, BTreeSet};

use takeback_store::PointId;
use takeback_testkit::Thing;

use super::{CallState, ModelAuthor, Oracle, PathState};

impl Oracle {
    /// Keeps the newest `most` points of each session, and of those made by hand. Abandoned calls may
    /// be forgotten: their end is never reported.
    pub(crate) fn clean_up(&mut self, most: usize) {
        for call in self.calls.iter_mut().filter(|call| call.state == CallState::GivenUp) {
            call.state = CallState::Ended;
        }
        let mut newer: BTreeMap<Option<&str>, usize> = BTreeMap::new();
        let mut going = BTreeSet::new();
        for point in self.points.iter().rev() {
            if point.safety_of.is_some() || point.pinned {
                continue;
            }
            let newer = newer.entry(point.session).or_default();
            *newer += 1;
            if *newer > most {
                going.insert(point.id);
            }
        }
        self.drop_points(going);
    }

    pub(crate) fn is_at_work(&self, session: &str) -> bool {
        self.in_turn.contains(session) || self.live_calls().any(|call| call.session == session)
    }

    pub(crate) fn delete_session(&mut self, session: &'static str) {
        let own = self.points.iter().filter(|point| point.session == Some(session));
        self.drop_points(own.map(|point| point.id).collect());
        self.forget_rewinds_of(session);
        for change in &mut self.log {
            match &mut change.author {
                ModelAuthor::Agent(of) if *of == session => change.author = ModelAuthor::Deleted,
                ModelAuthor::Ambiguous(of) => of.retain(|of| *of != session),
                _ => {}
            }
        }
        self.parents.retain(|child, parent| *child != session && *parent != session);
        for call in self.calls.iter_mut().filter(|call| call.session == session) {
            call.state = CallState::Ended;
        }
    }

    /// Forgets the rewinds that took back work of the session (or such a rewind), those whose safety
    /// point alone has a version the session wrote, and every older one.
    fn forget_rewinds_of(&mut self, session: &str) {
        let mut theirs = BTreeSet::new();
        let mut newest = None;
        for (number, change) in (1..).zip(&self.log) {
            match change.author {
                ModelAuthor::Agent(of) if of == session => drop(theirs.insert(number)),
                ModelAuthor::Rewind(rewind)
                    if change.cancels.iter().any(|seq| theirs.contains(seq)) =>
                {
                    theirs.insert(number);
                    newest = newest.max(Some(rewind));
                }
                _ => {}
            }
        }
        let listed = |from: usize, to: usize| {
            let mut listed = self.points.iter().filter(|point| point.safety_of.is_none());
            listed.any(|point| (from..to).contains(&point.at))
        };
        for point in &self.points {
            let Some(rewind) = point.safety_of else { continue };
            let holds = self.log.iter().enumerate().any(|(at, change)| {
                let left = (1..).zip(&self.log).filter(|(_, other)| other.path == change.path);
                let left: Vec<_> = left.collect();
                let is_theirs = |state: &PathState| {
                    matches!(state, PathState::Present(Thing::File { .. } | Thing::Link(_)))
                        && left.iter().any(|(_, other)| {
                            matches!(other.author, ModelAuthor::Agent(of) if of == session)
                                && other.after == *state
                        })
                };
                let next = left.iter().find(|(number, _)| *number > at + 1);
                next.is_some_and(|(next, _)| {
                    (at + 1..*next).contains(&point.at)
                        && is_theirs(&change.after)
                        && !listed(at + 1, *next)
                })
            });
            if holds {
                newest = newest.max(Some(rewind));
            }
        }
        for rewind in newest.map_or(&mut [][..], |newest| &mut self.rewinds[..=newest]) {
            rewind.forgotten = true;
        }
        let rewinds = &self.rewinds;
        self.points.retain(|point| point.safety_of.is_none_or(|rewind| !rewinds[rewind].forgotten));
    }

    /// Also drops the safety points that keep neither neighbour in the list, and their rewinds.
    fn drop_points(&mut self, mut going: BTreeSet<PointId>) {
        let mut forgotten = Vec::new();
        for (at, point) in self.points.iter().enumerate() {
            let Some(rewind) = point.safety_of else { continue };
            let listed = |point: &&super::Point| point.safety_of.is_none();
            let earlier = self.points[..at].iter().rev().find(listed);
            let later = self.points[at..].iter().find(listed);
            let earlier_stays = earlier.is_some_and(|point| !going.contains(&point.id));
            let later_goes = later.is_some_and(|point| going.contains(&point.id));
            if !earlier_stays && later_goes {
                forgotten.push(rewind);
            }
        }
        // Undo goes back in order, so every rewind older than a forgotten one is forgotten too.
        if let Some(newest) = forgotten.into_iter().max() {
            for rewind in &mut self.rewinds[..=newest] {
                rewind.forgotten = true;
            }
        }
        for point in &self.points {
            if point.safety_of.is_some_and(|rewind| self.rewinds[rewind].forgotten) {
                going.insert(point.id);
            }
        }
        self.points.retain(|point| !going.contains(&point.id));
    }

    /// Forgets paths that are known to be absent and are no longer in the store.
    pub(crate) fn forget_absent(&mut self, still_known: &BTreeSet<String>) {
        self.known_absent.retain(|path| still_known.contains(path));
        let length = self.log.len();
        let gone = self.log.iter().map(|change| &change.path);
        let gone = gone.filter(|path| !still_known.contains(*path));
        self.forgotten.extend(gone.map(|path| (path.clone(), length)));
    }

    /// The state of every path when the log had this length, as far as the log knows.
    pub(crate) fn state_at(&self, length: usize) -> BTreeMap<String, PathState> {
        let mut state = BTreeMap::new();
        for change in &self.log[..length] {
            state.insert(change.path.clone(), change.after.clone());
        }
        let paths: BTreeSet<&String> = self.log.iter().map(|change| &change.path).collect();
        for path in paths {
            if let Some(first) = self.since(path, length).first() {
                state.insert(path.clone(), self.change(*first).before.clone());
            }
        }
        state
    }
}
