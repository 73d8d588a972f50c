//! Checkpoint and rewind for coding agents.
//!
//! This crate is the `takeback` program, and the front door for Rust programs: [`Takeback::open`] opens a
//! folder with the program's own settings and defaults.
//!
//! ```
//! use takeback::{Takeback, Tool};
//! # let (project, home) = (tempfile::tempdir()?, tempfile::tempdir()?);
//! let file = project.path().join("cart.rs");
//! // `Takeback::open(project)` keeps its store in ~/.takeback.
//! let takeback = Takeback::open_with_home(project.path(), home.path())?;
//! let turn = takeback.prompt("session-1", "Add discounts")?;
//! turn.call("edit-1", Tool::edit("cart.rs"), || std::fs::write(&file, "total - discount"))?;
//! takeback.rewind(turn.point())?.apply()?;
//! assert!(!file.exists());
//! # Ok::<(), Box<dyn std::error::Error>>(())
//! ```
//!
//! [`core`], [`store`] and [`agents`] are the crates below it, for what has no method on [`Takeback`].

#![warn(missing_docs)]
#![cfg_attr(test, expect(clippy::disallowed_methods, reason = "tests lay out their own trees"))]

mod actions;
mod answer_writer;
mod answers;
mod args;
mod editor;
mod error;
mod forks;
mod place;
mod point;
mod questions;
mod stores;
mod marker;
mod missed_events;
mod probe;
mod watchlist;
mod heartbeat;
mod foreign_file;
mod install_record;
mod installed_agents;
mod settings;
mod time;
mod log_file;
mod pager;
mod progress;
mod screen;
mod session_name;
mod table;
mod witness;
mod size;
mod ask;
mod commands;
mod takeback;
mod turn;

use std::ffi::OsString;
use std::process::ExitCode;

use crate::args::Args;
use crate::error::CommandError;
pub use takeback_agents as agents;
pub use takeback_core as core;
pub use takeback_store as store;

pub use crate::actions::{ActionError, RestoreQuery, RevertQuery, RevertTarget, SettledConflict};
pub use crate::commands::bisect::{BisectQuery, BisectResult, BisectStep};
pub use crate::forks::{ForkComparison, ForkExtent, ForkReport, ForkedFile, Origin};
pub use crate::questions::{DiffEnd, DiffQuery, QuestionError, StatsQuery};
pub use crate::takeback::{OpenError, Rewind, Step, Takeback};
pub use crate::turn::{OpenCall, RecordingGap, Tool, Turn};

/// What the program's manual pages are made from.
#[doc(hidden)]
pub mod command_line {
    /// All commands with their arguments.
    #[must_use]
    pub fn program() -> clap::Command {
        crate::args::command_line()
    }

    /// The commands in groups, each with its title.
    #[must_use]
    pub fn groups() -> &'static [(&'static str, &'static [&'static str])] {
        crate::args::groups::GROUPS
    }

    /// Lines to type, with what they do, for a command (`state save`).
    #[must_use]
    pub fn examples(command: &str) -> &'static [(&'static str, &'static str)] {
        crate::args::examples::examples_of(command)
    }
}

/// Runs the command line of this process and returns its exit code.
#[must_use]
pub fn run() -> ExitCode {
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

/// Agents treat some exit codes of a hook as a refusal of the pending action.
fn is_hook(words: &[OsString]) -> bool {
    words.get(1).is_some_and(|word| word == "hook")
}
