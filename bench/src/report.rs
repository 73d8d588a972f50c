//! The tables for people and the raw numbers for later.

use std::collections::BTreeMap;
use std::fmt::Write as _;

use serde::{Deserialize, Serialize};
use takeback_bench::Result;
use takeback_bench::machine::{self, load_average};

use crate::rounds::{Case, Measured};
use crate::rows::{Row, rows};
use crate::tool::Who;

#[derive(Serialize, Deserialize)]
pub(crate) struct Report {
    date: String,
    machine: Machine,
    pub(crate) corpora: Vec<Measured>,
    rows: Vec<Row>,
}

#[derive(Serialize, Deserialize)]
struct Machine {
    #[serde(flatten)]
    machine: machine::Machine,
    takeback: String,
    /// Of the peers that are there.
    versions: BTreeMap<Who, String>,
    load_before: String,
    load_after: String,
}

/// The rows of the same table that other programs of this bench measure.
const ELSEWHERE: [(&str, &str, &str); 6] = [
    ("fresh process capturing a 10 KB file", "≤ 3× an empty Rust process", "capture"),
    ("capture in process, 10 KB", "≤ 4× a plain copy", "capture"),
    ("capture in process, 1 MB", "≤ 1× copy + fsync", "capture"),
    ("no-change snapshot with the watcher", "< 0.1× the floor without it", "watch"),
    (
        "growth per point of 3 small edits; the store after 100 points",
        "≤ 8 KB; ≤ 0.45× shadow git before gc, smaller than restic",
        "growth",
    ),
    ("10,000 points over the same paths: log, newest, rewind to the oldest", "≤ 2× 100", "points"),
];

impl Report {
    /// A row a goal, a column a tree.
    fn write_goals(&self, out: &mut String) -> std::fmt::Result {
        let trees: Vec<_> = self.corpora.iter().map(|measured| measured.corpus).collect();
        let titles: Vec<&str> = trees.iter().map(|tree| tree.name()).collect();
        writeln!(out, "| case | what is compared | goal | {} |", titles.join(" | "))?;
        writeln!(out, "|---|---|---|{}", "--:|".repeat(trees.len()))?;
        let mut goals: BTreeMap<_, Vec<&Row>> = BTreeMap::new();
        for row in &self.rows {
            goals.entry((row.case, row.place)).or_default().push(row);
        }
        for ((case, _), rows) in goals {
            let mut wanted: Vec<String> = rows.iter().map(|row| row.goal.text()).collect();
            wanted.dedup();
            let of = |tree| rows.iter().find(|row| row.corpus == tree);
            let cells: Vec<String> = trees
                .iter()
                .map(|&tree| of(tree).map_or(String::new(), |row| reached(row)))
                .collect();
            let (case, what) = (case.title(), &rows[0].what);
            writeln!(out, "| {case} | {what} | {} | {} |", wanted.join(", "), cells.join(" | "))?;
        }
        Ok(())
    }

    pub(crate) fn new(
        date: String,
        versions: BTreeMap<Who, String>,
        corpora: Vec<Measured>,
        load_before: String,
    ) -> Result<Self> {
        let machine = Machine {
            machine: machine::Machine::this()?,
            takeback: env!("CARGO_PKG_VERSION").to_owned(),
            versions,
            load_before,
            load_after: load_average()?,
        };
        let rows = corpora.iter().flat_map(rows).collect();
        Ok(Self { date, machine, corpora, rows })
    }

    pub(crate) fn file_name(&self) -> String {
        format!("{}-core.json", self.date)
    }

    pub(crate) fn json(&self) -> Result<String> {
        Ok(serde_json::to_string_pretty(self)? + "\n")
    }

    pub(crate) fn tables(&self) -> String {
        let mut out = String::new();
        self.write(&mut out).expect("text can be written to memory");
        out
    }

