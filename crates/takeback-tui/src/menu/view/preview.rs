//! What going to the selected row would do, beside or below the list.

use super::super::list::Entry;
use super::super::{
    DiffLine, ExecutionRow, Fate, FilePreview, LineKind, Mark, Menu, Preview, Row, Subject,
};
use super::rows::{CURRENT, Counts};
use crate::fit::{fit, fit_end};
use crate::theme::Theme;
use crate::wrap::wrap;
use ratatui::layout::Rect;
use ratatui::style::Style;
use ratatui::text::{Line, Span};
use unicode_width::UnicodeWidthStr;

pub(super) const LOOKING: &str = "looking…";
pub(super) const NO_FILE: &str = "No file would change.";

/// More of a description is not told.
const DESCRIPTION_LINES: usize = 2;

pub(super) fn lines(menu: &Menu, area: Rect, theme: &Theme) -> Vec<Line<'static>> {
    let (width, height) = (usize::from(area.width), usize::from(area.height));
    if let Some(subject) = menu.selected() {
        return of(menu, &subject, width, height, theme);
    }
    match menu.list().selected() {
        Some(Entry::Current) => wrapped(CURRENT, width, Style::new()),
        Some(Entry::Older(more)) => {
            wrapped(&format!("enter shows {}.", menu.older(more)), width, theme.hint)
        }
        Some(Entry::Heading | Entry::Item(_)) | None => Vec::new(),
    }
}

fn of(
    menu: &Menu,
    subject: &Subject,
    width: usize,
    height: usize,
    theme: &Theme,
) -> Vec<Line<'static>> {
    let mut lines = about(menu, subject, width, theme);
    let preview = match menu.previews.get(subject) {
        None => {
            lines.push(Line::styled(LOOKING, theme.hint));
            return lines;
        }
        Some(Err(why)) => {
            lines.extend(wrapped(why, width, theme.bad));
            return lines;
        }
        Some(Ok(preview)) => preview,
    };
    lines.extend(notes(preview, width, theme));
    if !preview.files.iter().any(|file| file.fate.changes()) {
        lines.push(Line::raw(NO_FILE));
    }
    // Some rows are left for the diff, and for the line that says how many files there are no rows for.
    let room = height.saturating_sub(lines.len());
    let files = if preview.files.len() <= room { preview.files.len() } else { room / 2 };
    let fates = fate_width(preview);
    for file in &preview.files[..files] {
        lines.push(file_line(file, None, "", fates, width, theme));
    }
    if files < preview.files.len() {
        let more = preview.files.len() - files;
        lines.push(Line::styled(format!("and {more} more"), theme.hint));
    }
    for file in preview.files.iter().filter(|file| !file.diff.is_empty()) {
        if lines.len() + 3 > height {
            break;
        }
        lines.push(Line::raw(""));
        lines.push(Line::styled(fit_end(&file.path, width), theme.strong));
        let room = height.saturating_sub(lines.len());
        lines.extend(file.diff.iter().take(room).map(|line| diff_line(line, width, theme)));
    }
    lines
}

/// Which row this is.
pub(super) fn about(
    menu: &Menu,
    subject: &Subject,
    width: usize,
    theme: &Theme,
) -> Vec<Line<'static>> {
    let lines = match subject {
        Subject::Point(id) => {
            let row = menu.rows.iter().find(|row| row.id == *id);
            row.map(|row| about_point(row, width, theme))
        }
        Subject::Execution(id) => {
            let row = menu.executions.iter().find(|row| row.execution == *id);
            row.map(|row| about_execution(row, width, theme))
        }
    };
    lines.unwrap_or_default()
}

fn about_execution(row: &ExecutionRow, width: usize, theme: &Theme) -> Vec<Line<'static>> {
    let mut lines = wrapped(&format!("Restore {}", row.execution), width, theme.strong);
    lines.extend(wrapped(&format!("Step: {}", row.step), width, Style::new()));
    lines
}

