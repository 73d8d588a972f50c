//! Takeback beside its peers: the same trees, the same edits, in turn, on one machine.
//!
//! In: the sources of this workspace's dependencies, from cargo's registry. Out: tables on standard
//! output, the raw numbers in `results/`, and a picture of them. Times mean little on another machine;
//! the ratios do.

#![expect(
    clippy::disallowed_methods,
    reason = "the bench plays the user: it lays out trees and reads the clock"
)]
#![expect(
    clippy::print_stdout,
    clippy::print_stderr,
    reason = "the table is the answer, progress goes beside it"
)]

mod chart;
mod corpus;
mod edits;
mod report;
mod rounds;
mod rows;
mod tool;
mod tree;

use std::collections::BTreeMap;
use std::path::{Path, PathBuf};
use std::process::{Command, ExitCode};

use takeback_bench::{Result, machine, measure};

use crate::corpus::{Corpus, Extent};
use crate::report::Report;
use crate::rounds::{Case, Measured, Rounds};
use crate::tool::git::ShadowGit;
use crate::tool::jj::Jj;
use crate::tool::opencode::{self, Opencode};
use crate::tool::restic::Restic;
use crate::tool::takeback::{TakebackCommand, TakebackLibrary, set_programs_aside};
use crate::tool::{Tool, Who};

const HELP: &str = "\
takeback-bench: Takeback beside git, opencode's commands, jj and restic, as ratios in one run

  --corpora LIST     small, medium, large [all]
  --cases LIST       first, unchanged, few, many, rewind-few, rewind-few-exact, rewind-many [all]
  --rounds N         rounds of every case but the first snapshot [5]
  --first-rounds N   rounds of the first snapshot [small 3, medium 3, large 1]
  --corpus DIR       where the trees and the tools' states lie; made once [bench/corpus]
  --jj PATH          the jj to compare with [the one on the search path]
  --no-peers         beside git alone
  --date DATE        names the file of results [today]
  --no-results       only print the tables
  --tables FILE      print the tables of earlier results, nothing else
  --chart FILE       draw the picture of earlier results, nothing else
";

struct Options {
    corpora: Vec<Extent>,
    cases: Vec<Case>,
    rounds: Option<usize>,
    first_rounds: Option<usize>,
    place: PathBuf,
    jj: PathBuf,
    peers: bool,
    date: Option<String>,
    results: bool,
}

fn main() -> ExitCode {
    let words: Vec<String> = std::env::args().skip(1).collect();
    let done = match words.first().map(String::as_str) {
        Some(measure::RUNNER) => measure::run_commands(),
        Some(opencode::RUNNER) => opencode::run(),
        Some("-h" | "--help") => {
            print!("{HELP}");
            Ok(())
        }
        Some("--chart") => earlier(&words).and_then(|report| draw(&report)),
        Some("--tables") => earlier(&words).map(|report| println!("{}", report.tables())),
        _ => parse(words.into_iter()).and_then(|options| bench(&options)),
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
        corpora: Extent::ALL.to_vec(),
        cases: Case::ALL.to_vec(),
        rounds: None,
        first_rounds: None,
        place: Path::new(env!("CARGO_MANIFEST_DIR")).join("corpus"),
        jj: PathBuf::from("jj"),
        peers: true,
        date: None,
        results: true,
    };
    while let Some(word) = words.next() {
        let mut value = || words.next().ok_or(format!("{word} needs a value"));
        match word.as_str() {
            "--corpora" => options.corpora = list(&value()?, &Extent::ALL, Extent::name)?,
            "--cases" => options.cases = list(&value()?, &Case::ALL, Case::word)?,
            "--rounds" => options.rounds = Some(value()?.parse()?),
            "--first-rounds" => options.first_rounds = Some(value()?.parse()?),
            "--corpus" => options.place = std::path::absolute(value()?)?,
            "--jj" => options.jj = std::path::absolute(value()?)?,
            "--no-peers" => options.peers = false,
            "--date" => options.date = Some(value()?),
            "--no-results" => options.results = false,
            _ => return Err(format!("{word} is not known; see --help").into()),
        }
    }
    if options.rounds == Some(0) || options.first_rounds == Some(0) {
        return Err("there must be at least one round".into());
    }
    Ok(options)
}

