//! `takeback serve --stdio` as a child process: one call after the other, each answered by the line
//! with its id.
//!
//! A child that has ended is started again when the next call comes; a call that it was ended by is
//! made once more, unless it changes something and may have been done already.

use std::collections::VecDeque;
use std::ffi::OsString;
use std::path::PathBuf;
use std::process::Stdio;
use std::sync::{Arc, Mutex as StdMutex};
use std::time::Duration;

use serde::Deserialize;
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
    /// What stands before `serve --stdio`: where to work, where the data is.
    pub arguments: Vec<OsString>,
}

/// Told what is called, and what the program says on standard error.
pub type Log = Arc<dyn Fn(&str) + Send + Sync>;

/// The child, started when first asked for something.
pub struct Backend {
    options: BackendOptions,
    log: Log,
    running: Mutex<Option<Running>>,
}

/// Whether a call may be made again when nobody knows what became of it.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Kind {
    Looks,
    Changes,
}

#[derive(Debug, thiserror::Error)]
pub enum CallError {
    #[error("cannot start {program}: {source}")]
    NotStarted { program: PathBuf, source: std::io::Error },
    #[error("{program} ended before it answered{}", after(.said))]
    Ended { program: PathBuf, kind: Kind, said: String },
    #[error("{program} answered what is not an answer: {line}")]
    NoAnswer { program: PathBuf, line: String },
    /// The program's own word.
    #[error("{}", .0.message)]
    Refused(Fault),
}

/// An error as `takeback serve` tells it.
#[derive(Debug, Clone, PartialEq, Deserialize)]
pub struct Fault {
    pub code: i64,
    pub message: String,
    #[serde(default)]
    pub data: Value,
}

impl Fault {
    /// What the error is about, in one word: `noStore`, `unknownPoint`, ….
    #[must_use]
    pub fn kind(&self) -> &str {
        self.data["kind"].as_str().unwrap_or_default()
    }

    #[must_use]
    pub fn hint(&self) -> Option<&str> {
        self.data["hint"].as_str()
    }
}

fn after(said: &str) -> String {
    if said.is_empty() { String::new() } else { format!(": {said}") }
}

struct Running {
    child: Child,
    input: ChildStdin,
    output: Lines<BufReader<ChildStdout>>,
    said: Said,
    /// Ends with the child's standard error.
    listening: JoinHandle<()>,
    calls: u64,
    /// A call was given up while it was being written: what follows would be read as its end.
    torn: bool,
}

/// The last lines that the child wrote to standard error.
type Said = Arc<StdMutex<VecDeque<String>>>;

const LINES_KEPT: usize = 5;

/// One answer. A line without an id is not to a call, and not to be waited for.
#[derive(Deserialize)]
struct WireAnswer {
    id: Option<u64>,
    result: Option<Value>,
    error: Option<Fault>,
}

impl Backend {
    #[must_use]
    pub fn new(options: BackendOptions, log: Log) -> Self {
        Self { options, log, running: Mutex::new(None) }
    }

    /// # Errors
    ///
    /// [`CallError::Refused`] is the program's answer; the others say that there is none.
    pub async fn call(&self, kind: Kind, method: &str, params: Value) -> Result<Value, CallError> {
        let mut held = self.running.lock().await;
        let is_new = self.revive(&mut held)?;
        let running = held.as_mut().expect("it was just started");
        (self.log)(&format!("{method} {params}"));
        let answer = match self.exchange(running, kind, method, &params).await {
            Err(CallError::Ended { .. }) if kind == Kind::Looks && !is_new => {
                *held = Some(self.start()?);
                let running = held.as_mut().expect("it was just started");
                self.exchange(running, kind, method, &params).await
            }
            answer => answer,
        };
        if !matches!(answer, Ok(_) | Err(CallError::Refused(_))) {
            *held = None;
        }
        answer
    }

    /// Lets the child end: it has nothing more to read. One that is at work may finish that, and ends by
    /// itself.
    pub async fn close(&self) {
        // Whoever holds it waits for an answer, and nobody waits for them any more.
        let Ok(mut held) = self.running.try_lock() else { return };
        let Some(Running { mut child, input, output, .. }) = held.take() else { return };
        drop((input, output));
        if tokio::time::timeout(PATIENCE, child.wait()).await.is_err()
            && let Err(error) = child.kill().await
        {
            (self.log)(&format!("cannot end the program: {error}"));
        }
    }

    /// A child that can be asked; whether it was just started.
    fn revive(&self, held: &mut Option<Running>) -> Result<bool, CallError> {
        let is_alive =
            held.as_mut().is_some_and(|it| !it.torn && matches!(it.child.try_wait(), Ok(None)));
        if !is_alive {
            *held = Some(self.start()?);
        }
        Ok(!is_alive)
    }

    fn start(&self) -> Result<Running, CallError> {
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
        let said = Said::default();
        let errors = child.stderr.take().expect("it is a pipe");
        let listening = tokio::spawn(listen(errors, Arc::clone(&said), Arc::clone(&self.log)));
        Ok(Running { child, input, output, said, listening, calls: 0, torn: false })
    }

    async fn exchange(
        &self,
        running: &mut Running,
        kind: Kind,
        method: &str,
        params: &Value,
    ) -> Result<Value, CallError> {
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
            let Ok(answer) = serde_json::from_str::<WireAnswer>(&line) else {
                let line = line.chars().take(200).collect();
                return Err(CallError::NoAnswer { program: self.options.program.clone(), line });
            };
            match answer {
                WireAnswer { id: Some(of), error: Some(fault), .. } if of == id => {
                    return Err(CallError::Refused(fault));
                }
                WireAnswer { id: Some(of), result, .. } if of == id => {
                    return Ok(result.unwrap_or_default());
                }
                // To a call that was given up, or a notification.
                _ => {}
            }
        }
    }

    async fn ended(&self, running: &mut Running, kind: Kind) -> CallError {
        // Its last words may still be on their way. Who holds the pipe beyond its end is not waited for.
        if tokio::time::timeout(PATIENCE, &mut running.listening).await.is_err() {
            (self.log)("standard error stays open");
        }
        let said = running.said.lock().map(|said| Vec::from(said.clone()).join(" "));
        let said = said.unwrap_or_default();
        CallError::Ended { program: self.options.program.clone(), kind, said }
    }
}

/// How long a child that has nothing to do may take to end.
const PATIENCE: Duration = Duration::from_millis(500);

async fn listen(errors: ChildStderr, said: Said, log: Log) {
    let mut lines = BufReader::new(errors).lines();
    while let Ok(Some(line)) = lines.next_line().await {
        log(&line);
        if let Ok(mut said) = said.lock() {
            if said.len() == LINES_KEPT {
                said.pop_front();
            }
            said.push_back(line);
        }
    }
}
