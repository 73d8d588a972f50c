//! Takeback's state store, next to langgraph-checkpoint-sqlite and plain SQLite: the same states, in
//! turn, on one disk.
//!
//! The peer comes from PyPI. If it cannot be installed, its rows say "not measured".

mod agent;
mod cases;
mod small_states;

use std::path::PathBuf;

use self::cases::Bench;
use crate::Result;
use crate::driver::langgraph::{Langgraph, Versions};
use crate::report::{Row, comparison};
use crate::results::Results;
use crate::rounds::median;

#[derive(clap::Args)]
pub(crate) struct Args {
    #[arg(long, default_value_t = 5)]
    rounds: usize,
    /// Steps of a conversation
    #[arg(long, default_value_t = 1000)]
    steps: usize,
    /// Folder for the stores, which need 1.2 GB for a while
    #[arg(long, value_name = "DIR", default_value = concat!(env!("CARGO_MANIFEST_DIR"), "/scratch"))]
    scratch: PathBuf,
    /// Do without the peer and the network
    #[arg(long)]
    no_peer: bool,
}

#[derive(serde::Serialize)]
struct Measurements {
    peer: Option<Versions>,
    sqlite: &'static str,
    /// Of a write of 4 KB at the end of a file, by round.
    fsync_ms: Vec<f64>,
    /// How many times smaller zstd makes the conversation: message by message, and as a whole.
    compression: [f64; 2],
    rows: Vec<Row>,
}

pub(crate) fn run(args: &Args, results: &Results) -> Result<()> {
    let scratch = std::path::absolute(&args.scratch)?;
    std::fs::create_dir_all(&scratch)?;
    let peer = if args.no_peer { Err("--no-peer".into()) } else { Langgraph::start(&scratch) };
    let (peer, versions) = match peer {
        Ok((peer, versions)) => (Some(peer), Some(versions)),
        Err(error) => {
            println!("langgraph is not measured: {error}\n");
            (None, None)
        }
    };
    let is_full = versions.as_ref().is_some_and(Versions::is_full);
    let mut bench = Bench::new(&scratch.join("states"), args.steps, peer, is_full)?;
    for round in 0..args.rounds {
        eprintln!("round {} of {}", round + 1, args.rounds);
        bench.round(round)?;
    }
    bench.once()?;
    let Bench { fsync_ms, compression, rows, .. } = bench;
    let sqlite = rusqlite::version();
    if let Some(Versions { package, base, python, sqlite, journal, synchronous }) = &versions {
        println!(
            "langgraph-checkpoint-sqlite {package} (langgraph-checkpoint {base}), Python {python}, \
             SQLite {sqlite}; by default: journal {journal}, synchronous {synchronous}."
        );
    }
    let [alone, whole] = compression;
    println!("Plain SQLite {sqlite}, WAL, synchronous FULL.");
    println!("Text: zstd makes it {alone:.2} times smaller by message, {whole:.2} as a whole.");
    println!("An fsync takes {:.2} ms.\n", median(fsync_ms.iter().copied()));
    println!("{}", comparison("case", &rows));
    let measured = Measurements { peer: versions, sqlite, fsync_ms, compression, rows };
    results.finish("state", measured).map(drop)
}
