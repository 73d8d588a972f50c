//! Checks a piece of history before any of it is stored: paths stay in the workspace, changes follow one
//! another, points are among them, and no file is below another.

use std::collections::{HashMap, HashSet};

use takeback_store::{Author, Digest, Entry, IN_PART, Seq, SessionId, WorkPath};

use super::bundle::{BundleError, OutsidePolicy, Piece};
use crate::marks::check_label;
use crate::worktree::scope::{OWN_FOLDER, is_internal};

/// Longer than any path of a mounted file system.
const PATH_MAX: usize = 32 << 10;
const LINK_MAX: usize = 4095;
/// Every command reads all sessions and all points.
const SESSIONS_MAX: usize = 10_000;
const POINTS_MAX: usize = 100_000;

/// The contents that a piece names, each with the first path that names it and the declared size.
pub(super) type NeededBlobs = HashMap<Digest, NeededBlob>;

pub(super) struct NeededBlob {
    pub(super) path: WorkPath,
    pub(super) size: u64,
}

/// The path, if a bundle may have it.
pub(super) fn plain_path(bytes: Vec<u8>, outside: OutsidePolicy) -> Result<WorkPath, BundleError> {
    let path = WorkPath::new(bytes)
        .map_err(|error| BundleError::Path { path: error.path, why: error.why })?;
    if path.as_bytes().len() > PATH_MAX {
        let path = path.display().chars().take(80).collect();
        return Err(BundleError::Path { path, why: "it is too long" });
    }
    if path.is_outside() && outside == OutsidePolicy::Refuse {
        return Err(BundleError::Outside { path: path.display() });
    }
    if is_ours(&path) {
        return Err(BundleError::Internal { path: path.display() });
    }
    Ok(path)
}

/// Whether no bundle may bring anything to this path: version control's own files, and Takeback's files and
/// settings. On case-insensitive file systems `.GIT` is the same as `.git`.
pub(super) fn is_ours(path: &WorkPath) -> bool {
    let lower = WorkPath::new(path.as_bytes().to_ascii_lowercase());
    let is_ours = |path: &WorkPath| is_internal(path) || path.is_within(OWN_FOLDER);
    is_ours(path) || lower.is_ok_and(|path| is_ours(&path))
}

/// Checks everything but the blobs; returns the blobs that are needed.
pub(super) fn check(piece: &Piece) -> Result<NeededBlobs, BundleError> {
    let sessions = check_sessions(piece)?;
    let mut needed = NeededBlobs::new();
    let mut tree = Tree::new();
    for (path, entry) in &piece.base {
        add_needed(&mut needed, path, entry)?;
        let node = tree.node(path)?;
        if *entry == Entry::Absent || *tree.nodes[node].entry != Entry::Absent {
            return Err(BundleError::Twice { path: path.display() });
        }
        tree.set(node, entry);
    }
    check_points(piece, &sessions)?;
    let mut points = piece.points.iter().peekable();
    let mut nodes = Vec::with_capacity(piece.changes.len());
    for seq in (0..=piece.changes.len() as u64).map(Seq) {
        if let Some(change) = seq.0.checked_sub(1).map(|at| &piece.changes[at as usize]) {
            let (change_number, shown) = (seq.0, || change.path.display());
            add_needed(&mut needed, &change.path, &change.after)?;
            let node = tree.node(&change.path)?;
            if *tree.nodes[node].entry != change.before {
                return Err(BundleError::OutOfOrder { change: change_number, path: shown() });
            }
            if change.before == change.after {
                return Err(BundleError::NoChange { change: change_number, path: shown() });
            }
            let cancels = |cancelled: &Seq| {
                cancelled.0.checked_sub(1).and_then(|at| nodes.get(at as usize)) == Some(&node)
            };
            let rewinds = matches!(change.author, Author::Rewind { .. });
            // Marked as in part, and then what.
            let listed = match change.cancels.as_slice() {
                [IN_PART, listed @ ..] if !listed.is_empty() => listed,
                listed => listed,
            };
            if !listed.iter().all(cancels) || (!rewinds && !change.cancels.is_empty()) {
                return Err(BundleError::Cancels { change: change_number, path: shown() });
            }
            known(&sessions, change.author.sessions())?;
            tree.set(node, &change.after);
            nodes.push(node);
        }
        while points.next_if(|point| point.seq == seq).is_some() {
            tree.check()?;
        }
    }
    Ok(needed)
}

