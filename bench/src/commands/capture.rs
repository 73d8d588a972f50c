//! Saving a file before an agent edits it: in a process of its own, next to an empty process; and in a
//! process that keeps the workspace open, next to copying the file.
//!
//! Before every capture the file gets bytes that the store does not have.

use std::fs;
use std::io::Write as _;
use std::path::PathBuf;

use takeback_core::{CallTargets, Workspace};
use takeback_store::{Durability, Log as _, SqliteStore};

use crate::Result;
use crate::driver::empty_program::EmptyProgram;
use crate::driver::library::{Agent, open_with_store};
use crate::driver::takeback::{Takeback, build};
use crate::measure::timed;
use crate::report::{Goal, Row, comparison};
use crate::results::Results;
use crate::rounds::Rounds;
use crate::scratch::{Scratch, fill};
use crate::text::Code;

#[derive(clap::Args)]
pub(crate) struct Args {
    #[arg(long, default_value_t = 200)]
    rounds: usize,
}

const SIZES: [(&str, usize); 3] = [("10 KB", 10 << 10), ("100 KB", 100 << 10), ("1 MB", 1 << 20)];
/// Files next to the one that is edited.
const OTHERS: usize = 1_000;

pub(crate) fn run(args: &Args, results: &Results) -> Result<()> {
    let mut tables = vec![("in a process of its own".to_owned(), as_process(args.rounds)?)];
    for (name, size) in SIZES {
        tables.push((format!("{name}, in process"), in_process(name, size, args.rounds)?));
    }
    for (name, rows) in &tables {
        println!("{}", comparison(name, rows));
    }
    results.finish("capture", tables).map(drop)
}

/// `takeback record` with one event.
fn as_process(rounds: usize) -> Result<Vec<Row>> {
    const BEFORE: &str = r#"{"event":"before_tool","session":"bench","call":"c","tool":"Edit","paths":["edited.txt"]}"#;
    const AFTER: &str = r#"{"event":"after_tool","session":"bench","call":"c"}"#;
    let scratch = Scratch::new()?;
    let edited = lay_out(&scratch)?;
    let empty = EmptyProgram::build(scratch.path())?.commands(&scratch.project());
    let takeback = Takeback::in_scratch(&build(scratch.path())?, &scratch);
    takeback.run(&["record"]).time(r#"{"event":"session_start","session":"bench"}"#)?;
    takeback.run(&["record"]).time(r#"{"event":"prompt","session":"bench","text":"Go on."}"#)?;
    let cases: Vec<_> = SIZES
        .into_iter()
        .flat_map(|size| Durability::ALL.map(|durability| (size, durability)))
        .collect();
    let mut code = Code::new();
    let rounds = Rounds { count: rounds, warm_up: 0, group: 1 };
    let mut times = rounds.run(1 + cases.len(), |case, _| {
        let Some(((_, size), durability)) = case.checked_sub(1).map(|n| cases[n]) else {
            return Ok(empty.time(BEFORE)?.wall_ms);
        };
        fs::write(&edited, code.text(size))?;
        let record = takeback.run(&["record"]).with("TAKEBACK_DURABILITY", durability.name());
        let cost = record.time(BEFORE)?;
        record.time(AFTER)?;
        Ok(cost.wall_ms)
    })?;
    let empty = times.remove(0);
    let rows = cases.iter().zip(times).map(|(((name, size), durability), ours)| {
        let name = format!("record, {name}, durability {}", durability.name());
        let row = Row::new(name, &ours, "an empty process", &empty);
        let is_judged = *size == SIZES[0].1 && *durability == Durability::Full;
        if is_judged { row.goal(Goal::AtMost(3.0)) } else { row }
    });
    Ok(rows.collect())
}

/// The same event, sent to an open workspace.
fn in_process(name: &str, size: usize, rounds: usize) -> Result<Vec<Row>> {
    let mut captures =
        Durability::ALL.into_iter().map(OpenProject::new).collect::<Result<Vec<_>>>()?;
    let mut code = Code::new();
    let rounds = Rounds { count: rounds, warm_up: 0, group: 1 };
    let times = rounds.run(2 + captures.len(), |case, _| {
        let open = &mut captures[case.saturating_sub(2)];
        fs::write(&open.edited, code.text(size))?;
        match case {
            0 => open.copy(Flush::Never),
            1 => open.copy(Flush::Fsync),
            _ => open.capture(),
        }
    })?;
    let mut rows = Vec::new();
    for (durability, ours) in Durability::ALL.into_iter().zip(&times[2..]) {
        let row = format!("capture, durability {}", durability.name());
        let copy = Row::new(row.clone(), ours, "a copy", &times[0]);
        let fsync = Row::new(row, ours, "a copy with fsync", &times[1]);
        match (name, durability) {
            ("10 KB", Durability::Off) => rows.push(copy.goal(Goal::AtMost(4.0))),
            ("1 MB", Durability::Full) => rows.extend([copy, fsync.goal(Goal::AtMost(1.0))]),
            (_, Durability::Full) => rows.extend([copy, fsync]),
            _ => rows.push(copy),
        }
    }
    Ok(rows)
}

/// Writes the project; the file that the agent edits.
fn lay_out(scratch: &Scratch) -> Result<PathBuf> {
    fill(&scratch.project(), OTHERS, 50)?;
    let edited = scratch.project().join("edited.txt");
    fs::write(&edited, "nothing yet\n")?;
    Ok(edited)
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Flush {
    Never,
    Fsync,
}

struct OpenProject {
    workspace: Workspace,
    edited: PathBuf,
    scratch: Scratch,
}

impl OpenProject {
    fn new(durability: Durability) -> Result<Self> {
        let scratch = Scratch::new()?;
        let edited = lay_out(&scratch)?;
        let store_dir = scratch.path().join("store");
        let mut store = SqliteStore::create(&store_dir)?;
        store.set_durability(durability)?;
        let mut workspace = open_with_store(&scratch.project(), &store_dir, store)?;
        Agent { session: "bench".into(), ..Agent::of(&mut workspace) }.prompt(None, "Go on.")?;
        Ok(Self { workspace, edited, scratch })
    }

    fn capture(&mut self) -> Result<f64> {
        let mut agent = Agent { session: "bench".into(), ..Agent::of(&mut self.workspace) };
        let (recorded, ms) =
            agent.call("c", CallTargets::Paths(vec![PathBuf::from("edited.txt")]), || Ok(()))?;
        if recorded.changes == 1 { Ok(ms) } else { Err("the file was not saved".into()) }
    }

    /// Reads the file and writes it elsewhere.
    fn copy(&self, flush: Flush) -> Result<f64> {
        let copy = self.scratch.path().join("copy");
        let ((), ms) = timed(|| {
            let bytes = fs::read(&self.edited)?;
            let mut file = fs::File::create_new(&copy)?;
            file.write_all(&bytes)?;
            if flush == Flush::Fsync {
                file.sync_all()?;
            }
            Ok(())
        })?;
        fs::remove_file(copy)?;
        Ok(ms)
    }
}
