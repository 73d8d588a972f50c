//! The few styles there are.
//!
//! Only the sixteen colours that every terminal lets its owner choose; without colour, bold and reverse
//! say what has to be said.

use ratatui::style::{Color, Modifier, Style};

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Theme {
    pub strong: Style,
    pub hint: Style,
    pub good: Style,
    pub bad: Style,
    /// Worth a look, and no error.
    pub care: Style,
    pub added: Style,
    pub removed: Style,
    pub selected: Style,
    /// Labels, sessions, agents.
    pub name: Style,
}

impl Theme {
    #[must_use]
    pub const fn colour() -> Self {
        let plain = Style::new();
        Self {
            strong: plain.add_modifier(Modifier::BOLD),
            // Bright black is the background itself in some palettes.
            hint: plain.add_modifier(Modifier::DIM),
            good: plain.fg(Color::Green),
            bad: plain.fg(Color::Red),
            care: plain.fg(Color::Yellow),
            added: plain.fg(Color::Green),
            removed: plain.fg(Color::Red),
            // Over what has styles already: one colour from end to end.
            selected: plain
                .fg(Color::Reset)
                .bg(Color::Reset)
                .add_modifier(Modifier::REVERSED)
                .remove_modifier(Modifier::DIM),
            name: plain.fg(Color::Cyan),
        }
    }

    /// For `NO_COLOR` and for terminals that have none.
    #[must_use]
    pub const fn plain() -> Self {
        let plain = Style::new();
        let bold = plain.add_modifier(Modifier::BOLD);
        Self {
            strong: bold,
            hint: plain,
            good: plain,
            bad: bold,
            care: bold,
            added: plain,
            removed: plain,
            selected: plain.add_modifier(Modifier::REVERSED),
            name: plain,
        }
    }
}
