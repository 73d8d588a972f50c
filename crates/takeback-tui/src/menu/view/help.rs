//! The keys.

use super::put;
use crate::theme::Theme;
use crate::wrap::wrap;
use ratatui::buffer::Buffer;
use ratatui::layout::Rect;
use ratatui::text::{Line, Span};

const KEYS: &[(&str, &str)] = &[
    ("↑ ↓ j k", "up and down"),
    ("pgup pgdn", "a page; with a row open, the diff"),
    ("home end", "to the first, to the last"),
    ("1 2 …", "the row of this number"),
    ("enter", "open the row, then choose what goes back"),
    ("space", "tick a file, or leave it as it is"),
    ("a", "tick all files, or none"),
    ("t", "an unclear or kept file is the agent's: take it back"),
    ("m", "this file is mine: keep it"),
    ("b f c", "both, files, conversation"),
    ("/", "filter by description, label and id"),
    ("tab", "points, executions"),
    ("u", "undo the last rewind"),
    ("esc q 0", "back; in the list, cancel"),
];

pub(super) fn draw(buffer: &mut Buffer, area: Rect, theme: &Theme) {
    let mut row = 0;
    for (keys, words) in KEYS {
        for (at, part) in wrap(words, usize::from(area.width).saturating_sub(12)).iter().enumerate()
        {
            let keys = if at == 0 { *keys } else { "" };
            let line = Line::from(vec![
                Span::styled(format!("{keys:<12}"), theme.strong),
                Span::raw(part.clone()),
            ]);
            put(buffer, area, row, &line);
            row += 1;
        }
    }
}
