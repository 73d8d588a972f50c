//! Reads nodes from the database, one by one or many ahead.

use std::collections::{HashMap, HashSet};
use std::sync::{Mutex, mpsc};
use std::thread::Builder;

use rusqlite::{CachedStatement, Connection};

use super::rows::{Result, RowError};
use super::tree::{self, Fetch, Node, TreeError};
use super::write_queue::lock;
use crate::blob::Digest;

pub(super) struct Nodes<'a> {
    select: CachedStatement<'a>,
    /// Nodes that were read ahead and verified.
    ready: HashMap<u64, Node>,
    /// The number of bytes read.
    pub(super) read: usize,
}

/// A node that is not unpacked yet.
struct PackedNode {
    number: u64,
    digest: Digest,
    bytes: Vec<u8>,
}

/// From this many texts on, other threads help.
const HELPED_FROM: usize = 64;
/// The number of nodes passed to a thread at once.
const AT_ONCE: usize = 32;
const MOST_THREADS: usize = 4;
/// The limit of packed bytes that are read ahead.
const MOST_AHEAD: usize = 16 << 20;

impl<'a> Nodes<'a> {
    pub(super) fn of(db: &'a Connection) -> Result<Self> {
        let select = db.prepare_cached("SELECT start, rest, body FROM node WHERE id = ?")?;
        Ok(Self { select, ready: HashMap::new(), read: 0 })
    }

    /// Reads the texts that some values refer to, if there are many: unpacking and verifying them
    /// is most of the work, and threads can share it. Damaged or missing texts are skipped; reading
    /// them later reports the error.
    pub(super) fn read_ahead(&mut self, body: &[u8]) -> Result<()> {
        let mut met = HashSet::new();
        let mut texts = Vec::new();
        let named = tree::parts_of(body, self, &mut |number, is_text| {
            let is_new = met.insert(number);
            if is_new && is_text {
                texts.push(number);
            }
            is_new
        });
        match named {
            Err(RowError::Tree(_)) => return Ok(()),
            named => named?,
        }
        let threads = std::thread::available_parallelism().map_or(1, usize::from).min(MOST_THREADS);
        if texts.len() < HELPED_FROM || threads == 1 {
            return Ok(());
        }
        let (send, receive) = mpsc::channel();
        let receive = Mutex::new(receive);
        self.ready = std::thread::scope(|scope| {
            let start = |_| Builder::new().spawn_scoped(scope, || unpack_all(&receive)).ok();
            let helpers: Vec<_> = (1..threads).map_while(start).collect();
            let sent = self.send(&texts, &send);
            drop(send);
            let mut ready = unpack_all(&receive);
            for helper in helpers {
                match helper.join() {
                    Ok(unpacked) => ready.extend(unpacked),
                    Err(panic) => std::panic::resume_unwind(panic),
                }
            }
            sent.map(|()| ready)
        })?;
        Ok(())
    }

    fn send(&mut self, numbers: &[u64], send: &mpsc::Sender<Vec<PackedNode>>) -> Result<()> {
        let mut ahead = 0;
        for numbers in numbers.chunks(AT_ONCE) {
            let mut some = Vec::with_capacity(numbers.len());
            for &number in numbers {
                let found = self.select(number, |digest, bytes| {
                    Ok(PackedNode { number, digest, bytes: bytes.to_vec() })
                });
                match found {
                    Ok(packed) => {
                        ahead += packed.bytes.len();
                        some.push(packed);
                    }
                    Err(RowError::Tree(_)) => {}
                    Err(error) => return Err(error),
                }
            }
            if send.send(some).is_err() || ahead > MOST_AHEAD {
                break;
            }
        }
        Ok(())
    }

