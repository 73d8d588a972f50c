//! Events that could not be recorded in time: kept in a file, recorded by whoever is next.
//!
//! Whoever records them takes the file aside first, so that an event that comes meanwhile waits for
//! nobody: it goes into a new file, which is taken aside after the old one.

use std::io;
use std::os::unix::fs::MetadataExt as _;
use std::path::{Path, PathBuf};
use std::time::Duration;

use serde::{Deserialize, Serialize};
use takeback_store::{SessionId, Timestamp, disk};

use crate::event::AgentEvent;
use crate::lock::{Hold, lock};

/// One line of the spool.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct Spooled {
    pub time: Timestamp,
    #[serde(flatten)]
    pub event: AgentEvent,
}

/// Keeps an event durably, behind those that are there.
pub fn push(store_dir: &Path, spooled: &Spooled) -> io::Result<()> {
    // A crash may have left half a line: it must not spoil this one.
    let mut line = vec![b'\n'];
    serde_json::to_writer(&mut line, spooled)?;
    line.push(b'\n');
    let mut file = open_locked(&spool_file(store_dir))?;
    let is_new = file.metadata()?.len() == 0;
    disk::append(&mut file, &line)?;
    disk::sync(&file)?;
    if is_new { disk::sync_folder(store_dir) } else { Ok(()) }
}

/// Hands every spooled event to `take`, oldest first, and forgets each that was taken. If `take`
/// fails, that event and those behind it stay. If the process dies, one event at most is taken a
/// second time. A line cut short by a crash was never promised to anyone and is passed over; one that
/// is damaged is kept for [`damaged`].
///
/// `None`: somebody else was at it all through `patience`.
pub fn drain<E: From<io::Error>>(
    store_dir: &Path,
    patience: Duration,
    mut take: impl FnMut(Spooled) -> Result<(), E>,
) -> Result<Option<usize>, E> {
    let (spool, aside) = (spool_file(store_dir), aside_file(store_dir));
    if is_empty(store_dir)? {
        return Ok(Some(0));
    }
    let Some(_alone) = lock(&store_dir.join("spool.lock"), Hold::Exclusive, patience)? else {
        return Ok(None);
    };
    disk::clear_beside(&aside)?;
    let mut taken = 0;
    // What a crash left aside is older than what has been pushed since.
    while aside.try_exists()? || take_aside(&spool, &aside)? {
        let lines = std::fs::read(&aside)?;
        keep_damaged(store_dir, &lines)?;
        let mut events = read_lines(&lines).peekable();
        while let Some((spooled, rest)) = events.next() {
            take(spooled)?;
            taken += 1;
            if events.peek().is_some() {
                disk::replace_private_file_durably(&aside, rest)?;
            }
        }
        disk::remove_store_file(&aside)?;
    }
    Ok(Some(taken))
}

/// How many events were damaged on the disk: they cannot be recorded any more.
pub fn damaged(store_dir: &Path) -> io::Result<usize> {
    let mut number = 0;
    for file in [spool_file(store_dir), aside_file(store_dir), damaged_file(store_dir)] {
        match std::fs::read(&file) {
            Ok(lines) => number += damaged_lines(&lines).count(),
            Err(error) if error.kind() == io::ErrorKind::NotFound => {}
            Err(error) => return Err(error),
        }
    }
    Ok(number)
}

/// Before the lines are taken and forgotten. If the process dies in between, they are kept once more.
fn keep_damaged(store_dir: &Path, lines: &[u8]) -> io::Result<()> {
    for line in damaged_lines(lines) {
        let mut file = disk::open_private_file(&damaged_file(store_dir))?;
        disk::append(&mut file, &[line, b"\n"].concat())?;
    }
    Ok(())
}

/// The beginning of an event was cut short by a crash; anything else that is no event is damage.
fn damaged_lines(lines: &[u8]) -> impl Iterator<Item = &[u8]> {
    lines.split(|byte| *byte == b'\n').filter(|line| {
        let read = serde_json::from_slice::<Spooled>(line);
        !line.is_empty() && read.is_err_and(|error| !error.is_eof())
    })
}

