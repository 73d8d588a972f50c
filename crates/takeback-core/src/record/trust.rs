//! Finds the rule files that an agent wrote, and their text before that.
//!
//! Needed only if a scan found new names that rules exclude: an agent cannot hide its own files by
//! writing a rule.

use takeback_store::{Author, CallKind, Change, Digest, Entry, Store, StoreError, WorkPath};

use crate::worktree::index::Index;
use crate::worktree::scan::Scan;
use crate::worktree::scope::{DistrustedRules, EXCLUDE, MOST_RULES, has_rules, is_exclude};

/// The calls whose work a scan may find.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Writers {
    /// Live calls in the store.
    Live,
    /// Also a call whose start was not reported.
    Unreported,
}

/// The rule files that must not hide new names of `scan`. `before`: the index that it began with.
pub(super) fn distrusted(
    store: &dyn Store,
    before: &Index,
    scan: &Scan,
    writers: Writers,
) -> Result<DistrustedRules, StoreError> {
    let mut distrusted = DistrustedRules::default();
    if scan.judges.is_empty() {
        return Ok(distrusted);
    }
    let calls = store.live_calls()?;
    let may_be_an_agents = |path: &WorkPath| {
        let could =
            |kind: &CallKind| matches!(kind, CallKind::Shell { .. }) || kind.paths().contains(path);
        writers == Writers::Unreported || calls.iter().any(|call| could(&call.kind))
    };
    let judges: Vec<WorkPath> = scan.judges.iter().cloned().collect();
    let latest = store.latest_of(&judges)?;
    for (path, latest) in judges.iter().zip(latest) {
        if is_exclude(path) {
            // It is not in the log: only the scan that sees it change knows.
            let folder = path.as_bytes().strip_suffix(EXCLUDE).unwrap_or_default();
            let folder = folder.strip_suffix(b"/").unwrap_or(folder);
            let print = |index: &Index| index.folder(folder).and_then(|folder| folder.excludes);
            if print(before) != print(&scan.index) && may_be_an_agents(path) {
                distrusted.insert(path, None);
            }
            continue;
        }
        let found = scan.found.binary_search_by(|found| found.path.cmp(path)).ok();
        let found = found.map(|at| &scan.found[at]);
        let is_sure = match (found, &latest) {
            (Some(found), _) => found.before == Entry::Unknown || !may_be_an_agents(path),
            (None, Some(latest)) => matches!(latest.author, Author::Human | Author::Import),
            (None, None) => true,
        };
        if is_sure {
            continue;
        }
        let trusted = trusted_entry(&store.changes_of(path)?);
        let trusted = trusted.or_else(|| found.map(|found| found.before.clone()));
        let now = found.map(|found| &found.after).or(latest.as_ref().map(|change| &change.after));
        if trusted.as_ref() == now {
            continue;
        }
        match trusted {
            Some(Entry::File { digest, size, .. }) if has_rules(path.as_bytes()) => {
                distrusted.insert(path, text_of(store, &digest, size)?);
            }
            // A manifest existed: its text does not matter.
            Some(Entry::File { .. }) => {}
            _ => distrusted.insert(path, None),
        }
    }
    Ok(distrusted)
}

/// None: too large, or lost from the store. Then it hides nothing.
fn text_of(store: &dyn Store, digest: &Digest, size: u64) -> Result<Option<Vec<u8>>, StoreError> {
    if size > MOST_RULES {
        return Ok(None);
    }
    match store.contents(digest) {
        Err(StoreError::MissingBlob { .. } | StoreError::DamagedBlob { .. }) => Ok(None),
        read => read.map(Some),
    }
}

/// The entry of a path before the agents' latest changes. None: unknown.
fn trusted_entry(history: &[Change]) -> Option<Entry> {
    let first = history.first()?;
    let mut seen: Vec<(&Entry, &Entry)> = vec![(&first.before, &first.before)];
    for change in history {
        let (_, last) = seen[seen.len() - 1];
        let trusted = match &change.author {
            // It existed before the first scan.
            _ if change.before == Entry::Unknown => &change.after,
            Author::Agent { .. } | Author::Ambiguous { .. } | Author::Deleted => last,
            Author::Human | Author::Import => &change.after,
            // A restored entry belongs to its original author.
            Author::Rewind { .. } => {
                let earlier = seen.iter().rev().find(|(entry, _)| *entry == &change.after);
                earlier.map_or(last, |(_, trusted)| trusted)
            }
        };
        seen.push((&change.after, trusted));
    }
    seen.last().map(|(_, trusted)| (*trusted).clone())
}
