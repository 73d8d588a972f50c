//! File checkpoints: the entry at a path when a turn first named or changed it. They are derived from the
//! calls, changes and contents in the log; nothing else is stored for them.

use std::collections::{HashMap, HashSet};
use std::fmt;

use takeback_store::{
    Author, Call, CallId, Change, Entry, Seq, SessionId, Store, StoreError, Timestamp, TurnId,
    WorkPath,
};

use crate::record::recorded_as;

/// The id of a file checkpoint: one turn, one path. It never changes.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub struct FileCheckpointId(pub u64);

impl FileCheckpointId {
    fn of(turn: TurnId, path: &WorkPath) -> Self {
        let mut hasher = blake3::Hasher::new();
        hasher.update(&turn.0.to_le_bytes()).update(path.as_bytes());
        let mut first = [0; 8];
        first.copy_from_slice(&hasher.finalize().as_bytes()[..8]);
        Self(u64::from_be_bytes(first))
    }
}

impl fmt::Display for FileCheckpointId {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{:016x}", self.0)
    }
}

/// The entry at a path when a session's turn first named or changed it.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct FileCheckpoint {
    /// Its id in this store.
    pub id: FileCheckpointId,
    /// The session.
    pub session: SessionId,
    /// The agent's id of the prompt that the turn answers.
    pub message: Option<String>,
    /// The path.
    pub path: WorkPath,
    /// [`Entry::Absent`]: it did not exist. Its bytes are `store.contents` of its digest.
    pub original: Entry,
    /// When the call that named it began, or when the change was found.
    pub time: Timestamp,
}

impl FileCheckpoint {
    /// Whether it can be restored: its contents were saved, or nothing existed.
    #[must_use]
    pub fn is_kept(&self) -> bool {
        !matches!(self.original, Entry::NotCaptured { .. } | Entry::Unknown)
    }
}

/// All file checkpoints of a session, oldest first.
pub fn file_checkpoints(
    store: &dyn Store,
    session: &SessionId,
) -> Result<Vec<FileCheckpoint>, StoreError> {
    let session = recorded_as(session);
    let mut calls = store.calls_since(Timestamp(i64::MIN))?;
    calls.retain(|call| call.session == session);
    let changes = store.changes_after(Seq(0))?;
    collect(store, &session, &calls, &changes)
}

/// The ids, as [`file_checkpoints`] lists them, of the paths that a call named, in their order. Without those
/// that could not be saved; empty for a call that is not in the log yet.
pub fn kept_for_call(
    store: &dyn Store,
    session: &SessionId,
    call: &CallId,
) -> Result<Vec<(WorkPath, FileCheckpointId)>, StoreError> {
    let session = recorded_as(session);
    let Some(call) = store.call(&session, call)? else { return Ok(Vec::new()) };
    let mut kept = Vec::new();
    for path in call.kind.paths() {
        let changes = store.changes_of(path)?;
        let copies = collect(store, &session, std::slice::from_ref(&call), &changes)?;
        let id = FileCheckpointId::of(call.turn, path);
        if copies.iter().any(|copy| copy.id == id && copy.is_kept()) {
            kept.push((path.clone(), id));
        }
    }
    Ok(kept)
}

/// The file checkpoints of `calls`, and those of paths that the session changed without naming them.
fn collect(
    store: &dyn Store,
    session: &SessionId,
    calls: &[Call],
    changes: &[Change],
) -> Result<Vec<FileCheckpoint>, StoreError> {
    let mut of_path: HashMap<&WorkPath, Vec<&Change>> = HashMap::new();
    for change in changes {
        of_path.entry(&change.path).or_default().push(change);
    }
    let mut firsts = Vec::new();
    for change in changes {
        if let Author::Agent { session: author, turn, .. } = &change.author
            && author == session
        {
            firsts.push((change.time, *turn, &change.path, change.before.clone()));
        }
    }
    for call in calls {
        for path in call.kind.paths() {
            let changes = of_path.get(path).map_or(&[][..], Vec::as_slice);
            firsts.push((call.opened_at, call.turn, path, entry_at_start(call, changes)));
        }
    }
    // Stable, by time alone: changes found at the same time stay in log order, before the calls' paths.
    firsts.sort_by_key(|(time, ..)| *time);
    let mut seen = HashSet::new();
    let mut messages: HashMap<TurnId, Option<String>> = HashMap::new();
    let mut copies = Vec::new();
    for (time, turn, path, original) in firsts {
        if !seen.insert((turn, path)) {
            continue;
        }
        let message = match messages.get(&turn) {
            Some(message) => message.clone(),
            None => {
                let message = store.turn(turn)?.and_then(|turn| turn.message);
                messages.insert(turn, message.clone());
                message
            }
        };
        let (id, session) = (FileCheckpointId::of(turn, path), session.clone());
        copies.push(FileCheckpoint { id, session, message, path: path.clone(), original, time });
    }
    Ok(copies)
}

/// The entry at a path when a call that names it began: what the first change since found there, else
/// what the last one before left. A path that is not in the log was looked at and was absent.
fn entry_at_start(call: &Call, changes: &[&Change]) -> Entry {
    let is_since = |change: &&&Change| match &change.author {
        // A change by the call itself may have the time at which the call began.
        Author::Agent { session, turn, call: id, .. }
            if (session, *turn, id) == (&call.session, call.turn, &call.id) =>
        {
            change.time >= call.opened_at
        }
        _ => change.time > call.opened_at,
    };
    let first = changes.iter().find(is_since).map(|change| &change.before);
    let last = || changes.last().map(|change| &change.after);
    first.or_else(last).cloned().unwrap_or(Entry::Absent)
}
