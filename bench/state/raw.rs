//! SQLite and nothing else: one row a transaction, on the disk before it is answered.

use std::path::Path;

use rusqlite::{Connection, params};
use takeback_bench::Result;

pub(crate) struct Raw {
    connection: Connection,
}

impl Raw {
    pub(crate) fn open(folder: &Path) -> Result<Self> {
        let connection = Connection::open(folder.join("raw.db"))?;
        connection.execute_batch(
            "PRAGMA journal_mode = WAL;
             PRAGMA synchronous = FULL;
             CREATE TABLE state (id INTEGER PRIMARY KEY, value BLOB NOT NULL);",
        )?;
        Ok(Self { connection })
    }

    pub(crate) fn put(&self, id: usize, value: &[u8]) -> Result<()> {
        // Outside of an explicit transaction a statement is one.
        self.connection
            .prepare_cached("INSERT INTO state VALUES (?1, ?2)")?
            .execute(params![i64::try_from(id)?, value])?;
        Ok(())
    }
}
