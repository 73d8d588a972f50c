//! Contents in append-only segments: `packs/<8 hex digits>.pack`.
//!
//! Appends blobs, returns their location, and reads them back. It does not know which blobs belong
//! to the store: a record without a row is dead space, never an error.

use std::cell::RefCell;
use std::collections::HashMap;
use std::collections::hash_map::Entry;
use std::fs::{File, OpenOptions, TryLockError};
use std::io;
use std::os::unix::fs::{FileExt as _, MetadataExt as _};
use std::path::{Path, PathBuf};
use std::thread::JoinHandle;

use super::schema::io_error;
use crate::blob::{Digest, Encoding, PackedBlob};
use crate::disk;
use crate::store::StoreError;

/// A record that would end after this offset starts a new segment.
const SEGMENT_LIMIT: u64 = 64 << 20;

/// Records are buffered up to this size before they are written.
const BATCH: usize = 1 << 20;

const MAGIC: [u8; 4] = *b"TkB1";

/// The length of the header before the bytes of a record.
pub(super) const HEADER: usize = 53;

/// The location of a blob, its size and its encoding.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) struct Location {
    pub(super) segment: u32,
    /// Where its record begins.
    pub(super) offset: u64,
    /// Stored bytes, without the record's header.
    pub(super) length: u32,
    /// Size of the contents.
    pub(super) size: u64,
    pub(super) encoding: Encoding,
}

/// The segments of one store, as one handle sees them.
#[derive(Debug)]
pub(super) struct Packs {
    dir: PathBuf,
    /// Locked segments that this handle appends to; the next record goes into the last one. No
    /// other handle appends to them until these records are committed or discarded.
    held: Vec<Segment>,
    /// Records for the last held segment that are not written yet.
    buffer: Vec<u8>,
    /// Everything put since the last commit, including what is still in the buffer.
    pending: HashMap<Digest, Location>,
    /// Set after a failed sync: the kernel may have dropped the pages and would report success the
    /// next time.
    lost: bool,
    limit: u64,
    /// If set, only these segments and new ones may be appended to.
    only: Option<Vec<u32>>,
    readers: RefCell<HashMap<u32, File>>,
}

#[derive(Debug)]
struct Segment {
    number: u32,
    path: PathBuf,
    file: File,
    /// Its length when this handle locked it.
    taken_at: u64,
    /// The offset at which the buffer will be written.
    end: u64,
    unsynced: bool,
    /// Set once it is full: the sync that runs in the background.
    syncing: Option<JoinHandle<io::Result<()>>>,
}

impl Segment {
    fn make_durable(&mut self) -> io::Result<()> {
        match self.syncing.take().map(JoinHandle::join) {
            Some(Ok(synced)) => synced?,
            Some(Err(panic)) => std::panic::resume_unwind(panic),
            None => disk::sync(&self.file)?,
        }
        self.unsynced = false;
        Ok(())
    }
}

/// A locked segment that no handle appends to until this is dropped.
#[derive(Debug)]
pub(super) struct RetiredSegment(Segment);

impl RetiredSegment {
    pub(super) fn number(&self) -> u32 {
        self.0.number
    }

    pub(super) fn size(&self) -> u64 {
        self.0.end
    }

    /// Frees the blocks of a part of it. No row may refer to that part.
    pub(super) fn punch(&self, offset: u64, length: u64) -> Result<(), StoreError> {
        disk::punch(&self.0.file, offset, length)
            .map_err(|source| io_error(&self.0.path, "freeing a part of it", source))
    }

    /// Removes it. No row may refer to it.
    pub(super) fn remove(self) -> Result<(), StoreError> {
        disk::remove_store_file(&self.0.path)
            .map_err(|source| io_error(&self.0.path, "removing it", source))
    }
}

impl Packs {
    pub(super) fn new(dir: PathBuf) -> Self {
        Self {
            dir,
            held: Vec::new(),
            buffer: Vec::new(),
            pending: HashMap::new(),
            lost: false,
            limit: SEGMENT_LIMIT,
            only: None,
            readers: RefCell::default(),
        }
    }

    /// Appends only to these segments or to new ones from now on.
    pub(super) fn append_only_to(&mut self, segments: Vec<u32>) {
        self.only = Some(segments);
    }

    /// The lengths of the segments that were appended to, once they are durable.
    pub(super) fn ends(&self) -> impl Iterator<Item = (u32, u64)> {
        self.held.iter().map(|segment| (segment.number, segment.end))
    }

