//! Connections to a store's database: creation, identity, settings, and SQLite's errors.

use std::io;
use std::os::unix::ffi::OsStrExt as _;
use std::path::{Path, PathBuf};
use std::time::Duration;

use rusqlite::config::DbConfig;
use rusqlite::{Connection, ErrorCode, OpenFlags};
use rustix::io::Errno;

use super::sums;
use crate::store::StoreError;

/// The format this Takeback reads and writes. It may still change until the first release.
pub(super) const FORMAT: i64 = 1;

/// `TkBS`.
const APPLICATION_ID: i64 = 0x546b_4253;

/// The id of stores that were written before the first release, in several formats.
const PRE_RELEASE_ID: i64 = 0x546b_426b;

/// How long a connection waits for another process before it gives up.
const BUSY_TIMEOUT: Duration = Duration::from_secs(5);

/// A longer SQLite log is checkpointed when the store is opened. The first connection reads the whole
/// log (2 µs a page), while a checkpoint waits for the disk twice. A commit is about 15 pages.
const LOG_LIMIT: u64 = 128 * 4120;

/// Connects to the store at `path`.
pub(super) fn open(path: &Path) -> Result<Connection, StoreError> {
    if !path.try_exists().map_err(|source| io_error(path, "looking for it", source))? {
        let left = left_of(path).map_err(|source| io_error(path, "looking for its packs", source));
        return Err(match left? {
            Some(left) => StoreError::LostDatabase { path: path.to_owned(), left },
            None => StoreError::Missing { path: path.to_owned() },
        });
    }
    // Opening a database that has no log creates one, even if the store is then refused.
    if !log_of(path).exists() {
        check_format(path)?;
    }
    let db = connect(path).map_err(|error| foreign_or(path, error))?;
    // Check before the checkpoint, which writes: no byte of a store in another format may change.
    check_identity(&db, path)?;
    if std::fs::metadata(log_of(path)).is_ok_and(|log| log.len() > LOG_LIMIT) {
        checkpoint(&db).map_err(|error| foreign_or(path, error))?;
    }
    set_busy_timeout(&db, None).map_err(|error| foreign_or(path, error))?;
    Ok(db)
}

/// A file that is left of a store whose database is gone. A store that was never completely created
/// has none.
pub(super) fn left_of(database: &Path) -> io::Result<Option<PathBuf>> {
    let folder = database.parent().unwrap_or(Path::new(""));
    let has_bytes = |path: &Path| std::fs::metadata(path).is_ok_and(|found| found.len() > 0);
    let mut packs = Vec::new();
    match std::fs::read_dir(folder.join(super::PACKS)) {
        Ok(entries) => packs.extend(entries.filter_map(Result::ok).map(|entry| entry.path())),
        Err(error) if error.kind() == io::ErrorKind::NotFound => {}
        Err(error) => return Err(error),
    }
    let mut left = vec![log_of(database), folder.join(super::LAST_COMMIT)];
    left.extend(packs);
    Ok(left.into_iter().find(|path| has_bytes(path)))
}

/// Checks that this Takeback knows the format of the store at `path`. Writes nothing.
pub(super) fn check_format(path: &Path) -> Result<(), StoreError> {
    let db = connect_to_read(path).map_err(|error| foreign_or(path, error))?;
    check_identity(&db, path)
}

/// Checks that it is a store that this Takeback can read.
pub(super) fn check_identity(db: &Connection, path: &Path) -> Result<(), StoreError> {
    let number = |name| db.pragma_query_value(None, name, |row| row.get::<_, i64>(0));
    let read = number("application_id").and_then(|id| Ok((id, number("user_version")?)));
    let path = path.to_owned();
    match read.map_err(|error| foreign_or(&path, error))? {
        (APPLICATION_ID, FORMAT) => Ok(()),
        (APPLICATION_ID, found) => Err(StoreError::Newer { path, found, known: FORMAT }),
        (PRE_RELEASE_ID, _) => Err(StoreError::PreRelease { path }),
        _ => Err(StoreError::Foreign { path }),
    }
}

