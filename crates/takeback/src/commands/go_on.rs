//! `go-on`: the look at the tree that `hook` left to another process.
//!
//! Standard input is the event's file, locked: whoever waits for it is let through when this process
//! ends, however it ends. Nobody reads what it says; what went wrong is where `hook` would have put it.

use std::fs::File;
use std::io;
use std::os::fd::AsFd as _;
use std::path::Path;

use takeback_core::deferred::Deferred;
use takeback_core::record_deferred;

use super::hook::{lacking, whole};
use crate::args::{GoOnArgs, Options};
use crate::heartbeat::{Beat, leave};
use crate::log_file::{Level, LogFile};
use crate::place::{self, Store, environment};
use crate::progress;
use crate::time::now;

pub(crate) fn go_on(options: &Options, args: &GoOnArgs) -> u8 {
    progress::hide();
    let Ok(home) = place::home(options) else { return 1 };
    let problem = match recorded(options, &home, args) {
        Ok(None) => return 0,
        Ok(Some(lacking)) => lacking,
        Err(why) => why,
    };
    let log = LogFile::of_hooks(&home, |name| environment(name)?.into_string().ok());
    log.add(now(), Level::Error, &format!("{}: {problem}", args.agent));
    let beat = Beat { problem: Some(problem), ..Beat::default() };
    leave(&home, &args.agent, &args.session, now(), &beat);
    1
}

/// What is not in the log as it should be.
fn recorded(options: &Options, home: &Path, args: &GoOnArgs) -> Result<Option<String>, String> {
    let root = place::start(options).map_err(|error| error.line())?;
    let mut place = place::open_at(&root, home, Store::MustExist).map_err(|error| error.line())?;
    let workspace = &mut place.workspace;
    workspace.limits = place.settings.agent_limits();
    let file = io::stdin().as_fd().try_clone_to_owned().map(File::from);
    let deferred = file
        .and_then(|file| Deferred::taken_over(&workspace.store_dir, &args.event, file))
        .map_err(|error| format!("{}: {error}", args.event))?;
    let Some(deferred) = deferred else { return Ok(None) };
    let time = deferred.spooled.time;
    workspace.ambient.now = Box::new(move || time);
    let recorded = record_deferred(workspace, deferred).map_err(|error| whole(&error))?;
    Ok(lacking(&recorded))
}
