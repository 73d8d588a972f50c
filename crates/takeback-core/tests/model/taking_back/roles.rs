//! The part each change of a path plays in a rewind.

use super::*;

impl Oracle {
    pub(super) fn roles(
        &self,
        path: &str,
        aim: &Aim,
        take_ambiguous: bool,
        returns: Returns,
    ) -> Roles {
        let at = match aim {
            Aim::Point { at, .. } | Aim::Exact { at } | Aim::Without { at, .. } => *at,
        };
        let numbers = self.since(path, at);
        let blocks = self.blocks(&numbers);
        let mut without_effect: BTreeSet<usize> = BTreeSet::new();
        let mut still_taken: BTreeSet<usize> = BTreeSet::new();
        let mut goes_back: BTreeSet<usize> = BTreeSet::new();
        let mut stood_before: BTreeSet<usize> = BTreeSet::new();
        // The newest have the last word.
        for (place, block) in blocks.iter().enumerate().rev() {
            if without_effect.contains(&block[0]) {
                continue;
            }
            let (number, last) = (block[0], block[block.len() - 1]);
            let cancels = &self.change(number).cancels;
            match aim {
                Aim::Point { at, whose } if self.is_aimed_at(number, aim) => {
                    let since = cancels.iter().filter(|cancelled| *cancelled > at);
                    still_taken.extend(since.filter(|of| self.is_others_work(**of, whose)));
                    stood_before.extend(self.stood(cancels, *at));
                }
                _ if self.is_aimed_at(number, aim) => {}
                _ => without_effect.extend(cancels),
            }
            let back_to = self.goes_back_to(&blocks, place);
            if let Some(from) = back_to
                && returns == Returns::Count
                && !still_taken.contains(&last)
            {
                without_effect.extend(blocks[from..place].iter().flatten());
                goes_back.extend(block);
            }
        }
        let role = |number: usize| {
            let change = self.change(number);
            match (&change.who, aim) {
                _ if self.is_aimed_at(number, aim) || still_taken.contains(&number) => Role::Take,
                _ if goes_back.contains(&number) => Role::Nobody,
                (Who::Rewind(_), _) => Role::Nobody,
                (who, Aim::Point { whose, .. }) if chosen(whose, who) => {
                    let in_doubt = self.is_in_doubt(change) && !take_ambiguous;
                    if in_doubt { Role::Perhaps } else { Role::Take }
                }
                _ if change.before == Seen::Unknown => Role::Nobody,
                _ => Role::Other,
            }
        };
        let live = numbers.iter().filter(|number| !without_effect.contains(*number));
        let of = live.map(|number| (*number, role(*number))).collect();
        let mut stays_taken = Vec::new();
        if let Aim::Point { whose, .. } = aim {
            let stood: Vec<usize> = stood_before.into_iter().collect();
            let is_others = |number: &usize| self.is_others_work(*number, whose);
            let runs = stood.chunk_by(|a, b| is_others(a) == is_others(b));
            stays_taken.extend(runs.filter(|run| is_others(&run[0])).map(<[usize]>::to_vec));
        }
        Roles { of, stays_taken }
    }

    /// The changes of a path after a moment, oldest first. If nothing was left of it, and it was seen for
    /// the first time once more, what was before that is not known any more.
    pub(in crate::oracle) fn since(&self, path: &str, at: usize) -> Vec<usize> {
        let own = |from: usize| -> Vec<usize> {
            let numbers = from + 1..=self.log.len();
            numbers.filter(|number| self.change(*number).path == path).collect()
        };
        let forgotten = self.forgotten.get(path).copied().unwrap_or(0).max(at);
        let later = own(forgotten);
        let is_first_sight = |number: &usize| self.change(*number).before == Seen::Unknown;
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
        let is_rewind = matches!(a.who, Who::Rewind(_));
        !is_rewind && a.who == b.who && self.is_in_doubt(a) == self.is_in_doubt(b)
    }

    /// If a block brings back what stood there before an earlier one: which.
    fn goes_back_to(&self, blocks: &[Vec<usize>], place: usize) -> Option<usize> {
        let by = self.change(blocks[place][blocks[place].len() - 1]);
        if by.after == Seen::Unknown {
            return None;
        }
        let stood_before = |place: &usize| match place.checked_sub(1) {
            None => &self.change(blocks[0][0]).before,
            Some(earlier) => &self.change(blocks[earlier][blocks[earlier].len() - 1]).after,
        };
        let from = (0..=place).rev().find(|place| *stood_before(place) == by.after)?;
        let between = &blocks[from..place];
        let own = sessions(&by.who);
        let is_own = |number: &usize| {
            let sessions = sessions(&self.change(*number).who);
            !sessions.is_empty() && sessions.iter().all(|session| own.contains(session))
        };
        // An agent may destroy its own work only.
        let may = match by.who {
            Who::Human => true,
            Who::Agent(_) | Who::Perhaps(_) => {
                self.is_in_doubt(by) && between.iter().flatten().all(is_own)
            }
            Who::Rewind(_) | Who::Deleted => false,
        };
        (may && !between.is_empty()).then_some(from)
    }

    /// Whether somebody else than the chosen wrote it.
    pub(super) fn is_others_work(&self, number: usize, whose: &Whose) -> bool {
        let change = self.change(number);
        let is_work = !matches!(change.who, Who::Rewind(_) | Who::Deleted);
        is_work && change.before != Seen::Unknown && !chosen(whose, &change.who)
    }

    /// Of what a rewind took back, the changes up to a moment that had their effect then.
    pub(super) fn stood(&self, cancelled: &[usize], at: usize) -> Vec<usize> {
        let mut earlier: Vec<usize> = cancelled.iter().copied().filter(|one| *one <= at).collect();
        earlier.sort_unstable();
        let mut taken_back: BTreeSet<usize> = BTreeSet::new();
        let mut stood = Vec::new();
        for number in earlier.into_iter().rev() {
            if !taken_back.contains(&number) {
                taken_back.extend(&self.change(number).cancels);
                stood.push(number);
            }
        }
        stood
    }

    /// Whether what was last seen at the path is something else than what stood there at the aim's
    /// moment.
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

    /// Whether a change of a rewind is itself to be taken back: it is what is undone; or it came
    /// after the point and cancelled, from before the point, something of the chosen sessions.
    pub(super) fn is_aimed_at(&self, number: usize, aim: &Aim) -> bool {
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
    pub(super) fn is_about(&self, number: usize, whose: &Whose) -> bool {
        let change = self.change(number);
        chosen(whose, &change.who)
            || change.cancels.iter().any(|number| self.is_about(*number, whose))
    }
}
