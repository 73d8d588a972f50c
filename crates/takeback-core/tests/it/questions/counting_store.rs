//! A store that counts what it hands out: rows, and contents.

use std::sync::atomic::{AtomicUsize, Ordering};

use takeback_store::{
    Blobs, Call, CallId, Chain, Change, CompactEffort, Digest, Entry, Head, Log, PackedBlob, Point,
    PointFilter, PointQuery, RewindHeader, RewindId, RewindRecord, Seq, Session, SessionId, Store,
    StoreError, Timestamp, Turn, TurnId, UnreferencedBlobs, Upkeep, Usage, WorkPath, Write,
};

/// Counts the reads of another store. A new method of [`Log`] that is not passed on here reads the whole log.
pub(super) struct CountingStore {
    inner: Box<dyn Store>,
    rows: AtomicUsize,
}

impl CountingStore {
    pub(super) fn new(inner: Box<dyn Store>) -> Self {
        Self { inner, rows: AtomicUsize::new(0) }
    }

    /// How many rows and contents `ask` reads, and what it answers. A read without a result counts as one.
    pub(super) fn reads<R>(&self, ask: impl FnOnce(&Self) -> R) -> (usize, R) {
        let before = self.rows.load(Ordering::Relaxed);
        let answer = ask(self);
        (self.rows.load(Ordering::Relaxed) - before, answer)
    }

    fn count<T: Rows>(&self, found: Result<T, StoreError>) -> Result<T, StoreError> {
        let rows = found.as_ref().map_or(1, Rows::rows).max(1);
        self.rows.fetch_add(rows, Ordering::Relaxed);
        found
    }
}

trait Rows {
    fn rows(&self) -> usize {
        1
    }
}

impl<T> Rows for Vec<T> {
    fn rows(&self) -> usize {
        self.len()
    }
}

impl<T> Rows for Option<T> {}
impl Rows for usize {}
impl Rows for bool {}
impl Rows for Head {}
impl Rows for Chain {}

/// Bytes are one read, however many.
struct Whole(Vec<u8>);

impl Rows for Whole {}

macro_rules! counted {
    ($(fn $name:ident(&self $(, $argument:ident: $type:ty)*) -> $answer:ty;)*) => {
        $(fn $name(&self $(, $argument: $type)*) -> Result<$answer, StoreError> {
            self.count(self.inner.$name($($argument),*))
        })*
    };
}

impl Log for CountingStore {
    counted! {
        fn head(&self) -> Head;
        fn chain(&self) -> Chain;
        fn changes_after(&self, after: Seq) -> Vec<Change>;
        fn changes_between(&self, after: Seq, through: Seq) -> Vec<Change>;
        fn rewind_changes_after(&self, after: Seq) -> Vec<Change>;
        fn change(&self, seq: Seq) -> Option<Change>;
        fn changes_beside(&self, change: &Change) -> Vec<Change>;
        fn changes_of(&self, path: &WorkPath) -> Vec<Change>;
        fn newest_changes_of(&self, path: &WorkPath, before: Seq, most: usize) -> Vec<Change>;
        fn positions_below(&self, folder: &WorkPath, before: Seq, most: usize) -> Vec<Seq>;
        fn paths_of_call(&self, session: &SessionId, id: &CallId) -> Vec<WorkPath>;
        fn latest_of(&self, paths: &[WorkPath]) -> Vec<Option<Change>>;
        fn latest(&self) -> Vec<(WorkPath, Entry)>;
        fn unreadable(&self) -> Vec<WorkPath>;
        fn unreadable_changes(&self) -> Vec<Change>;
        fn points(&self) -> Vec<Point>;
        fn find_points(&self, query: PointQuery<'_>) -> Vec<Point>;
        fn count_points(&self, filter: PointFilter) -> usize;
        fn count_points_of(&self, session: Option<&SessionId>) -> usize;
        fn sessions(&self) -> Vec<Session>;
        fn session(&self, id: &SessionId) -> Option<Session>;
        fn turns(&self) -> Vec<Turn>;
        fn turn(&self, id: TurnId) -> Option<Turn>;
        fn calls_since(&self, time: Timestamp) -> Vec<Call>;
        fn live_calls(&self) -> Vec<Call>;
        fn call(&self, session: &SessionId, id: &CallId) -> Option<Call>;
        fn rewinds(&self) -> Vec<RewindRecord>;
        fn rewind_headers(&self) -> Vec<RewindHeader>;
        fn rewind(&self, id: RewindId) -> Option<RewindRecord>;
        fn open_rewinds(&self) -> Vec<RewindRecord>;
        fn last_scan(&self) -> Option<Timestamp>;
        fn last_cleanup(&self) -> Option<Timestamp>;
    }

    fn commit(&mut self, expected: Head, writes: &[Write]) -> Result<Head, StoreError> {
        self.inner.commit(expected, writes)
    }
}

impl Blobs for CountingStore {
    fn put(&mut self, blob: PackedBlob) -> Result<(), StoreError> {
        self.inner.put(blob)
    }

    counted! {
        fn has(&self, digest: &Digest) -> bool;
        fn is_complete(&self, digest: &Digest) -> bool;
    }

    fn read_packed(&self, digest: &Digest) -> Result<PackedBlob, StoreError> {
        self.rows.fetch_add(1, Ordering::Relaxed);
        self.inner.read_packed(digest)
    }

    fn contents(&self, digest: &Digest) -> Result<Vec<u8>, StoreError> {
        self.count(self.inner.contents(digest).map(Whole)).map(|whole| whole.0)
    }
}

impl Upkeep for CountingStore {
    fn unreferenced(&self) -> Result<UnreferencedBlobs, StoreError> {
        self.inner.unreferenced()
    }

    fn drop_blobs(&mut self, unreferenced: &UnreferencedBlobs) -> Result<(), StoreError> {
        self.inner.drop_blobs(unreferenced)
    }

    fn compact(&mut self, effort: CompactEffort) -> Result<(), StoreError> {
        self.inner.compact(effort)
    }

    fn usage(&self) -> Result<Usage, StoreError> {
        self.inner.usage()
    }

    fn check(&self) -> Result<Vec<String>, StoreError> {
        self.inner.check()
    }
}
