//! Rows of blobs, and the size of the database file.

use rusqlite::{Connection, Row};

use super::RowError;
use crate::blob::{Digest, Encoding};
use crate::sqlite::encoding::{signed, unsigned};
use crate::sqlite::pack::{HEADER, Location};
use crate::store::Usage;

pub(in crate::sqlite) fn has_blobs(db: &Connection) -> Result<bool, RowError> {
    Ok(db.prepare_cached("SELECT 1 FROM blob LIMIT 1")?.exists([])?)
}

pub(in crate::sqlite) fn has_blob(db: &Connection, digest: &Digest) -> Result<bool, RowError> {
    Ok(db.prepare_cached("SELECT 1 FROM blob WHERE digest = ?1")?.exists([&digest.0[..]])?)
}

pub(in crate::sqlite) fn blob(
    db: &Connection,
    digest: &Digest,
) -> Result<Option<Location>, RowError> {
    let mut select = db.prepare_cached(
        "SELECT segment, offset, length, size, encoding FROM blob WHERE digest = ?1",
    )?;
    select.query_and_then([&digest.0[..]], |row| location(row, 0, digest))?.next().transpose()
}

pub(in crate::sqlite) fn drop_blob(db: &Connection, digest: &Digest) -> Result<(), RowError> {
    db.prepare_cached("DELETE FROM blob WHERE digest = ?1")?.execute([&digest.0[..]])?;
    Ok(())
}

pub(in crate::sqlite) fn move_blob(
    db: &Connection,
    digest: &Digest,
    from: &Location,
    to: &Location,
) -> Result<(), RowError> {
    let mut update = db.prepare_cached(
        "UPDATE blob SET segment = ?4, offset = ?5, length = ?6, encoding = ?7
         WHERE digest = ?1 AND segment = ?2 AND offset = ?3",
    )?;
    update.execute(rusqlite::params![
        &digest.0[..],
        from.segment,
        signed(from.offset),
        to.segment,
        signed(to.offset),
        to.length,
        to.encoding as u8,
    ])?;
    Ok(())
}

/// Deletes paths and authors that no change refers to.
pub(in crate::sqlite) fn drop_orphans(db: &Connection) -> Result<(), RowError> {
    for delete in [
        "DELETE FROM path WHERE id NOT IN (SELECT path FROM change)",
        "DELETE FROM author WHERE id NOT IN (SELECT author FROM change WHERE author IS NOT NULL)",
    ] {
        db.prepare_cached(delete)?.execute([])?;
    }
    Ok(())
}

/// Returns free pages to the system in small steps: pages from the end move into free ones. Other
/// processes do not wait long, and SQLite's log does not grow to the size of the database.
pub(in crate::sqlite) fn vacuum(db: &Connection) -> Result<(), RowError> {
    let free = || db.pragma_query_value(None, "freelist_count", |row| row.get::<_, i64>(0));
    let mut left = free()?;
    while left > 0 {
        all_steps(db, "PRAGMA incremental_vacuum(512)")?;
        checkpoint(db)?;
        let now = free()?;
        if now >= left {
            break;
        }
        left = now;
    }
    all_steps(db, "PRAGMA wal_checkpoint(TRUNCATE)")
}

/// Copies SQLite's log into the database, as far as no reader needs the older pages.
pub(in crate::sqlite) fn checkpoint(db: &Connection) -> Result<(), RowError> {
    all_steps(db, "PRAGMA wal_checkpoint(PASSIVE)")
}

/// Rewrites the whole database, so that its file contains no deleted data.
pub(in crate::sqlite) fn rewrite(db: &Connection) -> Result<(), RowError> {
    db.execute_batch("VACUUM")?;
    all_steps(db, "PRAGMA wal_checkpoint(TRUNCATE)")
}

/// Runs a pragma to its end: each step does only part of the work.
fn all_steps(db: &Connection, pragma: &str) -> Result<(), RowError> {
    let mut statement = db.prepare(pragma)?;
    let mut rows = statement.query([])?;
    while rows.next()?.is_some() {}
    Ok(())
}

pub(in crate::sqlite) fn usage(db: &Connection) -> Result<Usage, RowError> {
    let mut select = db.prepare_cached(
        "SELECT count(*), coalesce(sum(length + ?1), 0), coalesce(sum(size) FILTER (WHERE encoding <> 2), 0),
             (SELECT count(*) FROM change)
         FROM blob",
    )?;
    Ok(select.query_row([signed(HEADER as u64)], |row| {
        Ok(Usage {
            blobs: unsigned(row.get(0)?),
            kept: unsigned(row.get(1)?),
            contents: unsigned(row.get(2)?),
            changes: unsigned(row.get(3)?),
            ..Usage::default()
        })
    })?)
}

/// Passes every blob with its location to the callback, in the order of the segments.
pub(in crate::sqlite) fn each_blob(
    db: &Connection,
    take: &mut dyn FnMut(Result<(Digest, Location), RowError>),
) -> Result<(), RowError> {
    let mut select = db.prepare(
        "SELECT digest, segment, offset, length, size, encoding FROM blob ORDER BY segment, offset",
    )?;
    let blobs = select.query_and_then([], |row| {
        let digest = Digest(row.get(0)?);
        Ok((digest, location(row, 1, &digest)?))
    })?;
    blobs.for_each(take);
    Ok(())
}

fn location(row: &Row<'_>, first: usize, digest: &Digest) -> Result<Location, RowError> {
    let encoding = row.get(first + 4).ok().and_then(Encoding::from_byte);
    Ok(Location {
        segment: row.get(first)?,
        offset: unsigned(row.get(first + 1)?),
        length: row.get(first + 2)?,
        size: unsigned(row.get(first + 3)?),
        encoding: encoding.ok_or_else(|| RowError::Damaged {
            what: format!("the place of the contents {digest}"),
            why: "its encoding",
        })?,
    })
}
