//! Draws what restoring the selected row would do, next to or below the list.

use ratatui::layout::Rect;
use ratatui::style::Style;
use ratatui::text::{Line, Span};
use unicode_width::UnicodeWidthStr;

use super::super::list::Entry;
use super::super::{
    ExecutionRow, FileAction, FilePreview, Mark, Menu, PointRow, Preview, PreviewRequest, RowId,
};
use super::rows::{CURRENT, Counts, agent_spans};
use crate::cut_text::{fit, fit_end};
use crate::theme::Theme;
use crate::wrap::wrap;

/// How many lines of a description are shown.
const DESCRIPTION_LINES: usize = 2;

pub(super) fn lines(menu: &Menu, area: Rect, theme: &Theme) -> Vec<Line<'static>> {
    let width = usize::from(area.width);
    if let Some(row) = menu.selected() {
        return row_lines(menu, &row, area, theme);
    }
    match menu.list().selected() {
        Some(Entry::Current) => wrapped(CURRENT, width, Style::new()),
        Some(Entry::Older(hidden)) => {
            wrapped(&format!("enter shows {}.", menu.describe_older(hidden)), width, theme.hint)
        }
        Some(Entry::Heading | Entry::Item(_) | Entry::Operation(_)) | None => Vec::new(),
    }
}

fn row_lines(menu: &Menu, row: &RowId, area: Rect, theme: &Theme) -> Vec<Line<'static>> {
    let (width, height) = (usize::from(area.width), usize::from(area.height));
    let request = PreviewRequest::new(row.clone(), menu.coverage);
    let mut lines = head(menu, &request, width, theme);
    let Some(Ok(preview)) = menu.previews.get(&request) else { return lines };
    // If not all files fit, half of the rows are left for "and n more" and the diff.
    let room = height.saturating_sub(lines.len());
    let files = if preview.files.len() <= room { preview.files.len() } else { room / 2 };
    let columns = FileColumns::new(preview, width);
    for file in &preview.files[..files] {
        lines.push(columns.line(file, None, "", theme));
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
        lines.push(Line::styled(fit_end(&file.path, width), theme.heading));
        let room = height.saturating_sub(lines.len());
        lines.extend(file.diff.iter().take(room).map(|line| line.to_line(0, width, theme)));
    }
    lines
}

/// The row's title, and the state of its preview.
pub(super) fn head(
    menu: &Menu,
    request: &PreviewRequest,
    width: usize,
    theme: &Theme,
) -> Vec<Line<'static>> {
    let title = match &request.row {
        RowId::Point(id) => {
            let row = menu.points.iter().find(|row| row.id == *id);
            row.map(|row| point_title(row, width, theme))
        }
        RowId::Execution(name) => {
            let row = menu.executions.iter().find(|row| row.execution == *name);
            row.map(|row| execution_title(row, width, theme))
        }
    };
    let mut lines = title.unwrap_or_default();
    match menu.previews.get(request) {
        None => lines.push(Line::styled("loading…", theme.hint)),
        Some(Err(why)) => lines.extend(wrapped(why, width, theme.failure)),
        Some(Ok(preview)) => {
            lines.extend(preview.covers.iter().flat_map(|line| wrapped(line, width, theme.hint)));
            let notes = preview.notes.iter();
            lines.extend(notes.flat_map(|note| wrapped(note, width, theme.warning)));
            if !preview.changes_files() {
                lines.push(Line::raw("No file would change."));
            }
        }
    }
    lines
}

fn execution_title(row: &ExecutionRow, width: usize, theme: &Theme) -> Vec<Line<'static>> {
    let mut lines = wrapped(&format!("Restore {}", row.execution), width, theme.heading);
    lines.extend(wrapped(&format!("Step: {}", row.step), width, Style::new()));
    lines
}

fn point_title(row: &PointRow, width: usize, theme: &Theme) -> Vec<Line<'static>> {
    let mut facts = Facts::new(Span::styled(fit(&row.age, width.min(20)), theme.hint), width);
    if !facts.add(agent_spans(row, theme)) {
        facts.add(Counts::Short.spans(row, theme));
    }
    for party in &row.others {
        facts.add(vec![Span::styled(party.text(), theme.hint)]);
    }
    if let Some(words) = row.taken_back.words() {
        facts.add(vec![Span::styled(words, theme.warning)]);
    }
    let label = row.label.as_ref().map(|label| format!("[{label}]"));
    for name in label.into_iter().chain([row.agent_and_session()]) {
        facts.add(vec![Span::styled(fit(&name, 24), theme.name)]);
    }
    if let Some(git) = &row.git {
        facts.add(vec![Span::styled(format!("git: {}", fit(git, 40)), theme.hint)]);
    }
    let mut description = wrap(&row.description, width);
    if description.len() > DESCRIPTION_LINES {
        let rest = description.split_off(DESCRIPTION_LINES - 1).join(" ");
        description.push(fit(&rest, width));
    }
    let mut lines: Vec<_> =
        description.into_iter().map(|line| Line::styled(line, theme.heading)).collect();
    lines.push(Line::from(facts.spans));
    lines
}

/// One line of facts. A fact that does not fit is left out: half a number would be a wrong number.
struct Facts {
    spans: Vec<Span<'static>>,
    left: usize,
}

impl Facts {
    fn new(first: Span<'static>, width: usize) -> Self {
        let left = width.saturating_sub(first.width());
        Self { spans: vec![first], left }
    }

    /// Whether it fitted.
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

/// The columns of a list of files: action, path, reason.
pub(super) struct FileColumns {
    action: usize,
    width: usize,
}

impl FileColumns {
    pub(super) fn new(preview: &Preview, width: usize) -> Self {
        let words = preview.files.iter().map(|file| file.action.word().len());
        Self { action: words.max().unwrap_or(0), width }
    }

    /// `restore  src/utils.ts  because`, after `head`. The user's mark replaces the action.
    pub(super) fn line(
        &self,
        file: &FilePreview,
        mark: Option<Mark>,
        head: &str,
        theme: &Theme,
    ) -> Line<'static> {
        let (word, style) = match mark {
            Some(mark) => (mark.word(), theme.name),
            None => (file.action.word(), action_style(file.action, theme)),
        };
        let action = format!("{head}{word:<width$}  ", width = self.action);
        let mut room = self.width.saturating_sub(action.width());
        let path = fit_end(&file.path, room);
        room = room.saturating_sub(path.width() + 2);
        let mut spans = vec![Span::styled(action, style), Span::raw(path)];
        // The reason explains the action, not the mark.
        if let Some(reason) = file.reason.as_ref().filter(|_| room >= 8 && mark.is_none()) {
            spans.push(Span::styled(format!("  {}", fit(reason, room)), theme.hint));
        }
        Line::from(spans)
    }
}

pub(super) fn wrapped(text: &str, width: usize, style: Style) -> Vec<Line<'static>> {
    wrap(text, width).into_iter().map(|line| Line::styled(line, style)).collect()
}

fn action_style(action: FileAction, theme: &Theme) -> Style {
    match action {
        FileAction::Restore | FileAction::Merge => theme.success,
        FileAction::Delete => theme.removed,
        FileAction::Keep => theme.hint,
        FileAction::Conflict => theme.failure,
        FileAction::Unclear | FileAction::NotCaptured => theme.warning,
    }
}
