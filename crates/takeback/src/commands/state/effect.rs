//! `state effect`: notes side effects that cannot be taken back.

use std::io::Write as _;

use takeback_store::States;
use takeback_store::state::{Effect, ExecutionId, IntentOutcome, NewEffect, StateError, StepIndex};

use super::answer;
use super::input::read_one;
use super::save::standard_input;
use crate::answers;
use crate::args::{EffectArgs, Options};
use crate::error::{CommandError, Kind};
use crate::place::{self, Store};
use crate::screen::{HINT, NAME, SUCCESS, Screen, WARNING, plain, shorten, width, wrap};
use crate::time::{ago, now};

pub(crate) fn effect(
    options: &Options,
    args: &EffectArgs,
    screen: &mut Screen,
) -> Result<u8, CommandError> {
    let execution = ExecutionId::new(args.execution.as_str()).map_err(StateError::from)?;
    if args.key.is_empty() {
        return Err(CommandError::new(Kind::Usage, "the effect's key is empty"));
    }
    let input = if args.withdraw { None } else { Some(read_one(&standard_input()?)?) };
    // The first step may have effects before any checkpoint is saved.
    let intends = !(args.withdraw || args.receipt);
    let store = if intends { Store::Create } else { Store::MustExist };
    let place = place::open(options, store)?;
    let states = &*place.workspace.states;
    let known = find(states, &execution, &args.key)?;
    let Some(input) = input else {
        return withdraw(states, &execution, &args.key, known.as_ref(), screen);
    };
    let (effect, is_new) = if args.receipt {
        // The first receipt counts.
        let is_new = known.as_ref().is_none_or(|known| known.receipt.is_none());
        if is_new {
            states.confirm_effect(&execution, &args.key, &input, now())?;
        }
        let effect = find(states, &execution, &args.key)?;
        (effect.ok_or_else(|| no_intent(&execution, &args.key))?, is_new)
    } else {
        let IntentOutcome { effect, is_new } = states.declare_effect(&NewEffect {
            execution: &execution,
            key: &args.key,
            step: args.step.map(StepIndex),
            intent: &input,
            time: now(),
        })?;
        (effect, is_new)
    };
    if screen.json {
        let (execution_id, effect) = (execution.to_string(), answer::effect(&effect));
        screen.json(&answers::EffectAnswer { execution_id, effect, is_new })?;
    } else if !screen.quiet || !is_new {
        print(&effect, is_new, screen)?;
    }
    Ok(0)
}

fn find(
    states: &dyn States,
    execution: &ExecutionId,
    key: &str,
) -> Result<Option<Effect>, StateError> {
    let all = match states.effects(execution) {
        Err(StateError::NoExecution(_)) => Vec::new(),
        all => all?,
    };
    Ok(all.into_iter().find(|effect| effect.key == key))
}

fn no_intent(execution: &ExecutionId, key: &str) -> StateError {
    StateError::NoIntent { execution: execution.clone(), key: key.to_owned() }
}

fn withdraw(
    states: &dyn States,
    execution: &ExecutionId,
    key: &str,
    known: Option<&Effect>,
    screen: &mut Screen,
) -> Result<u8, CommandError> {
    if !states.withdraw_effect(execution, key)? {
        return Err(match known {
            Some(_) => CommandError::new(Kind::Error, format!("the effect {key:?} has happened"))
                .hint("An effect with a receipt cannot be withdrawn."),
            None => no_intent(execution, key).into(),
        });
    }
    if screen.json {
        let (execution_id, key) = (execution.to_string(), key.to_owned());
        screen.json(&answers::WithdrawAnswer { execution_id, key, withdrawn: true })?;
    } else if !screen.quiet {
        writeln!(screen.out, "{SUCCESS}Withdrawn{SUCCESS:#} {NAME}{}{NAME:#}", plain(key))?;
    }
    Ok(0)
}

fn print(effect: &Effect, is_new: bool, screen: &mut Screen) -> Result<(), CommandError> {
    let time = now();
    let key = shorten(&plain(&effect.key), 60);
    let (style, done, since) = match (&effect.receipt, is_new) {
        (None, true) => (SUCCESS, "Intended", None),
        (None, false) => (WARNING, "Intended before", Some(effect.intended_at)),
        (Some(_), true) => (SUCCESS, "Received", None),
        (Some((_, at)), false) => (WARNING, "Happened before", Some(*at)),
    };
    let age = since.map_or_else(String::new, |since| format!("  {}", ago(since, time)));
    writeln!(screen.out, "{style}{done}{style:#} {NAME}{key}{NAME:#}{HINT}{age}{HINT:#}")?;
    if !is_new {
        let (text, value) = match &effect.receipt {
            Some((receipt, _)) => ("Do not repeat it. Its result: ", receipt),
            None => ("It may or may not have happened. Intended effect: ", &effect.intent),
        };
        let text = format!("{text}{}", shorten(&plain(&value.to_string()), 400));
        for line in wrap(&text, width()) {
            writeln!(screen.out, "{HINT}{line}{HINT:#}")?;
        }
    }
    Ok(())
}
