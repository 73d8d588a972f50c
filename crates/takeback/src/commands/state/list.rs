//! `state list`: the executions, or the checkpoints of one.

use std::io::{self, Write};

use anstyle::Style;
use takeback_core::Workspace;
use takeback_store::States;
use takeback_store::state::{
    Attempt, BranchName, CheckpointId, Damage, Execution, ExecutionId, ListQuery, ListScope, Page,
    Record, StateError, Status, StepIndex,
};

use super::answer::KnownPoints;
use super::find_execution;
use crate::answers::{self, StateListAnswer};
use crate::args::{ListStateArgs, Options};
use crate::error::{CommandError, Kind};
use crate::place::{self, Store, quoted_text};
use crate::screen::{
    FAILURE, HINT, NAME, SUCCESS, Screen, WARNING, count, plain, shorten, shorten_path, width, wrap,
};
use crate::table::{Cell, Overflow, Table};
use crate::time::{ago, now};

pub(crate) fn list(
    options: &Options,
    args: &ListStateArgs,
    screen: &mut Screen,
) -> Result<u8, CommandError> {
    let place = place::open(options, Store::MustExist)?;
    if screen.json {
        let (answer, damaged) = answer(&place.workspace, args)?;
        say_damaged(options, &damaged)?;
        screen.json(&answer)?;
        return Ok(exit_code(&damaged));
    }
    match &args.execution {
        Some(execution) => {
            let execution = find_execution(&*place.workspace.states, execution)?;
            checkpoints(&place.workspace, &execution, args, screen)
        }
        None => executions(&place.workspace, args.limit, screen),
    }
}

/// The answer, and what is damaged.
pub(crate) fn answer(
    workspace: &Workspace,
    args: &ListStateArgs,
) -> Result<(StateListAnswer, Vec<Damage>), CommandError> {
    let states = &*workspace.states;
    let Some(execution) = &args.execution else {
        let all = states.executions()?;
        let kept = KnownPoints::of(workspace)?;
        let shown = all.executions.iter().take(args.limit.unwrap_or(usize::MAX));
        let shown = shown.map(|one| execution_answer(one, &kept)).collect();
        return Ok((StateListAnswer::Executions(shown), all.damaged));
    };
    let page = page(states, &find_execution(states, execution)?, args)?;
    let kept = KnownPoints::of(workspace)?;
    let records = page.records.iter().map(|record| kept.record(record));
    Ok((StateListAnswer::Checkpoints(records.collect()), page.damaged))
}

fn executions(
    workspace: &Workspace,
    limit: Option<usize>,
    screen: &mut Screen,
) -> Result<u8, CommandError> {
    let all = workspace.states.executions()?;
    let shown = &all.executions[..all.executions.len().min(limit.unwrap_or(usize::MAX))];
    screen.page()?;
    let time = now();
    let overflows = [
        Overflow::End(12),
        Overflow::All(3),
        Overflow::All(2),
        Overflow::End(12),
        Overflow::Nothing,
        Overflow::All(1),
    ];
    let mut table = Table::new(0, overflows);
    for execution in shown {
        let [step, status, age] = match &execution.head {
            Some(head) => [
                Cell::plain(short(&format!("{} {}", head.key.step, head.step_name))),
                status(head.status),
                Cell::new(HINT, ago(head.time, time)),
            ],
            None => [Cell::new(HINT, "no checkpoint"), Cell::default(), Cell::default()],
        };
        // The current branch first.
        let names: Vec<&str> = execution.branches.iter().map(BranchName::as_str).collect();
        let branch = names.join(", ");
        let checkpoints = usize::try_from(execution.checkpoints).unwrap_or(usize::MAX);
        table.rows.push([
            Cell::new(NAME, short(execution.id.as_str())),
            Cell::plain(shorten(&short(&branch), 24)),
            Cell::plain(count(checkpoints, "checkpoint")),
            step,
            status,
            age,
        ]);
    }
    table.print(&mut screen.out)?;
    print_damaged(&mut screen.out, &all.damaged)?;
    if all.executions.is_empty() && all.damaged.is_empty() {
        let hint = "`takeback state save` makes the first.";
        writeln!(screen.out, "No checkpoints found. {HINT}{hint}{HINT:#}")?;
    }
    let older = all.executions.len() - shown.len();
    if older > 0 {
        writeln!(screen.out, "{HINT}{older} older; -n shows more{HINT:#}")?;
    }
    Ok(exit_code(&all.damaged))
}

fn execution_answer(execution: &Execution, known: &KnownPoints) -> answers::Execution {
    answers::Execution {
        execution_id: execution.id.to_string(),
        branches: execution.branches.iter().map(ToString::to_string).collect(),
        session: execution.session.as_ref().map(|session| session.0.clone()),
        checkpoints: execution.checkpoints,
        head: execution.head.as_ref().map(|head| known.record(head)),
    }
}

