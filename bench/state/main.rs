//! Takeback's state store beside langgraph-checkpoint-sqlite and beside SQLite alone: the same states,
//! in turn, on one disk.
//!
//! Out: a table on standard output and the numbers in `results/`. Times mean little on another
//! machine; the ratios do. The peer comes from PyPI; where it cannot be had, what is compared with it
//! is not measured, and the table says so.

#![expect(
    clippy::disallowed_methods,
    reason = "the bench plays the user: it lays out folders and reads the clock"
)]
#![expect(
    clippy::print_stdout,
    clippy::print_stderr,
    reason = "the table is the answer, progress goes beside it"
)]

mod peer;
mod raw;
mod report;
mod rounds;
mod takeback;
mod text;

use std::path::{Path, PathBuf};
use std::process::ExitCode;

use takeback_bench::{Result, machine};

use crate::report::Report;

const HELP: &str = "\
state: Takeback's state store beside langgraph-checkpoint-sqlite and SQLite alone, in one run

  --scratch DIR      where the stores lie; needs 1.2 GB for a while [bench/scratch]
  --rounds N         rounds of every case [5]
  --date DATE        names the file of results [today]
  --no-peer          do without the peer, and without the network
  --no-results       only print the table
";

struct Options {
    scratch: PathBuf,
    rounds: usize,
    date: Option<String>,
    with_peer: bool,
    results: bool,
}

fn main() -> ExitCode {
    let words: Vec<String> = std::env::args().skip(1).collect();
    if words.iter().any(|word| word == "-h" || word == "--help") {
        print!("{HELP}");
        return ExitCode::SUCCESS;
    }
    match parse(words.into_iter()).and_then(|options| bench(&options)) {
        Ok(()) => ExitCode::SUCCESS,
        Err(error) => {
            eprintln!("error: {error}");
            ExitCode::FAILURE
        }
    }
}

fn parse(mut words: impl Iterator<Item = String>) -> Result<Options> {
    let mut options = Options {
        scratch: Path::new(env!("CARGO_MANIFEST_DIR")).join("scratch"),
        rounds: 5,
        date: None,
        with_peer: true,
        results: true,
    };
    while let Some(word) = words.next() {
        let mut value = || words.next().ok_or(format!("{word} needs a value"));
        match word.as_str() {
            "--scratch" => options.scratch = std::path::absolute(value()?)?,
            "--rounds" => options.rounds = value()?.parse()?,
            "--date" => options.date = Some(value()?),
            "--no-peer" => options.with_peer = false,
            "--no-results" => options.results = false,
            _ => return Err(format!("{word} is not known; see --help").into()),
        }
    }
    if options.rounds == 0 {
        return Err("there must be at least one round".into());
    }
    Ok(options)
}

fn bench(options: &Options) -> Result<()> {
    if cfg!(debug_assertions) {
        return Err("only a release build tells anything: \
                    cargo run --release -p takeback-bench --bin state"
            .into());
    }
    std::fs::create_dir_all(&options.scratch)?;
    let peer = if options.with_peer {
        peer::Peer::start(&options.scratch).map_err(|error| error.to_string())
    } else {
        Err("--no-peer".to_owned())
    };
    if let Err(why) = &peer {
        eprintln!("the peer is not measured: {why}");
    }
    let date = match &options.date {
        Some(date) => date.clone(),
        None => machine::date()?,
    };
    let load_before = machine::load_average()?;
    let facts = peer.as_ref().map(|peer| peer.facts.clone()).map_err(Clone::clone);
    let measured = rounds::run(&options.scratch, options.rounds, peer.ok())?;
    let report = Report::new(date, facts, measured, load_before)?;
    println!("{}", report.table());
    if options.results {
        let results = Path::new(env!("CARGO_MANIFEST_DIR")).join("results");
        std::fs::create_dir_all(&results)?;
        std::fs::write(results.join(report.file_name()), report.json()?)?;
    }
    Ok(())
}

/// A folder with nothing in it.
pub(crate) fn make_empty(folder: &Path) -> Result<()> {
    if folder.exists() {
        std::fs::remove_dir_all(folder)?;
    }
    Ok(std::fs::create_dir_all(folder)?)
}
