//! The lines that are in only one of two texts, by the path git would take from one to the other.
//! Refuses searches that take too long.

use std::iter::zip;
use std::ops::RangeInclusive;

/// For each line of either text whether it is left out of what the two have in common. Nothing if
/// the search would visit more than about `work` diagonals, of which 200 million take a second.
pub(super) fn changed_lines(old: &[u32], new: &[u32], work: usize) -> Option<[Vec<bool>; 2]> {
    let mut removed = vec![false; old.len()];
    let mut added = vec![false; new.len()];
    let mut search = Search::new(old.len() + new.len() + 3, work);
    let mut areas = vec![(0..old.len(), 0..new.len(), Aim::ShortEnough)];
    while let Some((mut x, mut y, aim)) = areas.pop() {
        let above = common_prefix(&old[x.clone()], &new[y.clone()]);
        (x.start, y.start) = (x.start + above, y.start + above);
        let below = common_suffix(&old[x.clone()], &new[y.clone()]);
        (x.end, y.end) = (x.end - below, y.end - below);
        if x.is_empty() || y.is_empty() {
            removed[x].fill(true);
            added[y].fill(true);
        } else {
            let split = search.split(&old[x.clone()], &new[y.clone()], aim)?;
            let middle = (x.start + split.x as usize, y.start + split.y as usize);
            areas.push((middle.0..x.end, middle.1..y.end, split.aims[1]));
            areas.push((x.start..middle.0, y.start..middle.1, split.aims[0]));
        }
    }
    Some([removed, added])
}

/// Myers' linear-space search for a short edit script ("An O(ND) Difference Algorithm and Its
/// Variations", 1986): from both corners of an area at once until the paths meet, then again in the
/// two areas before and after that point. `x` counts lines of the old text, `y` of the new one, and
/// a diagonal is `x - y`.
struct Search {
    forward: Frontier,
    backward: Frontier,
    /// Edits after which a search that need not be minimal settles for the furthest point.
    patience: i32,
    work_left: usize,
}

/// How many equal lines in a row make a path promising, and after how many edits to look for one.
const LONG_SNAKE: usize = 20;
const EDITS_BEFORE_SAMPLING: i32 = 256;

#[derive(Clone, Copy)]
enum Aim {
    Shortest,
    ShortEnough,
}

/// A point within an area, and what to aim for before and after it.
struct Split {
    x: i32,
    y: i32,
    aims: [Aim; 2],
}

impl Search {
    fn new(diagonals: usize, work: usize) -> Self {
        Self {
            forward: Frontier::new(diagonals),
            backward: Frontier::new(diagonals),
            patience: rough_sqrt(diagonals).max(256).cast_signed(),
            work_left: work,
        }
    }

    /// Where to cut an area in two, or nothing if the work is used up.
    fn split(&mut self, old: &[u32], new: &[u32], aim: Aim) -> Option<Split> {
        let (width, height) = (signed(old.len()), signed(new.len()));
        let odd = (width - height) & 1 != 0;
        self.forward.begin(height, 0, 0);
        self.backward.begin(height, width - height, width);

        let mut edits = 0;
        loop {
            edits += 1;
            let (mut longest, mut walked) = (0, 0);
            self.forward.widen(-height..=width, i32::MIN);
            for diagonal in self.forward.diagonals() {
                let [left, above] = self.forward.beside(diagonal);
                let from = if left >= above { left + 1 } else { above };
                let snake = snake_down(old, new, from, from - diagonal);
                longest = longest.max(snake);
                walked += snake;
                let x = from + snake as i32;
                self.forward.set(diagonal, x);
                if odd && self.backward.covers(diagonal) && self.backward.get(diagonal) <= x {
                    return Some(Split { x, y: x - diagonal, aims: [Aim::Shortest; 2] });
                }
            }

            self.backward.widen(-height..=width, i32::MAX);
            for diagonal in self.backward.diagonals() {
                let [below, right] = self.backward.beside(diagonal);
                let from = if below < right { below } else { right - 1 };
                let snake = snake_up(old, new, from, from - diagonal);
                longest = longest.max(snake);
                walked += snake;
                let x = from - snake as i32;
                self.backward.set(diagonal, x);
                if !odd && self.forward.covers(diagonal) && x <= self.forward.get(diagonal) {
                    return Some(Split { x, y: x - diagonal, aims: [Aim::Shortest; 2] });
                }
            }

            // Comparing two lines takes about a quarter of the time of visiting a diagonal.
            self.work_left = self.work_left.checked_sub(2 * edits as usize + walked / 4)?;
            if let Aim::Shortest = aim {
                continue;
            }
            if longest > LONG_SNAKE
                && edits > EDITS_BEFORE_SAMPLING
                && let Some(split) = self.promising(old, new, 4 * edits)
            {
                return Some(split);
            }
            if edits >= self.patience {
                return Some(self.furthest(width, height));
            }
        }
    }