    pub(super) fn pending(&self) -> &HashMap<Digest, Location> {
        &self.pending
    }

    /// Takes a blob, to be durable after [`Self::make_durable`].
    pub(super) fn append(&mut self, blob: &PackedBlob) -> Result<(), StoreError> {
        let length = u32::try_from(blob.bytes.len()).map_err(|_too_long| {
            io_error(
                &self.dir,
                "keeping more than 4 GiB in one record",
                io::ErrorKind::FileTooLarge.into(),
            )
        })?;
        let record = HEADER as u64 + u64::from(length);
        let buffered = self.buffer.len() as u64;
        let room = |segment: &Segment| segment.end + buffered + record <= self.limit;
        if !self.held.last().is_some_and(room) {
            self.flush()?;
            // A first scan fills several segments and would otherwise wait for all of them at its
            // end.
            if let Some(full) = self.held.last_mut().filter(|segment| segment.unsynced) {
                let begun = disk::begin_sync(&full.file);
                full.syncing =
                    begun.map_err(|source| io_error(&full.path, "making it durable", source))?;
            }
            let segment = self.take_segment(record)?;
            self.held.push(segment);
        }
        let segment = self.held.last().expect("one was just taken");
        let location = Location {
            segment: segment.number,
            offset: segment.end + self.buffer.len() as u64,
            length,
            size: blob.size,
            encoding: blob.encoding,
        };
        self.buffer.extend_from_slice(&header(&blob.digest, &location));
        self.buffer.extend_from_slice(&blob.bytes);
        self.pending.insert(blob.digest, location);
        if self.buffer.len() >= BATCH { self.flush() } else { Ok(()) }
    }

    /// Makes everything put so far durable. After one failure it always fails: the kernel may have
    /// dropped the unwritten pages, so only a new handle that puts everything again can be right.
    pub(super) fn make_durable(&mut self) -> Result<(), StoreError> {
        if self.lost {
            let source = io::Error::other("contents were lost; the store must be opened again");
            return Err(io_error(&self.dir, "making it durable", source));
        }
        self.flush()?;
        for segment in self.held.iter_mut().filter(|segment| segment.unsynced) {
            segment.make_durable().map_err(|source| {
                self.lost = true;
                io_error(&segment.path, "making it durable", source)
            })?;
        }
        Ok(())
    }

    /// Writes what was put to the kernel, which keeps it if this process dies.
    pub(super) fn write_out(&mut self) -> Result<(), StoreError> {
        self.flush()
    }

    /// Makes every segment durable, including those of other processes.
    pub(super) fn make_all_durable(&self) -> Result<(), StoreError> {
        for number in segment_numbers(&self.dir)? {
            let path = segment_path(&self.dir, number);
            match File::open(&path).and_then(|segment| disk::sync(&segment)) {
                Err(error) if error.kind() == io::ErrorKind::NotFound => {}
                synced => synced.map_err(|source| io_error(&path, "making it durable", source))?,
            }
        }
        Ok(())
    }

    /// All segments, oldest first, with their sizes.
    pub(super) fn segments(&self) -> Result<Vec<(u32, u64)>, StoreError> {
        let mut segments = Vec::new();
        for number in segment_numbers(&self.dir)? {
            let path = segment_path(&self.dir, number);
            match std::fs::metadata(&path) {
                Ok(metadata) => segments.push((number, metadata.len())),
                Err(error) if error.kind() == io::ErrorKind::NotFound => {}
                Err(source) => return Err(io_error(&path, "looking at it", source)),
            }
        }
        segments.sort_unstable();
        Ok(segments)
    }

    /// Locks a segment so that no other handle appends to it until it is removed or the lock is
    /// dropped. `None` if another handle has it, or it is gone.
    pub(super) fn retire(&self, number: u32) -> Result<Option<RetiredSegment>, StoreError> {
        let path = segment_path(&self.dir, number);
        match OpenOptions::new().read(true).append(true).open(&path) {
            Ok(file) => Ok(self.lock(number, path, file)?.map(RetiredSegment)),
            Err(error) if error.kind() == io::ErrorKind::NotFound => Ok(None),
            Err(source) => Err(io_error(&path, "opening it", source)),
        }
    }

    /// Closes a segment that is being removed: its space is freed when no process has it open.
    pub(super) fn close(&self, number: u32) {
        self.readers.borrow_mut().remove(&number);
    }

