//! Draws the visible rows of the list.

use super::super::list::{Entry, List};
use super::super::{Menu, MenuScope, PointRow, Tab, TakenBack};
use super::put;
use crate::chat::format_counts;
use crate::cut_text::fit;
use crate::theme::Theme;
use ratatui::buffer::Buffer;
use ratatui::layout::Rect;
use ratatui::text::{Line, Span};
use unicode_width::UnicodeWidthStr;

pub(super) const CURRENT: &str = "Do not restore, continue with the current session.";

/// Below this width, gaps are smaller and a column that is the same in every row is left out.
const NARROW: usize = 60;

/// The width of `(current)`, which is in the column of ages.
const CURRENT_WIDTH: usize = 9;

pub(super) fn draw(menu: &mut Menu, buffer: &mut Buffer, area: Rect, theme: &Theme) {
    let list = menu.list_mut();
    scroll(list, area.height.into());
    let (top, selected) = (list.top, list.selected_index());
    let list = menu.list();
    let visible: Vec<Entry> =
        list.entries().iter().skip(top).take(area.height.into()).copied().collect();
    let columns = Columns::new(menu, list, &visible, area.width.into());
    for (row, entry) in (0..area.height).zip(&visible) {
        let is_selected = top + usize::from(row) == selected;
        let line = columns.line(menu, *entry, is_selected, theme);
        put(buffer, area, row, &line);
        if is_selected {
            let whole = Rect { y: area.y + row, height: 1, ..area };
            buffer.set_style(whole, theme.selected);
        }
    }
    let below = u16::try_from(visible.len()).unwrap_or(u16::MAX);
    if list.len() == 0 {
        put(buffer, area, below, &Line::styled("  No checkpoints found.", theme.hint));
    } else if visible.is_empty() {
        put(buffer, area, below, &Line::styled("  Nothing matches.", theme.hint));
    }
}

/// Scrolls so that the selected entry is visible and no row at the end is left empty.
fn scroll(list: &mut List, height: usize) {
    let height = height.max(1);
    let selected = list.selected_index();
    let last_top = list.entries().len().saturating_sub(height);
    list.page = height.saturating_sub(1).max(1);
    list.top = list.top.clamp((selected + 1).saturating_sub(height), selected).min(last_top);
}

/// The widths of the columns, computed from the visible rows.
struct Columns {
    width: usize,
    number: usize,
    age: usize,
    /// Whether ages end in `ago`.
    ago: bool,
    author: Option<(Author, usize)>,
    counts: Option<(Counts, usize)>,
}

impl Columns {
    fn new(menu: &Menu, list: &List, visible: &[Entry], width: usize) -> Self {
        let indices = visible.iter().filter_map(|entry| match entry {
            Entry::Item(index) => Some(*index),
            _ => None,
        });
        let indices: Vec<usize> = indices.collect();
        let number = list.len().to_string().len();
        let age = |index: &usize| match menu.tab {
            Tab::Points => menu.points[*index].age.width(),
            Tab::Executions => menu.executions[*index].age.width(),
        };
        let operation_age = |entry: &Entry| match entry {
            Entry::Operation(index) => menu.operations[*index].age.width(),
            _ => 0,
        };
        let ages = indices.iter().map(age).chain(visible.iter().map(operation_age));
        let age = ages.max().unwrap_or(0);
        let ago = width >= NARROW || age <= CURRENT_WIDTH;
        let most = if ago { 16 } else { CURRENT_WIDTH };
        let age = age.clamp(CURRENT_WIDTH, most);
        let columns = Self { width, number, age, ago, author: None, counts: None };
        match menu.tab {
            Tab::Points => {
                let rows: Vec<&PointRow> =
                    indices.iter().map(|index| &menu.points[*index]).collect();
                let first = menu.points.first().map(|row| &row.agent);
                let several = menu.points.iter().any(|row| Some(&row.agent) != first);
                // The rows of one session need no agent.
                let folder = menu.options.scope == MenuScope::Folder && width >= NARROW;
                columns.fit_rows(&rows, several || folder)
            }
            Tab::Executions => columns,
        }
    }

    /// The first combination of columns that leaves room for a description.
    fn fit_rows(self, rows: &[&PointRow], with_author: bool) -> Self {
        let widest = |text: &dyn Fn(&PointRow) -> String| {
            rows.iter().map(|row| text(row).width()).max().unwrap_or(0)
        };
        let author = |form: Author| with_author.then(|| (form, widest(&|row| form.text(row))));
        for (author, counts, description) in [
            (author(Author::Session), Counts::Full, 20),
            (author(Author::Agent), Counts::Full, 20),
            (author(Author::Agent), Counts::Lines, 16),
            (author(Author::Agent), Counts::Short, 6),
            (None, Counts::Short, 6),
        ] {
            let counts = Some((counts, widest(&|row| counts.text(row))));
            let columns = Self { author, counts, ..self };
            if columns.description() >= description {
                return columns;
            }
        }
        self
    }

    fn gap(&self) -> usize {
        if self.width < NARROW { 1 } else { 2 }
    }

