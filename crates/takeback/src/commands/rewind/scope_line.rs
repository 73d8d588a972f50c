//! The first line of a preview: whose changes it takes back, and who else changed something since.

use std::collections::BTreeSet;
use std::io::{self, Write as _};

use takeback_core::rewind::{Coverage, Covered};
use takeback_store::SessionId;

use crate::screen::{HINT, Screen, count, width, wrap};
use crate::session_name::SessionNames;

/// Sessions that are named; more are counted.
const MOST: usize = 3;

/// Prints it, and an empty line.
pub(super) fn print(
    coverage: &Coverage,
    names: &SessionNames,
    hints: Hints,
    screen: &mut Screen,
) -> io::Result<()> {
    if let Some(line) = line(coverage, names, hints) {
        for line in wrap(&line, width()) {
            writeln!(screen.out, "{HINT}{line}{HINT:#}")?;
        }
    }
    writeln!(screen.out)
}

/// Whether the line names the options that take back more.
#[derive(Clone, Copy, PartialEq, Eq)]
pub(crate) enum Hints {
    Options,
    /// The menu has a key for that, and a rollback of state has none.
    None,
}

/// `Takes back: claude aaaa1111 (2 other sessions since: --all-agents; your own edits stay: --exact)`
pub(crate) fn line(coverage: &Coverage, names: &SessionNames, hints: Hints) -> Option<String> {
    let hint = |option: &str| match hints {
        Hints::Options => format!(": {option}"),
        Hints::None => String::new(),
    };
    let what = match &coverage.covers {
        Covered::Sessions(sessions) => listed(sessions, names),
        Covered::Chosen(sessions) if sessions.is_empty() => return None,
        Covered::Chosen(sessions) => {
            return Some(format!("Takes back: {}; later changes stay", listed(sessions, names)));
        }
        Covered::AllAgents => "all agents".to_owned(),
        Covered::Everyone => return Some("Takes back: everyone's changes, yours too".to_owned()),
        Covered::Operation => return None,
    };
    let mut rest = Vec::new();
    if !coverage.others.is_empty() {
        let others = count(coverage.others.len(), "other session");
        rest.push(format!("{others} since{}", hint("--all-agents")));
    }
    if coverage.yours {
        rest.push(format!("your own edits stay{}", hint("--exact")));
    }
    let rest = if rest.is_empty() { String::new() } else { format!(" ({})", rest.join("; ")) };
    Some(format!("Takes back: {what}{rest}"))
}

fn listed(sessions: &BTreeSet<SessionId>, names: &SessionNames) -> String {
    let mut listed: Vec<String> =
        sessions.iter().take(MOST).map(|session| names.get(session)).collect();
    if sessions.len() > MOST {
        listed.push(format!("{} more", sessions.len() - MOST));
    }
    listed.join(", ")
}
