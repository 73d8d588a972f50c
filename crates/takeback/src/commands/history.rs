//! `history PATH`: the points after which a file changed, across renames.

use std::io::Write as _;
use std::os::unix::ffi::OsStrExt as _;
use std::path::Path;

use takeback_core::Workspace;
use takeback_core::history::{FileDiff, FileRow, path_history};
use takeback_store::{Entry, WorkPath};

use super::log::{by_author, described, party_cell, taken_back};
use super::rewind::path_from_root;
use crate::answers;
use crate::args::{HistoryArgs, Options};
use crate::error::{CommandError, Kind};
use crate::place::{self, Store};
use crate::screen::{HINT, NAME, Screen, columns, name, plain, plain_bytes};
use crate::table::{Cell, Overflow, Table};
use crate::time::{ago, now};

pub(crate) fn history(
    options: &Options,
    args: &HistoryArgs,
    screen: &mut Screen,
) -> Result<u8, CommandError> {
    let mut place = place::open_recovered(options, Store::MustExist)?;
    let path = work_path(&place.workspace, options, &args.path)?;
    takeback_core::look_around_if_changed(&mut place.workspace, &path)?;
    let rows = rows(&place.workspace, options, &args.path, args.limit)?;
    if screen.json {
        screen.json(&answer(&rows))?;
        return Ok(0);
    }
    screen.page()?;
    print(&rows, args.limit, screen)?;
    Ok(0)
}

/// A longer rename has a line of its own.
const RENAME_MAX: usize = 24;

pub(crate) fn print(
    rows: &[FileRow],
    limit: usize,
    screen: &mut Screen,
) -> Result<(), CommandError> {
    let time = now();
    let overflows = [
        Overflow::Nothing,
        Overflow::All(1),
        Overflow::End(RENAME_MAX),
        Overflow::End(20),
        Overflow::All(2),
    ];
    let mut table = Table::new(0, overflows);
    let mut old_names = Vec::new();
    for row in rows {
        let (id, title) = match &row.point {
            Some(point) => (point.id.to_string()[..8].to_owned(), plain(&described(point))),
            None => ("–".to_owned(), "before the first point".to_owned()),
        };
        let at = row.changes.last().map(|change| ago(change.time, time)).unwrap_or_default();
        let what = what(row);
        // The old name is what one looks for in such a row.
        let is_long = columns(&what) > RENAME_MAX;
        let old_name = row.renamed_from.as_ref().filter(|_| is_long).map(name);
        table.rows.push([
            Cell::new(NAME, id),
            Cell::new(HINT, at),
            Cell::new(HINT, if old_name.is_some() { "renamed".to_owned() } else { what }),
            Cell::plain(title),
            party_cell(&row.tally),
        ]);
        old_names.push(old_name);
    }
    let mut lines = Vec::new();
    table.print(&mut lines)?;
    for (line, old_name) in lines.split_inclusive(|byte| *byte == b'\n').zip(old_names) {
        screen.out.write_all(line)?;
        if let Some(old_name) = old_name {
            writeln!(screen.out, "{HINT}          from {old_name}{HINT:#}")?;
        }
    }
    if rows.len() == limit {
        writeln!(screen.out, "{HINT}there may be more; -n shows them{HINT:#}")?;
    }
    Ok(())
}

/// The newest rows of a path, which the user wrote relative to the current folder.
pub(crate) fn rows(
    workspace: &Workspace,
    options: &Options,
    path: &Path,
    limit: usize,
) -> Result<Vec<FileRow>, CommandError> {
    rows_of(workspace, &work_path(workspace, options, path)?, limit)
}

/// The newest rows of a path from the root.
pub(crate) fn rows_of(
    workspace: &Workspace,
    path: &WorkPath,
    limit: usize,
) -> Result<Vec<FileRow>, CommandError> {
    let rows = path_history(&*workspace.store, path, limit)?;
    if rows.is_empty() && limit > 0 { Err(never_recorded(path)) } else { Ok(rows) }
}

/// A path that the user wrote, from the root.
pub(crate) fn work_path(
    workspace: &Workspace,
    options: &Options,
    path: &Path,
) -> Result<WorkPath, CommandError> {
    let inside = path_from_root(workspace, &place::start(options)?, path);
    WorkPath::new(inside.as_os_str().as_bytes()).map_err(|_not_a_path| not_a_file(path))
}

pub(crate) fn not_a_file(path: &Path) -> CommandError {
    let path = plain_bytes(path.as_os_str().as_bytes());
    CommandError::new(Kind::Usage, format!("{path} is not the path of a file"))
}

/// Why a question about a path has no answer.
#[derive(Debug, thiserror::Error)]
pub(crate) enum PathError {
    #[error("{0} was never recorded")]
    NeverRecorded(String),
    #[error("{path} {what} at point {point}")]
    NotAtPoint { path: String, what: String, point: String },
    #[error("{path} has {lines}, and no line {line}")]
    NoLine { path: String, lines: String, line: usize },
    #[error("{path} is not text at point {point}")]
    NotText { path: String, point: String },
}

pub(crate) fn never_recorded(path: &WorkPath) -> CommandError {
    CommandError::new(Kind::Error, PathError::NeverRecorded(name(path))).hint(
        "`takeback status` shows what is covered; `takeback log PATH` also takes folders and globs.",
    )
}

pub(crate) fn answer(rows: &[FileRow]) -> answers::HistoryAnswer {
    let row = |row: &FileRow| answers::FileRow {
        path: answers::path(&row.path),
        renamed_from: row.renamed_from.as_ref().map(|path| answers::path(path).file_path),
        point: row.point.as_ref().map(|point| answers::Id::new(point.id)),
        session: row.point.as_ref().and_then(|point| point.session.clone()).map(|id| id.0),
        description: row.point.as_ref().map_or_else(String::new, |point| point.description.clone()),
        at: answers::time(row.changes.last().map_or(takeback_store::Timestamp(0), |one| one.time)),
        what: what(row),
        by_author: by_author(&row.tally),
        taken_back: taken_back(row.tally.taken_back),
    };
    rows.iter().map(row).collect()
}

fn what(row: &FileRow) -> String {
    let (Some(first), Some(last)) = (row.changes.first(), row.changes.last()) else {
        return String::new();
    };
    let (path, before, after) = (row.path.clone(), first.before.clone(), last.after.clone());
    match (&row.renamed_from, &before) {
        (Some(old), _) => format!("renamed from {}", name(old)),
        (None, Entry::Unknown) => "first seen".to_owned(),
        (None, _) => FileDiff::new(path, before, after).what(),
    }
}
