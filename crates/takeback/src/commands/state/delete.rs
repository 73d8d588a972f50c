//! `state delete`: a checkpoint, or an execution with all of them.

use std::io::Write as _;

use serde_json::json;
use takeback_store::StateStore;
use takeback_store::state::{ExecutionId, Record};

use super::{Named, named};
use crate::args::{Options, StateDeleteArgs};
use crate::ask;
use crate::error::CommandError;
use crate::place::{self, Store};
use crate::screen::{GOOD, HINT, NAME, STRONG, Screen, count, is_interactive, plain, width, wrap};

/// What is to go.
enum Goes {
    Checkpoint(Record),
    Execution { id: ExecutionId, checkpoints: u64 },
}

pub(crate) fn delete(
    options: &Options,
    args: &StateDeleteArgs,
    screen: &mut Screen,
) -> Result<u8, CommandError> {
    let place = place::open_mended(options, Store::MustExist)?;
    let states = &*place.workspace.states;
    let goes = match named(states, &args.name)? {
        Named::Checkpoint(record) => Goes::Checkpoint(record),
        Named::Execution(id, _) => {
            let all = states.executions()?.executions;
            let checkpoints = all.iter().find(|one| one.id == id).map_or(0, |one| one.checkpoints);
            Goes::Execution { id, checkpoints }
        }
    };
    if !args.yes && !args.dry_run && (!is_interactive() || screen.json) {
        return Err(ask::nobody("deletes checkpoints"));
    }
    if !(screen.json || args.yes && !args.dry_run) {
        preview(&goes, screen)?;
        if !args.dry_run && !ask::confirmed(screen)? {
            writeln!(screen.out, "Nothing was changed.")?;
            return Ok(0);
        }
    }
    let deleted = if args.dry_run { false } else { carry_out(states, &goes)? };
    tell(&goes, deleted, args.dry_run, screen)
}

fn preview(goes: &Goes, screen: &mut Screen) -> Result<(), CommandError> {
    let (title, what) = match goes {
        Goes::Checkpoint(record) => {
            let id = plain(&record.id().to_string());
            (
                format!("Delete checkpoint {id}"),
                "this attempt would be gone; others and later steps stay".to_owned(),
            )
        }
        Goes::Execution { id, checkpoints } => {
            let n = usize::try_from(*checkpoints).unwrap_or(usize::MAX);
            let what =
                format!("{} would be gone, with its branches and effects", count(n, "checkpoint"));
            (format!("Delete execution {}", plain(id.as_str())), what)
        }
    };
    for line in wrap(&title, width()) {
        writeln!(screen.out, "{STRONG}{line}{STRONG:#}")?;
    }
    writeln!(screen.out, "\n  {what}")?;
    writeln!(screen.out, "  {HINT}files are not touched; this cannot be undone{HINT:#}")?;
    Ok(())
}

fn carry_out(states: &dyn StateStore, goes: &Goes) -> Result<bool, CommandError> {
    let deleted = match goes {
        Goes::Checkpoint(record) => states.delete(&record.key)?,
        Goes::Execution { id, .. } => states.delete_execution(id)?,
    };
    states.collect()?;
    Ok(deleted)
}

fn tell(
    goes: &Goes,
    deleted: bool,
    dry_run: bool,
    screen: &mut Screen,
) -> Result<u8, CommandError> {
    let (execution, id, checkpoints) = match goes {
        Goes::Checkpoint(record) => (&record.key.execution, Some(record.key.to_string()), 1),
        Goes::Execution { id, checkpoints } => (id, None, *checkpoints),
    };
    if screen.json {
        screen.json(&json!({
            "execution_id": execution,
            "id": id,
            "checkpoints": checkpoints,
            "deleted": deleted,
        }))?;
    } else if !(screen.quiet || dry_run) {
        let name = plain(id.as_deref().unwrap_or(execution.as_str()));
        let n = usize::try_from(checkpoints).unwrap_or(usize::MAX);
        let what = count(n, "checkpoint");
        writeln!(screen.out, "{GOOD}Deleted{GOOD:#} {NAME}{name}{NAME:#}  {HINT}{what}{HINT:#}")?;
    }
    Ok(0)
}
