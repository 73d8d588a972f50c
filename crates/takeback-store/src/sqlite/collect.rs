//! Finds what nothing names any more, and forgets it; what there is, and what it takes.
//!
//! Finding disturbs nobody. Only [`forget`] needs its caller to keep others from naming contents that
//! they were told are here. [`super::compact`] then gives the space back.

use std::collections::{HashMap, HashSet};

use rusqlite::TransactionBehavior;

use super::pack::HEADER;
use super::rows;
use super::schema::io_error;
use super::{Contents, SqliteStore};
use crate::blob::{Digest, Encoding};
use crate::disk::{CrashPoint, crash_point};
use crate::id::Seq;
use crate::store::{Store as _, StoreError, Unnamed, Usage, Weight};

pub(super) fn unnamed(store: &SqliteStore) -> Result<Unnamed, StoreError> {
    let doing = "looking for contents that nothing names";
    let at = store.rows(doing, rows::head(&store.db))?;
    let mut digests = HashSet::new();
    let mut broken = None;
    let listed = rows::each_blob(&store.db, &mut |blob| match blob {
        Ok((digest, _)) => drop(digests.insert(digest)),
        Err(error) => broken = Some(error),
    });
    store.rows(doing, broken.map_or(listed, Err))?;
    // Not at one moment with the above: what is named in between is named.
    for digest in named_after(store, Seq(0))? {
        digests.remove(&digest);
    }
    Ok(Unnamed { at, digests })
}

pub(super) fn forget(store: &mut SqliteStore, unnamed: &Unnamed) -> Result<(), StoreError> {
    // Changes may have been replaced since, too: then any of them may name what none did.
    let moved = store.head()? != unnamed.at;
    let named = if moved { named_after(store, Seq(0))? } else { HashSet::new() };
    let mut going: Vec<&Digest> = unnamed.digests.difference(&named).collect();
    going.sort_unstable();
    store.contents = Contents::Unasked;
    let forgotten = going.chunks(AT_ONCE).try_for_each(|some| {
        let transaction = store.db.transaction_with_behavior(TransactionBehavior::Immediate)?;
        for digest in some {
            rows::forget_blob(&transaction, digest)?;
        }
        crash_point(CrashPoint::Commit);
        transaction.commit()?;
        crash_point(CrashPoint::Committed);
        if going.len() > AT_ONCE { rows::checkpoint(&store.db) } else { Ok(()) }
    });
    store.rows("forgetting contents that nothing names", forgotten)
}

/// Rows that one transaction deletes: what they take before they are gone is written over by the next
/// ones, so that a disk that is nearly full has room for it.
const AT_ONCE: usize = 4000;

/// The contents that changes after `after` name, and the parts of those that are in parts.
fn named_after(store: &SqliteStore, after: Seq) -> Result<HashSet<Digest>, StoreError> {
    let mut named = HashSet::new();
    let mut broken = None;
    let read = rows::each_change_after(&store.db, after, &mut |change| match change {
        Ok(change) => {
            named.extend([&change.before, &change.after].into_iter().filter_map(|e| e.digest()));
        }
        Err(error) => broken = Some(error),
    });
    // A change that cannot be read may name anything.
    store.rows("reading changes", broken.map_or(read, Err))?;
    let mut parts = Vec::new();
    for digest in &named {
        let place = store.rows("looking for contents", rows::blob(&store.db, digest))?;
        if place.is_some_and(|place| place.encoding == Encoding::Chunks) {
            parts.extend(store.packed(digest)?.chunks());
        }
    }
    named.extend(parts);
    Ok(named)
}

pub(super) fn weights(
    store: &SqliteStore,
    digests: &HashSet<Digest>,
) -> Result<HashMap<Digest, Weight>, StoreError> {
    let mut weights = HashMap::new();
    let mut in_parts = Vec::new();
    let mut broken = None;
    let listed = rows::each_blob(&store.db, &mut |blob| match blob {
        Ok((digest, place)) => {
            let bytes = HEADER as u64 + u64::from(place.length);
            weights.insert(digest, Weight { bytes, parts: Vec::new() });
            if place.encoding == Encoding::Chunks && digests.contains(&digest) {
                in_parts.push(digest);
            }
        }
        Err(error) => broken = Some(error),
    });
    store.rows("adding up contents", broken.map_or(listed, Err))?;
    let mut wanted = digests.clone();
    for digest in in_parts {
        let parts = store.packed(&digest)?.chunks();
        wanted.extend(&parts);
        if let Some(weight) = weights.get_mut(&digest) {
            weight.parts = parts;
        }
    }
    weights.retain(|digest, _| wanted.contains(digest));
    Ok(weights)
}

pub(super) fn usage(store: &SqliteStore) -> Result<Usage, StoreError> {
    let mut usage = store.rows("adding up what it holds", rows::usage(&store.db))?;
    usage.packs = store.packs.segments()?.into_iter().map(|(_, size)| size).sum();
    let database = std::fs::metadata(&store.database);
    usage.database =
        database.map_err(|source| io_error(&store.database, "looking at it", source))?.len();
    Ok(usage)
}
