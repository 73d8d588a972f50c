//! Tables that fit the terminal: columns are cut first, then optional columns are dropped.

use std::io::{self, Write};

use anstyle::Style;

use crate::screen::{columns, fit, fit_path, width};

const GAP: usize = 2;

/// What happens to a column if the table is too wide.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Overflow {
    /// It keeps its width.
    Nothing,
    /// Its texts are cut at the end, down to this many columns.
    End(usize),
    /// Its texts, which are paths, are cut at the beginning.
    Start(usize),
    /// It is dropped if cutting is not enough; the highest number first.
    All(u8),
}

/// A text in one or more styles. Only a text in one style can be cut.
#[derive(Debug, Clone, Default)]
pub(crate) struct Cell(Vec<(Style, String)>);

impl Cell {
    pub(crate) fn new(style: Style, text: impl Into<String>) -> Self {
        Self(vec![(style, text.into())])
    }

    pub(crate) fn plain(text: impl Into<String>) -> Self {
        Self::new(Style::new(), text)
    }

    pub(crate) fn push(&mut self, style: Style, text: impl Into<String>) {
        self.0.push((style, text.into()));
    }

    pub(crate) fn is_empty(&self) -> bool {
        self.0.is_empty()
    }

    fn columns(&self) -> usize {
        self.0.iter().map(|(_, text)| columns(text)).sum()
    }
}

pub(crate) struct Table<const N: usize> {
    pub(crate) indent: usize,
    pub(crate) overflows: [Overflow; N],
    pub(crate) rows: Vec<[Cell; N]>,
}

impl<const N: usize> Table<N> {
    pub(crate) fn new(indent: usize, overflows: [Overflow; N]) -> Self {
        Self { indent, overflows, rows: Vec::new() }
    }

    pub(crate) fn print(&self, out: &mut dyn Write) -> io::Result<()> {
        self.print_within(width(), out)
    }

    pub(crate) fn print_within(&self, room: usize, out: &mut dyn Write) -> io::Result<()> {
        let widths = self.widths(room);
        for row in &self.rows {
            write!(out, "{:1$}", "", self.indent)?;
            let shown =
                || widths.iter().enumerate().filter_map(|(at, width)| Some((at, (*width)?)));
            let last = shown().map(|(at, _)| at).rfind(|at| row[*at].columns() > 0);
            for (at, room) in shown().take_while(|(at, _)| last.is_some_and(|last| *at <= last)) {
                let cell = &row[at];
                let used = cell.columns();
                if let (true, [(style, text)]) = (used > room, cell.0.as_slice()) {
                    let cut = if matches!(self.overflows[at], Overflow::Start(_)) {
                        fit_path
                    } else {
                        fit
                    };
                    write!(out, "{style}{}{style:#}", cut(text, room))?;
                } else {
                    for (style, text) in &cell.0 {
                        write!(out, "{style}{text}{style:#}")?;
                    }
                }
                if Some(at) != last {
                    write!(out, "{:1$}", "", room.saturating_sub(used) + GAP)?;
                }
            }
            writeln!(out)?;
        }
        Ok(())
    }

    /// The width of each column; `None`: dropped.
    fn widths(&self, room: usize) -> [Option<usize>; N] {
        let mut is_kept = [true; N];
        let mut dropped = Vec::new();
        let mut widths = self.cut(room, is_kept);
        while self.total(&widths) > room {
            let next = (0..N)
                .filter_map(|at| match (self.overflows[at], widths[at]) {
                    (Overflow::All(order), Some(_)) => Some((order, at)),
                    _ => None,
                })
                .max();
            let Some((_, goes)) = next else { break };
            is_kept[goes] = false;
            dropped.push(goes);
            widths = self.cut(room, is_kept);
        }
        // A narrow column may fit where a wide one that matters more does not.
        for at in dropped.into_iter().rev().skip(1) {
            is_kept[at] = true;
            let with_it = self.cut(room, is_kept);
            is_kept[at] = self.total(&with_it) <= room;
            if is_kept[at] {
                widths = with_it;
            }
        }
        widths
    }

    fn total(&self, widths: &[Option<usize>; N]) -> usize {
        let gaps = widths.iter().flatten().count().saturating_sub(1) * GAP;
        self.indent + gaps + widths.iter().flatten().sum::<usize>()
    }

    /// The widths of the columns that are kept, cut as far as they may be so that they fit.
    fn cut(&self, room: usize, is_kept: [bool; N]) -> [Option<usize>; N] {
        let mut widths: [Option<usize>; N] = std::array::from_fn(|at| {
            let widest = self.rows.iter().map(|row| row[at].columns()).max();
            widest.filter(|width| is_kept[at] && *width > 0)
        });
        // The widest column is cut first, so that none is cut while another has room to spare.
        for _ in room..self.total(&widths) {
            let widest = (0..N)
                .filter_map(|at| {
                    let (Overflow::End(least) | Overflow::Start(least)) = self.overflows[at] else {
                        return None;
                    };
                    Some((widths[at].filter(|width| *width > least)?, at))
                })
                .max();
            let Some((width, at)) = widest else { break };
            widths[at] = Some(width - 1);
        }
        widths
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_can_be_cut_is_cut_before_anything_goes() {
        let mut table = Table::new(
            2,
            [Overflow::Nothing, Overflow::All(1), Overflow::End(10), Overflow::Start(6)],
        );
        table.rows.push([
            Cell::plain("12345678"),
            Cell::plain("session"),
            Cell::plain("a".repeat(30)),
            Cell::plain("b".repeat(12)),
        ]);
        let widths = |room| table.widths(room).map(Option::unwrap_or_default);
        assert_eq!(widths(100), [8, 7, 30, 12]);
        assert_eq!(widths(60), [8, 7, 25, 12]);
        assert_eq!(widths(40), [8, 7, 10, 7]);
        assert_eq!(widths(38), [8, 0, 12, 12]);
        assert_eq!(widths(20), [8, 0, 10, 6], "there is no less");
    }
}
