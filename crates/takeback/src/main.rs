//! `takeback`: checkpoint and rewind for coding agents, on the command line.
//!
//! Reads arguments, environment and settings, asks the library, prints, picks the exit code.

#![cfg_attr(test, expect(clippy::disallowed_methods, reason = "tests lay out their own trees"))]

mod answer;
mod args;
mod error;
mod place;
mod point;
mod stores;
mod settings;
mod time;
mod log_file;
mod pager;
mod progress;
mod screen;
mod table;
mod wire;
mod size;
mod ask;
mod commands;

use std::process::ExitCode;

use clap::Parser as _;

use crate::args::Args;
use crate::error::CommandError;

fn main() -> ExitCode {
    let args = match Args::try_parse() {
        Ok(args) => args,
        Err(error) if error.use_stderr() && error::wants_json(std::env::args_os()) => {
            return CommandError::from(error).report(true);
        }
        Err(error) => error.exit(),
    };
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
