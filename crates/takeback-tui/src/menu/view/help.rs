//! Draws the list of keys.

use super::put;
use crate::theme::Theme;
use crate::wrap::wrap;
use ratatui::buffer::Buffer;
use ratatui::layout::Rect;
use ratatui::text::{Line, Span};

const KEYS: &[(&str, &str)] = &[
    ("↑ ↓ j k", "up and down"),
    ("pgup pgdn", "a page; in an open row, the diff"),
    ("home end", "first and last"),
    ("1 2 …", "open the row with this number"),
    ("enter", "open the row, then choose what to restore"),
    ("space", "tick or untick a file"),
    ("a", "tick all files, or none"),
    ("t", "the agent changed this file: restore it"),
    ("m", "I changed this file: keep it"),
    ("b H c", "blame; history; contents"),
    ("w", "in a blame: why this line"),
    ("s B", "stats; bisect since then"),
    ("S R", "whose changes; one turn only"),
    ("b f c", "both, files, conversation"),
    ("/", "filter by text, label or id"),
    ("tab", "points or executions"),
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
                Span::styled(format!("{keys:<12}"), theme.heading),
                Span::raw(part.clone()),
            ]);
            put(buffer, area, row, &line);
            row += 1;
        }
    }
}
