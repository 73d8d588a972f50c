//! Points and rewinds of real trees, next to git, opencode's commands, jj and restic: the same
//! trees, the same edits, in turn.
//!
//! Prints the tables of `docs/performance.md` and draws its picture.

mod chart;
mod digest;
mod goals;
mod rounds;
mod tables;

use std::collections::BTreeMap;
use std::path::{Path, PathBuf};

use serde::{Deserialize, Serialize};

use self::rounds::{Case, RoundCounts, TreeCosts};
use crate::Result;
use crate::corpus::{Corpus, CorpusArgs, TreeSize};
use crate::driver::git::ShadowGit;
use crate::driver::jj::Jj;
use crate::driver::library::{Library, Mode};
use crate::driver::opencode::Opencode;
use crate::driver::restic::Restic;
use crate::driver::takeback::{Takeback, build};
use crate::driver::{Driver, Tool, WorkFolders, version};
use crate::results::{Results, ResultsFile};

#[derive(clap::Args)]
pub(crate) struct Args {
    /// Trees to measure with
    #[arg(long, value_enum, value_delimiter = ',', default_value = "small,medium,large")]
    trees: Vec<TreeSize>,
    /// Cases to measure [default: all]
    #[arg(long, value_enum, value_delimiter = ',')]
    cases: Vec<Case>,
    /// Rounds of every case except the first point
    #[arg(long, default_value_t = 5, value_parser = clap::value_parser!(u16).range(1..))]
    rounds: u16,
    /// Rounds of the first point [default: 3 in the small and medium tree, 1 in the large one]
    #[arg(long, value_parser = clap::value_parser!(u16).range(1..))]
    first_rounds: Option<u16>,
    #[command(flatten)]
    corpus: CorpusArgs,
    /// The jj to compare with
    #[arg(long, value_name = "PROGRAM", default_value = "jj")]
    jj: PathBuf,
    /// Compare with git only
    #[arg(long)]
    no_peers: bool,
    /// Print the tables of an earlier results file and exit
    #[arg(long, value_name = "RESULTS")]
    tables: Option<PathBuf>,
    /// Draw the picture of an earlier results file and exit
    #[arg(long, value_name = "RESULTS")]
    chart: Option<PathBuf>,
}

#[derive(Serialize, Deserialize)]
struct Measurements {
    /// Of the peers that are installed.
    versions: BTreeMap<Tool, String>,
    trees: Vec<TreeCosts>,
}

pub(crate) fn run(args: &Args, results: &Results) -> Result<()> {
    if let Some(file) = &args.tables {
        let saved = ResultsFile::<Measurements>::read(file)?;
        print!("{}\n{}\n", saved.machine(), tables::tables(&saved.measured));
        return Ok(());
    }
    if let Some(file) = &args.chart {
        return draw(&ResultsFile::<Measurements>::read(file)?.measured);
    }
    let program = build(&args.corpus.corpus.join("programs"))?;
    let versions = versions(args)?;
    let measure = |&size: &TreeSize| measure_tree(args, size, &versions, &program);
    let trees = args.trees.iter().map(measure).collect::<Result<_>>()?;
    let measured = Measurements { versions, trees };
    println!("{}", tables::tables(&measured));
    let saved = results.finish("trees", measured)?;
    if results.is_saved { draw(&saved.measured) } else { Ok(()) }
}

/// Skips a tool that is not installed, and prints how to install it.
fn versions(args: &Args) -> Result<BTreeMap<Tool, String>> {
    let jj = args.jj.to_string_lossy();
    let mut tools = vec![(Tool::Git, "git", "--version", "apt install git")];
    if !args.no_peers {
        let install = "cargo install --locked jj-cli --version 0.45.1";
        tools.push((Tool::Jj, &jj, "--version", install));
        tools.push((Tool::Restic, "restic", "version", "apt install restic"));
    }
    let mut versions = BTreeMap::new();
    for (tool, program, word, install) in tools {
        match version(program, word) {
            Some(version) => drop(versions.insert(tool, version)),
            None if tool == Tool::Git => return Err("git is not installed".into()),
            None => eprintln!("{program} is not installed and is skipped: {install}"),
        }
    }
    Ok(versions)
}

fn measure_tree(
    args: &Args,
    size: TreeSize,
    versions: &BTreeMap<Tool, String>,
    program: &Path,
) -> Result<TreeCosts> {
    let corpus = Corpus::open_or_make(&args.corpus, size)?;
    let site = WorkFolders { tree: corpus.tree.clone(), states: corpus.states.clone() };
    let mut command = Takeback::new(program, &site.tree, &site.states.join("takeback-command"));
    command.folders = corpus.folders;
    let mut drivers: Vec<Box<dyn Driver>> = vec![
        Box::new(command),
        Box::new(ShadowGit::new(&site)),
        Box::new(Library::new(&site, Mode::KeptOpen)),
    ];
    if !args.no_peers {
        drivers.push(Box::new(Opencode::new(&site)));
    }
    if versions.contains_key(&Tool::Jj) {
        drivers.push(Box::new(Jj::new(&site, &args.jj)));
    }
    if versions.contains_key(&Tool::Restic) && size != TreeSize::Large {
        drivers.push(Box::new(Restic::new(&site)));
    }
    let cases = if args.cases.is_empty() { &Case::ALL } else { &*args.cases };
    // All other cases start from a first point.
    let first = match (cases.contains(&Case::First), args.first_rounds) {
        (false, _) => 1,
        (true, Some(rounds)) => rounds,
        (true, None) if size == TreeSize::Large => 1,
        (true, None) => 3,
    };
    let repeats = RoundCounts { first: first.into(), other: args.rounds.into() };
    corpus.change(|| rounds::run(&corpus, drivers, cases, repeats))
}

fn draw(measured: &Measurements) -> Result<()> {
    let picture = Path::new(env!("CARGO_MANIFEST_DIR")).join("../docs/performance.svg");
    Ok(std::fs::write(picture, chart::chart(measured))?)
}