    /// The width of the description.
    fn description(&self) -> usize {
        let author = self.author.map_or(0, |(_, author)| author + self.gap());
        let counts = self.counts.map_or(0, |(_, counts)| counts + self.gap());
        self.left(self.age + self.gap() + author + counts)
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
                    Span::styled(words, theme.heading),
                    Span::raw(fit(CURRENT, room)),
                ])
            }
            Entry::Older(hidden) => Line::from(vec![
                head(String::new()),
                Span::styled("older…", theme.heading),
                Span::styled(
                    format!("  {}", fit(&menu.describe_older(hidden), self.left(8))),
                    theme.hint,
                ),
            ]),
            Entry::Heading => Line::styled("  other sessions", theme.hint),
            Entry::Operation(index) => {
                let row = &menu.operations[index];
                let author = self.author.map_or(0, |(_, author)| author + self.gap());
                let room = self.left(self.age + self.gap() + author);
                let words = format!("{}{}", " ".repeat(author), fit(&row.text(), room));
                let spans = [head(String::new()), self.age(&row.age, theme), Span::raw(words)];
                Line::from(spans.to_vec()).style(theme.hint)
            }
            Entry::Item(index) => {
                let mut spans = vec![head((index + 1).to_string())];
                match menu.tab {
                    Tab::Points => self.row(&menu.points[index], &mut spans, theme),
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

    fn row(&self, row: &PointRow, spans: &mut Vec<Span<'static>>, theme: &Theme) {
        spans.push(self.age(&row.age, theme));
        if let Some((form, width)) = self.author {
            let author = form.text(row);
            let gap = width.saturating_sub(author.width()) + self.gap();
            spans.push(Span::styled(author + &" ".repeat(gap), theme.hint));
        }
        let mut room = self.description();
        let description = Some(&row.description).filter(|words| row.label.as_ref() != Some(words));
        if let Some(label) = &row.label {
            // The description keeps half of the room, unless it repeats the label.
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

    /// The width that the cursor, the number and `used` columns leave.
    fn left(&self, used: usize) -> usize {
        self.width.saturating_sub(3 + self.number + used)
    }
}

/// How the author of a point is shown.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Author {
    /// `claude 7f3e21d0`.
    Session,
    /// `claude`.
    Agent,
}

impl Author {
    fn text(self, row: &PointRow) -> String {
        match self {
            Self::Session => fit(&row.agent_and_session(), 24),
            Self::Agent => fit(&row.agent, 10),
        }
    }
}

/// How changes are counted.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Counts {
    /// `2 files +10 -3  you +4  partly taken back`.
    Full,
    /// `+10 -3  you +4  partly taken back`.
    Lines,
    /// `+10 -3`, or the files if lines were not counted; `taken back` if all was.
    Short,
}

impl Counts {
    fn text(self, row: &PointRow) -> String {
        self.spans(row, &Theme::plain()).iter().map(|span| span.content.as_ref()).collect()
    }

    pub(super) fn spans(self, row: &PointRow, theme: &Theme) -> Vec<Span<'static>> {
        let taken_back = row.taken_back.words().map(|words| Span::styled(words, theme.warning));
        if self == Self::Short {
            return match taken_back.filter(|_| row.taken_back == TakenBack::Yes) {
                Some(words) => vec![words],
                None if row.files > 0 => short_spans(row, theme),
                None => match row.others.first() {
                    Some(party) => vec![Span::styled(party.text(), theme.hint)],
                    None => short_spans(row, theme),
                },
            };
        }
        let mut spans = Vec::new();
        if row.files > 0 || row.others.is_empty() {
            spans.extend(match self {
                Self::Full => agent_spans(row, theme),
                Self::Lines | Self::Short => short_spans(row, theme),
            });
        }
        let others = row.others.iter().map(|party| Span::styled(party.text(), theme.hint));
        for span in others.chain(taken_back) {
            if !spans.is_empty() {
                spans.push(Span::raw("  "));
            }
            spans.push(span);
        }
        spans
    }
}

/// `2 files +10 -3`: what the point's agent changed.
pub(super) fn agent_spans(row: &PointRow, theme: &Theme) -> Vec<Span<'static>> {
    if row.files == 0 {
        return vec![Span::styled("no files", theme.hint)];
    }
    let mut spans = vec![Span::styled(format_counts(row.files, None), theme.hint)];
    if let Some(lines) = row.lines {
        spans.push(Span::raw(" "));
        spans.extend(line_spans(lines, theme));
    }
    spans
}

/// `+10 -3`, or the files if lines were not counted.
fn short_spans(row: &PointRow, theme: &Theme) -> Vec<Span<'static>> {
    match row.lines {
        _ if row.files == 0 => vec![Span::styled("–", theme.hint)],
        Some(lines) => line_spans(lines, theme),
        None => agent_spans(row, theme),
    }
}

fn line_spans((added, removed): (usize, usize), theme: &Theme) -> Vec<Span<'static>> {
    vec![
        Span::styled(format!("+{added}"), theme.added),
        Span::styled(format!(" -{removed}"), theme.removed),
    ]
}
