//! Looks at one name: what is on disk now, read without a race.
//!
//! A file that is written while it is read is read again, since otherwise it would be saved half old and half
//! new. Its bytes are hashed and compressed here ([`PackedBlob`]); the caller's sink stores them.

use std::collections::HashSet;
use std::fs::File;
use std::io::{self, Read};
use std::os::fd::{AsFd, OwnedFd};
use std::path::Path;

use rustix::fs::FileType;
use rustix::io::Errno;
use takeback_store::{
    CHUNKED_ABOVE, Digest, Entry, NotCapturedReason, PackedBlob, Packing, WorkPath,
};

use super::budget::Budget;
use super::fingerprint::{Fingerprint, RacySince, Stat, stat, stat_open};
use super::root::{Access, Root, is_no_folder};
use super::scope::is_stage;
use crate::platform::folder::open_file;

/// What to do with the bytes of a file.
pub enum Bytes<'a> {
    /// Pass them to the sink, compressed, unless they are those of `known` or among `kept`, while the budget
    /// lasts.
    Keep {
        known: Option<Digest>,
        kept: &'a HashSet<Digest>,
        sink: &'a mut dyn FnMut(PackedBlob),
        budget: Budget,
    },
    /// The same for a caller that needs these very bytes: without a deadline, and large contents are
    /// compressed later.
    KeepQuickly { known: Option<Digest>, sink: &'a mut dyn FnMut(PackedBlob) },
    /// Only hash them.
    Hash,
}

/// The entry at a name, and its fingerprint (none for an absent one). A file that was not read for lack
/// of time has one only if no later write can leave the same fingerprint.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct LookResult {
    pub entry: Entry,
    pub fingerprint: Option<Fingerprint>,
}

/// Looks at a path inside or outside the workspace. A path that cannot be read is `NotCaptured`.
pub(crate) fn look_at_path(root: &Root, path: &WorkPath, mut bytes: Bytes<'_>) -> LookResult {
    let looked = match open_parent(root, path) {
        Ok(folder) => look(folder, path.file_name(), &mut bytes),
        // No such folder, or a link or file in its place: the path is absent.
        Err(error) if is_no_folder(&error) => {
            Ok(LookResult { entry: Entry::Absent, fingerprint: None })
        }
        Err(error) => Err(error),
    };
    let mut looked = looked.unwrap_or(LookResult {
        entry: Entry::NotCaptured { reason: NotCapturedReason::Unreadable },
        fingerprint: None,
    });
    if is_stage(path.as_bytes()) && looked.entry != Entry::Absent {
        looked.entry = Entry::NotCaptured { reason: NotCapturedReason::Reserved };
    }
    looked
}

/// The `stat` of a path inside or outside the workspace.
pub(crate) fn stat_path(root: &Root, path: &WorkPath) -> io::Result<Option<Stat>> {
    stat(open_parent(root, path)?, path.file_name())
}

pub(crate) fn open_parent(root: &Root, path: &WorkPath) -> io::Result<OwnedFd> {
    if path.is_outside() {
        use std::os::unix::ffi::OsStrExt as _;
        let path = Path::new(std::ffi::OsStr::from_bytes(path.as_bytes()));
        return Root::open(path.parent().unwrap_or(path))?.folder(b"", Access::Reach);
    }
    root.parent_of(path)
}

/// Looks at a name. A file that cannot be read, or that changes all the time, is an entry too: an error
/// means that not even the folder could be searched.
pub fn look(folder: impl AsFd, name: &[u8], bytes: &mut Bytes<'_>) -> io::Result<LookResult> {
    match stat(&folder, name)? {
        Some(stat) => look_at(folder, name, &stat, bytes),
        None => Ok(LookResult { entry: Entry::Absent, fingerprint: None }),
    }
}

/// What a look found, or `known`, if that is a folder that is not captured with everything in it: the look
/// saw only the folder.
#[must_use]
pub fn as_known(known: Option<&Entry>, looked: Entry) -> Entry {
    match known {
        Some(left @ Entry::NotCaptured { reason }) if reason.covers_folder() && looked.is_dir() => {
            left.clone()
        }
        _ => looked,
    }
}

const TRIES: usize = 3;

