//! `takeback`: checkpoint and rewind for coding agents, on the command line.
//!
//! Reads arguments, environment and settings, asks the library, prints, picks the exit code.

mod args;
mod error;
mod place;
mod settings;
mod time;
mod pager;
mod progress;
mod screen;
mod table;
mod wire;
mod commands;

use std::process::ExitCode;

use clap::Parser as _;

use crate::args::Args;

fn main() -> ExitCode {
    let args = Args::parse();
    args.options.color.write_global();
    let json = args.options.json;
    if json || args.options.quiet {
        progress::hide();
    }
    match commands::run(args) {
        Ok(code) => ExitCode::from(code),
        Err(error) => error.report(json),
    }
}
