//! The rows of the list: only those that can be seen are made.

use super::super::list::{Entry, List};
use super::super::{Menu, Row, Scope, Tab};
use super::put;
use crate::fit::fit;
use crate::theme::Theme;
use crate::view::counted;
use ratatui::buffer::Buffer;
use ratatui::layout::Rect;
use ratatui::text::{Line, Span};
use unicode_width::UnicodeWidthStr;

pub(super) const CURRENT: &str = "Do not restore, continue with the current session.";

/// Below this width columns stand closer, and one that says the same in every row is left out.
const NARROW: usize = 60;

/// Of `(current)`, which stands where ages do.
const CURRENT_WIDTH: usize = 9;

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
    /// Whether ages say `ago`.
    ago: bool,
    whose: Option<(Whose, usize)>,
    counts: Option<(Counts, usize)>,
}

impl Columns {
    fn of(menu: &Menu, list: &List, seen: &[Entry], width: usize) -> Self {
        let indices = seen.iter().filter_map(|entry| match entry {
            Entry::Item(index) => Some(*index),
            _ => None,
        });
        let indices: Vec<usize> = indices.collect();
        let number = list.len().to_string().len();
        let age = |index: &usize| match menu.tab {
            Tab::Points => menu.rows[*index].age.width(),
            Tab::Executions => menu.executions[*index].age.width(),
        };
        let age = indices.iter().map(age).max().unwrap_or(0);
        let ago = width >= NARROW || age <= CURRENT_WIDTH;
        let most = if ago { 16 } else { CURRENT_WIDTH };
        let age = age.clamp(CURRENT_WIDTH, most);
        let columns = Self { width, number, age, ago, whose: None, counts: None };
        match menu.tab {
            Tab::Points => {
                let rows: Vec<&Row> = indices.iter().map(|index| &menu.rows[*index]).collect();
                let first = menu.rows.first().map(|row| &row.agent);
                let differ = menu.rows.iter().any(|row| Some(&row.agent) != first);
                // In its own session an agent need not be named in every row.
                let named = menu.options.scope == Scope::Folder && width >= NARROW;
                columns.with_rows(&rows, differ || named)
            }
            Tab::Executions => columns,
        }
    }

    /// With the first forms that leave room for a description.
    fn with_rows(self, rows: &[&Row], with_whose: bool) -> Self {
        let widest = |text: &dyn Fn(&Row) -> String| {
            rows.iter().map(|row| text(row).width()).max().unwrap_or(0)
        };
        let whose = |form: Whose| with_whose.then(|| (form, widest(&|row| form.text(row))));
        for (whose, counts, description) in [
            (whose(Whose::Session), Counts::Full, 20),
            (whose(Whose::Agent), Counts::Full, 20),
            (whose(Whose::Agent), Counts::Short, 6),
            (None, Counts::Short, 6),
        ] {
            let counts = Some((counts, widest(&|row| counts.text(row))));
            let columns = Self { whose, counts, ..self };
            if columns.description() >= description {
                return columns;
            }
        }
        self
    }

    fn gap(&self) -> usize {
        if self.width < NARROW { 1 } else { 2 }
    }

    /// What is left for it.
    fn description(&self) -> usize {
        let whose = self.whose.map_or(0, |(_, whose)| whose + self.gap());
        let counts = self.counts.map_or(0, |(_, counts)| counts + self.gap());
        self.left(self.age + self.gap() + whose + counts)
    }

    fn line(&self, menu: &Menu, entry: Entry, selected: bool, theme: &Theme) -> Line<'static> {
        let mark = if selected { "> " } else { "  " };
        let number = self.number;
        let head = |number_text: String| Span::raw(format!("{mark}{number_text:>number$} "));
        match entry {
            Entry::Current => {
                let gap = self.age + self.gap();
                let words = format!("{:<gap$}", "(current)");
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
                Span::styled(format!("  {}", fit(&menu.older(more), self.left(8))), theme.hint),
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
                        spans.push(Span::raw(fit(&words, self.left(self.age + self.gap()))));
                    }
                }
                Line::from(spans)
            }
        }
    }

    fn row(&self, row: &Row, spans: &mut Vec<Span<'static>>, theme: &Theme) {
        spans.push(self.age(&row.age, theme));
        if let Some((form, width)) = self.whose {
            let whose = form.text(row);
            let gap = width.saturating_sub(whose.width()) + self.gap();
            spans.push(Span::styled(whose + &" ".repeat(gap), theme.hint));
        }
        let mut room = self.description();
        let description = Some(&row.description).filter(|words| row.label.as_ref() != Some(words));
        if let Some(label) = &row.label {
            // At least half of the room is the description's, if that says something else.
            let most = if description.is_some() { room / 2 } else { room.saturating_sub(1) };
            let label = fit(&format!("[{label}]"), most) + " ";
            room = room.saturating_sub(label.width());
            spans.push(Span::styled(label, theme.name));
        }
        let description = description.map(|words| fit(words, room)).unwrap_or_default();
        let gap = room.saturating_sub(description.width());
        spans.push(Span::raw(description));
        if let Some((form, width)) = self.counts {
            let counts_gap = width - form.text(row).width();
            spans.push(Span::raw(" ".repeat(gap + self.gap() + counts_gap)));
            spans.extend(form.spans(row, theme));
        }
    }

    fn age(&self, age: &str, theme: &Theme) -> Span<'static> {
        let short = age.strip_suffix(" ago").filter(|_| !self.ago).unwrap_or(age);
        let age = fit(short, self.age);
        let gap = self.age.saturating_sub(age.width()) + self.gap();
        Span::styled(age + &" ".repeat(gap), theme.hint)
    }

    /// What is left beside the mark, the number and `taken`.
    fn left(&self, taken: usize) -> usize {
        self.width.saturating_sub(3 + self.number + taken)
    }
}

/// How much is said of who made a point.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Whose {
    /// `claude 7f3e21d0`.
    Session,
    /// `claude`.
    Agent,
}

impl Whose {
    fn text(self, row: &Row) -> String {
        match self {
            Self::Session => fit(&row.whose(), 24),
            Self::Agent => fit(&row.agent, 10),
        }
    }
}

/// How much is said of what changed.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Counts {
    /// `2 files +10 -3`.
    Full,
    /// `+10 -3`, or the files if lines are not counted.
    Short,
}

impl Counts {
    fn text(self, row: &Row) -> String {
        match (self, row.files, row.lines) {
            (Self::Full, 0, _) => "no files".to_owned(),
            (Self::Short, 0, _) => "–".to_owned(),
            (Self::Short, _, Some((came, went))) => format!("+{came} -{went}"),
            (_, files, lines) => counted(files, lines),
        }
    }

    pub(super) fn spans(self, row: &Row, theme: &Theme) -> Vec<Span<'static>> {
        let words = self.text(row);
        let (Some((came, went)), Some((files, _))) = (row.lines, words.split_once('+')) else {
            return vec![Span::styled(words, theme.hint)];
        };
        vec![
            Span::styled(files.to_owned(), theme.hint),
            Span::styled(format!("+{came}"), theme.added),
            Span::styled(format!(" -{went}"), theme.removed),
        ]
    }
}
