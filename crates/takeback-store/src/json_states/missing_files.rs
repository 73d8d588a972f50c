//! Checkpoints whose files another program deleted.
//!
//! Saves are numbered from 1 without a gap, and each file contains its number. The manifest knows
//! how many there were and which were deleted on purpose; any other number without a file is
//! missing. The last save enters that count with the next write of the manifest; until then a note
//! in the lock file of its step says that it happened.
//!
//! Not detected: files deleted together with their manifest, files that another program overwrote,
//! and losses from before the manifest had such a list.

use std::collections::BTreeSet;

use super::JsonStates;
use super::folder::{FoundCheckpoint, Steps};
use super::manifest::{DeletedCheckpoint, Manifest, Place};
use crate::state::{CheckpointKey, Damage, ExecutionId, StateError};

/// The missing checkpoints of an execution.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) struct MissingCheckpoints {
    count: usize,
    /// The ones with a known id: another checkpoint names them as parent, or a line has them as
    /// head.
    named: Vec<Place>,
}

impl MissingCheckpoints {
    /// Compares the manifest with the readable checkpoints. `unread` is the number of files that
    /// cannot be read or were set aside.
    pub(super) fn of(
        manifest: &Manifest,
        found: &[FoundCheckpoint],
        unread: usize,
    ) -> Option<Self> {
        let removed = manifest.removed.as_ref()?;
        let entries: Vec<_> = found.iter().map(FoundCheckpoint::entry).collect();
        let present: BTreeSet<u64> = entries.iter().map(|entry| entry.position).collect();
        let is_removed = |position: &u64| removed.iter().any(|one| one.position == *position);
        let gone =
            (1..=manifest.saves).filter(|at| !present.contains(at) && !is_removed(at)).count();
        // A file of another program may have replaced one of ours.
        let foreign = entries.iter().filter(|entry| entry.position == 0).count();
        let unread = unread + foreign;
        let count = gone.checked_sub(unread).filter(|count| *count > 0)?;
        let mut named: BTreeSet<Place> = entries.iter().filter_map(|entry| entry.parent).collect();
        named.extend(manifest.lines.values().filter_map(|line| line.head));
        named.retain(|place| {
            let exists = entries.iter().any(|entry| entry.place == *place);
            !exists && removed.iter().all(|one| one.place != *place)
        });
        // Unreadable files may be the ones that seem to be missing: name none.
        let named = if unread == 0 { named.into_iter().collect() } else { Vec::new() };
        Some(Self { count, named })
    }

    /// The number of missing checkpoints, from the file names alone.
    pub(super) fn by_count(manifest: &Manifest, checkpoints: u64, unread: usize) -> Option<Self> {
        let removed = manifest.removed.as_ref()?.len() as u64;
        let there = checkpoints + removed + unread as u64;
        let count = manifest.saves.checked_sub(there).filter(|count| *count > 0)?;
        Some(Self { count: usize::try_from(count).unwrap_or(usize::MAX), named: Vec::new() })
    }

    /// List items: one for each checkpoint with a known id, and one for all others.
    pub(super) fn damaged(&self, execution: &ExecutionId) -> Vec<Damage> {
        let named = self.named.iter().take(self.count).map(|(step, attempt)| {
            let key =
                CheckpointKey { execution: execution.clone(), step: *step, attempt: *attempt };
            Damage { what: key.id().to_string(), why: GONE.to_owned() }
        });
        let mut damaged: Vec<Damage> = named.collect();
        let others = self.count - damaged.len();
        if others > 0 {
            let what = match others {
                1 => format!("a checkpoint of execution {execution}"),
                others => format!("{others} checkpoints of execution {execution}"),
            };
            damaged.push(Damage { what, why: GONE.to_owned() });
        }
        damaged
    }
}

const GONE: &str = "its file is gone, and no command of Takeback deleted it";

/// The number of files that were set aside.
pub(super) fn asides_of(steps: &Steps) -> usize {
    steps.values().map(|files| files.aside.len()).sum()
}

/// The number of files that were set aside or cannot be read.
fn unread(steps: &Steps, found: &[FoundCheckpoint]) -> usize {
    let paths = steps.values().flat_map(|files| files.paths(true));
    // A file with two names was read under one of them.
    let read = |path: &std::path::PathBuf| found.iter().any(|one| one.path == *path);
    let second_names = steps.iter().filter(|(step, files)| {
        files.newest.as_ref().is_some_and(|newest| {
            let of_step = found.iter().find(|one| one.path == *newest && one.kept.step == **step);
            of_step.is_some_and(|one| files.older.contains_key(&one.attempt))
        })
    });
    asides_of(steps) + paths.filter(|path| !read(path)).count().saturating_sub(second_names.count())
}

impl JsonStates {
    /// Whether there are fewer files than the manifest says, judging by their names.
    pub(super) fn lacks_files(&self, manifest: &Manifest, steps: &Steps) -> bool {
        MissingCheckpoints::by_count(manifest, self.count(steps), asides_of(steps)).is_some()
    }

    /// The missing checkpoints of an execution; reads all of its files.
    pub(super) fn missing(
        &self,
        execution: &ExecutionId,
        manifest: &Manifest,
        steps: &Steps,
    ) -> Result<Vec<Damage>, StateError> {
        let found = self.readable(execution, steps, manifest)?;
        let missing = MissingCheckpoints::of(manifest, &found, unread(steps, &found));
        Ok(missing.map_or_else(Vec::new, |missing| missing.damaged(execution)))
    }
}

impl JsonStates {
    /// What [`Self::check`](crate::state::States::check) reports about missing files of an
    /// execution.
    pub(super) fn missing_files(
        &self,
        part: &str,
        steps: &Steps,
    ) -> Result<Vec<String>, StateError> {
        let Ok(Some(execution)) = self.execution_of(part, steps) else { return Ok(Vec::new()) };
        let missing = self.read_consistently(&execution, &mut |manifest| match manifest {
            Some(manifest) => {
                let steps = self.steps(&execution)?;
                let missing = self.missing(&execution, manifest, &steps)?;
                Ok(missing
                    .into_iter()
                    .map(|Damage { what, why }| format!("{what}: {why}"))
                    .collect())
            }
            None => Ok(self.without_manifest(&execution, steps)?.into_iter().collect()),
        });
        match missing {
            // Another part of the check reports this.
            Err(StateError::Damaged { .. } | StateError::Newer { .. }) => Ok(Vec::new()),
            missing => missing,
        }
    }

    /// Takeback never writes a checkpoint without a manifest, so a missing manifest was deleted.
    fn without_manifest(
        &self,
        execution: &ExecutionId,
        steps: &Steps,
    ) -> Result<Option<String>, StateError> {
        let path = self.manifest_path(execution)?;
        let is_ours = |path: &std::path::PathBuf| {
            let kept = self.kept(path, super::folder::DamagePolicy::Leave).ok().flatten();
            kept.is_some_and(|kept| kept.own.is_some())
        };
        let has_ours = steps.values().flat_map(|files| files.paths(true)).any(is_ours);
        let is_known = super::folder::exists(&path)
            || super::folder::exists(&super::folder::aside_path(&path, 1));
        Ok((has_ours && !is_known).then(|| {
            format!("{} is gone: retries and effects of {execution} are lost", path.display())
        }))
    }
}

impl DeletedCheckpoint {
    pub(super) fn of(found: &FoundCheckpoint) -> Option<Self> {
        let position = found.kept.own?.position;
        Some(Self { position, place: (found.kept.step, found.attempt) })
    }
}
