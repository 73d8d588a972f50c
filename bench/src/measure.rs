//! What a piece of work costs: wall time, processor time, peak memory.
//!
//! [`Commands`] are started by a small process of their own (this program with [`RUNNER`]), because
//! the kernel counts a parent's memory at the fork as its child's.

use std::collections::BTreeMap;
use std::io::{Read as _, Write as _};
use std::path::{Path, PathBuf};
use std::process::{Child, Command, Output, Stdio};
use std::time::{Duration, Instant};

use nix::sys::resource::{Usage, UsageWho, getrusage};
use nix::sys::time::TimeValLike as _;
use serde::de::DeserializeOwned;
use serde::{Deserialize, Serialize};

use crate::Result;

/// The first argument that makes this program run and measure the [`Commands`] on standard input.
pub(crate) const RUNNER: &str = "--measure";

/// This program, even after a build has replaced its file.
const THIS_PROGRAM: &str = "/proc/self/exe";

#[derive(Debug, Clone, Copy, Serialize, Deserialize)]
pub(crate) struct Cost {
    pub(crate) wall_ms: f64,
    /// User and system time of all threads and processes.
    pub(crate) cpu_ms: f64,
    /// Of the largest process; `None` for work inside this process.
    pub(crate) peak_mb: Option<f64>,
}

/// Runs of one program, one after the other, measured as one piece of work.
#[derive(Debug, Clone, Serialize, Deserialize)]
pub(crate) struct Commands {
    program: PathBuf,
    runs: Vec<Vec<String>>,
    folder: PathBuf,
    /// The whole environment except `PATH`.
    environment: BTreeMap<String, String>,
}

impl Commands {
    pub(crate) fn new<'a>(
        program: &Path,
        folder: &Path,
        environment: impl IntoIterator<Item = (&'a str, PathBuf)>,
    ) -> Self {
        let text = |(name, value): (&str, PathBuf)| {
            (name.to_owned(), value.to_string_lossy().into_owned())
        };
        Self {
            program: program.to_owned(),
            runs: Vec::new(),
            folder: folder.to_owned(),
            environment: environment.into_iter().map(text).collect(),
        }
    }

    pub(crate) fn with(mut self, name: &str, value: &str) -> Self {
        self.environment.insert(name.to_owned(), value.to_owned());
        self
    }

    /// Adds a run with these arguments.
    pub(crate) fn run(mut self, words: &[&str]) -> Self {
        self.runs.push(words.iter().map(|&word| word.to_owned()).collect());
        self
    }

    pub(crate) fn measure(&self) -> Result<Cost> {
        self.measure_output().map(|(cost, _)| cost)
    }

    /// The cost, and what the last run printed.
    pub(crate) fn measure_output(&self) -> Result<(Cost, String)> {
        ask_runner(RUNNER, self)
    }

    /// Wall and processor time of a single run, started by this process with `input` on its standard
    /// input.
    pub(crate) fn time(&self, input: &str) -> Result<Cost> {
        let mut command = self.command(self.single_run()?);
        command.stdin(Stdio::piped()).stdout(Stdio::null());
        let before = getrusage(UsageWho::RUSAGE_CHILDREN)?;
        let start = Instant::now();
        let mut process = command.spawn()?;
        let mut stdin = process.stdin.take().ok_or("the process has no input")?;
        // A program that does not read its input may have ended.
        drop(stdin.write_all(input.as_bytes()));
        drop(stdin);
        let status = process.wait()?;
        let wall = start.elapsed();
        let after = getrusage(UsageWho::RUSAGE_CHILDREN)?;
        if !status.success() {
            return Err(format!("{command:?}: {status}").into());
        }
        Ok(Cost { wall_ms: millis(wall), cpu_ms: cpu_ms(&after) - cpu_ms(&before), peak_mb: None })
    }

    /// Starts a single run, its standard input and output open and its errors discarded.
    pub(crate) fn spawn(&self) -> Result<Child> {
        let mut command = self.command(self.single_run()?);
        Ok(command.stdin(Stdio::piped()).stdout(Stdio::piped()).stderr(Stdio::null()).spawn()?)
    }

    /// Executes all runs without measuring them; what the last one printed.
    pub(crate) fn output(&self) -> Result<Vec<u8>> {
        let mut last = Vec::new();
        for run in &self.runs {
            last = output_of(self.command(run).stdin(Stdio::null()))?.stdout;
        }
        Ok(last)
    }

    pub(crate) fn text(&self) -> Result<String> {
        Ok(String::from_utf8(self.output()?)?)
    }

    fn single_run(&self) -> Result<&[String]> {
        match &*self.runs {
            [run] => Ok(run),
            _ => Err("expected a single run".into()),
        }
    }

    fn command(&self, arguments: &[String]) -> Command {
        let mut command = Command::new(&self.program);
        command.args(arguments).current_dir(&self.folder).env_clear().envs(&self.environment);
        if let Some(path) = std::env::var_os("PATH") {
            command.env("PATH", path);
        }
        command
    }
}

