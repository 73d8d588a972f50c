//! `diff`: what changed since a point, or between two.

use std::io::Write as _;

use serde::Serialize;
use takeback_core::history::by_path;
use takeback_core::point_name::find_point;
use takeback_core::rewind::path_filter::PathFilter;
use takeback_store::{Entry, Seq};

use super::filediff::{FileDiff, Lines, between};
use super::rewind::from_root;
use crate::args::{DiffArgs, Options};
use crate::error::CommandError;
use crate::place::{self, Store};
use crate::screen::{BAD, GOOD, HINT, Screen, count, fit};
use crate::time::{now, parse};

#[derive(Serialize)]
#[serde(rename_all = "camelCase")]
struct ToldDiff<'a> {
    file_path: String,
    before: &'a Entry,
    after: &'a Entry,
    /// `null`: not text.
    insertions: Option<usize>,
    deletions: Option<usize>,
}

pub(crate) fn diff(
    options: &Options,
    args: &DiffArgs,
    screen: &mut Screen,
) -> Result<u8, CommandError> {
    let mut place = place::open_mended(options, Store::MustExist)?;
    if args.to.is_none() {
        takeback_core::look_around(&mut place.workspace)?;
    }
    let store = &*place.workspace.store;
    let points = store.points()?;
    let time = now();
    let seq_of = |name: &str| -> Result<Seq, CommandError> {
        Ok(find_point(&points, name, &|text| parse(text, time))?.seq)
    };
    let from = seq_of(&args.from)?;
    let to = args.to.as_deref().map(seq_of).transpose()?;
    let (first, last, swapped) = match to {
        Some(to) if to < from => (to, Some(from), true),
        to => (from, to, false),
    };
    let filter = PathFilter::new(&from_root(&place.workspace, options, &args.paths)?)?;
    let mut histories = by_path(store.changes_after(first)?);
    histories.retain(|history| filter.includes(&history.path));
    let mut diffs: Vec<FileDiff> = between(&histories, last);
    if swapped {
        for diff in &mut diffs {
            std::mem::swap(&mut diff.before, &mut diff.after);
        }
    }
    if screen.json {
        let mut told = Vec::new();
        for diff in &diffs {
            let lines = diff.lines(store)?;
            told.push(ToldDiff {
                file_path: String::from_utf8_lossy(diff.path.as_bytes()).into_owned(),
                before: &diff.before,
                after: &diff.after,
                insertions: lines.map(|lines| lines.insertions),
                deletions: lines.map(|lines| lines.deletions),
            });
        }
        screen.json(&told)?;
        return Ok(0);
    }
    if args.stat {
        let column =
            diffs.iter().map(|diff| diff.path.display().chars().count()).max().unwrap_or(0).min(60);
        let mut total = Lines::default();
        for diff in &diffs {
            let lines = diff.lines(store)?;
            let name = fit(&diff.path.display(), column);
            match lines {
                Some(lines) => {
                    total.insertions += lines.insertions;
                    total.deletions += lines.deletions;
                    let (added, removed) = (lines.insertions, lines.deletions);
                    writeln!(
                        screen.out,
                        "  {name}  {GOOD}+{added:<5}{GOOD:#} {BAD}-{removed:<5}{BAD:#} {HINT}{}{HINT:#}",
                        diff.what()
                    )?;
                }
                None => writeln!(screen.out, "  {name}  {HINT}not text, {}{HINT:#}", diff.what())?,
            }
        }
        writeln!(
            screen.out,
            "{}, {GOOD}+{}{GOOD:#} {BAD}-{}{BAD:#}",
            count(diffs.len(), "file"),
            total.insertions,
            total.deletions
        )?;
        return Ok(0);
    }
    for (at, diff) in diffs.iter().enumerate() {
        if at > 0 {
            writeln!(screen.out)?;
        }
        diff.print(store, &mut screen.out)?;
    }
    if diffs.is_empty() && !screen.quiet {
        writeln!(screen.out, "{HINT}Nothing differs.{HINT:#}")?;
    }
    Ok(0)
}