/// Whether there are none. As quick to tell as can be.
pub fn is_empty(store_dir: &Path) -> io::Result<bool> {
    Ok(!holds_anything(&aside_file(store_dir))? && !holds_anything(&spool_file(store_dir))?)
}

/// How many events wait, as far as they can be told apart without recording them.
pub fn waiting(store_dir: &Path) -> io::Result<usize> {
    waiting_of(store_dir, |_| true)
}

/// As [`waiting`], of those that `is_meant` names.
pub(crate) fn waiting_of(
    store_dir: &Path,
    is_meant: impl Fn(&AgentEvent) -> bool,
) -> io::Result<usize> {
    let mut number = 0;
    for file in [spool_file(store_dir), aside_file(store_dir)] {
        match std::fs::read(&file) {
            Ok(lines) => {
                number +=
                    read_lines(&lines).filter(|(spooled, _)| is_meant(&spooled.event)).count();
            }
            Err(error) if error.kind() == io::ErrorKind::NotFound => {}
            Err(error) => return Err(error),
        }
    }
    Ok(number)
}

/// The sessions that the events are of.
pub(crate) fn sessions(store_dir: &Path) -> io::Result<Vec<SessionId>> {
    let mut sessions = Vec::new();
    for file in [spool_file(store_dir), aside_file(store_dir)] {
        match std::fs::read(&file) {
            Ok(lines) => sessions
                .extend(read_lines(&lines).map(|(spooled, _)| spooled.event.session().clone())),
            Err(error) if error.kind() == io::ErrorKind::NotFound => {}
            Err(error) => return Err(error),
        }
    }
    Ok(sessions)
}

/// The events among these lines, each with what stands behind it.
fn read_lines(lines: &[u8]) -> impl Iterator<Item = (Spooled, &[u8])> {
    let mut rest = lines;
    std::iter::from_fn(move || {
        while !rest.is_empty() {
            let end = rest.iter().position(|byte| *byte == b'\n').unwrap_or(rest.len());
            let line = &rest[..end];
            rest = rest.get(end + 1..).unwrap_or_default();
            if let Ok(spooled) = serde_json::from_slice(line) {
                return Some((spooled, rest));
            }
        }
        None
    })
}

fn spool_file(store_dir: &Path) -> PathBuf {
    store_dir.join("spool")
}

fn damaged_file(store_dir: &Path) -> PathBuf {
    store_dir.join("spool.damaged")
}

fn aside_file(store_dir: &Path) -> PathBuf {
    store_dir.join("spool.draining")
}

fn holds_anything(file: &Path) -> io::Result<bool> {
    match std::fs::metadata(file) {
        Ok(metadata) => Ok(metadata.len() > 0),
        Err(error) if error.kind() == io::ErrorKind::NotFound => Ok(false),
        Err(error) => Err(error),
    }
}

/// Whether there was anything to take.
fn take_aside(spool: &Path, aside: &Path) -> io::Result<bool> {
    if !holds_anything(spool)? {
        return Ok(false);
    }
    let _locked = open_locked(spool)?;
    disk::rename_private_file(spool, aside)?;
    Ok(true)
}

/// The spool, locked. Whoever waited for the lock may find that what it opened has been taken aside.
fn open_locked(spool: &Path) -> io::Result<std::fs::File> {
    loop {
        let file = disk::open_private_file(spool)?;
        file.lock()?;
        let opened = file.metadata()?;
        match std::fs::metadata(spool) {
            Ok(named) if (named.dev(), named.ino()) == (opened.dev(), opened.ino()) => {
                return Ok(file);
            }
            Ok(_) => {}
            Err(error) if error.kind() == io::ErrorKind::NotFound => {}
            Err(error) => return Err(error),
        }
    }
}
