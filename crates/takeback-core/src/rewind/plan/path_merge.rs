//! Takes the chosen runs of a path out of the entry that is there now, newest first.

use takeback_store::{Digest, Entry, Seq, StoreError};

use super::roles::Role;
use super::{Run, Sources};
use crate::rewind::conflict::{ConflictPolicy, FileOverlaps, LineConflict};
use crate::rewind::merge::{Merged, MergedText, Overlaps, SAME_LINES, Texts, take_out};

/// What is left of a path without the runs.
pub(super) enum PathOutcome {
    Merged(Merge),
    /// What stays may be the agent's own.
    Unclear,
    Conflict(PathConflict),
    /// The store does not have what would be needed.
    Lacking(String),
}

/// Why a path stays as it is.
pub(super) struct PathConflict {
    pub(super) reason: &'static str,
    /// The lines, if it is about lines.
    pub(super) lines: Vec<LineConflict>,
    /// What would be there if other authors' changes were taken back too, if it is about the whole file.
    pub(super) instead: Option<MadeEntry>,
    /// What would be cancelled.
    pub(super) cancels: Vec<Seq>,
}

/// Contents that no file has had, if there are any.
type MadeText = Option<(Digest, Vec<u8>)>;

/// An entry with its contents, if no file has had them.
type MadeEntry = (Entry, MadeText);

/// A path without the runs.
pub(super) struct Merge {
    pub(super) entry: Entry,
    /// Its contents, if no file has had them.
    pub(super) text: MadeText,
    pub(super) cancels: Vec<Seq>,
    /// Other authors' parts are still in it.
    pub(super) is_mixed: bool,
    /// Unclear changes were left.
    pub(super) in_doubt: bool,
    /// Lines that another author changed since.
    pub(super) lines: Vec<LineConflict>,
    /// These lines stay as they are, so not all of the runs is taken out.
    pub(super) is_in_part: bool,
}

pub(super) fn take_out_runs(
    runs: &[Run<'_>],
    now: &Entry,
    policy: ConflictPolicy,
    sources: &dyn Sources,
) -> Result<PathOutcome, StoreError> {
    let overlaps = match policy {
        ConflictPolicy::Keep | ConflictPolicy::File => Overlaps::Ours,
        ConflictPolicy::Take => Overlaps::Theirs,
        ConflictPolicy::Markers => Overlaps::Markers { theirs: "before" },
    };
    let mut texts = Texts::new(sources, overlaps);
    let mut entry = now.clone();
    let mut cancels = Vec::new();
    let (mut is_mixed, mut in_doubt) = (false, false);
    let mut passes = Vec::new();
    for run in runs.iter().rev() {
        match run.role {
            Role::Take => {}
            Role::Ambiguous if *run.after == Entry::Absent && entry == Entry::Absent => {}
            Role::Ambiguous => {
                in_doubt = true;
                continue;
            }
            Role::Other | Role::Neutral | Role::Dead => continue,
        }
        let next = match take_out(run.before, run.after, &entry, &mut texts)? {
            Merged::Clean(next) => {
                passes.push(Pass::Clean { from: entry.digest(), to: next.digest() });
                next
            }
            Merged::Lines(_, merged) if in_doubt && !merged.overlaps.is_empty() => {
                return Ok(PathOutcome::Unclear);
            }
            Merged::Lines(next, merged) => {
                passes.push(Pass::Lines(merged));
                next
            }
            Merged::Conflict(_) if in_doubt => return Ok(PathOutcome::Unclear),
            Merged::Conflict(_) if policy == ConflictPolicy::Take && run.before.is_restorable() => {
                run.before.clone()
            }
            Merged::Conflict(reason) if policy == ConflictPolicy::Take => {
                let (lines, cancels) = (Vec::new(), Vec::new());
                let conflict = PathConflict { reason, lines, instead: None, cancels };
                return Ok(PathOutcome::Conflict(conflict));
            }
            Merged::Conflict(reason) => {
                let (instead, cancels) = taken_too(runs, now, sources)?;
                let lines = Vec::new();
                return Ok(PathOutcome::Conflict(PathConflict { reason, lines, instead, cancels }));
            }
            Merged::Lacking(reason) => return Ok(PathOutcome::Lacking(reason)),
        };
        is_mixed |= next != *run.before;
        entry = next;
        cancels.extend(run.seqs.iter().copied());
    }
    let found = overlaps_of(&passes, &texts)?;
    let contents = |texts: &Texts<'_>, entry: &Entry| match entry.digest() {
        Some(digest) => texts.get(&digest),
        None => Ok(None),
    };
    if !found.is_empty() && policy == ConflictPolicy::File {
        let lines = found.of_first_text(&contents(&texts, now)?.unwrap_or_default());
        let (instead, cancels) = taken_too(runs, now, sources)?;
        return Ok(PathOutcome::Conflict(PathConflict {
            reason: SAME_LINES,
            lines,
            instead,
            cancels,
        }));
    }
    let mut lines = Vec::new();
    if !found.is_empty()
        && let Some(text) = contents(&texts, &entry)?
    {
        lines = found.of_text(&text, policy);
    }
    let stays = !lines.is_empty() && policy == ConflictPolicy::Keep;
    if stays && entry == *now {
        let conflict = PathConflict { reason: SAME_LINES, lines, instead: None, cancels };
        return Ok(PathOutcome::Conflict(conflict));
    }
    if policy == ConflictPolicy::Take {
        lines.clear();
    }
    let text = entry.digest().and_then(|digest| texts.made.remove_entry(&digest));
    let is_in_part = stays;
    Ok(PathOutcome::Merged(Merge { entry, text, cancels, is_mixed, in_doubt, lines, is_in_part }))
}

/// A run that is taken out of a file.
enum Pass {
    /// As a whole.
    Clean { from: Option<Digest>, to: Option<Digest> },
    /// Line by line.
    Lines(MergedText),
}

/// The overlaps of all passes. Contents are compared only if there are any.
fn overlaps_of(passes: &[Pass], texts: &Texts<'_>) -> Result<FileOverlaps, StoreError> {
    let mut found = FileOverlaps::default();
    let overlap = |pass: &Pass| matches!(pass, Pass::Lines(merged) if !merged.overlaps.is_empty());
    if !passes.iter().any(overlap) {
        return Ok(found);
    }
    let contents = |digest: &Option<Digest>| match digest {
        Some(digest) => texts.get(digest).map(Option::unwrap_or_default),
        None => Ok(Vec::new()),
    };
    for pass in passes {
        match pass {
            Pass::Clean { from, to } if from == to => {}
            Pass::Clean { from, to } => found.add_change(&contents(from)?, &contents(to)?),
            Pass::Lines(merged) => found.add(merged),
        }
    }
    Ok(found)
}

/// What would be there if other authors' changes were taken back too, and what that would cancel.
fn taken_too(
    runs: &[Run<'_>],
    now: &Entry,
    sources: &dyn Sources,
) -> Result<(Option<MadeEntry>, Vec<Seq>), StoreError> {
    Ok(match take_out_runs(runs, now, ConflictPolicy::Take, sources)? {
        PathOutcome::Merged(merge) => (Some((merge.entry, merge.text)), merge.cancels),
        _ => (None, Vec::new()),
    })
}
