//! Plain SQLite: one row a transaction, durable before it is answered.

use std::path::Path;

use rusqlite::{Connection, params};

use crate::Result;

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Table {
    /// A checkpoint that can be found: its text under a category and a key.
    Keyed,
    /// A value under a number that counts up: the least there is.
    Bare,
}

pub(crate) struct PlainSqlite {
    connection: Connection,
    table: Table,
}

impl PlainSqlite {
    pub(crate) fn open(folder: &Path, table: Table) -> Result<Self> {
        let connection = Connection::open(folder.join("raw.db"))?;
        connection.execute_batch("PRAGMA journal_mode = WAL; PRAGMA synchronous = FULL;")?;
        connection.execute_batch(match table {
            Table::Keyed => {
                "CREATE TABLE persistence (
                     category TEXT NOT NULL,
                     key TEXT NOT NULL,
                     data TEXT NOT NULL,
                     created_at TEXT DEFAULT CURRENT_TIMESTAMP,
                     PRIMARY KEY (category, key)
                 );"
            }
            Table::Bare => "CREATE TABLE state (id INTEGER PRIMARY KEY, value BLOB NOT NULL);",
        })?;
        Ok(Self { connection, table })
    }

    /// Outside of an explicit transaction, a statement is one.
    pub(crate) fn put(&self, id: usize, value: &str) -> Result<()> {
        match self.table {
            Table::Keyed => self
                .connection
                .prepare_cached("INSERT INTO persistence (category, key, data) VALUES (?, ?, ?)")?
                .execute(params!["checkpoint", format!("ckpt-bench-{id}"), value])?,
            Table::Bare => self
                .connection
                .prepare_cached("INSERT INTO state VALUES (?1, ?2)")?
                .execute(params![i64::try_from(id)?, value.as_bytes()])?,
        };
        Ok(())
    }
}
