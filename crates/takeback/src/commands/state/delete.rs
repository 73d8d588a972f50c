//! `state delete`: deletes a checkpoint, or an execution with all its checkpoints.

use std::io::Write as _;

use takeback_store::States;
use takeback_store::state::{ExecutionId, Record};

use super::{StateTarget, find_target};
use crate::answers;
use crate::args::{Options, StateDeleteArgs};
use crate::ask;
use crate::error::CommandError;
use crate::place::{self, Store};
use crate::screen::{
    HEADING, HINT, NAME, SUCCESS, Screen, count, is_interactive, plain, width, wrap,
};

/// What to delete.
enum DeleteTarget {
    Checkpoint(Record),
    Execution { id: ExecutionId, checkpoints: u64 },
}

pub(crate) fn delete(
    options: &Options,
    args: &StateDeleteArgs,
    screen: &mut Screen,
) -> Result<u8, CommandError> {
    let place = place::open_recovered(options, Store::MustExist)?;
    let states = &*place.workspace.states;
    let target = DeleteTarget::find(states, &args.name)?;
    if !args.yes && !args.dry_run && (!is_interactive() || screen.json) {
        return Err(ask::needs_confirmation("deletes checkpoints"));
    }
    if !(screen.json || args.yes && !args.dry_run) {
        preview(&target, screen)?;
        if !args.dry_run && !ask::confirmed(screen)? {
            writeln!(screen.out, "Nothing was changed.")?;
            return Ok(0);
        }
    }
    let deleted = if args.dry_run { false } else { delete_target(states, &target)? };
    print_result(&target, deleted, args.dry_run, screen)
}

/// Deletes without asking.
pub(crate) fn delete_now(
    states: &dyn States,
    name: &str,
    dry_run: bool,
) -> Result<answers::StateDeleteAnswer, CommandError> {
    let target = DeleteTarget::find(states, name)?;
    let deleted = if dry_run { false } else { delete_target(states, &target)? };
    Ok(target.answer(deleted))
}

impl DeleteTarget {
    fn find(states: &dyn States, name: &str) -> Result<Self, CommandError> {
        Ok(match find_target(states, name)? {
            StateTarget::Checkpoint(record) => Self::Checkpoint(record),
            StateTarget::Execution(id, _) => {
                let all = states.executions()?.executions;
                let own = all.iter().find(|one| one.id == id);
                let checkpoints = own.map_or(0, |one| one.checkpoints);
                Self::Execution { id, checkpoints }
            }
        })
    }

    /// The execution, the single checkpoint if only one is deleted, and the number of checkpoints.
    fn parts(&self) -> (&ExecutionId, Option<String>, u64) {
        match self {
            Self::Checkpoint(record) => (&record.key.execution, Some(record.key.to_string()), 1),
            Self::Execution { id, checkpoints } => (id, None, *checkpoints),
        }
    }

    fn answer(&self, deleted: bool) -> answers::StateDeleteAnswer {
        let (execution, id, checkpoints) = self.parts();
        answers::StateDeleteAnswer { execution_id: execution.to_string(), id, checkpoints, deleted }
    }
}

fn preview(target: &DeleteTarget, screen: &mut Screen) -> Result<(), CommandError> {
    let (title, what) = match target {
        DeleteTarget::Checkpoint(record) => {
            let id = plain(&record.id().to_string());
            (
                format!("Delete checkpoint {id}"),
                "this attempt would be deleted; others and later steps stay".to_owned(),
            )
        }
        DeleteTarget::Execution { id, checkpoints } => {
            let n = usize::try_from(*checkpoints).unwrap_or(usize::MAX);
            let what = format!(
                "{} would be deleted, with its branches and effects",
                count(n, "checkpoint")
            );
            (format!("Delete execution {}", plain(id.as_str())), what)
        }
    };
    for line in wrap(&title, width()) {
        writeln!(screen.out, "{HEADING}{line}{HEADING:#}")?;
    }
    writeln!(screen.out, "\n  {what}")?;
    writeln!(screen.out, "  {HINT}files are not touched; this cannot be undone{HINT:#}")?;
    Ok(())
}

fn delete_target(states: &dyn States, target: &DeleteTarget) -> Result<bool, CommandError> {
    let deleted = match target {
        DeleteTarget::Checkpoint(record) => states.delete(&record.key)?,
        DeleteTarget::Execution { id, .. } => states.delete_execution(id)?,
    };
    states.collect()?;
    Ok(deleted)
}

fn print_result(
    target: &DeleteTarget,
    deleted: bool,
    dry_run: bool,
    screen: &mut Screen,
) -> Result<u8, CommandError> {
    if screen.json {
        screen.json(&target.answer(deleted))?;
    } else if !(screen.quiet || dry_run) {
        let (execution, id, checkpoints) = target.parts();
        let name = plain(id.as_deref().unwrap_or(execution.as_str()));
        let n = usize::try_from(checkpoints).unwrap_or(usize::MAX);
        let what = count(n, "checkpoint");
        writeln!(
            screen.out,
            "{SUCCESS}Deleted{SUCCESS:#} {NAME}{name}{NAME:#}  {HINT}{what}{HINT:#}"
        )?;
    }
    Ok(0)
}
