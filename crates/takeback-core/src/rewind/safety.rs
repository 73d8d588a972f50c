//! What a safety point knows. The rewind that made it looked at the whole tree, or only at the paths that it
//! might touch: then what someone else changed may have been changed before the point and seen after it.

use serde::Deserialize;
use takeback_store::{Author, PathStretches, PointId, PointKind, RewindId, Seq, Vouched};

use super::again::effective;
use super::journal::RewindError;
use super::plan::{Plan, Present, Step, Verdict};
use crate::exchange::imported::import_of;
use crate::workspace::Workspace;

/// A safety point of a rewind that did not look at everything.
pub(super) struct Unsure {
    rewind: RewindId,
    /// Everything was looked at here: what changed later, changed after the safety point.
    sure_after: Option<Seq>,
}

/// Of a plan in the log, whether the whole tree was looked at for it.
#[derive(Deserialize)]
struct Looked {
    #[serde(default)]
    surveyed: bool,
}

impl Unsure {
    /// `None`: `point` is no safety point, or knows everything.
    pub(super) fn of(workspace: &Workspace, point: PointId) -> Result<Option<Self>, RewindError> {
        let rewinds = effective(workspace)?;
        let Some(record) = rewinds.into_iter().find(|record| record.safety_point == point) else {
            return Ok(None);
        };
        let looked = serde_json::from_str::<Looked>(&record.plan)
            .map_err(|source| RewindError::DamagedPlan { id: record.id, source })?;
        if looked.surveyed {
            return Ok(None);
        }
        let points = workspace.store.points()?;
        let later = points.iter().skip_while(|one| one.id != point).skip(1);
        let sure_after = later
            .filter(|one| one.kind != PointKind::Safety && one.vouched == Vouched::Scan)
            .find(|one| one.session.as_ref().is_none_or(|session| import_of(session).is_none()))
            .map(|one| one.seq);
        Ok(Some(Self { rewind: record.id, sure_after }))
    }

    /// Takes out the paths of which the point does not know what they were.
    pub(super) fn take_out(&self, histories: &mut Vec<PathStretches>) -> Vec<PathStretches> {
        let is_unsure = |history: &mut PathStretches| {
            let first = &history.stretches[0];
            let looked_at = Author::Rewind { id: self.rewind };
            matches!(first.author, Author::Human | Author::Ambiguous { .. })
                && self.sure_after.is_none_or(|sure| first.seqs[0] <= sure)
                && !history.stretches.iter().any(|one| one.author == looked_at)
        };
        histories.extract_if(.., is_unsure).collect()
    }
}

/// Keeps these as they are, and says why.
pub(super) fn keep(plan: &mut Plan, unsure: &[PathStretches], present: &Present) {
    let reason = "it may have changed before this point, which did not look at it";
    let now = |of: &PathStretches| present.entries.get(&of.path).unwrap_or(of.at_end()).clone();
    let differs = unsure.iter().filter(|of| *of.at_start() != now(of));
    let keep = || Verdict::Keep { reason: reason.to_owned() };
    plan.steps.extend(differs.map(|of| Step::new(of.path.clone(), now(of), keep())));
    plan.steps.sort_by(|a, b| a.path.cmp(&b.path));
}
