//! Events that could not be recorded because the home was full or not writable, or its store too new.
//!
//! The next process that opens the workspace must not assume that the tree is unchanged, nor attribute the
//! changes to the user. So each such event adds a line to `<16 hex of BLAKE3(store's folder)>.missed` in the
//! first folder that can be written: next to the markers, in the user's runtime folder, or in the temporary
//! folder. If none can, only the end of a call without its start shows that something was missed.

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
pub(crate) struct MissedEvent {
    pub(crate) session: SessionId,
    pub(crate) at: Timestamp,
    pub(crate) why: String,
    /// The name of the problem that the user was notified of.
    pub(crate) told: Option<String>,
    /// The version that could not record it.
    pub(crate) version: String,
}

/// The largest file: a session may continue for hours with a full home.
const LONGEST: u64 = 256 << 10;

/// Notes an event in the first folder that can be written, if any.
pub(crate) fn add_event(store: &Path, missed: &MissedEvent) {
    let Ok(mut line) = serde_json::to_vec(missed) else { return };
    line.push(b'\n');
    let noted = |folder: &PathBuf| add(folder, store, &line).is_ok();
    folders().iter().any(noted);
}

/// The noted events of a store's workspace.
pub(crate) fn read_events(store: &Path) -> Vec<MissedEvent> {
    let lines =
        |folder: &PathBuf| std::fs::read(file(folder, store)).ok().filter(|_| is_own(folder));
    let lines: Vec<Vec<u8>> = folders().iter().filter_map(lines).collect();
    let lines = lines.iter().flat_map(|lines| lines.split(|byte| *byte == b'\n'));
    // A full disk may have cut a line short.
    lines.filter_map(|line| serde_json::from_slice(line).ok()).collect()
}

/// A summary: how many events of which sessions, when, and why.
pub(crate) fn summary(missed: &[MissedEvent]) -> Option<String> {
    let (first, last) = (missed.first()?, missed.last()?);
    let names: BTreeSet<&str> = missed.iter().map(|missed| missed.session.0.as_str()).collect();
    let names = names.into_iter().collect::<Vec<_>>().join(", ");
    let (events, version) = (count(missed.len(), "event"), &last.version);
    let (from, to, why) = (moment(first.at), moment(last.at), &last.why);
    Some(plain(&format!(
        "{events} of session {names} could not be recorded by takeback {version} ({from} to {to}: {why})"
    )))
}

/// Scans the tree if events were missed, and returns what to report. The notes are deleted only after the
/// scan.
pub(crate) fn catch_up(workspace: &mut Workspace) -> Option<String> {
    let store = workspace.store_dir.clone();
    let missed = read_events(&store);
    let what = summary(&missed)?;
    // The effects of an interrupted rewind are not a session's work. The next command finishes the rewind,
    // then scans.
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

/// Deletes the notes of a store that is being removed.
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

/// In a shared folder, another user may own the name.
fn is_own(folder: &Path) -> bool {
    let own = rustix::process::geteuid().as_raw();
    folder.symlink_metadata().is_ok_and(|about| about.is_dir() && about.uid() == own)
}

fn file(folder: &Path, store: &Path) -> PathBuf {
    let hash = blake3::hash(store.as_os_str().as_bytes()).to_hex();
    folder.join(format!("{}.missed", &hash[..16]))
}
