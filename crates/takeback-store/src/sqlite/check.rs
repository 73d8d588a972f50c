//! Reads everything in a store on disk and reports what is damaged.

use std::collections::HashMap;
use std::error::Error as _;

use rusqlite::Connection;

use super::SqliteStore;
use super::pack::{self, Location};
use super::rows::{self, RowError};
use super::sums::{self, Tally};
use super::{LAST_COMMIT, last_commit, log};
use crate::blob::{Digest, Encoding, PackedBlob};
use crate::chain::Chain;
use crate::change::Change;
use crate::entry::Entry;
use crate::id::Seq;
use crate::path::WorkPath;
use crate::point::Point;
use crate::rewind::RewindRecord;
use crate::session::{Call, Session, Turn};
use crate::store::{Blobs as _, Head, StoreError};

/// Fails only if the store cannot be read at all; damage is part of the result.
pub(super) fn check(store: &SqliteStore) -> Result<Vec<String>, StoreError> {
    let noted = last_commit::read_at(&store.dir.join(LAST_COMMIT));
    let moment = store.db.unchecked_transaction();
    let moment = store.rows("checking it", moment.map_err(RowError::from))?;
    let mut damage = DamageReport { store, found: Vec::new() };
    let tables = database(&moment, &mut damage.found);
    damage.or_note_damage(tables)?;

    let head = damage.or_note_damage(rows::head(&moment))?.unwrap_or_default();
    damage.lost_commits(&moment, head, noted)?;
    let mut tally = Tally::default();
    let mut named = HashMap::new();
    let mut unreadable = Vec::new();
    let mut after_end = Vec::new();
    let tables = [
        tally.table::<Point>(&moment, &mut |point| {
            if point.seq > head.seq {
                after_end.push(format!("point {} is after the end of the log", point.id));
            }
        }),
        tally.table::<RewindRecord>(&moment, &mut drop),
        tally.table::<Session>(&moment, &mut drop),
        tally.table::<Turn>(&moment, &mut drop),
        tally.table::<Call>(&moment, &mut drop),
        tally.table::<Change>(&moment, &mut |change| note_contents(&change, &mut named)),
    ];
    let last = rows::last_change(&moment);
    if let Some(last) = damage.or_note_damage(last)?.flatten().filter(|last| *last > head.seq) {
        after_end.push(format!("change {last} is after the end of the log"));
    }
    damage.found.append(&mut after_end);
    let is_whole = tally.is_whole(&moment);
    unreadable.append(&mut tally.damaged);
    let unread = tables.into_iter().filter_map(Result::err);
    unreadable.extend(unread);
    match is_whole {
        Ok(true) => {}
        Ok(false) => damage.found.push(MISSING_RECORDS.to_owned()),
        Err(error) => unreadable.push(error),
    }
    for line in damage.or_note_damage(sums::broken_links(&moment, head))?.unwrap_or_default() {
        damage.found.push(line);
    }

    let mut blobs = Vec::new();
    let listed = rows::each_blob(&moment, &mut |blob| match blob {
        Ok(blob) => blobs.push(blob),
        Err(error) => unreadable.push(error),
    });
    unreadable.extend(listed.err());
    for error in unreadable {
        damage.add(error)?;
    }
    for (digest, location) in blobs {
        let named = named.remove(&digest);
        if let Some(wrong) = contents(store, &digest, &location, named.as_ref()) {
            damage.found.push(match &named {
                Some(name) => format!("the contents {digest} of {name} {wrong}"),
                None => format!("the contents {digest} {wrong}"),
            });
        }
    }
    let mut missing: Vec<_> = named.into_iter().collect();
    missing.sort_unstable_by_key(|(_, name)| name.seq);
    for (digest, name) in missing {
        damage.found.push(format!("the contents {digest} of {name} are not in the store"));
    }
    Ok(damage.found)
}

const MISSING_RECORDS: &str =
    "the log: records are missing, or there are records that were never written";

struct DamageReport<'a> {
    store: &'a SqliteStore,
    found: Vec<String>,
}

