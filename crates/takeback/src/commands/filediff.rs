//! Line counts of a path for display.

use std::io;

pub(crate) use takeback_core::history::{
    Comparison, Contents, DAMAGED, FileDiff, LineCounts, LineDiff, Lines, Part, Passage, Text,
    between,
};
use takeback_store::{Store, StoreError};

use crate::screen::{FAILURE, HINT, SUCCESS, WARNING, name};
use crate::table::Cell;

/// The path; of a renamed file, `OLD => NEW`.
pub(crate) fn path_name(diff: &FileDiff) -> String {
    match &diff.renamed_from {
        Some(old) => format!("{} => {}", name(old), name(&diff.path)),
        None => name(&diff.path),
    }
}

/// `+3 -1`, or a word if lines cannot be counted.
pub(crate) fn count_cell(diff: &FileDiff, store: &dyn Store) -> Result<Cell, StoreError> {
    if diff.is_folder() {
        return Ok(Cell::default());
    }
    Ok(match diff.compare(store)? {
        Comparison::Lines(Lines { insertions: 0, deletions: 0 }) => Cell::default(),
        Comparison::Lines(lines) => {
            let mut cell = Cell::new(SUCCESS, format!("+{}", lines.insertions));
            cell.push(FAILURE, format!(" -{}", lines.deletions));
            cell
        }
        Comparison::NotText => Cell::new(HINT, "not text"),
        Comparison::Damaged => Cell::new(WARNING, DAMAGED),
    })
}

pub(crate) enum PrintError {
    Store(StoreError),
    Io(io::Error),
}

impl From<StoreError> for PrintError {
    fn from(error: StoreError) -> Self {
        Self::Store(error)
    }
}

impl From<io::Error> for PrintError {
    fn from(error: io::Error) -> Self {
        Self::Io(error)
    }
}

impl From<PrintError> for crate::error::CommandError {
    fn from(error: PrintError) -> Self {
        match error {
            PrintError::Store(error) => error.into(),
            PrintError::Io(error) => error.into(),
        }
    }
}