/// Looks at a name whose `stat` is already known.
pub fn look_at(
    folder: impl AsFd,
    name: &[u8],
    seen: &Stat,
    bytes: &mut Bytes<'_>,
) -> io::Result<LookResult> {
    let mut seen = *seen;
    for _ in 0..TRIES {
        let entry = match seen.kind {
            FileType::RegularFile => match read_file(&folder, name, &seen, bytes) {
                Err(error) if is_out_of_time(&error) => {
                    let entry = Entry::NotCaptured { reason: NotCapturedReason::Deadline };
                    return Ok(LookResult {
                        entry,
                        fingerprint: lasting_fingerprint(&folder, name, &seen),
                    });
                }
                // Whatever the error: a scan continues, and a rewind leaves the file alone.
                Err(_) => Some(Entry::NotCaptured { reason: NotCapturedReason::Unreadable }),
                Ok(entry) => entry,
            },
            FileType::Directory => Some(Entry::Dir { mode: seen.mode() }),
            FileType::Symlink => match rustix::fs::readlinkat(&folder, name, Vec::new()) {
                Ok(target) => Some(Entry::Symlink { target: target.into_bytes() }),
                Err(Errno::INVAL | Errno::NOENT) => None,
                Err(_) => Some(Entry::NotCaptured { reason: NotCapturedReason::Unreadable }),
            },
            _ => Some(Entry::NotCaptured { reason: NotCapturedReason::Special }),
        };
        if let Some(entry) = entry {
            return Ok(LookResult { entry, fingerprint: Some(seen.fingerprint) });
        }
        match stat(&folder, name)? {
            Some(again) => seen = again,
            None => return Ok(LookResult { entry: Entry::Absent, fingerprint: None }),
        }
    }
    let entry = Entry::NotCaptured { reason: NotCapturedReason::Unstable };
    Ok(LookResult { entry, fingerprint: None })
}

/// The fingerprint of a file that was not read, unless it is so new that a later write could leave the
/// same one.
fn lasting_fingerprint(folder: impl AsFd, name: &[u8], seen: &Stat) -> Option<Fingerprint> {
    let racy = RacySince::now();
    let again = stat(folder, name).ok().flatten()?;
    racy.trust(again.fingerprint).filter(|print| *print == seen.fingerprint)
}

/// Reads only while the budget lasts.
struct TimedReader<'a> {
    file: &'a mut File,
    budget: Budget,
}

impl Read for TimedReader<'_> {
    fn read(&mut self, buffer: &mut [u8]) -> io::Result<usize> {
        self.budget.lets_read().then_some(()).ok_or_else(out_of_time)?;
        self.file.read(buffer)
    }
}

fn out_of_time() -> io::Error {
    io::ErrorKind::TimedOut.into()
}

fn is_out_of_time(error: &io::Error) -> bool {
    error.kind() == io::ErrorKind::TimedOut
}

/// `None`: it is not, or no longer, the file that `seen` describes.
fn read_file(
    folder: impl AsFd,
    name: &[u8],
    seen: &Stat,
    bytes: &mut Bytes<'_>,
) -> io::Result<Option<Entry>> {
    if matches!(bytes, Bytes::Keep { budget, .. } if !budget.lets_read()) {
        return Err(out_of_time());
    }
    let mut file = match open_file(folder, name) {
        Ok(file) => file,
        Err(Errno::NOENT | Errno::LOOP | Errno::NXIO) => return Ok(None),
        Err(other) => return Err(other.into()),
    };
    if stat_open(&file)?.fingerprint != seen.fingerprint {
        return Ok(None);
    }
    let packing = match bytes {
        Bytes::KeepQuickly { .. } => Packing::Later,
        Bytes::Keep { .. } | Bytes::Hash => Packing::Now,
    };
    let kept = match bytes {
        Bytes::Keep { kept, .. } => Some(*kept),
        Bytes::KeepQuickly { .. } | Bytes::Hash => None,
    };
    let (digest, size) = match bytes {
        Bytes::Hash => hash(&mut file, seen.fingerprint.size)?,
        Bytes::Keep { known, sink, .. } | Bytes::KeepQuickly { known, sink }
            if seen.fingerprint.size <= CHUNKED_ABOVE =>
        {
            let mut contents =
                Vec::with_capacity(usize::try_from(seen.fingerprint.size).unwrap_or(0));
            (&mut file).take(CHUNKED_ABOVE + 1).read_to_end(&mut contents)?;
            let digest = Digest::of(&contents);
            let size = contents.len() as u64;
            let is_kept = *known == Some(digest) || kept.is_some_and(|kept| kept.contains(&digest));
            if !is_kept && size == seen.fingerprint.size {
                sink(PackedBlob::pack(digest, contents, packing));
            }
            (digest, size)
        }
        Bytes::Keep { sink, budget, .. } => {
            let mut file = TimedReader { file: &mut file, budget: *budget };
            PackedBlob::stream_with(&mut file, packing, *sink)?
        }
        Bytes::KeepQuickly { sink, .. } => PackedBlob::stream_with(&mut file, packing, *sink)?,
    };
    // A file that was written in the meantime would be saved half old, half new.
    let steady = stat_open(&file)?.fingerprint == seen.fingerprint && size == seen.fingerprint.size;
    Ok(steady.then_some(Entry::File { digest, size, mode: seen.mode() }))
}

