//! What another program kept of its sessions, made into a bundle.
//!
//! A [`Story`] knows some files at each prompt: copies that lie somewhere on disk. It says nothing of
//! other files, and so does the bundle: they are unknown at that point. The bundle is written into a
//! file without a name and read back like any other, so that nothing is believed here that would be
//! refused there.

mod piece;
#[cfg(test)]
mod tests;

use std::collections::{BTreeMap, BTreeSet, HashMap, HashSet};
use std::fs::File;
use std::io::{self, BufWriter};
use std::os::unix::fs::PermissionsExt as _;
use std::path::{Path, PathBuf};

use takeback_store::{
    CallId, Digest, Entry, NotCapturedReason, PackedBlob, SessionId, Timestamp, WorkPath,
};

use super::bundle::{BundleError, BundleFile, BundleLimits, BundleWriter, WriteError};

/// Sessions, each with its prompts in the order in which they were given. Paths are absolute.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Story {
    pub sessions: Vec<StorySession>,
}

#[derive(Debug, Clone, PartialEq, Eq)]
pub struct StorySession {
    pub id: SessionId,
    /// The program, as it calls itself.
    pub agent: String,
    pub started_at: Timestamp,
    pub ended_at: Timestamp,
    pub prompts: Vec<StoryPrompt>,
}

#[derive(Debug, Clone, PartialEq, Eq)]
pub struct StoryPrompt {
    /// The first one names it.
    pub message_ids: Vec<String>,
    pub text: String,
    pub at: Timestamp,
    /// What stood there when the prompt was given.
    pub files: BTreeMap<PathBuf, Kept>,
    /// The last call of its turn that wrote to a path.
    pub edits: BTreeMap<PathBuf, Edit>,
    /// What those calls left, where that is known.
    pub left: BTreeMap<PathBuf, Kept>,
    /// Whether its turn ran commands, which may have written anything.
    pub ran_commands: bool,
}

/// What was kept of a file.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Kept {
    /// There was none.
    Absent,
    /// A copy with the file's own permissions lies here.
    Copy(PathBuf),
    /// These were its bytes, and these its permissions.
    Bytes { bytes: Vec<u8>, mode: u32 },
    /// There was one, and no copy of it is left.
    Lost,
}

#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Edit {
    pub call: CallId,
    pub tool: String,
}

/// A story as a bundle, and what of it is not there.
#[derive(Debug)]
pub struct ToldStory {
    pub bundle: BundleFile,
    /// Files whose contents are missing at some point.
    pub lost: Vec<WorkPath>,
    /// Paths outside the workspace, if these are to be refused.
    pub outside: Vec<PathBuf>,
}

#[derive(Debug, thiserror::Error)]
pub enum StoryError {
    #[error("{bytes} bytes in one record are too many for a bundle")]
    RecordTooLarge { bytes: usize },
    #[error("the file without a name cannot be written")]
    Scratch { source: io::Error },
    #[error(transparent)]
    Bundle(#[from] BundleError),
}

impl From<WriteError> for StoryError {
    fn from(error: WriteError) -> Self {
        match error {
            WriteError::TooLarge(bytes) => Self::RecordTooLarge { bytes },
            WriteError::Io(source) => Self::Scratch { source },
        }
    }
}

impl Story {
    /// Drops the prompts that `is_known` knows by one of their messages; how many these were. One that
    /// two sessions have, as a fork has those from before it, is of the first.
    pub fn drop_known(&mut self, mut is_known: impl FnMut(&str) -> bool) -> usize {
        let mut told = HashSet::new();
        let mut dropped = 0;
        for session in &mut self.sessions {
            session.prompts.retain(|prompt| {
                let again = prompt.message_ids.first().is_some_and(|id| !told.insert(id.clone()));
                let known = !again && prompt.message_ids.iter().any(|id| is_known(id));
                dropped += usize::from(known);
                !(again || known)
            });
        }
        self.sessions.retain(|session| !session.prompts.is_empty());
        dropped
    }

