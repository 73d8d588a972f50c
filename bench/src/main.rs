//! Takeback beside a shadow git repository: the same tree, the same edits, in turn, on one machine.
//!
//! In: the sources of this workspace's dependencies, from cargo's registry. Out: a table on standard
//! output and the raw numbers in `results/`. Times mean little on another machine; the ratios do.

#![expect(
    clippy::disallowed_methods,
    reason = "the bench plays the user: it lays out trees and reads the clock"
)]
#![expect(
    clippy::print_stdout,
    clippy::print_stderr,
    reason = "the table is the answer, progress goes beside it"
)]

mod corpus;
mod edits;
mod git;
mod report;
mod rounds;
mod takeback;

use std::path::{Path, PathBuf};
use std::process::ExitCode;

use takeback_bench::{Result, machine, measure};

use crate::corpus::Corpus;
use crate::report::Report;

const HELP: &str = "\
takeback-bench: Takeback beside a shadow git, as ratios in one run

  --corpus DIR       where the tree and the tools' states lie; made once [bench/corpus]
  --files N          make a tree of at least N files [30000]
  --rounds N         rounds of every case but the first snapshot [5]
  --first-rounds N   rounds of the first snapshot [3]
  --date DATE        names the file of results [today]
  --no-results       only print the table
";

struct Options {
    corpus: PathBuf,
    files: usize,
    rounds: usize,
    first_rounds: usize,
    date: Option<String>,
    results: bool,
}

fn main() -> ExitCode {
    let mut words = std::env::args().skip(1).peekable();
    let done = match words.peek().map(String::as_str) {
        Some(measure::RUNNER) => measure::run_commands(),
        Some("-h" | "--help") => {
            print!("{HELP}");
            Ok(())
        }
        _ => parse(words).and_then(|options| bench(&options)),
    };
    match done {
        Ok(()) => ExitCode::SUCCESS,
        Err(error) => {
            eprintln!("error: {error}");
            ExitCode::FAILURE
        }
    }
}

fn parse(mut words: impl Iterator<Item = String>) -> Result<Options> {
    let mut options = Options {
        corpus: Path::new(env!("CARGO_MANIFEST_DIR")).join("corpus"),
        files: 30_000,
        rounds: 5,
        first_rounds: 3,
        date: None,
        results: true,
    };
    while let Some(word) = words.next() {
        let mut value = || words.next().ok_or(format!("{word} needs a value"));
        match word.as_str() {
            "--corpus" => options.corpus = std::path::absolute(value()?)?,
            "--files" => options.files = value()?.parse()?,
            "--rounds" => options.rounds = value()?.parse()?,
            "--first-rounds" => options.first_rounds = value()?.parse()?,
            "--date" => options.date = Some(value()?),
            "--no-results" => options.results = false,
            _ => return Err(format!("{word} is not known; see --help").into()),
        }
    }
    if options.rounds == 0 || options.first_rounds == 0 {
        return Err("there must be at least one round".into());
    }
    Ok(options)
}

fn bench(options: &Options) -> Result<()> {
    if cfg!(debug_assertions) {
        return Err(
            "only a release build tells anything: cargo run --release -p takeback-bench".into()
        );
    }
    let corpus = Corpus::open_or_make(&options.corpus, options.files)?;
    takeback::set_programs_aside(&corpus)?;
    let load_before = machine::load_average()?;
    let measured = rounds::run(&corpus, options.first_rounds, options.rounds)?;
    let date = match &options.date {
        Some(date) => date.clone(),
        None => machine::date()?,
    };
    let report = Report::new(date, &corpus, measured, load_before)?;
    println!("{}", report.table());
    if options.results {
        let results = Path::new(env!("CARGO_MANIFEST_DIR")).join("results");
        std::fs::create_dir_all(&results)?;
        std::fs::write(results.join(report.file_name()), report.json()?)?;
    }
    Ok(())
}
