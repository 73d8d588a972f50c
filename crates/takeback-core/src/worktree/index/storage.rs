//! Reading the index from its file and saving it there.
//!
//! A damaged, missing or outdated file costs time, never correctness: the index is rebuilt from the log.

use std::collections::HashMap;
use std::fs::{File, OpenOptions};
use std::io;
use std::os::unix::fs::FileExt as _;
use std::path::Path;
use std::sync::Arc;
use std::thread::Builder;

use takeback_store::{Seq, Store, StoreError, WorkPath, disk};

use super::file::{self, Delta, FolderDelta, Heading};
use super::{Index, IndexFile, LinkedNames};
use crate::worktree::fingerprint::{Fingerprint, stat_open};

/// Deltas may grow to this size or to a quarter of the file; then the file is replaced.
const MOST_APPENDED: u64 = 256 << 10;

impl Index {
    /// The index as of the store's head.
    pub fn load(file: &Path, store: &dyn Store) -> Result<Self, StoreError> {
        Self::read(file).map_or_else(|| Self::rebuilt(store), |index| index.up_to_date(store))
    }

    /// As of the store's head.
    pub(crate) fn up_to_date(mut self, store: &dyn Store) -> Result<Self, StoreError> {
        if self.stamp > store.head()?.seq {
            return Self::rebuilt(store);
        }
        self.catch_up(&store.changes_after(self.stamp)?);
        Ok(self)
    }

    /// From the log alone.
    fn rebuilt(store: &dyn Store) -> Result<Self, StoreError> {
        let mut index = Self::stamped(store.head()?.seq);
        for (path, entry) in store.latest()? {
            index.set(&path, &entry);
        }
        Ok(index)
    }

    /// Whether too many folders are outside the base for clones to be cheap.
    pub(crate) fn is_loose(&self) -> bool {
        self.over.len() > 512
    }

    /// Whether it equals the file and is worth keeping in memory.
    pub(crate) fn is_kept_in(&self, file: &Path) -> bool {
        let is_saved = |saved: &IndexFile| {
            let stat = File::open(file).and_then(|file| stat_open(&file));
            stat.is_ok_and(|stat| stat.fingerprint == saved.fingerprint)
        };
        self.unsaved.is_empty() && !self.is_loose() && self.saved.as_ref().is_some_and(is_saved)
    }

    /// The fingerprint is taken before the bytes are read: if another process writes in between, the next
    /// `append` sees another fingerprint and leaves the file alone.
    pub(crate) fn read(file: &Path) -> Option<Self> {
        let opened = File::open(file).ok()?;
        let fingerprint = stat_open(&opened).ok()?.fingerprint;
        let mut bytes = vec![0; usize::try_from(fingerprint.size).ok()?];
        read_in_parts(&opened, &mut bytes).ok()?;
        let decoded = file::decode(bytes)?;
        let heading = decoded.heading;
        let base_length = decoded.base.file_length();
        let saved = IndexFile { fingerprint, heading: heading.clone(), base_length };
        Some(Self {
            stamp: heading.stamp,
            linked: heading.linked,
            scope: heading.scope,
            base: Some(Arc::new(decoded.base)),
            over: decoded.over,
            unsaved: HashMap::new(),
            saved: decoded.is_whole.then_some(saved),
        })
    }

    /// The names that were one file at a moment, as far as the index in `file` knows. Reads no more
    /// of it than that.
    pub fn linked_at(file: &Path, head: Seq, moment: Seq) -> Vec<Vec<WorkPath>> {
        let known = File::open(file).ok().and_then(|file| file::read_heading(&file));
        let known = known.filter(|heading| heading.stamp <= head);
        let held = |linked: &LinkedNames| {
            linked.since < moment && linked.until.is_none_or(|until| moment <= until)
        };
        let known = known.into_iter().flat_map(|heading| heading.linked);
        known.filter(held).map(|linked| linked.names).collect()
    }

    /// Like [`Self::save`], but replaces the file and syncs it: after a crash no older one is back.
    pub fn save_durably(&mut self, file: &Path) -> io::Result<()> {
        self.replace(file)?;
        disk::sync(&File::open(file)?)?;
        file.parent().map_or(Ok(()), disk::sync_folder)
    }

