//! Lines in a rectangle, from the top.

use ratatui::buffer::Buffer;
use ratatui::layout::Rect;
use ratatui::text::Line;

pub(super) fn draw(buffer: &mut Buffer, area: Rect, lines: &[Line]) {
    for (row, line) in (0..area.height).zip(lines) {
        super::put(buffer, area, row, line);
    }
}
