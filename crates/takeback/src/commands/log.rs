//! `log`: points and operations, newest first, with what changed after each and by whom.

mod answer;
mod graph;
mod query;
mod rows;
mod template;

use std::io::Write as _;

use takeback_core::Workspace;
use takeback_core::history::{LogQuery, LogRow, LogRows, log as read_log};
use takeback_store::{PointFilter, Store as LogStore};

use self::answer::row_answer;
pub(crate) use self::answer::{by_author, git_state, head_move, point_answer, taken_back};
pub(crate) use self::query::{author, moment, query};
pub(crate) use self::rows::{described, operation_title, party_cell, print, session_label, title};
use super::cleanup::enforce_point_cap;
use super::compare::origin_line;
use super::diff::print_stat;
use super::filediff::Contents;
use super::patch::print_all;
use crate::answers;
use crate::args::{LogArgs, Options};
use crate::error::CommandError;
use crate::place::{self, Store};
use crate::screen::{HINT, Reader, Screen, plain};
use crate::session_name::SessionNames;
use crate::stores;

pub(crate) fn log(
    options: &Options,
    args: &LogArgs,
    screen: &mut Screen,
) -> Result<u8, CommandError> {
    let mut place = place::open_caught_up(options, Store::MustExist)?;
    enforce_point_cap(&mut place);
    let workspace = &place.workspace;
    let template = args.format.as_deref().map(template::Template::parse).transpose()?;
    let query = query(workspace, options, args)?;
    let rows = read_log(&*workspace.store, &query)?;
    if screen.json {
        screen.json(&list(workspace, rows)?)?;
        return Ok(0);
    }
    screen.page()?;
    if let Some(template) = template {
        for answer in list(workspace, rows)? {
            writeln!(screen.out, "{}", template.fill(&answer)?)?;
        }
        return Ok(0);
    }
    if args.patch || args.stat {
        for (at, row) in rows.iter().enumerate() {
            print_with_files(workspace, row, at, args.patch, screen)?;
        }
    } else {
        print(workspace, &rows, args.graph, &mut screen.out)?;
    }
    print_end(workspace, args, &query, &rows, screen)
}

/// What is below the rows: why there are none, or that there are more, and where a fork comes from.
fn print_end(
    workspace: &Workspace,
    args: &LogArgs,
    query: &LogQuery,
    rows: &[LogRow],
    screen: &mut Screen,
) -> Result<u8, CommandError> {
    let shown = rows.iter().filter(|row| matches!(row, LogRow::Point(_))).count();
    match &query.session {
        _ if !query.filter.is_empty() || query.rows == LogRows::Operations => {
            if rows.is_empty() {
                let is_of_all = query.filter.is_empty() && query.session.is_none();
                let what = match (args.ops, is_of_all) {
                    (true, true) => "No rewinds yet.",
                    (true, false) => "No operations match.",
                    (false, _) => "No points match.",
                };
                writeln!(screen.out, "{what}")?;
            } else if shown.max(usize::from(args.ops) * rows.len()) == args.limit {
                writeln!(screen.out, "{HINT}there may be more; -n shows them{HINT:#}")?;
            }
        }
        None if shown == 0 && count(workspace, args)? == 0 => {
            writeln!(screen.out, "No points yet. {HINT}`takeback checkpoint` makes one.{HINT:#}")?;
        }
        Some(session) if shown == 0 && count(workspace, args)? == 0 => {
            writeln!(screen.out, "{} has no points.", plain(&session.0))?;
        }
        _ => {
            let all = count(workspace, args)?;
            if all > shown {
                let older = if shown == 0 { "not shown" } else { "older" };
                writeln!(screen.out, "{HINT}{} {older}; -n shows more{HINT:#}", all - shown)?;
            }
        }
    }
    if let Some(origin) = stores::origin_of(&workspace.store_dir) {
        writeln!(screen.out, "{HINT}{}{HINT:#}", origin_line(&origin))?;
    }
    Ok(0)
}

/// The rows as JSON.
pub(crate) fn list(
    workspace: &Workspace,
    rows: Vec<LogRow>,
) -> Result<answers::LogAnswer, CommandError> {
    let with_state = workspace.states.points()?;
    rows.into_iter().map(|row| row_answer(workspace, &row, &with_state)).collect()
}

/// The newest point, if there is one.
pub(crate) fn newest_point(workspace: &Workspace) -> Result<Option<answers::Point>, CommandError> {
    let store = &*workspace.store;
    let newest = takeback_store::PointQuery::Newest { filter: PointFilter::WithoutSafety, most: 1 };
    let newest = store.find_points(newest)?.pop();
    newest.map(|point| point_answer(workspace, point)).transpose()
}

/// How many points there are without the limit.
fn count(workspace: &Workspace, args: &LogArgs) -> Result<usize, CommandError> {
    let store = &*workspace.store;
    let kinds = query::kinds(args);
    let Some(name) = &args.session else { return Ok(store.count_points(kinds)?) };
    let session = super::sessions::find_session(workspace, name)?;
    let points = store.points()?;
    let of_session = |point: &&takeback_store::Point| {
        kinds.includes(point) && point.session.as_ref() == Some(&session)
    };
    Ok(points.iter().filter(of_session).count())
}

/// One row, with the files that it changed.
fn print_with_files(
    workspace: &Workspace,
    row: &LogRow,
    at: usize,
    patch: bool,
    screen: &mut Screen,
) -> Result<(), CommandError> {
    let store: &dyn LogStore = &*workspace.store;
    if at > 0 {
        writeln!(screen.out)?;
    }
    // `git apply` and `patch` skip comments.
    if patch && screen.reader() == Reader::Program {
        write!(screen.out, "# ")?;
    }
    print(workspace, std::slice::from_ref(row), false, &mut screen.out)?;
    let diffs = match row {
        LogRow::Point(row) => row.diffs(),
        LogRow::Operation(row) => row.diffs(),
    };
    if diffs.is_empty() {
        return Ok(());
    }
    if patch {
        writeln!(screen.out)?;
        print_all(&diffs, Contents::of(store), screen)?;
    } else {
        print_stat(&diffs, Contents::of(store), &mut screen.out)?;
    }
    Ok(())
}

/// The names of a workspace's sessions.
fn names(workspace: &Workspace) -> Result<SessionNames, CommandError> {
    Ok(SessionNames::of(&workspace.store.sessions()?))
}
