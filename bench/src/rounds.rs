//! The measuring loop: every case once a round, and another case first in every round, so that a
//! machine that slows down for a while slows all of them down.

use crate::Result;

/// How often and in which order cases run.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Rounds {
    pub(crate) count: usize,
    /// Rounds before those that count.
    pub(crate) warm_up: usize,
    /// Cases that take turns at being first: all of them, or groups that keep their order.
    pub(crate) group: usize,
}

impl Rounds {
    /// Measurements by case, one a round. `measure` gets the case and the round.
    pub(crate) fn run<T>(
        self,
        cases: usize,
        mut measure: impl FnMut(usize, usize) -> Result<T>,
    ) -> Result<Vec<Vec<T>>> {
        let mut measured: Vec<Vec<T>> = (0..cases).map(|_| Vec::new()).collect();
        for round in 0..self.warm_up + self.count {
            for first in (0..cases).step_by(self.group) {
                for turn in in_turn(self.group.min(cases - first), round) {
                    let value = measure(first + turn, round)?;
                    if round >= self.warm_up {
                        measured[first + turn].push(value);
                    }
                }
            }
        }
        Ok(measured)
    }
}

/// `0..count`, beginning with another number each round.
pub(crate) fn in_turn(count: usize, round: usize) -> impl Iterator<Item = usize> {
    (0..count).map(move |turn| (round + turn) % count)
}

pub(crate) fn median(values: impl IntoIterator<Item = f64>) -> f64 {
    quantile(values, 0.5)
}

/// The value below which this part of `values` is, between neighbours by proportion.
pub(crate) fn quantile(values: impl IntoIterator<Item = f64>, part: f64) -> f64 {
    let mut values: Vec<f64> = values.into_iter().collect();
    values.sort_by(f64::total_cmp);
    let Some(last) = values.len().checked_sub(1) else { return f64::NAN };
    #[expect(
        clippy::cast_precision_loss,
        clippy::cast_possible_truncation,
        clippy::cast_sign_loss,
        reason = "some hundred values"
    )]
    let (low, between) = {
        let at = part * last as f64;
        (at as usize, at.fract())
    };
    values[low] + (values[(low + 1).min(last)] - values[low]) * between
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn groups_keep_their_order_and_take_turns_inside() {
        let mut order = Vec::new();
        let rounds = Rounds { count: 2, warm_up: 0, group: 2 };
        let measured = rounds
            .run(4, |case, round| {
                order.push(case);
                Ok(10 * case + round)
            })
            .unwrap();
        assert_eq!(order, [0, 1, 2, 3, 1, 0, 3, 2]);
        assert_eq!(measured, [[0, 1], [10, 11], [20, 21], [30, 31]]);
    }

    #[test]
    fn a_median_is_the_middle() {
        assert!((median([3.0, 1.0, 2.0]) - 2.0).abs() < 1e-9);
        assert!((median([4.0, 1.0, 2.0, 3.0]) - 2.5).abs() < 1e-9);
        assert!(median([]).is_nan());
    }
}
