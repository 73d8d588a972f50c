//! Bytes from a terminal, and when they came, as keys.
//!
//! [`Decoder`] reads the bytes one by one, so what comes out does not depend on how they were cut into
//! reads; only a lone ESC asks the clock. [`DoublePress`] finds the same key pressed twice, and
//! [`parse_key`] reads the name of one from the settings, [`name_of`] writes it. Nothing here reads the terminal or the clock.

mod decode;
mod double;
mod name;
mod sequence;

pub use decode::{Decoder, ESC_WAIT_MS};
pub use double::DoublePress;
pub use name::{KeyNameError, name_of, parse_key};

/// Milliseconds on a clock that never goes back; where it begins is the caller's business.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Default)]
pub struct Moment(pub u64);

impl Moment {
    #[must_use]
    pub fn plus(self, milliseconds: u64) -> Self {
        Self(self.0.saturating_add(milliseconds))
    }

    /// How long after `earlier`; 0 if it was not.
    #[must_use]
    pub fn since(self, earlier: Self) -> u64 {
        self.0.saturating_sub(earlier.0)
    }
}

/// A key and when its last byte came. Of an Esc: when it came, not when it was known to be alone.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Press {
    pub key: Key,
    pub at: Moment,
}

/// A key, or text that was pasted.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Key {
    Char(char),
    Ctrl(char),
    /// `'\x7f'` is Alt with Backspace.
    Alt(char),
    Enter,
    /// Alt with Enter, or Shift with Enter where a terminal tells it, or Ctrl-J.
    NewLine,
    Tab,
    BackTab,
    Backspace,
    Delete,
    Esc,
    Up,
    Down,
    Left,
    Right,
    WordLeft,
    WordRight,
    Home,
    End,
    PageUp,
    PageDown,
    /// F1 to F12.
    F(u8),
    /// Bracketed: line ends are `\n`, tabs stay, other control characters are gone.
    Paste(String),
}