    fn select<T>(
        &mut self,
        number: u64,
        make: impl FnOnce(Digest, &[u8]) -> std::result::Result<T, TreeError>,
    ) -> Result<T> {
        let mut rows = self.select.query([number.cast_signed()])?;
        let Some(row) = rows.next()? else {
            return Err(TreeError::Bytes("a node of it is missing").into());
        };
        let start: i64 = row.get(0)?;
        let rest = row.get_ref(1)?.as_blob().unwrap_or_default();
        let mut digest = [0; 32];
        digest[..8].copy_from_slice(&start.to_le_bytes());
        match <[u8; 24]>::try_from(rest) {
            Ok(rest) => digest[8..].copy_from_slice(&rest),
            Err(_) => return Err(TreeError::Bytes("a node of it has no digest").into()),
        }
        let body = row.get_ref(2)?.as_blob().map_err(rusqlite::Error::from)?;
        self.read += body.len();
        Ok(make(Digest(digest), body)?)
    }
}

impl Fetch for Nodes<'_> {
    type Error = RowError;

    fn node(&mut self, number: u64) -> Result<Node> {
        match self.ready.remove(&number) {
            Some(node) => Ok(node),
            None => self.select(number, Node::unpacked),
        }
    }
}

/// Unpacks all nodes that are sent, except damaged ones.
fn unpack_all(receive: &Mutex<mpsc::Receiver<Vec<PackedNode>>>) -> HashMap<u64, Node> {
    let mut ready = HashMap::new();
    loop {
        // In its own statement, so that the lock is released before unpacking.
        let received = lock(receive).recv();
        let Ok(some) = received else { return ready };
        for PackedNode { number, digest, bytes } in some {
            if let Ok(node) = Node::unpacked(digest, &bytes).and_then(|node| node.verified(number))
            {
                ready.insert(number, node);
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use serde_json::{Value, json};

    use super::*;
    use crate::id::Timestamp;
    use crate::sqlite::DATABASE;
    use crate::sqlite::SqliteStates;
    use crate::state::{ExecutionId, NewCheckpoint, StateError, States as _, StepIndex, Values};

    #[test]
    fn texts_are_read_ahead_except_damaged_ones() {
        let dir = tempfile::tempdir().unwrap();
        let execution = ExecutionId::new("e").unwrap();
        let texts: Vec<Value> =
            (0..2 * HELPED_FROM).map(|n| json!(format!("text {n} ").repeat(300))).collect();
        // One text twice, and one of more than one node.
        let long: String = (0..20_000).map(|n| n.to_string()).collect();
        let state = json!({ "texts": texts, "again": texts[7], "long": long });
        let values = Values { state, ..Values::default() };
        let new = NewCheckpoint::success(&execution, StepIndex(1), "think", Timestamp(0), &values);
        let id = SqliteStates::create(dir.path()).unwrap().save(&new).unwrap().record.id();
        let load = || SqliteStates::at(dir.path()).load(&id).map(|found| found.unwrap().values);
        assert_eq!(load().unwrap(), values);

        let db = Connection::open(dir.path().join(DATABASE)).unwrap();
        let all: Vec<(i64, Vec<u8>)> = {
            let mut select = db.prepare("SELECT id, body FROM node ORDER BY id").unwrap();
            let rows = select.query_map([], |row| Ok((row.get(0)?, row.get(1)?))).unwrap();
            rows.map(|row| row.unwrap()).collect()
        };
        assert!(all.len() > 2 * HELPED_FROM, "{} nodes", all.len());
        let put = |id: i64, body: &[u8]| {
            db.execute("UPDATE node SET body = ? WHERE id = ?", (body, id)).unwrap();
        };
        for (number, body) in all.iter().step_by(5) {
            let mut flipped = body.clone();
            let at = flipped.len() / 2;
            flipped[at] ^= 4;
            for other in [&flipped[..], &body[..at], &[]] {
                put(*number, other);
                let error = load().unwrap_err();
                assert!(matches!(error, StateError::Damaged { .. }), "node {number}: {error}");
            }
            put(*number, body);
        }
        assert_eq!(load().unwrap(), values);
        db.execute("DELETE FROM node WHERE id = ?", [all[9].0]).unwrap();
        assert!(matches!(load(), Err(StateError::Damaged { .. })));
    }
}
