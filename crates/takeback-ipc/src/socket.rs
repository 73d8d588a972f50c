//! A Unix socket for processes of the same user: one server at a time, many clients at once.
//!
//! Each client has its own thread and methods, so no client waits for another. Connections of other
//! users are dropped without an answer; the folder's permissions keep them out already.

use std::collections::HashMap;
use std::io::{self, Write as _};
use std::net::Shutdown;
use std::os::fd::{AsFd, BorrowedFd};
use std::os::unix::fs::{FileTypeExt as _, MetadataExt as _};
use std::os::unix::net::{UnixListener, UnixStream};
use std::panic::{AssertUnwindSafe, catch_unwind};
use std::path::{Path, PathBuf};
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Mutex, MutexGuard, PoisonError};
use std::thread::Scope;
use std::time::{Duration, Instant};

use rustix::event::{PollFd, PollFlags, Timespec, poll};
use takeback_core::lock::{Hold, Lock, lock};
use takeback_store::disk;

use crate::connection::{Outcome, Transport, serve_until};
use crate::outlet::Outlet;
use crate::platform;
use crate::rpc::{Call, Fault, answer};
use crate::{Framing, Limits};

/// Why a server cannot listen.
#[derive(Debug, thiserror::Error)]
pub enum SocketError {
    /// Another server listens there.
    #[error("another server already listens at {path}")]
    Taken {
        /// The socket's path.
        path: PathBuf,
    },
    /// The path cannot hold a socket.
    #[error("{path} cannot be used for a socket: {why}")]
    Unfit {
        /// The socket's path.
        path: PathBuf,
        /// What is wrong with it.
        why: &'static str,
    },
    /// The system refused.
    #[error("{path} cannot be used for a socket ({doing})")]
    Io {
        /// The socket's path.
        path: PathBuf,
        /// What was being done.
        doing: &'static str,
        /// The cause.
        source: io::Error,
    },
}

/// A bound socket. It holds a lock, so that no other server listens at the same path.
#[derive(Debug)]
pub struct Socket {
    listener: UnixListener,
    path: PathBuf,
    /// Device and inode of the socket file.
    number: (u64, u64),
    held: Option<Lock>,
    /// A file descriptor in reserve: closed to accept and refuse a client when no more can be
    /// opened.
    spare: Option<UnixListener>,
}

/// The longest path that every system can connect to, minus the suffix of a sibling file.
const LONGEST: usize = 98;

impl Socket {
    /// Listens at `path`, for its owner alone. Replaces the socket file of a server that has ended.
    pub fn claim(path: &Path) -> Result<Self, SocketError> {
        let failed = |doing| move |source| SocketError::Io { path: path.to_owned(), doing, source };
        let unfit = |why| SocketError::Unfit { path: path.to_owned(), why };
        if path.as_os_str().len() > LONGEST {
            return Err(unfit("it is too long"));
        }
        let folder = path.parent().ok_or_else(|| unfit("it has no folder"))?;
        disk::make_private_folder(folder).map_err(failed("making its folder"))?;
        let about = folder.symlink_metadata().map_err(failed("looking at its folder"))?;
        if about.is_symlink() {
            return Err(unfit("its folder is a symbolic link"));
        }
        if !about.is_dir() {
            return Err(unfit("its parent is not a folder"));
        }
        if about.uid() != rustix::process::geteuid().as_raw() {
            return Err(unfit("its folder is not yours"));
        }
        if about.mode() & 0o077 != 0 {
            return Err(unfit("its folder is open to others"));
        }
        let beside = path.with_extension("lock");
        let held = lock(&beside, Hold::Exclusive, Duration::ZERO).map_err(failed("locking it"))?;
        let Some(held) = held else { return Err(SocketError::Taken { path: path.to_owned() }) };
        if path.symlink_metadata().is_ok_and(|there| !there.file_type().is_socket()) {
            return Err(unfit("something else has its name"));
        }
        let listener = disk::bind_private_socket(path).map_err(failed("listening"))?;
        listener.set_nonblocking(true).map_err(failed("listening"))?;
        let spare = listener.try_clone().map_err(failed("listening"))?;
        let about = path.symlink_metadata().map_err(failed("listening"))?;
        let number = (about.dev(), about.ino());
        let (path, held, spare) = (path.to_owned(), Some(held), Some(spare));
        Ok(Self { listener, path, number, held, spare })
    }

    /// The socket's path.
    #[must_use]
    pub fn path(&self) -> &Path {
        &self.path
    }

    /// Accepts a connection with the spare file descriptor; `None` if there is none.
    fn accept_with_spare(&mut self) -> Option<UnixStream> {
        drop(self.spare.take()?);
        self.listener.accept().ok().map(|(stream, _)| stream)
    }

