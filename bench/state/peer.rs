//! langgraph-checkpoint-sqlite, in a Python of its own that [`peer.py`](peer.py) keeps listening.
//!
//! Installed once, in a virtual environment in the scratch folder. Where that cannot be done there is
//! no peer, and the reason is the answer.

use std::io::{BufRead as _, BufReader, Write as _};
use std::path::{Path, PathBuf};
use std::process::{Child, ChildStdin, ChildStdout, Command, Stdio};

use serde::de::DeserializeOwned;
use serde::{Deserialize, Serialize};
use serde_json::{Value, json};
use takeback_bench::Result;

/// What is measured. Others may differ.
const PACKAGES: [&str; 2] = ["langgraph-checkpoint-sqlite==3.1.2", "langgraph-checkpoint==4.3.1"];

/// `PRAGMA synchronous`: what is answered is on the disk.
const FULL: u8 = 2;

pub(crate) struct Peer {
    process: Child,
    input: Option<ChildStdin>,
    output: BufReader<ChildStdout>,
    pub(crate) facts: Facts,
}

#[derive(Debug, Clone, Serialize, Deserialize)]
pub(crate) struct Facts {
    pub(crate) package: String,
    pub(crate) base: String,
    pub(crate) python: String,
    pub(crate) sqlite: String,
    pub(crate) journal: String,
    /// As it is when nobody sets it.
    pub(crate) synchronous: u8,
}

/// How the peer waits for the disk.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Waiting {
    AsItComes,
    Full,
}

#[derive(Debug, Deserialize)]
pub(crate) struct Appended {
    pub(crate) put_ms: Vec<f64>,
}

#[derive(Debug, Deserialize)]
pub(crate) struct Latest {
    pub(crate) fresh_ms: Vec<f64>,
    pub(crate) warm_ms: Vec<f64>,
    pub(crate) messages: usize,
    /// The text of the last one.
    pub(crate) last: String,
}

impl Facts {
    pub(crate) fn is_full(&self) -> bool {
        self.synchronous >= FULL
    }
}

impl Peer {
    pub(crate) fn start(scratch: &Path) -> Result<Self> {
        let python = install(scratch)?;
        let script = Path::new(env!("CARGO_MANIFEST_DIR")).join("state/peer.py");
        let mut process = Command::new(python)
            .arg(script)
            .stdin(Stdio::piped())
            .stdout(Stdio::piped())
            .spawn()?;
        let input = process.stdin.take();
        let output = BufReader::new(process.stdout.take().ok_or("the peer has no output")?);
        let facts = Facts {
            package: String::new(),
            base: String::new(),
            python: String::new(),
            sqlite: String::new(),
            journal: String::new(),
            synchronous: 0,
        };
        let mut peer = Self { process, input, output, facts };
        let folder = scratch.join("facts");
        crate::make_empty(&folder)?;
        peer.facts = peer.ask(&json!({"do": "facts", "db": folder.join("peer.db")}))?;
        Ok(peer)
    }

    /// Saves a conversation again after each of its messages, which lie in a file.
    pub(crate) fn append(
        &mut self,
        db: &Path,
        messages: &Path,
        waiting: Waiting,
    ) -> Result<Appended> {
        let synchronous = waiting.pragma();
        self.ask(
            &json!({"do": "append", "db": db, "messages": messages, "synchronous": synchronous}),
        )
    }

    /// Saves a value, which lies in a file, and a counter again and again.
    pub(crate) fn static_value(&mut self, db: &Path, value: &Path, steps: usize) -> Result<()> {
        let asked = json!({"do": "static", "db": db, "value": value, "steps": steps});
        self.ask::<Appended>(&asked).map(drop)
    }

    pub(crate) fn latest(&mut self, db: &Path, times: usize) -> Result<Latest> {
        self.ask(&json!({"do": "latest", "db": db, "times": times}))
    }

    fn ask<T: DeserializeOwned>(&mut self, command: &Value) -> Result<T> {
        let input = self.input.as_mut().ok_or("the peer has no input")?;
        writeln!(input, "{command}")?;
        let mut line = String::new();
        if self.output.read_line(&mut line)? == 0 {
            return Err(format!("the peer ended at {command}").into());
        }
        Ok(serde_json::from_str(&line)?)
    }
}

impl Drop for Peer {
    fn drop(&mut self) {
        // Without input it comes to its end.
        self.input = None;
        if let Err(error) = self.process.wait() {
            eprintln!("the peer did not end: {error}");
        }
    }
}

impl Waiting {
    fn pragma(self) -> Option<&'static str> {
        match self {
            Self::AsItComes => None,
            Self::Full => Some("FULL"),
        }
    }
}

/// The Python that has the packages.
fn install(scratch: &Path) -> Result<PathBuf> {
    let folder = scratch.join("venv");
    let python = folder.join("bin/python");
    let mark = folder.join("installed");
    let wanted = PACKAGES.join("\n");
    if std::fs::read_to_string(&mark).ok().as_deref() == Some(&*wanted) {
        return Ok(python);
    }
    eprintln!("installing {} …", PACKAGES.join(", "));
    done(Command::new("python3").args(["-m", "venv", "--clear"]).arg(&folder))?;
    done(
        Command::new(&python)
            .args(["-m", "pip", "install", "-q", "--disable-pip-version-check"])
            .args(["--retries", "1", "--timeout", "20"])
            .args(PACKAGES),
    )?;
    std::fs::write(&mark, wanted)?;
    Ok(python)
}

fn done(command: &mut Command) -> Result<()> {
    let name = command.get_program().to_string_lossy().into_owned();
    let name = name.rsplit('/').next().unwrap_or(&name).to_owned();
    let output = command.output().map_err(|error| format!("{name}: {error}"))?;
    if output.status.success() {
        return Ok(());
    }
    let said = [output.stdout, output.stderr].concat();
    let said = String::from_utf8_lossy(&said).into_owned();
    let last = said.lines().rfind(|line| !line.trim().is_empty()).unwrap_or("nothing was said");
    Err(format!("{name}: {} ({})", last.trim(), output.status).into())
}
