//! `diff`: what changed since a point, or between two.

use std::io::Write;

use takeback_core::Workspace;
use takeback_core::history::{
    AuthorDiff, Cancelled, Party, Viewpoint, by_path, cancelled, changes_by, next_point, settle,
};
use takeback_core::rewind::PathFilter;
use takeback_store::{Change, Seq, Store as LogStore, StoreError};

use super::filediff::{Comparison, Contents, DAMAGED, FileDiff, Lines, between, path_name};
use super::log::author;
use super::patch::{PatchCoverage, as_patch, print_all};
use super::rewind::from_root;
use crate::answers;
use crate::args::{DiffArgs, Options};
use crate::error::{CommandError, Kind};
use crate::place::{self, Store};
use crate::point::find_in;
use crate::questions::{DiffEnd, DiffQuery, point_of};
use crate::screen::{FAILURE, HINT, Reader, SUCCESS, Screen, WARNING, count, name, plain};
use crate::table::{Cell, Overflow, Table};

pub(crate) fn diff(
    options: &Options,
    args: &DiffArgs,
    screen: &mut Screen,
) -> Result<u8, CommandError> {
    let mut place = place::open_recovered(options, Store::MustExist)?;
    let part = differences(&mut place.workspace, options, args)?;
    let AuthorDiff { diffs, made, overlapping } = &part;
    let contents = Contents { store: &*place.workspace.store, made };
    if screen.json {
        let answer = diff_answer(diffs, contents)?;
        screen.json(&answer)?;
        return Ok(exit_code(answer.iter().filter(|diff| diff.damaged).count()));
    }
    screen.page()?;
    if diffs.is_empty() {
        return nothing_differs(args, screen);
    }
    let damaged = if args.stat {
        print_stat(diffs, contents, &mut screen.out)?
    } else {
        print_all(diffs, contents, screen)?
    };
    if !overlapping.is_empty() && !screen.quiet {
        let files = overlapping.iter().map(name).collect::<Vec<_>>().join(", ");
        writeln!(
            anstream::stderr().lock(),
            "{WARNING}takeback:{WARNING:#} what other authors did to {files} cannot be taken out; each change \
             is shown by itself, and the patch may not apply"
        )?;
    }
    Ok(exit_code(damaged))
}

/// Damaged contents could not be compared, so the command fails.
pub(super) fn exit_code(damaged: usize) -> u8 {
    if damaged == 0 { 0 } else { Kind::Conflicts as u8 }
}

/// What the arguments ask for, path by path.
pub(crate) fn differences(
    workspace: &mut Workspace,
    options: &Options,
    args: &DiffArgs,
) -> Result<AuthorDiff, CommandError> {
    let turn = args.from.strip_suffix('!').filter(|name| !name.is_empty());
    if turn.is_some() && args.to.is_some() {
        return Err(CommandError::new(Kind::Usage, "POINT! is compared with the next point")
            .hint("Leave out the second point."));
    }
    let store = &*workspace.store;
    let point = find_in(store, turn.unwrap_or(&args.from))?;
    let to = match (turn, args.to.as_deref()) {
        (Some(_), _) => DiffEnd::Turn,
        (None, Some(name)) => DiffEnd::Point(find_in(store, name)?.id),
        (None, None) => DiffEnd::Now,
    };
    let is_open = match to {
        DiffEnd::Now => true,
        DiffEnd::Turn => next_point(store, &point)?.is_none(),
        DiffEnd::Point(_) => false,
    };
    if is_open {
        takeback_core::look_around(workspace)?;
    }
    let by = args.by.as_deref().map(|name| author(workspace, name)).transpose()?;
    let paths = from_root(workspace, options, &args.paths)?;
    compare(workspace, &DiffQuery { from: point.id, to, by, paths })
}