impl DamageReport<'_> {
    /// Reports commits that existed and are lost.
    fn lost_commits(
        &mut self,
        moment: &Connection,
        head: Head,
        noted: Option<(Head, Chain)>,
    ) -> Result<(), StoreError> {
        for loss in self.or_note_damage(sums::losses(moment))?.unwrap_or_default() {
            self.found
                .push(format!("{loss}: the end of the log was cut off or an older copy put back"));
        }
        let Some((noted, chain)) = noted else { return Ok(()) };
        if let Some(loss) = log::loss(noted, head) {
            self.found.push(format!("{loss}: the end of the log is cut off or damaged"));
        } else if noted == head
            && self.or_note_damage(sums::chain(moment))?.is_some_and(|now| now != chain)
        {
            self.found.push(format!("commit {} is not the one that was made", head.revision));
        }
        Ok(())
    }

    /// The value that was read; on damage notes it and returns `None`.
    fn or_note_damage<T>(&mut self, read: Result<T, RowError>) -> Result<Option<T>, StoreError> {
        match read {
            Ok(value) => Ok(Some(value)),
            Err(error) => self.add(error).map(|()| None),
        }
    }

    fn add(&mut self, error: RowError) -> Result<(), StoreError> {
        match self.store.failure("checking it", error) {
            busy @ StoreError::Busy { .. } => return Err(busy),
            error => self.found.push(match error.source() {
                Some(source) => format!("{error}: {source}"),
                None => error.to_string(),
            }),
        }
        Ok(())
    }
}

/// The first change that refers to some contents, for the report.
struct FirstReference {
    seq: Seq,
    path: WorkPath,
    size: u64,
}

impl std::fmt::Display for FirstReference {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        write!(f, "{} (change {})", self.path.display(), self.seq)
    }
}

fn note_contents(change: &Change, named: &mut HashMap<Digest, FirstReference>) {
    for entry in [&change.before, &change.after] {
        if let Entry::File { digest, size, .. } = entry {
            let name =
                || FirstReference { seq: change.seq, path: change.path.clone(), size: *size };
            named.entry(*digest).or_insert_with(name);
        }
    }
}

fn database(db: &Connection, found: &mut Vec<String>) -> Result<(), RowError> {
    let mut integrity = db.prepare("PRAGMA integrity_check")?;
    for line in integrity.query_map([], |row| row.get::<_, String>(0))? {
        let line = line?;
        if line != "ok" {
            found.push(format!("the database: {line}"));
        }
    }
    let mut relations = db.prepare("PRAGMA foreign_key_check")?;
    let broken =
        relations.query_map([], |row| Ok((row.get::<_, String>(0)?, row.get::<_, String>(2)?)))?;
    for row in broken {
        let (table, parent) = row?;
        found.push(format!("the database: a {table} refers to a {parent} that does not exist"));
    }
    Ok(())
}

/// What is wrong with some contents; `None` if nothing is.
fn contents(
    store: &SqliteStore,
    digest: &Digest,
    location: &Location,
    named: Option<&FirstReference>,
) -> Option<String> {
    if named.is_some_and(|name| name.size != location.size) {
        return Some("have another size in the log than in the store".to_owned());
    }
    let mut record = match store.packs.read_record(location) {
        Ok(Some(record)) => record,
        Ok(None) => return Some(format!("are missing from segment {:08x}", location.segment)),
        Err(error) => return Some(format!("cannot be read: {error}")),
    };
    let bytes = record.split_off(pack::HEADER);
    let Location { size, encoding, .. } = *location;
    let right = match encoding {
        Encoding::Raw | Encoding::Zstd => {
            PackedBlob { digest: *digest, size, encoding, bytes }.unpack().is_some()
        }
        Encoding::Chunks => {
            let mut length = 0;
            let read = store.read(digest, &mut |part| {
                length += part.len() as u64;
                Ok(())
            });
            match read {
                Ok(()) => length == size,
                Err(StoreError::MissingBlob { digest: part }) => {
                    return Some(format!("lack their part {part}"));
                }
                Err(_damaged) => false,
            }
        }
    };
    if !right {
        return Some(format!("are damaged in segment {:08x}", location.segment));
    }
    let header = pack::header(digest, location);
    (record != header).then(|| {
        format!(
            "are whole, but the head of their record in segment {:08x} is damaged",
            location.segment
        )
    })
}
