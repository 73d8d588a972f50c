//! The list of one tab: which entries are shown, which is selected, the filter, and typed numbers.

use super::{ExecutionRow, Origin, Row};
use crate::keys::Key;

pub(super) struct List {
    /// Those of this session first.
    items: Vec<Item>,
    own: usize,
    keep: usize,
    /// Whether all of this session are shown.
    open: bool,
    filter: Option<String>,
    entries: Vec<Entry>,
    selected: usize,
    /// The beginning of a number.
    typed: String,
    notice: Option<String>,
    /// The first entry that is shown, and how many there is room for: what was drawn last.
    pub(super) top: usize,
    pub(super) page: usize,
}

/// What can be searched of a row.
pub(super) struct Item {
    /// What is read, in lower case.
    text: String,
    id: Id,
    other: bool,
}

/// What a row is known by, and is not read: a filter asks for it only with a word that looks like one.
enum Id {
    /// Hex digits.
    Point(String),
    /// With the step behind it, a checkpoint's name: `ckpt-build-`.
    Checkpoints(String),
}

impl Id {
    fn is_meant_by(&self, word: &str) -> bool {
        match self {
            Self::Point(id) => looks_like_point(word) && id.starts_with(word),
            Self::Checkpoints(head) => {
                let step = word.strip_prefix(head.as_str());
                let is_step = |step: &str| step.starts_with(|c: char| c.is_ascii_digit());
                word.starts_with("ckpt-") && (head.starts_with(word) || step.is_some_and(is_step))
            }
        }
    }
}