    /// Creates an empty segment after all others, so that no number is ever reused.
    pub(super) fn begin_segment(&self) -> Result<(), StoreError> {
        let newest = segment_numbers(&self.dir)?.into_iter().max().unwrap_or(0);
        let path = segment_path(&self.dir, newest + 1);
        match disk::create_private_file(&path) {
            Err(error) if error.kind() == io::ErrorKind::AlreadyExists => Ok(()),
            made => made.map(drop).map_err(|source| io_error(&path, "making it", source)),
        }
    }

    /// Truncates what was appended and will not be committed. Safe because the lock kept other
    /// handles from appending after it.
    pub(super) fn discard_pending(&mut self) -> Result<(), StoreError> {
        self.buffer.clear();
        self.pending.clear();
        for segment in self.held.drain(..) {
            disk::shorten(&segment.file, segment.taken_at)
                .map_err(|source| io_error(&segment.path, "shortening it", source))?;
        }
        Ok(())
    }

    /// Records that the pending records have rows now, and unlocks: other handles may append after
    /// them.
    pub(super) fn mark_committed(&mut self) {
        self.pending.clear();
        self.held.clear();
    }

    /// The stored bytes of a blob; `None` if they are not there, or no longer.
    pub(super) fn read(&self, location: &Location) -> Result<Option<Vec<u8>>, StoreError> {
        let record = self.read_record(location)?.filter(|record| record[..4] != [0; 4]);
        Ok(record.map(|mut record| record.split_off(HEADER)))
    }

    /// The whole record; `None` if the segment or that part of it does not exist.
    pub(super) fn read_record(&self, location: &Location) -> Result<Option<Vec<u8>>, StoreError> {
        let length = HEADER + location.length as usize;
        if let Some(segment) = self.held.last()
            && segment.number == location.segment
            && location.offset >= segment.end
        {
            let start = usize::try_from(location.offset - segment.end).ok();
            let record = start.and_then(|start| self.buffer.get(start..)?.get(..length));
            return Ok(record.map(<[u8]>::to_vec));
        }
        let path = segment_path(&self.dir, location.segment);
        let mut readers = self.readers.borrow_mut();
        let file = match readers.entry(location.segment) {
            Entry::Occupied(open) => open.into_mut(),
            Entry::Vacant(vacant) => match File::open(&path) {
                Ok(file) => vacant.insert(file),
                Err(error) if error.kind() == io::ErrorKind::NotFound => return Ok(None),
                Err(source) => return Err(io_error(&path, "opening it", source)),
            },
        };
        let failed = |source| io_error(&path, "reading it", source);
        // A damaged row must not make this allocate more than the length of the segment.
        let end = location.offset.checked_add(length as u64);
        if end.is_none_or(|end| end > self.limit) {
            let longest = file.metadata().map_err(failed)?.len();
            if end.is_none_or(|end| end > longest) {
                return Ok(None);
            }
        }
        let mut record = vec![0; length];
        match file.read_exact_at(&mut record, location.offset) {
            Ok(()) => Ok(Some(record)),
            Err(error) if error.kind() == io::ErrorKind::UnexpectedEof => Ok(None),
            Err(source) => Err(failed(source)),
        }
    }

    /// Whether the record of `digest` begins there and the segment is long enough for it. Does not
    /// read its bytes.
    pub(super) fn has_record_at(
        &self,
        digest: &Digest,
        location: &Location,
    ) -> Result<bool, StoreError> {
        let Some(found) = self.read_record(&Location { length: 0, ..*location })? else {
            return Ok(false);
        };
        let end = location.offset + (HEADER as u64) + u64::from(location.length);
        let readers = self.readers.borrow();
        let longest = match readers.get(&location.segment) {
            Some(file) => {
                let path = segment_path(&self.dir, location.segment);
                file.metadata().map_err(|source| io_error(&path, "looking at it", source))?.len()
            }
            // Not written yet.
            None => end,
        };
        Ok(found[..HEADER] == header(digest, location) && end <= longest)
    }

