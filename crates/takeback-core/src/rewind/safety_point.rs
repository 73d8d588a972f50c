//! Safety points that do not cover every path.
//!
//! The rewind that made a safety point scanned the whole tree, or looked only at the paths that it might
//! touch. In the second case a change by someone else may be older than the point although it was seen
//! after it: an exact rewind to the point must not take it back.

use takeback_store::{Author, PathRuns, PointBasis, PointId, PointKind, RewindId, Seq};

use super::error::RewindError;
use super::history::past_rewinds;
use super::journal::plan_header_of;
use super::plan::{DiskState, Plan, Step, Verdict};
use crate::exchange::imported::import_of;
use crate::workspace::Workspace;

/// What a safety point does not cover.
pub(super) struct CoverageGap {
    rewind: RewindId,
    /// Everything was scanned here: what changed later, changed after the safety point.
    scanned_at: Option<Seq>,
}

impl CoverageGap {
    /// `None`: `point` is not a safety point, or covers everything.
    pub(super) fn of(workspace: &Workspace, point: PointId) -> Result<Option<Self>, RewindError> {
        let rewinds = past_rewinds(workspace)?;
        let made = rewinds.iter().find(|past| past.safety_point == point);
        let Some(record) = made.map(|past| workspace.store.rewind(past.id)).transpose()?.flatten()
        else {
            return Ok(None);
        };
        let plan = plan_header_of(&record)
            .map_err(|source| RewindError::DamagedPlan { id: record.id, source })?;
        if plan.is_full_scan {
            return Ok(None);
        }
        let points = workspace.store.points()?;
        let later = points.iter().skip_while(|one| one.id != point).skip(1);
        let scanned_at = later
            .filter(|one| one.kind != PointKind::Safety && one.basis == PointBasis::Scan)
            .find(|one| one.session.as_ref().is_none_or(|session| import_of(session).is_none()))
            .map(|one| one.seq);
        Ok(Some(Self { rewind: record.id, scanned_at }))
    }

    /// Takes out the histories of paths that the point does not cover.
    pub(super) fn take_out(&self, histories: &mut Vec<PathRuns>) -> Vec<PathRuns> {
        let is_uncovered = |history: &mut PathRuns| {
            let first = &history.runs[0];
            let looked_at = Author::Rewind { id: self.rewind };
            matches!(first.author, Author::Human | Author::Ambiguous { .. })
                && self.scanned_at.is_none_or(|scan| first.seqs[0] <= scan)
                && !history.runs.iter().any(|one| one.author == looked_at)
        };
        histories.extract_if(.., is_uncovered).collect()
    }
}

/// Adds a step for each path that differs and is not covered: it stays, with the reason.
pub(super) fn keep_uncovered(plan: &mut Plan, uncovered: &[PathRuns], disk: &DiskState) {
    let reason = "it may have changed before this point, which did not look at it";
    let now = |of: &PathRuns| disk.entries.get(&of.path).unwrap_or(of.at_end()).clone();
    let differs = uncovered.iter().filter(|of| *of.at_start() != now(of));
    let keep = || Verdict::Keep { reason: reason.to_owned() };
    plan.steps.extend(differs.map(|of| Step::new(of.path.clone(), now(of), keep())));
    plan.steps.sort_by(|a, b| a.path.cmp(&b.path));
}
