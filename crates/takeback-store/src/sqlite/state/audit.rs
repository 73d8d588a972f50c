//! Walks every step: marks the nodes in use, and checks what is stored.

use std::collections::{HashMap, HashSet};

use rusqlite::Connection;

use super::nodes::Nodes;
use super::rows::{self, RowError, StepRow};
use super::save::head_hasher;
use super::tree;
use crate::blob::Digest;
use crate::state::{CheckpointKey, ExecutionId};

/// Adds the nodes that steps after `after` and all documents use. Returns the last step. For a
/// damaged value it adds the nodes that could be read: damage must not block collection.
pub(super) fn mark(db: &Connection, after: i64, used: &mut HashSet<u64>) -> rows::Result<i64> {
    let mut nodes = Nodes::of(db)?;
    rows::each_body(db, after, &mut |packed| {
        let Some(body) = tree::unpack(&packed) else { return Ok(()) };
        match tree::parts_of(&body, &mut nodes, &mut |number, _| used.insert(number)) {
            Err(RowError::Tree(_)) => Ok(()),
            marked => marked,
        }
    })
}

/// Describes what is wrong with a step; `None` if nothing is.
pub(super) fn check_step(
    db: &Connection,
    execution: ExecutionId,
    row: &StepRow,
    known: &mut HashMap<u64, Digest>,
) -> rows::Result<Option<String>> {
    let key = CheckpointKey { execution, step: row.step, attempt: row.attempt };
    let packed = rows::body_of(db, row.id)?;
    let Some(body) = tree::unpack(&packed) else {
        return Ok(Some(format!("{key} is damaged: its values cannot be unpacked")));
    };
    let mut hasher = head_hasher(&row.name, row.status, row.error.as_deref());
    match tree::verify(&body, 4, &mut hasher, &mut Nodes::of(db)?, known) {
        Err(RowError::Tree(broken)) => return Ok(Some(format!("{key} is damaged: {broken}"))),
        verified => verified?,
    }
    let found = Digest(*hasher.finalize().as_bytes());
    let expected = row.digest;
    Ok((found != expected)
        .then(|| format!("{key} is damaged: its digest should be {expected} and is {found}")))
}
