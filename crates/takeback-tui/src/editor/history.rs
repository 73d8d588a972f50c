//! What was entered before, and what is being written meanwhile.

/// A place in it is one of the entries, or behind the last: the draft. What is changed at a place
/// stays there until something is entered.
#[derive(Debug, Clone, Default)]
pub(super) struct History {
    entries: Vec<String>,
    /// Texts by place, where they differ from the entries; the draft is behind the last.
    changed: std::collections::BTreeMap<usize, String>,
    place: Option<usize>,
}

impl History {
    pub(super) fn new(entries: Vec<String>) -> Self {
        Self { entries, ..Self::default() }
    }

    pub(super) fn leave(&mut self) {
        self.place = None;
        self.changed.clear();
    }

    /// Blank text and the same text again are not worth a place.
    pub(super) fn add(&mut self, text: &str) {
        self.leave();
        if !text.trim().is_empty() && self.entries.last().is_none_or(|last| last != text) {
            self.entries.push(text.to_owned());
        }
    }

    pub(super) fn older(&mut self, now: &str) -> Option<String> {
        let place = self.place.unwrap_or(self.entries.len()).checked_sub(1)?;
        Some(self.go(place, now))
    }

    pub(super) fn newer(&mut self, now: &str) -> Option<String> {
        let place = self.place? + 1;
        (place <= self.entries.len()).then(|| self.go(place, now))
    }

    fn go(&mut self, place: usize, now: &str) -> String {
        let left = self.place.unwrap_or(self.entries.len());
        self.changed.insert(left, now.to_owned());
        self.place = Some(place);
        let entry = self.changed.get(&place).or_else(|| self.entries.get(place));
        entry.cloned().unwrap_or_default()
    }
}
