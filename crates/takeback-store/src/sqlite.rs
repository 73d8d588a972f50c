//! The store on disk: a SQLite database for records, and packs next to it for contents.
//!
//! `docs/design/store-format.md` describes every byte. Only this folder has SQL; files are written by
//! [`crate::disk`].

mod blobs;
mod check;
mod compact;
mod encoding;
mod last_commit;
mod log;
mod pack;
mod points;
mod repack;
mod rows;
mod runs;
mod schema;
mod state;
mod summary;
mod sums;
mod upkeep;
mod varint;
mod writer;

use std::collections::HashSet;
use std::io;
use std::path::{Path, PathBuf};
use std::sync::atomic::{AtomicU32, Ordering};
use std::time::Duration;

use rusqlite::Connection;

use self::last_commit::LastCommit;
use self::pack::Packs;
use self::rows::RowError;
use self::schema::{error_at, io_error};
pub use self::state::SqliteStates;
pub use self::summary::{ActiveSession, LastPoint, StoreSummary, summarize};
use crate::blob::Digest;
use crate::disk;
use crate::store::{Durability, StoreError};

const DATABASE: &str = "timeline.db";
const PACKS: &str = "packs";
/// The file that repeats the last commit.
const LAST_COMMIT: &str = "head";
/// takeback-core's cache of the files' entries.
const INDEX: &str = "index";

/// One handle on a store on disk. Any number of them may be open, in any number of processes.
#[derive(Debug)]
pub struct SqliteStore {
    dir: PathBuf,
    database: PathBuf,
    db: Connection,
    packs: Packs,
    known_blobs: KnownBlobs,
    durability: Durability,
    busy_timeout: Option<Duration>,
    /// Opened with the first commit.
    last_commit: Option<LastCommit>,
}

/// The blobs that were stored when the first one was put after the last commit with records.
#[derive(Debug)]
enum KnownBlobs {
    NotRead,
    Some,
    /// There were none: a first scan is running and has put these. No lookup is needed for each.
    Only(HashSet<Digest>),
}

impl SqliteStore {
    /// Opens the store in the folder `dir`; [`StoreError::Missing`] if there is none.
    pub fn open(dir: &Path) -> Result<Self, StoreError> {
        let database = dir.join(DATABASE);
        let db = schema::open(&database)?;
        let packs = Packs::new(dir.join(PACKS));
        Ok(Self {
            dir: dir.to_owned(),
            database,
            db,
            packs,
            known_blobs: KnownBlobs::NotRead,
            durability: Durability::Full,
            busy_timeout: None,
            last_commit: None,
        })
    }

    /// Whether the folder `dir` has a store, even a damaged one or one whose database is missing: the
    /// rest of it must not be mistaken for an empty folder.
    pub fn exists(dir: &Path) -> io::Result<bool> {
        let database = Self::database_in(dir);
        Ok(database.try_exists()? || schema::left_of(&database)?.is_some())
    }

    /// The file in the folder `dir` without which a store cannot be opened.
    #[must_use]
    pub fn database_in(dir: &Path) -> PathBuf {
        dir.join(DATABASE)
    }

    /// Checks that this Takeback knows the format of the store in `dir`. Writes nothing and does not
    /// wait for other processes.
    pub fn check_format(dir: &Path) -> Result<(), StoreError> {
        let path = dir.join(DATABASE);
        if path.exists() { schema::check_format(&path) } else { Err(StoreError::Missing { path }) }
    }

    /// Opens the store in the folder `dir`, and creates it first if there is none.
    pub fn create(dir: &Path) -> Result<Self, StoreError> {
        match Self::open(dir) {
            Err(StoreError::Missing { .. }) => {}
            opened => return opened,
        }
        let packs = dir.join(PACKS);
        let failed = |source| io_error(&packs, "making it", source);
        disk::make_private_folder(&packs).map_err(failed)?;
        // The database gets its name when it is complete: no process ever sees half of one, and of two
        // creators the second one finds the first one's. From then on only SQLite may open the file:
        // closing any other descriptor of it would drop the locks that SQLite holds for this process.
        let database = dir.join(DATABASE);
        let temporary = create_temporary(&database)?;
        let failed = |source| io_error(&temporary, "making it", source);
        let placed = schema::create(&temporary)
            .and_then(|()| disk::place_private_file(&temporary, &database).map_err(failed));
        match placed {
            Ok(()) => disk::sync_folder(dir).map_err(failed)?,
            Err(error) => {
                disk::remove_store_file(&temporary).map_err(failed)?;
                // Another process created it at the same time: use that one.
                if !database.exists() {
                    return Err(error);
                }
            }
        }
        Self::open(dir)
    }

    fn rows<T>(&self, doing: &'static str, result: Result<T, RowError>) -> Result<T, StoreError> {
        result.map_err(|error| self.failure(doing, error))
    }

    fn failure(&self, doing: &'static str, error: RowError) -> StoreError {
        match error {
            RowError::Sqlite(error) => error_at(&self.database, doing, error),
            RowError::Damaged { what, why } => {
                StoreError::DamagedRecord { what, why: why.to_owned() }
            }
        }
    }
}

/// An empty file next to `database` that no other creator uses. Skips one left behind by a crashed
/// process with the same pid.
fn create_temporary(database: &Path) -> Result<PathBuf, StoreError> {
    static CREATED: AtomicU32 = AtomicU32::new(0);
    loop {
        let number = CREATED.fetch_add(1, Ordering::Relaxed);
        let path = database.with_extension(format!("db.{}-{number}.new", std::process::id()));
        match disk::create_private_file(&path) {
            Ok(_closed) => return Ok(path),
            Err(error) if error.kind() == io::ErrorKind::AlreadyExists => {}
            Err(source) => return Err(io_error(&path, "making it", source)),
        }
    }
}
