//! What a rewind, an undo and a redo must do, decided change by change from the oracle's own log.

mod roles;

use std::collections::{BTreeMap, BTreeSet};

use takeback_store::PointId;
use takeback_testkit::Thing;

use super::{
    CallNews, Change, Kind, Look, ModelAuthor, Oracle, PathState, Point, PointKind, ReceiptPaths,
    Request, RewindRecord, Scope, Target, folders_above, state_of,
};
use crate::steps::{parts, whole};

#[derive(Debug, Clone)]
struct Plan {
    verdict: Verdict,
    cancels: Vec<usize>,
    /// Whether an uncertain change stays as it is.
    unclear: bool,
    /// Whether sections that others changed since stay as they are.
    in_part: bool,
}

impl Plan {
    fn leave(verdict: Verdict) -> Self {
        Self { verdict, cancels: Vec::new(), unclear: false, in_part: false }
    }
}

#[derive(Debug, Clone, PartialEq, Eq)]
enum Verdict {
    Becomes(Option<Thing>),
    Kept,
    Conflict,
    Ambiguous,
    NotCaptured,
}

/// What is taken back, in terms of the log.
enum Aim {
    Point { at: usize, scope: Scope },
    Exact { at: usize },
    Without { rewind: usize, at: usize },
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Role {
    Take,
    Ambiguous,
    Other,
    /// A rewind that still has its effect, a first sighting, or a return.
    Neutral,
}

/// The roles of a path's changes in a plan.
struct Roles {
    /// Of the changes since the aim's moment that still have an effect, oldest first.
    of: Vec<(usize, Role)>,
    /// Earlier work of others that a rewind took back and this one would restore: it stays taken back.
    /// Oldest first, neighbours together.
    stays_taken: Vec<Vec<usize>>,
}

impl Roles {
    fn has(&self, role: Role) -> bool {
        self.of.iter().any(|(_, own)| *own == role)
    }
}

/// Whether restoring an earlier state by hand counts as no change.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum ReturnPolicy {
    Count,
    Ignore,
}

impl Oracle {
    /// Changes the disk and the log like a rewind, and returns its receipt; `None`: there is nothing to
    /// undo or redo.
    pub(crate) fn rewind(&mut self, request: &Request) -> Option<ReceiptPaths> {
        let (aim, kind) = match request.target {
            Target::Point(at) => {
                let point = &self.points[at];
                let scope = request.scope.clone().unwrap_or_else(|| match point.session {
                    Some(session) => Scope::Only(self.continued_by(session)),
                    None => Scope::All,
                });
                (Aim::Point { at: point.at, scope }, Kind::Rewind)
            }
            Target::Undo => {
                let rewind = self.to_undo()?;
                (Aim::Without { rewind, at: self.rewinds[rewind].at }, Kind::Undo(rewind))
            }
            Target::Redo => {
                let rewind = self.to_redo()?;
                (Aim::Without { rewind, at: self.rewinds[rewind].at }, Kind::Redo(rewind))
            }
        };
        let at = match aim {
            Aim::Point { at, .. } | Aim::Exact { at } | Aim::Without { at, .. } => at,
        };
        let only_of = match (request.target, &aim) {
            _ if !request.exact => None,
            (_, Aim::Without { rewind, .. }) => Some(*rewind),
            _ => None,
        };
        let aim = if request.exact { Aim::Exact { at } } else { aim };
        // With no agent at work, only paths that may be touched are looked at.
        let everywhere =
            request.exact || !self.in_turn.is_empty() || self.live_calls().next().is_some();
        if everywhere {
            self.look_around();
        }
        let mut touched = self.requested_paths(at, &request.paths, only_of);
        touched.retain(|path| self.may_touch(path, &aim));
        let mut look: Vec<String> = touched.iter().cloned().collect();
        look.extend(touched.iter().flat_map(|path| folders_above(path)).map(str::to_owned));
        self.record(Look::Nowhere, &look, CallNews::Nothing);

        let mut plans = BTreeMap::new();
        for path in self.requested_paths(at, &request.paths, only_of) {
            if let Some(plan) = self.plan(&path, &aim, request.take_ambiguous) {
                plans.insert(path, plan);
            }
        }
        let unsure: Vec<String> = match request.target {
            Target::Point(point) if request.exact => {
                plans.keys().filter(|path| self.is_unsure(point, path)).cloned().collect()
            }
            _ => Vec::new(),
        };
        plans.retain(|path, _| !unsure.contains(path));
        self.make_possible(&mut plans);
        plans.extend(unsure.into_iter().map(|path| (path, Plan::leave(Verdict::Kept))));
        Some(self.apply(plans, kind, everywhere))
    }

