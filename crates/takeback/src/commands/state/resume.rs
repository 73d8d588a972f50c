//! `state resume`: the state to go on from.

use std::io::{self, Write};

use serde::Serialize;
use takeback_core::Workspace;
use takeback_core::execution::{
    Resumed, keep_last_messages, resume as resume_at, resume_last, retry_from_step,
};
use takeback_store::StateStore;
use takeback_store::state::{BranchName, Effect, ExecutionId, StateError, StepIndex};

use super::show::{print_head, print_values};
use super::wire::{KeptPoints, WireCheckpoint, WireEffect};
use super::{Named, named};
use crate::args::{Options, ResumeArgs};
use crate::error::{CommandError, Kind};
use crate::place::{self, Store};
use crate::screen::{CARE, HINT, Screen, plain, shorten, shorten_path, width, wrap};
use crate::wire::{self, Json};

#[derive(Serialize)]
struct ToldResumed<'a> {
    #[serde(flatten)]
    checkpoint: WireCheckpoint<'a>,
    ambiguous_effects: Vec<WireEffect<'a>>,
    happened_effects: Vec<WireEffect<'a>>,
}

pub(crate) fn resume(
    options: &Options,
    args: &ResumeArgs,
    screen: &mut Screen,
) -> Result<u8, CommandError> {
    let place = place::open_mended(options, Store::MustExist)?;
    let states = &*place.workspace.states;
    if screen.json {
        screen.json(&told(&place.workspace, args)?)?;
        return Ok(0);
    }
    let (resumed, meant) = go_on(states, args)?;
    let kept = KeptPoints::of(&place.workspace)?;
    screen.page()?;
    let record = &resumed.checkpoint.record;
    print_head(&mut screen.out, &resumed.checkpoint, &kept)?;
    print_effects(&mut screen.out, &resumed)?;
    print_values(&mut screen.out, &resumed.checkpoint)?;
    let head = states.head(&record.key.execution, None)?.and_then(|head| head.record);
    if let Some(head) = head.filter(|head| meant == Meant::Checkpoint && head.key != record.key) {
        writeln!(screen.out)?;
        let hint = format!(
            "The current branch stands at {}. `takeback state rollback` brings it back here, \
             `takeback state fork` goes on from here on a branch of its own.",
            shorten_path(&plain(&head.id().to_string()), 60)
        );
        for line in wrap(&hint, width()) {
            writeln!(screen.out, "{HINT}{line}{HINT:#}")?;
        }
    }
    Ok(0)
}

pub(crate) fn told(workspace: &Workspace, args: &ResumeArgs) -> Result<Json, CommandError> {
    let (resumed, _) = go_on(&*workspace.states, args)?;
    let kept = KeptPoints::of(workspace)?;
    Ok(wire::json(&ToldResumed {
        checkpoint: kept.checkpoint(&resumed.checkpoint),
        ambiguous_effects: resumed.ambiguous.iter().map(WireEffect::from).collect(),
        happened_effects: resumed.happened.iter().map(WireEffect::from).collect(),
    })?)
}

fn go_on(states: &dyn StateStore, args: &ResumeArgs) -> Result<(Resumed, Meant), CommandError> {
    // An agent that starts must be able to tell `nothing to go on from` from trouble.
    let (mut resumed, meant) = find(states, args).map_err(|error| {
        let state = error.source.downcast_ref::<StateError>();
        let is_nothing =
            matches!(state, Some(StateError::NoExecution(_) | StateError::NoSuccessBefore { .. }));
        if is_nothing { CommandError { kind: Kind::Nothing, ..error } } else { error }
    })?;
    if let Some(most) = args.last_messages {
        keep_last_messages(&mut resumed.checkpoint.values, most);
    }
    Ok((resumed, meant))
}

/// What was named.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Meant {
    Checkpoint,
    Execution,
}

fn find(states: &dyn StateStore, args: &ResumeArgs) -> Result<(Resumed, Meant), CommandError> {
    let execution = match named(states, &args.name)? {
        Named::Checkpoint(record) => {
            let unfit = match (&args.branch, args.from_step) {
                (Some(_), _) => Some("--branch"),
                (None, Some(_)) => Some("--from-step"),
                (None, None) => None,
            };
            return match unfit {
                Some(option) => {
                    let text = format!("{option} goes with an execution, not with a checkpoint");
                    Err(CommandError::new(Kind::Usage, text))
                }
                None => Ok((resume_at(states, &record.key.id())?, Meant::Checkpoint)),
            };
        }
        Named::Execution(execution, _) => execution,
    };
    let branch = args.branch.as_ref().map(BranchName::new).transpose().map_err(StateError::from)?;
    let resumed = match args.from_step {
        Some(step) => {
            if let Some(branch) = &branch {
                states.switch(&execution, branch)?;
            }
            retry_from_step(states, &execution, StepIndex(step), args.max_retries)?
        }
        None => {
            let resumed = resume_last(states, &execution, branch.as_ref())?;
            resumed.ok_or_else(|| none_succeeded(&execution))?
        }
    };
    Ok((resumed, Meant::Execution))
}

fn none_succeeded(execution: &ExecutionId) -> CommandError {
    let text = format!("No successful checkpoint found in execution {execution}");
    CommandError::new(Kind::Nothing, text).hint("Begin the execution at its beginning.")
}

fn print_effects(out: &mut dyn Write, resumed: &Resumed) -> io::Result<()> {
    let execution = &resumed.checkpoint.record.key.execution;
    if !resumed.ambiguous.is_empty() {
        writeln!(out, "\n{CARE}Nobody knows whether these happened:{CARE:#}")?;
        print_each(out, &resumed.ambiguous)?;
        let hint = format!(
            "Look, then tell: `takeback state effect {} KEY --receipt` if one did, --withdraw if not.",
            shorten(&plain(&place::quoted_text(execution.as_str())), 60)
        );
        for line in wrap(&hint, width()) {
            writeln!(out, "{HINT}{line}{HINT:#}")?;
        }
    }
    if !resumed.happened.is_empty() {
        writeln!(out, "\nThese happened in later steps, and stay done:")?;
        print_each(out, &resumed.happened)?;
    }
    Ok(())
}

fn print_each(out: &mut dyn Write, effects: &[Effect]) -> io::Result<()> {
    for effect in effects {
        let step = effect.step.map_or_else(String::new, |step| format!("step {step}  "));
        let line = format!("  {}  {step}{}", plain(&effect.key), plain(&effect.intent.to_string()));
        writeln!(out, "{}", shorten(&line, width()))?;
    }
    Ok(())
}
