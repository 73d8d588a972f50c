//! `diff`: what changed since a point, or between two.

use std::io::Write;

use takeback_core::Workspace;
use takeback_core::history::by_path;
use takeback_core::rewind::PathFilter;
use takeback_store::Seq;

use super::filediff::{Comparison, Contents, DAMAGED, FileDiff, Lines, between};
use super::patch::{PatchCoverage, as_patch, print_all};
use super::rewind::from_root;
use crate::answers;
use crate::args::{DiffArgs, Options};
use crate::error::{CommandError, Kind};
use crate::place::{self, Store};
use crate::point::find;
use crate::screen::{FAILURE, HINT, Reader, SUCCESS, Screen, WARNING, count, name, plain};
use crate::table::{Cell, Overflow, Table};

pub(crate) fn diff(
    options: &Options,
    args: &DiffArgs,
    screen: &mut Screen,
) -> Result<u8, CommandError> {
    let mut place = place::open_recovered(options, Store::MustExist)?;
    let diffs = differences(&mut place.workspace, options, args)?;
    let store = &*place.workspace.store;
    if screen.json {
        let answer = diff_answer(store, &diffs)?;
        screen.json(&answer)?;
        return Ok(exit_code(answer.iter().filter(|diff| diff.damaged).count()));
    }
    screen.page()?;
    if diffs.is_empty() {
        return nothing_differs(args, screen);
    }
    let damaged = if args.stat {
        print_stat(&diffs, store, &mut screen.out)?
    } else {
        print_all(&diffs, Contents::of(store), screen)?
    };
    Ok(exit_code(damaged))
}

/// Damaged contents could not be compared, so the command fails.
fn exit_code(damaged: usize) -> u8 {
    if damaged == 0 { 0 } else { Kind::Conflicts as u8 }
}

/// What differs, path by path.
pub(crate) fn differences(
    workspace: &mut Workspace,
    options: &Options,
    args: &DiffArgs,
) -> Result<Vec<FileDiff>, CommandError> {
    if args.to.is_none() {
        takeback_core::look_around(workspace)?;
    }
    let store = &*workspace.store;
    let points = store.points()?;
    let seq_of = |name: &str| -> Result<Seq, CommandError> { Ok(find(&points, name)?.seq) };
    let from = seq_of(&args.from)?;
    let to = args.to.as_deref().map(seq_of).transpose()?;
    let (first, last, swapped) = match to {
        Some(to) if to < from => (to, Some(from), true),
        to => (from, to, false),
    };
    let filter = PathFilter::new(&from_root(workspace, options, &args.paths)?)?;
    let mut histories = by_path(store.changes_after(first)?);
    histories.retain(|history| filter.includes(&history.path));
    let mut diffs: Vec<FileDiff> = between(&histories, last);
    if swapped {
        for diff in &mut diffs {
            std::mem::swap(&mut diff.before, &mut diff.after);
        }
    }
    Ok(diffs)
}

/// The differences with their line counts.
pub(crate) fn diff_answer(
    store: &dyn takeback_store::Store,
    diffs: &[FileDiff],
) -> Result<answers::DiffAnswer, CommandError> {
    let answer = |diff: &FileDiff| {
        let compared = diff.compare(store)?;
        let lines = compared.lines();
        Ok(answers::FileDiff {
            path: answers::path(&diff.path),
            before: answers::entry(&diff.before),
            after: answers::entry(&diff.after),
            insertions: lines.map(|lines| lines.insertions),
            deletions: lines.map(|lines| lines.deletions),
            damaged: compared == Comparison::Damaged,
            patch: None,
        })
    };
    diffs.iter().map(answer).collect()
}

/// Adds a patch to each text file, in order, while the patches fit into `most` bytes together.
pub(crate) fn add_patches(
    rows: &mut [answers::FileDiff],
    diffs: &[FileDiff],
    store: &dyn takeback_store::Store,
    most: usize,
) -> Result<(), CommandError> {
    let mut left = most;
    for (row, diff) in rows.iter_mut().zip(diffs) {
        let mut patch = Vec::new();
        if as_patch(diff, Contents::of(store), &mut patch)? == PatchCoverage::Included
            && patch.len() <= left
        {
            left -= patch.len();
            row.patch = Some(String::from_utf8_lossy(&patch).into_owned());
        }
    }
    Ok(())
}

fn nothing_differs(args: &DiffArgs, screen: &mut Screen) -> Result<u8, CommandError> {
    let notice = if args.paths.is_empty() {
        "No differences.".to_owned()
    } else {
        format!("No differences match {}.", plain(&args.paths.join(", ")))
    };
    if screen.quiet {
        return Ok(0);
    }
    if args.stat || screen.reader() == Reader::Person {
        writeln!(screen.out, "{HINT}{notice}{HINT:#}")?;
    } else if !args.paths.is_empty() {
        // The patch is empty, but the path may be misspelled.
        writeln!(anstream::stderr().lock(), "{WARNING}takeback:{WARNING:#} {notice}")?;
    }
    Ok(0)
}

/// Returns how many files have damaged contents in the store.
fn print_stat(
    diffs: &[FileDiff],
    store: &dyn takeback_store::Store,
    out: &mut dyn Write,
) -> Result<usize, CommandError> {
    let mut counted = Vec::new();
    for diff in diffs {
        let compared = if diff.is_folder() { Comparison::NotText } else { diff.compare(store)? };
        counted.push((diff, compared));
    }
    let lines = || counted.iter().filter_map(|(_, compared)| compared.lines());
    let digits = |n: Option<usize>| n.unwrap_or(0).to_string().len() + 1;
    let added = digits(lines().map(|lines| lines.insertions).max());
    let removed = digits(lines().map(|lines| lines.deletions).max());
    let mut table = Table::new(2, [Overflow::Start(12), Overflow::Nothing, Overflow::All(1)]);
    for (diff, compared) in &counted {
        let what = match (diff.what(), compared) {
            (what, Comparison::Damaged) => format!("{what}, {DAMAGED}"),
            (what, Comparison::NotText) if !diff.is_folder() => format!("{what}, not text"),
            (what, _) if what == "changed" => String::new(),
            (what, _) => what,
        };
        let mut counts = Cell::default();
        if let Some(Lines { insertions, deletions }) = compared.lines()
            && insertions + deletions > 0
        {
            counts.push(SUCCESS, format!("{:>added$}", format!("+{insertions}")));
            counts.push(FAILURE, format!(" {:>removed$}", format!("-{deletions}")));
        }
        table.rows.push([Cell::plain(name(&diff.path)), counts, Cell::new(HINT, what)]);
    }
    table.print(out)?;
    let (added, removed) = lines().fold((0, 0), |(added, removed), lines| {
        (added + lines.insertions, removed + lines.deletions)
    });
    let files = diffs.iter().filter(|diff| !diff.is_folder()).count();
    writeln!(
        out,
        "{}, {SUCCESS}+{added}{SUCCESS:#} {FAILURE}-{removed}{FAILURE:#}",
        count(files, "file")
    )?;
    Ok(counted.iter().filter(|(_, compared)| *compared == Comparison::Damaged).count())
}