/// Sends `request` to the runner that `word` selects; its answer.
pub(crate) fn ask_runner<Q: Serialize, A: DeserializeOwned>(word: &str, request: &Q) -> Result<A> {
    let mut runner = Command::new(THIS_PROGRAM)
        .arg(word)
        .stdin(Stdio::piped())
        .stdout(Stdio::piped())
        .spawn()?;
    let mut input = runner.stdin.take().ok_or("the runner has no input")?;
    input.write_all(&serde_json::to_vec(request)?)?;
    drop(input);
    let output = runner.wait_with_output()?;
    if !output.status.success() {
        return Err(format!("cannot measure {}", serde_json::to_string(request)?).into());
    }
    Ok(serde_json::from_slice(&output.stdout)?)
}

/// The runner's side: reads a request, lets `work` start processes for it, and writes their cost and
/// the answer.
pub(crate) fn run_request<Q: DeserializeOwned, A: Serialize>(
    work: impl FnOnce(Q) -> Result<A>,
) -> Result<()> {
    let mut text = String::new();
    std::io::stdin().read_to_string(&mut text)?;
    let request = serde_json::from_str(&text)?;
    let start = Instant::now();
    let answer = work(request)?;
    let wall = start.elapsed();
    let usage = getrusage(UsageWho::RUSAGE_CHILDREN)?;
    #[expect(clippy::cast_precision_loss, reason = "kilobytes of memory are far below 2^52")]
    let peak_mb = Some(usage.max_rss() as f64 / 1024.0);
    let cost = Cost { wall_ms: millis(wall), cpu_ms: cpu_ms(&usage), peak_mb };
    serde_json::to_writer(std::io::stdout(), &(cost, answer))?;
    Ok(())
}

pub(crate) fn run_commands() -> Result<()> {
    run_request(|commands: Commands| commands.text())
}

/// Measures work inside this process.
pub(crate) fn inside<T>(work: impl FnOnce() -> Result<T>) -> Result<(T, Cost)> {
    let before = getrusage(UsageWho::RUSAGE_SELF)?;
    let start = Instant::now();
    let result = work()?;
    let wall_ms = millis(start.elapsed());
    let after = getrusage(UsageWho::RUSAGE_SELF)?;
    Ok((result, Cost { wall_ms, cpu_ms: cpu_ms(&after) - cpu_ms(&before), peak_mb: None }))
}

/// What `work` answered, and its wall time in milliseconds.
pub(crate) fn timed<T>(work: impl FnOnce() -> Result<T>) -> Result<(T, f64)> {
    let start = Instant::now();
    let result = work()?;
    Ok((result, millis(start.elapsed())))
}

fn cpu_ms(usage: &Usage) -> f64 {
    #[expect(clippy::cast_precision_loss, reason = "microseconds of a run are far below 2^52")]
    let micros = (usage.user_time() + usage.system_time()).num_microseconds() as f64;
    micros / 1000.0
}

pub(crate) fn millis(time: Duration) -> f64 {
    time.as_secs_f64() * 1000.0
}

/// Runs a command to its end. Its last line of output is the error if it fails.
pub(crate) fn output_of(command: &mut Command) -> Result<Output> {
    let program = Path::new(command.get_program()).display().to_string();
    let output = command.output().map_err(|error| format!("{program}: {error}"))?;
    if output.status.success() {
        return Ok(output);
    }
    let printed = [output.stderr.as_slice(), &output.stdout].concat();
    let printed = String::from_utf8_lossy(&printed);
    let last = printed.lines().rfind(|line| !line.trim().is_empty()).unwrap_or("no output");
    Err(format!("{} ({})", last.trim(), output.status).into())
}

/// What a program of the system prints, trimmed.
pub(crate) fn text_of(program: &str, arguments: &[&str]) -> Result<String> {
    let output = output_of(Command::new(program).args(arguments))?;
    Ok(String::from_utf8(output.stdout)?.trim().to_owned())
}

/// Flushes dirty pages, so that the next measurement does not pay for them.
pub(crate) fn flush_disk() -> Result<()> {
    text_of("sync", &[]).map(drop)
}

/// Blocks on disk of everything in a folder, in bytes.
pub(crate) fn disk_usage(folder: &Path) -> Result<u64> {
    let mut bytes = 0;
    for entry in std::fs::read_dir(folder)? {
        bytes += blocks_of(&entry?.path())?;
    }
    Ok(bytes)
}

/// The same of one file, or of one folder with everything in it.
pub(crate) fn blocks_of(path: &Path) -> Result<u64> {
    use std::os::unix::fs::MetadataExt as _;
    let metadata = std::fs::symlink_metadata(path)?;
    let below = if metadata.is_dir() { disk_usage(path)? } else { 0 };
    Ok(metadata.blocks() * 512 + below)
}
