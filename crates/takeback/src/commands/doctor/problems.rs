//! Recent problems of an agent's hooks, in any session.

use takeback_store::Timestamp;

use super::{Finding, Health};
use crate::heartbeat::{Heartbeat, LATELY_MS, NOT_UNDERSTOOD, Problem};
use crate::screen::plain;
use crate::time::ago;

/// Adds the newest problem to an agent's finding, and the number of others. `beats`: those of the agent.
pub(super) fn add_problems<'a>(
    mut finding: Finding,
    beats: impl Iterator<Item = &'a Heartbeat>,
    now: Timestamp,
) -> Finding {
    let mut problems: Vec<(&Problem, &str)> = beats
        .filter_map(|beat| Some((beat.problem.as_ref()?, beat.session.as_str())))
        .filter(|(problem, _)| problem.at.0 > now.0.saturating_sub(LATELY_MS))
        .collect();
    problems.sort_by_key(|(problem, _)| problem.at);
    let Some((newest, session)) = problems.pop() else { return finding };
    let what = match session {
        NOT_UNDERSTOOD => "an event could not be parsed".to_owned(),
        session => format!("problem in session {}", plain(session)),
    };
    let more = match problems.len() {
        0 => String::new(),
        more => format!(" ({more} more in the last week)"),
    };
    let (when, why) = (ago(newest.at, now), plain(&newest.what));
    finding.what = format!("{}; {what} {when}: {why}{more}", finding.what);
    finding.health = finding.health.max(Health::Warning);
    finding
}
