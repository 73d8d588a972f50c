//! `state show`: one checkpoint with its values.

use std::io::{self, Write};

use serde_json::Value;
use takeback_core::Workspace;
use takeback_store::States;
use takeback_store::state::{Checkpoint, StateError};

use super::answer::{KnownPoints, parent_of};
use super::find_checkpoint;
use super::list::style_of;

use crate::answers;
use crate::args::{Options, StateArgs};
use crate::commands::show::{PLAIN, detail};
use crate::error::CommandError;
use crate::place::{self, Store};
use crate::screen::{FAILURE, HEADING, NAME, Screen, plain, width, wrap};
use crate::time::{ago, clock, now};

pub(crate) fn show(
    options: &Options,
    args: &StateArgs,
    screen: &mut Screen,
) -> Result<u8, CommandError> {
    let place = place::open(options, Store::MustExist)?;
    if screen.json {
        screen.json(&answer(&place.workspace, &args.id)?)?;
        return Ok(0);
    }
    let checkpoint = whole(&*place.workspace.states, &args.id)?;
    let kept = KnownPoints::of(&place.workspace)?;
    screen.page()?;
    print_head(&mut screen.out, &checkpoint, &kept)?;
    print_values(&mut screen.out, &checkpoint)?;
    Ok(0)
}

fn whole(states: &dyn States, name: &str) -> Result<Checkpoint, CommandError> {
    let id = find_checkpoint(states, name)?.key.id();
    Ok(states.load(&id)?.ok_or(StateError::NotFound { id })?)
}

pub(crate) fn answer(
    workspace: &Workspace,
    name: &str,
) -> Result<answers::Checkpoint, CommandError> {
    let checkpoint = whole(&*workspace.states, name)?;
    Ok(KnownPoints::of(workspace)?.checkpoint(checkpoint))
}

/// Prints a checkpoint without its values.
pub(super) fn print_head(
    out: &mut dyn Write,
    checkpoint: &Checkpoint,
    kept: &KnownPoints,
) -> io::Result<()> {
    let record = &checkpoint.record;
    for line in wrap(&plain(&record.step_name), width()) {
        writeln!(out, "{HEADING}{line}{HEADING:#}")?;
    }
    detail(out, "id", NAME, &plain(&record.id().to_string()))?;
    detail(out, "saved", PLAIN, &format!("{} ({})", clock(record.time), ago(record.time, now())))?;
    detail(out, "status", style_of(record.status), record.status.name())?;
    if let Some(error) = &record.error {
        detail(out, "error", FAILURE, &plain(error))?;
    }
    let attempt = format!("{}, attempt {}", plain(record.branch.as_str()), record.key.attempt);
    detail(out, "branch", PLAIN, &attempt)?;
    if let Some(parent) = parent_of(record) {
        detail(out, "after", PLAIN, &plain(&parent))?;
    }
    match kept.point_of(record) {
        Some(point) => detail(out, "files", NAME, &point.to_string()),
        None if record.point.is_some() => detail(out, "files", PLAIN, "expired"),
        None => detail(out, "files", PLAIN, "none"),
    }
}

/// Prints the values as JSON. Empty ones are skipped.
pub(super) fn print_values(
    out: &mut dyn Write,
    checkpoint: &Checkpoint,
) -> Result<(), CommandError> {
    let values = &checkpoint.values;
    for (name, value) in [
        ("state", &values.state),
        ("context", &values.context),
        ("variables", &values.variables),
        ("metadata", &values.metadata),
    ] {
        if !is_empty(value) {
            writeln!(out, "\n{HEADING}{name}{HEADING:#}")?;
            for line in serde_json::to_string_pretty(value)?.lines() {
                writeln!(out, "{}", plain(line))?;
            }
        }
    }
    Ok(())
}

fn is_empty(value: &Value) -> bool {
    value.as_object().is_some_and(serde_json::Map::is_empty)
}
