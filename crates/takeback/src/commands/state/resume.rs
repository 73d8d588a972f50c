//! `state resume`: prints the state to continue from.

use std::io::{self, Write};

use takeback_core::Workspace;
use takeback_core::execution::{
    ResumeState, keep_last_messages, resume as resume_at, resume_last, retry_from_step,
};
use takeback_store::States;
use takeback_store::state::{BranchName, Effect, ExecutionId, StateError, StepIndex};

use super::answer::{KnownPoints, effect};
use super::show::{print_head, print_values};
use super::{StateTarget, find_target};
use crate::answers;
use crate::args::{Options, ResumeArgs};
use crate::error::{CommandError, Kind};
use crate::place::{self, Store};
use crate::screen::{HINT, Screen, WARNING, plain, shorten, shorten_path, width, wrap};

pub(crate) fn resume(
    options: &Options,
    args: &ResumeArgs,
    screen: &mut Screen,
) -> Result<u8, CommandError> {
    let place = place::open_recovered(options, Store::MustExist)?;
    let states = &*place.workspace.states;
    if screen.json {
        screen.json(&answer(&place.workspace, args)?)?;
        return Ok(0);
    }
    let (resumed, meant) = resume_state(states, args)?;
    let kept = KnownPoints::of(&place.workspace)?;
    screen.page()?;
    let record = &resumed.checkpoint.record;
    print_head(&mut screen.out, &resumed.checkpoint, &kept)?;
    print_effects(&mut screen.out, &resumed)?;
    print_values(&mut screen.out, &resumed.checkpoint)?;
    let head = states.head(&record.key.execution, None)?.and_then(|head| head.record);
    if let Some(head) =
        head.filter(|head| meant == TargetKind::Checkpoint && head.key != record.key)
    {
        writeln!(screen.out)?;
        let hint = format!(
            "The current branch is at {}. `takeback state rollback` moves it back here, `takeback \
             state fork` starts a new branch here.",
            shorten_path(&plain(&head.id().to_string()), 60)
        );
        for line in wrap(&hint, width()) {
            writeln!(screen.out, "{HINT}{line}{HINT:#}")?;
        }
    }
    Ok(0)
}

pub(crate) fn answer(
    workspace: &Workspace,
    args: &ResumeArgs,
) -> Result<answers::ResumeAnswer, CommandError> {
    let (resumed, _) = resume_state(&*workspace.states, args)?;
    Ok(answers::ResumeAnswer {
        checkpoint: KnownPoints::of(workspace)?.checkpoint(resumed.checkpoint),
        ambiguous_effects: resumed.ambiguous.iter().map(effect).collect(),
        happened_effects: resumed.happened.iter().map(effect).collect(),
    })
}

fn resume_state(
    states: &dyn States,
    args: &ResumeArgs,
) -> Result<(ResumeState, TargetKind), CommandError> {
    // A starting agent must be able to distinguish "nothing to resume" from an error.
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

/// What the user named.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum TargetKind {
    Checkpoint,
    Execution,
}

fn find(states: &dyn States, args: &ResumeArgs) -> Result<(ResumeState, TargetKind), CommandError> {
    let execution = match find_target(states, &args.name)? {
        StateTarget::Checkpoint(record) => {
            let unfit = match (&args.branch, args.from_step) {
                (Some(_), _) => Some("--branch"),
                (None, Some(_)) => Some("--from-step"),
                (None, None) => None,
            };
            return match unfit {
                Some(option) => {
                    let text = format!("{option} needs an execution, not a checkpoint");
                    Err(CommandError::new(Kind::Usage, text))
                }
                None => Ok((resume_at(states, &record.key.id())?, TargetKind::Checkpoint)),
            };
        }
        StateTarget::Execution(execution, _) => execution,
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
    Ok((resumed, TargetKind::Execution))
}

fn none_succeeded(execution: &ExecutionId) -> CommandError {
    let text = format!("No successful checkpoint found in execution {execution}");
    CommandError::new(Kind::Nothing, text).hint("Start the execution from its first step.")
}

fn print_effects(out: &mut dyn Write, resumed: &ResumeState) -> io::Result<()> {
    let execution = &resumed.checkpoint.record.key.execution;
    if !resumed.ambiguous.is_empty() {
        writeln!(out, "\n{WARNING}These may or may not have happened:{WARNING:#}")?;
        print_each(out, &resumed.ambiguous)?;
        let hint = format!(
            "Check, then run `takeback state effect {} KEY --receipt` if it did, or with --withdraw if not.",
            shorten(&plain(&place::quoted_text(execution.as_str())), 60)
        );
        for line in wrap(&hint, width()) {
            writeln!(out, "{HINT}{line}{HINT:#}")?;
        }
    }
    if !resumed.happened.is_empty() {
        writeln!(out, "\nThese happened in later steps and are not taken back:")?;
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
