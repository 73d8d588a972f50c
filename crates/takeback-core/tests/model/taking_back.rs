//! What a rewind, an undo and a redo are to do: decided change by change from the oracle's own log.

use std::collections::{BTreeMap, BTreeSet};

use takeback_store::PointId;
use takeback_testkit::Thing;

use super::{
    Ask, Change, Done, Expected, Kind, Look, Oracle, Point, Seen, Target, Who, Whose,
    folders_above, seen,
};
use crate::deeds::{parts, whole};

#[derive(Debug, Clone)]
struct Plan {
    verdict: Verdict,
    cancels: Vec<usize>,
}

#[derive(Debug, Clone, PartialEq, Eq)]
enum Verdict {
    Becomes(Option<Thing>),
    Kept,
    Conflict,
    Ambiguous,
    Lacking,
}

/// What is taken back, in terms of the log.
enum Aim {
    Point { at: usize, whose: Whose },
    Exact { at: usize },
    Without { rewind: usize, at: usize },
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Role {
    Take,
    Perhaps,
    Other,
    /// A rewind that stands, or a first sight.
    Nobody,
}

impl Oracle {
    /// The disk, the log and the answer after a rewind; none: there is nothing to undo or redo.
    pub(crate) fn rewind(&mut self, ask: &Ask) -> Option<Expected> {
        let (aim, kind) = match ask.target {
            Target::Point(at) => {
                let point = &self.points[at];
                let whose = ask.whose.clone().unwrap_or_else(|| match point.session {
                    Some(session) => Whose::Only(self.continued_by(session)),
                    None => Whose::All,
                });
                (Aim::Point { at: point.at, whose }, Kind::Rewind)
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
        let only_of = match (ask.target, &aim) {
            _ if !ask.exact => None,
            (Target::Point(point), _) => self.points[point].safety_of,
            (_, Aim::Without { rewind, .. }) => Some(*rewind),
            _ => None,
        };
        let aim = if ask.exact { Aim::Exact { at } } else { aim };
        // With nobody at work, only what may be touched is looked at.
        if ask.exact || !self.in_turn.is_empty() || self.live_calls().next().is_some() {
            self.look_around();
        }
        let mut touched = self.asked_for(at, &ask.paths, only_of);
        touched.retain(|path| self.may_touch(path, &aim));
        let mut look: Vec<String> = touched.iter().cloned().collect();
        look.extend(touched.iter().flat_map(|path| folders_above(path)).map(str::to_owned));
        self.record(Look::Nowhere, &look, None);

        let mut plans = BTreeMap::new();
        for path in self.asked_for(at, &ask.paths, only_of) {
            if let Some(plan) = self.plan(&path, &aim, ask.take_ambiguous) {
                plans.insert(path, plan);
            }
        }
        self.make_possible(&mut plans);
        Some(self.carry_out(plans, kind))
    }

    /// The point that the last rewind made before it began.
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

    /// The paths that changed since, as far as they are asked for. `only_of`: those that this rewind
    /// touched.
    fn asked_for(
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
                self.log.iter().any(|c| c.path == path && c.who == Who::Rewind(of))
            })
        };
        let paths = self.log[at..].iter().map(|change| &change.path);
        paths.filter(|path| named(path) && touched(path)).cloned().collect()
    }

    fn may_touch(&self, path: &str, aim: &Aim) -> bool {
        matches!(aim, Aim::Exact { .. })
            || self.roles(path, aim, true).iter().any(|(_, role)| *role == Role::Take)
    }

    /// The changes of the path after the aim's moment that have an effect, oldest first.
    fn roles(&self, path: &str, aim: &Aim, take_ambiguous: bool) -> Vec<(usize, Role)> {
        let at = match aim {
            Aim::Point { at, .. } | Aim::Exact { at } | Aim::Without { at, .. } => *at,
        };
        let mut roles = Vec::new();
        for number in (at + 1..=self.log.len()).filter(|number| self.change(*number).path == path) {
            if !self.is_live(number, &|rewind| self.is_aimed_at(rewind, aim)) {
                continue;
            }
            let change = self.change(number);
            let role = match (&change.who, aim) {
                (Who::Rewind(_), _) if self.is_aimed_at(number, aim) => Role::Take,
                (Who::Rewind(_), _) => Role::Nobody,
                (Who::Perhaps(_), Aim::Point { whose, .. })
                    if chosen(whose, &change.who) && !take_ambiguous =>
                {
                    Role::Perhaps
                }
                (who, Aim::Point { whose, .. }) if chosen(whose, who) => Role::Take,
                _ if change.before == Seen::Unknown => Role::Nobody,
                _ => Role::Other,
            };
            roles.push((number, role));
        }
        roles
    }

