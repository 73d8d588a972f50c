//! `state fork`: a branch that goes on from a checkpoint.

use std::io::Write as _;

use serde_json::json;
use takeback_store::StateStore;
use takeback_store::state::{BranchName, ExecutionId, StateError};

use super::checkpoint_named;
use crate::args::{ForkArgs, Options};
use crate::error::CommandError;
use crate::place::{self, Store};
use crate::screen::{GOOD, HINT, NAME, Screen, plain};

pub(crate) fn fork(
    options: &Options,
    args: &ForkArgs,
    screen: &mut Screen,
) -> Result<u8, CommandError> {
    let place = place::open_mended(options, Store::MustExist)?;
    let states = &*place.workspace.states;
    let key = checkpoint_named(states, &args.id)?.key;
    let branch = match &args.branch {
        Some(name) => BranchName::new(name.as_str()).map_err(StateError::from)?,
        None => free_name(states, &key.execution)?,
    };
    states.fork(&key, &branch)?;
    if screen.json {
        screen.json(&json!({
            "execution_id": key.execution,
            "branch": branch,
            "from": key.to_string(),
        }))?;
    } else if !screen.quiet {
        writeln!(
            screen.out,
            "{GOOD}Forked{GOOD:#} {NAME}{}{NAME:#}  {HINT}from {}; it is the current branch, files \
             stay as they are{HINT:#}",
            plain(branch.as_str()),
            plain(&key.to_string()),
        )?;
    }
    Ok(0)
}

fn free_name(states: &dyn StateStore, execution: &ExecutionId) -> Result<BranchName, StateError> {
    let all = states.executions()?.executions;
    let own = all.into_iter().find(|one| one.id == *execution);
    let taken = own.map(|own| own.branches).unwrap_or_default();
    let mut number = 1;
    loop {
        let name = BranchName::new(format!("fork-{number}"))?;
        if !taken.contains(&name) {
            return Ok(name);
        }
        number += 1;
    }
}
