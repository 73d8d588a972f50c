//! The input line: a text of one or more lines, a cursor, and the history of earlier input.
//!
//! [`Editor::press`] ignores the keys that belong to the caller (Enter, Esc, Tab). The cursor is always
//! between two graphemes.

mod history;
mod layout;
mod moves;

use std::borrow::Cow;

use crate::keys::Key;
use history::History;
use layout::Direction;
pub use layout::Layout;

/// The input line.
#[derive(Debug, Clone)]
pub struct Editor {
    text: String,
    /// In bytes.
    cursor: usize,
    history: History,
    /// The text deleted last by a key that deletes more than one character.
    cut: String,
    width: u16,
}

/// The effect of a key.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Edit {
    /// The text changed.
    Changed,
    /// At most the cursor moved.
    Same,
    /// The key is not for the editor.
    Ignored,
}

impl Editor {
    /// An empty line. `history`: earlier input, oldest first.
    #[must_use]
    pub fn new(history: Vec<String>) -> Self {
        Self {
            text: String::new(),
            cursor: 0,
            history: History::new(history),
            cut: String::new(),
            width: u16::MAX,
        }
    }

    /// Sets the width at which the text is drawn: up and down move by drawn rows.
    pub fn set_width(&mut self, width: u16) {
        self.width = width;
    }

    /// The text.
    #[must_use]
    pub fn text(&self) -> &str {
        &self.text
    }

    /// The cursor, as a byte offset into the text.
    #[must_use]
    pub fn cursor(&self) -> usize {
        self.cursor
    }

    /// Whether there is no text.
    #[must_use]
    pub fn is_empty(&self) -> bool {
        self.text.is_empty()
    }

    /// Replaces the text, moves the cursor to its end, and leaves the history.
    pub fn set_text(&mut self, text: &str) {
        self.history.leave();
        self.replace_all(text);
    }

    fn replace_all(&mut self, text: &str) {
        self.text = with_line_feeds(text).into_owned();
        self.cursor = self.text.len();
    }

    /// Empties the line and adds the text to the history.
    pub fn take(&mut self) -> String {
        self.cursor = 0;
        let text = std::mem::take(&mut self.text);
        self.history.add(&text);
        text
    }

    /// Inserts text at the cursor.
    pub fn insert(&mut self, text: &str) {
        let text = with_line_feeds(text);
        self.text.insert_str(self.cursor, &text);
        self.cursor = moves::boundary_from(&self.text, self.cursor + text.len());
    }

    /// Handles a key.
    pub fn press(&mut self, key: &Key) -> Edit {
        let before = self.cursor;
        match key {
            Key::Char(c) => self.insert(c.encode_utf8(&mut [0; 4])),
            Key::NewLine => self.insert("\n"),
            Key::Paste(text) => self.insert(text),
            Key::Ctrl('y') => self.insert(&self.cut.clone()),
            Key::Left | Key::Ctrl('b') => return self.go(moves::left(&self.text, before)),
            Key::Right | Key::Ctrl('f') => return self.go(moves::right(&self.text, before)),
            Key::WordLeft | Key::Alt('b') => return self.go(moves::word_left(&self.text, before)),
            Key::WordRight | Key::Alt('f') => {
                return self.go(moves::word_right(&self.text, before));
            }
            Key::Home | Key::Ctrl('a') => return self.go(moves::line_start(&self.text, before)),
            Key::End | Key::Ctrl('e') => return self.go(moves::line_end(&self.text, before)),
            Key::Up | Key::Ctrl('p') => return self.up(),
            Key::Down | Key::Ctrl('n') => return self.down(),
            Key::Backspace => self.delete(moves::left(&self.text, before), before),
            Key::Ctrl('d') if self.text.is_empty() => return Edit::Ignored,
            Key::Delete | Key::Ctrl('d') => self.delete(before, moves::right(&self.text, before)),
            Key::Ctrl('k') => {
                let end = moves::line_end(&self.text, before);
                self.cut(before, if end == before { moves::right(&self.text, end) } else { end });
            }
            Key::Ctrl('u') => self.cut(moves::line_start(&self.text, before), before),
            Key::Ctrl('w') => self.cut(moves::blank_left(&self.text, before), before),
            Key::Alt('\x7f') => self.cut(moves::word_left(&self.text, before), before),
            Key::Alt('d') => self.cut(before, moves::word_right(&self.text, before)),
            _ => return Edit::Ignored,
        }
        Edit::Changed
    }

    fn go(&mut self, cursor: usize) -> Edit {
        self.cursor = cursor;
        Edit::Same
    }

    fn delete(&mut self, from: usize, to: usize) {
        self.text.replace_range(from..to, "");
        // The two sides may have joined into one grapheme.
        self.cursor = moves::boundary_from(&self.text, from);
    }

    fn cut(&mut self, from: usize, to: usize) {
        if from < to {
            self.text[from..to].clone_into(&mut self.cut);
        }
        self.delete(from, to);
    }

    fn up(&mut self) -> Edit {
        if let Some(above) = layout::move_row(&self.text, self.cursor, self.width, Direction::Up) {
            return self.go(above);
        }
        match self.history.older(&self.text) {
            Some(text) => self.show(&text),
            None => self.go(0),
        }
    }

    fn down(&mut self) -> Edit {
        if let Some(below) = layout::move_row(&self.text, self.cursor, self.width, Direction::Down)
        {
            return self.go(below);
        }
        match self.history.newer(&self.text) {
            Some(text) => self.show(&text),
            None => self.go(self.text.len()),
        }
    }

    fn show(&mut self, text: &str) -> Edit {
        self.replace_all(text);
        Edit::Changed
    }

    /// The text at a width, which should be the same as in [`Self::set_width`].
    #[must_use]
    pub fn layout(&self, width: u16) -> Layout {
        layout::lay_out(&self.text, self.cursor, width)
    }
}

/// Converts all line ends to `\n`.
fn with_line_feeds(text: &str) -> Cow<'_, str> {
    if text.contains('\r') {
        Cow::Owned(text.replace("\r\n", "\n").replace('\r', "\n"))
    } else {
        Cow::Borrowed(text)
    }
}
