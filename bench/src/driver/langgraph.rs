//! langgraph-checkpoint-sqlite, in a Python process that [`langgraph_saver.py`](langgraph_saver.py) keeps running.
//!
//! Installed once, in a virtual environment in the scratch folder.

use std::io::{BufRead as _, BufReader, Write as _};
use std::path::{Path, PathBuf};
use std::process::{Child, ChildStdin, ChildStdout, Command, Stdio};

use serde::de::DeserializeOwned;
use serde::{Deserialize, Serialize};
use serde_json::{Value, json};

use crate::Result;
use crate::measure::output_of;
use crate::scratch::make_empty;

/// The versions that are measured. Others may differ.
const PACKAGES: [&str; 2] = ["langgraph-checkpoint-sqlite==3.1.2", "langgraph-checkpoint==4.3.1"];

/// `PRAGMA synchronous`: an answer is durable.
const FULL: u8 = 2;

pub(crate) struct Langgraph {
    process: Child,
    input: Option<ChildStdin>,
    output: BufReader<ChildStdout>,
}

#[derive(Debug, Clone, Serialize, Deserialize)]
pub(crate) struct Versions {
    pub(crate) package: String,
    pub(crate) base: String,
    pub(crate) python: String,
    pub(crate) sqlite: String,
    pub(crate) journal: String,
    /// By default.
    pub(crate) synchronous: u8,
}

/// How the peer waits for the disk.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Sync {
    Default,
    Full,
}

/// Milliseconds of each put.
#[derive(Debug, Deserialize)]
pub(crate) struct PutTimes {
    pub(crate) put_ms: Vec<f64>,
}

#[derive(Debug, Deserialize)]
pub(crate) struct ReadTimes {
    pub(crate) fresh_ms: Vec<f64>,
    pub(crate) warm_ms: Vec<f64>,
    pub(crate) messages: usize,
    /// The text of the last message.
    pub(crate) last: String,
}

impl Versions {
    pub(crate) fn is_full(&self) -> bool {
        self.synchronous >= FULL
    }
}

impl Langgraph {
    pub(crate) fn start(scratch: &Path) -> Result<(Self, Versions)> {
        let python = install(scratch)?;
        let script = Path::new(env!("CARGO_MANIFEST_DIR")).join("src/driver/langgraph_saver.py");
        let mut process = Command::new(python)
            .arg(script)
            .stdin(Stdio::piped())
            .stdout(Stdio::piped())
            .spawn()?;
        let input = process.stdin.take();
        let output = BufReader::new(process.stdout.take().ok_or("the peer has no output")?);
        let mut peer = Self { process, input, output };
        let folder = scratch.join("versions");
        make_empty(&folder)?;
        let versions = peer.ask(&json!({"do": "versions", "db": folder.join("peer.db")}))?;
        Ok((peer, versions))
    }

    /// Saves a conversation again after each message of the file.
    pub(crate) fn append(&mut self, db: &Path, messages: &Path, sync: Sync) -> Result<PutTimes> {
        let synchronous = (sync == Sync::Full).then_some("FULL");
        self.ask(
            &json!({"do": "append", "db": db, "messages": messages, "synchronous": synchronous}),
        )
    }

    /// Saves the file's value and a counter again and again.
    pub(crate) fn static_value(&mut self, db: &Path, value: &Path, steps: usize) -> Result<()> {
        let request = json!({"do": "static", "db": db, "value": value, "steps": steps});
        self.ask::<PutTimes>(&request).map(drop)
    }

    pub(crate) fn latest(&mut self, db: &Path, times: usize) -> Result<ReadTimes> {
        self.ask(&json!({"do": "latest", "db": db, "times": times}))
    }

    fn ask<T: DeserializeOwned>(&mut self, request: &Value) -> Result<T> {
        let input = self.input.as_mut().ok_or("the peer has no input")?;
        writeln!(input, "{request}")?;
        let mut line = String::new();
        if self.output.read_line(&mut line)? == 0 {
            return Err(format!("the peer ended at {request}").into());
        }
        Ok(serde_json::from_str(&line)?)
    }
}

impl Drop for Langgraph {
    fn drop(&mut self) {
        // It ends when its input is closed.
        self.input = None;
        if let Err(error) = self.process.wait() {
            eprintln!("cannot wait for the peer: {error}");
        }
    }
}

/// The Python that has the packages.
fn install(scratch: &Path) -> Result<PathBuf> {
    let folder = scratch.join("venv");
    let python = folder.join("bin/python");
    let mark = folder.join("installed");
    let packages = PACKAGES.join("\n");
    if std::fs::read_to_string(&mark).ok().as_deref() == Some(&*packages) {
        return Ok(python);
    }
    eprintln!("installing {} …", PACKAGES.join(", "));
    output_of(Command::new("python3").args(["-m", "venv", "--clear"]).arg(&folder))?;
    output_of(
        Command::new(&python)
            .args(["-m", "pip", "install", "-q", "--disable-pip-version-check"])
            .args(["--retries", "1", "--timeout", "20"])
            .args(PACKAGES),
    )?;
    std::fs::write(&mark, packages)?;
    Ok(python)
}
