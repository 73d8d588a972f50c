//! `state fork`: starts a branch at a checkpoint.

use std::io::Write as _;

use takeback_store::States;
use takeback_store::state::{BranchName, CheckpointKey, ExecutionId, StateError};

use super::find_checkpoint;
use crate::answers;
use crate::args::{ForkArgs, Options};
use crate::error::CommandError;
use crate::place::{self, Store};
use crate::screen::{HINT, NAME, SUCCESS, Screen, plain};

pub(crate) fn fork(
    options: &Options,
    args: &ForkArgs,
    screen: &mut Screen,
) -> Result<u8, CommandError> {
    let place = place::open_recovered(options, Store::MustExist)?;
    let (key, branch) = fork_now(&*place.workspace.states, args)?;
    if screen.json {
        screen.json(&answer(&key, &branch))?;
    } else if !screen.quiet {
        writeln!(
            screen.out,
            "{SUCCESS}Forked{SUCCESS:#} {NAME}{}{NAME:#}  {HINT}from {}; it is now the current branch; files are not touched{HINT:#}",
            plain(branch.as_str()),
            plain(&key.to_string()),
        )?;
    }
    Ok(0)
}

/// The checkpoint at which the new branch starts, and the branch.
pub(crate) fn fork_now(
    states: &dyn States,
    args: &ForkArgs,
) -> Result<(CheckpointKey, BranchName), CommandError> {
    let key = find_checkpoint(states, &args.id)?.key;
    let branch = match &args.branch {
        Some(name) => BranchName::new(name.as_str()).map_err(StateError::from)?,
        None => free_name(states, &key.execution)?,
    };
    states.fork(&key, &branch)?;
    Ok((key, branch))
}

pub(crate) fn answer(key: &CheckpointKey, branch: &BranchName) -> answers::StateForkAnswer {
    answers::StateForkAnswer {
        execution_id: key.execution.to_string(),
        branch: branch.to_string(),
        from: key.to_string(),
    }
}

fn free_name(states: &dyn States, execution: &ExecutionId) -> Result<BranchName, StateError> {
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