    fn write(&self, out: &mut String) -> std::fmt::Result {
        let Machine { machine, versions, load_before, load_after, .. } = &self.machine;
        let machine::Machine { cores, kernel, .. } = machine;
        let versions: Vec<&str> = versions.values().map(String::as_str).collect();
        writeln!(
            out,
            "{cores} cores, {kernel}; {}; load {load_before} before, {load_after} after.\n",
            versions.join(", ")
        )?;
        self.write_goals(out)?;
        self.corpora.iter().try_for_each(|measured| write_times(out, measured))?;
        writeln!(out, "\nThe other rows have programs of their own:\n")?;
        writeln!(out, "| | goal | `cargo run --release -p takeback-bench` |\n|---|---|---|")?;
        for (what, goal, program) in ELSEWHERE {
            writeln!(out, "| {what} | {goal} | `--bin {program}` |")?;
        }
        Ok(())
    }
}

/// What a row reached, with Takeback's other form in brackets.
fn reached(row: &Row) -> String {
    let other = row.other.map_or(String::new(), |other| format!(" ({})", row.goal.show(other)));
    match (row.reached, row.met) {
        (Some(value), Some(true)) => format!("**{}**{other} met", row.goal.show(value)),
        (Some(value), _) => format!("{}{other} **missed**", row.goal.show(value)),
        (None, _) => "not there".to_owned(),
    }
}

fn write_times(out: &mut String, measured: &Measured) -> std::fmt::Result {
    let Measured { corpus, files, folders, bytes, cases, sizes } = measured;
    let shown: Vec<Who> = Who::ALL
        .into_iter()
        .filter(|who| cases.values().flatten().any(|round| round.contains_key(who)))
        .collect();
    writeln!(
        out,
        "\n**{}**: {files} files in {folders} folders, {:.0} MB. Milliseconds, and processor time after the stroke.\n",
        corpus.name(),
        mega(*bytes)
    )?;
    let titles: Vec<&str> = shown.iter().map(|who| who.title()).collect();
    writeln!(out, "| case | rounds | {} |", titles.join(" | "))?;
    writeln!(out, "|---|--:|{}", "--:|".repeat(shown.len()))?;
    for (case, rounds) in cases {
        let cells: Vec<String> = shown.iter().map(|&who| times(measured, *case, who)).collect();
        writeln!(out, "| {} | {} | {} |", case.title(), rounds.len(), cells.join(" | "))?;
    }
    let cell =
        |who: &Who| sizes.get(who).map_or(String::new(), |&size| format!("{:.1}", mega(size)));
    let cells: Vec<String> = shown.iter().map(cell).collect();
    writeln!(out, "| on disk after the first snapshot, MB | | {} |", cells.join(" | "))?;
    for case in [Case::First, Case::Unchanged] {
        let cells: Vec<String> = shown.iter().map(|&who| peak(measured, case, who)).collect();
        writeln!(out, "| peak memory, {}, MB | | {} |", case.title(), cells.join(" | "))?;
    }
    Ok(())
}

fn times(measured: &Measured, case: Case, who: Who) -> String {
    let wall = measured.median(case, who, |cost| cost.wall_ms);
    let cpu = measured.median(case, who, |cost| cost.cpu_ms);
    let short = |ms: f64| if ms < 10.0 { format!("{ms:.1}") } else { format!("{ms:.0}") };
    match (wall, cpu) {
        (Some(wall), Some(cpu)) => format!("{} / {}", short(wall), short(cpu)),
        _ => String::new(),
    }
}

fn peak(measured: &Measured, case: Case, who: Who) -> String {
    let rounds = measured.cases.get(&case).into_iter().flatten();
    let peaks = rounds.filter_map(|round| round.get(&who)?.peak_mb);
    peaks.reduce(f64::max).map_or(String::new(), |peak| format!("{peak:.0}"))
}

#[expect(clippy::cast_precision_loss, reason = "sizes on a disk are far below 2^52")]
fn mega(bytes: u64) -> f64 {
    bytes as f64 / 1e6
}
