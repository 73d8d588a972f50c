//! The workspace lock: recorders share it, a rewind holds it exclusively.

use std::fs::{File, TryLockError};
use std::io;
use std::os::unix::fs::MetadataExt as _;
use std::path::Path;
use std::time::{Duration, Instant};

use takeback_store::disk;

/// How a lock is held.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Hold {
    /// Together with other shared holders.
    Shared,
    /// By no one else.
    Exclusive,
}

/// Held until dropped, or until the process ends in any way.
#[derive(Debug)]
pub struct Lock {
    _file: File,
}

/// A deadline for waiting.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Patience {
    /// None: no deadline.
    until: Option<Instant>,
}

impl Patience {
    pub(crate) fn starting_now(patience: Duration) -> Self {
        Self { until: Instant::now().checked_add(patience) }
    }

    pub(crate) fn left(self) -> Duration {
        self.until.map_or(Duration::MAX, |until| until.saturating_duration_since(Instant::now()))
    }

    /// As [`Self::left`], but a commit may always wait a little for another one.
    pub(crate) fn left_for_a_commit(self) -> Duration {
        self.left().max(Duration::from_millis(200))
    }
}

/// `None`: another process held it throughout `patience`.
pub fn lock(path: &Path, hold: Hold, patience: Duration) -> io::Result<Option<Lock>> {
    lock_file(disk::open_private_file(path)?, hold, patience)
}

/// Whether an open file still has this name: it may have been removed while this process waited for its lock.
pub(crate) fn is_named(file: &File, path: &Path) -> io::Result<bool> {
    let opened = file.metadata()?;
    match std::fs::symlink_metadata(path) {
        Ok(named) => Ok((named.dev(), named.ino()) == (opened.dev(), opened.ino())),
        Err(error) if error.kind() == io::ErrorKind::NotFound => Ok(false),
        Err(error) => Err(error),
    }
}

/// As [`lock`], of a file that is open.
pub(crate) fn lock_file(file: File, hold: Hold, patience: Duration) -> io::Result<Option<Lock>> {
    let patience = Patience::starting_now(patience);
    let mut pause = Duration::from_millis(1);
    loop {
        let tried = match hold {
            Hold::Shared => file.try_lock_shared(),
            Hold::Exclusive => file.try_lock(),
        };
        match tried {
            Ok(()) => return Ok(Some(Lock { _file: file })),
            Err(TryLockError::Error(error)) => return Err(error),
            Err(TryLockError::WouldBlock) if patience.left().is_zero() => return Ok(None),
            Err(TryLockError::WouldBlock) => {
                std::thread::sleep(pause.min(patience.left()));
                pause = (pause * 2).min(Duration::from_millis(20));
            }
        }
    }
}
