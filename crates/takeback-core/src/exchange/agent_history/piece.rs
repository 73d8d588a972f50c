//! Converts an agent's file history to a piece of history: one session after another, each from unknown
//! entries to those its last turn left.

use std::collections::{BTreeMap, BTreeSet};
use std::os::unix::ffi::OsStrExt as _;
use std::path::{Component, Path, PathBuf};

use takeback_store::{
    Author, Change, Entry, Evidence, NotCapturedReason, Point, PointBasis, PointId, PointKind, Seq,
    Session, SessionId, Timestamp, Turn, TurnId, WorkPath,
};

use super::{AgentHistory, Copies, Edit, HistoryPrompt, HistorySession, SavedFile};
use crate::exchange::bundle::{BundleError, OutsidePolicy, Piece};
use crate::exchange::check::plain_path;

pub(super) struct HistoryPiece {
    pub(super) piece: Piece,
    pub(super) lost: Vec<WorkPath>,
    pub(super) outside: Vec<PathBuf>,
}

pub(super) fn piece<'s>(
    history: &'s AgentHistory,
    root: &Path,
    outside: OutsidePolicy,
    copies: &mut Copies<'s>,
) -> HistoryPiece {
    let mut log = Log {
        piece: Piece::default(),
        state: Tree::new(),
        paths: Paths { root, outside, left_out: BTreeSet::new() },
        copies,
    };
    for session in &history.sessions {
        log.session(session);
    }
    // Before the first session every path is unknown.
    let base = log.state.into_keys().map(|path| (path, Entry::Unknown)).collect();
    let is_lost = |change: &&Change| matches!(change.after, Entry::NotCaptured { .. });
    let lost = log.piece.changes.iter().filter(is_lost).map(|change| change.path.clone());
    let lost: BTreeSet<WorkPath> = lost.collect();
    HistoryPiece {
        piece: Piece { base, ..log.piece },
        lost: lost.into_iter().collect(),
        outside: log.paths.left_out.into_iter().collect(),
    }
}

type Tree = BTreeMap<WorkPath, Entry>;

struct Log<'l, 's> {
    piece: Piece,
    /// The entry at every path that was ever named.
    state: Tree,
    paths: Paths<'l>,
    copies: &'l mut Copies<'s>,
}

/// The calls of a turn that may have written.
struct Writers<'s> {
    session: &'s SessionId,
    turn: TurnId,
    edits: BTreeMap<WorkPath, &'s Edit>,
    ran_commands: bool,
}