/// `expected`: its size, as far as known.
fn hash(file: &mut File, expected: u64) -> io::Result<(Digest, u64)> {
    const MOST: u64 = 64 << 10;
    let mut hasher = blake3::Hasher::new();
    let mut size = 0;
    let mut buffer = vec![0; expected.clamp(1, MOST) as usize];
    loop {
        match file.read(&mut buffer)? {
            0 => return Ok((Digest(*hasher.finalize().as_bytes()), size)),
            n => {
                hasher.update(&buffer[..n]);
                size += n as u64;
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use std::time::Duration;

    use super::*;
    use crate::worktree::root::{Access, Root};

    fn look_with(
        budget: Budget,
        of: &str,
        lay_out: impl FnOnce(&std::path::Path),
    ) -> (LookResult, usize) {
        let dir = tempfile::tempdir().expect("a folder");
        lay_out(dir.path());
        std::thread::sleep(Duration::from_millis(30));
        let root = Root::open(dir.path()).expect("it opens");
        let folder = root.folder(b"", Access::Read).expect("it opens");
        let mut blobs = 0;
        let kept = HashSet::from([Digest::of(b"kept")]);
        let sink = &mut |_| blobs += 1;
        let mut bytes = Bytes::Keep { known: None, kept: &kept, sink, budget };
        let looked = look(&folder, of.as_bytes(), &mut bytes).expect("it is looked at");
        (looked, blobs)
    }

    #[test]
    #[expect(clippy::disallowed_methods, reason = "a tree to look at")]
    fn saved_contents_are_not_packed_again() {
        for (text, packed) in [("kept", 0), ("new", 1)] {
            let write =
                |dir: &std::path::Path| std::fs::write(dir.join("a"), text).expect("written");
            let (looked, blobs) = look_with(Budget::UNLIMITED, "a", write);
            let digest = Digest::of(text.as_bytes());
            assert_eq!((looked.entry.digest(), blobs), (Some(digest), packed));
        }
    }

    #[test]
    #[expect(clippy::disallowed_methods, reason = "a tree to look at")]
    fn without_time_a_file_is_not_read_and_keeps_its_fingerprint() {
        let no_time = Budget::starting_now(Duration::ZERO, Duration::ZERO);
        let write = |dir: &std::path::Path| std::fs::write(dir.join("a"), "text").expect("written");
        let (looked, blobs) = look_with(no_time, "a", write);
        assert_eq!(looked.entry, Entry::NotCaptured { reason: NotCapturedReason::Deadline });
        assert!(looked.fingerprint.is_some_and(|print| print.size == 4), "{looked:?}");
        assert_eq!(blobs, 0);
        let (looked, blobs) = look_with(Budget::UNLIMITED, "a", write);
        assert_eq!((looked.entry.digest(), blobs), (Some(Digest::of(b"text")), 1));
        let make = |dir: &std::path::Path| std::fs::create_dir(dir.join("a")).expect("made");
        assert!(matches!(look_with(no_time, "a", make).0.entry, Entry::Dir { .. }));
    }

    /// A deadline in the middle of a large file is distinguished from a failing disk.
    #[test]
    fn the_cause_of_an_incomplete_read_is_known() {
        struct FailingReader(io::ErrorKind);
        impl Read for FailingReader {
            fn read(&mut self, _: &mut [u8]) -> io::Result<usize> {
                Err(self.0.into())
            }
        }
        let whole = usize::try_from(CHUNKED_ABOVE).expect("it fits") * 2;
        for (fails, out_of_time) in
            [(io::ErrorKind::TimedOut, true), (io::ErrorKind::InvalidData, false)]
        {
            let mut file = io::Cursor::new(vec![7; whole]).chain(FailingReader(fails));
            let read = PackedBlob::stream(&mut file, &mut |_| {});
            assert_eq!(read.map_err(|error| is_out_of_time(&error)), Err(out_of_time));
        }
    }

    #[test]
    fn reading_stops_when_the_time_is_up() {
        let mut file = tempfile::tempfile().expect("a file");
        let budget = Budget::starting_now(Duration::ZERO, Duration::ZERO);
        let mut in_time = TimedReader { file: &mut file, budget };
        assert!(in_time.read(&mut [0; 8]).is_err_and(|error| is_out_of_time(&error)));
        let mut in_time = TimedReader { file: &mut file, budget: Budget::UNLIMITED };
        assert!(in_time.read(&mut [0; 8]).is_ok());
    }
}
