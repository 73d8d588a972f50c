//! Writes notes on commits: who wrote their lines, as the log knows it, in git-ai's format.
//!
//! Lines are found by content, so a note on a commit that was rebased, squashed, amended or cherry-picked is
//! as good as one on the first commit. Another tool's note is left alone unless the user asks.

use std::cell::RefCell;
use std::collections::{BTreeSet, HashMap};
use std::os::unix::ffi::OsStrExt as _;

use takeback_store::{SessionId, Store, StoreError, WorkPath};

use super::ai_note::AiNote;
use super::note_draft::{LineCount, NoteDraft};
use crate::git::{Commit, GitError, GitUser, NamedCommit, NewNote, Repository, WrittenNotes};
use crate::history::{AuthoredPath, BlameError};
use crate::workspace::Workspace;

/// Where the notes of git-ai are.
pub const AI_NOTES: &str = "refs/notes/ai";

/// How often notes are made anew because another program moved the reference.
const MOST_TRIES: usize = 5;

/// Which notes to write.
#[derive(Debug, Clone, Copy)]
pub struct NotesRequest<'a> {
    /// The commits, in git's syntax.
    pub range: &'a str,
    /// What to do with notes of other tools.
    pub foreign: ForeignNotes,
    /// Whether to write, or only to say what would be written.
    pub is_dry_run: bool,
}

/// What to do with notes of other tools.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum ForeignNotes {
    /// Leave them.
    Keep,
    /// Replace them.
    Replace,
}

/// What was written.
#[derive(Debug, Clone, Default)]
pub struct NotesReport {
    /// The commits, newest first.
    pub commits: Vec<CommitNote>,
    /// What could not be asked about.
    pub problems: BTreeSet<String>,
}

/// The note of one commit.
#[derive(Debug, Clone)]
pub struct CommitNote {
    /// The commit.
    pub commit: Commit,
    /// What happened, or would happen.
    pub outcome: NoteOutcome,
    /// The lines that the commit added.
    pub count: LineCount,
    /// The note as it was written, or would be.
    pub note: Option<String>,
}

/// What happens with the note of a commit.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum NoteOutcome {
    /// There was none.
    Written,
    /// It takes the place of one that was there.
    Replaced,
    /// It is there already.
    Unchanged,
    /// The log explains no line of the commit.
    NothingKnown,
    /// Another tool's note is there and stays.
    LeftForeign,
    /// An earlier note of Takeback knows more lines than the log does now, and stays.
    LeftFuller,
}

impl NoteOutcome {
    fn is_new(self) -> bool {
        matches!(self, Self::Written | Self::Replaced)
    }
}

