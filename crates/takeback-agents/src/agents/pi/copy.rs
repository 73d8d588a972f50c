//! pi copies a session into the folder that it is started in. A copy that ends before a prompt is chosen on its
//! screen, in a way that is not known here.

use std::io;
use std::path::Path;

use super::PI;
use crate::conversation_copy::{ConversationCopy, CopyExtent};
use crate::cut::{CutError, is_plain_name};

pub(super) fn copy(
    home: &Path,
    extent: CopyExtent<'_>,
) -> Result<Option<ConversationCopy>, CutError> {
    let CopyExtent::Whole(session) = extent else { return Ok(None) };
    if !is_plain_name(session) || !has_session(home, session)? {
        return Ok(None);
    }
    Ok(Some(ConversationCopy {
        agent: PI.name,
        title: PI.title,
        session: session.to_owned(),
        command: format!("pi --fork {session}"),
        keys: None,
        headless: Some(format!("pi --print --fork {session}")),
    }))
}

/// Whether there is a file `sessions/FOLDER/TIME_SESSION.jsonl`.
fn has_session(home: &Path, session: &str) -> Result<bool, CutError> {
    let end = format!("_{session}.jsonl");
    let names = |folder: &Path| {
        let entries = match std::fs::read_dir(folder) {
            Err(error) if error.kind() == io::ErrorKind::NotFound => return Ok(Vec::new()),
            Err(error) if error.kind() == io::ErrorKind::NotADirectory => return Ok(Vec::new()),
            entries => entries,
        };
        let paths = entries.and_then(|all| all.map(|one| Ok(one?.path())).collect());
        paths.map_err(|source| CutError { path: folder.to_owned(), source })
    };
    for folder in names(&home.join("sessions"))? {
        let is_it = |name: &Path| name.to_str().is_some_and(|name| name.ends_with(&end));
        if names(&folder)?.iter().any(|file| is_it(file)) {
            return Ok(true);
        }
    }
    Ok(false)
}
