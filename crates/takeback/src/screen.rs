//! How output looks: colours, columns, counts, and safe display of any name.

use std::io::{self, IsTerminal as _, Write};
use std::os::fd::AsFd;

use anstream::{AutoStream, ColorChoice};
use takeback_store::WorkPath;
use unicode_width::UnicodeWidthChar as _;

use crate::pager::Pager;

pub(crate) use takeback_tui::palette::{ERROR, FAILURE, HEADING, HINT, NAME, SUCCESS, WARNING};

/// Where a command's answer goes.
pub(crate) struct Screen {
    pub(crate) out: Box<dyn Write>,
    pub(crate) json: bool,
    pub(crate) quiet: bool,
    pub(crate) verbose: bool,
    no_pager: bool,
}

/// The reader of a diff.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Reader {
    /// A terminal: colours, and no control characters.
    Person,
    /// `git apply` or `patch`: every byte as it is.
    Program,
}

impl Screen {
    pub(crate) fn new(options: &crate::args::Options) -> Self {
        Self {
            out: Box::new(io::BufWriter::new(anstream::stdout())),
            json: options.json,
            quiet: options.quiet,
            verbose: options.verbose,
            no_pager: options.no_pager,
        }
    }

    /// A screen that writes into `text`.
    pub(crate) fn captured(options: &crate::args::Options, text: CapturedText) -> Self {
        Self { out: Box::new(text), json: false, no_pager: true, ..Self::new(options) }
    }

    /// From here on, output goes through the user's pager if it does not fit the terminal.
    pub(crate) fn page(&mut self) -> io::Result<()> {
        if self.json || self.no_pager {
            return Ok(());
        }
        if let Some(pager) = Pager::of_user() {
            self.out.flush()?;
            let raw: Box<dyn Write> = Box::new(pager);
            let coloured = AutoStream::choice(&io::stdout());
            self.out = Box::new(io::BufWriter::new(AutoStream::new(raw, coloured)));
        }
        Ok(())
    }

    pub(crate) fn reader(&self) -> Reader {
        let stdout = io::stdout();
        let plain = AutoStream::choice(&stdout) == ColorChoice::Never;
        if plain && !stdout.is_terminal() { Reader::Program } else { Reader::Person }
    }

    /// Standard output for raw bytes: `out` strips escape sequences.
    pub(crate) fn bare(&mut self) -> io::Result<impl Write + use<>> {
        self.out.flush()?;
        Ok(io::BufWriter::new(io::stdout().lock()))
    }

    /// Writes one JSON value, the whole answer.
    pub(crate) fn json(&mut self, value: &impl serde::Serialize) -> io::Result<()> {
        let mut writer = serde_json::Serializer::with_formatter(&mut self.out, EscapingFormatter);
        value.serialize(&mut writer)?;
        writeln!(self.out)?;
        self.out.flush()
    }
}

/// Text written by a command.
#[derive(Debug, Clone, Default)]
pub(crate) struct CapturedText(std::sync::Arc<std::sync::Mutex<Vec<u8>>>);

impl CapturedText {
    /// Without colours.
    pub(crate) fn text(&self) -> String {
        let bytes = self.0.lock().unwrap_or_else(std::sync::PoisonError::into_inner);
        anstream::adapter::strip_str(&String::from_utf8_lossy(&bytes)).to_string()
    }
}

impl Write for CapturedText {
    fn write(&mut self, bytes: &[u8]) -> io::Result<usize> {
        self.0.lock().unwrap_or_else(std::sync::PoisonError::into_inner).extend_from_slice(bytes);
        Ok(bytes.len())
    }

    fn flush(&mut self) -> io::Result<()> {
        Ok(())
    }
}

/// Compact JSON with the escape character escaped: the output stream strips escape sequences and would remove
/// it.
struct EscapingFormatter;

impl serde_json::ser::Formatter for EscapingFormatter {
    fn write_string_fragment<W: ?Sized + Write>(
        &mut self,
        writer: &mut W,
        fragment: &str,
    ) -> io::Result<()> {
        for (at, part) in fragment.split('\u{7f}').enumerate() {
            if at > 0 {
                writer.write_all(b"\\u007f")?;
            }
            writer.write_all(part.as_bytes())?;
        }
        Ok(())
    }

    /// Serialized JSON: the character occurs only inside strings.
    fn write_raw_fragment<W: ?Sized + Write>(
        &mut self,
        writer: &mut W,
        fragment: &str,
    ) -> io::Result<()> {
        self.write_string_fragment(writer, fragment)
    }
}

/// Whether standard input and output are terminals.
pub(crate) fn is_interactive() -> bool {
    io::stdin().is_terminal() && io::stdout().is_terminal()
}

/// Columns for text that should not be cut: unlimited if output is not a terminal.
pub(crate) fn full_width() -> usize {
    if io::stdout().is_terminal() { width() } else { usize::MAX }
}

/// The terminal's columns.
pub(crate) fn width() -> usize {
    width_of(io::stdout())
}

pub(crate) fn width_of(stream: impl AsFd) -> usize {
    match terminal_size::terminal_size_of(stream) {
        Some((terminal_size::Width(columns), _)) => usize::from(columns).max(40),
        None => 100,
    }
}

/// The columns of `text` on a terminal. Where terminals differ (emoji of several characters), the maximum.
pub(crate) fn columns(text: &str) -> usize {
    text.chars().map(char_columns).sum()
}

fn char_columns(c: char) -> usize {
    // Turns the previous character into an emoji, which is one column wider.
    if c == '\u{fe0f}' { 1 } else { c.width().unwrap_or(0) }
}