    /// Reserves the spare file descriptor again.
    fn keep_spare(&mut self) {
        if self.spare.is_none() {
            self.spare = self.listener.try_clone().ok();
        }
    }

    /// Removes the socket file and releases the lock; connected clients are still served.
    fn retire(&mut self) {
        if let Some(held) = self.held.take() {
            if self.is_at_its_path() {
                // The next server replaces a file that stays behind.
                drop(disk::remove_store_file(&self.path));
            }
            drop(held);
        }
    }

    /// Whether the path still leads to this socket. Assumes so if the path cannot be checked.
    fn is_at_its_path(&self) -> bool {
        match self.path.symlink_metadata() {
            Ok(about) => (about.dev(), about.ino()) == self.number,
            Err(error) => {
                !matches!(error.kind(), io::ErrorKind::NotFound | io::ErrorKind::NotADirectory)
            }
        }
    }

    fn is_retired(&self) -> bool {
        self.held.is_none()
    }
}

impl Drop for Socket {
    fn drop(&mut self) {
        self.retire();
    }
}

/// Whether a server listens at `path`.
#[must_use]
pub fn answers(path: &Path) -> bool {
    UnixStream::connect(path).is_ok()
}

/// When a server ends on its own.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum IdlePolicy {
    /// Never.
    Stays,
    /// After this long without a client.
    Exits(Duration),
}

/// Serves clients until `stop` becomes readable, the idle time has passed, or the socket file was
/// removed and the last client has disconnected. `connect` makes the methods of a client, in the
/// client's thread. On stop, running calls complete and no other call starts.
pub fn serve_all<M>(
    mut socket: Socket,
    limits: &Limits,
    idle: IdlePolicy,
    stop: BorrowedFd<'_>,
    connect: &(dyn Fn() -> M + Sync),
) -> io::Result<()>
where
    M: FnMut(&Call, &Outlet) -> Outcome,
{
    let clients = Clients::default();
    let clients = &clients;
    std::thread::scope(|scope| {
        let mut last_seen = Instant::now();
        loop {
            if clients.count() > 0 {
                last_seen = Instant::now();
            }
            let patience = match idle {
                IdlePolicy::Stays => None,
                IdlePolicy::Exits(after) => Some(after.saturating_sub(last_seen.elapsed())),
            };
            if patience.is_some_and(|patience| patience.is_zero()) {
                // A client may have connected since the last poll; serve it.
                socket.retire();
                accept_all(scope, &mut socket, clients, limits, connect)?;
                return Ok(());
            }
            if !socket.is_retired() && !socket.is_at_its_path() {
                // The file was removed: release the lock for the next server.
                socket.retire();
            }
            if socket.is_retired() && clients.count() == 0 {
                return Ok(());
            }
            match wait(&socket, stop, patience)? {
                WakeReason::Stop => break,
                WakeReason::Client => accept_all(scope, &mut socket, clients, limits, connect)?,
                WakeReason::Timeout => {}
            }
        }
        socket.retire();
        clients.end();
        Ok(())
    })
}

enum WakeReason {
    Client,
    Stop,
    Timeout,
}

fn wait(
    socket: &Socket,
    stop: BorrowedFd<'_>,
    patience: Option<Duration>,
) -> io::Result<WakeReason> {
    /// How often to check for the last client's disconnect and for the socket file.
    const TICK: Duration = Duration::from_millis(500);
    /// The same while the server has no idle limit and its file is in place.
    const LOOK: Duration = Duration::from_secs(2);
    let timeout = match patience {
        Some(patience) => patience.min(TICK),
        None if socket.is_retired() => TICK,
        None => LOOK,
    };
    let timeout = Timespec::try_from(timeout).ok();
    let mut on = [
        PollFd::from_borrowed_fd(socket.listener.as_fd(), PollFlags::IN),
        PollFd::from_borrowed_fd(stop, PollFlags::IN),
    ];
    match poll(&mut on, timeout.as_ref()) {
        Err(rustix::io::Errno::INTR) => return Ok(WakeReason::Timeout),
        polled => polled?,
    };
    Ok(match (on[0].revents().is_empty(), on[1].revents().is_empty()) {
        (_, false) => WakeReason::Stop,
        (false, true) => WakeReason::Client,
        (true, true) => WakeReason::Timeout,
    })
}

