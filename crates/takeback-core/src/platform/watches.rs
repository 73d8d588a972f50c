//! Folders whose changes the kernel queues (inotify).
//!
//! Everything that a call changed before it returned is in the queue by then, except stores through a
//! memory map, which arrive when the map is closed.

use std::io;
use std::mem::MaybeUninit;
use std::os::fd::{AsFd, OwnedFd};

use rustix::fs::inotify::{
    CreateFlags, ReadFlags, Reader, WatchFlags, add_watch, init, remove_watch,
};
use rustix::io::Errno;
use takeback_store::platform::descriptor_path;

/// The queue, and the watches that feed it.
#[derive(Debug)]
pub(crate) struct Watches {
    queue: OwnedFd,
}

/// One folder under watch.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub(crate) struct WatchId(i32);

/// Why a folder is not watched.
#[derive(Debug, Clone, Copy)]
pub(crate) enum WatchError {
    /// No permission for this folder.
    Forbidden,
    /// The kernel lets this user watch no more folders.
    Limit,
    Kernel,
}

#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) enum WatchEvent {
    /// More happened than the queue holds.
    Overflow,
    /// Something happened to this name in the folder.
    Name {
        watch: WatchId,
        name: Vec<u8>,
        /// The name was created or removed, or now refers to something else.
        renamed: bool,
        is_folder: bool,
    },
    /// Something happened to the folder itself.
    Folder {
        watch: WatchId,
        /// It was moved, removed or unmounted, and is no longer watched under its path.
        gone: bool,
    },
}

/// Every way to change a folder's names, or the contents and the metadata of what they name.
const CHANGES: WatchFlags = WatchFlags::MODIFY
    .union(WatchFlags::CLOSE_WRITE)
    .union(WatchFlags::ATTRIB)
    .union(WatchFlags::CREATE)
    .union(WatchFlags::DELETE)
    .union(WatchFlags::MOVED_FROM)
    .union(WatchFlags::MOVED_TO)
    .union(WatchFlags::DELETE_SELF)
    .union(WatchFlags::MOVE_SELF)
    .union(WatchFlags::ONLYDIR)
    .union(WatchFlags::DONT_FOLLOW);

const RENAMES: ReadFlags = ReadFlags::CREATE
    .union(ReadFlags::DELETE)
    .union(ReadFlags::MOVED_FROM)
    .union(ReadFlags::MOVED_TO);

const GONE: ReadFlags = ReadFlags::DELETE_SELF
    .union(ReadFlags::MOVE_SELF)
    .union(ReadFlags::UNMOUNT)
    .union(ReadFlags::IGNORED);

impl Watches {
    pub(crate) fn new() -> Result<Self, WatchError> {
        let queue = init(CreateFlags::CLOEXEC | CreateFlags::NONBLOCK).map_err(failed)?;
        Ok(Self { queue })
    }

    /// Watches an open folder. The same folder under another path has the same id.
    pub(crate) fn add(&self, folder: impl AsFd) -> Result<WatchId, WatchError> {
        // By the descriptor, so that nothing can take the folder's place on the way. Its name in /proc
        // is a link, which `/.` makes the kernel follow despite DONT_FOLLOW.
        let path = format!("{}/.", descriptor_path(folder));
        add_watch(&self.queue, path, CHANGES).map(WatchId).map_err(failed)
    }

    /// Does nothing if the kernel ended the watch before.
    pub(crate) fn remove(&self, watch: WatchId) {
        drop(remove_watch(&self.queue, watch.0).map_err(io::Error::from));
    }

    /// Everything queued so far. An error means that events may be lost.
    pub(crate) fn drain(&self) -> io::Result<Vec<WatchEvent>> {
        let mut events = Vec::new();
        let mut buffer = [MaybeUninit::uninit(); 64 << 10];
        let mut reader = Reader::new(&self.queue, &mut buffer);
        loop {
            let event = match reader.next() {
                Ok(event) => event,
                Err(Errno::INTR) => continue,
                Err(Errno::AGAIN) => return Ok(events),
                Err(error) => return Err(error.into()),
            };
            let (what, watch) = (event.events(), WatchId(event.wd()));
            events.push(match event.file_name() {
                _ if what.contains(ReadFlags::QUEUE_OVERFLOW) => WatchEvent::Overflow,
                Some(name) => WatchEvent::Name {
                    watch,
                    name: name.to_bytes().to_vec(),
                    renamed: what.intersects(RENAMES),
                    is_folder: what.contains(ReadFlags::ISDIR),
                },
                None => WatchEvent::Folder { watch, gone: what.intersects(GONE) },
            });
        }
    }
}

fn failed(error: Errno) -> WatchError {
    match error {
        Errno::ACCESS | Errno::PERM => WatchError::Forbidden,
        Errno::NOSPC => WatchError::Limit,
        _ => WatchError::Kernel,
    }
}
