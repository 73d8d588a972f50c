//! Whether an edit is about to overwrite what another session or the person changed since the editing session
//! last knew the file.
//!
//! Reads the log, which has the present entry of the paths: the event before the edit was recorded first. A
//! session knows a file from its last change to it, and from when it was last seen to read it. A file that
//! the session neither changed nor was seen to read is not reported: what the session knows of it is not known.

use std::collections::{BTreeMap, BTreeSet};

use takeback_store::{Author, CallId, Seq, SessionId, Store, StoreError, Timestamp, WorkPath};

use crate::history::settle;
use crate::notice::{is_by, list};
use crate::record::recorded_as;

/// The newest changes of a path that are looked at.
const MOST: usize = 32;

/// Who else changed a file.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, PartialOrd, Ord)]
struct Others {
    person: bool,
    session: bool,
}

/// One line about the files that this open call names and others changed; `None`: there are none. `read_at`:
/// when the session was last seen to read a file.
pub fn overwrite_warning(
    store: &dyn Store,
    session: &SessionId,
    call: &CallId,
    read_at: &dyn Fn(&WorkPath) -> Option<Timestamp>,
) -> Result<Option<String>, StoreError> {
    let session = recorded_as(session);
    let Some(call) = store.call(&session, call)? else { return Ok(None) };
    let mut found: BTreeMap<Others, BTreeSet<WorkPath>> = BTreeMap::new();
    for path in call.kind.paths() {
        let others = changed_by(store, &session, path, read_at(path))?;
        if others != Others::default() {
            found.entry(others).or_default().insert(path.clone());
        }
    }
    let parts: Vec<String> = found
        .iter()
        .map(|(others, paths)| {
            let by = match others {
                Others { person: true, session: true } => "the user and another session",
                Others { person: true, session: false } => "the user",
                Others { .. } => "another session",
            };
            let were = if paths.len() == 1 { "was" } else { "were" };
            format!("{} {were} changed by {by}", list(paths, 2))
        })
        .collect();
    let since = "since you last changed or read it";
    let advice = "Read it again before you overwrite it.";
    Ok((!parts.is_empty()).then(|| format!("Takeback: {} {since}. {advice}", parts.join("; "))))
}

/// Who changed the path since the session last knew it.
fn changed_by(
    store: &dyn Store,
    session: &SessionId,
    path: &WorkPath,
    read_at: Option<Timestamp>,
) -> Result<Others, StoreError> {
    let mut changes = store.newest_changes_of(path, Seq(u64::MAX), MOST)?;
    settle(store, &mut changes)?;
    let own = changes.iter().rposition(|change| is_by(change, session));
    if own.is_none() && read_at.is_none() {
        return Ok(Others::default());
    }
    let mut others = Others::default();
    for change in changes.iter().skip(own.map_or(0, |own| own + 1)) {
        // A file that was read after it was saved is known, even if the change was recorded later.
        if read_at.is_some_and(|read| change.changed_at.unwrap_or(change.time) <= read) {
            continue;
        }
        match &change.author {
            Author::Human => others.person = true,
            Author::Agent { .. } => others.session = true,
            // Rewinds are told with the prompt; who made the others is not known.
            _ => {}
        }
    }
    Ok(others)
}
