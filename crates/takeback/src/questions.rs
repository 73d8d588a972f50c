//! The questions of [`Takeback`]: the log, who wrote a line and why, the history of a file, how much each
//! author wrote, what differs between points, and what made a command fail. Each looks at the tree first, so
//! what was just saved is answered too.

use std::path::Path;

use takeback_core::history::{
    self, AuthorDiff, AuthorFilter, AuthoredFile, AuthoredLine, FileRow, LogQuery, LogRow,
    PointRow, Stats,
};
use takeback_core::{Workspace, git_state, look_around};
use takeback_store::{Point, PointId, PointQuery, Timestamp, WorkPath};

use crate::commands::bisect::{self, BisectQuery, BisectResult};
use crate::commands::{blame, cat, diff, history::rows_of, stats};
use crate::error::{CommandError, Kind};
use crate::takeback::Takeback;

/// Why a question has no answer. Displays the cause and what to do about it.
#[derive(Debug, thiserror::Error)]
#[error("{message}")]
pub struct QuestionError {
    message: String,
    source: Box<dyn std::error::Error + Send + Sync>,
}

impl From<CommandError> for QuestionError {
    fn from(error: CommandError) -> Self {
        Self { message: error.line(), source: error.source }
    }
}

/// What [`Takeback::diff`] compares.
#[derive(Debug, Clone)]
pub struct DiffQuery {
    /// The point to compare from.
    pub from: PointId,
    /// What to compare it with.
    pub to: DiffEnd,
    /// Only what this author changed; `None`: everything.
    pub by: Option<AuthorFilter>,
    /// Only these globs from the root; without any, every path.
    pub paths: Vec<String>,
}

/// Where a diff ends.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum DiffEnd {
    /// The files as they are.
    Now,
    /// Another point, which may be older.
    Point(PointId),
    /// The end of the turn that began at the point: what its agent changed, also if that was taken back
    /// later.
    Turn,
}

/// What [`Takeback::stats`] counts. The default is everything.
#[derive(Debug, Clone, Default)]
pub struct StatsQuery {
    /// What was written after this point.
    pub from: Option<PointId>,
    /// What was written before this point.
    pub to: Option<PointId>,
    /// What was written since then.
    pub since: Option<Timestamp>,
}

impl DiffQuery {
    /// Everything that differs between a point and the files as they are.
    #[must_use]
    pub fn since(from: PointId) -> Self {
        Self { from, to: DiffEnd::Now, by: None, paths: Vec::new() }
    }
}

/// Paths are relative to the root.
impl Takeback {
    /// Points and operations (rewinds, undos, redos), newest first, with what happened after each, counted
    /// by author.
    pub fn log(&self, query: &LogQuery) -> Result<Vec<LogRow>, QuestionError> {
        self.ask(|workspace| Ok(history::log(&*workspace.store, query)?))
    }

    /// One point, and what happened until the next.
    pub fn show(&self, point: PointId) -> Result<PointRow, QuestionError> {
        self.ask(|workspace| {
            let git_now = git_state(workspace.root.path());
            Ok(PointRow::of(&*workspace.store, point_of(workspace, point)?, git_now.as_ref())?)
        })
    }

    /// What differs between two points, or one author's part of it.
    pub fn diff(&self, query: &DiffQuery) -> Result<AuthorDiff, QuestionError> {
        self.ask(|workspace| diff::compare(workspace, query))
    }

    /// The lines of a file as it is now, each with its writer.
    pub fn blame(&self, path: impl AsRef<Path>) -> Result<AuthoredFile, QuestionError> {
        self.ask(|workspace| {
            let path = work_path(workspace, path.as_ref())?;
            blame::authored(workspace, &path)
        })
    }

    /// The line with this number, from 1, and its writer: the prompt, the call and the change.
    pub fn why(&self, path: impl AsRef<Path>, line: usize) -> Result<AuthoredLine, QuestionError> {
        self.ask(|workspace| {
            let path = work_path(workspace, path.as_ref())?;
            let mut lines = blame::authored(workspace, &path)?.lines;
            if line == 0 || line > lines.len() {
                return Err(blame::no_line(&path, lines.len(), line));
            }
            Ok(lines.swap_remove(line - 1))
        })
    }

    /// The points after which a file changed, newest first, across renames; at most `limit`.
    pub fn history(
        &self,
        path: impl AsRef<Path>,
        limit: usize,
    ) -> Result<Vec<FileRow>, QuestionError> {
        self.ask(|workspace| {
            let path = work_path(workspace, path.as_ref())?;
            rows_of(workspace, &path, limit)
        })
    }

    /// Who wrote how much, and what is left of it.
    pub fn stats(&self, query: &StatsQuery) -> Result<Stats, QuestionError> {
        self.ask(|workspace| {
            let seq = |point: Option<PointId>| match point {
                Some(point) => Ok(Some(point_of(workspace, point)?.seq)),
                None => Ok::<_, CommandError>(None),
            };
            let (from, to) = (seq(query.from)?, seq(query.to)?);
            stats::count_between(workspace, from, to, query.since)
        })
    }

    /// The bytes of a file at a point; of a link, where it leads.
    pub fn cat(&self, point: PointId, path: impl AsRef<Path>) -> Result<Vec<u8>, QuestionError> {
        self.ask(|workspace| {
            let point = point_of(workspace, point)?;
            cat::contents_at(workspace, &point, &work_path(workspace, path.as_ref())?)
        })
    }

    /// The prompt and the tool call after which a command fails.
    ///
    /// The command runs about log2 times, with the user's rights, in a scratch copy of the recorded files and
    /// never in the workspace. What it prints is dropped. This waits until the command has ended each time,
    /// and calls from other threads wait, too.
    pub fn bisect(&self, query: &BisectQuery) -> Result<BisectResult, QuestionError> {
        Ok(self.with_workspace(|workspace| bisect::run(workspace, query))?)
    }

    fn ask<R>(
        &self,
        question: impl FnOnce(&Workspace) -> Result<R, CommandError>,
    ) -> Result<R, QuestionError> {
        let answer = self.with_workspace(|workspace| {
            look_around(workspace)?;
            question(workspace)
        });
        Ok(answer?)
    }
}

pub(crate) fn point_of(workspace: &Workspace, id: PointId) -> Result<Point, CommandError> {
    let found = workspace.store.find_points(PointQuery::Id(id))?.pop();
    found.ok_or_else(|| takeback_core::rewind::RewindError::NoPoint(id).into())
}

fn work_path(workspace: &Workspace, path: &Path) -> Result<WorkPath, CommandError> {
    workspace.resolve(path).ok_or_else(|| {
        CommandError::new(Kind::Usage, format!("{} is not the path of a file", path.display()))
    })
}