impl<'s> Log<'_, 's> {
    fn session(&mut self, session: &'s HistorySession) {
        self.piece.sessions.push(Session {
            id: session.id.clone(),
            agent: Some(session.agent.clone()),
            parent: None,
            owner: None,
            started_at: session.started_at,
            ended_at: Some(session.ended_at),
            archived_at: None,
            open_turn: None,
            model: None,
        });
        let mut writers = None;
        for (at, prompt) in session.prompts.iter().enumerate() {
            let tree = self.tree(&prompt.files);
            self.go_to(&tree, writers.as_ref(), prompt.at);
            let turn = self.turn(session, at, prompt);
            let named = prompt.edits.iter();
            let edits = named.filter_map(|(path, edit)| Some((self.paths.named(path)?, edit)));
            let mut at_work = Writers {
                session: &session.id,
                turn,
                edits: edits.collect(),
                ran_commands: prompt.ran_commands,
            };
            let left = self.tree(&prompt.left);
            let mut tree = self.state.clone();
            tree.extend(left.clone());
            self.go_to(&tree, Some(&at_work), prompt.at);
            // If those files differ at the next prompt, another author changed them.
            at_work.edits.retain(|path, _| !left.contains_key(path));
            writers = Some(at_work);
        }
    }

    /// A turn and the point before it.
    fn turn(&mut self, session: &HistorySession, at: usize, prompt: &HistoryPrompt) -> TurnId {
        let id = self.piece.points.len() as u64 + 1;
        let closed_at = session.prompts.get(at + 1).map_or(session.ended_at, |next| next.at);
        self.piece.turns.push(Turn {
            id: TurnId(id),
            session: session.id.clone(),
            message: prompt.message_ids.first().cloned(),
            prompt: prompt.text.clone(),
            opened_at: prompt.at,
            closed_at: Some(closed_at),
            model: None,
        });
        self.piece.points.push(Point {
            id: PointId(id),
            seq: Seq(self.piece.changes.len() as u64),
            session: Some(session.id.clone()),
            kind: PointKind::Prompt,
            description: prompt.text.clone(),
            label: None,
            pinned: false,
            created_at: prompt.at,
            message_ids: prompt.message_ids.clone(),
            git: None,
            basis: PointBasis::Scan,
        });
        TurnId(id)
    }

    /// Appends the changes from the present state to `tree`. Paths that are not in `tree` become unknown.
    fn go_to(&mut self, tree: &Tree, writers: Option<&Writers<'_>>, time: Timestamp) {
        for path in tree.keys() {
            self.state.entry(path.clone()).or_insert(Entry::Unknown);
        }
        for (path, present) in &mut self.state {
            let after = tree.get(path).unwrap_or(&Entry::Unknown);
            if present == after {
                continue;
            }
            let is_first_sighting = *present == Entry::Unknown || *after == Entry::Unknown;
            let author = match writers {
                Some(writers) if !is_first_sighting => writers.author(path),
                _ => Author::Import,
            };
            self.piece.changes.push(Change {
                seq: Seq(self.piece.changes.len() as u64 + 1),
                path: path.clone(),
                before: std::mem::replace(present, after.clone()),
                after: after.clone(),
                author,
                evidence: Evidence::Named,
                time,
                changed_at: None,
                correction: None,
                cancels: Vec::new(),
            });
        }
    }

    fn tree(&mut self, files: &'s BTreeMap<PathBuf, SavedFile>) -> Tree {
        let mut tree = Tree::new();
        for (path, kept) in files {
            if let Some(path) = self.paths.kept(path) {
                tree.insert(path, self.copies.entry(kept));
            }
        }
        // A file that has become a folder since its copy was made.
        let files = tree.iter().filter(|(_, entry)| matches!(entry, Entry::File { .. }));
        let above = files.flat_map(|(path, _)| path.ancestors());
        let folders: BTreeSet<WorkPath> = above.filter(|above| tree.contains_key(above)).collect();
        for folder in folders {
            tree.insert(folder, Entry::NotCaptured { reason: NotCapturedReason::Special });
        }
        tree
    }
}

impl Writers<'_> {
    fn author(&self, path: &WorkPath) -> Author {
        match self.edits.get(path) {
            Some(edit) => Author::Agent {
                session: self.session.clone(),
                turn: self.turn,
                call: edit.call.clone(),
                tool: edit.tool.clone(),
            },
            None if self.ran_commands => Author::Ambiguous { sessions: vec![self.session.clone()] },
            None => Author::Human,
        }
    }
}

/// Maps the history's paths to paths of the workspace.
struct Paths<'a> {
    root: &'a Path,
    outside: OutsidePolicy,
    left_out: BTreeSet<PathBuf>,
}

impl Paths<'_> {
    /// As [`Self::named`]; remembers paths that are refused because they are outside.
    fn kept(&mut self, path: &Path) -> Option<WorkPath> {
        match self.work_path(path) {
            Ok(path) => Some(path),
            Err(BundleError::Outside { .. }) => {
                self.left_out.insert(path.to_owned());
                None
            }
            // Version control's own files, Takeback's, and malformed paths.
            Err(_) => None,
        }
    }

    fn named(&self, path: &Path) -> Option<WorkPath> {
        self.work_path(path).ok()
    }

    fn work_path(&self, path: &Path) -> Result<WorkPath, BundleError> {
        let mut plain = PathBuf::new();
        for part in path.components() {
            match part {
                Component::CurDir => {}
                Component::ParentDir => {
                    plain.pop();
                }
                part => plain.push(part),
            }
        }
        let named = plain.strip_prefix(self.root).unwrap_or(&plain);
        plain_path(named.as_os_str().as_bytes().to_vec(), self.outside)
    }
}
