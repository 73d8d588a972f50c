//! A store in memory, for tests and experiments. It ends with the process.

use std::collections::{BTreeMap, HashMap, HashSet};
use std::ops::Bound::{Excluded, Unbounded};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use crate::blob::{Digest, Encoding, PackedBlob};
use crate::chain::{self, Chain, RowSet};
use crate::change::{Author, Change, Correction};
use crate::disk::{CrashPoint, crash_point};
use crate::entry::Entry;
use crate::id::{CallId, Seq, SessionId, Timestamp, TurnId};
use crate::path::WorkPath;
use crate::point::Point;
use crate::rewind::RewindRecord;
use crate::session::{Call, Session, Turn};
use crate::store::{
    Blobs, CompactEffort, Head, Log, StoreError, UnreferencedBlobs, Upkeep, Usage, Write,
};

/// One handle on a store in memory. A clone is another handle on the same store, like one in
/// another process: it sees what this handle committed, but not blobs that it only put.
#[derive(Debug, Default)]
pub struct MemoryStore {
    records: Arc<Mutex<Records>>,
    pending: HashMap<Digest, PackedBlob>,
}

#[derive(Debug, Default)]
struct Records {
    head: Head,
    chain: Option<Chain>,
    changes: BTreeMap<Seq, Change>,
    newest: BTreeMap<WorkPath, Seq>,
    points: Vec<Point>,
    sessions: HashMap<SessionId, Session>,
    turns: HashMap<TurnId, Turn>,
    calls: HashMap<(SessionId, CallId), Call>,
    rewinds: Vec<RewindRecord>,
    last_scan: Option<Timestamp>,
    last_cleanup: Option<Timestamp>,
    blobs: HashMap<Digest, PackedBlob>,
}

impl MemoryStore {
    /// An empty store.
    #[must_use]
    pub fn new() -> Self {
        Self::default()
    }

    fn records(&self) -> MutexGuard<'_, Records> {
        // A commit changes nothing before its last crash point, so a panic never leaves half a
        // commit behind.
        self.records.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

impl Clone for MemoryStore {
    fn clone(&self) -> Self {
        Self { records: Arc::clone(&self.records), pending: HashMap::new() }
    }
}

impl Log for MemoryStore {
    fn head(&self) -> Result<Head, StoreError> {
        Ok(self.records().head)
    }

    fn commit(&mut self, expected: Head, writes: &[Write]) -> Result<Head, StoreError> {
        let mut records = self.records.lock().unwrap_or_else(PoisonError::into_inner);
        if records.head != expected {
            return Err(StoreError::Moved);
        }
        let head = Write::next_head(expected, writes)?;
        crash_point(CrashPoint::Commit);
        records.blobs.extend(self.pending.drain());
        for write in writes {
            records.apply(write.clone());
        }
        records.head = head;
        records.chain = Some(records.chain().next(head, &chain::hash_writes(writes)));
        drop(records);
        crash_point(CrashPoint::Committed);
        Ok(head)
    }

    fn chain(&self) -> Result<Chain, StoreError> {
        Ok(self.records().chain())
    }

    fn changes_after(&self, after: Seq) -> Result<Vec<Change>, StoreError> {
        Ok(self
            .records()
            .changes
            .range((Excluded(after), Unbounded))
            .map(|(_, change)| change.clone())
            .collect())
    }

    fn change(&self, seq: Seq) -> Result<Option<Change>, StoreError> {
        Ok(self.records().changes.get(&seq).cloned())
    }

    fn latest_of(&self, paths: &[WorkPath]) -> Result<Vec<Option<Change>>, StoreError> {
        let records = self.records();
        Ok(paths
            .iter()
            .map(|path| Some(records.changes[records.newest.get(path)?].clone()))
            .collect())
    }

    fn latest(&self) -> Result<Vec<(WorkPath, Entry)>, StoreError> {
        let records = self.records();
        let entry = |seq| records.changes[seq].after.clone();
        Ok(records.newest.iter().map(|(path, seq)| (path.clone(), entry(seq))).collect())
    }

    fn points(&self) -> Result<Vec<Point>, StoreError> {
        let mut points = self.records().points.clone();
        points.sort_by_key(|point| point.seq);
        Ok(points)
    }

    fn sessions(&self) -> Result<Vec<Session>, StoreError> {
        let mut sessions: Vec<_> = self.records().sessions.values().cloned().collect();
        sessions.sort_by(|a, b| (a.started_at, &a.id).cmp(&(b.started_at, &b.id)));
        Ok(sessions)
    }

