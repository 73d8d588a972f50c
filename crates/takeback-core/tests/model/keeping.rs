//! What is kept: decided on the lists of points and rewinds alone. The log stays whole here; a kept
//! point must behave as if nothing had gone.

use std::collections::{BTreeMap, BTreeSet};

use takeback_store::PointId;
use takeback_testkit::Thing;

use super::{CallState, Oracle, Seen, Who};

impl Oracle {
    /// The newest `most` of each session's points stay, of those made by hand as well. Calls that were
    /// given up may be forgotten: nobody is to tell their end any more.
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
            match &mut change.who {
                Who::Agent(who) if *who == session => change.who = Who::Deleted,
                Who::Perhaps(who) => who.retain(|who| *who != session),
                _ => {}
            }
        }
        self.parents.retain(|child, parent| *child != session && *parent != session);
        for call in self.calls.iter_mut().filter(|call| call.session == session) {
            call.state = CallState::Ended;
        }
    }

    /// The rewinds that took back what a session did, or took back one that had, and those before which
    /// something of it stood that no point of the list has; and every older one.
    fn forget_rewinds_of(&mut self, session: &str) {
        let mut theirs = BTreeSet::new();
        let mut newest = None;
        for (number, change) in (1..).zip(&self.log) {
            match change.who {
                Who::Agent(who) if who == session => drop(theirs.insert(number)),
                Who::Rewind(rewind) if change.cancels.iter().any(|seq| theirs.contains(seq)) => {
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
                let is_theirs = |seen: &Seen| {
                    matches!(seen, Seen::A(Thing::File { .. } | Thing::Link(_)))
                        && left.iter().any(|(_, other)| {
                            matches!(other.who, Who::Agent(who) if who == session)
                                && other.after == *seen
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

    /// With the safety points of which neither neighbour in the list stays, and their rewinds.
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
        // Only the last ones that are left can be undone, in their order.
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

    /// Only where nothing stands: that it is known to be so may be forgotten.
    pub(crate) fn forget_absent(&mut self, still_known: &BTreeSet<String>) {
        self.known_absent.retain(|path| still_known.contains(path));
        let length = self.log.len();
        let gone = self.log.iter().map(|change| &change.path);
        let gone = gone.filter(|path| !still_known.contains(*path));
        self.forgotten.extend(gone.map(|path| (path.clone(), length)));
    }

    /// What stood at every path when the log was so long, as far as the log knows.
    pub(crate) fn state_at(&self, length: usize) -> BTreeMap<String, Seen> {
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
