//! `state export`: writes an execution with all its checkpoints and effects as one JSON document.

use std::io::{self, Write};
use std::path::Path;

use takeback_core::exchange::{FileError, Overwrite, write_file};
use takeback_store::States;
use takeback_store::state::{ExecutionId, ListQuery, ListScope, StateError};

use super::answer::{KnownPoints, effect};
use super::find_execution;
use crate::answers;
use crate::args::{Options, StateExportArgs};
use crate::error::CommandError;
use crate::place::{self, Store};
use crate::screen::{HINT, SUCCESS, Screen, count, plain};

pub(crate) fn export(
    options: &Options,
    args: &StateExportArgs,
    screen: &mut Screen,
) -> Result<u8, CommandError> {
    let place = place::open(options, Store::MustExist)?;
    let states = &*place.workspace.states;
    let execution = find_execution(states, &args.execution)?;
    let kept = KnownPoints::of(&place.workspace)?;
    let Some(file) = args.file.as_deref().filter(|file| *file != Path::new("-")) else {
        let mut out = screen.bare()?;
        write(states, &execution, &kept, &mut out)?;
        out.flush()?;
        return Ok(0);
    };
    let checkpoints: usize = write_file(file, Overwrite::No, |sink| {
        let mut sink = io::BufWriter::new(sink);
        let checkpoints = write(states, &execution, &kept, &mut sink)?;
        sink.flush()?;
        Ok::<_, CommandError>(checkpoints)
    })
    .map_err(without_force)?;
    if screen.json {
        let (execution_id, file) = (execution.to_string(), answers::place(file));
        screen.json(&answers::StateExportAnswer { execution_id, file, checkpoints })?;
    } else if !screen.quiet {
        writeln!(
            screen.out,
            "{SUCCESS}Exported{SUCCESS:#} {}  {HINT}{} in {}{HINT:#}",
            plain(execution.as_str()),
            count(checkpoints, "checkpoint"),
            plain(&file.to_string_lossy()),
        )?;
    }
    Ok(0)
}

/// This command has no `--force`.
fn without_force(error: CommandError) -> CommandError {
    match error.source.downcast_ref::<FileError>() {
        Some(FileError::Taken { .. }) => {
            CommandError { hints: vec!["Choose another name.".to_owned()], ..error }
        }
        _ => error,
    }
}

/// Writes the document one checkpoint at a time, since all of them may not fit into memory. Returns their
/// number. A damaged checkpoint is an error.
fn write(
    states: &dyn States,
    execution: &ExecutionId,
    kept: &KnownPoints,
    out: &mut dyn Write,
) -> Result<usize, CommandError> {
    let all = states.executions()?.executions;
    let own = all.into_iter().find(|one| one.id == *execution);
    let own = own.ok_or_else(|| StateError::NoExecution(execution.clone()))?;
    let mut branches = Vec::new();
    for name in &own.branches {
        let head = states.head(execution, Some(name))?.and_then(|head| head.record);
        let head = head.map(|record| record.key.to_string());
        branches.push(answers::Branch { name: name.to_string(), head });
    }
    let query = ListQuery { execution, scope: ListScope::All, after: None, limit: None };
    let page = states.list(&query)?;
    if let Some(damaged) = page.damaged.into_iter().next() {
        return Err(StateError::Damaged { what: damaged.what, why: damaged.why }.into());
    }
    let effects = states.effects(execution)?;
    let head = serde_json::to_string(&answers::StateExportHead {
        execution_id: execution.to_string(),
        session: own.session.map(|session| session.0),
        branches,
        effects: effects.iter().map(effect).collect(),
    })?;
    let open = head.strip_suffix('}').unwrap_or(&head);
    write!(out, "{open},\"checkpoints\":[")?;
    for (at, record) in page.records.iter().enumerate() {
        writeln!(out, "{}", if at == 0 { "" } else { "," })?;
        let id = record.key.id();
        let checkpoint = states.load(&id)?.ok_or(StateError::NotFound { id })?;
        serde_json::to_writer(&mut *out, &kept.checkpoint(checkpoint))?;
    }
    writeln!(out, "\n]}}")?;
    Ok(page.records.len())
}
