//! Whose rules hide what is new: those that a person wrote, or that were there first. What an agent
//! wrote into them counts from the next time that a person writes them.

use takeback_testkit::Thing;

use super::super::deeds::IGNORE_FILE;
use super::{Oracle, Seen, Who};

impl Oracle {
    /// The ignore file as it was before agents wrote it, if agents wrote it last.
    pub(super) fn rules_that_hide(&self) -> Option<Thing> {
        let now = self.disk.get(IGNORE_FILE).cloned();
        let known = self.last_seen(IGNORE_FILE);
        let is_news = known != super::seen(now.clone());
        let by_agent = self.live_calls().any(|call| match &call.paths {
            Some(paths) => paths.iter().any(|path| path == IGNORE_FILE),
            None => true,
        });
        if is_news && (known == Seen::Unknown || !by_agent) {
            return now;
        }
        let written: Vec<usize> =
            (0..self.log.len()).filter(|at| self.log[*at].path == IGNORE_FILE).collect();
        match self.rules_of_a_person(&written) {
            Some(Seen::A(rules)) => Some(rules),
            Some(_) => None,
            // Nobody has recorded it: an agent is writing it just now, or it is as it always was.
            None if is_news => None,
            None => now,
        }
    }

    /// After these changes of the ignore file.
    fn rules_of_a_person(&self, written: &[usize]) -> Option<Seen> {
        let (last, earlier) = written.split_last()?;
        let change = &self.log[*last];
        let before = || self.rules_of_a_person(earlier).unwrap_or(change.before.clone());
        Some(match change.who {
            _ if change.before == Seen::Unknown => change.after.clone(),
            Who::Human => change.after.clone(),
            Who::Agent(_) | Who::Perhaps(_) | Who::Deleted => before(),
            // A rewind brings back an earlier text, and it is whose it was.
            Who::Rewind(_) => {
                let same = |at: &usize| self.log[*at].after == change.after;
                let first = earlier.first().map(|at| &self.log[*at].before);
                match earlier.iter().rposition(same) {
                    Some(at) => self.rules_of_a_person(&earlier[..=at])?,
                    None if first == Some(&change.after) => change.after.clone(),
                    None => before(),
                }
            }
        })
    }
}
