//! The styles of the screen: the [`palette`], or bold and reverse where there are no colours.

use anstyle::{AnsiColor, Effects};
use ratatui::style::{Color, Modifier, Style};

use crate::palette;

/// A style for each meaning.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Theme {
    /// Titles and prompts.
    pub heading: Style,
    /// Secondary text: keys, ages, files that are kept.
    pub hint: Style,
    /// Restored, or completed.
    pub success: Style,
    /// An error or a conflict.
    pub failure: Style,
    /// Needs attention, but is no error.
    pub warning: Style,
    /// An added line.
    pub added: Style,
    /// A removed line or a deleted file.
    pub removed: Style,
    /// The selected row.
    pub selected: Style,
    /// Labels, sessions, agents.
    pub name: Style,
}

impl Theme {
    /// For terminals with colours.
    #[must_use]
    pub fn colour() -> Self {
        Self {
            heading: convert(palette::HEADING),
            hint: convert(palette::HINT),
            success: convert(palette::SUCCESS),
            failure: convert(palette::FAILURE),
            warning: convert(palette::WARNING),
            added: convert(palette::SUCCESS),
            removed: convert(palette::FAILURE),
            // Applied over styled text: resets it to one colour from end to end.
            selected: Style::new()
                .fg(Color::Reset)
                .bg(Color::Reset)
                .add_modifier(Modifier::REVERSED)
                .remove_modifier(Modifier::DIM),
            name: convert(palette::NAME),
        }
    }

    /// For `NO_COLOR` and for terminals without colours.
    #[must_use]
    pub const fn plain() -> Self {
        let plain = Style::new();
        let bold = plain.add_modifier(Modifier::BOLD);
        Self {
            heading: bold,
            hint: plain,
            success: plain,
            failure: bold,
            warning: bold,
            added: plain,
            removed: plain,
            selected: plain.add_modifier(Modifier::REVERSED),
            name: plain,
        }
    }
}

/// The palette has foreground colours, bold and dim.
fn convert(style: anstyle::Style) -> Style {
    let colour = match style.get_fg_color() {
        Some(anstyle::Color::Ansi(AnsiColor::Green)) => Some(Color::Green),
        Some(anstyle::Color::Ansi(AnsiColor::Red)) => Some(Color::Red),
        Some(anstyle::Color::Ansi(AnsiColor::Yellow)) => Some(Color::Yellow),
        Some(anstyle::Color::Ansi(AnsiColor::Cyan)) => Some(Color::Cyan),
        _ => None,
    };
    let mut modifiers = Modifier::empty();
    modifiers.set(Modifier::BOLD, style.get_effects().contains(Effects::BOLD));
    modifiers.set(Modifier::DIM, style.get_effects().contains(Effects::DIMMED));
    Style { fg: colour, ..Style::new() }.add_modifier(modifiers)
}
