//! A point of an unchanged tree with the watcher, in process and asked of `takeback serve --watch`,
//! next to `stat` of every file on all cores.

use std::io::{BufRead as _, BufReader, Write as _};
use std::process::{Child, ChildStdin, ChildStdout};
use std::sync::Arc;

use takeback_core::checkpoint;
use takeback_core::watch::{EVERY, TreeWatch, Trust};
use takeback_store::PointBasis;

use crate::Result;
use crate::corpus::{Corpus, CorpusArgs, TreeSize};
use crate::driver::library::open_workspace;
use crate::driver::takeback::{Takeback, build};
use crate::floor::Floor;
use crate::measure::timed;
use crate::report::{Goal, Row, comparison};
use crate::results::Results;
use crate::rounds::Rounds;
use crate::scratch::Scratch;

#[derive(clap::Args)]
pub(crate) struct Args {
    #[arg(long, default_value_t = 21)]
    rounds: usize,
    /// Tree to measure with; it is only read
    #[arg(long, value_enum, default_value = "large")]
    tree: TreeSize,
    #[command(flatten)]
    corpus: CorpusArgs,
}

const GOAL: Goal = Goal::Below(0.1);

pub(crate) fn run(args: &Args, results: &Results) -> Result<()> {
    let corpus = Corpus::open_or_make(&args.corpus, args.tree)?;
    let floor = Floor::new(&corpus)?;
    let scratch = Scratch::new()?;
    let program = build(scratch.path())?;
    let mut plain = open_workspace(&corpus.tree, &scratch.path().join("plain"))?;
    let mut watched = open_workspace(&corpus.tree, &scratch.path().join("watched"))?;
    watched.watched = Some(Arc::new(TreeWatch::new(Trust::WithScans { every: EVERY })));
    let mut server = Server::start(&Takeback::new(&program, &corpus.tree, &scratch.home()))?;
    // The first round reads every file; in the next ones, file times become old enough to be trusted.
    let rounds = Rounds { count: args.rounds, warm_up: 3, group: 4 };
    let times = rounds.run(4, |case, _| match case {
        0 => Ok(floor.measure()?.wall_ms),
        1 => Ok(timed(|| Ok(checkpoint(&mut plain, None)?))?.1),
        2 => Ok(timed(|| Ok(checkpoint(&mut watched, None)?))?.1),
        _ => Ok(timed(|| server.call("checkpoint:create"))?.1),
    })?;
    let points = watched.store.points()?;
    let by_watcher = points.iter().filter(|point| point.basis == PointBasis::Watch).count();
    let served = server.call("status")?["point"]["vouchedBy"].take();
    if by_watcher < args.rounds || served != "watch" {
        return Err("the watcher was not trusted: these are times of scans".into());
    }
    let row = |name: &str, case: usize| Row::new(name, &times[case], "the floor", &times[0]);
    let rows = [
        row("point without a watcher, in process", 1),
        row("point with a watcher, in process", 2).goal(GOAL),
        row("`checkpoint:create` of `serve --watch`, round trip", 3).goal(GOAL),
    ];
    let title = format!("{} files, {} rounds", corpus.paths.len(), args.rounds);
    println!("{}", comparison(&title, &rows));
    results.finish("watch", rows).map(drop)
}

/// `takeback serve --stdio --watch`, until it is dropped.
struct Server {
    process: Child,
    input: ChildStdin,
    output: BufReader<ChildStdout>,
}

impl Server {
    fn start(takeback: &Takeback) -> Result<Self> {
        let mut process = takeback.run(&["serve", "--stdio", "--watch"]).spawn()?;
        let input = process.stdin.take().ok_or("the server has no input")?;
        let output = BufReader::new(process.stdout.take().ok_or("the server has no output")?);
        Ok(Self { process, input, output })
    }

    fn call(&mut self, method: &str) -> Result<serde_json::Value> {
        writeln!(self.input, r#"{{"jsonrpc":"2.0","id":1,"method":"{method}"}}"#)?;
        self.input.flush()?;
        let mut line = String::new();
        self.output.read_line(&mut line)?;
        let mut answer: serde_json::Value = serde_json::from_str(&line)?;
        match answer.get("error") {
            Some(error) => Err(error.to_string().into()),
            None => Ok(answer["result"].take()),
        }
    }
}

impl Drop for Server {
    fn drop(&mut self) {
        // It may have ended already.
        drop(self.process.kill());
        drop(self.process.wait());
    }
}
