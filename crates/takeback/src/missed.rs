//! Events that could not be recorded: the home was full, not writable, or its store too new.
//!
//! The next process that opens the workspace must not take the tree for unchanged, nor what changed for
//! the person's. So each such event leaves a line in `<16 hex of BLAKE3(store's folder)>.missed`, in the first
//! folder that takes it: beside the markers, in the user's runtime folder, in the temporary folder. Where
//! none does, only an end without its beginning shows that something was missed.

use std::collections::BTreeSet;
use std::io;
use std::os::unix::ffi::OsStrExt as _;
use std::os::unix::fs::MetadataExt as _;
use std::path::{Path, PathBuf};

use serde::{Deserialize, Serialize};
use takeback_core::rewind::needs_recovery;
use takeback_core::{Workspace, look_for_missed};
use takeback_store::{SessionId, Timestamp, disk};

use crate::marker::Markers;
use crate::place::{environment, runtime_folder};
use crate::screen::{count, plain};
use crate::time::moment;

/// One event.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub(crate) struct Missed {
    pub(crate) session: SessionId,
    pub(crate) at: Timestamp,
    pub(crate) why: String,
    /// What the user was told at once, by its name.
    pub(crate) told: Option<String>,
    /// The Takeback that could not.
    pub(crate) version: String,
}

/// A session may go on for hours with a home that is full.
const LONGEST: u64 = 256 << 10;

/// Leaves word of an event, if that is possible anywhere.
pub(crate) fn note(store: &Path, missed: &Missed) {
    let Ok(mut line) = serde_json::to_vec(missed) else { return };
    line.push(b'\n');
    let noted = |folder: &PathBuf| add(folder, store, &line).is_ok();
    folders().iter().any(noted);
}

/// What was missed in the workspace of a store, as far as it was noted.
pub(crate) fn noted(store: &Path) -> Vec<Missed> {
    let lines =
        |folder: &PathBuf| std::fs::read(file(folder, store)).ok().filter(|_| is_own(folder));
    let lines: Vec<Vec<u8>> = folders().iter().filter_map(lines).collect();
    let lines = lines.iter().flat_map(|lines| lines.split(|byte| *byte == b'\n'));
    // A full disk may have cut a line short.
    lines.filter_map(|line| serde_json::from_slice(line).ok()).collect()
}

/// How many events of which sessions, when, and why.
pub(crate) fn summary(missed: &[Missed]) -> Option<String> {
    let (first, last) = (missed.first()?, missed.last()?);
    let names: BTreeSet<&str> = missed.iter().map(|missed| missed.session.0.as_str()).collect();
    let names = names.into_iter().collect::<Vec<_>>().join(", ");
    let (events, version) = (count(missed.len(), "event"), &last.version);
    let (from, to, why) = (moment(first.at), moment(last.at), &last.why);
    Some(plain(&format!(
        "{events} of session {names} could not be recorded by takeback {version} ({from} to {to}: {why})"
    )))
}

/// Looks at the tree if something was missed; what to report. The notes stay until that is done.
pub(crate) fn catch_up(workspace: &mut Workspace) -> Option<String> {
    let store = workspace.store_dir.clone();
    let missed = noted(&store);
    let what = summary(&missed)?;
    // What an interrupted rewind left half done is no session's work. Commands finish it, and look then.
    if needs_recovery(workspace).is_ok_and(|needed| needed) {
        return None;
    }
    let sessions: BTreeSet<SessionId> = missed.into_iter().map(|missed| missed.session).collect();
    let sessions: Vec<SessionId> = sessions.into_iter().collect();
    let then = match look_for_missed(workspace, &sessions).map(|_| forget(&store)) {
        Ok(Ok(())) => "changes in the meantime are unclear".to_owned(),
        Ok(Err(error)) => format!("the note about it cannot be removed: {error}"),
        Err(error) => format!("changes in the meantime are not known yet: {error}"),
    };
    Some(format!("{what}; {then}"))
}

/// For a store that is removed: what was missed in it is of no interest any more.
pub(crate) fn forget(store: &Path) -> io::Result<()> {
    for folder in folders().iter().filter(|folder| is_own(folder)) {
        let file = file(folder, store);
        if file.try_exists()? {
            disk::remove_store_file(&file)?;
        }
    }
    Ok(())
}

fn add(folder: &Path, store: &Path, line: &[u8]) -> io::Result<()> {
    disk::make_private_folder(folder)?;
    if !is_own(folder) {
        return Err(io::ErrorKind::PermissionDenied.into());
    }
    let mut file = disk::open_private_file(&file(folder, store))?;
    if file.metadata()?.len() > LONGEST {
        return Ok(());
    }
    disk::append(&mut file, line)
}

fn folders() -> Vec<PathBuf> {
    let state = Markers::of_user().map(|markers| markers.folder().to_owned());
    let runtime = runtime_folder().map(|folder| folder.join("takeback"));
    let temporary = environment("TMPDIR").map_or_else(|| PathBuf::from("/tmp"), PathBuf::from);
    let own = format!("takeback-{}", rustix::process::geteuid().as_raw());
    state.into_iter().chain(runtime).chain([temporary.join(own)]).collect()
}

/// In a folder for everybody, another user may have taken the name.
fn is_own(folder: &Path) -> bool {
    let own = rustix::process::geteuid().as_raw();
    folder.symlink_metadata().is_ok_and(|about| about.is_dir() && about.uid() == own)
}

fn file(folder: &Path, store: &Path) -> PathBuf {
    let hash = blake3::hash(store.as_os_str().as_bytes()).to_hex();
    folder.join(format!("{}.missed", &hash[..16]))
}
