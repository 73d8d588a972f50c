//! An agent's own file history, converted to a bundle.
//!
//! An [`AgentHistory`] has copies of some files at each prompt. Other files are unknown at that point, in
//! the bundle too. The bundle is written to an unnamed file and read back like any other, so that it gets
//! the same checks.

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

/// Sessions, each with its prompts in order. Paths are absolute.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct AgentHistory {
    /// The conversations.
    pub sessions: Vec<HistorySession>,
}

/// One conversation.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct HistorySession {
    /// The agent's own id of it.
    pub id: SessionId,
    /// The agent's name.
    pub agent: String,
    /// When it began.
    pub started_at: Timestamp,
    /// When it ended, or its last event.
    pub ended_at: Timestamp,
    /// Its prompts, oldest first.
    pub prompts: Vec<HistoryPrompt>,
}

/// One prompt, and the files that the agent had saved by then.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct HistoryPrompt {
    /// The first one is the message id of the turn.
    pub message_ids: Vec<String>,
    /// The prompt.
    pub text: String,
    /// When it was given.
    pub at: Timestamp,
    /// The files when the prompt was given.
    pub files: BTreeMap<PathBuf, SavedFile>,
    /// The last call of the turn that wrote to each path.
    pub edits: BTreeMap<PathBuf, Edit>,
    /// The files after those calls, where known.
    pub left: BTreeMap<PathBuf, SavedFile>,
    /// Whether the turn ran commands, which may have written anything.
    pub ran_commands: bool,
}

/// A file as the agent saved it.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum SavedFile {
    /// There was no file.
    Absent,
    /// A copy at this path, with the file's own permissions.
    Copy(PathBuf),
    /// Its bytes and permissions.
    #[expect(missing_docs, reason = "the names say what the fields are")]
    Bytes { bytes: Vec<u8>, mode: u32 },
    /// There was a file, and its copy is gone.
    Lost,
}

/// A tool call that wrote a file.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Edit {
    /// The agent's id of the call.
    pub call: CallId,
    /// The tool's name.
    pub tool: String,
}

/// The bundle of a history, and what is missing from it.
#[derive(Debug)]
pub struct HistoryBundle {
    /// The bundle, in a temporary file.
    pub bundle: BundleFile,
    /// Files whose contents are missing at some point.
    pub lost: Vec<WorkPath>,
    /// Paths outside the workspace that were refused.
    pub outside: Vec<PathBuf>,
}

/// Why a history became no bundle.
#[derive(Debug, thiserror::Error)]
#[expect(missing_docs, reason = "the messages say what the fields are")]
pub enum AgentHistoryError {
    #[error("{bytes} bytes in one record are too many for a bundle")]
    RecordTooLarge { bytes: usize },
    #[error("cannot write the temporary file")]
    Scratch { source: io::Error },
    #[error(transparent)]
    Bundle(#[from] BundleError),
}

impl From<WriteError> for AgentHistoryError {
    fn from(error: WriteError) -> Self {
        match error {
            WriteError::TooLarge(bytes) => Self::RecordTooLarge { bytes },
            WriteError::Io(source) => Self::Scratch { source },
        }
    }
}

impl AgentHistory {
    /// Drops the prompts of which `is_known` knows a message id, and returns how many those were. A
    /// prompt that two sessions share, such as one from before a fork, stays with the first.
    pub fn drop_known(&mut self, mut is_known: impl FnMut(&str) -> bool) -> usize {
        let mut seen = HashSet::new();
        let mut dropped = 0;
        for session in &mut self.sessions {
            session.prompts.retain(|prompt| {
                let again = prompt.message_ids.first().is_some_and(|id| !seen.insert(id.clone()));
                let known = !again && prompt.message_ids.iter().any(|id| is_known(id));
                dropped += usize::from(known);
                !(again || known)
            });
        }
        self.sessions.retain(|session| !session.prompts.is_empty());
        dropped
    }

    /// The bundle for the workspace at `root`, written to `scratch`, an empty file. Copies that cannot be
    /// read count as lost.
    pub fn to_bundle(
        &self,
        root: &Path,
        limits: &BundleLimits,
        scratch: File,
    ) -> Result<HistoryBundle, AgentHistoryError> {
        let mut copies = Copies::default();
        let converted = piece::piece(self, root, limits.outside, &mut copies);
        let mut buffered = BufWriter::new(&scratch);
        let mut writer = BundleWriter::new(&mut buffered)?;
        writer.piece(&converted.piece)?;
        let mut written = HashSet::new();
        let needed: BTreeSet<Digest> =
            converted.piece.changes.iter().filter_map(|change| change.after.digest()).collect();
        for source in needed.iter().filter_map(|digest| copies.places.get(digest)) {
            write_blobs(source, &mut written, &mut writer)?;
        }
        writer.finish()?;
        drop(buffered);
        let bundle = BundleFile::read(scratch, limits)?;
        Ok(HistoryBundle { bundle, lost: converted.lost, outside: converted.outside })
    }
}

/// The contents of a history, each once.
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
    fn entry(&mut self, kept: &'s SavedFile) -> Entry {
        match kept {
            SavedFile::Absent => Entry::Absent,
            SavedFile::Lost => Entry::NotCaptured { reason: NotCapturedReason::Unreadable },
            SavedFile::Bytes { bytes, mode } => {
                let digest = Digest::of(bytes);
                self.places.entry(digest).or_insert(Source::Bytes(bytes));
                Entry::File { digest, size: bytes.len() as u64, mode: *mode }
            }
            SavedFile::Copy(path) => {
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

fn open_regular_file(path: &Path) -> io::Result<(File, u32)> {
    // Opening something other than a file, such as a pipe, may block forever.
    if !std::fs::symlink_metadata(path)?.is_file() {
        return Err(io::Error::other("it is not a file"));
    }
    let file = File::open(path)?;
    let mode = file.metadata()?.permissions().mode() & 0o777;
    Ok((file, mode))
}

fn file_entry(path: &Path) -> io::Result<Entry> {
    let (mut file, mode) = open_regular_file(path)?;
    let (digest, size) = PackedBlob::stream(&mut file, &mut drop)?;
    Ok(Entry::File { digest, size, mode })
}

/// A copy that changed since it was hashed has another digest: reading the bundle back reports it missing.
fn write_blobs(
    source: &Source<'_>,
    written: &mut HashSet<Digest>,
    writer: &mut BundleWriter<'_>,
) -> Result<(), AgentHistoryError> {
    let mut failed = None;
    // Two versions of a large file share most of their parts: write each part once.
    let mut sink = |blob: PackedBlob| {
        if failed.is_none() && written.insert(blob.digest) {
            failed = writer.blob(&blob).err();
        }
    };
    let streamed = match source {
        Source::Bytes(bytes) => PackedBlob::stream(&mut &**bytes, &mut sink),
        Source::File(path) => open_regular_file(path)
            .and_then(|(mut file, _)| PackedBlob::stream(&mut file, &mut sink)),
    };
    match (failed, streamed) {
        (Some(error), _) => Err(error.into()),
        (None, Err(source)) => Err(BundleError::Io { source }.into()),
        (None, Ok(_)) => Ok(()),
    }
}