/// What differs, path by path, or one author's part of it.
pub(crate) fn compare(
    workspace: &Workspace,
    query: &DiffQuery,
) -> Result<AuthorDiff, CommandError> {
    let store = &*workspace.store;
    let filter = PathFilter::new(&query.paths)?;
    let point = point_of(workspace, query.from)?;
    let (from, to) = match query.to {
        DiffEnd::Turn => (point.seq, next_point(store, &point)?.map(|next| next.seq)),
        DiffEnd::Point(to) => (point.seq, Some(point_of(workspace, to)?.seq)),
        DiffEnd::Now => (point.seq, None),
    };
    let (first, last, swapped) = match to {
        Some(to) if to < from => (to, Some(from), true),
        to => (from, to, false),
    };
    let is_turn = query.to == DiffEnd::Turn;
    let mut part = if is_turn || query.by.is_some() {
        let mut changes = changes_in(store, first, last)?;
        changes.retain(|change| filter.includes(&change.path));
        settle(store, &mut changes)?;
        // What the turn changed, also if it was taken back later.
        let cancelled = match is_turn {
            true => Cancelled::default(),
            false => cancelled(&store.rewind_changes_after(first)?),
        };
        let view = Viewpoint { session: point.session.as_ref() };
        changes_by(store, changes, &cancelled, |change| {
            query.by.as_ref().is_none_or(|by| by.includes(change))
                && (!is_turn || view.party(change) == Some(Party::Agent))
        })?
    } else {
        let mut histories = by_path(changes_in(store, first, last)?);
        histories.retain(|history| filter.includes(&history.path));
        AuthorDiff { diffs: between(&histories, last), ..AuthorDiff::default() }
    };
    if swapped {
        part.diffs = part.diffs.into_iter().map(FileDiff::reversed).collect();
        part.diffs.sort_by(|a, b| a.path.cmp(&b.path));
    }
    Ok(part)
}

/// The changes after a position, up to another one or to the newest.
fn changes_in(
    store: &dyn LogStore,
    first: Seq,
    last: Option<Seq>,
) -> Result<Vec<Change>, StoreError> {
    match last {
        Some(last) => store.changes_between(first, last),
        None => store.changes_after(first),
    }
}

/// The differences with their line counts.
pub(crate) fn diff_answer(
    diffs: &[FileDiff],
    contents: Contents<'_>,
) -> Result<answers::DiffAnswer, CommandError> {
    let answer = |diff: &FileDiff| {
        let compared = diff.compare_in(contents)?;
        let lines = compared.lines();
        Ok(answers::FileDiff {
            path: answers::path(&diff.path),
            before: answers::entry(&diff.before),
            after: answers::entry(&diff.after),
            insertions: lines.map(|lines| lines.insertions),
            deletions: lines.map(|lines| lines.deletions),
            damaged: compared == Comparison::Damaged,
            renamed_from: diff.renamed_from.as_ref().map(|path| answers::path(path).file_path),
            patch: None,
        })
    };
    diffs.iter().map(answer).collect()
}

/// Adds a patch to each text file, in order, while the patches fit into `most` bytes together.
pub(crate) fn add_patches(
    rows: &mut [answers::FileDiff],
    diffs: &[FileDiff],
    contents: Contents<'_>,
    most: usize,
) -> Result<(), CommandError> {
    let mut left = most;
    for (row, diff) in rows.iter_mut().zip(diffs) {
        let mut patch = Vec::new();
        if as_patch(diff, contents, &mut patch)? == PatchCoverage::Included && patch.len() <= left {
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
pub(super) fn print_stat(
    diffs: &[FileDiff],
    contents: Contents<'_>,
    out: &mut dyn Write,
) -> Result<usize, CommandError> {
    let mut counted = Vec::new();
    for diff in diffs {
        let compared =
            if diff.is_folder() { Comparison::NotText } else { diff.compare_in(contents)? };
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
            (what, Comparison::NotText) if !diff.is_folder() && !diff.has_same_bytes() => {
                format!("{what}, not text")
            }
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
        table.rows.push([Cell::plain(path_name(diff)), counts, Cell::new(HINT, what)]);
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
