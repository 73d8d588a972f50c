//! Detects a key pressed twice within an interval.

use super::{Key, Moment, Press};

/// Detects a second press of a key.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct DoublePress {
    key: Key,
    within_ms: u64,
    first: Option<Moment>,
}

impl DoublePress {
    /// For this key, with at most `within_ms` milliseconds between the presses.
    #[must_use]
    pub fn new(key: Key, within_ms: u64) -> Self {
        Self { key, within_ms, first: None }
    }

    /// The key.
    #[must_use]
    pub fn key(&self) -> &Key {
        &self.key
    }

    /// Makes the next press a first one.
    pub fn reset(&mut self) {
        self.first = None;
    }

    /// Whether this is the second press. The next one is a first press again, as is one after another key.
    pub fn press(&mut self, press: &Press) -> bool {
        if press.key != self.key {
            self.first = None;
            return false;
        }
        let double = self.first.is_some_and(|first| press.at.since(first) <= self.within_ms);
        self.first = (!double).then_some(press.at);
        double
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn run(presses: &[(Key, u64)]) -> Vec<bool> {
        let mut double = DoublePress::new(Key::Esc, 300);
        let press = |(key, at): &(Key, u64)| Press { key: key.clone(), at: Moment(*at) };
        presses.iter().map(|each| double.press(&press(each))).collect()
    }

    #[test]
    fn the_second_within_the_interval() {
        assert_eq!(run(&[(Key::Esc, 1000), (Key::Esc, 1300)]), [false, true]);
        assert_eq!(run(&[(Key::Esc, 1000), (Key::Esc, 1000)]), [false, true]);
    }

    #[test]
    fn a_late_press_is_a_first_one() {
        assert_eq!(run(&[(Key::Esc, 0), (Key::Esc, 301), (Key::Esc, 400)]), [false, false, true]);
    }

    #[test]
    fn a_third_press_is_a_first_one() {
        let presses = [(Key::Esc, 0), (Key::Esc, 10), (Key::Esc, 20), (Key::Esc, 30)];
        assert_eq!(run(&presses), [false, true, false, true]);
    }

    #[test]
    fn another_key_between_resets() {
        assert_eq!(run(&[(Key::Esc, 0), (Key::Up, 5), (Key::Esc, 10)]), [false, false, false]);
    }
}
