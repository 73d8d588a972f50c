//! What covering an ignored folder costs when nothing changed: the same files in a plain folder, in an
//! ignored one, and in an excluded one.

use std::fs;

use crate::Result;
use crate::driver::takeback::{Takeback, build};
use crate::report::{Goal, Row, comparison};
use crate::results::Results;
use crate::rounds::Rounds;
use crate::scratch::{Scratch, fill};

#[derive(clap::Args)]
pub(crate) struct Args {
    #[arg(long, default_value_t = 60)]
    rounds: usize,
    /// Files in the project; a fifth as many are in the folder
    #[arg(long, default_value_t = 10_000)]
    files: usize,
}

const RULES: [Option<&str>; 3] = [None, Some(".gitignore"), Some(".takebackignore")];

pub(crate) fn run(args: &Args, results: &Results) -> Result<()> {
    let programs = Scratch::new()?;
    let program = build(programs.path())?;
    let scratches = RULES.map(|_| Scratch::new());
    let scratches = scratches.into_iter().collect::<Result<Vec<_>>>()?;
    for (scratch, rules) in scratches.iter().zip(RULES) {
        fill(&scratch.project().join("src"), args.files, 50)?;
        fill(&scratch.project().join("data"), args.files / 5, 50)?;
        if let Some(rules) = rules {
            fs::write(scratch.project().join(rules), "data/\n")?;
        }
    }
    let rounds = Rounds { count: args.rounds, warm_up: 3, group: RULES.len() };
    let times = rounds.run(RULES.len(), |case, _| {
        let takeback = Takeback::in_scratch(&program, &scratches[case]);
        Ok(takeback.run(&["checkpoint", "--quiet"]).time("")?.wall_ms)
    })?;
    let rows = [
        Row::new("ignored, and covered", &times[1], "plain", &times[0]).goal(Goal::AtMost(1.1)),
        Row::new("excluded by `.takebackignore`", &times[2], "plain", &times[0]),
    ];
    let (files, rounds) = (args.files, args.rounds);
    println!(
        "`checkpoint`, nothing changed, {files} files and {} in `data/`, {rounds} rounds:\n",
        files / 5
    );
    println!("{}", comparison("`data/` is", &rows));
    results.finish("ignored-folder", rows).map(drop)
}