fn check_sessions(piece: &Piece) -> Result<HashSet<&SessionId>, BundleError> {
    at_most("sessions", piece.sessions.len(), SESSIONS_MAX)?;
    at_most("points", piece.points.len(), POINTS_MAX)?;
    let mut sessions = HashSet::new();
    for session in &piece.sessions {
        known(&sessions, session.parent.as_slice())?;
        if !sessions.insert(&session.id) {
            return Err(BundleError::SessionTwice { session: session.id.clone() });
        }
    }
    let mut turns = HashSet::new();
    for turn in &piece.turns {
        known(&sessions, std::slice::from_ref(&turn.session))?;
        if !turns.insert(turn.id) {
            return Err(BundleError::TurnTwice { turn: turn.id });
        }
    }
    Ok(sessions)
}

fn at_most(what: &'static str, count: usize, most: usize) -> Result<(), BundleError> {
    let error = BundleError::TooMany { what, limit: most as u64 };
    if count > most { Err(error) } else { Ok(()) }
}

fn check_points(piece: &Piece, sessions: &HashSet<&SessionId>) -> Result<(), BundleError> {
    let mut ids = HashSet::new();
    let mut last = Seq(0);
    for point in &piece.points {
        if point.seq < last || point.seq.0 > piece.changes.len() as u64 {
            return Err(BundleError::PointOutside { point: point.id });
        }
        last = point.seq;
        if !ids.insert(point.id) {
            return Err(BundleError::PointTwice { point: point.id });
        }
        known(sessions, point.session.as_slice())?;
        if let Some(label) = point.label.as_ref().filter(|label| check_label(label).is_err()) {
            return Err(BundleError::Label { point: point.id, label: label.clone() });
        }
    }
    if piece.points.is_empty() { Err(BundleError::NoPoints) } else { Ok(()) }
}

fn known(sessions: &HashSet<&SessionId>, named: &[SessionId]) -> Result<(), BundleError> {
    match named.iter().find(|session| !sessions.contains(session)) {
        Some(session) => Err(BundleError::NoSession { session: session.clone() }),
        None => Ok(()),
    }
}

fn add_needed(needed: &mut NeededBlobs, path: &WorkPath, entry: &Entry) -> Result<(), BundleError> {
    match entry {
        Entry::File { digest, size, .. } => {
            let first = || NeededBlob { path: path.clone(), size: *size };
            if needed.entry(*digest).or_insert_with(first).size != *size {
                return Err(BundleError::BlobSize { path: path.display() });
            }
        }
        Entry::Symlink { target } => {
            if target.is_empty() || target.len() > LINK_MAX || target.contains(&0) {
                return Err(BundleError::Link { path: path.display() });
            }
        }
        Entry::Absent | Entry::Dir { .. } | Entry::NotCaptured { .. } | Entry::Unknown => {}
    }
    Ok(())
}

/// A tree that counts what is below each node: checking after each change that nothing is below a file costs
/// only the path's depth.
struct Tree<'p> {
    nodes: Vec<Node<'p>>,
    names: HashMap<(usize, &'p [u8]), usize>,
    /// How many existing entries are below something that is not a folder.
    blocked: usize,
}

struct Node<'p> {
    above: usize,
    entry: &'p Entry,
    /// How many existing entries are below it.
    below: usize,
}

/// The root of all paths in the workspace, and that of those outside. Each is its own parent.
const ROOTS: [usize; 2] = [0, 1];
/// Names of all folders and files together.
const NAMES_MAX: usize = 4_000_000;