    /// Whether a path may have changed before a safety point that did not look at it.
    fn is_unsure(&self, point: usize, path: &str) -> bool {
        let Some(rewind) = self.points[point].safety_of else { return false };
        let later = self.points[point + 1..].iter();
        let mut looked = later.filter(|point| point.tree.is_some()).map(|point| point.at);
        let looked = looked.next().unwrap_or(usize::MAX);
        let since = self.since(path, self.points[point].at);
        let first = since[0];
        !self.rewinds[rewind].everywhere
            && matches!(self.change(first).author, ModelAuthor::Human | ModelAuthor::Ambiguous(_))
            && first <= looked
            && !since
                .iter()
                .any(|number| self.change(*number).author == ModelAuthor::Rewind(rewind))
    }

    /// Adds the point that the last rewind made before it began.
    pub(crate) fn add_safety_point(&mut self, id: PointId) {
        let last = self.rewinds.len() - 1;
        let at = self.rewinds[last].at;
        self.points.push(Point {
            id,
            at,
            session: None,
            tree: None,
            safety_of: Some(last),
            pinned: false,
            kind: PointKind::Other,
        });
    }

    fn to_undo(&self) -> Option<usize> {
        (0..self.rewinds.len())
            .rev()
            .filter(|at| !self.rewinds[*at].forgotten)
            .find(|at| self.rewinds[*at].kind == Kind::Rewind && !self.is_undone(*at))
    }

    fn to_redo(&self) -> Option<usize> {
        let undo = (0..self.rewinds.len())
            .rev()
            .filter(|at| !self.rewinds[*at].forgotten)
            .find(|at| matches!(self.rewinds[*at].kind, Kind::Undo(_)) && !self.is_undone(*at))?;
        self.to_undo().is_none_or(|standing| standing < undo).then_some(undo)
    }

    fn is_undone(&self, which: usize) -> bool {
        (which + 1..self.rewinds.len()).any(|later| {
            matches!(self.rewinds[later].kind, Kind::Undo(of) | Kind::Redo(of) if of == which)
                && !self.is_undone(later)
        })
    }

