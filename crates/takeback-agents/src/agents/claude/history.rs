//! The program's own record of its sessions: transcripts, and copies of the files that it edited.
//!
//! Reads its folder (`~/.claude`); nothing is written. The program owns these files and changes
//! their format, so lines that cannot be parsed are counted and skipped, and a missing copy counts
//! as lost.

mod chain;
mod lines;
mod transcript;
mod wire;
mod edited_text;

use std::collections::BTreeMap;
use std::fs::File;
use std::io::{self, BufReader};
use std::path::{Path, PathBuf};

use takeback_core::exchange::{HistoryPrompt, HistorySession, SavedFile};
use takeback_store::SessionId;

pub(crate) use self::chain::Chain;
use self::transcript::{Prompt, Transcript};
use self::wire::WireBackup;
use super::NAME;

/// Longer names of transcript folders are cut here and end in a checksum.
const NAME_MAX: usize = 200;

/// A file or folder of the program that cannot be read.
#[derive(Debug, thiserror::Error)]
#[error("cannot read {}", path.display())]
pub struct ClaudeHistoryError {
    /// The file or folder.
    pub path: PathBuf,
    /// Why.
    pub source: io::Error,
}

/// A session from the program's record.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct PastSession {
    /// Only the prompts whose files were copied.
    pub session: HistorySession,
    /// Where the session worked.
    pub folder: PathBuf,
    /// Prompts without copies of files.
    pub without_files: usize,
    /// Lines that cannot be parsed.
    pub damaged_lines: usize,
}

/// The transcripts of sessions that may have worked in `root` or below. Two folders can share a
/// name here; [`PastSession::folder`] decides.
pub fn claude_transcripts(config: &Path, root: &Path) -> Result<Vec<PathBuf>, ClaudeHistoryError> {
    let name = folder_name(root);
    let mut found = Vec::new();
    for folder in names(&config.join("projects"))? {
        let called = folder.file_name().and_then(|name| name.to_str()).unwrap_or_default();
        let begins = match name.get(..NAME_MAX) {
            Some(cut) => called.starts_with(cut),
            None => called
                .strip_prefix(name.as_str())
                .is_some_and(|rest| rest.is_empty() || rest.starts_with('-')),
        };
        if begins {
            let files = names(&folder)?.into_iter();
            found.extend(files.filter(|file| file.extension().is_some_and(|end| end == "jsonl")));
        }
    }
    Ok(found)
}

/// The transcript of a session in any folder.
pub fn claude_transcript(
    config: &Path,
    session: &str,
) -> Result<Option<PathBuf>, ClaudeHistoryError> {
    if !is_plain_name(session) {
        return Ok(None);
    }
    let name = format!("{session}.jsonl");
    let folders = names(&config.join("projects"))?.into_iter();
    Ok(folders.map(|folder| folder.join(&name)).find(|file| file.is_file()))
}

/// A session from its transcript. `None`: it has no messages.
pub fn past_session(config: &Path, file: &Path) -> Result<Option<PastSession>, ClaudeHistoryError> {
    let mut transcript = read(file, Transcript::read)?;
    transcript.forget_shared_ids();
    let name = file.file_stem().and_then(|name| name.to_str()).unwrap_or_default();
    let copies = config.join("file-history").join(name);
    let (Some(folder), Some(ended_at)) = (transcript.folder, transcript.last_at) else {
        return Ok(None);
    };
    let all = transcript.prompts.len();
    let mut prompts = Vec::new();
    for prompt in transcript.prompts {
        if let Some(backups) = transcript.backups.get(&prompt.uuid) {
            prompts.push(to_story_prompt(prompt, backups, &folder, &copies));
        }
    }
    let Some(first) = prompts.first() else { return Ok(None) };
    let session = HistorySession {
        id: SessionId::from(name),
        agent: NAME.to_owned(),
        started_at: first.at,
        ended_at,
        prompts,
    };
    let without_files = all - session.prompts.len();
    Ok(Some(PastSession { session, folder, without_files, damaged_lines: transcript.damaged }))
}

/// How the messages of a transcript follow one another.
pub(crate) fn chain(file: &Path) -> Result<Chain, ClaudeHistoryError> {
    read(file, Chain::read)
}

fn read<T>(
    file: &Path,
    reader: impl FnOnce(BufReader<File>) -> io::Result<T>,
) -> Result<T, ClaudeHistoryError> {
    let failed = |source| ClaudeHistoryError { path: file.to_owned(), source };
    // Opening a pipe or a device could block forever.
    if !std::fs::metadata(file).map_err(failed)?.is_file() {
        return Err(failed(io::Error::other("it is not a file")));
    }
    let opened = File::open(file).map_err(failed)?;
    reader(BufReader::with_capacity(1 << 18, opened)).map_err(failed)
}

fn to_story_prompt(
    prompt: Prompt,
    backups: &BTreeMap<String, WireBackup>,
    folder: &Path,
    copies: &Path,
) -> HistoryPrompt {
    let kept = |backup: &WireBackup| match &backup.backup_file_name {
        None => SavedFile::Absent,
        Some(name) if is_plain_name(name) => SavedFile::Copy(copies.join(name)),
        Some(_) => SavedFile::Lost,
    };
    let files: BTreeMap<PathBuf, SavedFile> =
        backups.iter().map(|(path, backup)| (folder.join(path), kept(backup))).collect();
    let left = prompt
        .edited
        .iter()
        .filter_map(|(path, edited)| Some((path.clone(), edited.kept(files.get(path)?)?)));
    HistoryPrompt {
        left: left.collect(),
        message_ids: [prompt.uuid].into_iter().chain(prompt.prompt_id).collect(),
        text: prompt.text,
        at: prompt.at,
        files,
        // The last edit of each path counts.
        edits: prompt.edits.into_iter().collect(),
        ran_commands: prompt.ran_commands,
    }
}

/// The program's name for the transcript folder of `path`.
fn folder_name(path: &Path) -> String {
    let mut name = String::new();
    for c in path.to_string_lossy().chars() {
        match c.is_ascii_alphanumeric() {
            true => name.push(c),
            // JavaScript counts UTF-16 units.
            false => name.extend(std::iter::repeat_n('-', c.len_utf16())),
        }
    }
    name
}

/// Whether a name stays in its folder.
fn is_plain_name(name: &str) -> bool {
    !name.is_empty() && name != "." && name != ".." && !name.contains(['/', '\0'])
}

/// The sorted contents of a folder; empty if there is none.
fn names(folder: &Path) -> Result<Vec<PathBuf>, ClaudeHistoryError> {
    let failed = |source| ClaudeHistoryError { path: folder.to_owned(), source };
    let entries = match std::fs::read_dir(folder) {
        Err(error) if error.kind() == io::ErrorKind::NotFound => return Ok(Vec::new()),
        Err(error) if error.kind() == io::ErrorKind::NotADirectory => return Ok(Vec::new()),
        entries => entries.map_err(failed)?,
    };
    let mut names = Vec::new();
    for entry in entries {
        names.push(entry.map_err(failed)?.path());
    }
    names.sort();
    Ok(names)
}