fn exists(entry: &Entry) -> bool {
    matches!(entry, Entry::File { .. } | Entry::Symlink { .. } | Entry::Dir { .. })
}

fn blocks(entry: &Entry) -> bool {
    exists(entry) && !entry.is_dir()
}

impl<'p> Tree<'p> {
    fn new() -> Self {
        let root = |above| Node { above, entry: &Entry::Unknown, below: 0 };
        Self { nodes: ROOTS.map(root).into(), names: HashMap::new(), blocked: 0 }
    }

    fn node(&mut self, path: &'p WorkPath) -> Result<usize, BundleError> {
        let bytes = path.as_bytes();
        let (mut at, bytes) = match bytes.strip_prefix(b"/") {
            Some(bytes) => (ROOTS[1], bytes),
            None => (ROOTS[0], bytes),
        };
        for name in bytes.split(|b| *b == b'/') {
            let next = self.nodes.len();
            let above = at;
            at = *self.names.entry((above, name)).or_insert(next);
            if at == next {
                self.nodes.push(Node { above, entry: &Entry::Absent, below: 0 });
            }
        }
        at_most("names", self.nodes.len(), NAMES_MAX).map(|()| at)
    }

    fn set(&mut self, node: usize, entry: &'p Entry) {
        let old = std::mem::replace(&mut self.nodes[node].entry, entry);
        let below = self.nodes[node].below;
        self.blocked -= if blocks(old) { below } else { 0 };
        self.blocked += if blocks(entry) { below } else { 0 };
        let (stood, exists) = (exists(old), exists(entry));
        let mut at = node;
        while stood != exists && !ROOTS.contains(&at) {
            at = self.nodes[at].above;
            let above = &mut self.nodes[at];
            let block = usize::from(blocks(above.entry));
            if exists {
                above.below += 1;
                self.blocked += block;
            } else {
                above.below -= 1;
                self.blocked -= block;
            }
        }
    }

    /// Whether every entry is in a folder.
    fn check(&self) -> Result<(), BundleError> {
        if self.blocked == 0 {
            return Ok(());
        }
        let above = |node: usize| {
            std::iter::successors(Some(node), |at| Some(self.nodes[*at].above).filter(|a| a != at))
        };
        let all = (ROOTS.len()..self.nodes.len()).filter(|node| exists(self.nodes[*node].entry));
        let pair = all.into_iter().find_map(|node| {
            let by = above(node).skip(1).find(|above| blocks(self.nodes[*above].entry))?;
            Some((node, by))
        });
        let (path, above) = pair.expect("something is counted");
        Err(BundleError::Blocked { path: self.shown(path), above: self.shown(above) })
    }

    fn shown(&self, node: usize) -> String {
        let names: HashMap<usize, &[u8]> =
            self.names.iter().map(|((_, name), node)| (*node, *name)).collect();
        let mut parts: Vec<&[u8]> = Vec::new();
        let mut at = node;
        while let Some(name) = names.get(&at) {
            parts.push(name);
            at = self.nodes[at].above;
        }
        if at == ROOTS[1] {
            parts.push(b"");
        }
        parts.reverse();
        WorkPath::new(parts.join(&b'/')).map_or_else(|_| String::new(), |path| path.display())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn case_variants_of_version_control_names_are_refused() {
        for path in
            [".git/config", ".GIT/config", "a/.Git/hooks/x", ".TakeBack/settings.json", "_DARCS/x"]
        {
            let refused = plain_path(path.into(), OutsidePolicy::Refuse);
            assert!(matches!(refused, Err(BundleError::Internal { .. })), "{path}");
        }
        for path in [".gitignore", "GIT/config", "a/.takeback/notes", ".gitx/config"] {
            assert!(plain_path(path.into(), OutsidePolicy::Refuse).is_ok(), "{path}");
        }
    }
}