fn accept_all<'scope, M>(
    scope: &'scope Scope<'scope, '_>,
    socket: &mut Socket,
    clients: &'scope Clients,
    limits: &'scope Limits,
    connect: &'scope (dyn Fn() -> M + Sync),
) -> io::Result<()>
where
    M: FnMut(&Call, &Outlet) -> Outcome,
{
    loop {
        socket.keep_spare();
        let stream = match socket.listener.accept() {
            Ok((stream, _)) => stream,
            Err(error) if error.kind() == io::ErrorKind::WouldBlock => return Ok(()),
            Err(error) if error.kind() == io::ErrorKind::ConnectionAborted => continue,
            Err(error) if is_exhausted(&error) => {
                let Some(stream) = socket.accept_with_spare() else {
                    socket.keep_spare();
                    // Wait for a client to disconnect, which frees a descriptor.
                    std::thread::sleep(Duration::from_millis(20));
                    return Ok(());
                };
                if platform::is_own(&stream) {
                    turn_away(stream, &no_room(clients));
                }
                continue;
            }
            Err(error) => return Err(error),
        };
        if !platform::is_own(&stream) || stream.set_nonblocking(false).is_err() {
            continue;
        }
        if clients.count() >= limits.clients {
            turn_away(stream, &format!("{} clients are connected", limits.clients));
            continue;
        }
        let Some(guard) = clients.add(&stream) else {
            turn_away(stream, &no_room(clients));
            continue;
        };
        // If the thread cannot be spawned, the stream is dropped, which closes it.
        let spawned =
            std::thread::Builder::new().name("client".to_owned()).spawn_scoped(scope, move || {
                let _guard = guard;
                serve_one(&stream, clients, limits, &mut connect());
            });
        drop(spawned);
    }
}

fn is_exhausted(error: &io::Error) -> bool {
    use rustix::io::Errno;
    let exhausted = [Errno::MFILE, Errno::NFILE, Errno::NOBUFS, Errno::NOMEM];
    exhausted.iter().any(|errno| error.raw_os_error() == Some(errno.raw_os_error()))
}

fn serve_one(
    stream: &UnixStream,
    clients: &Clients,
    limits: &Limits,
    methods: &mut dyn FnMut(&Call, &Outlet) -> Outcome,
) {
    if stream.set_write_timeout(Some(limits.stall)).is_err() {
        return;
    }
    // Fails if the client has disconnected already.
    let hang_up = || drop(stream.shutdown(Shutdown::Both));
    // The client has received the error, if it still reads. A panic of a method ends only its own
    // client.
    let is_over = || clients.ended.load(Ordering::Relaxed);
    drop(catch_unwind(AssertUnwindSafe(|| {
        let transport = Transport { reader: stream, writer: stream, hang_up };
        serve_until(&is_over, transport, limits, methods)
    })));
}

fn no_room(clients: &Clients) -> String {
    format!("{} clients are connected, and no more files can be opened", clients.count())
}

fn turn_away(mut stream: UnixStream, why: &str) {
    let fault = Fault::new(TOO_MANY_CLIENTS, "tooManyClients", why);
    let text = Framing::Lines.framed(&answer(None, Err(&fault)));
    // A refused client must not block the server.
    drop(stream.set_nonblocking(true).and_then(|()| stream.write_all(&text)));
}

/// The error code for one client too many.
pub const TOO_MANY_CLIENTS: i32 = -32099;

/// The connected clients.
#[derive(Debug, Default)]
struct Clients {
    connected: Mutex<ClientStreams>,
    /// No new call may start.
    ended: AtomicBool,
}

#[derive(Debug, Default)]
struct ClientStreams {
    streams: HashMap<u64, UnixStream>,
    next: u64,
}

/// Removes its client when dropped.
struct ClientGuard<'a> {
    clients: &'a Clients,
    number: u64,
}

impl Clients {
    fn connected(&self) -> MutexGuard<'_, ClientStreams> {
        self.connected.lock().unwrap_or_else(PoisonError::into_inner)
    }

    fn count(&self) -> usize {
        self.connected().streams.len()
    }

    fn add(&self, stream: &UnixStream) -> Option<ClientGuard<'_>> {
        let stream = stream.try_clone().ok()?;
        let mut connected = self.connected();
        let number = connected.next;
        connected.next += 1;
        connected.streams.insert(number, stream);
        Some(ClientGuard { clients: self, number })
    }

    /// Stops reading from every client; calls that were read but not started are dropped.
    fn end(&self) {
        self.ended.store(true, Ordering::Relaxed);
        for stream in self.connected().streams.values() {
            // Fails if the client has disconnected already.
            drop(stream.shutdown(Shutdown::Read));
        }
    }
}

impl Drop for ClientGuard<'_> {
    fn drop(&mut self) {
        self.clients.connected().streams.remove(&self.number);
    }
}