    fn flush(&mut self) -> Result<(), StoreError> {
        if self.buffer.is_empty() {
            return Ok(());
        }
        let segment = self.held.last_mut().expect("a buffer is for a segment");
        let failed = |source| io_error(&segment.path, "appending to it", source);
        segment.unsynced = true;
        let written = disk::append(&mut segment.file, &self.buffer);
        if let Err(source) = written {
            // Part of the buffer may have been written. The next try writes the whole buffer after
            // it.
            let end = segment.file.metadata().map_err(failed)?.len();
            let moved = end - segment.end;
            for location in self.pending.values_mut() {
                if location.segment == segment.number && location.offset >= segment.end {
                    location.offset += moved;
                }
            }
            segment.end = end;
            return Err(failed(source));
        }
        segment.end += self.buffer.len() as u64;
        self.buffer.clear();
        Ok(())
    }

    /// Locks the newest segment with enough room that no other handle has, or a new one.
    fn take_segment(&self, room: u64) -> Result<Segment, StoreError> {
        let mut numbers = segment_numbers(&self.dir)?;
        numbers.sort_unstable();
        let may = |number: &&u32| self.only.as_ref().is_none_or(|only| only.contains(number));
        for number in numbers.iter().rev().filter(may) {
            let path = segment_path(&self.dir, *number);
            match OpenOptions::new().read(true).append(true).open(&path) {
                Ok(file) => {
                    let segment = self.lock(*number, path, file)?;
                    if let Some(segment) = segment.filter(|s| s.end + room <= self.limit) {
                        return Ok(segment);
                    }
                }
                Err(error) if error.kind() == io::ErrorKind::NotFound => {}
                Err(source) => return Err(io_error(&path, "opening it", source)),
            }
        }
        let mut number = numbers.last().map_or(1, |newest| newest + 1);
        loop {
            let path = segment_path(&self.dir, number);
            match disk::create_private_file(&path) {
                Ok(file) => {
                    // Another handle may have found and locked it already.
                    if let Some(segment) = self.lock(number, path, file)? {
                        return Ok(segment);
                    }
                }
                Err(error) if error.kind() == io::ErrorKind::AlreadyExists => {}
                Err(source) => return Err(io_error(&path, "making it", source)),
            }
            number += 1;
        }
    }

    /// `None` if another handle appends to it, or has removed it.
    fn lock(&self, number: u32, path: PathBuf, file: File) -> Result<Option<Segment>, StoreError> {
        let failed = |source| io_error(&path, "locking it", source);
        match file.try_lock() {
            Ok(()) => {}
            Err(TryLockError::WouldBlock) => return Ok(None),
            Err(TryLockError::Error(source)) => return Err(failed(source)),
        }
        // Append after whatever a crash left at the end.
        let metadata = file.metadata().map_err(failed)?;
        if metadata.nlink() == 0 {
            return Ok(None);
        }
        let end = metadata.len();
        if end == 0 {
            // Before the first byte, even if another handle created it: a segment with bytes must
            // have a durable name.
            disk::sync_folder(&self.dir)
                .map_err(|source| io_error(&self.dir, "making it durable", source))?;
        }
        Ok(Some(Segment { number, path, file, taken_at: end, end, unsynced: false, syncing: None }))
    }
}

fn segment_path(dir: &Path, number: u32) -> PathBuf {
    dir.join(format!("{number:08x}.pack"))
}

fn segment_numbers(dir: &Path) -> Result<Vec<u32>, StoreError> {
    let failed = |source| io_error(dir, "listing it", source);
    let mut numbers = Vec::new();
    for file in std::fs::read_dir(dir).map_err(failed)? {
        let name = file.map_err(failed)?.file_name();
        let digits = name.to_str().and_then(|name| name.strip_suffix(".pack"));
        if let Some(digits) = digits.filter(|digits| digits.len() == 8)
            && let Ok(number) = u32::from_str_radix(digits, 16)
        {
            numbers.push(number);
        }
    }
    Ok(numbers)
}

/// What it takes to find the record without a row: magic, encoding, digest, size, length, and a
/// checksum of these.
pub(super) fn header(digest: &Digest, location: &Location) -> [u8; HEADER] {
    let mut header = [0; HEADER];
    header[..4].copy_from_slice(&MAGIC);
    header[4] = location.encoding as u8;
    header[5..37].copy_from_slice(&digest.0);
    header[37..45].copy_from_slice(&location.size.to_le_bytes());
    header[45..49].copy_from_slice(&location.length.to_le_bytes());
    let checksum = blake3::hash(&header[..49]);
    header[49..].copy_from_slice(&checksum.as_bytes()[..4]);
    header
}

#[cfg(test)]
mod tests;
