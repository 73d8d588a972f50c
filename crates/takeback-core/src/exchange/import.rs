//! Appends a bundle to the log of this workspace, as a detour: from the files on disk to the bundle's first
//! tree, through its changes, and back to the files on disk.
//!
//! No file is touched. The last entry of every path in the log stays the same, and the points of the
//! bundle are positions on the way. All of it is one commit.

use std::collections::hash_map::Entry as Slot;
use std::collections::{BTreeMap, HashMap, HashSet};

use takeback_store::{
    Author, Change, Entry, Evidence, Head, IN_PART, MemoryStore, Point, PointId, PointKind,
    RewindId, Seq, Session, SessionId, Store, StoreError, Timestamp, Turn, TurnId, WorkPath, Write,
};

use super::bundle::{BundleError, BundleFile, Piece};
use super::imported::{import_name, import_of, session_name};
use crate::ambient::Ambient;
use crate::lock::Hold;
use crate::record::{RecordError, drain_inbox, look_at_paths, scan_locked};
use crate::rewind::RewindError;
use crate::rewind::recover_locked;
use crate::workspace::Workspace;
use crate::worktree::index::Index;

/// Whether to import, or only to report what would be added.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum ImportMode {
    /// Nothing is added.
    DryRun,
    /// The log gets the history.
    ForReal,
}

/// What an import added to this workspace.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct ImportReport {
    /// The new points.
    pub points: Vec<ImportedPoint>,
    /// The new sessions.
    pub sessions: Vec<ImportedSession>,
    /// Changes of the bundle. The log gets more: those that lead there and back.
    pub changes: usize,
    /// Contents that the store did not have yet.
    pub blobs: usize,
    /// Points that were made when an agent saved its state: the state is not in the bundle.
    pub steps: usize,
}

/// A point that came with a bundle.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct ImportedPoint {
    /// Its id in this workspace.
    pub id: PointId,
    /// Its id in the workspace it comes from.
    pub was: PointId,
    /// Its label here.
    pub label: Option<String>,
    /// Its original label, if that is taken here.
    pub wanted_label: Option<String>,
    /// Its description.
    pub description: String,
    /// The agent's ids of the prompt's messages.
    pub message_ids: Vec<String>,
}

/// A session that came with a bundle.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct ImportedSession {
    /// Its name in this workspace.
    pub id: SessionId,
    /// Its name in the workspace it comes from; `None`: it represents the import itself and has the
    /// manual points.
    pub was: Option<SessionId>,
}

