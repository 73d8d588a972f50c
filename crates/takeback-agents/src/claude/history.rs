//! What the program kept of its sessions: transcripts, and copies of the files that it edited.
//!
//! In comes its folder (`~/.claude`), out come values; nothing is written. The program owns these
//! files and changes their format, so all of it is read with doubt: lines that make no sense are
//! counted and passed over, and a copy that is not there is one that is lost.

mod chain;
mod lines;
mod transcript;
mod wire;
mod written;

use std::collections::BTreeMap;
use std::fs::File;
use std::io::{self, BufReader};
use std::path::{Path, PathBuf};

use takeback_core::exchange::{Kept, StoryPrompt, StorySession};
use takeback_store::SessionId;

pub(crate) use self::chain::Chain;
use self::transcript::{Prompt, Transcript};
use self::wire::WireBackup;
use super::NAME;

/// The name of a folder of transcripts is cut here and given a checksum.
const NAME_MAX: usize = 200;

#[derive(Debug, thiserror::Error)]
#[error("{} cannot be read", path.display())]
pub struct HistoryError {
    pub path: PathBuf,
    pub source: io::Error,
}

/// A session as the program kept it.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct PastSession {
    /// With the prompts that have something kept of their files.
    pub session: StorySession,
    /// Where it worked.
    pub folder: PathBuf,
    /// Prompts of which no files were kept.
    pub without_files: usize,
    /// Lines that make no sense.
    pub damaged_lines: usize,
}

/// The transcripts of sessions that may have worked in `root` or below. Two folders can have the same
/// name here, so [`PastSession::folder`] has the last word.
pub fn transcripts(config: &Path, root: &Path) -> Result<Vec<PathBuf>, HistoryError> {
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

/// The transcript of a session, wherever it worked.
pub fn transcript_of(config: &Path, session: &str) -> Result<Option<PathBuf>, HistoryError> {
    if !is_plain_name(session) {
        return Ok(None);
    }
    let name = format!("{session}.jsonl");
    let folders = names(&config.join("projects"))?.into_iter();
    Ok(folders.map(|folder| folder.join(&name)).find(|file| file.is_file()))
}

/// A session, from its transcript. `None`: nobody said anything in it.
pub fn past_session(config: &Path, file: &Path) -> Result<Option<PastSession>, HistoryError> {
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
            prompts.push(told(prompt, backups, &folder, &copies));
        }
    }
    let Some(first) = prompts.first() else { return Ok(None) };
    let session = StorySession {
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
pub(crate) fn chain(file: &Path) -> Result<Chain, HistoryError> {
    read(file, Chain::read)
}

fn read<T>(
    file: &Path,
    reader: impl FnOnce(BufReader<File>) -> io::Result<T>,
) -> Result<T, HistoryError> {
    let failed = |source| HistoryError { path: file.to_owned(), source };
    // Opening anything else than a file may wait for ever.
    if !std::fs::metadata(file).map_err(failed)?.is_file() {
        return Err(failed(io::Error::other("it is not a file")));
    }
    let opened = File::open(file).map_err(failed)?;
    reader(BufReader::with_capacity(1 << 18, opened)).map_err(failed)
}

fn told(
    prompt: Prompt,
    backups: &BTreeMap<String, WireBackup>,
    folder: &Path,
    copies: &Path,
) -> StoryPrompt {
    let kept = |backup: &WireBackup| match &backup.backup_file_name {
        None => Kept::Absent,
        Some(name) if is_plain_name(name) => Kept::Copy(copies.join(name)),
        Some(_) => Kept::Lost,
    };
    let files: BTreeMap<PathBuf, Kept> =
        backups.iter().map(|(path, backup)| (folder.join(path), kept(backup))).collect();
    let left = prompt
        .written
        .iter()
        .filter_map(|(path, written)| Some((path.clone(), written.kept(files.get(path)?)?)));
    StoryPrompt {
        left: left.collect(),
        message_ids: [prompt.uuid].into_iter().chain(prompt.prompt_id).collect(),
        text: prompt.text,
        at: prompt.at,
        files,
        // The last of each path.
        edits: prompt.edits.into_iter().collect(),
        ran_commands: prompt.ran_commands,
    }
}

/// What the program calls the folder with the transcripts of `path`.
fn folder_name(path: &Path) -> String {
    let mut name = String::new();
    for c in path.to_string_lossy().chars() {
        match c.is_ascii_alphanumeric() {
            true => name.push(c),
            // It counts as JavaScript does.
            false => name.extend(std::iter::repeat_n('-', c.len_utf16())),
        }
    }
    name
}

/// A name that leads nowhere else.
fn is_plain_name(name: &str) -> bool {
    !name.is_empty() && name != "." && name != ".." && !name.contains(['/', '\0'])
}

/// What is in a folder, in order; nothing if it is not there.
fn names(folder: &Path) -> Result<Vec<PathBuf>, HistoryError> {
    let failed = |source| HistoryError { path: folder.to_owned(), source };
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
