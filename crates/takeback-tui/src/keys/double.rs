//! The same key twice, quickly.

use super::{Key, Moment, Press};

/// Finds the second press of `key` within `within_ms` of the first.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct DoublePress {
    key: Key,
    within_ms: u64,
    first: Option<Moment>,
}

impl DoublePress {
    #[must_use]
    pub fn new(key: Key, within_ms: u64) -> Self {
        Self { key, within_ms, first: None }
    }

    #[must_use]
    pub fn key(&self) -> &Key {
        &self.key
    }

    /// The next press is a first one.
    pub fn forget(&mut self) {
        self.first = None;
    }

    /// Whether this press is the second. A third begins anew, and so does the first after another key.
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
    fn too_late_is_a_first_one() {
        assert_eq!(run(&[(Key::Esc, 0), (Key::Esc, 301), (Key::Esc, 400)]), [false, false, true]);
    }

    #[test]
    fn a_third_begins_anew() {
        let presses = [(Key::Esc, 0), (Key::Esc, 10), (Key::Esc, 20), (Key::Esc, 30)];
        assert_eq!(run(&presses), [false, true, false, true]);
    }

    #[test]
    fn another_key_between_resets() {
        assert_eq!(run(&[(Key::Esc, 0), (Key::Up, 5), (Key::Esc, 10)]), [false, false, false]);
    }
}
