//! The inbox: events that are not in the log yet, one file each.
//!
//! `inbox/<16 hex digits>` in the store holds one event as JSON; the later event has the higher number. The
//! lock on the file (`flock`) shows its state:
//!
//! - Locked: a process works on it. The hook that got the event answers its agent and passes the locked
//!   open file to another process, which scans the tree ([`Inbox::claim`], [`QueuedEvent`]). The lock is a
//!   barrier: until it is released no other event of the session is recorded, so the agent writes nothing,
//!   and the scan shows the tree as it was when the event happened.
//! - Not locked: the event is late. It did not get into the log in time ([`Inbox::push`]), or the process that
//!   worked on it died. Any process that records next records it first ([`Inbox::drain`]).
//!
//! A file that a crash cut short was never promised to an agent and is removed. Any other file that is
//! not an event was damaged on disk: it is renamed to `<number>.damaged` and counted by
//! [`Inbox::damaged`]. `inbox/scan` says that files are left to read: see [`BackgroundScan`].

mod scan;

use std::collections::BTreeSet;
use std::fs::{File, TryLockError};
use std::io;
use std::os::unix::fs::FileExt as _;
use std::path::{Path, PathBuf};
use std::time::Duration;

use serde::{Deserialize, Serialize};
use takeback_store::{SessionId, StoreError, Timestamp, disk};

pub use self::scan::{BackgroundScan, ScanProgress};
use crate::event::AgentEvent;
use crate::lock::{Hold, Patience, is_named, lock, lock_file};

/// The inbox of a store.
#[derive(Debug, Clone)]
pub struct Inbox {
    folder: PathBuf,
}

/// An event, and when it happened.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct InboxEvent {
    /// When it happened.
    pub time: Timestamp,
    /// The event.
    #[serde(flatten)]
    pub event: AgentEvent,
}

/// An event that this process has claimed: it must be recorded here, or in a process that gets
/// [`Self::file`]. Dropped before it is recorded, the event is late.
#[derive(Debug)]
pub struct QueuedEvent {
    file: File,
    path: PathBuf,
    /// The event in the file.
    pub event: InboxEvent,
}

/// Which claimed events to wait for.
#[derive(Debug, Clone, Copy)]
pub(crate) enum WaitFor<'a> {
    All,
    /// Those of the session, of the session it is a part of, and of the other parts of that. All if an event
    /// is late: it may be of any session, and nothing may overtake it.
    Session(&'a SessionId),
}

impl Inbox {
    /// The inbox of the store in this folder.
    #[must_use]
    pub fn of(store_dir: &Path) -> Self {
        Self { folder: store_dir.join("inbox") }
    }

    /// Keeps an event durably, behind those that are there.
    pub fn push(&self, event: InboxEvent) -> Result<(), StoreError> {
        self.claim(event).map(drop)
    }

    /// Keeps an event durably, and blocks later events until it is recorded.
    pub(crate) fn claim(&self, event: InboxEvent) -> Result<QueuedEvent, StoreError> {
        self.create(event).map_err(self.failed("saving an event"))
    }

    fn create(&self, event: InboxEvent) -> io::Result<QueuedEvent> {
        disk::make_private_folder(&self.folder)?;
        let (mut file, path) = loop {
            let path = self.folder.join(format!("{:016x}", self.highest_number()? + 1));
            let file = match disk::create_private_file(&path) {
                // Another process took the number.
                Err(error) if error.kind() == io::ErrorKind::AlreadyExists => continue,
                created => created?,
            };
            file.lock()?;
            // A drain may have taken the file, empty and not locked yet, for one that a crash cut short.
            if is_named(&file, &path)? {
                break (file, path);
            }
        };
        disk::append(&mut file, &serde_json::to_vec(&event)?)?;
        disk::sync(&file)?;
        disk::sync_folder(&self.folder)?;
        Ok(QueuedEvent { file, path, event })
    }

    /// What another process has claimed and handed over: [`QueuedEvent::name`] and [`QueuedEvent::file`].
    /// `None`: it has been recorded, or another process is recording it.
    pub fn take_over(&self, name: &str, file: File) -> Result<Option<QueuedEvent>, StoreError> {
        let take = || {
            if number_in(name).is_none() {
                let why = format!("{name:?} is not the name of an event");
                return Err(io::Error::new(io::ErrorKind::InvalidInput, why));
            }
            let path = self.folder.join(name);
            match file.try_lock() {
                Ok(()) if is_named(&file, &path)? => {}
                Ok(()) | Err(TryLockError::WouldBlock) => return Ok(None),
                Err(TryLockError::Error(error)) => return Err(error),
            }
            match content_of(&file)? {
                Content::Event(event) => Ok(Some(QueuedEvent { file, path, event })),
                Content::CutShort | Content::Damaged => Ok(None),
            }
        };
        take().map_err(self.failed("taking over an event"))
    }

