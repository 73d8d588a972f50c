//! The table for people and the raw numbers for later.

use std::fmt::Write as _;

use serde::Serialize;
use takeback_bench::Result;
use takeback_bench::machine::{self, load_average};
use takeback_bench::measure::{Cost, answer_of, median};

use crate::corpus::Corpus;
use crate::rounds::{Measured, Round};

#[derive(Serialize)]
pub(crate) struct Report<'a> {
    date: String,
    machine: Machine,
    corpus: &'a Corpus,
    rows: Vec<Row>,
    peak_mb: f64,
    measured: Measured,
}

#[derive(Serialize)]
struct Machine {
    #[serde(flatten)]
    machine: machine::Machine,
    git: String,
    takeback: &'static str,
    load_before: String,
    load_after: String,
}

/// One case: medians of its rounds.
#[derive(Serialize)]
struct Row {
    name: &'static str,
    git_ms: f64,
    command_ms: f64,
    library_ms: f64,
    git_cpu_ms: f64,
    command_cpu_ms: f64,
    /// How many times faster than git, round by round.
    command_ratio: f64,
    library_ratio: f64,
    goal: Option<Goal>,
}

#[derive(Serialize, Clone, Copy)]
struct Goal {
    ratio: f64,
    judged: Judged,
    met: bool,
}

#[derive(Serialize, Clone, Copy, PartialEq, Eq)]
#[serde(rename_all = "lowercase")]
enum Judged {
    /// Processes against processes.
    Command,
    Library,
}

const MOST_MEMORY_MB: f64 = 150.0;

impl<'a> Report<'a> {
    pub(crate) fn new(
        date: String,
        corpus: &'a Corpus,
        measured: Measured,
        load_before: String,
    ) -> Result<Self> {
        use Judged::{Command, Library};
        let rows = vec![
            Row::new("first snapshot", &measured.first, Some((4.0, Command))),
            Row::new("nothing changed", &measured.unchanged, Some((2.0, Command))),
            Row::new("10 files changed", &measured.changed, Some((2.0, Command))),
            Row::new("rewind of an agent's 10", &measured.rewind, Some((10.0, Library))),
            Row::new("rewind of anybody's 10 (`--exact`)", &measured.rewind_exact, None),
        ];
        let everything = [
            &measured.first,
            &measured.unchanged,
            &measured.changed,
            &measured.rewind,
            &measured.rewind_exact,
        ];
        let peaks = everything.into_iter().flatten().filter_map(|round| round.command.peak_mb);
        let peak_mb = peaks.fold(0.0, f64::max);
        let machine = Machine {
            machine: machine::Machine::this()?,
            git: answer_of("git", &["--version"])?,
            takeback: env!("CARGO_PKG_VERSION"),
            load_before,
            load_after: load_average()?,
        };
        Ok(Self { date, machine, corpus, rows, peak_mb, measured })
    }

    pub(crate) fn file_name(&self) -> String {
        format!("{}-core.json", self.date)
    }

    pub(crate) fn json(&self) -> Result<String> {
        Ok(serde_json::to_string_pretty(self)? + "\n")
    }

    pub(crate) fn table(&self) -> String {
        let mut out = String::new();
        self.write(&mut out).expect("text can be written to memory");
        out
    }

