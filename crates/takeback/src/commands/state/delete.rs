//! `state delete`: a checkpoint, or an execution with all of them.

use std::io::Write as _;

use takeback_store::States;
use takeback_store::state::{ExecutionId, Record};

use super::{Named, named};
use crate::answers;
use crate::args::{Options, StateDeleteArgs};
use crate::ask;
use crate::error::CommandError;
use crate::place::{self, Store};
use crate::screen::{
    HEADING, HINT, NAME, SUCCESS, Screen, count, is_interactive, plain, width, wrap,
};

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
    let goes = Goes::find(states, &args.name)?;
    if !args.yes && !args.dry_run && (!is_interactive() || screen.json) {
        return Err(ask::needs_confirmation("deletes checkpoints"));
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

/// Without a question.
pub(crate) fn delete_now(
    states: &dyn States,
    name: &str,
    dry_run: bool,
) -> Result<answers::StateDeleteAnswer, CommandError> {
    let goes = Goes::find(states, name)?;
    let deleted = if dry_run { false } else { carry_out(states, &goes)? };
    Ok(goes.answer(deleted))
}

impl Goes {
    fn find(states: &dyn States, name: &str) -> Result<Self, CommandError> {
        Ok(match named(states, name)? {
            Named::Checkpoint(record) => Self::Checkpoint(record),
            Named::Execution(id, _) => {
                let all = states.executions()?.executions;
                let own = all.iter().find(|one| one.id == id);
                let checkpoints = own.map_or(0, |one| one.checkpoints);
                Self::Execution { id, checkpoints }
            }
        })
    }

    /// The execution, the checkpoint if it is one alone, and how many there are.
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

fn preview(goes: &Goes, screen: &mut Screen) -> Result<(), CommandError> {
    let (title, what) = match goes {
        Goes::Checkpoint(record) => {
            let id = plain(&record.id().to_string());
            (
                format!("Delete checkpoint {id}"),
                "this attempt would be deleted; others and later steps stay".to_owned(),
            )
        }
        Goes::Execution { id, checkpoints } => {
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

fn carry_out(states: &dyn States, goes: &Goes) -> Result<bool, CommandError> {
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
    if screen.json {
        screen.json(&goes.answer(deleted))?;
    } else if !(screen.quiet || dry_run) {
        let (execution, id, checkpoints) = goes.parts();
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
