//! Shows single places of a file in the terminal, and asks about each.

use std::io::{self, Write as _};
use std::ops::Range;

use crate::ask;
use crate::screen::{FAILURE, HEADING, HINT, SUCCESS, Screen, plain_bytes, shorten, width};

/// Unchanged lines shown above and below a place.
const CONTEXT: usize = 3;
/// Lines shown of each version.
const MOST: usize = 40;

/// A place of a file, and what could be there.
pub(crate) struct HunkView<'a> {
    /// All lines of the file as it is.
    pub(crate) now: &'a [&'a [u8]],
    /// The place in it.
    pub(crate) lines: Range<usize>,
    /// The lines that could take its place.
    pub(crate) then: &'a [&'a [u8]],
}

impl HunkView<'_> {
    /// Prints it under a heading: removed lines are there now, added ones would be.
    pub(crate) fn print(&self, heading: &str, screen: &mut Screen) -> io::Result<()> {
        writeln!(screen.out, "\n{HEADING}{heading}{HEADING:#}")?;
        let above = self.lines.start.saturating_sub(CONTEXT)..self.lines.start;
        let below = self.lines.end..(self.lines.end + CONTEXT).min(self.now.len());
        self.context(above, screen)?;
        for (at, line) in self.now[self.lines.clone()].iter().enumerate().take(MOST) {
            let number = self.lines.start + at + 1;
            writeln!(screen.out, "{number:>6} {FAILURE}-{}{FAILURE:#}", text(line))?;
        }
        self.more(self.lines.len(), screen)?;
        for line in self.then.iter().take(MOST) {
            writeln!(screen.out, "{:>6} {SUCCESS}+{}{SUCCESS:#}", "", text(line))?;
        }
        self.more(self.then.len(), screen)?;
        self.context(below, screen)
    }

    fn context(&self, lines: Range<usize>, screen: &mut Screen) -> io::Result<()> {
        for at in lines {
            writeln!(screen.out, "{HINT}{:>6}  {}{HINT:#}", at + 1, text(self.now[at]))?;
        }
        Ok(())
    }

    fn more(&self, lines: usize, screen: &mut Screen) -> io::Result<()> {
        if lines > MOST {
            writeln!(screen.out, "{HINT}{:>6}  … {} more{HINT:#}", "", lines - MOST)?;
        }
        Ok(())
    }
}

fn text(line: &[u8]) -> String {
    let line = line.strip_suffix(b"\n").unwrap_or(line);
    let line = line.strip_suffix(b"\r").unwrap_or(line);
    shorten(&plain_bytes(line), width().saturating_sub(8))
}

/// Asks until one of the keys is typed. `?` prints the help; the end of the input is `q`.
pub(crate) fn key(question: &str, keys: &[(char, &str)], screen: &mut Screen) -> io::Result<char> {
    let letters: Vec<String> = keys.iter().map(|(key, _)| key.to_string()).collect();
    let question = format!("{question} [{},?]", letters.join(","));
    loop {
        let answer = ask::answer(std::slice::from_ref(&question), screen)?;
        let mut typed = answer.chars();
        match (typed.next(), typed.next()) {
            (None, _) => return Ok('q'),
            (Some(key), None) if keys.iter().any(|(one, _)| *one == key) => return Ok(key),
            _ => {
                for (key, what) in keys {
                    writeln!(screen.out, "{HINT}{key}  {what}{HINT:#}")?;
                }
            }
        }
    }
}