    fn continued_by(&self, session: &'static str) -> BTreeSet<&'static str> {
        let mut chosen = BTreeSet::from([session]);
        for _ in 0..self.parents.len() {
            let more = self.parents.iter().filter(|(_, parent)| chosen.contains(*parent));
            chosen.extend(more.map(|(child, _)| *child).collect::<Vec<_>>());
        }
        chosen
    }

    /// The paths that changed since, limited to those requested. `only_of`: those that this rewind
    /// touched.
    fn requested_paths(
        &self,
        at: usize,
        only: &[&'static str],
        only_of: Option<usize>,
    ) -> BTreeSet<String> {
        let named = |path: &str| {
            only.is_empty()
                || only.iter().any(|filter| match filter.strip_suffix("/*") {
                    Some(folder) => {
                        path.strip_prefix(folder).is_some_and(|rest| rest.starts_with('/'))
                    }
                    None => path
                        .strip_prefix(filter)
                        .is_some_and(|rest| rest.is_empty() || rest.starts_with('/')),
                })
        };
        let touched = |path: &str| {
            only_of.is_none_or(|of| {
                self.log.iter().any(|c| c.path == path && c.author == ModelAuthor::Rewind(of))
            })
        };
        let paths = self.log[at..].iter().map(|change| &change.path);
        paths.filter(|path| named(path) && touched(path)).cloned().collect()
    }

    /// Work undone by hand may have been restored since.
    fn may_touch(&self, path: &str, aim: &Aim) -> bool {
        let is_taken = |returns| self.roles(path, aim, true, returns).has(Role::Take);
        matches!(aim, Aim::Exact { .. })
            || is_taken(ReturnPolicy::Ignore)
            || is_taken(ReturnPolicy::Count)
    }

    fn plan(&self, path: &str, aim: &Aim, take_ambiguous: bool) -> Option<Plan> {
        let now = self.disk.get(path).cloned();
        if let Aim::Exact { at } = aim {
            let numbers = self.since(path, *at);
            let verdict = match self.change(numbers[0]).before.clone() {
                PathState::Unknown => Verdict::NotCaptured,
                PathState::Absent if now.is_none() => return None,
                PathState::Present(thing) if now.as_ref() == Some(&thing) => return None,
                PathState::Absent => Verdict::Becomes(None),
                PathState::Present(thing) => Verdict::Becomes(Some(thing)),
            };
            return Some(Plan { verdict, cancels: numbers, unclear: false, in_part: false });
        }
        let roles = self.roles(path, aim, take_ambiguous, ReturnPolicy::Count);
        let leave = |verdict| Some(Plan::leave(verdict));
        if !roles.has(Role::Take) && !roles.has(Role::Ambiguous) {
            let options = matches!(aim, Aim::Point { .. });
            let is_kept = roles.has(Role::Other) && options && self.differs_since(path, aim);
            return if is_kept { leave(Verdict::Kept) } else { None };
        }
        let stays_taken = roles.stays_taken.into_iter().map(|run| (run, Role::Take));
        let runs = roles.of.chunk_by(|a, b| a.1 == b.1);
        let runs =
            runs.map(|run| (run.iter().map(|(number, _)| *number).collect::<Vec<_>>(), run[0].1));
        let runs: Vec<(Vec<usize>, Role)> = stays_taken.chain(runs).collect();
        let mut value = now.clone();
        let mut cancels = Vec::new();
        let (mut unclear, mut in_part) = (false, false);
        for (run, role) in runs.into_iter().rev() {
            let (first, last) = (self.change(run[0]), self.change(run[run.len() - 1]));
            match role {
                Role::Other | Role::Neutral => continue,
                // Restoring a missing file overwrites nothing.
                Role::Ambiguous if last.after != PathState::Absent || value.is_some() => {
                    unclear = true;
                    continue;
                }
                Role::Take | Role::Ambiguous => {}
            }
            let (Some(before), Some(after)) = (certain(&first.before), certain(&last.after)) else {
                return leave(Verdict::NotCaptured);
            };
            let mut overlaps = false;
            match without(value, before, after, &mut overlaps) {
                Some(_) if overlaps && unclear => return leave(Verdict::Ambiguous),
                Some(next) => {
                    value = next;
                    in_part |= overlaps;
                }
                None if unclear => return leave(Verdict::Ambiguous),
                None => return leave(Verdict::Conflict),
            }
            cancels.extend(run);
        }
        if value == now && in_part {
            return leave(Verdict::Conflict);
        }
        if value == now {
            return if unclear { leave(Verdict::Ambiguous) } else { None };
        }
        if in_part {
            cancels.push(IN_PART);
        }
        cancels.sort_unstable();
        Some(Plan { verdict: Verdict::Becomes(value), cancels, unclear, in_part })
    }

    /// The mode of a deleted folder; an ordinary one if the last change is not its deletion.
    fn mode_it_had(&self, folder: &str) -> u32 {
        match self.log.iter().rev().find(|change| change.path == folder) {
            Some(Change {
                before: PathState::Present(Thing::Folder { mode }),
                after: PathState::Absent,
                ..
            }) => *mode,
            _ => 0o755,
        }
    }

    /// Restored files need their folders; a folder is deleted only when nothing is left in it.
    fn make_possible(&self, plans: &mut BTreeMap<String, Plan>) {
        let coming: Vec<String> = plans
            .iter()
            .filter(|(_, plan)| matches!(plan.verdict, Verdict::Becomes(Some(_))))
            .map(|(path, _)| path.clone())
            .collect();
        for path in coming {
            let above: Vec<&str> = folders_above(&path).collect();
            let blocked = above.iter().any(|folder| {
                matches!(self.in_the_end(plans, folder), Some(Thing::File { .. } | Thing::Link(_)))
            });
            if blocked {
                replace(plans, &path, Verdict::Conflict);
                continue;
            }
            for folder in above {
                if self.in_the_end(plans, folder).is_some() {
                    continue;
                }
                if matches!(self.disk.get(folder), Some(Thing::Folder { .. })) {
                    replace(plans, folder, Verdict::Kept);
                    continue;
                }
                let mode = self.mode_it_had(folder);
                let plan = plans.entry(folder.to_owned()).or_insert(Plan::leave(Verdict::Kept));
                plan.verdict = Verdict::Becomes(Some(Thing::Folder { mode }));
            }
        }
        // Deepest first, which the order of paths backwards is.
        for folder in self.disk.keys().rev() {
            let Some(Plan { verdict: Verdict::Becomes(goal), .. }) = plans.get(folder) else {
                continue;
            };
            let was_folder = matches!(self.disk[folder], Thing::Folder { .. });
            if !was_folder || matches!(goal, Some(Thing::Folder { .. })) {
                continue;
            }
            let verdict = if goal.is_none() { Verdict::Kept } else { Verdict::Conflict };
            let mut within =
                self.disk.keys().filter(|path| folders_above(path).any(|above| above == folder));
            if within.any(|path| self.in_the_end(plans, path).is_some()) {
                replace(plans, folder, verdict);
            }
        }
    }

    fn in_the_end(&self, plans: &BTreeMap<String, Plan>, path: &str) -> Option<Thing> {
        match plans.get(path) {
            Some(Plan { verdict: Verdict::Becomes(goal), .. }) => goal.clone(),
            _ => self.disk.get(path).cloned(),
        }
    }

    fn apply(
        &mut self,
        plans: BTreeMap<String, Plan>,
        kind: Kind,
        everywhere: bool,
    ) -> ReceiptPaths {
        let mut expected = ReceiptPaths::default();
        let id = self.rewinds.len();
        let at = self.log.len();
        for (path, plan) in plans {
            let list = match &plan.verdict {
                Verdict::Becomes(Some(_)) => &mut expected.restored,
                Verdict::Becomes(None) => &mut expected.deleted,
                Verdict::Kept => &mut expected.kept,
                Verdict::Conflict => &mut expected.conflicts,
                Verdict::Ambiguous => &mut expected.ambiguous,
                Verdict::NotCaptured => &mut expected.not_captured,
            };
            list.insert(path.clone());
            if plan.in_part {
                expected.conflicts.insert(path.clone());
            }
            if plan.unclear {
                expected.ambiguous.insert(path.clone());
            }
            let Verdict::Becomes(goal) = plan.verdict else { continue };
            let before = state_of(self.disk.remove(&path));
            self.disk.extend(goal.clone().map(|thing| (path.clone(), thing)));
            self.note(&path, &before, goal.as_ref());
            let cancels = plan.cancels;
            self.log.push(Change {
                path,
                before,
                after: state_of(goal),
                author: ModelAuthor::Rewind(id),
                call: None,
                was_in_doubt: false,
                cancels,
            });
        }
        if self.log.len() > at {
            self.rewinds.push(RewindRecord { kind, at, everywhere, forgotten: false });
        }
        expected
    }
}

/// Replaces a step that cannot be done by another verdict; unclear stays unclear.
fn replace(plans: &mut BTreeMap<String, Plan>, path: &str, verdict: Verdict) {
    let plan = plans.entry(path.to_owned()).or_insert(Plan::leave(verdict.clone()));
    *plan = Plan { unclear: plan.unclear, ..Plan::leave(verdict) };
}

/// The sessions that may have made the change.
fn sessions(author: &ModelAuthor) -> &[&'static str] {
    match author {
        ModelAuthor::Agent(session) => std::slice::from_ref(session),
        ModelAuthor::Ambiguous(sessions) => sessions,
        ModelAuthor::Human | ModelAuthor::Rewind(_) | ModelAuthor::Deleted => &[],
    }
}

fn is_chosen(scope: &Scope, author: &ModelAuthor) -> bool {
    let sessions = sessions(author);
    match scope {
        Scope::All => !sessions.is_empty(),
        Scope::Only(chosen) => sessions.iter().any(|session| chosen.contains(session)),
    }
}

fn certain(state: &PathState) -> Option<Option<&Thing>> {
    match state {
        PathState::Unknown => None,
        PathState::Absent => Some(None),
        PathState::Present(thing) => Some(Some(thing)),
    }
}

/// Stands among the cancelled changes where some of their effect is still there.
pub(in crate::oracle) const IN_PART: usize = 0;

/// `now` without the step from `before` to `after`; `None`: they conflict. `overlaps`: sections stay that
/// were changed since.
fn without(
    now: Option<Thing>,
    before: Option<&Thing>,
    after: Option<&Thing>,
    overlaps: &mut bool,
) -> Option<Option<Thing>> {
    if now.as_ref() == after || now.as_ref() == before {
        return Some(before.cloned());
    }
    if before == after {
        return Some(now);
    }
    match (now?, before?, after?) {
        (
            Thing::File { bytes: now, mode: now_mode },
            Thing::File { bytes: before, mode: before_mode },
            Thing::File { bytes: after, mode: after_mode },
        ) => {
            let mode = *value_without(&now_mode, before_mode, after_mode)?;
            let bytes = match value_without(&now, before, after) {
                Some(bytes) => bytes.clone(),
                None => text_without(&now, before, after, overlaps)?,
            };
            Some(Some(Thing::File { bytes, mode }))
        }
        (
            Thing::Folder { mode: now },
            Thing::Folder { mode: before },
            Thing::Folder { mode: after },
        ) => Some(Some(Thing::Folder { mode: *value_without(&now, before, after)? })),
        _ => None,
    }
}

fn value_without<'a, T: PartialEq>(now: &'a T, before: &'a T, after: &T) -> Option<&'a T> {
    if now == after || now == before {
        Some(before)
    } else if before == after {
        Some(now)
    } else {
        None
    }
}

/// Section by section. Texts of different frames have no line in common: then all of it stays.
fn text_without(now: &[u8], before: &[u8], after: &[u8], overlaps: &mut bool) -> Option<Vec<u8>> {
    // What is no text is binary, or a line or two.
    if [now, before, after].iter().any(|bytes| bytes.contains(&0)) {
        return None;
    }
    let (Some((frame, sections)), Some((frame_before, before)), Some((frame_after, after))) =
        (parts(now), parts(before), parts(after))
    else {
        *overlaps = true;
        return Some(now.to_vec());
    };
    if frame != frame_before || frame != frame_after {
        *overlaps = true;
        return Some(now.to_vec());
    }
    let mut section = |i: usize| match value_without(&sections[i], &before[i], &after[i]) {
        Some(section) => section.clone(),
        None => {
            *overlaps = true;
            sections[i].clone()
        }
    };
    let sections: Vec<String> = (0..sections.len()).map(&mut section).collect();
    Some(whole(&frame, &sections))
}
