//! The store on disk: a SQLite database for everything but contents, packs beside it for those.
//!
//! `docs/design/store-format.md` describes every byte. SQL stands in the modules below, file writes
//! in [`crate::disk`].

mod brief;
mod check;
mod collect;
mod compact;
mod covered;
mod encoding;
mod glance;
mod pack;
mod points;
mod repack;
mod rows;
mod schema;
pub mod state;
mod witness;
mod writer;

use std::collections::{BTreeSet, HashMap, HashSet};
use std::io;
use std::path::{Path, PathBuf};
use std::sync::atomic::{AtomicU32, Ordering};
use std::time::Duration;

use rusqlite::{Connection, TransactionBehavior};

use self::compact::Thrift;
pub use self::glance::{AtWork, Glance, LastPoint, glance};
use self::pack::{Location, Packs};
use self::rows::RowError;
use self::schema::{Synchronous, error_at, io_error};
use self::witness::Witness;
use self::writer::Writer;
use crate::blob::{Digest, Encoding, PackedBlob};
use crate::chain::Chain;
use crate::change::Change;
use crate::disk::{self, CrashPoint, crash_point};
use crate::entry::Entry;
use crate::id::{CallId, RewindId, Seq, SessionId, Timestamp, TurnId};
use crate::path::WorkPath;
use crate::point::{Point, PointQuery, Shown};
use crate::rewind::RewindRecord;
use crate::session::{Call, Session, Turn};
use crate::store::{
    Durability, Head, Loss, Repacked, Store, StoreError, Unnamed, Usage, Weight, Write,
};
use crate::stretch::PathStretches;

const DATABASE: &str = "timeline.db";
const PACKS: &str = "packs";
/// Tells the last commit.
const WITNESS: &str = "head";
/// A cache of what is known of the files; takeback-core writes it.
const INDEX: &str = "index";

/// One handle on a store on disk. Any number of them, in any number of processes, may be open.
#[derive(Debug)]
pub struct SqliteStore {
    dir: PathBuf,
    database: PathBuf,
    db: Connection,
    packs: Packs,
    contents: Contents,
    durability: Durability,
    patience: Option<Duration>,
    /// Opened with the first commit.
    witness: Option<Witness>,
}