/// Four to sixteen hex digits: with a 0 to 9 among them, or so many that they are hardly a word. `add`,
/// `face` and `404` are words.
fn looks_like_point(word: &str) -> bool {
    let is_hex = word.bytes().all(|b| b.is_ascii_hexdigit());
    let has_digit = word.bytes().any(|b| b.is_ascii_digit());
    is_hex && (4..=16).contains(&word.len()) && (has_digit || word.len() >= 8)
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Entry {
    Current,
    /// Its number is one more.
    Item(usize),
    /// So many more before those of other sessions.
    Older(usize),
    /// Those of other sessions follow.
    Heading,
}

#[derive(Debug, PartialEq, Eq)]
pub(super) enum Outcome {
    Stay,
    /// Another entry is selected.
    Moved,
    Cancel,
    Chosen(usize),
    NotMine,
}

impl Item {
    pub(super) fn of_row(row: &Row) -> Self {
        let label = row.label.as_deref().unwrap_or_default();
        let text = format!("{}\n{label}\n{}", row.description, row.whose()).to_lowercase();
        let other = row.origin == Origin::Other;
        Self { text, id: Id::Point(row.id.to_lowercase()), other }
    }

    pub(super) fn of_execution(row: &ExecutionRow) -> Self {
        let text = format!("{}\n{}", row.execution, row.step).to_lowercase();
        let head = format!("ckpt-{}-", row.execution).to_lowercase();
        Self { text, id: Id::Checkpoints(head), other: false }
    }

    fn matches(&self, word: &str) -> bool {
        self.text.contains(word) || self.id.is_meant_by(word)
    }
}

impl List {
    pub(super) fn new(items: Vec<Item>, keep: usize) -> Self {
        let own = items.iter().take_while(|item| !item.other).count();
        let mut list = Self {
            items,
            own,
            keep: keep.max(1),
            open: false,
            filter: None,
            entries: Vec::new(),
            selected: 0,
            typed: String::new(),
            notice: None,
            top: 0,
            page: 10,
        };
        list.arrange();
        list
    }

    pub(super) fn len(&self) -> usize {
        self.items.len()
    }

    pub(super) fn entries(&self) -> &[Entry] {
        &self.entries
    }

    pub(super) fn selected_index(&self) -> usize {
        self.selected
    }

    pub(super) fn selected(&self) -> Option<Entry> {
        self.entries.get(self.selected).copied()
    }

    pub(super) fn filter(&self) -> Option<&str> {
        self.filter.as_deref()
    }

    pub(super) fn typed(&self) -> &str {
        &self.typed
    }

    pub(super) fn notice(&self) -> Option<&str> {
        self.notice.as_deref()
    }

    pub(super) fn press(&mut self, key: &Key) -> Outcome {
        self.notice = None;
        let typed = std::mem::take(&mut self.typed);
        if *key == Key::Enter && !typed.is_empty() && self.selected_number() != typed {
            self.notice = Some(no_number(&typed));
            return Outcome::Stay;
        }
        let outcome = self.press_move(key);
        if outcome != Outcome::NotMine {
            return outcome;
        }
        if let Some(filter) = self.filter.take() {
            return self.press_in_filter(filter, key);
        }
        match key {
            Key::Char('/') => self.set_filter(Some(String::new())),
            Key::Char('j') => self.step(1),
            Key::Char('k') => self.step(-1),
            Key::Char(digit @ '0'..='9') => self.number(typed, *digit),
            Key::Backspace if !typed.is_empty() => {
                self.typed = typed;
                self.typed.pop();
                Outcome::Stay
            }
            Key::Esc if !typed.is_empty() => Outcome::Stay,
            Key::Esc | Key::Char('q') => Outcome::Cancel,
            _ => Outcome::NotMine,
        }
    }

    fn press_move(&mut self, key: &Key) -> Outcome {
        let page = isize::try_from(self.page.max(1)).unwrap_or(isize::MAX);
        match key {
            Key::Up | Key::Ctrl('p') => self.step(-1),
            Key::Down | Key::Ctrl('n') => self.step(1),
            Key::PageUp => self.step(-page),
            Key::PageDown => self.step(page),
            Key::Home => self.step(isize::MIN / 2),
            Key::End => self.step(isize::MAX / 2),
            Key::Enter => self.choose(),
            _ => Outcome::NotMine,
        }
    }

    fn press_in_filter(&mut self, mut filter: String, key: &Key) -> Outcome {
        match key {
            Key::Esc => return self.set_filter(None),
            Key::Backspace => {
                if filter.pop().is_none() {
                    return self.set_filter(None);
                }
            }
            Key::Ctrl('u') => filter.clear(),
            Key::Char(c) => filter.push(*c),
            Key::Paste(text) => filter.push_str(&text.replace('\n', " ")),
            _ => {
                self.filter = Some(filter);
                return Outcome::Stay;
            }
        }
        self.set_filter(Some(filter))
    }

    fn choose(&mut self) -> Outcome {
        match self.selected() {
            Some(Entry::Current) => Outcome::Cancel,
            Some(Entry::Item(index)) => Outcome::Chosen(index),
            Some(Entry::Older(_)) => {
                self.open = true;
                self.arrange();
                Outcome::Moved
            }
            Some(Entry::Heading) | None => Outcome::Stay,
        }
    }

    /// A number that no other one begins with is chosen at once.
    fn number(&mut self, mut typed: String, digit: char) -> Outcome {
        if typed.is_empty() && digit == '0' {
            return Outcome::Cancel;
        }
        typed.push(digit);
        let mut exact = None;
        let mut longer = false;
        for (at, entry) in self.entries.iter().enumerate() {
            let Entry::Item(index) = entry else { continue };
            let number = (index + 1).to_string();
            if number == typed {
                exact = Some((at, *index));
            } else {
                longer |= number.starts_with(&typed);
            }
        }
        match exact {
            None if !longer => {
                self.notice = Some(no_number(&typed));
                Outcome::Stay
            }
            None => {
                self.typed = typed;
                Outcome::Stay
            }
            Some((at, index)) => {
                self.selected = at;
                if longer {
                    self.typed = typed;
                    Outcome::Moved
                } else {
                    Outcome::Chosen(index)
                }
            }
        }
    }

    fn selected_number(&self) -> String {
        match self.selected() {
            Some(Entry::Item(index)) => (index + 1).to_string(),
            _ => String::new(),
        }
    }

    fn step(&mut self, by: isize) -> Outcome {
        let last = self.entries.len().saturating_sub(1);
        let to = self.selected.saturating_add_signed(by).min(last);
        let forth = by > 0;
        let is_heading = |at: usize| self.entries.get(at) == Some(&Entry::Heading);
        // A heading is never last: rows follow it.
        let to = match (is_heading(to), forth) {
            (false, _) => to,
            (true, true) => to + 1,
            (true, false) => to.saturating_sub(1),
        };
        if to == self.selected || is_heading(to) {
            return Outcome::Stay;
        }
        self.selected = to;
        Outcome::Moved
    }

    fn set_filter(&mut self, filter: Option<String>) -> Outcome {
        let selected = self.selected();
        let leaves = filter.is_none();
        self.filter = filter;
        if let (true, Some(Entry::Item(index))) = (leaves, selected) {
            self.open |= index >= self.keep && index < self.own;
        }
        self.arrange();
        let same = self.entries.iter().position(|entry| Some(*entry) == selected);
        self.selected = if leaves { same.unwrap_or(0) } else { self.first_item() };
        self.top = 0;
        Outcome::Moved
    }

    fn first_item(&self) -> usize {
        self.entries.iter().position(|entry| matches!(entry, Entry::Item(_))).unwrap_or(0)
    }

    /// Without a filter `(current)` stands first. With one, rows alone, and all that match.
    fn arrange(&mut self) {
        self.entries.clear();
        let words: Vec<String> = self
            .filter
            .iter()
            .flat_map(|filter| filter.split_whitespace())
            .map(str::to_lowercase)
            .collect();
        let matches = |item: &Item| words.iter().all(|word| item.matches(word));
        let filtered = self.filter.is_some();
        if !filtered {
            self.entries.push(Entry::Current);
        }
        let shown = if filtered || self.open { self.own } else { self.keep.min(self.own) };
        let own = (0..shown).filter(|index| matches(&self.items[*index]));
        self.entries.extend(own.map(Entry::Item));
        if shown < self.own {
            self.entries.push(Entry::Older(self.own - shown));
        }
        let heading = self.entries.len();
        let others = (self.own..self.items.len()).filter(|index| matches(&self.items[*index]));
        self.entries.extend(others.map(Entry::Item));
        if self.entries.len() > heading {
            self.entries.insert(heading, Entry::Heading);
        }
    }
}

fn no_number(typed: &str) -> String {
    format!("There is no number {typed}.")
}
