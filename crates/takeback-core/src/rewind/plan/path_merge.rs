//! Takes the chosen runs of a path out of the entry that is there now, newest first.

use takeback_store::{Digest, Entry, Seq, StoreError};

use super::roles::Role;
use super::{Run, Sources};
use crate::rewind::conflict::{ConflictPolicy, FileOverlaps, LineConflict};
use crate::rewind::merge::{Merged, Overlaps, SAME_LINES, Texts, take_out};

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
    pub(super) instead: Option<(Entry, MadeText)>,
    /// What would be cancelled.
    pub(super) cancels: Vec<Seq>,
}

/// Contents that no file has had, if there are any.
type MadeText = Option<(Digest, Vec<u8>)>;

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
    let mut found = FileOverlaps::default();
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
            Merged::Clean(next) => next,
            Merged::Lines(_, merged) if in_doubt && !merged.overlaps.is_empty() => {
                return Ok(PathOutcome::Unclear);
            }
            Merged::Lines(next, merged) => {
                found.add(&merged);
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
                let taken = take_out_runs(runs, now, ConflictPolicy::Take, sources)?;
                let (instead, cancels) = match taken {
                    PathOutcome::Merged(merge) => (Some((merge.entry, merge.text)), merge.cancels),
                    _ => (None, Vec::new()),
                };
                let conflict = PathConflict { reason, lines: Vec::new(), instead, cancels };
                return Ok(PathOutcome::Conflict(conflict));
            }
            Merged::Lacking(reason) => return Ok(PathOutcome::Lacking(reason)),
        };
        is_mixed |= next != *run.before;
        entry = next;
        cancels.extend(run.seqs.iter().copied());
    }
    let mut lines = Vec::new();
    if !found.is_empty()
        && let Some(text) = entry.digest().map(|digest| texts.get(&digest)).transpose()?.flatten()
    {
        lines = found.of_text(&text, policy);
    }
    let stays = !lines.is_empty() && policy == ConflictPolicy::Keep;
    if !lines.is_empty() && (policy == ConflictPolicy::File || stays && entry == *now) {
        if policy == ConflictPolicy::File
            && let Some(text) = now.digest().map(|digest| texts.get(&digest)).transpose()?.flatten()
        {
            lines.iter_mut().for_each(|conflict| conflict.find_in(&text));
        }
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
