//! `takeback-bench`: Takeback next to its peers and to the least the machine allows, in one run.
//!
//! One subcommand per comparison. Each prints a table of ratios and writes every measurement to
//! `bench/results/`. Times depend on the machine; the ratios mean something elsewhere, too.

#![expect(
    clippy::disallowed_methods,
    reason = "the bench plays the user and the agent: it writes trees and reads the clock"
)]
#![expect(
    clippy::print_stdout,
    clippy::print_stderr,
    reason = "tables go to standard output, progress to standard error"
)]

mod measure;
mod rounds;
mod report;
mod results;
mod scratch;
mod corpus;
mod edits;
mod text;
mod floor;
mod driver;
mod commands;

use std::error::Error;
use std::process::ExitCode;

use clap::{Parser, Subcommand};

use crate::commands::{
    capture, fidelity, fork, growth, hooks, ignored_folder, line, operations, points, questions,
    scale, screen, state, trees, watch,
};
use crate::driver::opencode;
use crate::results::{Results, ResultsArgs};

pub(crate) type Result<T> = std::result::Result<T, Box<dyn Error>>;

#[derive(Parser)]
#[command(version, about = "Takeback next to its peers, as ratios measured in one run")]
struct Arguments {
    #[command(subcommand)]
    command: Command,
    #[command(flatten)]
    results: ResultsArgs,
}

#[derive(Subcommand)]
enum Command {
    /// Saving a file before an edit, next to an empty process and to copying the file
    Capture(capture::Args),
    /// What each tool restores exactly, next to git and restic
    Fidelity,
    /// A copy of a whole workspace as it was at a point, next to `cp -a` and `git worktree add`
    Fork(fork::Args),
    /// `revert` and `adopt`, next to `rewind`
    Operations(operations::Args),
    /// Growth of the store, next to git and restic
    Growth(growth::Args),
    /// What one hook costs, next to an empty hook or to another build of Takeback
    Hooks(hooks::Args),
    /// A point of an unchanged tree with an ignored folder, next to one without
    IgnoredFolder(ignored_folder::Args),
    /// `takeback status --line`, next to an empty process
    Line(line::Args),
    /// A workspace with many points, next to one with few
    Points(points::Args),
    /// `log`, `blame` and other questions about many points, next to few, to plain `log` and to git
    Questions(questions::Args),
    /// Time and memory of very large trees and files
    Scale(scale::Args),
    /// A key press in `takeback chat` with a long transcript, next to a short one
    Screen(screen::Args),
    /// The state store, next to langgraph-checkpoint-sqlite and plain SQLite
    State(state::Args),
    /// Points and rewinds of real trees, next to git, opencode's commands, jj and restic
    Trees(trees::Args),
    /// A point of an unchanged tree with the watcher, next to `stat` of every file
    Watch(watch::Args),
}

fn main() -> ExitCode {
    let outcome = match std::env::args().nth(1).as_deref() {
        Some(measure::RUNNER) => measure::run_commands(),
        Some(opencode::RUNNER) => opencode::run_requests(),
        _ => run(Arguments::parse()),
    };
    match outcome {
        Ok(()) => ExitCode::SUCCESS,
        Err(error) => {
            eprintln!("error: {error}");
            ExitCode::FAILURE
        }
    }
}

fn run(arguments: Arguments) -> Result<()> {
    let results = Results::new(arguments.results)?;
    match arguments.command {
        Command::Capture(args) => capture::run(&args, &results),
        Command::Fidelity => fidelity::run(),
        Command::Fork(args) => fork::run(&args, &results),
        Command::Operations(args) => operations::run(&args, &results),
        Command::Growth(args) => growth::run(&args, &results),
        Command::Hooks(args) => hooks::run(&args, &results),
        Command::IgnoredFolder(args) => ignored_folder::run(&args, &results),
        Command::Line(args) => line::run(&args, &results),
        Command::Points(args) => points::run(&args, &results),
        Command::Questions(args) => questions::run(&args, &results),
        Command::Scale(args) => scale::run(&args, &results),
        Command::Screen(args) => screen::run(&args, &results),
        Command::State(args) => state::run(&args, &results),
        Command::Trees(args) => trees::run(&args, &results),
        Command::Watch(args) => watch::run(&args, &results),
    }
}
