//! Contents that the store has lost: found before anything is promised (for a preview only as far as that
//! is cheap), and distinguished from files that changed since.

use std::collections::{BTreeMap, BTreeSet};

use takeback_store::{Digest, Entry, Store, StoreError, WorkPath};

use super::plan::{Plan, Step, Verdict};
use super::preview::Preview;

/// Bytes that a preview reads to see whether they are intact. Staging finds out about the rest.
const READ_AT_MOST: u64 = 4 << 20;

/// The lost contents among those that a plan would displace, and those of up to [`READ_AT_MOST`] bytes
/// that it would place.
pub(super) fn find(plan: &Plan, store: &dyn Store) -> Result<BTreeSet<Digest>, StoreError> {
    let mut lost = absent(plan, store)?;
    let mut left = READ_AT_MOST;
    for (step, digest) in placed(plan) {
        let Some(Entry::File { size, .. }) = step.goal() else { continue };
        if size > left || lost.contains(&digest) {
            continue;
        }
        left -= size;
        match store.read(&digest, &mut |_| Ok(())) {
            Err(error) if error.is_lost_contents() => {
                lost.insert(digest);
            }
            read => read?,
        }
    }
    Ok(lost)
}

/// Contents that a plan would place and that the store has.
fn placed(plan: &Plan) -> impl Iterator<Item = (&Step, Digest)> {
    let made: BTreeSet<Digest> = plan.merged.iter().map(|blob| blob.digest).collect();
    let steps = plan.actions().filter_map(|step| Some((step, step.placed()?)));
    steps.filter(move |(_, digest)| !made.contains(digest))
}

/// The contents that a plan would place or displace and that the store does not have. Displaced contents
/// count too, since nothing else could restore them; so do those that the user discards.
pub(super) fn absent(plan: &Plan, store: &dyn Store) -> Result<BTreeSet<Digest>, StoreError> {
    let mut lost = BTreeSet::new();
    let placed = placed(plan).map(|(_, digest)| digest);
    for digest in placed.chain(plan.actions().filter_map(Step::displaced)) {
        if !lost.contains(&digest) && !store.is_complete(&digest)? {
            lost.insert(digest);
        }
    }
    Ok(lost)
}

/// Whether `ready` would do anything other than what was shown. Files whose contents are lost, and what
/// follows from that above and below them, do not count.
pub(super) fn differ(shown: &Preview, ready: &Preview) -> bool {
    if shown.plan.state != ready.plan.state {
        return true;
    }
    if shown.plan.steps == ready.plan.steps {
        return false;
    }
    let was: BTreeMap<&WorkPath, &Step> =
        shown.plan.steps.iter().map(|step| (&step.path, step)).collect();
    let is_lost = |step: &&Step| {
        let Some(was) = was.get(&step.path) else { return false };
        matches!(step.verdict, Verdict::NotCaptured { .. })
            && was.present == step.present
            && [was.placed(), was.displaced()].iter().flatten().any(|one| ready.lost.contains(one))
    };
    let lost: BTreeSet<&WorkPath> =
        ready.plan.steps.iter().filter(is_lost).map(|step| &step.path).collect();
    let above: BTreeSet<WorkPath> = lost.iter().flat_map(|path| path.ancestors()).collect();
    let counts = |step: &&Step| {
        !lost.contains(&step.path)
            && !above.contains(&step.path)
            && (lost.is_empty() || !step.path.ancestors().any(|folder| lost.contains(&folder)))
    };
    let of = |plan: &Plan| plan.steps.iter().filter(counts).cloned().collect::<Vec<Step>>();
    of(&shown.plan) != of(&ready.plan)
}
