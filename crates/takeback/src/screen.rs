//! How things look: colours, columns, counts.

use std::io::{self, IsTerminal as _, Write};

use anstyle::{AnsiColor, Style};
use unicode_width::{UnicodeWidthChar as _, UnicodeWidthStr as _};

pub(crate) const WRONG: Style = AnsiColor::Red.on_default().bold();
pub(crate) const GOOD: Style = AnsiColor::Green.on_default();
pub(crate) const CARE: Style = AnsiColor::Yellow.on_default();
pub(crate) const BAD: Style = AnsiColor::Red.on_default();
pub(crate) const NAME: Style = AnsiColor::Cyan.on_default();
pub(crate) const HINT: Style = Style::new().dimmed();
pub(crate) const STRONG: Style = Style::new().bold();

/// Where a command's answer goes.
pub(crate) struct Screen {
    pub(crate) out: Box<dyn Write>,
    pub(crate) json: bool,
    pub(crate) quiet: bool,
    pub(crate) verbose: bool,
}

impl Screen {
    pub(crate) fn new(options: &crate::args::Options) -> Self {
        Self {
            out: Box::new(io::BufWriter::new(anstream::stdout())),
            json: options.json,
            quiet: options.quiet,
            verbose: options.verbose,
        }
    }

    /// One JSON value, the whole answer.
    pub(crate) fn json(&mut self, value: &impl serde::Serialize) -> io::Result<()> {
        serde_json::to_writer(&mut self.out, value)?;
        writeln!(self.out)?;
        self.out.flush()
    }
}

/// Whether somebody sits there to be asked.
pub(crate) fn is_interactive() -> bool {
    io::stdin().is_terminal() && io::stdout().is_terminal()
}

/// Columns to write in; when nobody looks at it, as many as it takes.
pub(crate) fn width() -> usize {
    match terminal_size::terminal_size_of(io::stdout()) {
        Some((terminal_size::Width(columns), _)) => usize::from(columns).max(40),
        None => 100,
    }
}

/// `text` in exactly `columns` columns: cut with `…`, or filled up.
pub(crate) fn fit(text: &str, columns: usize) -> String {
    let text = shorten(text, columns);
    let fill = columns.saturating_sub(text.width());
    format!("{text}{}", " ".repeat(fill))
}

/// `text` in at most `columns` columns.
pub(crate) fn shorten(text: &str, columns: usize) -> String {
    if text.width() <= columns {
        return text.to_owned();
    }
    let mut used = 0;
    let mut kept = String::new();
    for c in text.chars() {
        used += c.width().unwrap_or(0);
        if used + 1 > columns {
            break;
        }
        kept.push(c);
    }
    kept.push('…');
    kept
}

/// Text that may hold anything, on one line and without control characters.
pub(crate) fn plain(text: &str) -> String {
    let mut plain = String::new();
    for c in text.chars() {
        if c.is_control() { plain.extend(c.escape_default()) } else { plain.push(c) }
    }
    plain
}

/// `1 file`, `2 files`.
pub(crate) fn count(n: usize, noun: &str) -> String {
    format!("{n} {noun}{}", if n == 1 { "" } else { "s" })
}

pub(crate) fn bytes(n: u64) -> String {
    const UNITS: [&str; 4] = ["KB", "MB", "GB", "TB"];
    if n < 1000 {
        return format!("{n} B");
    }
    #[expect(clippy::cast_precision_loss, reason = "shown with one decimal")]
    let mut value = n as f64 / 1000.0;
    let mut unit = 0;
    while value >= 1000.0 && unit + 1 < UNITS.len() {
        value /= 1000.0;
        unit += 1;
    }
    format!("{value:.1} {}", UNITS[unit])
}