    /// Appends a delta to the file, or replaces the file once the deltas are long.
    pub fn save(&mut self, file: &Path) -> io::Result<()> {
        let Some(saved) = &self.saved else { return self.replace(file) };
        let heading = self.heading();
        if heading == saved.heading && self.unsaved.is_empty() {
            return Ok(());
        }
        let appended = saved.fingerprint.size - saved.base_length;
        let most = MOST_APPENDED.max(saved.base_length / 4);
        // A changed folder takes at least 64 bytes: no need to encode them to see that they are too many.
        if appended > most || self.unsaved.len() as u64 * 64 > most {
            return self.replace(file);
        }
        let folders = self.unsaved.iter().map(|(path, before)| {
            let after = self.folder(path);
            (path.clone(), FolderDelta::between(before.as_deref(), after))
        });
        let delta = Delta {
            stamp: heading.stamp,
            scope: heading.scope,
            linked: (heading.linked != saved.heading.linked).then(|| heading.linked.clone()),
            folders: folders.collect(),
        };
        let bytes = delta.encode();
        if appended + bytes.len() as u64 > most {
            return self.replace(file);
        }
        let fingerprint = append(file, saved.fingerprint, &bytes)?;
        let base_length = saved.base_length;
        self.saved = fingerprint.map(|fingerprint| IndexFile { fingerprint, heading, base_length });
        self.unsaved.clear();
        Ok(())
    }

    /// Encodes everything into one base, as if read from a file, so that clones are cheap.
    pub(crate) fn compact(&mut self) {
        let encoded = self.encode();
        if let Some(decoded) = file::decode(encoded) {
            self.base = Some(Arc::new(decoded.base));
            self.over.clear();
        }
    }

    fn encode(&self) -> Vec<u8> {
        let mut folders: Vec<_> = self.over().collect();
        folders.sort_unstable_by_key(|(path, _)| *path);
        file::encode(&self.heading(), self.blocks(), &folders)
    }

    fn heading(&self) -> Heading {
        Heading { stamp: self.stamp, scope: self.scope, linked: self.linked.clone() }
    }

    fn replace(&mut self, file: &Path) -> io::Result<()> {
        let heading = self.heading();
        let bytes = self.encode();
        let written = disk::replace_private_file(file, &bytes)?;
        let (fingerprint, base_length) = (stat_open(&written)?.fingerprint, bytes.len() as u64);
        self.saved = Some(IndexFile { fingerprint, heading, base_length });
        self.unsaved.clear();
        Ok(())
    }
}

/// Appends to the file unless another process has changed it, and returns its new fingerprint. A delta
/// is relative to the file it was made for: behind another process's delta it would be wrong. Skipping
/// it costs only time, because the log has everything.
fn append(file: &Path, known: Fingerprint, bytes: &[u8]) -> io::Result<Option<Fingerprint>> {
    let mut opened = match OpenOptions::new().read(true).append(true).open(file) {
        Err(error) if error.kind() == io::ErrorKind::NotFound => return Ok(None),
        opened => opened?,
    };
    opened.lock()?;
    if stat_open(&opened)?.fingerprint != known {
        return Ok(None);
    }
    disk::append(&mut opened, bytes)?;
    Ok(Some(stat_open(&opened)?.fingerprint))
}

/// Reads a whole file, a large one with two threads: most of the time is spent on page faults.
fn read_in_parts(file: &File, bytes: &mut [u8]) -> io::Result<()> {
    const ONE_BELOW: usize = 4 << 20;
    if bytes.len() < ONE_BELOW {
        return file.read_exact_at(bytes, 0);
    }
    let (first, rest) = bytes.split_at_mut(bytes.len() / 2);
    let behind = first.len() as u64;
    let read = std::thread::scope(|scope| {
        let other = Builder::new().spawn_scoped(scope, || file.read_exact_at(rest, behind)).ok()?;
        let read = file.read_exact_at(first, 0);
        let other = other.join().unwrap_or_else(|panic| std::panic::resume_unwind(panic));
        Some(read.and(other))
    });
    // The second thread could not be started.
    read.unwrap_or_else(|| file.read_exact_at(bytes, 0))
}