    /// Waits until no such event is claimed. `false`: one was throughout `patience`.
    ///
    /// The caller must not hold the workspace lock exclusively: recording a claimed event needs it.
    pub(crate) fn wait_for(
        &self,
        what: WaitFor<'_>,
        patience: Duration,
    ) -> Result<bool, StoreError> {
        let patience = Patience::starting_now(patience);
        let wait = || {
            let paths = self.entries()?;
            let of_session = match what {
                WaitFor::Session(session) if !any(&paths, |entry| Ok(entry.is_late))? => {
                    Some(session)
                }
                WaitFor::Session(_) | WaitFor::All => None,
            };
            for entry in open_each(&paths) {
                let entry = entry?;
                let is_awaited = match of_session {
                    // One that is still being written may be of any session.
                    Some(session) => {
                        entry.session()?.is_none_or(|other| other.may_be_with(session))
                    }
                    None => true,
                };
                if !entry.is_late
                    && is_awaited
                    && lock_file(entry.file, Hold::Shared, patience.left())?.is_none()
                {
                    return Ok(false);
                }
            }
            Ok(true)
        };
        wait().map_err(self.failed("waiting for an event"))
    }

    /// Passes every late event to `take`, oldest first, and removes each that was taken, including those
    /// pushed while it runs. If `take` fails, its event and those behind it stay. If the process dies, at
    /// most one event is taken a second time.
    ///
    /// `None`: another process was draining throughout `patience`, or worked on an event that comes
    /// before a late one.
    pub fn drain<E: From<StoreError>>(
        &self,
        patience: Duration,
        mut take: impl FnMut(InboxEvent) -> Result<(), E>,
    ) -> Result<Option<usize>, E> {
        let failed = || self.failed("recording late events");
        if self.is_empty()? {
            return Ok(Some(0));
        }
        let patience = Patience::starting_now(patience);
        let alone = lock(&self.folder.with_extension("lock"), Hold::Exclusive, patience.left());
        let Some(_alone) = alone.map_err(failed())? else { return Ok(None) };
        let mut taken = 0;
        loop {
            let mut claimed = None;
            let mut found_late = false;
            for entry in open_each(&self.entries().map_err(failed())?) {
                let entry = entry.map_err(failed())?;
                if !entry.is_late {
                    claimed = claimed.or(Some(entry.file));
                    continue;
                }
                found_late = true;
                // Nothing overtakes a claimed event: wait for it, then begin again with the oldest.
                if let Some(file) = claimed {
                    match lock_file(file, Hold::Shared, patience.left()).map_err(failed())? {
                        Some(_) => break,
                        None => return Ok(None),
                    }
                }
                match entry.content().map_err(failed())? {
                    Content::Event(event) => {
                        take(event)?;
                        taken += 1;
                        disk::remove_store_file(&entry.path)
                    }
                    Content::CutShort => disk::remove_store_file(&entry.path),
                    Content::Damaged => {
                        disk::rename_private_file(&entry.path, &entry.path.with_extension(DAMAGED))
                    }
                }
                .map_err(failed())?;
            }
            if !found_late {
                return Ok(Some(taken));
            }
        }
    }

    /// How many events are not in the log yet, late or claimed.
    pub fn len(&self) -> Result<usize, StoreError> {
        self.entries().map(|entries| entries.len()).map_err(self.failed("listing events"))
    }

    /// Whether every event is in the log.
    pub fn is_empty(&self) -> Result<bool, StoreError> {
        self.len().map(|len| len == 0)
    }

    /// Whether a process works on an event.
    pub fn has_claimed(&self) -> Result<bool, StoreError> {
        self.any(|entry| Ok(!entry.is_late))
    }

    /// Whether an event is late.
    pub(crate) fn has_late(&self) -> Result<bool, StoreError> {
        self.any(|entry| Ok(entry.is_late))
    }

    /// Whether `session`, or another part of the same session, has late events.
    pub(crate) fn has_late_of(&self, session: &SessionId) -> Result<bool, StoreError> {
        self.any(|entry| {
            Ok(entry.is_late && entry.session()?.is_some_and(|late| late.may_be_with(session)))
        })
    }

    /// The sessions of late events.
    pub(crate) fn late_sessions(&self) -> Result<BTreeSet<SessionId>, StoreError> {
        let mut sessions = BTreeSet::new();
        self.any(|entry| {
            sessions.extend(entry.session()?.filter(|_| entry.is_late));
            Ok(false)
        })?;
        Ok(sessions)
    }

    /// How many events were damaged on disk: they cannot be recorded any more.
    pub fn damaged(&self) -> Result<usize, StoreError> {
        let names = self.names().map_err(self.failed("listing events"))?;
        let mut damaged = names.iter().filter(|name| name.ends_with(DAMAGED)).count();
        self.any(|entry| {
            damaged += usize::from(entry.is_late && matches!(entry.content()?, Content::Damaged));
            Ok(false)
        })?;
        Ok(damaged)
    }

    fn any(&self, is_it: impl FnMut(&Entry) -> io::Result<bool>) -> Result<bool, StoreError> {
        let found = self.entries().and_then(|paths| any(&paths, is_it));
        found.map_err(self.failed("reading events"))
    }

