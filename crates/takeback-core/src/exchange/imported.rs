//! What tells an imported session from one of this workspace: its name.
//!
//! `imported-<8 hex digits>` stands for an import, and `imported-<8 hex digits>-<old name>` for a
//! session that came with it. No agent of this workspace did what such a session did.

use takeback_store::{Author, Point, SessionId};

use crate::history::PathHistory;

const PREFIX: &str = "imported-";
const DIGITS: usize = 8;

/// The name of the import numbered `number`.
pub(crate) fn import_name(number: u32) -> SessionId {
    SessionId(format!("{PREFIX}{number:08x}"))
}

/// What a session is called here that was called `old` where it comes from.
pub(crate) fn session_name(import: &SessionId, old: &SessionId) -> SessionId {
    SessionId(format!("{import}-{old}"))
}

/// The name of the import that brought this session; `None`: it is one of this workspace.
pub(crate) fn import_of(session: &SessionId) -> Option<SessionId> {
    let digits = session.0.strip_prefix(PREFIX)?.get(..DIGITS)?;
    let end = PREFIX.len() + DIGITS;
    let whole = matches!(session.0.as_bytes().get(end), None | Some(b'-'));
    let hex = digits.bytes().all(|b| b.is_ascii_hexdigit());
    (whole && hex).then(|| SessionId(session.0[..end].to_owned()))
}

/// Whether nobody here can have written it: only sessions that were imported.
pub(crate) fn is_imported(author: &Author) -> bool {
    let sessions = author.sessions();
    !sessions.is_empty() && sessions.iter().all(|session| import_of(session).is_some())
}

pub(crate) fn is_imported_point(point: &Point) -> bool {
    point.session.as_ref().is_some_and(|session| import_of(session).is_some())
}

/// Whether what comes after `point` is told up to `next`: both are of this workspace, or `next` is,
/// or one import brought both.
#[must_use]
pub fn same_story(point: &Point, next: &Point) -> bool {
    let import = |point: &Point| point.session.as_ref().and_then(import_of);
    import(next).is_none_or(|brought| import(point) == Some(brought))
}

/// Whether these changes of a path are nothing but the way into an import and back.
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
    fn only_names_of_imports_are_taken_for_such() {
        let import = import_name(0xab);
        assert_eq!(import, SessionId::from("imported-000000ab"));
        let session = session_name(&import, &SessionId::from("s é"));
        assert_eq!(import_of(&session), Some(import.clone()));
        assert_eq!(import_of(&import), Some(import));
        for own in
            ["", "s", "imported-", "imported-000000a", "imported-000000abc", "imported-é00000ab"]
        {
            assert_eq!(import_of(&SessionId::from(own)), None, "{own}");
        }
    }
}
