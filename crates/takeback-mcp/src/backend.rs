//! `takeback serve --stdio` as a child process: one call at a time, answered by the line with its id.
//!
//! A child that has ended is started again for the next call. If it ends during a call, the call is
//! repeated once, unless it changes something and may have been done already.

use std::collections::VecDeque;
use std::ffi::OsString;
use std::path::PathBuf;
use std::process::Stdio;
use std::sync::{Arc, Mutex as StdMutex};
use std::time::Duration;

use serde::Deserialize;
use serde::de::DeserializeOwned;
use serde_json::value::RawValue;
use serde_json::{Value, json};
use tokio::io::{AsyncBufReadExt as _, AsyncWriteExt as _, BufReader, Lines};
use tokio::process::{Child, ChildStderr, ChildStdin, ChildStdout, Command};
use tokio::sync::Mutex;
use tokio::task::JoinHandle;

/// How the program is started.
#[derive(Debug, Clone)]
pub struct BackendOptions {
    /// The `takeback` program.
    pub program: PathBuf,
    /// Arguments before `serve --stdio`: the workspace and the home.
    pub arguments: Vec<OsString>,
}

/// Gets each call, and what the program writes to standard error.
pub type Log = Arc<dyn Fn(&str) + Send + Sync>;

/// The child, started with the first call.
pub struct Backend {
    options: BackendOptions,
    log: Log,
    running: Mutex<Option<ChildProcess>>,
}

/// Whether a call may be repeated when its outcome is unknown.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum CallKind {
    /// It reads only, and may be repeated.
    Read,
    /// It changes something, and must not be repeated.
    Change,
}

/// Why a call has no answer.
#[derive(Debug, thiserror::Error)]
pub enum CallError {
    /// The program could not be started.
    #[error("cannot start {program}: {source}")]
    NotStarted {
        /// The program.
        program: PathBuf,
        /// The cause.
        source: std::io::Error,
    },
    /// The program ended before it answered.
    #[error("{program} ended before it answered{}", after(.last_lines))]
    Ended {
        /// The program.
        program: PathBuf,
        /// Whether the call may have changed something.
        kind: CallKind,
        /// The last lines of its standard error.
        last_lines: String,
    },
    /// The program printed something that is not an answer.
    #[error("cannot parse the answer of {program}: {line}")]
    NoAnswer {
        /// The program.
        program: PathBuf,
        /// What it printed.
        line: String,
    },
    /// The program's own error.
    #[error("{}", .0.message)]
    Refused(Fault),
}

/// A JSON-RPC error of `takeback serve`.
#[derive(Debug, Clone, PartialEq, Eq, Deserialize)]
pub struct Fault {
    /// The JSON-RPC error code.
    pub code: i64,
    /// What is wrong.
    pub message: String,
    /// The kind of error, and what to do.
    #[serde(default)]
    pub data: FaultData,
}

/// The data of a fault.
#[derive(Debug, Clone, Default, PartialEq, Eq, Deserialize)]
#[serde(default)]
pub struct FaultData {
    /// The kind of error: `noStore`, `unknownPoint`, ….
    pub kind: String,
    /// What to do next.
    pub hint: Option<String>,
}

fn after(last_lines: &str) -> String {
    if last_lines.is_empty() { String::new() } else { format!(": {last_lines}") }
}

struct ChildProcess {
    child: Child,
    input: ChildStdin,
    output: Lines<BufReader<ChildStdout>>,
    last_lines: LastLines,
    /// Ends with the child's standard error.
    listening: JoinHandle<()>,
    calls: u64,
    /// A call was abandoned while it was being written: the child would read the next one as its end.
    torn: bool,
}

/// The last lines that the child wrote to standard error.
type LastLines = Arc<StdMutex<VecDeque<String>>>;

const LINES_KEPT: usize = 5;

/// A line of the child. Without an id it is a notification.
#[derive(Deserialize)]
struct WireAnswer {
    id: Option<u64>,
    result: Option<Box<RawValue>>,
    error: Option<Fault>,
}

impl Backend {
    /// A backend that starts the program at its first call.
    #[must_use]
    pub fn new(options: BackendOptions, log: Log) -> Self {
        Self { options, log, running: Mutex::new(None) }
    }

    /// # Errors
    ///
    /// [`CallError::Refused`] is the program's answer; with any other there is none.
    pub async fn call<T: DeserializeOwned>(
        &self,
        kind: CallKind,
        method: &str,
        params: Value,
    ) -> Result<T, CallError> {
        let mut child = self.running.lock().await;
        let is_new = self.revive(&mut child)?;
        let running = child.as_mut().expect("it was just started");
        (self.log)(&format!("{method} {params}"));
        let answer = match self.exchange(running, kind, method, &params).await {
            Err(CallError::Ended { .. }) if kind == CallKind::Read && !is_new => {
                *child = Some(self.start()?);
                let running = child.as_mut().expect("it was just started");
                self.exchange(running, kind, method, &params).await
            }
            answer => answer,
        };
        if !matches!(answer, Ok(_) | Err(CallError::Refused(_))) {
            *child = None;
        }
        answer
    }

