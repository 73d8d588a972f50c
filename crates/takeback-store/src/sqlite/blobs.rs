//! Contents in packs, found by rows of the database.

use std::collections::HashSet;

use super::pack::Location;
use super::{KnownBlobs, SqliteStore, rows};
use crate::blob::{Digest, Encoding, PackedBlob};
use crate::store::{Blobs, StoreError};

impl Blobs for SqliteStore {
    fn put(&mut self, blob: PackedBlob) -> Result<(), StoreError> {
        if self.packs.pending().contains_key(&blob.digest) {
            return Ok(());
        }
        let doing = "looking for contents";
        if let KnownBlobs::NotRead = self.known_blobs {
            let had_some = self.rows(doing, rows::has_blobs(&self.db))?;
            self.known_blobs =
                if had_some { KnownBlobs::Some } else { KnownBlobs::Only(HashSet::new()) };
        }
        let is_there = match &self.known_blobs {
            KnownBlobs::Only(put) => put.contains(&blob.digest),
            _ => self.rows(doing, rows::has_blob(&self.db, &blob.digest))?,
        };
        if is_there {
            return Ok(());
        }
        self.packs.append(&blob)?;
        if let KnownBlobs::Only(put) = &mut self.known_blobs {
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

    fn read_packed(&self, digest: &Digest) -> Result<PackedBlob, StoreError> {
        let mut location = self.locate(digest)?;
        let bytes = loop {
            if let Some(bytes) = self.packs.read(&location)? {
                break bytes;
            }
            // Another process may have moved it.
            let now = self.locate(digest)?;
            if now == location {
                return Err(StoreError::DamagedBlob { digest: *digest });
            }
            location = now;
        };
        Ok(PackedBlob { digest: *digest, size: location.size, encoding: location.encoding, bytes })
    }

    fn is_complete(&self, digest: &Digest) -> Result<bool, StoreError> {
        let find_record = |digest: &Digest| -> Result<Option<Location>, StoreError> {
            let location = self.locate(digest)?;
            Ok(self.packs.has_record_at(digest, &location)?.then_some(location))
        };
        let whole = |location: Option<Location>| -> Result<bool, StoreError> {
            match location {
                None => Ok(false),
                Some(location) if location.encoding != Encoding::Chunks => Ok(true),
                Some(_) => {
                    let mut parts = self.read_packed(digest)?.chunks().into_iter();
                    parts.try_fold(true, |whole, part| Ok(whole && find_record(&part)?.is_some()))
                }
            }
        };
        match find_record(digest).and_then(whole) {
            Ok(true) => Ok(true),
            // Another process may have moved it, or only the header of its record is damaged.
            _ => match self.read(digest, &mut |_| Ok(())) {
                Err(error) if error.is_lost_contents() => Ok(false),
                read => read.map(|()| true),
            },
        }
    }
}

impl SqliteStore {
    fn locate(&self, digest: &Digest) -> Result<Location, StoreError> {
        if let Some(location) = self.packs.pending().get(digest) {
            return Ok(*location);
        }
        self.rows("looking for contents", rows::blob(&self.db, digest))?
            .ok_or(StoreError::MissingBlob { digest: *digest })
    }
}