fn page(
    states: &dyn States,
    execution: &ExecutionId,
    args: &ListStateArgs,
) -> Result<Page, CommandError> {
    let branch = args.branch.as_ref().map(BranchName::new).transpose().map_err(StateError::from)?;
    let scope = if args.all { ListScope::All } else { ListScope::Branch(branch.as_ref()) };
    let after = match &args.after {
        Some(id) => Some(place_of(states, execution, id)?),
        None => None,
    };
    Ok(states.list(&ListQuery { execution, scope, after, limit: args.limit })?)
}

fn checkpoints(
    workspace: &Workspace,
    execution: &ExecutionId,
    args: &ListStateArgs,
    screen: &mut Screen,
) -> Result<u8, CommandError> {
    let page = page(&*workspace.states, execution, args)?;
    let kept = KnownPoints::of(workspace)?;
    screen.page()?;
    print(&mut screen.out, &page, &kept)?;
    print_damaged(&mut screen.out, &page.damaged)?;
    if page.records.is_empty() && page.damaged.is_empty() {
        writeln!(screen.out, "No checkpoints found.")?;
    }
    if let (true, Some(last)) = (page.more, page.records.last()) {
        let after = quoted_text(&last.key.to_string());
        let hint = if after.len() <= 200 && plain(&after) == after {
            format!("More: --after {after} continues.")
        } else {
            // An id with control characters cannot be typed.
            "More: continue with --after and the last id that --json prints.".to_owned()
        };
        for line in wrap(&hint, width()) {
            writeln!(screen.out, "{HINT}{line}{HINT:#}")?;
        }
    }
    Ok(exit_code(&page.damaged))
}

/// The position of an id in the list. For an id without an attempt whose checkpoint is gone: after all
/// attempts of its step.
fn place_of(
    states: &dyn States,
    execution: &ExecutionId,
    id: &str,
) -> Result<(StepIndex, Attempt), CommandError> {
    let id: CheckpointId = id.parse().map_err(StateError::from)?;
    if id.execution != *execution {
        let text = format!("{id} is not a checkpoint of {execution}");
        return Err(CommandError::new(Kind::Usage, text));
    }
    let known = states.find(&id)?.map(|record| record.key.attempt);
    Ok((id.step, id.attempt.or(known).unwrap_or(Attempt::LAST)))
}

fn print(out: &mut dyn Write, page: &Page, kept: &KnownPoints) -> io::Result<()> {
    let time = now();
    let overflows = [
        Overflow::Start(12),
        Overflow::End(12),
        Overflow::Nothing,
        Overflow::All(2),
        Overflow::All(3),
        Overflow::All(1),
    ];
    let mut table = Table::new(0, overflows);
    for record in &page.records {
        table.rows.push([
            Cell::new(NAME, short_id(record)),
            Cell::plain(short(&record.step_name)),
            status(record.status),
            attempt(record),
            match kept.point_of(record) {
                Some(point) => Cell::plain(&point.to_string()[..8]),
                None => Cell::new(HINT, "-"),
            },
            Cell::new(HINT, ago(record.time, time)),
        ]);
    }
    table.print(out)
}

fn attempt(record: &Record) -> Cell {
    match record.key.attempt {
        Attempt::FIRST => Cell::default(),
        attempt => Cell::new(HINT, format!("attempt {attempt}")),
    }
}

pub(super) fn status(status: Status) -> Cell {
    Cell::new(style_of(status), status.name())
}

pub(super) fn style_of(status: Status) -> Style {
    match status {
        Status::Success => SUCCESS,
        Status::Failed => FAILURE,
        Status::Pending => WARNING,
    }
}

/// A name shortened for a table, since it may be long.
fn short(text: &str) -> String {
    shorten(&plain(text), 120)
}

/// Like [`short`], for an id: its end says more than its beginning.
fn short_id(record: &Record) -> String {
    shorten_path(&plain(&record.id().to_string()), 120)
}

fn print_damaged(out: &mut dyn Write, damaged: &[Damage]) -> io::Result<()> {
    for Damage { what, why } in damaged {
        writeln!(
            out,
            "{FAILURE}damaged{FAILURE:#}  {}  {HINT}{}{HINT:#}",
            plain(what),
            plain(why)
        )?;
    }
    Ok(())
}

fn say_damaged(options: &Options, damaged: &[Damage]) -> Result<(), CommandError> {
    let warnings = damaged.iter().map(|Damage { what, why }| format!("{what} is damaged: {why}"));
    place::print_warnings(options, &warnings.collect::<Vec<_>>())
}

/// Fails if anything is damaged, since the list is incomplete.
fn exit_code(damaged: &[Damage]) -> u8 {
    if damaged.is_empty() { 0 } else { Kind::Partly as u8 }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_is_damaged_is_named_below_the_rest() {
        let damaged = [Damage { what: "ckpt-e\u{1b}-1".to_owned(), why: "it is cut".to_owned() }];
        let mut out = Vec::new();
        print_damaged(&mut out, &damaged).unwrap();
        let printed = anstream::adapter::strip_bytes(&out).into_vec();
        assert_eq!(String::from_utf8(printed).unwrap(), "damaged  ckpt-e\\u{1b}-1  it is cut\n");
        assert_eq!((exit_code(&damaged), exit_code(&[])), (3, 0));
    }
}
