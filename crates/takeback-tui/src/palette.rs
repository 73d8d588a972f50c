//! The colours of Takeback: one meaning, one colour, on the command line and in the session.
//!
//! Only the terminal's own sixteen colours are used. Dim text is not bright black: some palettes use
//! that as the background.

use anstyle::{AnsiColor, Style};

/// Restored, added, or completed.
pub const SUCCESS: Style = AnsiColor::Green.on_default();
/// Deleted, removed, in conflict, or failed.
pub const FAILURE: Style = AnsiColor::Red.on_default();
/// Needs attention: unclear, missing, a warning.
pub const WARNING: Style = AnsiColor::Yellow.on_default();
/// Ids, labels, sessions, agents.
pub const NAME: Style = AnsiColor::Cyan.on_default();
/// Secondary: files that are kept, ages, keys, hints.
pub const HINT: Style = Style::new().dimmed();
/// Titles and prompts.
pub const HEADING: Style = Style::new().bold();
/// The word `error` before a message.
pub const ERROR: Style = FAILURE.bold();
