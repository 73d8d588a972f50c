//! Previews for the menu: what a restore would do, file by file, with diffs.

use takeback_core::Workspace;
use takeback_core::rewind::Preview;
use takeback_core::rewind::{LineConflict, Receipt, Step, preview};
use takeback_store::{Entry, StoreError, WorkPath};
use takeback_tui::{DiffLine, FileAction, FilePreview, LineKind};

use super::execution_request;
use crate::commands::filediff::{Contents, DAMAGED, FileDiff, LineDiff, Text};
use crate::commands::receipt::{conflict_lines, first_seen_name, first_seen_reason, fold};
use crate::commands::rewind::before_rewind;
use crate::commands::rewind::scope_line::{self, Hints};
use crate::error::CommandError;
use crate::screen::{count, name};
use crate::session_name::SessionNames;

/// Limits of a preview, which is only for a quick look.
const LINES_MAX: usize = 2000;
pub(super) const FILES_MAX: usize = 500;

/// What restoring an execution would do.
pub(crate) fn execution_preview(
    workspace: &mut Workspace,
    name: &str,
) -> Result<takeback_tui::Preview, CommandError> {
    let (_, request) = execution_request(workspace, name)?;
    let planned = preview(workspace, &request)?;
    let mut files = preview_files(workspace, &planned)?;
    if planned.is_refused() {
        let why = "state and files are restored together or not at all: nothing would change";
        files.notes.push(why.to_owned());
    }
    Ok(files)
}

/// The preview of a rewind, file by file.
pub(crate) fn preview_files(
    workspace: &Workspace,
    preview: &Preview,
) -> Result<takeback_tui::Preview, CommandError> {
    let store = &*workspace.store;
    let receipt = preview.receipt();
    let contents = Contents { store, made: &preview.plan.merged };
    let names = SessionNames::of(&store.sessions()?);
    let mut files = Vec::new();
    let mut left = LINES_MAX;
    // First: they need a decision.
    for note in receipt.conflicts.iter().take(FILES_MAX) {
        let mut diff = conflict_diff(conflict_lines(&receipt, &note.path));
        diff.truncate(left);
        left = left.saturating_sub(diff.len());
        let (path, reason) = (name(&note.path), Some(names.in_text(&note.reason)));
        files.push(FilePreview { path, action: FileAction::Conflict, reason, diff });
    }
    for diff in preview.plan.actions().take(FILES_MAX).map(diff_of) {
        if diff.is_folder() {
            continue;
        }
        let path = name(&diff.path);
        let (action, reason) = action_of(&receipt, &diff.path, &diff);
        let lines = diff_lines(&diff, contents, left)?;
        left = left.saturating_sub(lines.len());
        files.push(FilePreview { path, action, reason, diff: lines });
    }
    let actions = preview.plan.actions().count();
    let (kept, folded) = fold(&receipt);
    let groups = [
        (FileAction::Keep, &kept),
        (FileAction::Unclear, &receipt.ambiguous),
        (FileAction::NotCaptured, &receipt.not_captured),
    ];
    for (action, notes) in groups {
        for note in notes.iter().take(FILES_MAX) {
            let reason = Some(names.in_text(&note.reason));
            files.push(FilePreview { path: name(&note.path), action, reason, diff: Vec::new() });
        }
    }
    for (path, reason) in folded.into_iter().take(FILES_MAX) {
        let reason = Some(names.in_text(&reason));
        files.push(FilePreview { path, action: FileAction::Keep, reason, diff: Vec::new() });
    }
    for seen in receipt.first_seen.iter().take(FILES_MAX) {
        let (path, reason) = (first_seen_name(seen), Some(first_seen_reason(seen)));
        files.push(FilePreview { path, action: FileAction::Keep, reason, diff: Vec::new() });
    }
    let mut notes: Vec<String> = preview
        .windows
        .iter()
        .filter_map(|window| {
            let command = window.command.as_ref()?;
            let files = count(window.paths, "file");
            Some(format!("{files} changed while `{command}` ran; may include yours"))
        })
        .collect();
    if actions > FILES_MAX {
        notes.push(format!("and {} more files", actions - FILES_MAX));
    }
    notes.extend(before_rewind(workspace, preview)?.lines());
    let covers = scope_line::line(&preview.coverage, &names, Hints::None);
    Ok(takeback_tui::Preview { covers, files, notes })
}

/// Both versions of the lines in conflict, as if they were taken back too.
fn conflict_diff(conflicts: &[LineConflict]) -> Vec<DiffLine> {
    let mut diff = Vec::new();
    for conflict in conflicts {
        let text = format!("line {} stays; it was:", conflict.line);
        diff.push(DiffLine { kind: LineKind::Heading, text });
        let lines = |text: &[u8], kind| -> Vec<DiffLine> {
            let lines = text.split_inclusive(|&byte| byte == b'\n');
            lines.map(|line| of_line(kind, line)).collect()
        };
        diff.extend(lines(&conflict.mine.0, LineKind::Removed));
        diff.extend(lines(&conflict.before.0, LineKind::Added));
    }
    diff
}

pub(super) fn diff_of(step: &Step) -> FileDiff {
    let after = step.goal().unwrap_or_else(|| step.present.clone());
    FileDiff::new(step.path.clone(), step.present.clone(), after)
}

fn action_of(receipt: &Receipt, path: &WorkPath, diff: &FileDiff) -> (FileAction, Option<String>) {
    if let Some(note) = receipt.merged_files.iter().find(|note| note.path == *path) {
        return (FileAction::Merge, Some(note.reason.clone()));
    }
    match diff.after {
        Entry::Absent => (FileAction::Delete, None),
        _ => (FileAction::Restore, None),
    }
}

/// The diff of a file with some context, cut after about `most` lines.
pub(crate) fn diff_lines(
    diff: &FileDiff,
    contents: Contents<'_>,
    most: usize,
) -> Result<Vec<DiffLine>, StoreError> {
    let heading = |text: &str| vec![DiffLine { kind: LineKind::Heading, text: text.to_owned() }];
    let texts = (Text::of(&diff.before, contents)?, Text::of(&diff.after, contents)?);
    let (before, after) = match &texts {
        (Text::Lines(before), Text::Lines(after)) => (before, after),
        (Text::TooLarge, _) | (_, Text::TooLarge) => {
            return Ok(heading("too large to compare"));
        }
        (Text::Damaged, _) | (_, Text::Damaged) => return Ok(heading(DAMAGED)),
        _ => return Ok(heading("binary file")),
    };
    let lines = LineDiff::new(before, after);
    let mut out = Vec::new();
    for passage in lines.passages() {
        if !out.is_empty() {
            out.extend(heading(&format!("line {}", passage.new.start + 1)));
        }
        for part in passage.parts {
            let (old, new) = (&lines.old[part.old], &lines.new[part.new]);
            if part.differs {
                out.extend(old.iter().map(|line| of_line(LineKind::Removed, line)));
                out.extend(new.iter().map(|line| of_line(LineKind::Added, line)));
            } else {
                out.extend(new.iter().map(|line| of_line(LineKind::Context, line)));
            }
        }
        if out.len() > most {
            out.truncate(most);
            out.extend(heading("…"));
            break;
        }
    }
    Ok(out)
}

fn of_line(kind: LineKind, line: &[u8]) -> DiffLine {
    let text = String::from_utf8_lossy(line).trim_end_matches(['\n', '\r']).to_owned();
    DiffLine { kind, text }
}
