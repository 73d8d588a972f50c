//! Earlier input, and the draft.

/// A position is an entry or, after the last entry, the draft. Edits at a position are kept until the next
/// line is entered.
#[derive(Debug, Clone, Default)]
pub(super) struct History {
    entries: Vec<String>,
    /// Edited texts by position.
    edits: std::collections::BTreeMap<usize, String>,
    position: Option<usize>,
}

impl History {
    pub(super) fn new(entries: Vec<String>) -> Self {
        Self { entries, ..Self::default() }
    }

    pub(super) fn leave(&mut self) {
        self.position = None;
        self.edits.clear();
    }

    /// Adds an entry, unless it is blank or repeats the last one.
    pub(super) fn add(&mut self, text: &str) {
        self.leave();
        if !text.trim().is_empty() && self.entries.last().is_none_or(|last| last != text) {
            self.entries.push(text.to_owned());
        }
    }

    pub(super) fn older(&mut self, now: &str) -> Option<String> {
        let position = self.position.unwrap_or(self.entries.len()).checked_sub(1)?;
        Some(self.go(position, now))
    }

    pub(super) fn newer(&mut self, now: &str) -> Option<String> {
        let position = self.position? + 1;
        (position <= self.entries.len()).then(|| self.go(position, now))
    }

    fn go(&mut self, position: usize, now: &str) -> String {
        let left = self.position.unwrap_or(self.entries.len());
        self.edits.insert(left, now.to_owned());
        self.position = Some(position);
        let entry = self.edits.get(&position).or_else(|| self.entries.get(position));
        entry.cloned().unwrap_or_default()
    }
}