/// What the store held when the first contents were put since the last commit of more than contents.
#[derive(Debug)]
enum Contents {
    Unasked,
    Some,
    /// None: a first snapshot is under way, and by now there are these. They need not be looked for one
    /// by one.
    These(HashSet<Digest>),
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
            contents: Contents::Unasked,
            durability: Durability::Full,
            patience: None,
            witness: None,
        })
    }

    /// Whether this Takeback knows the format of the store in the folder `dir`: [`StoreError::Newer`] if it
    /// does not. Writes nothing, and does not wait for other processes.
    pub fn check_format(dir: &Path) -> Result<(), StoreError> {
        let path = dir.join(DATABASE);
        if path.exists() { schema::check_format(&path) } else { Err(StoreError::Missing { path }) }
    }

    /// Opens the store in the folder `dir` and makes it first if there is none.
    pub fn create(dir: &Path) -> Result<Self, StoreError> {
        match Self::open(dir) {
            Err(StoreError::Missing { .. }) => {}
            opened => return opened,
        }
        let packs = dir.join(PACKS);
        let failed = |source| io_error(&packs, "making it", source);
        disk::make_private_folder(&packs).map_err(failed)?;
        // A database gets its name when it is whole: nobody ever sees half of one, and of two
        // creators the second finds the first one's. From then on only SQLite may open it: closing
        // any other descriptor of it would drop the locks that SQLite holds for this process.
        let database = dir.join(DATABASE);
        let beside = make_file_beside(&database)?;
        let failed = |source| io_error(&beside, "making it", source);
        let placed = schema::create(&beside)
            .and_then(|()| disk::place_private_file(&beside, &database).map_err(failed));
        match placed {
            Ok(()) => disk::sync_folder(dir).map_err(failed)?,
            Err(error) => {
                disk::remove_store_file(&beside).map_err(failed)?;
                // Somebody else's is as good.
                if !database.exists() {
                    return Err(error);
                }
            }
        }
        Self::open(dir)
    }

    /// What commits wait for from now on; [`Durability::Full`] in a store that was just opened.
    pub fn set_durability(&mut self, durability: Durability) -> Result<(), StoreError> {
        self.durability = durability;
        self.wait_for(durability)
    }

    /// Commits what a rewind promises, or says it has done, with all that was committed before it: the
    /// disk has it when this returns.
    fn commit_promise(&mut self, expected: Head, writes: &[Write]) -> Result<Head, StoreError> {
        if self.durability == Durability::Off {
            self.packs.make_all_durable()?;
        }
        let durability = std::mem::replace(&mut self.durability, Durability::Full);
        self.wait_for(Durability::Full)?;
        let committed = self.commit(expected, writes);
        self.set_durability(durability)?;
        committed
    }

    /// What was deleted is not to live on in SQLite's log, if that can be had without a wait for others.
    fn empty_log(&self) -> Result<(), StoreError> {
        let emptied = schema::carry_over(&self.db)
            .and_then(|()| schema::set_patience(&self.db, self.patience));
        self.rows("emptying its log", emptied.map_err(RowError::from))
    }

    fn wait_for(&self, durability: Durability) -> Result<(), StoreError> {
        let synchronous = match durability {
            Durability::Full => Synchronous::Full,
            Durability::Normal | Durability::Off => Synchronous::Normal,
        };
        let set = schema::set_synchronous(&self.db, synchronous).map_err(RowError::from);
        self.rows("setting what to wait for", set)
    }

    fn open_witness(&mut self) {
        if self.witness.is_none() {
            // Without it, the loss of later commits would not be noticed; no reason to lose this one.
            self.witness = Witness::open(&self.dir.join(WITNESS)).ok();
        }
    }

    /// After a commit. The index knows of changes that are lost, and their numbers are used again.
    fn told(&self, head: Head, chain: Chain, loss: Option<Loss>) {
        if loss.is_some() {
            drop(disk::remove_store_file(&self.dir.join(INDEX)));
        }
        if let Some(witness) = &self.witness {
            drop(witness.tell(head, chain));
        }
    }

    #[must_use]
    pub fn dir(&self) -> &Path {
        &self.dir
    }

    fn locate(&self, digest: &Digest) -> Result<Location, StoreError> {
        if let Some(location) = self.packs.pending().get(digest) {
            return Ok(*location);
        }
        self.rows("looking for contents", rows::blob(&self.db, digest))?
            .ok_or(StoreError::MissingBlob { digest: *digest })
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

/// What is lost if a store that was told to be at `told` is at `head`.
fn loss(told: Head, head: Head) -> Option<Loss> {
    (told.revision > head.revision).then_some(Loss { kept: head, lost: told })
}

impl Store for SqliteStore {
    fn head(&self) -> Result<Head, StoreError> {
        self.rows("reading its head", rows::head(&self.db))
    }

    fn commit(&mut self, expected: Head, writes: &[Write]) -> Result<Head, StoreError> {
        // Asked again in the transaction; here it spares a lost race the wait for the disk.
        if self.head()? != expected {
            return Err(StoreError::Moved);
        }
        let head = Head { revision: expected.revision + 1, seq: last_seq(expected.seq, writes)? };
        if self.durability != Durability::Full
            && writes.iter().any(|write| matches!(write, Write::Rewind(_)))
        {
            return self.commit_promise(expected, writes);
        }
        match self.durability {
            Durability::Full | Durability::Normal => self.packs.make_durable()?,
            Durability::Off => self.packs.write_out()?,
        }
        self.open_witness();
        let done = (|| {
            let transaction = self.db.transaction_with_behavior(TransactionBehavior::Immediate)?;
            if rows::head(&transaction)? != expected {
                return Ok(None);
            }
            // No other process can commit now: a later commit that the file tells of is gone.
            let loss = self.witness.as_ref().and_then(|witness| loss(witness.last()?.0, expected));
            if let Some(loss) = loss {
                covered::add_loss(&transaction, loss)?;
            }
            let mut writer = Writer::new(&transaction)?;
            writer.blobs(self.packs.pending())?;
            for write in writes {
                writer.write(write)?;
            }
            let chain = writer.head(head, writes)?;
            drop(writer);
            crash_point(CrashPoint::Commit);
            transaction.commit()?;
            Ok(Some((chain, loss)))
        })();
        let Some((chain, loss)) = self.rows("committing to it", done)? else {
            return Err(StoreError::Moved);
        };
        crash_point(CrashPoint::Committed);
        self.packs.committed();
        self.told(head, chain, loss);
        // Contents alone: a snapshot goes on.
        if !writes.is_empty() {
            self.contents = Contents::Unasked;
        }
        if writes.iter().any(drops) {
            self.empty_log()?;
        }
        Ok(head)
    }

    fn chain(&self) -> Result<Chain, StoreError> {
        self.rows("reading its chain", covered::chain(&self.db))
    }

    fn losses(&self) -> Result<Vec<Loss>, StoreError> {
        // In this order: what is committed in between is no loss.
        let told = witness::last_at(&self.dir.join(WITNESS));
        let head = self.head()?;
        let mut losses = self.rows("reading what is lost", covered::losses(&self.db))?;
        losses.extend(told.and_then(|(told, _)| loss(told, head)));
        Ok(losses)
    }

    fn set_patience(&mut self, patience: Option<Duration>) -> Result<(), StoreError> {
        self.patience = patience;
        let set = schema::set_patience(&self.db, patience).map_err(RowError::from);
        self.rows("setting how long to wait", set)
    }

    fn changes_after(&self, after: Seq) -> Result<Vec<Change>, StoreError> {
        self.rows("reading changes", rows::changes_after(&self.db, after))
    }

    fn change(&self, seq: Seq) -> Result<Option<Change>, StoreError> {
        self.rows("reading a change", rows::change_at(&self.db, seq))
    }

    fn stretches_after(
        &self,
        after: Seq,
        as_one: &BTreeSet<SessionId>,
    ) -> Result<Vec<PathStretches>, StoreError> {
        let doing = "reading the changes in brief";
        let moment = self.rows(doing, self.db.unchecked_transaction().map_err(RowError::from))?;
        self.rows(doing, brief::stretches_after(&moment, after, as_one))
    }

    fn latest_of(&self, paths: &[WorkPath]) -> Result<Vec<Option<Change>>, StoreError> {
        let doing = "reading the newest changes of some paths";
        // One transaction, so that no commit comes between two of them.
        let moment = self.rows(doing, self.db.unchecked_transaction().map_err(RowError::from))?;
        let changes = paths.iter().map(|path| rows::latest_of(&moment, path)).collect();
        self.rows(doing, changes)
    }

    fn changes_of(&self, path: &WorkPath) -> Result<Vec<Change>, StoreError> {
        self.rows("reading the changes of a path", rows::changes_of(&self.db, path))
    }

    fn latest(&self) -> Result<Vec<(WorkPath, Entry)>, StoreError> {
        self.rows("reading the newest entry of every path", rows::latest(&self.db))
    }

    fn points(&self) -> Result<Vec<Point>, StoreError> {
        self.rows("reading points", points::all(&self.db))
    }

    fn find_points(&self, query: PointQuery<'_>) -> Result<Vec<Point>, StoreError> {
        self.rows("looking for points", points::find(&self.db, query))
    }

    fn count_points_of(&self, session: &SessionId) -> Result<usize, StoreError> {
        self.rows("counting points", points::count_of(&self.db, session))
    }

    fn count_points(&self, shown: Shown) -> Result<usize, StoreError> {
        self.rows("counting points", points::count(&self.db, shown))
    }

    fn sessions(&self) -> Result<Vec<Session>, StoreError> {
        self.rows("reading sessions", rows::sessions(&self.db))
    }

    fn session(&self, id: &SessionId) -> Result<Option<Session>, StoreError> {
        self.rows("reading a session", rows::session_named(&self.db, id))
    }

    fn turn(&self, id: TurnId) -> Result<Option<Turn>, StoreError> {
        self.rows("reading a turn", rows::turn_of(&self.db, id))
    }

    fn turns(&self) -> Result<Vec<Turn>, StoreError> {
        self.rows("reading turns", rows::turns(&self.db))
    }

    fn live_calls(&self) -> Result<Vec<Call>, StoreError> {
        self.rows("reading live calls", rows::live_calls(&self.db))
    }

    fn unreadable(&self) -> Result<Vec<WorkPath>, StoreError> {
        self.rows("reading what could not be read", rows::unreadable(&self.db))
    }

    fn calls_since(&self, time: Timestamp) -> Result<Vec<Call>, StoreError> {
        self.rows("reading calls", rows::calls_since(&self.db, time))
    }

    fn call(&self, session: &SessionId, id: &CallId) -> Result<Option<Call>, StoreError> {
        self.rows("reading a call", rows::call_named(&self.db, session, id))
    }

    fn paths_of_call(&self, session: &SessionId, id: &CallId) -> Result<Vec<WorkPath>, StoreError> {
        self.rows("reading what a call changed", rows::paths_of_call(&self.db, session, id))
    }

    fn rewinds(&self) -> Result<Vec<RewindRecord>, StoreError> {
        self.rows("reading rewinds", rows::rewinds(&self.db))
    }

    fn rewind(&self, id: RewindId) -> Result<Option<RewindRecord>, StoreError> {
        self.rows("reading a rewind", rows::rewind_with(&self.db, id))
    }

    fn open_rewinds(&self) -> Result<Vec<RewindRecord>, StoreError> {
        self.rows("reading open rewinds", rows::open_rewinds(&self.db))
    }

    fn last_scan(&self) -> Result<Option<Timestamp>, StoreError> {
        self.rows("reading the time of the last scan", rows::last_scan(&self.db))
    }

    fn last_cleanup(&self) -> Result<Option<Timestamp>, StoreError> {
        self.rows("reading the time of the last clean-up", rows::last_cleanup(&self.db))
    }

    fn put(&mut self, blob: PackedBlob) -> Result<(), StoreError> {
        if self.packs.pending().contains_key(&blob.digest) {
            return Ok(());
        }
        let doing = "looking for contents";
        if let Contents::Unasked = self.contents {
            let had_some = self.rows(doing, rows::has_blobs(&self.db))?;
            self.contents = if had_some { Contents::Some } else { Contents::These(HashSet::new()) };
        }
        let is_there = match &self.contents {
            Contents::These(put) => put.contains(&blob.digest),
            _ => self.rows(doing, rows::has_blob(&self.db, &blob.digest))?,
        };
        if is_there {
            return Ok(());
        }
        self.packs.append(&blob)?;
        if let Contents::These(put) = &mut self.contents {
            put.insert(blob.digest);
        }
        Ok(())
    }

    fn has(&self, digest: &Digest) -> Result<bool, StoreError> {
        if self.packs.pending().contains_key(digest) {
            return Ok(true);
        }
        self.rows("looking for contents", rows::has_blob(&self.db, digest))
    }

    fn packed(&self, digest: &Digest) -> Result<PackedBlob, StoreError> {
        let mut location = self.locate(digest)?;
        let bytes = loop {
            if let Some(bytes) = self.packs.read(&location)? {
                break bytes;
            }
            // Another process may have moved it meanwhile.
            let now = self.locate(digest)?;
            if now == location {
                return Err(StoreError::DamagedBlob { digest: *digest });
            }
            location = now;
        };
        Ok(PackedBlob { digest: *digest, size: location.size, encoding: location.encoding, bytes })
    }

    fn holds(&self, digest: &Digest) -> Result<bool, StoreError> {
        let lies = |digest: &Digest| -> Result<Option<Location>, StoreError> {
            let location = self.locate(digest)?;
            Ok(self.packs.lies_at(digest, &location)?.then_some(location))
        };
        let whole = |location: Option<Location>| -> Result<bool, StoreError> {
            match location {
                None => Ok(false),
                Some(location) if location.encoding != Encoding::Chunks => Ok(true),
                Some(_) => {
                    let mut parts = self.packed(digest)?.chunks().into_iter();
                    parts.try_fold(true, |whole, part| Ok(whole && lies(&part)?.is_some()))
                }
            }
        };
        match lies(digest).and_then(whole) {
            Ok(true) => Ok(true),
            // Another process may have moved it meanwhile, or only the head of its record is damaged.
            _ => match self.read(digest, &mut |_| Ok(())) {
                Err(error) if error.is_lost_contents() => Ok(false),
                read => read.map(|()| true),
            },
        }
    }

    fn unnamed(&self) -> Result<Unnamed, StoreError> {
        collect::unnamed(self)
    }

    fn forget(&mut self, unnamed: &Unnamed) -> Result<(), StoreError> {
        collect::forget(self, unnamed)
    }

    fn compact(&mut self) -> Result<(), StoreError> {
        compact::compact(self, Thrift::WorthIt)
    }

    fn squeeze(&mut self) -> Result<(), StoreError> {
        compact::compact(self, Thrift::Room)
    }

    fn expunge(&mut self) -> Result<(), StoreError> {
        compact::expunge(self)
    }

    fn repack(&mut self, budget: u64) -> Result<Repacked, StoreError> {
        repack::repack(self, budget)
    }

    fn weights(&self, digests: &HashSet<Digest>) -> Result<HashMap<Digest, Weight>, StoreError> {
        collect::weights(self, digests)
    }

    fn usage(&self) -> Result<Usage, StoreError> {
        collect::usage(self)
    }

    fn check(&self) -> Result<Vec<String>, StoreError> {
        loop {
            let segments = self.packs.segments()?;
            let damage = check::check(self)?;
            // What another process was moving meanwhile looks like damage.
            if damage.is_empty() || self.packs.segments()? == segments {
                return Ok(damage);
            }
        }
    }
}

/// An empty file beside `database` that no other creator uses. One that a crash left behind, of a
/// process that had the same number, is passed over.
fn make_file_beside(database: &Path) -> Result<PathBuf, StoreError> {
    static MADE: AtomicU32 = AtomicU32::new(0);
    loop {
        let number = MADE.fetch_add(1, Ordering::Relaxed);
        let beside = database.with_extension(format!("db.{}-{number}.new", std::process::id()));
        match disk::create_private_file(&beside) {
            Ok(_closed) => return Ok(beside),
            Err(error) if error.kind() == io::ErrorKind::AlreadyExists => {}
            Err(source) => return Err(io_error(&beside, "making it", source)),
        }
    }
}

/// Whether it deletes something that nothing takes the place of.
fn drops(write: &Write) -> bool {
    match write {
        Write::DropChange(_)
        | Write::DropPoint(_)
        | Write::DropRewind(_)
        | Write::DropSession(_)
        | Write::DropTurns { .. } => true,
        Write::Change(_)
        | Write::Session(_)
        | Write::Turn(_)
        | Write::Call(_)
        | Write::Point(_)
        | Write::Rewind(_)
        | Write::Scanned(_)
        | Write::CleanedUp(_)
        | Write::ReplaceChange(_)
        | Write::Correct { .. } => false,
    }
}

/// The last of the sequence numbers that `writes` carry on from `seq`.
fn last_seq(seq: Seq, writes: &[Write]) -> Result<Seq, StoreError> {
    let mut changes = writes.iter().filter_map(|write| match write {
        Write::Change(change) => Some(change.seq),
        _ => None,
    });
    changes.try_fold(seq, |seq, found| {
        let expected = seq.next();
        if found == expected { Ok(found) } else { Err(StoreError::Gap { expected, found }) }
    })
}
