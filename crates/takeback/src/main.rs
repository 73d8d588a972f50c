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
mod marker;
mod missed;
mod probe;
mod watchlist;
mod heartbeat;
mod foreign_file;
mod installed;
mod plugs;
mod settings;
mod time;
mod log_file;
mod pager;
mod progress;
mod screen;
mod session_name;
mod table;
mod wire;
mod witness;
mod size;
mod ask;
mod commands;

use std::ffi::OsString;
use std::process::ExitCode;

use crate::args::Args;
use crate::error::CommandError;

fn main() -> ExitCode {
    let words: Vec<OsString> = std::env::args_os().collect();
    let args = match Args::of(&words) {
        Ok(args) => args,
        Err(error) if error.use_stderr() && error::wants_json(words.iter().cloned()) => {
            return CommandError::from(error).report(true);
        }
        Err(error) if error.use_stderr() && is_hook(&words) => {
            drop(error.print());
            return ExitCode::SUCCESS;
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

/// Agents take some exit codes of a hook for a refusal of what they are about to do.
fn is_hook(words: &[OsString]) -> bool {
    words.get(1).is_some_and(|word| word == "hook")
}