/// `text` in exactly `room` columns: cut with `…`, or padded.
pub(crate) fn fit(text: &str, room: usize) -> String {
    filled(shorten(text, room), room)
}

/// Like [`fit`], for a path: its end says more than its beginning.
pub(crate) fn fit_path(text: &str, room: usize) -> String {
    filled(shorten_path(text, room), room)
}

fn filled(mut text: String, room: usize) -> String {
    let fill = room.saturating_sub(columns(&text));
    text.extend(std::iter::repeat_n(' ', fill));
    text
}

/// `text` in at most `room` columns.
pub(crate) fn shorten(text: &str, room: usize) -> String {
    if columns(text) <= room {
        return text.to_owned();
    }
    let mut kept: String = first_columns(text.chars(), room.saturating_sub(1)).collect();
    kept.push('…');
    kept
}

/// Like [`shorten`], but cuts off the beginning.
pub(crate) fn shorten_path(text: &str, room: usize) -> String {
    if columns(text) <= room {
        return text.to_owned();
    }
    let mut kept: Vec<char> = first_columns(text.chars().rev(), room.saturating_sub(1)).collect();
    // A combining character must not come first.
    while kept.last().is_some_and(|c| c.width() == Some(0)) {
        kept.pop();
    }
    kept.push('…');
    kept.iter().rev().collect()
}

fn first_columns(chars: impl Iterator<Item = char>, room: usize) -> impl Iterator<Item = char> {
    let mut used = 0;
    chars.take_while(move |c| {
        used += char_columns(*c);
        used <= room
    })
}

/// `text` as lines of at most `room` columns, broken between words, or inside a word that is longer.
pub(crate) fn wrap(text: &str, room: usize) -> Vec<String> {
    let mut lines: Vec<String> = Vec::new();
    for mut word in text.split(' ') {
        match lines.last_mut() {
            Some(line) if columns(line) + 1 + columns(word) <= room => {
                line.push(' ');
                line.push_str(word);
                continue;
            }
            _ => {}
        }
        while columns(word) > room {
            let first: String = first_columns(word.chars(), room).collect();
            if first.is_empty() {
                break;
            }
            word = &word[first.len()..];
            lines.push(first);
        }
        lines.push(word.to_owned());
    }
    lines
}

/// A path for display: on one line, with every byte visible.
pub(crate) fn name(path: &WorkPath) -> String {
    plain_bytes(path.as_bytes())
}

/// Untrusted text on one line, with control and invisible characters escaped.
pub(crate) fn plain(text: &str) -> String {
    plain_bytes(text.as_bytes())
}

/// Like [`plain`], also for bytes that are not UTF-8.
pub(crate) fn plain_bytes(bytes: &[u8]) -> String {
    let mut plain = String::with_capacity(bytes.len());
    for chunk in bytes.utf8_chunks() {
        for c in chunk.valid().chars() {
            if c.is_control() || is_unseen(c) {
                plain.extend(c.escape_default());
            } else {
                plain.push(c);
            }
        }
        for byte in chunk.invalid() {
            plain.push_str(&format!("\\x{byte:02x}"));
        }
    }
    plain
}

/// Invisible or direction-changing characters, with which one name could pass for another.
fn is_unseen(c: char) -> bool {
    matches!(c,
        '\u{ad}' | '\u{34f}' | '\u{61c}' | '\u{115f}' | '\u{1160}' | '\u{17b4}' | '\u{17b5}'
        | '\u{180b}'..='\u{180f}' | '\u{200b}'..='\u{200f}' | '\u{2028}'..='\u{202e}'
        | '\u{2060}'..='\u{206f}' | '\u{3164}' | '\u{feff}' | '\u{ffa0}' | '\u{fff0}'..='\u{fffb}'
        | '\u{1d173}'..='\u{1d17a}' | '\u{e0000}'..='\u{e0fff}')
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

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_terminals_obey_or_hide_is_written_out() {
        for (bytes, shown) in [
            (&b"a\nb\tc\x1b[2J\x7f"[..], r"a\nb\tc\u{1b}[2J\u{7f}"),
            (b"caf\xe9/\xff\xfe", r"caf\xe9/\xff\xfe"),
            ("gpj\u{202e}.exe".as_bytes(), r"gpj\u{202e}.exe"),
            ("a\u{200b}b\u{feff}\u{85}\u{2066}".as_bytes(), r"a\u{200b}b\u{feff}\u{85}\u{2066}"),
            ("\u{e0041}\u{2028}\u{ad}".as_bytes(), r"\u{e0041}\u{2028}\u{ad}"),
            ("日本 é e\u{301} שלום 🦀".as_bytes(), "日本 é e\u{301} שלום 🦀"),
        ] {
            assert_eq!(plain_bytes(bytes), shown);
        }
    }

    #[test]
    fn what_is_cut_has_the_room_it_was_given() {
        for text in [
            "日本語のファイル名.txt",
            "🦀🦀🦀🦀🦀🦀🦀🦀",
            "plain words here",
            "e\u{301}e\u{301}e\u{301}e\u{301}e\u{301}e\u{301}e\u{301}e\u{301}",
        ] {
            for room in 1..20 {
                for fitted in [fit(text, room), fit_path(text, room)] {
                    assert_eq!(columns(&fitted), room, "{text:?} in {room}: {fitted:?}");
                }
            }
        }
        assert_eq!(shorten_path("crates/takeback/src/screen.rs", 14), "…src/screen.rs");
        assert_eq!(shorten("crates/takeback", 8), "crates/…");
        assert_eq!(shorten_path("日本語", 4), "…語");
    }
}
