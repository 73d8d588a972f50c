//! A running `claude`: in its own process group, its lines forwarded as they arrive.

use std::ffi::OsString;
use std::io::{BufRead as _, BufReader, Read, Write as _};
use std::os::unix::process::{CommandExt as _, ExitStatusExt as _};
use std::process::{Child, ChildStdin, Command, ExitStatus, Stdio};
use std::sync::mpsc::Sender;
use std::sync::{Arc, Mutex, PoisonError};
use std::thread::{self, JoinHandle};
use std::time::{Duration, Instant};

use rustix::process::{Pid, Signal, kill_process_group};

use super::ClaudeOptions;
use super::command_line::CHECKPOINTING;
use super::driver::DriverMessage;
use super::orphans::Mark;
use super::wire::WireIn;
use crate::chat_agent::AgentError;

pub(super) struct Process {
    /// Distinguishes its lines from those of earlier processes.
    pub(super) number: u64,
    child: Child,
    stdin: Option<ChildStdin>,
    last_error_line: Arc<Mutex<String>>,
    stderr_reader: Option<JoinHandle<()>>,
    mark: Mark,
}

/// How long the last line on stderr may take to arrive after the process has ended. Bounded, because a
/// child of the process may hold the pipe open.
const STDERR_TIMEOUT: Duration = Duration::from_millis(500);

/// How a process ended.
pub(super) struct ProcessEnd {
    pub(super) why: String,
    /// It was killed before it could end its children, which have this mark.
    pub(super) orphaned: Option<Mark>,
}

impl Process {
    pub(super) fn start(
        options: &ClaudeOptions,
        arguments: &[OsString],
        number: u64,
        inbox: &Sender<DriverMessage>,
    ) -> Result<Self, AgentError> {
        let program = options.program.display().to_string();
        let cannot = |source| AgentError::CannotStart { program: program.clone(), source };
        let mark = Mark::new();
        let mut command = Command::new(&options.program);
        command
            .args(arguments)
            .current_dir(&options.folder)
            .env_clear()
            .envs(options.environment.iter().map(|(name, value)| (name, value)))
            .env(Mark::NAME, mark.value())
            .stdin(Stdio::piped())
            .stdout(Stdio::piped())
            .stderr(Stdio::piped())
            // Signals of the terminal are for the host, not for the program.
            .process_group(0);
        if options.checkpointing {
            command.env(CHECKPOINTING, "1");
        } else {
            command.env_remove(CHECKPOINTING);
        }
        let mut child = command.spawn().map_err(cannot)?;
        let stdin = child.stdin.take();
        let (stdout, stderr) = (child.stdout.take(), child.stderr.take());
        let last_error_line = Arc::new(Mutex::new(String::new()));
        if let Some(stdout) = stdout {
            let inbox = inbox.clone();
            let forward = move || {
                read_lines(stdout, |line| inbox.send(DriverMessage::Line(number, line)).is_ok());
                // The receiver is gone: the host has closed.
                drop(inbox.send(DriverMessage::Ended(number)));
            };
            thread::Builder::new()
                .name("claude's answers".to_owned())
                .spawn(forward)
                .map_err(cannot)?;
        }
        let mut stderr_reader = None;
        if let Some(stderr) = stderr {
            let last_error_line = Arc::clone(&last_error_line);
            let keep = move || {
                read_lines(stderr, |line| {
                    let line = line.trim();
                    if !line.is_empty() {
                        *last_error_line.lock().unwrap_or_else(PoisonError::into_inner) =
                            line.to_owned();
                    }
                    true
                });
            };
            let reader = thread::Builder::new().name("claude's errors".to_owned()).spawn(keep);
            stderr_reader = Some(reader.map_err(cannot)?);
        }
        Ok(Self { number, child, stdin, last_error_line, stderr_reader, mark })
    }

    /// A line to a process that has died is lost; [`DriverMessage::Ended`] reports its end.
    pub(super) fn send(&mut self, line: &WireIn) {
        let Some(stdin) = &mut self.stdin else { return };
        let mut text = serde_json::to_vec(line).expect("plain texts and maps");
        text.push(b'\n');
        drop(stdin.write_all(&text).and_then(|()| stdin.flush()));
    }

    pub(super) fn pid(&self) -> u32 {
        self.child.id()
    }

    pub(super) fn kill(&self) {
        kill_group(self.child.id());
    }

    /// Closes its input first and kills it after `timeout`: it may still be writing its
    /// transcript.
    pub(super) fn end(mut self, timeout: Duration) -> ProcessEnd {
        drop(self.stdin.take());
        let deadline = Instant::now() + timeout;
        let status = loop {
            match self.child.try_wait() {
                Ok(Some(status)) => break Some(status),
                Ok(None) if Instant::now() < deadline => thread::sleep(Duration::from_millis(5)),
                Ok(None) => {
                    self.kill();
                    break self.child.wait().ok();
                }
                Err(_) => break None,
            }
        };
        if let Some(reader) = self.stderr_reader.take() {
            let deadline = Instant::now() + STDERR_TIMEOUT;
            while !reader.is_finished() && Instant::now() < deadline {
                thread::sleep(Duration::from_millis(2));
            }
        }
        let last_line = self.last_error_line.lock().unwrap_or_else(PoisonError::into_inner).clone();
        let why = if last_line.is_empty() { describe_exit(status) } else { last_line };
        let was_killed = status.is_none_or(|status| status.code().is_none());
        ProcessEnd { why, orphaned: was_killed.then_some(self.mark) }
    }
}

/// Kills a process and its group.
pub(super) fn kill_group(pid: u32) {
    let pid = i32::try_from(pid).ok().and_then(Pid::from_raw);
    // Fails if it has ended by itself.
    pid.map(|pid| kill_process_group(pid, Signal::KILL).ok());
}

fn describe_exit(status: Option<ExitStatus>) -> String {
    match status.map(|status| (status.code(), status.signal())) {
        Some((Some(code), _)) => format!("it ended with code {code}"),
        Some((None, Some(signal))) => format!("it was killed by signal {signal}"),
        _ => "it ended".to_owned(),
    }
}

fn read_lines(from: impl Read, mut each: impl FnMut(String) -> bool) {
    let mut from = BufReader::new(from);
    let mut line = Vec::new();
    while from.read_until(b'\n', &mut line).is_ok_and(|read| read > 0) {
        if !each(String::from_utf8_lossy(&line).into_owned()) {
            return;
        }
        line.clear();
    }
}
