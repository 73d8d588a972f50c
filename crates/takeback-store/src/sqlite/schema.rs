//! The tables of a store, its format number, and how a database becomes or is known to be one.

use std::io;
use std::os::unix::ffi::OsStrExt as _;
use std::path::{Path, PathBuf};
use std::time::Duration;

use rusqlite::config::DbConfig;
use rusqlite::{Connection, ErrorCode, OpenFlags, TransactionBehavior};
use rustix::io::Errno;

use super::covered;
use crate::store::StoreError;

/// The format this Takeback writes: the number of [`STEPS`].
pub(super) const FORMAT: i64 = STEPS.len() as i64;

/// `TkBk`.
const APPLICATION_ID: i64 = 0x546b_426b;

/// How long a connection waits for another process before it gives up.
const PATIENCE: Duration = Duration::from_secs(5);

/// What leads from each format to the next, from the empty database on. A step that has been
/// released is never changed.
const STEPS: [&str; 7] = [
    include_str!("format1.sql"),
    include_str!("format2.sql"),
    include_str!("format3.sql"),
    include_str!("format4.sql"),
    include_str!("format5.sql"),
    include_str!("format6.sql"),
    include_str!("format7.sql"),
];

/// The first format in which commits make a chain.
const CHAINED: i64 = 7;

/// A log of more bytes is carried over by whoever opens the store next: the first to open it reads the
/// whole log (2 µs a page), and to carry it over takes two waits for the disk. A commit is about 15
/// pages.
const LOG_LIMIT: u64 = 128 * 4120;

/// Connects to the store at `path` and brings it to [`FORMAT`] if it is older.
pub(super) fn open(path: &Path) -> Result<Connection, StoreError> {
    if !path.try_exists().map_err(|source| io_error(path, "looking for it", source))? {
        return Err(match left_of(path)? {
            Some(left) => StoreError::LostDatabase { path: path.to_owned(), left },
            None => StoreError::Missing { path: path.to_owned() },
        });
    }
    // To open a database without its log makes one, also of a store that is then refused.
    if !log_of(path).exists() {
        check_format(path)?;
    }
    let mut db = connect(path).map_err(|error| foreign_or(path, error))?;
    // Before anything is carried over: a newer Takeback may have its own idea of its log.
    let found = check_identity(&db, path)?;
    if std::fs::metadata(log_of(path)).is_ok_and(|log| log.len() > LOG_LIMIT) {
        carry_over(&db).map_err(|error| foreign_or(path, error))?;
    }
    set_patience(&db, None).map_err(|error| foreign_or(path, error))?;
    if found < FORMAT {
        migrate(&mut db)
            .map_err(|error| error_at(path, "bringing its format up to date", error))?;
    }
    Ok(db)
}

/// What there is of a store whose database is gone. A store that was never made whole has none of it.
fn left_of(database: &Path) -> Result<Option<PathBuf>, StoreError> {
    let folder = database.parent().unwrap_or(Path::new(""));
    let holds = |path: &Path| std::fs::metadata(path).is_ok_and(|found| found.len() > 0);
    let mut packs = Vec::new();
    let listed = folder.join(super::PACKS);
    match std::fs::read_dir(&listed) {
        Ok(entries) => packs.extend(entries.filter_map(Result::ok).map(|entry| entry.path())),
        Err(error) if error.kind() == io::ErrorKind::NotFound => {}
        Err(source) => return Err(io_error(&listed, "listing it", source)),
    }
    let mut left = vec![log_of(database), folder.join(super::WITNESS)];
    left.extend(packs);
    Ok(left.into_iter().find(|path| holds(path)))
}

/// Whether this Takeback knows the format of the store at `path`. Writes nothing.
pub(super) fn check_format(path: &Path) -> Result<(), StoreError> {
    let db = connect_to_read(path).map_err(|error| foreign_or(path, error))?;
    check_identity(&db, path).map(drop)
}

/// Whether it is a store that this Takeback can read; its format.
pub(super) fn check_identity(db: &Connection, path: &Path) -> Result<i64, StoreError> {
    let (application, found) = identity(db).map_err(|error| foreign_or(path, error))?;
    if application != APPLICATION_ID {
        return Err(StoreError::Foreign { path: path.to_owned() });
    }
    if found > FORMAT {
        return Err(StoreError::Newer { path: path.to_owned(), found, known: FORMAT });
    }
    Ok(found)
}

