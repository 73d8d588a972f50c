//! What could not be read, for people and as JSON.

use serde::Serialize;
use takeback_core::Recorded;
use takeback_core::record::{Unreadable, UnreadableKind};

use crate::screen::{count, name};
use crate::wire::WirePath;

/// What was not read or kept, as a line each: what to call it, its name, and why.
pub(crate) fn lines(recorded: &Recorded) -> Vec<(&'static str, String, String)> {
    let mut lines: Vec<_> = recorded.unreadable.iter().map(line).collect();
    let is_told = |path| recorded.unreadable.iter().any(|one| one.covers(path));
    let kept = recorded.not_captured.iter().filter(|(path, _)| !is_told(path));
    lines.extend(kept.map(|(path, lack)| ("not kept", name(path), lack.reason().to_owned())));
    lines
}

pub(crate) fn line(one: &Unreadable) -> (&'static str, String, String) {
    match one.kind {
        UnreadableKind::File => ("not kept", name(&one.path), "it could not be read".to_owned()),
        UnreadableKind::Folder { known } => {
            let why = format!("{} in it cannot be compared", count(known, "known name"));
            ("not read", format!("{}/", name(&one.path)), why)
        }
    }
}

#[derive(Debug, Serialize)]
#[serde(rename_all = "camelCase")]
pub(crate) struct UnreadableAnswer {
    #[serde(flatten)]
    path: WirePath,
    kind: &'static str,
    /// Names below it that are known and could not be compared.
    known: usize,
}

pub(crate) fn answers(unreadable: &[Unreadable]) -> Vec<UnreadableAnswer> {
    let answer = |one: &Unreadable| {
        let (kind, known) = match one.kind {
            UnreadableKind::File => ("file", 0),
            UnreadableKind::Folder { known } => ("folder", known),
        };
        UnreadableAnswer { path: (&one.path).into(), kind, known }
    };
    unreadable.iter().map(answer).collect()
}
