//! Decodes the bytes of a terminal into keys.
//!
//! [`Decoder`] works byte by byte, so the result does not depend on how reads split the input; only a
//! lone ESC depends on time. [`DoublePress`] detects a key pressed twice, [`parse_key`] and [`key_name`]
//! convert the names of keys. Nothing here reads the terminal or the clock.

mod decode;
mod double_press;
mod name;
mod sequence;

pub use decode::{Decoder, ESC_WAIT_MS};
pub use double_press::DoublePress;
pub use name::{KeyNameError, key_name, parse_key};

/// Milliseconds on a monotonic clock of the caller.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Default)]
pub struct Moment(
    /// Milliseconds.
    pub u64,
);

impl Moment {
    /// This many milliseconds later.
    #[must_use]
    pub fn plus(self, milliseconds: u64) -> Self {
        Self(self.0.saturating_add(milliseconds))
    }

    /// Milliseconds since `earlier`; 0 if that is later.
    #[must_use]
    pub fn since(self, earlier: Self) -> u64 {
        self.0.saturating_sub(earlier.0)
    }
}

/// A key press.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Press {
    /// The key.
    pub key: Key,
    /// When its last byte arrived. For an Esc, when it arrived, not when it was known to be alone.
    pub at: Moment,
}

/// A key, or pasted text.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Key {
    /// A character.
    Char(char),
    /// Ctrl with a character.
    Ctrl(char),
    /// Alt with a character; `'\x7f'` is Alt-Backspace.
    Alt(char),
    /// Return.
    Enter,
    /// Alt-Enter, Ctrl-J, or Shift-Enter where the terminal reports it.
    NewLine,
    /// Tab.
    Tab,
    /// Shift-Tab.
    BackTab,
    /// Backspace.
    Backspace,
    /// Delete.
    Delete,
    /// Escape.
    Esc,
    /// Arrow up.
    Up,
    /// Arrow down.
    Down,
    /// Arrow left.
    Left,
    /// Arrow right.
    Right,
    /// Ctrl or Alt with arrow left.
    WordLeft,
    /// Ctrl or Alt with arrow right.
    WordRight,
    /// Home.
    Home,
    /// End.
    End,
    /// Page up.
    PageUp,
    /// Page down.
    PageDown,
    /// F1 to F12.
    F(u8),
    /// Pasted text: line ends are `\n`, tabs are kept, other control characters removed.
    Paste(String),
}