/// Why a bundle was not imported.
#[derive(Debug, thiserror::Error)]
#[expect(missing_docs, reason = "the messages say what the fields are")]
pub enum ImportError {
    #[error(transparent)]
    Bundle(#[from] BundleError),
    #[error("another command has the workspace locked")]
    Locked,
    #[error(transparent)]
    Recover(#[from] RewindError),
    #[error(transparent)]
    Record(#[from] RecordError),
    #[error(transparent)]
    Store(#[from] StoreError),
}

/// Imports, or reports what that would add. If it fails, no change, point or session was added.
pub fn import(
    workspace: &mut Workspace,
    bundle: &BundleFile,
    trial: ImportMode,
) -> Result<ImportReport, ImportError> {
    let Some(_lock) = workspace.lock(Hold::Exclusive, workspace.limits.rewind_patience)? else {
        return Err(ImportError::Locked);
    };
    recover_locked(workspace)?;
    drain_inbox(workspace)?;
    scan_locked(workspace)?;
    let paths = paths(&bundle.piece);
    if trial == ImportMode::ForReal {
        let latest = workspace.store.latest_of(&paths)?;
        let unseen = paths.iter().zip(latest).filter(|(_, latest)| latest.is_none());
        let unseen: Vec<WorkPath> = unseen.map(|(path, _)| path.clone()).collect();
        look_at_paths(workspace, &unseen)?;
    }
    let mut blobs = 0;
    for digest in bundle.digests() {
        blobs += usize::from(!workspace.store.has(digest)?);
    }
    if trial == ImportMode::ForReal {
        keep_blobs(workspace, bundle)?;
    }
    let names = Names::new(&*workspace.store, &workspace.ambient, &bundle.piece)?;
    let now = (workspace.ambient.now)();
    loop {
        let head = workspace.store.head()?;
        let latest = workspace.store.latest_of(&paths)?;
        let entry = |latest: Option<Change>| latest.map_or(Entry::Absent, |change| change.after);
        let present = paths.iter().cloned().zip(latest.into_iter().map(entry)).collect();
        let imported = names.imported(&bundle.piece, blobs);
        if trial == ImportMode::DryRun {
            return Ok(imported);
        }
        let writes = detour(&bundle.piece, &present, &names, head, now);
        let mut index = Index::load(&workspace.index_file(), &*workspace.store)?;
        match workspace.store.commit(head, &writes) {
            Err(StoreError::Moved) => {}
            Err(error) => return Err(error.into()),
            Ok(head) => {
                // Every path has the same entry as before and need not be read again.
                index.stamp = head.seq;
                drop(index.save(&workspace.index_file()));
                return Ok(imported);
            }
        }
    }
}

/// What an import would add to a folder without history, where all contents are new.
pub fn would_import(bundle: &BundleFile, ambient: &Ambient) -> Result<ImportReport, ImportError> {
    let names = Names::new(&MemoryStore::new(), ambient, &bundle.piece)?;
    Ok(names.imported(&bundle.piece, bundle.digests().count()))
}

/// Every path in the piece, once.
fn paths(piece: &Piece) -> Vec<WorkPath> {
    let named = piece.base.iter().map(|(path, _)| path);
    let changed = piece.changes.iter().map(|change| &change.path);
    let unique: HashSet<&WorkPath> = named.chain(changed).collect();
    let mut paths: Vec<WorkPath> = unique.into_iter().cloned().collect();
    paths.sort();
    paths
}

fn keep_blobs(workspace: &mut Workspace, bundle: &BundleFile) -> Result<(), ImportError> {
    let store = std::cell::RefCell::new(&mut workspace.store);
    bundle.each_blob::<ImportError>(
        |digest| Ok(!store.borrow().has(digest)?),
        |blob| Ok(store.borrow_mut().put(blob)?),
    )
}

// --- names in this workspace --------------------------------------------------------------------

struct Names {
    /// Represents the import itself, if manual points need it.
    import: Option<SessionId>,
    sessions: HashMap<SessionId, SessionId>,
    turns: HashMap<TurnId, TurnId>,
    rewinds: HashMap<RewindId, RewindId>,
    points: HashMap<PointId, PointId>,
    labels: HashMap<PointId, String>,
}

impl Names {
    fn new(store: &dyn Store, ambient: &Ambient, piece: &Piece) -> Result<Self, StoreError> {
        let taken: HashSet<SessionId> =
            store.sessions()?.iter().filter_map(|session| import_of(&session.id)).collect();
        let import = loop {
            let name = import_name((ambient.random)() as u32);
            if !taken.contains(&name) {
                break name;
            }
        };
        let mut turns = HashMap::new();
        let mut rewinds = HashMap::new();
        let named = piece.turns.iter().map(|turn| turn.id);
        let authors = piece.changes.iter().filter_map(|change| match change.author {
            Author::Agent { turn, .. } => Some(turn),
            _ => None,
        });
        for turn in named.chain(authors) {
            if let Slot::Vacant(slot) = turns.entry(turn) {
                let mut new = TurnId((ambient.random)());
                while store.turn(new)?.is_some() {
                    new = TurnId((ambient.random)());
                }
                slot.insert(new);
            }
        }
        for change in &piece.changes {
            if let Author::Rewind { id } = change.author {
                rewinds.entry(id).or_insert_with(|| RewindId((ambient.random)()));
            }
        }
        let here = store.points()?;
        let mut ids: HashSet<PointId> = here.iter().map(|point| point.id).collect();
        let mut used: HashSet<String> = here.into_iter().filter_map(|point| point.label).collect();
        let mut points = HashMap::new();
        let mut labels = HashMap::new();
        let mut numbers: HashMap<&String, u64> = HashMap::new();
        for point in &piece.points {
            let mut id = PointId((ambient.random)());
            while !ids.insert(id) {
                id = PointId((ambient.random)());
            }
            points.insert(point.id, id);
            if let Some(label) = &point.label {
                let mut free = label.clone();
                // Continue from the last number: a bundle may have the same label thousands of times.
                let number = numbers.entry(label).or_insert(2);
                while !used.insert(free.clone()) {
                    free = format!("{label}-{number}");
                    *number += 1;
                }
                labels.insert(point.id, free);
            }
        }
        let by_hand = piece.points.iter().any(|point| point.session.is_none());
        let old = piece.sessions.iter().map(|session| &session.id);
        let sessions = old.map(|old| (old.clone(), session_name(&import, old))).collect();
        let import = by_hand.then_some(import);
        Ok(Self { import, sessions, turns, rewinds, points, labels })
    }

    fn session(&self, old: &SessionId) -> SessionId {
        self.sessions.get(old).expect("a checked bundle has every session it names").clone()
    }

    /// An author as this workspace knows it. The person who worked there is not the user here.
    fn author(&self, author: &Author) -> Author {
        match author {
            Author::Agent { session, turn, call, tool } => Author::Agent {
                session: self.session(session),
                turn: self.turns[turn],
                call: call.clone(),
                tool: tool.clone(),
            },
            Author::Ambiguous { sessions } if !sessions.is_empty() => Author::Ambiguous {
                sessions: sessions.iter().map(|session| self.session(session)).collect(),
            },
            Author::Rewind { id } => Author::Rewind { id: self.rewinds[id] },
            Author::Ambiguous { .. } | Author::Human | Author::Deleted | Author::Import => {
                Author::Import
            }
        }
    }

    fn imported(&self, piece: &Piece, blobs: usize) -> ImportReport {
        let points = piece.points.iter().map(|point| {
            let label = self.labels.get(&point.id).cloned();
            ImportedPoint {
                id: self.points[&point.id],
                was: point.id,
                wanted_label: point.label.clone().filter(|wanted| label.as_ref() != Some(wanted)),
                label,
                description: point.description.clone(),
                message_ids: point.message_ids.clone(),
            }
        });
        let import = self.import.iter().map(|id| ImportedSession { id: id.clone(), was: None });
        let sessions = piece.sessions.iter().map(|session| ImportedSession {
            id: self.session(&session.id),
            was: Some(session.id.clone()),
        });
        ImportReport {
            points: points.collect(),
            sessions: import.chain(sessions).collect(),
            changes: piece.changes.len(),
            blobs,
            steps: piece.points.iter().filter(|point| point.kind == PointKind::Step).count(),
        }
    }
}

// --- the detour ---------------------------------------------------------------------------------

/// All writes of the commit. Pure. No time in it is later than now, or a clean-up would take this workspace's
/// clock for wrong.
fn detour(
    piece: &Piece,
    present: &BTreeMap<WorkPath, Entry>,
    names: &Names,
    head: Head,
    now: Timestamp,
) -> Vec<Write> {
    let mut log = Log { writes: sessions_and_turns(piece, names, now), seq: head.seq };
    let base: HashMap<&WorkPath, Entry> =
        piece.base.iter().map(|(path, entry)| (path, masked(entry))).collect();
    let mut state: BTreeMap<&WorkPath, Entry> = BTreeMap::new();
    for (path, present_entry) in present {
        let entry = base.get(path).cloned().unwrap_or(Entry::Absent);
        log.lead(path, present_entry, &entry, now);
        state.insert(path, entry);
    }
    let mut points = piece.points.iter().peekable();
    let mut numbers: HashMap<Seq, Seq> = HashMap::new();
    for seq in (0..=piece.changes.len() as u64).map(Seq) {
        if let Some(change) = seq.0.checked_sub(1).map(|at| &piece.changes[at as usize]) {
            let (before, after) = (masked(&change.before), masked(&change.after));
            // The two entries differed only in masked bits.
            if before != after {
                state.insert(&change.path, after.clone());
                let number = |old: &Seq| match *old {
                    IN_PART => Some(IN_PART),
                    old => numbers.get(&old).copied(),
                };
                let cancels = change.cancels.iter().filter_map(number).collect();
                let author = names.author(&change.author);
                let time = change.time.min(now);
                log.append(Change { before, after, author, time, cancels, ..change.clone() });
                numbers.insert(seq, log.seq);
            }
        }
        while let Some(point) = points.next_if(|point| point.seq == seq) {
            log.writes.push(Write::Point(Point {
                id: names.points[&point.id],
                seq: log.seq,
                session: match &point.session {
                    Some(session) => Some(names.session(session)),
                    None => names.import.clone(),
                },
                label: names.labels.get(&point.id).cloned(),
                created_at: point.created_at.min(now),
                ..point.clone()
            }));
        }
    }
    for (path, present_entry) in present {
        log.lead(path, &state[path], present_entry, now);
    }
    log.writes
}

fn sessions_and_turns(piece: &Piece, names: &Names, now: Timestamp) -> Vec<Write> {
    let mut writes = Vec::new();
    if let Some(import) = &names.import {
        writes.push(Write::Session(Session {
            id: import.clone(),
            agent: Some("import".to_owned()),
            parent: None,
            owner: None,
            started_at: now,
            ended_at: Some(now),
            archived_at: None,
            open_turn: None,
            model: None,
        }));
    }
    for session in &piece.sessions {
        let parent = session.parent.as_ref().map(|parent| names.session(parent));
        writes.push(Write::Session(Session {
            id: names.session(&session.id),
            parent: parent.or_else(|| names.import.clone()),
            started_at: session.started_at.min(now),
            // It does not continue in this workspace.
            ended_at: Some(session.ended_at.unwrap_or(now).min(now)),
            ..session.clone()
        }));
    }
    for turn in &piece.turns {
        writes.push(Write::Turn(Turn {
            id: names.turns[&turn.id],
            session: names.session(&turn.session),
            opened_at: turn.opened_at.min(now),
            closed_at: Some(turn.closed_at.unwrap_or(now).min(now)),
            ..turn.clone()
        }));
    }
    writes
}

struct Log {
    writes: Vec<Write>,
    seq: Seq,
}

impl Log {
    fn append(&mut self, change: Change) {
        self.seq = self.seq.next();
        self.writes.push(Write::Change(Change { seq: self.seq, ..change }));
    }

    /// Appends a change from one entry of a path to another, if they differ.
    fn lead(&mut self, path: &WorkPath, from: &Entry, to: &Entry, time: Timestamp) {
        if from != to {
            self.append(Change {
                seq: self.seq,
                path: path.clone(),
                before: from.clone(),
                after: to.clone(),
                author: Author::Import,
                evidence: Evidence::Named,
                time,
                changed_at: None,
                correction: None,
                cancels: Vec::new(),
            });
        }
    }
}

/// Without set-id and sticky bits.
fn masked(entry: &Entry) -> Entry {
    const PLAIN: u32 = 0o777;
    match entry {
        Entry::File { digest, size, mode } => {
            Entry::File { digest: *digest, size: *size, mode: mode & PLAIN }
        }
        Entry::Dir { mode } => Entry::Dir { mode: mode & PLAIN },
        other => other.clone(),
    }
}

#[cfg(test)]
mod tests {
    use takeback_store::{Digest, PointBasis, PointKind};

    use super::*;

    fn changes(detour: &[Write]) -> Vec<(Entry, Entry)> {
        let change = |write: &Write| match write {
            Write::Change(change) => Some((change.before.clone(), change.after.clone())),
            _ => None,
        };
        detour.iter().filter_map(change).collect()
    }

    #[test]
    fn imported_changes_have_plain_modes_and_no_future_times() {
        let file = |mode| Entry::File { digest: Digest::of(b""), size: 0, mode };
        let path = WorkPath::new("tool").expect("a plain path");
        let change = |seq, before, after, cancels| Change {
            seq: Seq(seq),
            path: path.clone(),
            before: file(before),
            after: file(after),
            author: Author::Rewind { id: RewindId(1) },
            evidence: Evidence::Named,
            time: Timestamp(10),
            changed_at: None,
            correction: None,
            cancels,
        };
        let point = Point {
            id: PointId(1),
            seq: Seq(3),
            session: None,
            kind: PointKind::Manual,
            description: String::new(),
            label: None,
            pinned: false,
            created_at: Timestamp(11),
            message_ids: Vec::new(),
            git: None,
            basis: PointBasis::Scan,
        };
        let piece = Piece {
            base: vec![(path.clone(), file(0o10_4755))],
            changes: vec![
                // Without the masked bits this changes nothing.
                change(1, 0o10_4755, 0o755, Vec::new()),
                change(2, 0o755, 0o2700, Vec::new()),
                change(3, 0o2700, 0o644, vec![Seq(1), Seq(2)]),
            ],
            points: vec![point],
            ..Piece::default()
        };
        let ambient = Ambient {
            now: Box::new(|| Timestamp(9)),
            file_time: Box::new(|_| None),
            random: Box::new(|| 7),
            watch: None,
        };
        let names = Names::new(&MemoryStore::new(), &ambient, &piece).expect("memory reads");
        let present = BTreeMap::from([(path, Entry::Absent)]);
        let head = Head { revision: 5, seq: Seq(40) };
        let detour = detour(&piece, &present, &names, head, Timestamp(9));
        let absent = Entry::Absent;
        assert_eq!(
            changes(&detour),
            [
                (absent.clone(), file(0o755)),
                (file(0o755), file(0o700)),
                (file(0o700), file(0o644)),
                (file(0o644), absent),
            ]
        );
        let cancels = detour.iter().find_map(|write| match write {
            Write::Change(change) if change.seq == Seq(43) => Some(change.cancels.clone()),
            _ => None,
        });
        assert_eq!(cancels, Some(vec![Seq(42)]));
        let at = detour.iter().find_map(|write| match write {
            Write::Point(point) => Some(point.seq),
            _ => None,
        });
        assert_eq!(at, Some(Seq(43)));
        let times = detour.iter().filter_map(|write| match write {
            Write::Change(change) => Some(change.time),
            Write::Point(point) => Some(point.created_at),
            _ => None,
        });
        assert_eq!(times.max(), Some(Timestamp(9)), "the bundle's are later");
    }
}