fn about_point(row: &Row, width: usize, theme: &Theme) -> Vec<Line<'static>> {
    let mut facts = Facts::new(Span::styled(fit(&row.age, width.min(20)), theme.hint), width);
    if !facts.add(Counts::Full.spans(row, theme)) {
        facts.add(Counts::Short.spans(row, theme));
    }
    let label = row.label.as_ref().map(|label| format!("[{label}]"));
    for name in label.into_iter().chain([row.whose()]) {
        facts.add(vec![Span::styled(fit(&name, 24), theme.name)]);
    }
    let mut words = wrap(&row.description, width);
    if words.len() > DESCRIPTION_LINES {
        let rest = words.split_off(DESCRIPTION_LINES - 1).join(" ");
        words.push(fit(&rest, width));
    }
    let mut lines: Vec<_> =
        words.into_iter().map(|line| Line::styled(line, theme.strong)).collect();
    lines.push(Line::from(facts.spans));
    lines
}

/// One line. What has no room is left out: half a number would be another number.
struct Facts {
    spans: Vec<Span<'static>>,
    left: usize,
}

impl Facts {
    fn new(first: Span<'static>, width: usize) -> Self {
        let left = width.saturating_sub(first.width());
        Self { spans: vec![first], left }
    }

    /// Whether there was room.
    fn add(&mut self, spans: Vec<Span<'static>>) -> bool {
        let wide = 2 + spans.iter().map(Span::width).sum::<usize>();
        let fits = wide <= self.left;
        if fits {
            self.left -= wide;
            self.spans.push(Span::raw("  "));
            self.spans.extend(spans);
        }
        fits
    }
}

pub(super) fn notes(preview: &Preview, width: usize, theme: &Theme) -> Vec<Line<'static>> {
    preview.notes.iter().flat_map(|note| wrapped(note, width, theme.care)).collect()
}

/// How wide the column of fates has to be.
pub(super) fn fate_width(preview: &Preview) -> usize {
    preview.files.iter().map(|file| file.fate.word().len()).max().unwrap_or(0)
}

/// `restored  src/utils.ts  because`, behind `head`; the fate, or what the person says instead, in a column
/// of `fates`.
pub(super) fn file_line(
    file: &FilePreview,
    mark: Option<Mark>,
    head: &str,
    fates: usize,
    width: usize,
    theme: &Theme,
) -> Line<'static> {
    let (word, style) = match mark {
        Some(mark) => (mark.word(), theme.name),
        None => (file.fate.word(), fate_style(file.fate, theme)),
    };
    let fate = format!("{head}{word:<fates$}  ");
    let mut room = width.saturating_sub(fate.width());
    let path = fit_end(&file.path, room);
    room = room.saturating_sub(path.width() + 2);
    let mut spans = vec![Span::styled(fate, style), Span::raw(path)];
    // The reason is that of the fate.
    if let Some(reason) = file.reason.as_ref().filter(|_| room >= 8 && mark.is_none()) {
        spans.push(Span::styled(format!("  {}", fit(reason, room)), theme.hint));
    }
    Line::from(spans)
}

pub(super) fn diff_line(line: &DiffLine, width: usize, theme: &Theme) -> Line<'static> {
    let (sign, style) = match line.kind {
        LineKind::Context => (" ", Style::new()),
        LineKind::Added => ("+", theme.added),
        LineKind::Removed => ("-", theme.removed),
        LineKind::Heading => ("", theme.hint),
    };
    Line::styled(format!("{sign}{}", fit(&line.text, width.saturating_sub(sign.len()))), style)
}

pub(super) fn wrapped(text: &str, width: usize, style: Style) -> Vec<Line<'static>> {
    wrap(text, width).into_iter().map(|line| Line::styled(line, style)).collect()
}

fn fate_style(fate: Fate, theme: &Theme) -> Style {
    match fate {
        Fate::Restored | Fate::Merged => theme.good,
        Fate::Deleted => theme.removed,
        Fate::Kept => theme.hint,
        Fate::Conflict => theme.bad,
        Fate::Unclear | Fate::NotCaptured => theme.care,
    }
}