    /// Whether what was last seen at the path is something else than what stood there at the aim's
    /// moment.
    fn differs_since(&self, path: &str, aim: &Aim) -> bool {
        let at = match aim {
            Aim::Point { at, .. } | Aim::Exact { at } | Aim::Without { at, .. } => *at,
        };
        let own: Vec<&Change> = self.log[at..].iter().filter(|c| c.path == path).collect();
        own.first().map(|change| &change.before) != own.last().map(|change| &change.after)
    }

    fn change(&self, number: usize) -> &Change {
        &self.log[number - 1]
    }

    /// Whether a change of a rewind is itself to be taken back: it is what is undone; or it came
    /// after the point and cancelled, from before the point, something of the chosen sessions.
    fn is_aimed_at(&self, number: usize, aim: &Aim) -> bool {
        let change = self.change(number);
        match (aim, &change.who) {
            (Aim::Without { rewind, .. }, Who::Rewind(id)) => id == rewind,
            (Aim::Point { at, whose }, Who::Rewind(_)) => {
                number > *at
                    && change
                        .cancels
                        .iter()
                        .any(|cancelled| cancelled <= at && self.is_about(*cancelled, whose))
            }
            _ => false,
        }
    }

    /// Whether a change is of the chosen sessions, or cancels one that is, or one that cancels one …
    fn is_about(&self, number: usize, whose: &Whose) -> bool {
        let change = self.change(number);
        chosen(whose, &change.who)
            || change.cancels.iter().any(|number| self.is_about(*number, whose))
    }

    /// A change has its effect unless a rewind that has its own cancelled it. `spared` rewinds are
    /// looked upon as cancelling nothing.
    fn is_live(&self, number: usize, spared: &dyn Fn(usize) -> bool) -> bool {
        !(number + 1..=self.log.len()).any(|later| {
            self.change(later).cancels.contains(&number)
                && !spared(later)
                && self.is_live(later, spared)
        })
    }

    fn plan(&self, path: &str, aim: &Aim, take_ambiguous: bool) -> Option<Plan> {
        let now = self.disk.get(path).cloned();
        if let Aim::Exact { at } = aim {
            let numbers: Vec<usize> = (at + 1..=self.log.len())
                .filter(|number| self.change(*number).path == path)
                .collect();
            let verdict = match self.change(numbers[0]).before.clone() {
                Seen::Unknown => Verdict::Lacking,
                Seen::Nothing if now.is_none() => return None,
                Seen::A(thing) if now.as_ref() == Some(&thing) => return None,
                Seen::Nothing => Verdict::Becomes(None),
                Seen::A(thing) => Verdict::Becomes(Some(thing)),
            };
            return Some(Plan { verdict, cancels: numbers });
        }
        let roles = self.roles(path, aim, take_ambiguous);
        let left = |verdict| Some(Plan { verdict, cancels: Vec::new() });
        if !roles.iter().any(|(_, role)| matches!(role, Role::Take | Role::Perhaps)) {
            let others = roles.iter().any(|(_, role)| *role == Role::Other);
            let asked = matches!(aim, Aim::Point { .. });
            let differs = self.differs_since(path, aim);
            return if others && asked && differs { left(Verdict::Kept) } else { None };
        }
        let mut value = now.clone();
        let mut cancels = Vec::new();
        for run in roles.chunk_by(|a, b| a.1 == b.1).rev() {
            let (first, last) = (self.change(run[0].0), self.change(run[run.len() - 1].0));
            match run[0].1 {
                Role::Other | Role::Nobody => continue,
                // Bringing back what is missing harms nobody.
                Role::Perhaps if last.after != Seen::Nothing || value.is_some() => {
                    return left(Verdict::Ambiguous);
                }
                Role::Take | Role::Perhaps => {}
            }
            let (Some(before), Some(after)) = (certain(&first.before), certain(&last.after)) else {
                return left(Verdict::Lacking);
            };
            match without(value, before, after) {
                Some(next) => value = next,
                None => return left(Verdict::Conflict),
            }
            cancels.extend(run.iter().map(|(number, _)| *number));
        }
        cancels.sort_unstable();
        (value != now).then_some(Plan { verdict: Verdict::Becomes(value), cancels })
    }

