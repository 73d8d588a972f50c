//! The list of one tab: its visible entries, the selection, the filter, and typed numbers.

use super::{ExecutionRow, Origin, PointRow};
use crate::keys::Key;

pub(super) struct List {
    /// Those of other sessions last.
    items: Vec<Item>,
    /// How many belong to this session.
    own: usize,
    /// The row above which each operation is shown, in the order of the rows.
    operations: Vec<usize>,
    /// How many of them are shown before `older…`.
    keep: usize,
    /// Whether all of them are shown.
    expanded: bool,
    filter: Option<String>,
    entries: Vec<Entry>,
    selected: usize,
    /// The digits of a number so far.
    typed: String,
    notice: Option<String>,
    /// The first visible entry and how many fit, as of the last frame.
    pub(super) top: usize,
    pub(super) page: usize,
}

/// The searchable text of a row.
pub(super) struct Item {
    /// Visible text in lower case.
    text: String,
    id: Id,
    other: bool,
}

/// An id that the row does not show; it matches only words that look like an id.
enum Id {
    /// Hex digits.
    Point(String),
    /// The prefix of its checkpoint names, followed by a step: `ckpt-build-`.
    Checkpoints(String),
}

impl Id {
    fn matches(&self, word: &str) -> bool {
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

/// Four to sixteen hex digits, and either one of 0 to 9 among them or at least eight. `add`, `face` and
/// `404` are words.
fn looks_like_point(word: &str) -> bool {
    let is_hex = word.bytes().all(|b| b.is_ascii_hexdigit());
    let has_digit = word.bytes().any(|b| b.is_ascii_digit());
    is_hex && (4..=16).contains(&word.len()) && (has_digit || word.len() >= 8)
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Entry {
    Current,
    /// The row at this index; its number is one higher.
    Item(usize),
    /// This many more rows before those of other sessions.
    Older(usize),
    /// Starts the rows of other sessions.
    Heading,
    /// The operation at this index; it has no number.
    Operation(usize),
}

impl Entry {
    fn can_be_selected(self) -> bool {
        !matches!(self, Self::Heading | Self::Operation(_))
    }
}

/// What the menu must do after a key.
#[derive(Debug, PartialEq, Eq)]
pub(super) enum ListAction {
    Stay,
    /// Another entry is selected.
    Move,
    Cancel,
    /// Open this row.
    Choose(usize),
    /// The key is not for the list.
    Unhandled,
}

impl Item {
    pub(super) fn of_point(row: &PointRow) -> Self {
        let label = row.label.as_deref().unwrap_or_default();
        let text =
            format!("{}\n{label}\n{}", row.description, row.agent_and_session()).to_lowercase();
        let other = row.origin == Origin::OtherSession;
        Self { text, id: Id::Point(row.id.to_lowercase()), other }
    }

    pub(super) fn of_execution(row: &ExecutionRow) -> Self {
        let text = format!("{}\n{}", row.execution, row.step).to_lowercase();
        let head = format!("ckpt-{}-", row.execution).to_lowercase();
        Self { text, id: Id::Checkpoints(head), other: false }
    }

    fn matches(&self, word: &str) -> bool {
        self.text.contains(word) || self.id.matches(word)
    }
}

impl List {
    pub(super) fn new(items: Vec<Item>, keep: usize) -> Self {
        let own = items.iter().take_while(|item| !item.other).count();
        let mut list = Self {
            items,
            own,
            operations: Vec::new(),
            keep: keep.max(1),
            expanded: false,
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

    /// Shows operations, each above the row with this index; in the order of the rows.
    pub(super) fn set_operations(&mut self, above: Vec<usize>) {
        self.operations = above;
        self.arrange();
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

    pub(super) fn press(&mut self, key: &Key) -> ListAction {
        self.notice = None;
        let typed = std::mem::take(&mut self.typed);
        if *key == Key::Enter && !typed.is_empty() && self.selected_number() != typed {
            self.notice = Some(no_number(&typed));
            return ListAction::Stay;
        }
        let action = self.press_move(key);
        if action != ListAction::Unhandled {
            return action;
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
                ListAction::Stay
            }
            Key::Esc if !typed.is_empty() => ListAction::Stay,
            Key::Esc | Key::Char('q') => ListAction::Cancel,
            _ => ListAction::Unhandled,
        }
    }

    fn press_move(&mut self, key: &Key) -> ListAction {
        let page = isize::try_from(self.page.max(1)).unwrap_or(isize::MAX);
        match key {
            Key::Up | Key::Ctrl('p') => self.step(-1),
            Key::Down | Key::Ctrl('n') => self.step(1),
            Key::PageUp => self.step(-page),
            Key::PageDown => self.step(page),
            Key::Home => self.step(isize::MIN / 2),
            Key::End => self.step(isize::MAX / 2),
            Key::Enter => self.choose(),
            _ => ListAction::Unhandled,
        }
    }

    fn press_in_filter(&mut self, mut filter: String, key: &Key) -> ListAction {
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
                return ListAction::Stay;
            }
        }
        self.set_filter(Some(filter))
    }

    fn choose(&mut self) -> ListAction {
        match self.selected() {
            Some(Entry::Current) => ListAction::Cancel,
            Some(Entry::Item(index)) => ListAction::Choose(index),
            Some(Entry::Older(_)) => {
                self.expanded = true;
                self.arrange();
                ListAction::Move
            }
            Some(Entry::Heading | Entry::Operation(_)) | None => ListAction::Stay,
        }
    }

    /// Opens a row as soon as no longer number starts with the typed digits.
    fn number(&mut self, mut typed: String, digit: char) -> ListAction {
        if typed.is_empty() && digit == '0' {
            return ListAction::Cancel;
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
                ListAction::Stay
            }
            None => {
                self.typed = typed;
                ListAction::Stay
            }
            Some((at, index)) => {
                self.selected = at;
                if longer {
                    self.typed = typed;
                    ListAction::Move
                } else {
                    ListAction::Choose(index)
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

    fn step(&mut self, by: isize) -> ListAction {
        let last = self.entries.len().saturating_sub(1);
        let to = self.selected.saturating_add_signed(by).min(last);
        let can_be_selected =
            |at: &usize| self.entries.get(*at).is_some_and(|entry| entry.can_be_selected());
        // The nearest row in this direction; at the end of the list, the nearest one before it.
        let found = match by > 0 {
            true => (to..=last).find(can_be_selected).or((0..to).rfind(can_be_selected)),
            false => (0..=to).rfind(can_be_selected).or((to..=last).find(can_be_selected)),
        };
        let Some(to) = found.filter(|to| *to != self.selected) else { return ListAction::Stay };
        self.selected = to;
        ListAction::Move
    }

    fn set_filter(&mut self, filter: Option<String>) -> ListAction {
        let selected = self.selected();
        let closes = filter.is_none();
        self.filter = filter;
        if let (true, Some(Entry::Item(index))) = (closes, selected) {
            self.expanded |= index >= self.keep && index < self.own;
        }
        self.arrange();
        let same = self.entries.iter().position(|entry| Some(*entry) == selected);
        self.selected = if closes { same.unwrap_or(0) } else { self.first_item() };
        self.top = 0;
        ListAction::Move
    }

    fn first_item(&self) -> usize {
        self.entries.iter().position(|entry| matches!(entry, Entry::Item(_))).unwrap_or(0)
    }

    /// Rebuilds the entries: `(current)` and the newest rows, or with a filter every row that matches.
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
        let visible = if filtered || self.expanded { self.own } else { self.keep.min(self.own) };
        let mut operations = self.operations.iter().enumerate().peekable();
        for index in 0..visible {
            while let Some((at, _)) = operations.next_if(|(_, above)| **above <= index) {
                if !filtered {
                    self.entries.push(Entry::Operation(at));
                }
            }
            if matches(&self.items[index]) {
                self.entries.push(Entry::Item(index));
            }
        }
        if visible < self.own {
            self.entries.push(Entry::Older(self.own - visible));
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
    format!("There is no row {typed}.")
}
