//! New files are hidden by rules that a person wrote or that were there first. Rules that an agent
//! added count from the next time a person edits the file.

use takeback_testkit::Thing;

use super::super::steps::IGNORE_FILE;
use super::{ModelAuthor, Oracle, PathState};

impl Oracle {
    /// The ignore file as it was before agents wrote it, if agents wrote it last.
    pub(super) fn rules_that_hide(&self) -> Option<Thing> {
        let now = self.disk.get(IGNORE_FILE).cloned();
        let known = self.last_seen(IGNORE_FILE);
        let is_news = known != super::state_of(now.clone());
        let by_agent = self.live_calls().any(|call| match &call.paths {
            Some(paths) => paths.iter().any(|path| path == IGNORE_FILE),
            None => true,
        });
        if is_news && (known == PathState::Unknown || !by_agent) {
            return now;
        }
        let written: Vec<usize> =
            (0..self.log.len()).filter(|at| self.log[*at].path == IGNORE_FILE).collect();
        match self.rules_of_a_person(&written) {
            Some(PathState::Present(rules)) => Some(rules),
            Some(_) => None,
            // The log has no change of it: an agent is writing it now, or it never changed.
            None if is_news => None,
            None => now,
        }
    }

    /// After these changes of the ignore file.
    fn rules_of_a_person(&self, written: &[usize]) -> Option<PathState> {
        let (last, earlier) = written.split_last()?;
        let change = &self.log[*last];
        let before = || self.rules_of_a_person(earlier).unwrap_or(change.before.clone());
        Some(match change.author {
            _ if change.before == PathState::Unknown => change.after.clone(),
            ModelAuthor::Human => change.after.clone(),
            ModelAuthor::Agent(_) | ModelAuthor::Ambiguous(_) | ModelAuthor::Deleted => before(),
            // A rewind restores an earlier text, which keeps its author.
            ModelAuthor::Rewind(_) => {
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
