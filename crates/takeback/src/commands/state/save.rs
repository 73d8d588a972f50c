//! `state save`: saves one step, with a point of the files.

use std::io::{self, Read as _, Write as _};

use takeback_core::Workspace;
use takeback_core::execution::save_step;
use takeback_ipc::LARGEST_MESSAGE;
use takeback_store::state::{NewCheckpoint, SaveOutcome};
use takeback_store::{NotCapturedReason, Seq, SessionId, WorkPath};

use super::answer::checkpoint_record;
use super::input::{CheckpointInput, InputError, read_one};
use crate::answers;
use crate::args::{Options, SaveArgs};
use crate::commands::cleanup::clean_up_if_due;
use crate::error::{CommandError, Kind};
use crate::place::{self, Store, environment};
use crate::screen::{HINT, NAME, SUCCESS, Screen, WARNING, name, plain};
use crate::time::now;

pub(crate) fn save(
    options: &Options,
    args: &SaveArgs,
    screen: &mut Screen,
) -> Result<u8, CommandError> {
    let mut given = CheckpointInput::read(read_one(&standard_input()?)?)?;
    given.session = session(args)?.or(given.session).or_else(parent_session);
    let switched_off = place::not_enabled(options)?;
    let mut place = place::open(options, Store::Create)?;
    let files = if args.no_files || switched_off.is_some() { Files::Not } else { Files::Too };
    mend_unless_locked(&mut place.workspace)?;
    clean_up_if_due(&mut place, options);
    let kept = save_with_files(&mut place.workspace, &given, files)?;
    let record = &kept.saved.record;
    if screen.json {
        screen.json(&answer(&kept))?;
        return Ok(0);
    }
    if screen.quiet {
        return Ok(0);
    }
    let done = if kept.saved.is_new { "Saved" } else { "Saved already" };
    let files = match (record.point, &switched_off) {
        (Some(point), _) => format!("with the files of {}", &point.to_string()[..8]),
        (None, Some(_)) => "without files: recording is off".to_owned(),
        (None, None) if args.no_files => "without files".to_owned(),
        (None, None) => "without files: the workspace is locked".to_owned(),
    };
    writeln!(
        screen.out,
        "{SUCCESS}{done}{SUCCESS:#} {NAME}{}{NAME:#}  {HINT}{files}{HINT:#}",
        plain(&record.id().to_string())
    )?;
    const MOST: usize = 20;
    for (path, reason) in kept.not_captured.iter().take(MOST) {
        let (path, why) = (name(path), reason.describe());
        writeln!(screen.out, "  {WARNING}not captured:{WARNING:#} {path}  {HINT}{why}{HINT:#}")?;
    }
    if kept.not_captured.len() > MOST {
        writeln!(screen.out, "  {HINT}and {} more{HINT:#}", kept.not_captured.len() - MOST)?;
    }
    Ok(0)
}

/// Finishes an interrupted rollback first: it may move the head past what is saved now. A rollback that is
/// still running does not block saving.
pub(crate) fn mend_unless_locked(workspace: &mut Workspace) -> Result<(), CommandError> {
    match place::finish_rewind(workspace) {
        Err(error) if error.kind == Kind::Locked => Ok(()),
        mended => mended,
    }
}

pub(crate) fn answer(kept: &SavedStep) -> answers::SaveAnswer {
    answers::SaveAnswer {
        record: checkpoint_record(&kept.saved.record),
        is_new: kept.saved.is_new,
        not_captured: answers::not_captured(&kept.not_captured),
    }
}

fn session(args: &SaveArgs) -> Result<Option<SessionId>, CommandError> {
    match &args.session {
        Some(name) if name.is_empty() => {
            Err(CommandError::new(Kind::Usage, "the session's name is empty"))
        }
        name => Ok(name.clone().map(SessionId)),
    }
}

/// The session of the surrounding `takeback run`.
fn parent_session() -> Option<SessionId> {
    environment(SESSION_VARIABLE)?.into_string().ok().map(SessionId)
}

/// The variable in which `run` passes its session to the command.
pub(crate) const SESSION_VARIABLE: &str = "TAKEBACK_SESSION";

/// Reads all of it, up to the maximum size of a message.
pub(super) fn standard_input() -> Result<Vec<u8>, CommandError> {
    let mut text = Vec::new();
    io::stdin().lock().take(LARGEST_MESSAGE as u64 + 1).read_to_end(&mut text)?;
    if text.len() > LARGEST_MESSAGE {
        return Err(InputError::TooLarge.into());
    }
    Ok(text)
}

/// Whether to make a point of the files, too.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Files {
    Too,
    Not,
}

/// A saved checkpoint and the point of its files.
pub(crate) struct SavedStep {
    pub(crate) saved: SaveOutcome,
    /// The head of the log.
    pub(crate) seq: Seq,
    pub(crate) not_captured: Vec<(WorkPath, NotCapturedReason)>,
}

pub(crate) fn save_with_files(
    workspace: &mut Workspace,
    given: &CheckpointInput,
    files: Files,
) -> Result<SavedStep, CommandError> {
    let own = SessionId(given.execution.to_string());
    let new = NewCheckpoint {
        execution: &given.execution,
        branch: given.branch.as_ref(),
        step: given.step,
        attempt: given.attempt,
        step_name: &given.step_name,
        time: given.time.unwrap_or_else(now),
        status: given.status,
        error: given.error.as_deref(),
        values: &given.values,
        expect: given.expect.borrowed(),
        point: None,
        session: Some(given.session.as_ref().unwrap_or(&own)),
    };
    match files {
        Files::Too => {
            let (saved, recorded) = save_step(workspace, &new)?;
            Ok(SavedStep { saved, seq: recorded.seq, not_captured: recorded.not_captured })
        }
        Files::Not => {
            let saved = workspace.states.save(&new)?;
            Ok(SavedStep { saved, seq: workspace.store.head()?.seq, not_captured: Vec::new() })
        }
    }
}

/// The checkpoint in a `step` event of `record`.
pub(crate) fn of_event(
    session: String,
    checkpoint: serde_json::Value,
) -> Result<CheckpointInput, InputError> {
    let given = CheckpointInput::read(checkpoint)?;
    match &given.session {
        Some(own) if own.0 != session => {
            Err(InputError::OtherSession { event: session, checkpoint: own.0.clone() })
        }
        _ => Ok(CheckpointInput { session: Some(SessionId(session)), ..given }),
    }
}
