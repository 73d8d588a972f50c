//! Rows of branches, lines and head moves.

use rusqlite::{Connection, OptionalExtension as _, params};

use super::{BranchRow, Result, StepRow, damaged, name};
use crate::id::RewindId;
use crate::state::BranchName;

pub(in crate::sqlite::state) fn branch_named(
    db: &Connection,
    execution: i64,
    name: &BranchName,
) -> Result<Option<BranchRow>> {
    let mut select =
        db.prepare_cached("SELECT id, line FROM branch WHERE execution = ? AND name = ?")?;
    let row = select.query_row(params![execution, name.as_str().as_bytes()], |row| {
        Ok(BranchRow { id: row.get(0)?, name: name.clone(), line: row.get(1)? })
    });
    Ok(row.optional()?)
}

pub(in crate::sqlite::state) fn branch(db: &Connection, id: i64) -> Result<BranchRow> {
    let mut select = db.prepare_cached("SELECT name, line FROM branch WHERE id = ?")?;
    let row = select.query_row([id], |row| Ok((row.get(0)?, row.get(1)?))).optional()?;
    let (bytes, line) = row.ok_or_else(|| damaged(format!("branch {id}"), "it is not there"))?;
    Ok(BranchRow { id, name: name(bytes, "a branch", BranchName::new)?, line })
}

pub(in crate::sqlite::state) fn branches(
    db: &Connection,
    execution: i64,
) -> Result<Vec<BranchRow>> {
    let mut select =
        db.prepare_cached("SELECT id, name, line FROM branch WHERE execution = ? ORDER BY id")?;
    let rows = select.query_and_then([execution], |row| {
        let name = name(row.get(1)?, "a branch", BranchName::new)?;
        Ok(BranchRow { id: row.get(0)?, name, line: row.get(2)? })
    })?;
    rows.collect()
}

pub(in crate::sqlite::state) fn insert_branch(
    db: &Connection,
    execution: i64,
    name: &BranchName,
) -> Result<i64> {
    let mut insert =
        db.prepare_cached("INSERT INTO branch (execution, name, line) VALUES (?, ?, 0)")?;
    Ok(insert.insert(params![execution, name.as_str().as_bytes()])?)
}

pub(in crate::sqlite::state) fn rename_branch(
    db: &Connection,
    branch: i64,
    name: &BranchName,
) -> Result<()> {
    let mut update = db.prepare_cached("UPDATE branch SET name = ? WHERE id = ?")?;
    update.execute(params![name.as_str().as_bytes(), branch])?;
    Ok(())
}

pub(in crate::sqlite::state) fn set_current(
    db: &Connection,
    execution: i64,
    branch: i64,
) -> Result<()> {
    let mut update = db.prepare_cached("UPDATE execution SET branch = ? WHERE id = ?")?;
    update.execute([branch, execution])?;
    Ok(())
}

pub(in crate::sqlite::state) fn set_line(db: &Connection, branch: i64, line: i64) -> Result<()> {
    db.prepare_cached("UPDATE branch SET line = ? WHERE id = ?")?.execute([line, branch])?;
    Ok(())
}

/// Adds a line that begins after a step, or that is the first.
pub(in crate::sqlite::state) fn insert_line(
    db: &Connection,
    execution: i64,
    branch: i64,
    after: Option<&StepRow>,
) -> Result<i64> {
    let mut insert = db.prepare_cached(
        "INSERT INTO line (execution, branch, parent, forked_at, head) VALUES (?1, ?2, ?3, ?4, ?4)",
    )?;
    let (parent, forked_at) = (after.map(|step| step.line), after.map(|step| step.id));
    Ok(insert.insert(params![execution, branch, parent, forked_at])?)
}

/// The branch that a rewind moved, the line it left and the line it moved to.
pub(in crate::sqlite::state) fn head_move(
    db: &Connection,
    execution: i64,
    id: RewindId,
) -> Result<Option<(i64, i64, i64)>> {
    let mut select = db.prepare_cached(
        "SELECT branch, left_line, line FROM head_move WHERE rewind = ? AND execution = ?",
    )?;
    let row = select.query_row([id.0.cast_signed(), execution], |row| {
        Ok((row.get(0)?, row.get(1)?, row.get(2)?))
    });
    Ok(row.optional()?)
}

pub(in crate::sqlite::state) fn insert_head_move(
    db: &Connection,
    execution: i64,
    id: RewindId,
    (branch, from, to): (i64, i64, i64),
) -> Result<()> {
    let mut insert = db.prepare_cached("INSERT INTO head_move VALUES (?, ?, ?, ?, ?)")?;
    insert.execute([id.0.cast_signed(), execution, branch, from, to])?;
    Ok(())
}

pub(in crate::sqlite::state) fn has_line(
    db: &Connection,
    execution: i64,
    line: i64,
) -> Result<bool> {
    let mut select = db.prepare_cached("SELECT 1 FROM line WHERE id = ? AND execution = ?")?;
    Ok(select.exists([line, execution])?)
}

pub(in crate::sqlite::state) fn head_of(db: &Connection, line: i64) -> Result<Option<i64>> {
    let mut select = db.prepare_cached("SELECT head FROM line WHERE id = ?")?;
    Ok(select.query_row([line], |row| row.get(0)).optional()?.flatten())
}

pub(in crate::sqlite::state) fn set_head(db: &Connection, line: i64, head: i64) -> Result<()> {
    db.prepare_cached("UPDATE line SET head = ? WHERE id = ?")?.execute([head, line])?;
    Ok(())
}

/// The chain of lines from one line to the first, each with the last step that belongs to it.
#[derive(Debug, Clone, Default)]
pub(in crate::sqlite::state) struct Lineage(Vec<(i64, i64)>);

impl Lineage {
    pub(in crate::sqlite::state) fn of(db: &Connection, line: i64) -> Result<Self> {
        let mut select = db.prepare_cached("SELECT parent, forked_at FROM line WHERE id = ?")?;
        let mut lines = vec![(line, i64::MAX)];
        let mut at = line;
        loop {
            let row = select
                .query_row([at], |row| Ok((row.get::<_, Option<i64>>(0)?, row.get(1)?)))
                .optional()?;
            let Some((Some(parent), Some(until))) = row else { return Ok(Self(lines)) };
            // A parent is older than its child; anything else is damage and would loop.
            if parent >= at {
                return Err(damaged(format!("line {at}"), "it begins on a later one"));
            }
            lines.push((parent, until));
            at = parent;
        }
    }

    pub(in crate::sqlite::state) fn has(&self, step: &StepRow) -> bool {
        // A line may occur more than once: only its nearest occurrence counts, and each fork also
        // limits everything after it.
        let mut most = i64::MAX;
        self.0.iter().any(|(line, until)| {
            most = most.min(*until);
            *line == step.line && step.id <= most
        })
    }
}