    /// The bundle of the workspace at `root`, which is written to `scratch`, an empty file. Copies
    /// that cannot be read are counted as lost.
    pub fn told(
        &self,
        root: &Path,
        limits: &BundleLimits,
        scratch: File,
    ) -> Result<ToldStory, StoryError> {
        let mut copies = Copies::default();
        let told = piece::piece(self, root, limits.outside, &mut copies);
        let mut buffered = BufWriter::new(&scratch);
        let mut writer = BundleWriter::new(&mut buffered)?;
        writer.piece(&told.piece)?;
        let mut written = HashSet::new();
        let needed: BTreeSet<Digest> =
            told.piece.changes.iter().filter_map(|change| change.after.digest()).collect();
        for source in needed.iter().filter_map(|digest| copies.places.get(digest)) {
            write_blobs(source, &mut written, &mut writer)?;
        }
        writer.finish()?;
        drop(buffered);
        let bundle = BundleFile::read(scratch, limits)?;
        Ok(ToldStory { bundle, lost: told.lost, outside: told.outside })
    }
}

/// The contents of a story, each once.
#[derive(Default)]
struct Copies<'s> {
    looked_at: HashMap<&'s Path, Entry>,
    places: HashMap<Digest, Source<'s>>,
}

enum Source<'s> {
    File(&'s Path),
    Bytes(&'s [u8]),
}

impl<'s> Copies<'s> {
    fn entry(&mut self, kept: &'s Kept) -> Entry {
        match kept {
            Kept::Absent => Entry::Absent,
            Kept::Lost => Entry::NotCaptured { reason: NotCapturedReason::Unreadable },
            Kept::Bytes { bytes, mode } => {
                let digest = Digest::of(bytes);
                self.places.entry(digest).or_insert(Source::Bytes(bytes));
                Entry::File { digest, size: bytes.len() as u64, mode: *mode }
            }
            Kept::Copy(path) => {
                if let Some(entry) = self.looked_at.get(path.as_path()) {
                    return entry.clone();
                }
                let entry = match file_entry(path) {
                    Ok(entry) => entry,
                    Err(_unreadable) => {
                        Entry::NotCaptured { reason: NotCapturedReason::Unreadable }
                    }
                };
                if let Some(digest) = entry.digest() {
                    self.places.entry(digest).or_insert(Source::File(path));
                }
                self.looked_at.insert(path, entry.clone());
                entry
            }
        }
    }
}

fn opened(path: &Path) -> io::Result<(File, u32)> {
    // Opening anything else than a file may wait for ever.
    if !std::fs::symlink_metadata(path)?.is_file() {
        return Err(io::Error::other("it is not a file"));
    }
    let file = File::open(path)?;
    let mode = file.metadata()?.permissions().mode() & 0o777;
    Ok((file, mode))
}

fn file_entry(path: &Path) -> io::Result<Entry> {
    let (mut file, mode) = opened(path)?;
    let (digest, size) = PackedBlob::stream(&mut file, &mut drop)?;
    Ok(Entry::File { digest, size, mode })
}

/// What changed since it was hashed has another digest, and the bundle then lacks this one.
fn write_blobs(
    source: &Source<'_>,
    written: &mut HashSet<Digest>,
    writer: &mut BundleWriter<'_>,
) -> Result<(), StoryError> {
    let mut failed = None;
    // Two versions of a large file have most of their parts in common.
    let mut sink = |blob: PackedBlob| {
        if failed.is_none() && written.insert(blob.digest) {
            failed = writer.blob(&blob).err();
        }
    };
    let streamed = match source {
        Source::Bytes(bytes) => PackedBlob::stream(&mut &**bytes, &mut sink),
        Source::File(path) => {
            opened(path).and_then(|(mut file, _)| PackedBlob::stream(&mut file, &mut sink))
        }
    };
    match (failed, streamed) {
        (Some(error), _) => Err(error.into()),
        (None, Err(source)) => Err(BundleError::Io { source }.into()),
        (None, Ok(_)) => Ok(()),
    }
}