    /// The numbered files, by number.
    fn entries(&self) -> io::Result<Vec<PathBuf>> {
        let mut names = self.names()?;
        names.retain(|name| number_in(name).is_some());
        names.sort_unstable();
        Ok(names.into_iter().map(|name| self.folder.join(name)).collect())
    }

    /// Damaged files keep their numbers.
    fn highest_number(&self) -> io::Result<u64> {
        let names = self.names()?;
        let numbers = names.iter().filter_map(|name| number_in(name.split('.').next()?));
        Ok(numbers.max().unwrap_or(0))
    }

    fn names(&self) -> io::Result<Vec<String>> {
        let Some(names) = if_exists(std::fs::read_dir(&self.folder))? else {
            return Ok(Vec::new());
        };
        names.map(|name| Ok(name?.file_name().to_string_lossy().into_owned())).collect()
    }

    fn failed(&self, doing: &'static str) -> impl FnOnce(io::Error) -> StoreError {
        let path = self.folder.clone();
        move |source| StoreError::Io { path, doing, source }
    }
}

impl QueuedEvent {
    /// For [`Inbox::take_over`] in another process.
    #[must_use]
    pub fn name(&self) -> String {
        self.path.file_name().unwrap_or_default().to_string_lossy().into_owned()
    }

    /// The open file with its lock, for [`Inbox::take_over`] in another process.
    pub fn file(&self) -> io::Result<File> {
        self.file.try_clone()
    }

    /// The event is in the log: nothing needs to wait for it any longer.
    pub(crate) fn remove(self) -> Result<(), StoreError> {
        self.finish(disk::remove_store_file(&self.path))
    }

    /// The event could not be recorded: it is late from now on.
    pub(crate) fn release(self) -> Result<(), StoreError> {
        self.finish(Ok(()))
    }

    /// Another process may have the open file too: closing it here releases nothing.
    fn finish(&self, finished: io::Result<()>) -> Result<(), StoreError> {
        finished.and_then(|()| self.file.unlock()).map_err(|source| StoreError::Io {
            path: self.path.clone(),
            doing: "finishing an event",
            source,
        })
    }
}

const DAMAGED: &str = "damaged";

/// A file of the inbox. As long as it is open, a late one cannot be claimed.
struct Entry {
    file: File,
    path: PathBuf,
    is_late: bool,
}

enum Content {
    Event(InboxEvent),
    CutShort,
    Damaged,
}

impl Entry {
    /// `None`: its event has been recorded.
    fn open(path: &Path) -> io::Result<Option<Self>> {
        let Some(file) = if_exists(File::open(path))? else { return Ok(None) };
        let is_late = try_share(&file)?;
        if is_late && !is_named(&file, path)? {
            return Ok(None);
        }
        Ok(Some(Self { file, path: path.to_owned(), is_late }))
    }

    fn session(&self) -> io::Result<Option<SessionId>> {
        Ok(match self.content()? {
            Content::Event(InboxEvent { event, .. }) => Some(event.session().clone()),
            Content::CutShort | Content::Damaged => None,
        })
    }

    fn content(&self) -> io::Result<Content> {
        content_of(&self.file)
    }
}

fn content_of(file: &File) -> io::Result<Content> {
    // Not by the file's own position, which several processes share.
    let mut bytes = vec![0; usize::try_from(file.metadata()?.len()).unwrap_or_default()];
    file.read_exact_at(&mut bytes, 0)?;
    Ok(match serde_json::from_slice(&bytes) {
        Ok(event) => Content::Event(event),
        Err(error) if error.is_eof() => Content::CutShort,
        Err(_) => Content::Damaged,
    })
}

/// One at a time: there may be more late events than a process may have files open.
fn open_each(paths: &[PathBuf]) -> impl Iterator<Item = io::Result<Entry>> {
    paths.iter().filter_map(|path| Entry::open(path).transpose())
}

fn any(paths: &[PathBuf], mut is_it: impl FnMut(&Entry) -> io::Result<bool>) -> io::Result<bool> {
    for entry in open_each(paths) {
        if is_it(&entry?)? {
            return Ok(true);
        }
    }
    Ok(false)
}

/// `None`: there is nothing of that name.
fn if_exists<T>(opened: io::Result<T>) -> io::Result<Option<T>> {
    match opened {
        Err(error) if error.kind() == io::ErrorKind::NotFound => Ok(None),
        opened => opened.map(Some),
    }
}

/// Whether no process works on a file. The lock is shared, so that two processes that check at once do
/// not take each other for one that works.
fn try_share(file: &File) -> io::Result<bool> {
    match file.try_lock_shared() {
        Ok(()) => Ok(true),
        Err(TryLockError::WouldBlock) => Ok(false),
        Err(TryLockError::Error(error)) => Err(error),
    }
}

fn number_in(name: &str) -> Option<u64> {
    let is_whole = name.len() == 16 && name.bytes().all(|byte| byte.is_ascii_hexdigit());
    u64::from_str_radix(name, 16).ok().filter(|_| is_whole)
}
