//! A rewind for a program: no confirmation, and one JSON value as its answer.

use takeback_core::Workspace;
use takeback_core::rewind::{
    self, Preview, Receipt, RewindError, RewindRequest, Rollback, Step, Verdict, Window, preview,
};

use super::{after_rewind, before_rewind, catch_up, discarded};
use crate::answers;
use crate::args::{ApplyArgs, Options};
use crate::commands::conversation::cut_of;
use crate::commands::receipt::{self, Tense};
use crate::error::CommandError;

/// Applies a rewind, or with `--dry-run` plans it. Returns the receipt and its exit code.
pub(crate) fn run_unattended(
    workspace: &mut Workspace,
    options: &Options,
    mut request: RewindRequest,
    args: &ApplyArgs,
) -> Result<(answers::Receipt, u8), CommandError> {
    request.outside = args.outside;
    request.discard = discarded(workspace, options, &args.discard)?;
    catch_up(workspace, &request)?;
    if args.dry_run || is_already_there(workspace, &request)? {
        let shown = preview(workspace, &request)?;
        let is_there = shown.plan.leaves_files() && is_already_there(workspace, &request)?;
        if args.dry_run || is_there {
            let receipt = receipt_of(&shown, is_there);
            let code = receipt::exit_code(&receipt, tense_of(&shown));
            let follow_up = before_rewind(workspace, &shown)?;
            let answer = answer_with(&receipt, &shown.windows, follow_up);
            let covers = answers::coverage(&shown.coverage);
            return Ok((answers::Receipt { covers, ..answer }, code));
        }
    }
    let done = rewind::rewind(workspace, &request, None)?;
    let windows = windows_of(&*workspace.store, &done)?;
    let mut answer = answer_with(&done, &windows, after_rewind(workspace, &done)?);
    if !receipt::is_refused(&done, Tense::Did) {
        answer.conversation = cut_of(workspace, &request)?.as_ref().map(answers::conversation);
    }
    Ok((answer, receipt::exit_code(&done, Tense::Did)))
}

/// The preview, for a program that shows it to its user. Its `mark` identifies the plan.
pub(crate) fn preview_marked(
    workspace: &mut Workspace,
    options: &Options,
    mut request: RewindRequest,
    args: &ApplyArgs,
) -> Result<answers::PreviewAnswer, CommandError> {
    request.outside = args.outside;
    request.discard = discarded(workspace, options, &args.discard)?;
    catch_up(workspace, &request)?;
    let shown = preview(workspace, &request)?;
    let follow_up = before_rewind(workspace, &shown)?;
    let receipt = answer_with(&receipt_of(&shown, false), &shown.windows, follow_up);
    let receipt = answers::Receipt { covers: answers::coverage(&shown.coverage), ..receipt };
    Ok(answers::PreviewAnswer { receipt, mark: mark_of(&shown)? })
}

/// Applies the plan that [`preview_marked`] showed. If the plan has changed since, changes nothing and returns
/// [`RewindError::Changed`].
pub(crate) fn apply_marked(
    workspace: &mut Workspace,
    options: &Options,
    mut request: RewindRequest,
    args: &ApplyArgs,
    mark: &str,
) -> Result<answers::Receipt, CommandError> {
    request.outside = args.outside;
    request.discard = discarded(workspace, options, &args.discard)?;
    catch_up(workspace, &request)?;
    let shown = preview(workspace, &request)?;
    if mark_of(&shown)? != mark {
        return Err(RewindError::Changed(Box::new(shown)).into());
    }
    let done = rewind::rewind(workspace, &request, Some(&shown))?;
    let windows = windows_of(&*workspace.store, &done)?;
    Ok(answer_with(&done, &windows, after_rewind(workspace, &done)?))
}

/// Equal for the same steps from the same contents, in any process.
fn mark_of(shown: &Preview) -> Result<String, serde_json::Error> {
    // Kept files are only information: a change to them does not change the plan.
    let is_asked = |step: &&Step| !matches!(step.verdict, Verdict::Keep { .. });
    let asked: Vec<&Step> = shown.plan.steps.iter().filter(is_asked).collect();
    let plan = serde_json::to_vec(&(asked, &shown.plan.state))?;
    Ok(blake3::hash(&plan).to_hex().to_string())
}

/// Whether a request asks for a state that is already current.
pub(super) fn is_already_there(
    workspace: &Workspace,
    request: &RewindRequest,
) -> Result<bool, CommandError> {
    let Some(Rollback { to, .. }) = &request.rollback else { return Ok(false) };
    let head = workspace.states.head(&to.execution, None)?.and_then(|head| head.record);
    Ok(head.is_some_and(|head| head.key == *to))
}

pub(super) fn tense_of(shown: &Preview) -> Tense {
    if shown.is_refused() { Tense::WouldNot } else { Tense::Would }
}

/// The receipt of what would be done.
pub(super) fn receipt_of(shown: &Preview, is_there: bool) -> Receipt {
    let mut receipt = shown.receipt();
    if is_there {
        receipt.state = None;
    }
    if shown.is_refused() { receipt.refused() } else { receipt }
}

/// The changes that an applied rewind took back only because they happened while a call ran.
pub(super) fn windows_of(
    store: &dyn takeback_store::Store,
    done: &Receipt,
) -> Result<Vec<Window>, CommandError> {
    let record = done.rewind.map(|id| store.rewind(id)).transpose()?;
    match record.flatten() {
        Some(record) => Ok(rewind::windows_of(store, &record)?),
        None => Ok(Vec::new()),
    }
}

fn answer_with(
    receipt: &Receipt,
    windows: &[Window],
    follow_up: answers::FollowUp,
) -> answers::Receipt {
    let windows = Some(answers::windows(windows));
    answers::Receipt { windows, follow_up, ..answers::receipt(receipt) }
}
