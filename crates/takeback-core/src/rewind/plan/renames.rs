//! Names that belong together: what the agent moved, and somebody then changed at its new name.

use std::collections::HashMap;

use takeback_store::{Author, Change, Digest, Entry, WorkPath};

use super::{Plan, Verdict};
use crate::history::PathHistory;

/// A file that vanished and one that appeared with the same bytes in the same call were one file. If
/// the old name is restored and the new one has to stay, the new one's reason names the old one.
pub(super) fn tell_renames(plan: &mut Plan, histories: &[PathHistory]) {
    let restored: Vec<&WorkPath> = plan
        .steps
        .iter()
        .filter(|step| matches!(step.verdict, Verdict::Restore { .. }))
        .map(|step| &step.path)
        .collect();
    let mut vanished: HashMap<(Digest, &Author), Vec<&WorkPath>> = HashMap::new();
    for change in histories.iter().flat_map(|history| &history.changes) {
        if let Some(digest) = worth_matching(&change.before)
            && change.after == Entry::Absent
            && restored.binary_search(&&change.path).is_ok()
        {
            vanished.entry((digest, &change.author)).or_default().push(&change.path);
        }
    }
    let moved_from = |change: &Change| {
        let digest = worth_matching(&change.after).filter(|_| change.before == Entry::Absent)?;
        let names = vanished.get(&(digest, &change.author))?;
        let same_name = names.iter().find(|name| name.file_name() == change.path.file_name());
        Some((*same_name.or(names.first())?).clone())
    };
    let mut told = Vec::new();
    for (at, step) in plan.steps.iter().enumerate() {
        if let Verdict::Conflict { .. } = &step.verdict
            && let Ok(found) = histories.binary_search_by(|history| history.path.cmp(&step.path))
            && let Some(old) = histories[found].changes.iter().find_map(moved_from)
        {
            let old = old.display();
            let reason = format!("it was {old}, which is restored, and it was changed since");
            told.push((at, reason));
        }
    }
    for (at, reason) in told {
        plan.steps[at].verdict = Verdict::Conflict { reason };
    }
}

/// The bytes by which a file is known again: empty files are all the same.
fn worth_matching(entry: &Entry) -> Option<Digest> {
    match entry {
        Entry::File { digest, size, .. } if *size > 0 => Some(*digest),
        _ => None,
    }
}
