//! Describes what could not be read.

use takeback_core::RecordOutcome;
use takeback_core::record::{Unreadable, UnreadableKind};

use crate::screen::{count, name};

/// One line for each path that was not read or saved: the verb, the name, and the reason.
pub(crate) fn lines(recorded: &RecordOutcome) -> Vec<(&'static str, String, String)> {
    let mut lines: Vec<_> = recorded.unreadable.iter().map(line).collect();
    let is_told = |path| recorded.unreadable.iter().any(|one| one.covers(path));
    let kept = recorded.not_captured.iter().filter(|(path, _)| !is_told(path));
    lines.extend(
        kept.map(|(path, reason)| ("not captured", name(path), reason.describe().to_owned())),
    );
    lines
}

pub(crate) fn line(one: &Unreadable) -> (&'static str, String, String) {
    match one.kind {
        UnreadableKind::File => {
            ("not captured", name(&one.path), "it could not be read".to_owned())
        }
        UnreadableKind::Folder { known } => {
            let why = format!("{} in it cannot be compared", count(known, "known name"));
            ("not read", format!("{}/", name(&one.path)), why)
        }
    }
}
