//! Imported sessions are recognised by their names.
//!
//! `imported-<8 hex digits>` represents an import, and `imported-<8 hex digits>-<old name>` a session
//! that came with it. Such a session did its work in another workspace.

use takeback_store::{Author, Point, SessionId};

use crate::history::PathHistory;

const PREFIX: &str = "imported-";
const DIGITS: usize = 8;

/// The name of the import numbered `number`.
pub(crate) fn import_name(number: u32) -> SessionId {
    SessionId(format!("{PREFIX}{number:08x}"))
}

/// The name in this workspace of a session that was called `old` where it comes from.
pub(crate) fn session_name(import: &SessionId, old: &SessionId) -> SessionId {
    SessionId(format!("{import}-{old}"))
}

/// The name of the import that brought this session; `None`: it belongs to this workspace.
pub(crate) fn import_of(session: &SessionId) -> Option<SessionId> {
    let rest = after_import(&session.0)?;
    Some(SessionId(session.0[..session.0.len() - rest.len()].to_owned()))
}

/// What follows the name of an import: nothing, or a dash and the old name.
fn after_import(name: &str) -> Option<&str> {
    let (digits, rest) = name.strip_prefix(PREFIX)?.split_at_checked(DIGITS)?;
    let whole = rest.is_empty() || rest.starts_with('-');
    let hex = digits.bytes().all(|b| b.is_ascii_hexdigit());
    (whole && hex).then_some(rest)
}

/// The name of an imported session in the workspace where it did its work, however often it was imported
/// since; empty for the session that represents an import. `None`: it belongs to this workspace.
#[must_use]
pub fn original_name(session: &SessionId) -> Option<&str> {
    let mut rest = after_import(&session.0)?;
    loop {
        let name = rest.strip_prefix('-').unwrap_or(rest);
        match after_import(name) {
            Some(again) => rest = again,
            None => return Some(name),
        }
    }
}

/// Whether only imported sessions can have written it.
pub(crate) fn is_imported(author: &Author) -> bool {
    let sessions = author.sessions();
    !sessions.is_empty() && sessions.iter().all(|session| import_of(session).is_some())
}

pub(crate) fn is_imported_point(point: &Point) -> bool {
    point.session.as_ref().is_some_and(|session| import_of(session).is_some())
}

/// Whether the changes after `point` are listed up to `next`: both belong to this workspace, or `next`
/// does, or the same import brought both.
#[must_use]
pub fn same_timeline(point: &Point, next: &Point) -> bool {
    let import = |point: &Point| point.session.as_ref().and_then(import_of);
    import(next).is_none_or(|brought| import(point) == Some(brought))
}

/// Whether these changes of a path are only the way into an import and back.
#[must_use]
pub fn is_detour(history: &PathHistory) -> bool {
    let brought = |author: &Author| *author == Author::Import || is_imported(author);
    let rewound = |author: &Author| matches!(author, Author::Rewind { .. });
    let mut authors = history.changes.iter().map(|change| &change.author);
    authors.clone().any(brought)
        && authors.all(|author| brought(author) || rewound(author))
        && history.at_start() == history.at_end()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn only_names_of_imports_are_recognised() {
        let import = import_name(0xab);
        assert_eq!(import, SessionId::from("imported-000000ab"));
        let session = session_name(&import, &SessionId::from("s é"));
        assert_eq!(import_of(&session), Some(import.clone()));
        assert_eq!(import_of(&import), Some(import));
        for own in
            ["", "s", "imported-", "imported-000000a", "imported-000000abc", "imported-é00000ab"]
        {
            assert_eq!(import_of(&SessionId::from(own)), None, "{own}");
            assert_eq!(original_name(&SessionId::from(own)), None, "{own}");
        }
    }

    #[test]
    fn a_session_keeps_its_first_name_however_often_it_is_imported() {
        let session = SessionId::from("s-1");
        let once = session_name(&import_name(1), &session);
        let twice = session_name(&import_name(2), &once);
        let by_hand = session_name(&import_name(2), &import_name(1));
        let names = [&once, &twice, &by_hand].map(original_name);
        assert_eq!(names, [Some("s-1"), Some("s-1"), Some("")]);
        assert_eq!(original_name(&import_name(3)), Some(""));
    }
}