    fn session(&self, id: &SessionId) -> Result<Option<Session>, StoreError> {
        Ok(self.records().sessions.get(id).cloned())
    }

    fn turn(&self, id: TurnId) -> Result<Option<Turn>, StoreError> {
        Ok(self.records().turns.get(&id).cloned())
    }

    fn turns(&self) -> Result<Vec<Turn>, StoreError> {
        let mut turns: Vec<Turn> = self.records().turns.values().cloned().collect();
        turns.sort_by_key(|turn| (turn.opened_at, turn.id));
        Ok(turns)
    }

    fn live_calls(&self) -> Result<Vec<Call>, StoreError> {
        let records = self.records();
        let mut calls: Vec<_> =
            records.calls.values().filter(|call| call.state.may_write()).cloned().collect();
        calls.sort_by(|a, b| {
            (a.opened_at, &a.session, &a.id).cmp(&(b.opened_at, &b.session, &b.id))
        });
        Ok(calls)
    }

    fn calls_since(&self, time: Timestamp) -> Result<Vec<Call>, StoreError> {
        let ran = |call: &&Call| call.closed_at.is_none_or(|closed| closed >= time);
        let mut calls: Vec<_> = self.records().calls.values().filter(ran).cloned().collect();
        calls.sort_by(|a, b| {
            (a.opened_at, &a.session, &a.id).cmp(&(b.opened_at, &b.session, &b.id))
        });
        Ok(calls)
    }

    fn call(&self, session: &SessionId, id: &CallId) -> Result<Option<Call>, StoreError> {
        Ok(self.records().calls.get(&(session.clone(), id.clone())).cloned())
    }

    fn rewinds(&self) -> Result<Vec<RewindRecord>, StoreError> {
        let mut rewinds = self.records().rewinds.clone();
        rewinds.sort_by_key(|rewind| rewind.began_at);
        Ok(rewinds)
    }

    fn last_scan(&self) -> Result<Option<Timestamp>, StoreError> {
        Ok(self.records().last_scan)
    }

    fn last_cleanup(&self) -> Result<Option<Timestamp>, StoreError> {
        Ok(self.records().last_cleanup)
    }
}

impl Blobs for MemoryStore {
    fn put(&mut self, blob: PackedBlob) -> Result<(), StoreError> {
        if !self.has(&blob.digest)? {
            self.pending.insert(blob.digest, blob);
        }
        Ok(())
    }

    fn has(&self, digest: &Digest) -> Result<bool, StoreError> {
        Ok(self.pending.contains_key(digest) || self.records().blobs.contains_key(digest))
    }

    fn read_packed(&self, digest: &Digest) -> Result<PackedBlob, StoreError> {
        let pending = self.pending.get(digest).cloned();
        pending
            .or_else(|| self.records().blobs.get(digest).cloned())
            .ok_or(StoreError::MissingBlob { digest: *digest })
    }
}

impl Upkeep for MemoryStore {
    fn unreferenced(&self) -> Result<UnreferencedBlobs, StoreError> {
        let records = self.records();
        let named = records.referenced();
        let digests =
            records.blobs.keys().filter(|digest| !named.contains(digest)).copied().collect();
        Ok(UnreferencedBlobs { at: records.head, digests })
    }

    fn drop_blobs(&mut self, unreferenced: &UnreferencedBlobs) -> Result<(), StoreError> {
        let mut records = self.records();
        let moved = records.head != unreferenced.at;
        let named = if moved { records.referenced() } else { HashSet::new() };
        records
            .blobs
            .retain(|digest, _| !unreferenced.digests.contains(digest) || named.contains(digest));
        Ok(())
    }

    fn compact(&mut self, _effort: CompactEffort) -> Result<(), StoreError> {
        Ok(())
    }

    fn usage(&self) -> Result<Usage, StoreError> {
        let records = self.records();
        let bytes: u64 = records.blobs.values().map(|blob| blob.bytes.len() as u64).sum();
        let whole = records.blobs.values().filter(|blob| blob.encoding != Encoding::Chunks);
        Ok(Usage {
            contents: whole.map(|blob| blob.size).sum(),
            kept: bytes,
            packs: bytes,
            database: 0,
            blobs: records.blobs.len() as u64,
            changes: records.changes.len() as u64,
        })
    }

