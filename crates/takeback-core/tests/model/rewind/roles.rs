//! The part each change of a path plays in a rewind.

use super::*;

impl Oracle {
    pub(super) fn roles(
        &self,
        path: &str,
        aim: &Aim,
        take_ambiguous: bool,
        returns: ReturnPolicy,
    ) -> Roles {
        let at = match aim {
            Aim::Point { at, .. } | Aim::Exact { at } | Aim::Without { at, .. } => *at,
        };
        let numbers = self.since(path, at);
        let blocks = self.blocks(&numbers);
        let mut without_effect: BTreeSet<usize> = BTreeSet::new();
        let mut still_taken: BTreeSet<usize> = BTreeSet::new();
        let mut goes_back: BTreeSet<usize> = BTreeSet::new();
        let mut earlier_state: BTreeSet<usize> = BTreeSet::new();
        // The newest decide.
        for (place, block) in blocks.iter().enumerate().rev() {
            if without_effect.contains(&block[0]) {
                continue;
            }
            let (number, last) = (block[0], block[block.len() - 1]);
            let cancels = &self.change(number).cancels;
            match aim {
                Aim::Point { at, scope } if self.is_aimed_at(number, aim) => {
                    let since = cancels.iter().filter(|cancelled| *cancelled > at);
                    still_taken.extend(since.filter(|of| self.is_others_work(**of, scope)));
                    earlier_state.extend(self.effective(cancels, *at));
                }
                _ if self.is_aimed_at(number, aim) => {}
                // What is partly there still counts; a rewind that is partly undone does not.
                _ if cancels.first() == Some(&IN_PART) => {
                    let is_rewind = |number: &&usize| {
                        **number != IN_PART
                            && matches!(self.change(**number).author, ModelAuthor::Rewind(_))
                    };
                    without_effect.extend(cancels.iter().filter(is_rewind));
                }
                _ => without_effect.extend(cancels),
            }
            let back_to = self.goes_back_to(&blocks, place);
            if let Some(from) = back_to
                && returns == ReturnPolicy::Count
                && !still_taken.contains(&last)
            {
                without_effect.extend(blocks[from..place].iter().flatten());
                goes_back.extend(block);
            }
        }
        let role = |number: usize| {
            let change = self.change(number);
            match (&change.author, aim) {
                _ if self.is_aimed_at(number, aim) || still_taken.contains(&number) => Role::Take,
                _ if goes_back.contains(&number) => Role::Neutral,
                (ModelAuthor::Rewind(_), _) => Role::Neutral,
                (author, Aim::Point { scope, .. }) if is_chosen(scope, author) => {
                    let in_doubt = self.is_in_doubt(change) && !take_ambiguous;
                    if in_doubt { Role::Ambiguous } else { Role::Take }
                }
                _ if change.before == PathState::Unknown => Role::Neutral,
                _ => Role::Other,
            }
        };
        let live = numbers.iter().filter(|number| !without_effect.contains(*number));
        let of = live.map(|number| (*number, role(*number))).collect();
        let mut stays_taken = Vec::new();
        if let Aim::Point { scope, .. } = aim {
            let earlier: Vec<usize> = earlier_state.into_iter().collect();
            let is_others = |number: &usize| self.is_others_work(*number, scope);
            let runs = earlier.chunk_by(|a, b| is_others(a) == is_others(b));
            stays_taken.extend(runs.filter(|run| is_others(&run[0])).map(<[usize]>::to_vec));
        }
        Roles { of, stays_taken }
    }

    /// The changes of a path after a moment, oldest first. If the path was dropped from the store and then
    /// seen for the first time again, its earlier history is unknown.
    pub(in crate::oracle) fn since(&self, path: &str, at: usize) -> Vec<usize> {
        let own = |from: usize| -> Vec<usize> {
            let numbers = from + 1..=self.log.len();
            numbers.filter(|number| self.change(*number).path == path).collect()
        };
        let forgotten = self.forgotten.get(path).copied().unwrap_or(0).max(at);
        let later = own(forgotten);
        let is_first_sight = |number: &usize| self.change(*number).before == PathState::Unknown;
        if later.first().is_some_and(is_first_sight) { later } else { own(at) }
    }

    /// Neighbours by one author, with no point between them, that were taken back together or not at
    /// all.
    pub(super) fn blocks(&self, numbers: &[usize]) -> Vec<Vec<usize>> {
        let takers = |number: &usize| -> Vec<usize> {
            let later = *number + 1..=self.log.len();
            later.filter(|later| self.change(*later).cancels.contains(number)).collect()
        };
        let goes_on = |a: &usize, b: &usize| {
            self.is_one_author(*a, *b)
                && !self.points.iter().any(|point| *a <= point.at && point.at < *b)
                && takers(a) == takers(b)
        };
        numbers.chunk_by(goes_on).map(<[usize]>::to_vec).collect()
    }

