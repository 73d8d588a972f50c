//! The rows of the list: only those that can be seen are made.

use super::super::list::{Entry, List};
use super::super::{Menu, Row, Tab};
use super::put;
use crate::fit::fit;
use crate::theme::Theme;
use crate::view::counted;
use ratatui::buffer::Buffer;
use ratatui::layout::Rect;
use ratatui::text::{Line, Span};
use unicode_width::UnicodeWidthStr;

pub(super) const CURRENT: &str = "Do not restore, continue with the current session.";

/// From this width on a row has room for how much changed.
const WITH_COUNTS: usize = 60;

pub(super) fn draw(menu: &mut Menu, buffer: &mut Buffer, area: Rect, theme: &Theme) {
    let list = menu.list_mut();
    scroll(list, area.height.into());
    let (top, selected) = (list.top, list.selected_index());
    let list = menu.list();
    let seen: Vec<Entry> =
        list.entries().iter().skip(top).take(area.height.into()).copied().collect();
    let columns = Columns::of(menu, list, &seen, area.width.into());
    for (row, entry) in (0..area.height).zip(&seen) {
        let is_selected = top + usize::from(row) == selected;
        let line = columns.line(menu, *entry, is_selected, theme);
        put(buffer, area, row, &line);
        if is_selected {
            let whole = Rect { y: area.y + row, height: 1, ..area };
            buffer.set_style(whole, theme.selected);
        }
    }
    let below = u16::try_from(seen.len()).unwrap_or(u16::MAX);
    if list.len() == 0 {
        put(buffer, area, below, &Line::styled("  No checkpoints found.", theme.hint));
    } else if seen.is_empty() {
        put(buffer, area, below, &Line::styled("  Nothing matches.", theme.hint));
    }
}

/// The selected entry is seen, and no room at the end is left empty.
fn scroll(list: &mut List, height: usize) {
    let height = height.max(1);
    let selected = list.selected_index();
    let last_top = list.entries().len().saturating_sub(height);
    list.page = height.saturating_sub(1).max(1);
    list.top = list.top.clamp((selected + 1).saturating_sub(height), selected).min(last_top);
}

/// How wide the columns are, from what is seen.
struct Columns {
    width: usize,
    number: usize,
    age: usize,
    counts: usize,
}

impl Columns {
    fn of(menu: &Menu, list: &List, seen: &[Entry], width: usize) -> Self {
        let mut columns = Self { width, number: list.len().to_string().len(), age: 0, counts: 0 };
        for entry in seen {
            let Entry::Item(index) = entry else { continue };
            let age = match menu.tab {
                Tab::Points => &menu.rows[*index].age,
                Tab::Executions => &menu.executions[*index].age,
            };
            columns.age = columns.age.max(age.width());
            if width >= WITH_COUNTS && menu.tab == Tab::Points {
                columns.counts = columns.counts.max(counts(&menu.rows[*index]).width());
            }
        }
        columns.age = columns.age.clamp(9, 16);
        columns
    }

    fn line(&self, menu: &Menu, entry: Entry, selected: bool, theme: &Theme) -> Line<'static> {
        let mark = if selected { "> " } else { "  " };
        let number = self.number;
        let head = |number_text: String| Span::raw(format!("{mark}{number_text:>number$} "));
        match entry {
            Entry::Current => {
                let words = format!("{:<width$}  ", "(current)", width = self.age);
                let room = self.left(words.width());
                Line::from(vec![
                    head("0".to_owned()),
                    Span::styled(words, theme.strong),
                    Span::raw(fit(CURRENT, room)),
                ])
            }
            Entry::Older(more) => Line::from(vec![
                head(String::new()),
                Span::styled("older…", theme.strong),
                Span::styled(format!("  {more} more of this session"), theme.hint),
            ]),
            Entry::Heading => Line::styled("  other sessions", theme.hint),
            Entry::Item(index) => {
                let mut spans = vec![head((index + 1).to_string())];
                match menu.tab {
                    Tab::Points => self.row(&menu.rows[index], &mut spans, theme),
                    Tab::Executions => {
                        let row = &menu.executions[index];
                        spans.push(self.age(&row.age, theme));
                        let words = format!("Restore {}  Step: {}", row.execution, row.step);
                        spans.push(Span::raw(fit(&words, self.left(self.age + 2))));
                    }
                }
                Line::from(spans)
            }
        }
    }

    fn row(&self, row: &Row, spans: &mut Vec<Span<'static>>, theme: &Theme) {
        spans.push(self.age(&row.age, theme));
        let counts_room = if self.counts > 0 { self.counts + 2 } else { 0 };
        let mut room = self.left(self.age + 2 + counts_room);
        for name in [
            row.session.as_ref().map(|session| format!("({session})")),
            row.label.as_ref().map(|label| format!("[{label}]")),
        ] {
            let Some(name) = name else { continue };
            // At least half of the room is the description's.
            let name = fit(&name, room / 2) + " ";
            room = room.saturating_sub(name.width());
            spans.push(Span::styled(name, theme.name));
        }
        let description = fit(&row.description, room);
        let gap = room.saturating_sub(description.width());
        spans.push(Span::raw(description));
        if self.counts > 0 {
            let counts_gap = self.counts - counts(row).width();
            spans.push(Span::raw(" ".repeat(gap + 2 + counts_gap)));
            spans.extend(counts_spans(row, theme));
        }
    }

    fn age(&self, age: &str, theme: &Theme) -> Span<'static> {
        let age = fit(age, self.age);
        let gap = self.age.saturating_sub(age.width()) + 2;
        Span::styled(age + &" ".repeat(gap), theme.hint)
    }

    /// What is left beside the mark, the number and `taken`.
    fn left(&self, taken: usize) -> usize {
        self.width.saturating_sub(3 + self.number + taken)
    }
}

/// `2 files +10 -3`.
pub(super) fn counts(row: &Row) -> String {
    match row.files {
        0 => "no files".to_owned(),
        files => counted(files, row.lines),
    }
}

pub(super) fn counts_spans(row: &Row, theme: &Theme) -> Vec<Span<'static>> {
    let words = counts(row);
    let (Some((came, went)), Some((files, _))) = (row.lines, words.split_once(" +")) else {
        return vec![Span::styled(words, theme.hint)];
    };
    vec![
        Span::styled(files.to_owned(), theme.hint),
        Span::styled(format!(" +{came}"), theme.added),
        Span::styled(format!(" -{went}"), theme.removed),
    ]
}
