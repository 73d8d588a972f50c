//! Rows of nodes, and the walks over all steps for collection and checks.

use rusqlite::{Connection, params};

use super::{Result, STEP, StepRow, name, step_row};
use crate::sqlite::state::tree::NewNodes;
use crate::state::ExecutionId;

/// Stores new nodes and sets their numbers; an equal node that exists is reused.
pub(in crate::sqlite::state) fn keep_nodes(db: &Connection, new: NewNodes) -> Result<()> {
    let mut select = db.prepare_cached("SELECT id, rest FROM node WHERE start = ?")?;
    let mut insert = db.prepare_cached("INSERT INTO node (start, rest, body) VALUES (?, ?, ?)")?;
    for node in new.nodes {
        let part = node.part.clone();
        let (start, rest) = part.digest.0.split_first_chunk::<8>().expect("a digest has 32 bytes");
        let start = i64::from_le_bytes(*start);
        let mut same = None;
        let mut rows = select.query([start])?;
        while let Some(row) = rows.next()? {
            if row.get_ref(1)?.as_blob().is_ok_and(|other| other == rest) {
                same = Some(row.get(0)?);
                break;
            }
        }
        let number: i64 = match same {
            Some(number) => number,
            None => insert.insert(params![start, rest, node.body.packed()])?,
        };
        part.set_number(number.cast_unsigned());
    }
    Ok(())
}

/// The number of steps ever deleted. The row number of a deleted step may be reused.
pub(in crate::sqlite::state) fn deleted(db: &Connection) -> Result<i64> {
    let mut select = db.prepare_cached("SELECT steps_deleted FROM meta")?;
    Ok(select.query_row([], |row| row.get(0))?)
}

/// The number of sweeps so far.
pub(in crate::sqlite::state) fn sweeps(db: &Connection) -> Result<i64> {
    let mut select = db.prepare_cached("SELECT state_sweeps FROM meta")?;
    Ok(select.query_row([], |row| row.get(0))?)
}

/// Passes the bodies of the steps after one, and of all documents, to `take`.
pub(in crate::sqlite::state) fn each_body(
    db: &Connection,
    after: i64,
    take: &mut dyn FnMut(Vec<u8>) -> Result<()>,
) -> Result<i64> {
    let mut last = after;
    let mut select = db.prepare("SELECT id, body FROM step WHERE id > ? ORDER BY id")?;
    let mut rows = select.query([after])?;
    while let Some(row) = rows.next()? {
        last = row.get(0)?;
        take(row.get(1)?)?;
    }
    let mut select = db.prepare("SELECT body FROM document")?;
    let mut rows = select.query([])?;
    while let Some(row) = rows.next()? {
        take(row.get(0)?)?;
    }
    Ok(last)
}

/// Passes every step with its execution to `take`.
pub(in crate::sqlite::state) fn each_step(
    db: &Connection,
    take: &mut dyn FnMut(Result<(ExecutionId, StepRow)>),
) -> Result<()> {
    let columns = STEP.split(", ").map(|column| format!("step.{column}")).collect::<Vec<_>>();
    let mut select = db.prepare(&format!(
        "SELECT {}, execution.name FROM step JOIN execution ON execution.id = step.execution
         ORDER BY step.id",
        columns.join(", ")
    ))?;
    let mut rows = select.query([])?;
    while let Some(row) = rows.next()? {
        take(
            step_row(row)
                .and_then(|step| Ok((name(row.get(11)?, "an execution", ExecutionId::new)?, step))),
        );
    }
    Ok(())
}

pub(in crate::sqlite::state) fn sweep(
    db: &Connection,
    is_used: &dyn Fn(u64) -> bool,
) -> Result<()> {
    let unused: Vec<i64> = {
        let mut select = db.prepare("SELECT id FROM node")?;
        let ids = select.query_map([], |row| row.get::<_, i64>(0))?;
        ids.filter(|id| !matches!(id, Ok(id) if is_used(id.cast_unsigned())))
            .collect::<rusqlite::Result<_>>()?
    };
    let mut delete = db.prepare("DELETE FROM node WHERE id = ?")?;
    for id in unused {
        delete.execute([id])?;
    }
    // In the same transaction: handles compare the count before they reuse the number of a node.
    db.execute("UPDATE meta SET state_sweeps = state_sweeps + 1", [])?;
    Ok(())
}

pub(in crate::sqlite::state) fn vacuum(db: &Connection) -> Result<()> {
    for pragma in ["PRAGMA incremental_vacuum", "PRAGMA wal_checkpoint(TRUNCATE)"] {
        let mut statement = db.prepare(pragma)?;
        let mut rows = statement.query([])?;
        while rows.next()?.is_some() {}
    }
    Ok(())
}