/// Creates an empty store in the file at `path`, which must be empty.
pub(super) fn create(path: &Path) -> Result<(), StoreError> {
    let make = || -> rusqlite::Result<()> {
        let mut db = connect(path)?;
        // This setting only takes effect on an empty database.
        db.pragma_update(None, "auto_vacuum", "INCREMENTAL")?;
        db.pragma_update(None, "application_id", APPLICATION_ID)?;
        let transaction = db.transaction()?;
        transaction.execute_batch(include_str!("schema.sql"))?;
        sums::begin(&transaction)?;
        transaction.pragma_update(None, "user_version", FORMAT)?;
        transaction.commit()?;
        db.pragma_update(None, "journal_mode", "WAL")?;
        // The file is renamed next; a log left behind would keep the old name.
        db.set_db_config(DbConfig::SQLITE_DBCONFIG_NO_CKPT_ON_CLOSE, false)?;
        db.close().map_err(|(_, error)| error)
    };
    make().map_err(|error| error_at(path, "making it", error))
}

fn connect(path: &Path) -> rusqlite::Result<Connection> {
    let flags = OpenFlags::SQLITE_OPEN_READ_WRITE | OpenFlags::SQLITE_OPEN_NO_MUTEX;
    let db = Connection::open_with_flags(path, flags)?;
    for (setting, on) in [
        (DbConfig::SQLITE_DBCONFIG_ENABLE_FKEY, true),
        // Otherwise SQLite plans a statement again whenever its parameters change.
        (DbConfig::SQLITE_DBCONFIG_ENABLE_QPSG, true),
        // A checkpoint on close costs a short command two waits for the disk, and the next command two
        // more for a new log.
        (DbConfig::SQLITE_DBCONFIG_NO_CKPT_ON_CLOSE, true),
    ] {
        db.set_db_config(setting, on)?;
    }
    db.set_prepared_statement_cache_capacity(64);
    db.execute_batch(
        "PRAGMA secure_delete = ON;
         PRAGMA cache_size = -16000;
         PRAGMA wal_autocheckpoint = 1000;
         PRAGMA journal_size_limit = 4194304;",
    )?;
    set_synchronous(&db, Synchronous::Full)?;
    Ok(db)
}

/// A connection that only reads, and does not wait for other processes.
pub(super) fn connect_to_read(path: &Path) -> rusqlite::Result<Connection> {
    let flags = OpenFlags::SQLITE_OPEN_READ_ONLY
        | OpenFlags::SQLITE_OPEN_NO_MUTEX
        | OpenFlags::SQLITE_OPEN_URI;
    // Without a log no process is writing. `immutable` keeps SQLite from creating the log and its index,
    // which a reader would leave behind. A process that begins to write now writes to a log first; only if
    // it is checkpointed within these few milliseconds can one page be newer than another, and then a
    // count is wrong until the next summary.
    let uri = format!(
        "file:{}{}",
        percent_encoded(path.as_os_str().as_bytes()),
        if log_of(path).exists() { "" } else { "?immutable=1" }
    );
    let db = Connection::open_with_flags(uri, flags)?;
    db.busy_timeout(Duration::ZERO)?;
    Ok(db)
}

fn percent_encoded(bytes: &[u8]) -> String {
    let mut encoded = String::with_capacity(bytes.len());
    for byte in bytes {
        match byte {
            b'a'..=b'z' | b'A'..=b'Z' | b'0'..=b'9' | b'/' | b'-' | b'_' | b'.' | b'~' => {
                encoded.push(char::from(*byte));
            }
            _ => encoded.push_str(&format!("%{byte:02X}")),
        }
    }
    encoded
}

/// SQLite's `synchronous` setting.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Synchronous {
    /// Every commit is on disk when it returns.
    Full,
    /// Only a checkpoint syncs: the log before it, and the database before the log is reused.
    Normal,
}

pub(super) fn set_synchronous(db: &Connection, synchronous: Synchronous) -> rusqlite::Result<()> {
    db.execute_batch(match synchronous {
        Synchronous::Full => "PRAGMA synchronous = FULL",
        Synchronous::Normal => "PRAGMA synchronous = NORMAL",
    })
}

/// SQLite's log of the database at `path`.
pub(super) fn log_of(path: &Path) -> PathBuf {
    let mut log = path.as_os_str().to_owned();
    log.push("-wal");
    PathBuf::from(log)
}

/// Empties SQLite's log into the database, unless another process uses it or the file is read-only.
pub(super) fn checkpoint(db: &Connection) -> rusqlite::Result<()> {
    db.busy_timeout(Duration::ZERO)?;
    let done = db.query_row("PRAGMA wal_checkpoint(TRUNCATE)", [], |_| Ok(()));
    match done.as_ref().err().and_then(rusqlite::Error::sqlite_error_code) {
        Some(ErrorCode::DatabaseBusy | ErrorCode::ReadOnly) => Ok(()),
        _ => done,
    }
}