    fn check(&self) -> Result<Vec<String>, StoreError> {
        let mut damage = Vec::new();
        let (digests, entries, points, head) = {
            let records = self.records();
            let digests: Vec<_> = records.blobs.keys().copied().collect();
            let entries: Vec<_> = records
                .changes
                .values()
                .flat_map(|change| [&change.before, &change.after].map(|e| (change.seq, e.clone())))
                .collect();
            (digests, entries, records.points.clone(), records.head)
        };
        for digest in digests {
            if let Err(error) = self.read(&digest, &mut |_| Ok(())) {
                damage.push(error.to_string());
            }
        }
        for (seq, entry) in entries {
            if let Some(digest) = entry.digest()
                && !self.has(&digest)?
            {
                damage.push(format!("change {seq} names {digest}, which is not in the store"));
            }
        }
        for point in points.iter().filter(|point| point.seq > head.seq) {
            damage.push(format!("point {} is after the end of the log", point.id));
        }
        Ok(damage)
    }
}

impl Records {
    fn chain(&self) -> Chain {
        self.chain.unwrap_or_else(|| Chain::genesis(Head::default(), &RowSet::default()))
    }

    fn apply(&mut self, write: Write) {
        match write {
            Write::Change(change) => {
                self.newest.insert(change.path.clone(), change.seq);
                self.changes.insert(change.seq, change);
            }
            Write::Session(session) => {
                self.sessions.insert(session.id.clone(), session);
            }
            Write::Turn(turn) => {
                self.turns.insert(turn.id, turn);
            }
            Write::Call(call) => {
                self.calls.insert((call.session.clone(), call.id.clone()), call);
            }
            Write::Point(point) => match self.points.iter_mut().find(|p| p.id == point.id) {
                Some(known) => *known = point,
                None => self.points.push(point),
            },
            Write::Rewind(rewind) => match self.rewinds.iter_mut().find(|r| r.id == rewind.id) {
                Some(known) => *known = rewind,
                None => self.rewinds.push(rewind),
            },
            Write::ScanTime(time) => self.last_scan = Some(time),
            Write::CleanupTime(time) => self.last_cleanup = Some(time),
            Write::ReplaceChange(change) => {
                self.changes.insert(change.seq, change);
            }
            Write::Correct { change, correction } => {
                if let Some(change) = self.changes.get_mut(&change) {
                    change.correction = Some(correction);
                }
            }
            Write::DropChange(seq) => {
                let Some(change) = self.changes.remove(&seq) else { return };
                let mut left = self.changes.values().rev();
                match left.find(|other| other.path == change.path) {
                    Some(newest) => self.newest.insert(change.path, newest.seq),
                    None => self.newest.remove(&change.path),
                };
            }
            Write::DropPoint(id) => self.points.retain(|point| point.id != id),
            Write::DropRewind(id) => self.rewinds.retain(|rewind| rewind.id != id),
            Write::DropSession(id) => self.drop_session(&id),
            Write::DropTurns { session, before } => {
                let mut named: HashSet<TurnId> = HashSet::new();
                for change in self.changes.values() {
                    if let Author::Agent { turn, .. } = change.author {
                        named.insert(turn);
                    }
                }
                let live = self.calls.values().filter(|call| call.state.may_write());
                named.extend(live.map(|call| call.turn));
                let over = |turn: &Turn| {
                    turn.session == session
                        && turn.closed_at.is_some_and(|closed| closed < before)
                        && !named.contains(&turn.id)
                };
                let turns = &self.turns;
                self.calls.retain(|_, call| {
                    call.session != session || !turns.get(&call.turn).is_some_and(over)
                });
                self.turns.retain(|_, turn| !over(turn));
            }
        }
    }

    fn drop_session(&mut self, id: &SessionId) {
        self.sessions.remove(id);
        for session in self.sessions.values_mut().filter(|s| s.parent.as_ref() == Some(id)) {
            session.parent = None;
        }
        self.turns.retain(|_, turn| turn.session != *id);
        self.calls.retain(|(session, _), _| session != id);
        self.points.retain(|point| point.session.as_ref() != Some(id));
        for change in self.changes.values_mut() {
            if matches!(&change.correction, Some(Correction::Agent { session }) if session == id) {
                change.correction = None;
            }
            match &mut change.author {
                Author::Agent { session, .. } if session == id => change.author = Author::Deleted,
                Author::Ambiguous { sessions } => sessions.retain(|session| session != id),
                _ => {}
            }
        }
    }

    /// The blobs that changes refer to, and their parts.
    fn referenced(&self) -> HashSet<Digest> {
        let entries = self.changes.values().flat_map(|change| [&change.before, &change.after]);
        let mut named: HashSet<Digest> = entries.filter_map(Entry::digest).collect();
        let parts: Vec<Digest> =
            named.iter().filter_map(|d| self.blobs.get(d)).flat_map(PackedBlob::chunks).collect();
        named.extend(parts);
        named
    }
}
