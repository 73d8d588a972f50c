//! The lines of `log --graph`: one for each session, from its newest point in the list to its oldest.

use takeback_core::history::LogRow;
use takeback_store::SessionId;

/// One text per row.
pub(super) fn lanes(rows: &[LogRow]) -> Vec<String> {
    let of: Vec<Option<&SessionId>> = rows.iter().map(session).collect();
    // Each lane: its session (`None`: points made by hand, and operations), its first and last row.
    let mut lanes: Vec<(Option<&SessionId>, usize, usize)> = Vec::new();
    for (at, session) in of.iter().enumerate() {
        match lanes.iter_mut().find(|lane| lane.0 == *session) {
            Some(lane) => lane.2 = at,
            None => lanes.push((*session, at, at)),
        }
    }
    let draw = |at: usize| {
        let column = |(session, first, last): &(Option<&SessionId>, usize, usize)| {
            let is_own = of[at] == *session;
            match (&rows[at], is_own) {
                (LogRow::Operation(_), true) => "↶",
                (LogRow::Point(_), true) if session.is_none() => "◆",
                (LogRow::Point(_), true) => "●",
                _ if (*first..=*last).contains(&at) => "│",
                _ => " ",
            }
        };
        let columns: Vec<&str> = lanes.iter().map(column).collect();
        columns.join(" ")
    };
    (0..rows.len()).map(draw).collect()
}

/// The session of a row; a subagent's point is on the line of the whole session.
fn session(row: &LogRow) -> Option<&SessionId> {
    match row {
        LogRow::Point(row) => row.point.session.as_ref(),
        LogRow::Operation(_) => None,
    }
}
