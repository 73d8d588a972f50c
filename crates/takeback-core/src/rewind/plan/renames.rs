//! Files that the agent renamed and that were then changed under the new name.

use std::collections::HashMap;

use takeback_store::{Author, ChangeRun, Digest, Entry, PathRuns, WorkPath};

use super::{Plan, Verdict};
use crate::history::recognizable;

/// A file that vanished and one that appeared with the same bytes in the same call were one file. If
/// the old name is restored and the new one has to stay, the new one's reason names the old one.
pub(super) fn explain_renames(plan: &mut Plan, histories: &[PathRuns]) {
    let restored: Vec<&WorkPath> = plan
        .steps
        .iter()
        .filter(|step| matches!(step.verdict, Verdict::Restore { .. }))
        .map(|step| &step.path)
        .collect();
    let mut vanished: HashMap<(Digest, &Author), Vec<&WorkPath>> = HashMap::new();
    for history in histories {
        // A change that creates or removes a file is a run of its own.
        for run in &history.runs {
            if let Some(digest) = recognizable(&run.before)
                && run.after == Entry::Absent
                && restored.binary_search(&&history.path).is_ok()
            {
                vanished.entry((digest, &run.author)).or_default().push(&history.path);
            }
        }
    }
    let moved_from = |path: &WorkPath, run: &ChangeRun| {
        let digest = recognizable(&run.after).filter(|_| run.before == Entry::Absent)?;
        let names = vanished.get(&(digest, &run.author))?;
        let same_name = names.iter().find(|name| name.file_name() == path.file_name());
        Some((*same_name.or(names.first())?).clone())
    };
    let mut told = Vec::new();
    for (at, step) in plan.steps.iter().enumerate() {
        if let Verdict::Conflict { .. } = &step.verdict
            && let Ok(found) = histories.binary_search_by(|history| history.path.cmp(&step.path))
            && let Some(old) =
                histories[found].runs.iter().find_map(|one| moved_from(&step.path, one))
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