/// Those of `all` that `text` names, in the order of `all`.
fn list<T: Copy>(text: &str, all: &[T], name: fn(T) -> &'static str) -> Result<Vec<T>> {
    let words: Vec<&str> = text.split(',').collect();
    match words.iter().find(|word| !all.iter().any(|&one| name(one) == **word)) {
        Some(word) => Err(format!("{word} is not known; see --help").into()),
        None => Ok(all.iter().copied().filter(|&one| words.contains(&name(one))).collect()),
    }
}

fn bench(options: &Options) -> Result<()> {
    if cfg!(debug_assertions) {
        return Err(
            "only a release build tells anything: cargo run --release -p takeback-bench".into()
        );
    }
    set_programs_aside(&options.place)?;
    let versions = versions(options)?;
    let load_before = machine::load_average()?;
    let corpora = options
        .corpora
        .iter()
        .map(|&extent| measure_corpus(options, extent, &versions))
        .collect::<Result<_>>()?;
    let date = match &options.date {
        Some(date) => date.clone(),
        None => machine::date()?,
    };
    let report = Report::new(date, versions, corpora, load_before)?;
    println!("{}", report.tables());
    if options.results {
        let results = Path::new(env!("CARGO_MANIFEST_DIR")).join("results");
        std::fs::create_dir_all(&results)?;
        std::fs::write(results.join(report.file_name()), report.json()?)?;
        draw(&report)?;
    }
    Ok(())
}

/// What the tools say of themselves. Who is not there is left out, with a word on how to get it.
fn versions(options: &Options) -> Result<BTreeMap<Who, String>> {
    let mut versions = BTreeMap::new();
    let mut ask = |who, program: &Path, word: &str, install: &str| match Command::new(program)
        .arg(word)
        .output()
    {
        Ok(output) => {
            let text = String::from_utf8_lossy(&output.stdout).trim().to_owned();
            versions.insert(who, text);
        }
        Err(_) => eprintln!("{} is not there: {install}", program.display()),
    };
    ask(Who::Git, Path::new("git"), "--version", "apt install git");
    if options.peers {
        ask(Who::Jj, &options.jj, "--version", "cargo install --locked jj-cli --version 0.45.1");
        ask(Who::Restic, Path::new("restic"), "version", "apt install restic");
    }
    if versions.contains_key(&Who::Git) { Ok(versions) } else { Err("there is no git".into()) }
}

fn measure_corpus(
    options: &Options,
    extent: Extent,
    versions: &BTreeMap<Who, String>,
) -> Result<Measured> {
    let corpus = Corpus::open_or_make(&options.place, extent)?;
    let mut tools: Vec<Box<dyn Tool + '_>> = vec![
        Box::new(TakebackCommand::new(&corpus)),
        Box::new(ShadowGit::new(&corpus)),
        Box::new(TakebackLibrary::new(&corpus)),
    ];
    if options.peers {
        tools.push(Box::new(Opencode::new(&corpus)));
    }
    if versions.contains_key(&Who::Jj) {
        tools.push(Box::new(Jj::new(&corpus, &options.jj)));
    }
    if versions.contains_key(&Who::Restic) && extent != Extent::Large {
        tools.push(Box::new(Restic::new(&corpus)));
    }
    // Who is not to be measured with it still needs one.
    let wanted = options.cases.contains(&Case::First);
    let first = match extent {
        Extent::Small | Extent::Medium => 3,
        Extent::Large => 1,
    };
    let rounds = Rounds {
        first: if wanted { options.first_rounds.unwrap_or(first) } else { 1 },
        all: options.rounds.unwrap_or(5),
    };
    corpus.may_change()?;
    let measured = rounds::run(&corpus, tools, &options.cases, rounds)?;
    corpus.is_whole()?;
    Ok(measured)
}

fn earlier(words: &[String]) -> Result<Report> {
    let file = words.get(1).ok_or("which results?")?;
    Ok(serde_json::from_str(&std::fs::read_to_string(file)?)?)
}

fn draw(report: &Report) -> Result<()> {
    let picture = Path::new(env!("CARGO_MANIFEST_DIR")).join("../docs/performance.svg");
    Ok(std::fs::write(picture, chart::chart(report))?)
}
