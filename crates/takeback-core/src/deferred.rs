//! Events whose look at the tree goes on after the agent has its answer.
//!
//! `deferred/<16 hex digits>` in the store holds one event. Whoever looks at the tree for it has the
//! file locked: first the hook that was told of it, then, through the same open file, the process that
//! the hook has started. The lock is a barrier: until it is gone nobody of the session is told that
//! an event was recorded, so nobody of the session writes, and what the look shows is what stood there when
//! the agent told.
//!
//! Whoever cannot wait any longer puts an event of the session into the spool, where the one who looks
//! finds it. A file that nobody has locked is of one who died; its event is then as late as those
//! in the spool.

use std::fs::{File, TryLockError};
use std::io;
use std::os::unix::fs::FileExt as _;
use std::path::{Path, PathBuf};
use std::time::Duration;

use takeback_store::{SessionId, disk};

use crate::lock::{Hold, Patience, is_named, lock_file};
use crate::spool::Spooled;

/// An event for which somebody is about to look at the tree. Dropped without [`Self::done`], it is one
/// of somebody who died.
#[derive(Debug)]
pub struct Deferred {
    file: File,
    path: PathBuf,
    pub spooled: Spooled,
}

/// Whose events are waited for.
#[derive(Debug, Clone, Copy)]
pub(crate) enum Whose<'a> {
    Everybodys,
    /// Of this session, of what it is a part of, and of the parts of that.
    Of(&'a SessionId),
}

impl Deferred {
    /// Keeps an event durably, and holds up whoever comes after it.
    pub(crate) fn new(store_dir: &Path, id: u64, spooled: Spooled) -> io::Result<Self> {
        let folder = folder(store_dir);
        disk::make_private_folder(&folder)?;
        let path = folder.join(format!("{id:016x}"));
        let mut file = loop {
            let file = disk::create_private_file(&path)?;
            file.lock()?;
            // Somebody may have taken it for what a crash left.
            if is_named(&file, &path)? {
                break file;
            }
        };
        disk::append(&mut file, &serde_json::to_vec(&spooled)?)?;
        disk::sync(&file)?;
        disk::sync_folder(&folder)?;
        Ok(Self { file, path, spooled })
    }

    /// What [`Self::name`] and [`Self::file`] gave to another process. `None`: it is done already.
    pub fn taken_over(store_dir: &Path, name: &str, file: File) -> io::Result<Option<Self>> {
        let is_ours = name.len() == 16 && name.bytes().all(|byte| byte.is_ascii_hexdigit());
        if !is_ours {
            return Err(io::Error::new(io::ErrorKind::InvalidInput, "no event has this name"));
        }
        let path = folder(store_dir).join(name);
        match file.try_lock() {
            Ok(()) => {}
            Err(TryLockError::WouldBlock) => return Ok(None),
            Err(TryLockError::Error(error)) => return Err(error),
        }
        Self::read(file, path)
    }

    /// For a caller that has `file` locked. What is not of this name any more is done.
    fn read(file: File, path: PathBuf) -> io::Result<Option<Self>> {
        if !is_named(&file, &path)? {
            return Ok(None);
        }
        match event_in(&file)? {
            Some(spooled) => Ok(Some(Self { file, path, spooled })),
            // A crash cut it short: it was never promised to anyone.
            None => disk::remove_store_file(&path).map(|()| None),
        }
    }

    #[must_use]
    pub fn name(&self) -> String {
        self.path.file_name().unwrap_or_default().to_string_lossy().into_owned()
    }

    /// The open file that is locked, for a process that is to go on with it.
    pub fn file(&self) -> io::Result<File> {
        self.file.try_clone()
    }

    /// It is in the log; nobody needs to wait any longer.
    pub(crate) fn done(self) -> io::Result<()> {
        disk::remove_store_file(&self.path)?;
        // Before the process ends, and whoever else has the open file.
        self.file.unlock()
    }

    /// It could not be recorded: whoever is next may try, however long this process lasts.
    pub(crate) fn leave(self) -> io::Result<()> {
        self.file.unlock()
    }
}

/// Waits until nothing is deferred any more. `false`: somebody was at it all through `patience`.
pub(crate) fn wait_for(store_dir: &Path, whose: Whose<'_>, patience: Duration) -> io::Result<bool> {
    let patience = Patience::starting_now(patience);
    for path in standing(store_dir)? {
        let Some(file) = opened(&path)? else { continue };
        if let (Whose::Of(session), Some(spooled)) = (whose, event_in(&file)?)
            && whole(session) != whole(spooled.event.session())
        {
            continue;
        }
        if lock_file(file, Hold::Shared, patience.left())?.is_none() {
            return Ok(false);
        }
    }
    Ok(true)
}

/// Events of those who died over them, oldest first. Nobody else gets them as long as they are held.
pub(crate) fn orphans(store_dir: &Path) -> io::Result<Vec<Deferred>> {
    let mut found = Vec::new();
    for path in standing(store_dir)? {
        let Some(file) = opened(&path)? else { continue };
        match file.try_lock() {
            Ok(()) => found.extend(Deferred::read(file, path)?),
            Err(TryLockError::WouldBlock) => {}
            Err(TryLockError::Error(error)) => return Err(error),
        }
    }
    found.sort_by_key(|deferred| deferred.spooled.time);
    Ok(found)
}

/// Whether an event is deferred, as far as can be told.
#[must_use]
pub fn is_any(store_dir: &Path) -> bool {
    number(store_dir).is_ok_and(|number| number > 0)
}

/// How many events have not been recorded yet, whoever is at them.
pub(crate) fn number(store_dir: &Path) -> io::Result<usize> {
    standing(store_dir).map(|found| found.len())
}

/// Whether two sessions are one to those who wait: what a subagent writes, its session writes.
pub(crate) fn is_one(a: &SessionId, b: &SessionId) -> bool {
    whole(a) == whole(b)
}

fn whole(session: &SessionId) -> &str {
    session.0.split('/').next().unwrap_or_default()
}

fn folder(store_dir: &Path) -> PathBuf {
    store_dir.join("deferred")
}

fn standing(store_dir: &Path) -> io::Result<Vec<PathBuf>> {
    let names = match std::fs::read_dir(folder(store_dir)) {
        Ok(names) => names,
        Err(error) if error.kind() == io::ErrorKind::NotFound => return Ok(Vec::new()),
        Err(error) => return Err(error),
    };
    names.map(|name| name.map(|name| name.path())).collect()
}

/// `None`: it is done.
fn opened(path: &Path) -> io::Result<Option<File>> {
    // To lock a file alone, some file systems want it open for writing.
    match File::options().read(true).write(true).open(path) {
        Ok(file) => Ok(Some(file)),
        Err(error) if error.kind() == io::ErrorKind::NotFound => Ok(None),
        Err(error) => Err(error),
    }
}

/// `None`: it is not written yet, or not as a whole.
fn event_in(file: &File) -> io::Result<Option<Spooled>> {
    // Not by the file's own position, which several processes share.
    let length = file.metadata()?.len();
    let mut bytes = vec![0; usize::try_from(length).unwrap_or_default()];
    match file.read_exact_at(&mut bytes, 0) {
        Ok(()) => Ok(serde_json::from_slice(&bytes).ok()),
        Err(error) => Err(error),
    }
}
