//! A background server: started on demand, ended when idle.

use std::fs::File;
use std::io::{self, Read as _, Write as _};
use std::path::Path;
use std::process::{Child, Command, Stdio};
use std::sync::mpsc::channel;
use std::thread::Builder;
use std::time::{Duration, Instant};

use takeback_ipc::answers;

use super::address;
use super::client::Start;
use crate::answers::{self, ServeAnswer};
use crate::error::{CommandError, Kind};
use crate::screen::Screen;

/// How long a server may take to answer.
const PATIENCE: Duration = Duration::from_secs(10);

/// How long to wait for a server before starting another.
const AGAIN: Duration = Duration::from_secs(1);

/// Starts a server if none answers, and prints its socket. If several processes do this at once, one server
/// wins and all of them find it.
pub(super) fn ensure(
    start: &Start,
    idle: u64,
    watch: bool,
    screen: &mut Screen,
) -> Result<u8, CommandError> {
    let path = address::of(start.home())?;
    let started = !answers(&path);
    if started {
        wait_for(&path, || spawn(start, idle, watch))?;
    }
    if screen.json {
        let socket = answers::place(&path);
        screen.json(&ServeAnswer { socket, started: Some(started) })?;
    } else {
        writeln!(screen.out, "{}", path.display())?;
        screen.out.flush()?;
    }
    Ok(0)
}

fn spawn(start: &Start, idle: u64, watch: bool) -> io::Result<Child> {
    let mut command = Command::new(std::env::current_exe()?);
    command.args(["serve", "--detached", "--quiet", "--idle-exit", &idle.to_string()]);
    command.args(watch.then_some("--watch"));
    command.arg("--home").arg(start.home()).arg("-C").arg(start.folder());
    // A process keeps its current folder from being unmounted.
    command.current_dir("/").stdin(Stdio::null()).stdout(Stdio::null()).stderr(Stdio::piped());
    command.spawn()
}

/// Waits until one server has won and answers. Returning earlier might leave behind a server that lost and
/// outlives the one that was found.
fn wait_for(path: &Path, spawn: impl Fn() -> io::Result<Child>) -> Result<(), CommandError> {
    let until = Instant::now() + PATIENCE;
    let mut child = spawn()?;
    let mut output = startup_output(&mut child);
    let mut again = Instant::now() + AGAIN;
    while !answers(path) {
        let ended = child.try_wait()?.map(|status| status.code());
        if ended.is_some_and(|code| code != Some(i32::from(Kind::Locked as u8))) {
            return Err(did_not_start(&output));
        }
        // Another server was faster and is about to answer, or it lost its socket and is about to exit.
        if ended.is_some() && Instant::now() >= again {
            child = spawn()?;
            output = startup_output(&mut child);
            again = Instant::now() + AGAIN;
        }
        if Instant::now() >= until {
            let why = format!("the server at {} does not answer", path.display());
            return Err(CommandError::new(Kind::Error, why));
        }
        std::thread::sleep(Duration::from_millis(5));
    }
    Ok(())
}

/// The error with the server's own message and hints.
fn did_not_start(output: &str) -> CommandError {
    let mut lines = output.trim().trim_start_matches("takeback:").trim().lines().map(str::trim);
    let what = lines.next().unwrap_or_default();
    let error = CommandError::new(Kind::Error, format!("the server did not start: {what}"));
    lines.fold(error, CommandError::hint)
}

/// What a server prints until it listens or exits; it closes standard error then.
fn startup_output(child: &mut Child) -> String {
    let Some(mut stderr) = child.stderr.take() else { return String::new() };
    let (sender, receiver) = channel();
    // The thread stays behind if the server does neither.
    let listen = move || {
        let mut output = Vec::new();
        drop(stderr.read_to_end(&mut output));
        drop(sender.send(String::from_utf8_lossy(&output).into_owned()));
    };
    if Builder::new().spawn(listen).is_err() {
        return String::new();
    }
    receiver.recv_timeout(PATIENCE).unwrap_or_default()
}

/// Detaches from the terminal, so that Ctrl-C does not reach this process.
pub(super) fn leave_terminal() -> io::Result<()> {
    // A process group leader, such as a shell's job, does not need it.
    match rustix::process::setsid() {
        Ok(_) | Err(rustix::io::Errno::PERM) => Ok(()),
        Err(error) => Err(error.into()),
    }
}

/// The process that started it no longer reads its output.
pub(super) fn leave_output() -> io::Result<()> {
    let nowhere = File::options().write(true).open("/dev/null")?;
    rustix::stdio::dup2_stderr(&nowhere)?;
    Ok(())
}
