//! What it costs to keep a file before an agent edits it: in a process of its own, and inside of one
//! that has the workspace open. Beside them, in the same rounds, what nobody can do without: an empty
//! Rust process, a plain copy, a copy that is made durable.
//!
//! Before every capture the file gets bytes that the store does not have. A table is printed, and
//! everything measured goes to `bench/results/`.

#![expect(clippy::print_stdout, reason = "a benchmark prints what it measured")]
#![expect(clippy::disallowed_methods, reason = "the bench plays the user and the agent")]

mod desk;

use std::fs;
use std::path::Path;
use std::process::Command;

use serde::Serialize;
use takeback_bench::Result;
use takeback_bench::machine::load_average;
use takeback_bench::measure::median;
use takeback_bench::results::save;
use takeback_store::Durability;

use self::desk::{Desk, Fill};

const ROUNDS: usize = 200;
const SIZES: [(&str, usize); 3] = [("10 KB", 10 << 10), ("100 KB", 100 << 10), ("1 MB", 1 << 20)];

/// One thing that was done in every round.
#[derive(Debug, Serialize)]
struct Row {
    name: String,
    ms: f64,
    fastest_ms: f64,
    /// Round by round, against the floor of its table.
    ratio: f64,
    /// At most this.
    goal: Option<f64>,
}

#[derive(Debug, Serialize)]
struct Table {
    name: String,
    rows: Vec<Row>,
}

/// The times of one thing, round by round.
struct Times {
    name: String,
    ms: Vec<f64>,
    /// Of the row it is held against, and how many times as much it may be.
    goal: Option<(usize, f64)>,
}

impl Times {
    fn new(name: impl Into<String>, goal: Option<(usize, f64)>) -> Self {
        Self { name: name.into(), ms: Vec::with_capacity(ROUNDS), goal }
    }
}

fn main() -> Result<()> {
    build()?;
    let here = std::env::current_exe()?;
    let programs = here.parent().ok_or("no folder of programs")?;
    let mut tables = vec![spawned(programs)?];
    for (name, size) in SIZES {
        tables.push(inside(name, size)?);
    }
    for table in &tables {
        println!(
            "\n| {} | median | fastest | beside the first | goal |\n|---|---|---|---|---|",
            table.name
        );
        for Row { name, ms, fastest_ms, ratio, goal } in &table.rows {
            let goal = goal.map(|goal| format!("{goal:.1}")).unwrap_or_default();
            println!("| {name} | {ms:.3} ms | {fastest_ms:.3} ms | {ratio:.2} | {goal} |");
        }
    }
    println!("\nMedians of {ROUNDS} rounds (load {}).", load_average()?);
    save("capture", &tables)
}

/// The command, and the program that does nothing, from the same sources.
fn build() -> Result<()> {
    let mut cargo = Command::new(env!("CARGO"));
    cargo.args(["build", "--quiet", "-p", "takeback", "-p", "takeback-bench"]);
    cargo.args(["--bin", "takeback", "--bin", "empty"]);
    if !cfg!(debug_assertions) {
        cargo.arg("--release");
    }
    if cargo.status()?.success() { Ok(()) } else { Err("the programs cannot be built".into()) }
}

/// `record` with one event, in a process of its own.
fn spawned(programs: &Path) -> Result<Table> {
    let desk = Desk::new(programs)?;
    let mut rows = vec![Times::new("an empty Rust process", None)];
    let mut cases = Vec::new();
    for (name, size) in SIZES {
        for durability in Durability::ALL {
            let goal = (size == SIZES[0].1 && durability == Durability::Full).then_some((0, 3.0));
            rows.push(Times::new(format!("record, {name}, {}", durability.word()), goal));
            cases.push((size, durability));
        }
    }
    let mut fill = Fill::default();
    for _ in 0..ROUNDS {
        rows[0].ms.push(desk.empty()?);
        for (row, (size, durability)) in rows[1..].iter_mut().zip(&cases) {
            fs::write(desk.edited(), fill.text(*size))?;
            row.ms.push(desk.record(*durability)?);
        }
    }
    Ok(finished("in a process of its own", &rows))
}

/// The same event told to a workspace that is open.
fn inside(name: &str, size: usize) -> Result<Table> {
    let goals = |durability| match (name, durability) {
        ("10 KB", Durability::Off) => Some((0, 4.0)),
        ("1 MB", Durability::Full) => Some((1, 1.0)),
        _ => None,
    };
    let mut rows = vec![Times::new("a copy", None), Times::new("a copy, and fsync", None)];
    let mut desks = Vec::new();
    for durability in Durability::ALL {
        let row = Times::new(format!("a capture, {}", durability.word()), goals(durability));
        rows.push(row);
        desks.push(Desk::inside(durability)?);
    }
    let mut fill = Fill::default();
    for _ in 0..ROUNDS {
        for (n, desk) in desks.iter_mut().enumerate() {
            fs::write(desk.edited(), fill.text(size))?;
            // Once a round is enough.
            if n == 0 {
                rows[0].ms.push(desk.copy(desk::Then::Nothing)?);
                rows[1].ms.push(desk.copy(desk::Then::Sync)?);
            }
            rows[2 + n].ms.push(desk.capture()?);
        }
    }
    Ok(finished(&format!("{name}, inside a process"), &rows))
}

fn finished(name: &str, rows: &[Times]) -> Table {
    let finish = |times: &Times| {
        let floor = &rows[times.goal.map_or(0, |(row, _)| row)].ms;
        Row {
            name: times.name.clone(),
            ms: median(times.ms.iter().copied()),
            fastest_ms: times.ms.iter().copied().fold(f64::INFINITY, f64::min),
            ratio: median(times.ms.iter().zip(floor).map(|(ms, floor)| ms / floor)),
            goal: times.goal.map(|(_, goal)| goal),
        }
    };
    Table { name: name.to_owned(), rows: rows.iter().map(finish).collect() }
}