/// Makes an empty store of the file at `path`, which must be empty.
pub(super) fn create(path: &Path) -> Result<(), StoreError> {
    let make = || -> rusqlite::Result<()> {
        let mut db = connect(path)?;
        // Only a database without a page can still be given this.
        db.pragma_update(None, "auto_vacuum", "INCREMENTAL")?;
        db.pragma_update(None, "application_id", APPLICATION_ID)?;
        migrate(&mut db)?;
        db.pragma_update(None, "journal_mode", "WAL")?;
        // It is given another name, which a log left behind would not know.
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
        // Otherwise a statement is planned anew whenever it is asked for something else.
        (DbConfig::SQLITE_DBCONFIG_ENABLE_QPSG, true),
        // A short command would pay for it with two waits for the disk, and the next one with two more
        // for a new log.
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
    // Without its log a database is at rest, and asking SQLite to take it so spares it to make the log
    // and its index, which a reader would leave behind. A process that begins to write just now writes to
    // a log of its own first; only if that is carried over within these few milliseconds can a page
    // be read that is younger than another, and then a count is off until the next glance.
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

/// What SQLite waits for, in its words.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Synchronous {
    /// Every commit is on the disk when it returns.
    Full,
    /// Only what keeps the database whole: its log before it is carried over, and what was carried
    /// over before the log begins anew.
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

/// Empties the log into the database, unless somebody reads or writes just now, or nobody may write.
pub(super) fn carry_over(db: &Connection) -> rusqlite::Result<()> {
    db.busy_timeout(Duration::ZERO)?;
    let done = db.query_row("PRAGMA wal_checkpoint(TRUNCATE)", [], |_| Ok(()));
    match done.as_ref().err().and_then(rusqlite::Error::sqlite_error_code) {
        Some(ErrorCode::DatabaseBusy | ErrorCode::ReadOnly) => Ok(()),
        _ => done,
    }
}

pub(super) fn set_patience(db: &Connection, patience: Option<Duration>) -> rusqlite::Result<()> {
    /// SQLite counts milliseconds in a signed integer of 32 bits.
    const MOST: Duration = Duration::from_millis(i32::MAX as u64);
    db.busy_timeout(patience.unwrap_or(PATIENCE).min(MOST))
}

fn identity(db: &Connection) -> rusqlite::Result<(i64, i64)> {
    let number = |name| db.pragma_query_value(None, name, |row| row.get(0));
    Ok((number("application_id")?, number("user_version")?))
}

/// Another process may do the same at the same time: the one that comes second finds it done.
fn migrate(db: &mut Connection) -> rusqlite::Result<()> {
    let transaction = db.transaction_with_behavior(TransactionBehavior::Immediate)?;
    let (_, found) = identity(&transaction)?;
    for step in STEPS.iter().skip(usize::try_from(found).unwrap_or(0)) {
        transaction.execute_batch(step)?;
    }
    if found < CHAINED {
        covered::begin(&transaction)?;
    }
    transaction.pragma_update(None, "user_version", FORMAT)?;
    transaction.commit()
}

/// An error of SQLite as the store's user should hear it.
pub(super) fn error_at(path: &Path, doing: &'static str, error: rusqlite::Error) -> StoreError {
    use rusqlite::Error as Sqlite;
    let path = path.to_owned();
    match &error {
        Sqlite::SqliteFailure(failure, _) => match failure.code {
            ErrorCode::DatabaseBusy | ErrorCode::DatabaseLocked => StoreError::Busy { path },
            ErrorCode::DatabaseCorrupt | ErrorCode::NotADatabase => {
                StoreError::DamagedDatabase { path, source: error }
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
            _ => StoreError::Sqlite { path, doing, source: error },
        },
        Sqlite::FromSqlConversionFailure(..)
        | Sqlite::IntegralValueOutOfRange(..)
        | Sqlite::InvalidColumnType(..)
        | Sqlite::QueryReturnedNoRows
        | Sqlite::Utf8Error(..) => StoreError::DamagedRecord {
            what: format!("a record read while {doing}"),
            why: error.to_string(),
        },
        _ => StoreError::Sqlite { path, doing, source: error },
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
    fn patience_is_set_and_given_back() {
        let dir = tempfile::tempdir().unwrap();
        let path = dir.path().join("timeline.db");
        drop(crate::disk::create_private_file(&path).unwrap());
        create(&path).unwrap();
        let db = open(&path).unwrap();
        let milliseconds = |patience| {
            set_patience(&db, patience).unwrap();
            db.pragma_query_value(None, "busy_timeout", |row| row.get::<_, i64>(0)).unwrap()
        };
        let set = [Some(Duration::ZERO), Some(Duration::from_millis(7)), Some(Duration::MAX), None];
        assert_eq!(set.map(milliseconds), [0, 7, i64::from(i32::MAX), 5000]);
    }

    #[test]
    fn only_a_store_of_an_older_format_is_written_to_when_it_is_opened() {
        let dir = tempfile::tempdir().unwrap();
        let path = dir.path().join("timeline.db");
        drop(crate::disk::create_private_file(&path).unwrap());
        create(&path).unwrap();
        let before = std::fs::read(&path).unwrap();
        drop(open(&path).unwrap());
        assert_eq!(std::fs::read(&path).unwrap(), before);
    }
}