    /// The end of the path that came furthest, if more than `enough`, of those that end in a long
    /// snake. Distance from the corner's own diagonal counts against a path.
    fn promising(&self, old: &[u32], new: &[u32], enough: i32) -> Option<Split> {
        let (width, height) = (signed(old.len()), signed(new.len()));
        let snake = signed(LONG_SNAKE);
        let mut split = None;
        let mut best = enough;
        for diagonal in self.forward.diagonals() {
            let x = self.forward.get(diagonal);
            let y = x - diagonal;
            let progress = x + y - diagonal.abs();
            if progress > best
                && (snake..width).contains(&x)
                && (snake..height).contains(&y)
                && old[..x as usize].ends_with(&new[(y - snake) as usize..y as usize])
            {
                best = progress;
                split = Some(Split { x, y, aims: [Aim::Shortest, Aim::ShortEnough] });
            }
        }
        if split.is_some() {
            return split;
        }
        for diagonal in self.backward.diagonals() {
            let x = self.backward.get(diagonal);
            let y = x - diagonal;
            let progress = (width - x) + (height - y) - (diagonal - (width - height)).abs();
            if progress > best
                && (1..=width - snake).contains(&x)
                && (1..=height - snake).contains(&y)
                && old[x as usize..].starts_with(&new[y as usize..(y + snake) as usize])
            {
                best = progress;
                split = Some(Split { x, y, aims: [Aim::ShortEnough, Aim::Shortest] });
            }
        }
        split
    }

    /// The end of the path that came furthest from its corner.
    fn furthest(&self, width: i32, height: i32) -> Split {
        let mut down = (0, -1);
        for diagonal in self.forward.diagonals() {
            let x = self.forward.get(diagonal).min(width).min(height + diagonal);
            if x + x - diagonal > down.1 {
                down = (x, x + x - diagonal);
            }
        }
        let mut up = (0, i32::MAX);
        for diagonal in self.backward.diagonals() {
            let x = self.backward.get(diagonal).max(0).max(diagonal);
            if x + x - diagonal < up.1 {
                up = (x, x + x - diagonal);
            }
        }
        if width + height - up.1 < down.1 {
            Split { x: down.0, y: down.1 - down.0, aims: [Aim::Shortest, Aim::ShortEnough] }
        } else {
            Split { x: up.0, y: up.1 - up.0, aims: [Aim::ShortEnough, Aim::Shortest] }
        }
    }
}

fn signed(length: usize) -> i32 {
    i32::try_from(length).expect("texts are limited to a few MiB")
}

/// How many lines are equal from a point on. Points outside of the area have none.
fn snake_down(old: &[u32], new: &[u32], x: i32, y: i32) -> usize {
    let (x, y) = (x as usize, y as usize);
    match (old.get(x), new.get(y)) {
        (Some(this), Some(that)) if this == that => 1 + common_prefix(&old[x + 1..], &new[y + 1..]),
        _ => 0,
    }
}

fn snake_up(old: &[u32], new: &[u32], x: i32, y: i32) -> usize {
    let (x, y) = ((x as usize).wrapping_sub(1), (y as usize).wrapping_sub(1));
    match (old.get(x), new.get(y)) {
        (Some(this), Some(that)) if this == that => 1 + common_suffix(&old[..x], &new[..y]),
        _ => 0,
    }
}

pub(super) fn common_prefix(old: &[u32], new: &[u32]) -> usize {
    zip(old, new).take_while(|(old, new)| old == new).count()
}

pub(super) fn common_suffix(old: &[u32], new: &[u32]) -> usize {
    zip(old.iter().rev(), new.iter().rev()).take_while(|(old, new)| old == new).count()
}

/// How far the paths of one direction have come on each diagonal.
struct Frontier {
    reach: Vec<i32>,
    offset: i32,
    low: i32,
    high: i32,
}

impl Frontier {
    fn new(diagonals: usize) -> Self {
        Self { reach: vec![0; diagonals], offset: 0, low: 0, high: 0 }
    }

    fn begin(&mut self, height: i32, diagonal: i32, x: i32) {
        self.offset = height + 1;
        (self.low, self.high) = (diagonal, diagonal);
        self.set(diagonal, x);
    }

    /// One diagonal more on either side, or one less where the area ends.
    fn widen(&mut self, area: RangeInclusive<i32>, unreached: i32) {
        if self.low > *area.start() {
            self.low -= 1;
            self.set(self.low - 1, unreached);
        } else {
            self.low += 1;
        }
        if self.high < *area.end() {
            self.high += 1;
            self.set(self.high + 1, unreached);
        } else {
            self.high -= 1;
        }
    }

    /// Those that a path of the current number of edits can end on, highest first.
    fn diagonals(&self) -> impl Iterator<Item = i32> + use<> {
        let (low, mut next) = (self.low, self.high + 2);
        std::iter::from_fn(move || {
            next -= 2;
            (next >= low).then_some(next)
        })
    }

    fn covers(&self, diagonal: i32) -> bool {
        (self.low..=self.high).contains(&diagonal)
    }

    fn get(&self, diagonal: i32) -> i32 {
        self.reach[(diagonal + self.offset) as usize]
    }

    fn beside(&self, diagonal: i32) -> [i32; 2] {
        [self.get(diagonal - 1), self.get(diagonal + 1)]
    }

    fn set(&mut self, diagonal: i32, x: i32) {
        self.reach[(diagonal + self.offset) as usize] = x;
    }
}

/// About the square root: the power of two with half the bits of `n`, rounded up.
pub(super) fn rough_sqrt(n: usize) -> u32 {
    1 << (usize::BITS - n.leading_zeros()).div_ceil(2)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_search_ends_with_its_work() {
        let lines: Vec<u32> = (0..500).collect();
        let turned: Vec<u32> = lines.iter().rev().copied().collect();
        assert_eq!(changed_lines(&lines, &turned, 1_000), None);
        let kept = changed_lines(&lines, &turned, 1_000_000).map(|changed| {
            changed.map(|changed| changed.iter().filter(|&&changed| !changed).count())
        });
        assert_eq!(kept, Some([1, 1]));
    }

    #[test]
    fn rough_square_roots() {
        assert_eq!([0, 1, 3, 4, 15, 16, 1000].map(rough_sqrt), [1, 2, 2, 4, 4, 8, 32]);
    }
}
