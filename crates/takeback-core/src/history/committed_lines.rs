//! Who wrote the lines of a file in a folder that has no log: git, and the notes and traces of the commits.

use std::io;
use std::path::{Path, PathBuf};
use std::sync::Arc;

use super::authored_lines::{AuthoredFile, AuthoredLine, ForeignRecords, LineWriter, from_commit};
use super::lines::split_lines;
use crate::git::{CommitLine, GitError, Repository, is_text};

/// Why git does not know the lines.
#[derive(Debug, thiserror::Error)]
#[expect(missing_docs, reason = "the messages say what the fields are")]
pub enum CommittedLinesError {
    #[error("{} is not in a git repository", path.display())]
    NoRepository { path: PathBuf },
    #[error("cannot read {}", path.display())]
    Read { path: PathBuf, source: io::Error },
    #[error("{} is not text, or too large", path.display())]
    NotText { path: PathBuf },
    #[error(transparent)]
    Git(#[from] GitError),
}

/// The lines of a file as it is on disk. Lines that are not committed have no known writer.
pub fn committed_lines(file: &Path) -> Result<AuthoredFile, CommittedLinesError> {
    let path = || file.to_owned();
    let repository = file.parent().and_then(Repository::around);
    let no_repository = || CommittedLinesError::NoRepository { path: path() };
    let repository = repository.ok_or_else(no_repository)?;
    let below = repository.path_of(file).ok_or_else(no_repository)?;
    let text =
        std::fs::read(file).map_err(|source| CommittedLinesError::Read { path: path(), source })?;
    if !is_text(&text) {
        return Err(CommittedLinesError::NotText { path: path() });
    }
    let commits = repository.blame_text(below, &text)?;
    let records = ForeignRecords::read(Some(&repository), commits.iter().flatten());
    let unknown = Arc::new(LineWriter::default());
    let mut writers = CommitWriters::default();
    let mut lines = Vec::new();
    for (text, commit) in split_lines(&text).zip(&commits) {
        let writer = match commit {
            Some(line) => writers.of(line, &records),
            None => unknown.clone(),
        };
        lines.push(AuthoredLine { text: text.to_vec(), writer, number_then: None });
    }
    Ok(AuthoredFile { lines, problems: records.problems })
}

/// Neighbouring lines of one writer share it.
#[derive(Default)]
struct CommitWriters {
    known: Vec<Arc<LineWriter>>,
}

impl CommitWriters {
    fn of(&mut self, line: &CommitLine, records: &ForeignRecords) -> Arc<LineWriter> {
        let writer = from_commit(&line.commit, records.author_of(line));
        let is_same = |known: &&Arc<LineWriter>| {
            let (a, b) = (&***known, &writer);
            (&a.commit, a.source, a.author) == (&b.commit, b.source, b.author)
                && (&a.session, &a.agent, &a.model, a.evidence)
                    == (&b.session, &b.agent, &b.model, b.evidence)
        };
        if let Some(known) = self.known.iter().rev().find(is_same) {
            return known.clone();
        }
        let writer = Arc::new(writer);
        self.known.push(writer.clone());
        writer
    }
}