    fn is_one_author(&self, a: usize, b: usize) -> bool {
        let (a, b) = (self.change(a), self.change(b));
        let is_rewind = matches!(a.author, ModelAuthor::Rewind(_));
        !is_rewind && a.author == b.author && self.is_in_doubt(a) == self.is_in_doubt(b)
    }

    /// If a block restores the state before an earlier block: that block.
    fn goes_back_to(&self, blocks: &[Vec<usize>], place: usize) -> Option<usize> {
        let by = self.change(blocks[place][blocks[place].len() - 1]);
        if by.after == PathState::Unknown {
            return None;
        }
        let earlier_state = |place: &usize| match place.checked_sub(1) {
            None => &self.change(blocks[0][0]).before,
            Some(earlier) => &self.change(blocks[earlier][blocks[earlier].len() - 1]).after,
        };
        let from = (0..=place).rev().find(|place| *earlier_state(place) == by.after)?;
        let between = &blocks[from..place];
        let own = sessions(&by.author);
        let is_own = |number: &usize| {
            let sessions = sessions(&self.change(*number).author);
            !sessions.is_empty() && sessions.iter().all(|session| own.contains(session))
        };
        // An agent may destroy its own work only.
        let may = match by.author {
            ModelAuthor::Human => true,
            ModelAuthor::Agent(_) | ModelAuthor::Ambiguous(_) => {
                self.is_in_doubt(by) && between.iter().flatten().all(is_own)
            }
            ModelAuthor::Rewind(_) | ModelAuthor::Deleted => false,
        };
        (may && !between.is_empty()).then_some(from)
    }

    /// Whether it is the work of an author outside the scope.
    pub(super) fn is_others_work(&self, number: usize, scope: &Scope) -> bool {
        let change = self.change(number);
        let is_work = !matches!(change.author, ModelAuthor::Rewind(_) | ModelAuthor::Deleted);
        is_work && change.before != PathState::Unknown && !is_chosen(scope, &change.author)
    }

    /// Of the changes that a rewind took back, those up to a moment that had an effect then.
    pub(super) fn effective(&self, cancelled: &[usize], at: usize) -> Vec<usize> {
        let mut earlier: Vec<usize> =
            cancelled.iter().copied().filter(|one| *one != IN_PART && *one <= at).collect();
        earlier.sort_unstable();
        let mut taken_back: BTreeSet<usize> = BTreeSet::new();
        let mut effective = Vec::new();
        for number in earlier.into_iter().rev() {
            if !taken_back.contains(&number) {
                taken_back.extend(&self.change(number).cancels);
                effective.push(number);
            }
        }
        effective
    }

    /// Whether the last known state of the path differs from its state at the aim's moment.
    pub(super) fn differs_since(&self, path: &str, aim: &Aim) -> bool {
        let at = match aim {
            Aim::Point { at, .. } | Aim::Exact { at } | Aim::Without { at, .. } => *at,
        };
        let own = self.since(path, at);
        let before = own.first().map(|first| &self.change(*first).before);
        before != own.last().map(|last| &self.change(*last).after)
    }

    pub(in crate::oracle) fn change(&self, number: usize) -> &Change {
        &self.log[number - 1]
    }

    /// Whether a rewind's change must itself be taken back: the rewind is being undone, or it came
    /// after the point and cancelled work of the chosen sessions from before the point.
    pub(super) fn is_aimed_at(&self, number: usize, aim: &Aim) -> bool {
        let change = self.change(number);
        match (aim, &change.author) {
            (Aim::Without { rewind, .. }, ModelAuthor::Rewind(id)) => id == rewind,
            (Aim::Point { at, scope }, ModelAuthor::Rewind(_)) => {
                number > *at
                    && change
                        .cancels
                        .iter()
                        .any(|cancelled| cancelled <= at && self.is_about(*cancelled, scope))
            }
            _ => false,
        }
    }

    /// Whether a change is by the chosen sessions, or cancels such a change, directly or not.
    pub(super) fn is_about(&self, number: usize, scope: &Scope) -> bool {
        if number == IN_PART {
            return false;
        }
        let change = self.change(number);
        is_chosen(scope, &change.author)
            || change.cancels.iter().any(|number| self.is_about(*number, scope))
    }
}