    /// The mode of a folder that is gone; an ordinary one if the last that is known of it is not that.
    fn mode_it_had(&self, folder: &str) -> u32 {
        match self.log.iter().rev().find(|change| change.path == folder) {
            Some(Change {
                before: Seen::A(Thing::Folder { mode }), after: Seen::Nothing, ..
            }) => *mode,
            _ => 0o755,
        }
    }

    /// What comes back needs its folders; a folder goes only when nothing is left in it.
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
                plans.insert(path, Plan { verdict: Verdict::Conflict, cancels: Vec::new() });
                continue;
            }
            for folder in above {
                if self.in_the_end(plans, folder).is_some() {
                    continue;
                }
                let stays = matches!(self.disk.get(folder), Some(Thing::Folder { .. }));
                let old = plans.remove(folder).map(|plan| plan.cancels).unwrap_or_default();
                let plan = if stays {
                    Plan { verdict: Verdict::Kept, cancels: Vec::new() }
                } else {
                    Plan {
                        verdict: Verdict::Becomes(Some(Thing::Folder {
                            mode: self.mode_it_had(folder),
                        })),
                        cancels: old,
                    }
                };
                plans.insert(folder.to_owned(), plan);
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
                plans.insert(folder.clone(), Plan { verdict, cancels: Vec::new() });
            }
        }
    }

    fn in_the_end(&self, plans: &BTreeMap<String, Plan>, path: &str) -> Option<Thing> {
        match plans.get(path) {
            Some(Plan { verdict: Verdict::Becomes(goal), .. }) => goal.clone(),
            _ => self.disk.get(path).cloned(),
        }
    }

    fn carry_out(&mut self, plans: BTreeMap<String, Plan>, kind: Kind) -> Expected {
        let mut expected = Expected::default();
        let id = self.rewinds.len();
        let at = self.log.len();
        for (path, plan) in plans {
            let list = match &plan.verdict {
                Verdict::Becomes(Some(_)) => &mut expected.restored,
                Verdict::Becomes(None) => &mut expected.deleted,
                Verdict::Kept => &mut expected.kept,
                Verdict::Conflict => &mut expected.conflicts,
                Verdict::Ambiguous => &mut expected.ambiguous,
                Verdict::Lacking => &mut expected.lacking,
            };
            list.insert(path.clone());
            let Verdict::Becomes(goal) = plan.verdict else { continue };
            let before = seen(self.disk.remove(&path));
            self.disk.extend(goal.clone().map(|thing| (path.clone(), thing)));
            self.note(&path, &before, goal.as_ref());
            let cancels = plan.cancels;
            self.log.push(Change {
                path,
                before,
                after: seen(goal),
                who: Who::Rewind(id),
                cancels,
            });
        }
        if self.log.len() > at {
            self.rewinds.push(Done { kind, at, forgotten: false });
        }
        expected
    }
}

fn chosen(whose: &Whose, who: &Who) -> bool {
    let sessions: &[&'static str] = match who {
        Who::Agent(session) => std::slice::from_ref(session),
        Who::Perhaps(sessions) => sessions,
        Who::Human | Who::Rewind(_) | Who::Deleted => &[],
    };
    match whose {
        Whose::All => !sessions.is_empty(),
        Whose::Only(chosen) => sessions.iter().any(|session| chosen.contains(session)),
    }
}

fn certain(seen: &Seen) -> Option<Option<&Thing>> {
    match seen {
        Seen::Unknown => None,
        Seen::Nothing => Some(None),
        Seen::A(thing) => Some(Some(thing)),
    }
}

/// `now` without the step from `before` to `after`; none: they do not go together.
fn without(
    now: Option<Thing>,
    before: Option<&Thing>,
    after: Option<&Thing>,
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
                None => text_without(&now, before, after)?,
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

/// Section by section. Texts of another frame have no line in common.
fn text_without(now: &[u8], before: &[u8], after: &[u8]) -> Option<Vec<u8>> {
    let (frame, now) = parts(now)?;
    let (frame_before, before) = parts(before)?;
    let (frame_after, after) = parts(after)?;
    if frame != frame_before || frame != frame_after {
        return None;
    }
    let sections: Option<Vec<String>> =
        (0..now.len()).map(|i| value_without(&now[i], &before[i], &after[i]).cloned()).collect();
    Some(whole(&frame, &sections?))
}
