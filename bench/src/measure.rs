//! What something costs: time, processor time, peak memory.
//!
//! Commands are started by a small process of their own (this program with [`RUNNER`]), since the
//! system counts a parent's memory at the fork as its child's.

use std::collections::BTreeMap;
use std::io::{Read as _, Write as _};
use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};
use std::time::{Duration, Instant};

use nix::sys::resource::{Usage, UsageWho, getrusage};
use nix::sys::time::TimeValLike as _;
use serde::de::DeserializeOwned;
use serde::{Deserialize, Serialize};

use crate::Result;

/// The word with which this program measures what standard input tells it to run.
pub const RUNNER: &str = "--measure";

#[derive(Debug, Clone, Copy, Serialize, Deserialize)]
pub struct Cost {
    pub wall_ms: f64,
    /// User and system, of all threads and processes.
    pub cpu_ms: f64,
    /// Of the largest process; none for what ran inside this one.
    pub peak_mb: Option<f64>,
}

/// Commands that run one after the other and count as one.
#[derive(Debug, Serialize, Deserialize)]
pub struct Commands {
    /// This program.
    pub runner: PathBuf,
    pub program: PathBuf,
    pub runs: Vec<Vec<String>>,
    pub folder: PathBuf,
    /// All of the environment but the search path.
    pub environment: BTreeMap<String, String>,
}

impl Commands {
    pub fn measure(&self) -> Result<Cost> {
        self.measure_and_ask().map(|(cost, _)| cost)
    }

    /// The cost, and what the last of them printed.
    pub fn measure_and_ask(&self) -> Result<(Cost, String)> {
        ask_runner(&self.runner, RUNNER, self)
    }

    fn command(&self, arguments: &[String]) -> Command {
        let mut command = Command::new(&self.program);
        command.args(arguments).current_dir(&self.folder).env_clear().envs(&self.environment);
        if let Some(path) = std::env::var_os("PATH") {
            command.env("PATH", path);
        }
        command.stdin(Stdio::null());
        command
    }

    /// Runs them unmeasured; what the last one printed.
    pub fn answer(&self) -> Result<String> {
        let mut answer = Vec::new();
        for run in &self.runs {
            let output = self.command(run).stderr(Stdio::inherit()).output()?;
            if !output.status.success() {
                return Err(format!("{run:?} failed").into());
            }
            answer = output.stdout;
        }
        Ok(String::from_utf8(answer)?)
    }
}

/// Has the runner, started with `word`, do `work`; its answer.
pub fn ask_runner<W: Serialize, A: DeserializeOwned>(
    runner: &Path,
    word: &str,
    work: &W,
) -> Result<A> {
    let mut runner =
        Command::new(runner).arg(word).stdin(Stdio::piped()).stdout(Stdio::piped()).spawn()?;
    let mut input = runner.stdin.take().ok_or("the runner has no input")?;
    input.write_all(&serde_json::to_vec(work)?)?;
    drop(input);
    let output = runner.wait_with_output()?;
    if !output.status.success() {
        return Err(format!("what was measured failed: {}", serde_json::to_string(work)?).into());
    }
    Ok(serde_json::from_slice(&output.stdout)?)
}

/// The runner's part: what it was given, what `work` answers, and what the processes cost that
/// `work` started.
pub fn run<W: DeserializeOwned, A: Serialize>(work: impl FnOnce(W) -> Result<A>) -> Result<()> {
    let mut text = String::new();
    std::io::stdin().read_to_string(&mut text)?;
    let given = serde_json::from_str(&text)?;
    let began = Instant::now();
    let answer = work(given)?;
    let wall = began.elapsed();
    let usage = getrusage(UsageWho::RUSAGE_CHILDREN)?;
    #[expect(clippy::cast_precision_loss, reason = "kilobytes of memory are far below 2^52")]
    let peak_mb = Some(usage.max_rss() as f64 / 1024.0);
    let cost = Cost { wall_ms: millis(wall), cpu_ms: cpu_ms(&usage), peak_mb };
    serde_json::to_writer(std::io::stdout(), &(cost, answer))?;
    Ok(())
}

pub fn run_commands() -> Result<()> {
    run(|commands: Commands| {
        let mut answer = Vec::new();
        for run in &commands.runs {
            let output = commands.command(run).stderr(Stdio::inherit()).output()?;
            if !output.status.success() {
                return Err(format!("{run:?} ended with {}", output.status).into());
            }
            answer = output.stdout;
        }
        Ok(String::from_utf8(answer)?)
    })
}

/// Measures what happens inside this process.
pub fn inside<T>(work: impl FnOnce() -> Result<T>) -> Result<(T, Cost)> {
    let before = getrusage(UsageWho::RUSAGE_SELF)?;
    let began = Instant::now();
    let result = work()?;
    let wall = began.elapsed();
    let after = getrusage(UsageWho::RUSAGE_SELF)?;
    let cost =
        Cost { wall_ms: millis(wall), cpu_ms: cpu_ms(&after) - cpu_ms(&before), peak_mb: None };
    Ok((result, cost))
}

fn cpu_ms(usage: &Usage) -> f64 {
    #[expect(clippy::cast_precision_loss, reason = "microseconds of a run are far below 2^52")]
    let micros = (usage.user_time() + usage.system_time()).num_microseconds() as f64;
    micros / 1000.0
}

pub fn millis(time: Duration) -> f64 {
    time.as_secs_f64() * 1000.0
}

pub fn median(values: impl IntoIterator<Item = f64>) -> f64 {
    let mut values: Vec<f64> = values.into_iter().collect();
    values.sort_by(f64::total_cmp);
    match values.len() {
        0 => f64::NAN,
        n if n % 2 == 1 => values[n / 2],
        n => f64::midpoint(values[n / 2 - 1], values[n / 2]),
    }
}

/// What a program of the system prints, on one line.
pub fn answer_of(program: &str, arguments: &[&str]) -> Result<String> {
    let output = Command::new(program).args(arguments).output()?;
    Ok(String::from_utf8(output.stdout)?.trim().to_owned())
}

/// Writes out what the system has only in memory, so that it is not paid for by what comes next.
pub fn settle_disk() -> Result<()> {
    answer_of("sync", &[]).map(drop)
}

/// Bytes that a folder takes on the disk, its blocks counted whole.
pub fn disk_usage(folder: &Path) -> Result<u64> {
    use std::os::unix::fs::MetadataExt as _;
    let mut bytes = 0;
    for entry in std::fs::read_dir(folder)? {
        let entry = entry?;
        let metadata = entry.metadata()?;
        bytes += metadata.blocks() * 512;
        if metadata.is_dir() {
            bytes += disk_usage(&entry.path())?;
        }
    }
    Ok(bytes)
}
