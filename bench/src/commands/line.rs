//! `takeback status --line`, as a shell prompt calls it, next to an empty process.

use std::fmt::Write as _;
use std::fs;

use crate::Result;
use crate::driver::empty_program::EmptyProgram;
use crate::driver::takeback::{Takeback, build};
use crate::report::{Row, comparison};
use crate::results::Results;
use crate::rounds::Rounds;
use crate::scratch::{Scratch, fill};

#[derive(clap::Args)]
pub(crate) struct Args {
    #[arg(long, default_value_t = 300)]
    rounds: usize,
    #[arg(long, default_value_t = 5_000)]
    files: usize,
    #[arg(long, default_value_t = 300)]
    points: usize,
}

pub(crate) fn run(args: &Args, results: &Results) -> Result<()> {
    let scratch = Scratch::new()?;
    let program = build(scratch.path())?;
    let (project, home) = (scratch.project(), scratch.home());
    let (bare, below) = (scratch.path().join("bare"), project.join("deep/er"));
    fs::create_dir_all(&below)?;
    fs::create_dir(&bare)?;
    fill(&project, args.files, args.files)?;
    let takeback = Takeback::new(&program, &project, &home);
    takeback.run(&["record"]).time(&history(args.points)?)?;
    let status = ["status", "--line"];
    let cases = [
        ("`takeback --version`", takeback.run(&["--version"])),
        ("`status --line`, no store", Takeback::new(&program, &bare, &home).run(&status)),
        ("`status --line`", takeback.run(&status)),
        (
            "`status --line`, two folders below the root",
            Takeback::new(&program, &below, &home).run(&status),
        ),
        ("", EmptyProgram::build(scratch.path())?.commands(&project)),
    ];
    let rounds = Rounds { count: args.rounds, warm_up: 1, group: cases.len() };
    let mut times = rounds.run(cases.len(), |case, _| Ok(cases[case].1.time("")?.wall_ms))?;
    let empty = times.pop().unwrap_or_default();
    let rows: Vec<Row> = cases
        .iter()
        .zip(times)
        .map(|((name, _), ours)| Row::new(*name, &ours, "an empty process", &empty))
        .collect();
    let title = format!("{} files, {} points, {} rounds", args.files, args.points, args.rounds);
    println!("{}", comparison(&title, &rows));
    results.finish("line", rows).map(drop)
}

/// Events of ten sessions: the newest 50 points of each are kept.
fn history(points: usize) -> Result<String> {
    let mut events = String::new();
    for n in 0..points {
        let session = n % 10;
        writeln!(events, r#"{{"event":"prompt","session":"s{session}","text":"prompt {n}"}}"#)?;
        writeln!(events, r#"{{"event":"turn_end","session":"s{session}"}}"#)?;
    }
    Ok(events)
}
