//! Bytes from a terminal, and when they came, as keys.

/// A key, or text that was pasted.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Key {
    Char(char),
    Ctrl(char),
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
    /// Bracketed: line ends are `\n`, other control characters are gone.
    Paste(String),
}