    /// Closes the child's input, so that it ends. A child that is busy finishes its call first.
    pub async fn close(&self) {
        // A call that holds the lock is waiting for an answer that no client needs any more.
        let Ok(mut child) = self.running.try_lock() else { return };
        let Some(ChildProcess { mut child, input, output, .. }) = child.take() else { return };
        drop((input, output));
        if tokio::time::timeout(PATIENCE, child.wait()).await.is_err()
            && let Err(error) = child.kill().await
        {
            (self.log)(&format!("cannot end the program: {error}"));
        }
    }

    /// Makes sure that a child is running; returns whether it was just started.
    fn revive(&self, child: &mut Option<ChildProcess>) -> Result<bool, CallError> {
        let is_alive =
            child.as_mut().is_some_and(|it| !it.torn && matches!(it.child.try_wait(), Ok(None)));
        if !is_alive {
            *child = Some(self.start()?);
        }
        Ok(!is_alive)
    }

    fn start(&self) -> Result<ChildProcess, CallError> {
        let BackendOptions { program, arguments } = &self.options;
        let mut child = Command::new(program)
            .args(arguments)
            .args(["serve", "--stdio"])
            .stdin(Stdio::piped())
            .stdout(Stdio::piped())
            .stderr(Stdio::piped())
            .spawn()
            .map_err(|source| CallError::NotStarted { program: program.clone(), source })?;
        let input = child.stdin.take().expect("it is a pipe");
        let output = BufReader::new(child.stdout.take().expect("it is a pipe")).lines();
        let last_lines = LastLines::default();
        let errors = child.stderr.take().expect("it is a pipe");
        let listening =
            tokio::spawn(listen(errors, Arc::clone(&last_lines), Arc::clone(&self.log)));
        Ok(ChildProcess { child, input, output, last_lines, listening, calls: 0, torn: false })
    }

    async fn exchange<T: DeserializeOwned>(
        &self,
        running: &mut ChildProcess,
        kind: CallKind,
        method: &str,
        params: &Value,
    ) -> Result<T, CallError> {
        running.calls += 1;
        let id = running.calls;
        let call = json!({"jsonrpc": "2.0", "id": id, "method": method, "params": params});
        running.torn = true;
        let written = running.input.write_all(format!("{call}\n").as_bytes()).await;
        running.torn = false;
        if written.is_err() {
            return Err(self.ended(running, kind).await);
        }
        loop {
            let Ok(Some(line)) = running.output.next_line().await else {
                return Err(self.ended(running, kind).await);
            };
            let not_read = || {
                let line = line.chars().take(200).collect();
                CallError::NoAnswer { program: self.options.program.clone(), line }
            };
            let Ok(answer) = serde_json::from_str::<WireAnswer>(&line) else {
                return Err(not_read());
            };
            match answer {
                WireAnswer { id: Some(of), error: Some(fault), .. } if of == id => {
                    return Err(CallError::Refused(fault));
                }
                WireAnswer { id: Some(of), result, .. } if of == id => {
                    let result = result.as_deref().map_or("null", RawValue::get);
                    return serde_json::from_str(result).map_err(|_other| not_read());
                }
                // An answer to an abandoned call, or a notification.
                _ => {}
            }
        }
    }

    async fn ended(&self, running: &mut ChildProcess, kind: CallKind) -> CallError {
        // Its last lines may still be in the pipe. Another process may hold the pipe open, so do not
        // wait for long.
        if tokio::time::timeout(PATIENCE, &mut running.listening).await.is_err() {
            (self.log)("the program's standard error is still open");
        }
        let last_lines =
            running.last_lines.lock().map(|last_lines| Vec::from(last_lines.clone()).join(" "));
        let last_lines = last_lines.unwrap_or_default();
        CallError::Ended { program: self.options.program.clone(), kind, last_lines }
    }
}

/// How long a child that has nothing to do may take to end.
const PATIENCE: Duration = Duration::from_millis(500);

async fn listen(errors: ChildStderr, last_lines: LastLines, log: Log) {
    let mut lines = BufReader::new(errors).lines();
    while let Ok(Some(line)) = lines.next_line().await {
        log(&line);
        if let Ok(mut last_lines) = last_lines.lock() {
            if last_lines.len() == LINES_KEPT {
                last_lines.pop_front();
            }
            last_lines.push_back(line);
        }
    }
}
