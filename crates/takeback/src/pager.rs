//! Shows output through the user's pager if it is longer than the terminal.
//!
//! Buffers output until the terminal would be full, and only then starts the pager. Short output is printed
//! directly, and so is all output if there is no pager.

use std::ffi::OsString;
use std::io::{self, IsTerminal as _, Write};
use std::mem;
use std::process::{Child, ChildStdin, Command, Stdio};
use std::sync::Arc;
use std::sync::atomic::AtomicBool;

use signal_hook::consts::SIGINT;
use terminal_size::{Height, Width};

use crate::place::environment;
use crate::screen::columns;

pub(crate) struct Pager {
    command: OsString,
    rows: usize,
    columns: usize,
    state: State,
}

enum State {
    /// So far it fits the terminal.
    Waiting(Vec<u8>),
    Running(PagerProcess),
    /// No pager is available.
    Plain,
}

struct PagerProcess {
    child: Child,
    stdin: ChildStdin,
    /// A copy of the output, if only the exit code will show whether the pager started.
    copy: Option<Vec<u8>>,
}

/// The exit codes of a shell that cannot run a command.
const NOT_RUN: [i32; 2] = [126, 127];

impl Pager {
    /// `None`: output is not a terminal, or the terminal is too simple for a pager.
    pub(crate) fn of_user() -> Option<Self> {
        let stdout = io::stdout();
        let able = environment("TERM").is_some_and(|term| term != "dumb");
        if !(able && stdout.is_terminal()) {
            return None;
        }
        let command = environment("TAKEBACK_PAGER")
            .or_else(|| environment("PAGER"))
            .unwrap_or_else(|| OsString::from("less -FRX"));
        let (Width(columns), Height(rows)) = terminal_size::terminal_size_of(&stdout)?;
        if command == "cat" {
            return None;
        }
        Some(Self {
            command,
            rows: usize::from(rows),
            columns: usize::from(columns).max(1),
            state: State::Waiting(Vec::new()),
        })
    }

    /// Whether all of `text` and the prompt after it can be seen at once.
    fn fits(&self, text: &[u8]) -> bool {
        let text = String::from_utf8_lossy(text);
        let mut used = 1;
        for line in text.lines() {
            let line = anstream::adapter::strip_str(line).to_string();
            used += columns(&line).div_ceil(self.columns).max(1);
            if used > self.rows {
                return false;
            }
        }
        true
    }

    fn start(&self) -> io::Result<PagerProcess> {
        let (mut command, may_not_begin) = match plain_words(&self.command) {
            Some((program, arguments)) => {
                let mut command = Command::new(program);
                command.args(arguments);
                (command, false)
            }
            None => {
                let mut command = Command::new("sh");
                command.arg("-c").arg(&self.command);
                (command, true)
            }
        };
        for (name, value) in [("LESS", "FRX"), ("LESSCHARSET", "utf-8"), ("LV", "-c")] {
            if environment(name).is_none() {
                command.env(name, value);
            }
        }
        // Ctrl-C is for the pager; this process must stay until the pager exits.
        signal_hook::flag::register(SIGINT, Arc::new(AtomicBool::new(false)))?;
        let mut child = command.stdin(Stdio::piped()).spawn()?;
        let stdin = child.stdin.take().ok_or(io::ErrorKind::BrokenPipe)?;
        Ok(PagerProcess { child, stdin, copy: may_not_begin.then(Vec::new) })
    }

    fn become_plain(&mut self, text: &[u8]) -> io::Result<()> {
        self.state = State::Plain;
        io::stdout().write_all(text)
    }
}

/// The words of a command that needs no shell.
fn plain_words(command: &OsString) -> Option<(&str, impl Iterator<Item = &str>)> {
    let text = command.to_str()?;
    let plain = |c: char| c.is_alphanumeric() || " +,-./:@_".contains(c);
    let mut words = text.chars().all(plain).then(|| text.split_whitespace())?;
    Some((words.next()?, words))
}

impl Write for Pager {
    fn write(&mut self, bytes: &[u8]) -> io::Result<usize> {
        match &mut self.state {
            State::Plain => return io::stdout().write(bytes),
            State::Waiting(text) => {
                text.extend_from_slice(bytes);
                let text = mem::take(text);
                if self.fits(&text) {
                    self.state = State::Waiting(text);
                } else {
                    match self.start() {
                        Ok(running) => {
                            self.state = State::Running(running);
                            self.write_all(&text)?;
                        }
                        Err(_) => self.become_plain(&text)?,
                    }
                }
            }
            State::Running(running) => {
                if let Some(copy) = &mut running.copy {
                    copy.extend_from_slice(bytes);
                }
                match running.stdin.write_all(bytes) {
                    Err(error) if error.kind() == io::ErrorKind::BrokenPipe => {
                        let status = running.child.wait()?;
                        match running.copy.take() {
                            Some(copy) if not_run(status) => self.become_plain(&copy)?,
                            _ => return Err(error),
                        }
                    }
                    written => written?,
                }
            }
        }
        Ok(bytes.len())
    }

    fn flush(&mut self) -> io::Result<()> {
        match &mut self.state {
            State::Waiting(_) => Ok(()),
            State::Running(running) => running.stdin.flush(),
            State::Plain => io::stdout().flush(),
        }
    }
}

fn not_run(status: std::process::ExitStatus) -> bool {
    status.code().is_some_and(|code| NOT_RUN.contains(&code))
}

impl Drop for Pager {
    /// Waits until the user closes the pager.
    fn drop(&mut self) {
        let mut stdout = io::stdout();
        let written = match mem::replace(&mut self.state, State::Plain) {
            State::Waiting(text) => stdout.write_all(&text),
            State::Running(PagerProcess { mut child, stdin, copy }) => {
                drop(stdin);
                match (child.wait(), copy) {
                    (Ok(status), Some(copy)) if not_run(status) => stdout.write_all(&copy),
                    _ => Ok(()),
                }
            }
            State::Plain => Ok(()),
        };
        // The terminal is gone; there is nowhere left to print.
        drop(written.and_then(|()| stdout.flush()));
    }
}