pub(super) fn set_busy_timeout(db: &Connection, timeout: Option<Duration>) -> rusqlite::Result<()> {
    /// SQLite counts milliseconds in a signed integer of 32 bits.
    const MOST: Duration = Duration::from_millis(i32::MAX as u64);
    db.busy_timeout(timeout.unwrap_or(BUSY_TIMEOUT).min(MOST))
}

/// An error of SQLite as a [`StoreError`].
pub(super) fn error_at(path: &Path, doing: &'static str, error: rusqlite::Error) -> StoreError {
    use rusqlite::Error as Sqlite;
    let path = path.to_owned();
    match &error {
        Sqlite::SqliteFailure(failure, _) => match failure.code {
            ErrorCode::DatabaseBusy | ErrorCode::DatabaseLocked => StoreError::Busy { path },
            ErrorCode::DatabaseCorrupt | ErrorCode::NotADatabase => {
                StoreError::DamagedDatabase { path, source: error.into() }
            }
            ErrorCode::DiskFull => {
                let source = io::Error::new(io::ErrorKind::StorageFull, error);
                StoreError::Io { path, doing, source }
            }
            ErrorCode::ReadOnly | ErrorCode::CannotOpen | ErrorCode::PermissionDenied => {
                let source = io::Error::new(io::ErrorKind::PermissionDenied, error);
                StoreError::Io { path, doing, source }
            }
            ErrorCode::SystemIoFailure => {
                let source = io::Error::from_raw_os_error(Errno::IO.raw_os_error());
                StoreError::Io { path, doing, source }
            }
            _ => StoreError::Database { path, doing, source: error.into() },
        },
        Sqlite::FromSqlConversionFailure(..)
        | Sqlite::IntegralValueOutOfRange(..)
        | Sqlite::InvalidColumnType(..)
        | Sqlite::QueryReturnedNoRows
        | Sqlite::Utf8Error(..) => StoreError::DamagedRecord {
            what: format!("a record read while {doing}"),
            why: error.to_string(),
        },
        _ => StoreError::Database { path, doing, source: error.into() },
    }
}

fn foreign_or(path: &Path, error: rusqlite::Error) -> StoreError {
    if error.sqlite_error_code() == Some(ErrorCode::NotADatabase) {
        return StoreError::Foreign { path: path.to_owned() };
    }
    error_at(path, "opening it", error)
}

pub(super) fn io_error(path: &Path, doing: &'static str, source: io::Error) -> StoreError {
    StoreError::Io { path: path.to_owned(), doing, source }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_connection_is_set_up_alike() {
        let dir = tempfile::tempdir().unwrap();
        let path = dir.path().join("timeline.db");
        drop(crate::disk::create_private_file(&path).unwrap());
        create(&path).unwrap();
        for db in [open(&path).unwrap(), open(&path).unwrap()] {
            let set = |name| db.pragma_query_value(None, name, |row| row.get::<_, i64>(0)).unwrap();
            let names = ["foreign_keys", "synchronous", "secure_delete", "busy_timeout"];
            assert_eq!(names.map(set), [1, 2, 1, 5000]);
        }
    }

    #[test]
    fn the_busy_timeout_is_set_and_reset() {
        let dir = tempfile::tempdir().unwrap();
        let path = dir.path().join("timeline.db");
        drop(crate::disk::create_private_file(&path).unwrap());
        create(&path).unwrap();
        let db = open(&path).unwrap();
        let milliseconds = |timeout| {
            set_busy_timeout(&db, timeout).unwrap();
            db.pragma_query_value(None, "busy_timeout", |row| row.get::<_, i64>(0)).unwrap()
        };
        let set = [Some(Duration::ZERO), Some(Duration::from_millis(7)), Some(Duration::MAX), None];
        assert_eq!(set.map(milliseconds), [0, 7, i64::from(i32::MAX), 5000]);
    }

    #[test]
    fn opening_a_store_writes_nothing() {
        let dir = tempfile::tempdir().unwrap();
        let path = dir.path().join("timeline.db");
        drop(crate::disk::create_private_file(&path).unwrap());
        create(&path).unwrap();
        let before = std::fs::read(&path).unwrap();
        drop(open(&path).unwrap());
        assert_eq!(std::fs::read(&path).unwrap(), before);
    }
}