/// Why notes cannot be written.
#[derive(Debug, thiserror::Error)]
#[expect(missing_docs, reason = "the messages say what the fields are")]
pub enum NotesError {
    #[error(transparent)]
    Git(#[from] GitError),
    #[error(transparent)]
    Store(#[from] StoreError),
    #[error("another program keeps changing {AI_NOTES}")]
    KeepsMoving,
}

/// Writes the notes of commits, all in one commit of the notes' reference.
pub fn write_notes(
    workspace: &Workspace,
    repository: &Repository,
    request: NotesRequest<'_>,
) -> Result<NotesReport, NotesError> {
    let commits = repository.commits_in(request.range)?;
    let mut drafts = Drafts::new(workspace, repository);
    let drafted =
        commits.iter().map(|commit| drafts.draft(commit)).collect::<Result<Vec<_>, _>>()?;
    let ids: Vec<String> = commits.iter().map(|named| named.commit.id.clone()).collect();
    for _ in 0..MOST_TRIES {
        let tip = repository.commit(AI_NOTES)?;
        let there = repository.notes(AI_NOTES, &ids)?;
        let mut report =
            NotesReport { problems: drafts.problems.clone(), ..NotesReport::default() };
        for ((named, (note, count)), there) in commits.iter().zip(&drafted).zip(there) {
            let outcome = outcome(note.as_ref(), there.as_deref(), request.foreign);
            let note = note.as_ref().filter(|_| outcome.is_new()).map(AiNote::to_string);
            let commit = named.commit.clone();
            report.commits.push(CommitNote { commit, outcome, count: *count, note });
        }
        let new: Vec<NewNote> = report.commits.iter().filter_map(new_note).collect();
        if request.is_dry_run || new.is_empty() {
            return Ok(report);
        }
        match repository.write_notes(AI_NOTES, tip.as_deref(), &new)? {
            WrittenNotes::Written => return Ok(report),
            WrittenNotes::Moved => {}
        }
    }
    Err(NotesError::KeepsMoving)
}

fn new_note(note: &CommitNote) -> Option<NewNote> {
    let text = note.note.as_ref()?.clone().into_bytes();
    Some(NewNote { commit: note.commit.id.clone(), text })
}

fn outcome(note: Option<&AiNote>, there: Option<&[u8]>, foreign: ForeignNotes) -> NoteOutcome {
    let own = there.and_then(|there| AiNote::parse(there).ok()).filter(|there| there.own.is_some());
    match (note, there, own) {
        (None, ..) => NoteOutcome::NothingKnown,
        (Some(_), None, _) => NoteOutcome::Written,
        (Some(note), Some(_), Some(own)) if own.says_the_same(note) => NoteOutcome::Unchanged,
        (Some(note), Some(_), Some(own)) if own.lines() > note.lines() => NoteOutcome::LeftFuller,
        (Some(_), Some(_), Some(_)) => NoteOutcome::Replaced,
        (Some(_), Some(_), None) if foreign == ForeignNotes::Replace => NoteOutcome::Replaced,
        (Some(_), Some(_), None) => NoteOutcome::LeftForeign,
    }
}

/// Makes the notes. A path is followed through the log once for all commits.
struct Drafts<'w> {
    workspace: &'w Workspace,
    repository: &'w Repository,
    user: Option<GitUser>,
    /// `None`: the log does not know the path.
    paths: HashMap<WorkPath, Option<AuthoredPath<'w>>>,
    wholes: RefCell<HashMap<SessionId, SessionId>>,
    problems: BTreeSet<String>,
}

impl<'w> Drafts<'w> {
    fn new(workspace: &'w Workspace, repository: &'w Repository) -> Self {
        Self {
            workspace,
            repository,
            user: repository.user(),
            paths: HashMap::new(),
            wholes: RefCell::default(),
            problems: BTreeSet::new(),
        }
    }

    fn draft(&mut self, named: &NamedCommit) -> Result<(Option<AiNote>, LineCount), NotesError> {
        let files = self.repository.committed_files(named)?;
        let (store, wholes) = (&*self.workspace.store, std::mem::take(&mut self.wholes));
        let whole_of = |session: &SessionId| whole_of(store, &wholes, session);
        let mut draft = NoteDraft::new(&named.commit, self.user.as_ref(), &whole_of);
        for file in files {
            let Some(path) = self.path_in_log(&file.path)? else {
                draft.count.unexplained += file.added.len();
                continue;
            };
            let found = path.lines_of(&file.text)?;
            let added: BTreeSet<usize> = file.added.iter().copied().collect();
            let lines = found.lines.iter().filter(|(number, _)| added.contains(number));
            let lines = lines.map(|(number, line)| (*number, &*line.writer));
            draft.add(&file.path, lines, file.added.len());
            self.problems.extend(found.problem);
        }
        let count = draft.count;
        let note = draft.finish();
        self.wholes = wholes;
        Ok((note, count))
    }

    /// A path from the top of the repository, followed through the log. `None`: the log does not know it.
    fn path_in_log(&mut self, path: &[u8]) -> Result<Option<&mut AuthoredPath<'w>>, StoreError> {
        let absolute = self.repository.top().join(std::ffi::OsStr::from_bytes(path));
        let Ok(inside) = absolute.strip_prefix(self.workspace.root.path()) else { return Ok(None) };
        let Ok(path) = WorkPath::new(inside.as_os_str().as_bytes()) else { return Ok(None) };
        if !self.paths.contains_key(&path) {
            let followed = match AuthoredPath::new(self.workspace, &path) {
                Ok(followed) => Some(followed),
                Err(BlameError::Store(error)) => return Err(error),
                Err(_) => None,
            };
            self.paths.insert(path.clone(), followed);
        }
        Ok(self.paths.get_mut(&path).and_then(Option::as_mut))
    }
}

/// The session that a subagent's session is a part of. A session that cannot be read is its own.
fn whole_of(
    store: &dyn Store,
    known: &RefCell<HashMap<SessionId, SessionId>>,
    session: &SessionId,
) -> SessionId {
    let mut known = known.borrow_mut();
    let found = known.entry(session.clone()).or_insert_with(|| {
        let record = store.session(session).ok().flatten();
        let whole = record.and_then(|record| record.whole().cloned());
        whole.unwrap_or_else(|| session.clone())
    });
    found.clone()
}