    fn write(&self, out: &mut String) -> std::fmt::Result {
        let Machine { machine, git, load_before, load_after, .. } = &self.machine;
        let machine::Machine { cores, kernel, .. } = machine;
        let Corpus { files, folders, bytes, .. } = self.corpus;
        let measured = &self.measured;
        writeln!(
            out,
            "{files} files in {folders} folders, {:.0} MB; {cores} cores, {kernel}, {git}; load {load_before} before, {load_after} after.\n",
            mega(*bytes),
        )?;
        writeln!(
            out,
            "| case | git ms | `takeback` ms | ratio | library ms | ratio | goal | met |"
        )?;
        writeln!(out, "|---|--:|--:|--:|--:|--:|---|---|")?;
        for row in &self.rows {
            let judged = row.goal.map(|goal| goal.judged);
            let ratio = |ratio: f64, which: Judged| {
                let text = format!("{ratio:.2}×");
                if judged == Some(which) { format!("**{text}**") } else { text }
            };
            let (goal, met) = match row.goal {
                Some(goal) => (format!("≥ {}×", goal.ratio), yes_no(goal.met)),
                None => ("–".to_owned(), "–"),
            };
            writeln!(
                out,
                "| {} | {:.0} | {:.0} | {} | {:.0} | {} | {goal} | {met} |",
                row.name,
                row.git_ms,
                row.command_ms,
                ratio(row.command_ratio, Judged::Command),
                row.library_ms,
                ratio(row.library_ratio, Judged::Library),
            )?;
        }
        let git_peak =
            measured.first.iter().chain(&measured.unchanged).filter_map(|r| r.git.peak_mb);
        writeln!(
            out,
            "| peak memory, MB | {:.0} | **{:.0}** | | | | < {MOST_MEMORY_MB} | {} |",
            git_peak.fold(0.0, f64::max),
            self.peak_mb,
            yes_no(self.peak_mb < MOST_MEMORY_MB),
        )?;
        self.write_notes(out)
    }

    fn write_notes(&self, out: &mut String) -> std::fmt::Result {
        let measured = &self.measured;
        writeln!(out, "\n| for information | git | `takeback` | ratio |\n|---|--:|--:|--:|")?;
        let mut note = |what: &str, git: f64, takeback: f64| {
            let ratio = git / takeback;
            writeln!(out, "| {what} | {git:.0} | {takeback:.0} | {ratio:.2}× |")
        };
        for row in &self.rows {
            let what = format!("processor time, {}, ms", row.name);
            note(&what, row.git_cpu_ms, row.command_cpu_ms)?;
        }
        let (git, takeback) = (&measured.git_size, &measured.takeback_size);
        note("on disk after the first snapshot, MB", mega(git.first), mega(takeback.first))?;
        let growth = |bytes: &[u64]| median(bytes.iter().map(|bytes| mega(*bytes) * 1000.0));
        let what = "growth by a snapshot of 10 changed files, KB";
        note(what, growth(&git.growth), growth(&takeback.growth))?;
        writeln!(
            out,
            "| recording an agent's edit of 13 files, before and after it, ms (library) | – | {:.1} | – |",
            median(measured.recording.iter().map(|cost| cost.wall_ms))
        )?;
        writeln!(
            out,
            "\nFloor: `lstat` of every known file on two threads takes {:.0} ms.",
            median(measured.floor_ms.iter().copied())
        )
    }
}

impl Row {
    fn new(name: &'static str, rounds: &[Round], goal: Option<(f64, Judged)>) -> Self {
        let middle = |of: &dyn Fn(&Round) -> f64| median(rounds.iter().map(of));
        let command_ratio = middle(&|round| round.git.wall_ms / round.command.wall_ms);
        let library_ratio = middle(&|round| round.git.wall_ms / round.library.wall_ms);
        let wall = |of: &dyn Fn(&Round) -> Cost| middle(&|round| of(round).wall_ms);
        Self {
            name,
            git_ms: wall(&|round| round.git),
            command_ms: wall(&|round| round.command),
            library_ms: wall(&|round| round.library),
            git_cpu_ms: middle(&|round| round.git.cpu_ms),
            command_cpu_ms: middle(&|round| round.command.cpu_ms),
            command_ratio,
            library_ratio,
            goal: goal.map(|(ratio, judged)| {
                let reached = if judged == Judged::Command { command_ratio } else { library_ratio };
                Goal { ratio, judged, met: reached >= ratio }
            }),
        }
    }
}

fn yes_no(yes: bool) -> &'static str {
    if yes { "yes" } else { "no" }
}

#[expect(clippy::cast_precision_loss, reason = "sizes on a disk are far below 2^52")]
fn mega(bytes: u64) -> f64 {
    bytes as f64 / 1e6
}
