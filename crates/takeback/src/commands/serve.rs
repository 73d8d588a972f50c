//! `serve`: the commands as JSON-RPC methods for other programs, as specified in `docs/design/protocol.md`.

mod actions;
mod address;
mod background;
mod client;
mod checkpoints;
mod events;
mod fault;
mod file_checkpoints;
mod forks;
mod history;
mod methods;
mod points;
mod idle_work;
mod server;
mod sessions;
mod states;
mod watch;

use std::io::{self, Write as _};
use std::os::fd::AsFd as _;
use std::os::unix::net::UnixStream;
use std::sync::Arc;
use std::sync::atomic::AtomicBool;
use std::time::Duration;

use signal_hook::consts::{SIGHUP, SIGINT, SIGTERM};
use signal_hook::{flag, low_level};
use takeback_ipc::{Call, IdlePolicy, Limits, Outlet, Socket, SocketError, serve_all};

use self::client::{Client, Start};
use crate::answers;
use crate::args::{Options, ServeArgs};
use crate::error::{CommandError, Kind};
use crate::progress;
use crate::screen::{HINT, Screen, plain};

pub(crate) fn serve(
    options: &Options,
    args: &ServeArgs,
    screen: &mut Screen,
) -> Result<u8, CommandError> {
    progress::hide();
    let start = Start::new(options, args.watch && !args.ensure)?;
    if !args.ensure {
        open_more();
    }
    if args.stdio {
        one_client(start)
    } else if args.ensure {
        let idle = args.idle_exit.unwrap_or(ServeArgs::IDLE_EXIT);
        background::ensure(&start, idle, args.watch, screen)
    } else {
        many_clients(&start, args, screen)
    }
}

/// Raises the limit of open files: each client has its own stores open.
fn open_more() {
    use rustix::process::{Resource, Rlimit, getrlimit, setrlimit};
    // Some systems, such as macOS, report a higher limit than they allow.
    const SOME: u64 = 10_240;
    let now = getrlimit(Resource::Nofile);
    let to = |current| setrlimit(Resource::Nofile, Rlimit { current, ..now });
    let some = now.maximum.map_or(SOME, |most| most.min(SOME));
    for most in [now.maximum, now.current.max(Some(some))] {
        if to(most).is_ok() {
            return;
        }
    }
    // Without a higher limit, it serves fewer clients.
}

fn one_client(start: Start) -> Result<u8, CommandError> {
    let mut client = Client::new(start);
    let (input, output) = (io::stdin().lock(), io::stdout());
    // A client that does not read blocks only itself.
    let hang_up = || {};
    takeback_ipc::serve(input, output, &Limits::default(), hang_up, &mut |call, outlet| {
        client.answer(call, outlet)
    })
    .map_err(|error| CommandError::new(Kind::Error, error))?;
    Ok(0)
}

fn many_clients(start: &Start, args: &ServeArgs, screen: &mut Screen) -> Result<u8, CommandError> {
    let stop = shutdown_signal()?;
    if args.detached {
        background::leave_terminal()?;
    }
    let socket = Socket::claim(&address::of(start.home())?)?;
    if screen.json {
        let socket = answers::place(socket.path());
        screen.json(&answers::ServeAnswer { socket, started: None })?;
    } else if !screen.quiet {
        let path = plain(&socket.path().to_string_lossy());
        writeln!(screen.out, "Listening at {path}  {HINT}Ctrl-C stops it{HINT:#}")?;
        screen.out.flush()?;
    }
    if args.detached {
        background::leave_output()?;
    }
    idle_work::work_when_idle(Arc::clone(&start.idle), start.home().to_owned());
    let idle =
        args.idle_exit.map_or(IdlePolicy::Stays, |s| IdlePolicy::Exits(Duration::from_secs(s)));
    serve_all(socket, &Limits::default(), idle, stop.as_fd(), &|| {
        let mut client = Client::new(start.clone());
        move |call: &Call, outlet: &Outlet| client.answer(call, outlet)
    })?;
    Ok(0)
}

/// Readable once a signal asks this process to end; a second signal ends it immediately.
fn shutdown_signal() -> io::Result<UnixStream> {
    let (reader, writer) = UnixStream::pair()?;
    let again = Arc::new(AtomicBool::new(false));
    for signal in [SIGTERM, SIGINT, SIGHUP] {
        flag::register_conditional_shutdown(signal, 128 + signal, Arc::clone(&again))?;
        flag::register(signal, Arc::clone(&again))?;
        low_level::pipe::register(signal, writer.try_clone()?)?;
    }
    Ok(reader)
}

impl From<SocketError> for CommandError {
    fn from(error: SocketError) -> Self {
        match error {
            SocketError::Taken { .. } => Self::new(Kind::Locked, error)
                .hint("Connect to it; `takeback serve --ensure` prints where it is."),
            SocketError::Unfit { .. } => Self::new(Kind::Error, error).hint(
                "Set XDG_RUNTIME_DIR to a folder of your own with a short path, or use --stdio.",
            ),
            SocketError::Io { .. } => Self::new(Kind::Error, error),
        }
    }
}
