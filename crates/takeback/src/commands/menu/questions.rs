//! Answers the menu's questions, with the printing of the commands.

use std::io::Write as _;

use takeback_core::{Workspace, look_around, look_around_if_changed};
use takeback_store::{Point, PointKind, Seq, WorkPath};
use takeback_tui::{MenuAnswer, MenuQuestion, RowId};

use super::execution_request;
use crate::args::{LogArgs, Options};
use crate::commands::{blame, cat, history, stats, why};
use crate::error::{CommandError, Kind};
use crate::screen::{CapturedText, Screen, name, plain};
use crate::session_name::SessionNames;

/// The answer as text. The file is named as the preview shows it, which may differ from its name on disk.
pub(crate) fn answer(
    workspace: &mut Workspace,
    options: &Options,
    question: &MenuQuestion,
) -> Result<MenuAnswer, CommandError> {
    let text = CapturedText::default();
    let mut screen = Screen::captured(options, text.clone());
    let mut file_lines = 0;
    match question {
        MenuQuestion::Blame { path } => {
            let path = path_of(workspace, path)?;
            let blamed = blame::lines_at(workspace, path, None)?;
            let names = SessionNames::of(&workspace.store.sessions()?);
            blame::print(&blamed.lines, &names, &mut screen)?;
            for problem in &blamed.problems {
                writeln!(screen.out, "{}", plain(problem))?;
            }
            file_lines = blamed.lines.len();
        }
        MenuQuestion::History { path } => {
            let path = path_of(workspace, path)?;
            look_around_if_changed(workspace, &path)?;
            let rows = history::rows_of(workspace, &path, LogArgs::LIMIT)?;
            history::print(&rows, LogArgs::LIMIT, &mut screen)?;
        }
        MenuQuestion::Why { path, line } => {
            let path = path_of(workspace, path)?;
            let found = why::line_of(workspace, path, *line)?;
            why::print(&*workspace.store, &found, &mut screen)?;
            for problem in &found.blamed.problems {
                writeln!(screen.out, "\n{}", plain(problem))?;
            }
        }
        MenuQuestion::Cat { row, path } => {
            let (point, path) = (point_of_row(workspace, row)?, path_of(workspace, path)?);
            return Ok(MenuAnswer { text: contents(workspace, &point, &path)?, file_lines: 0 });
        }
        MenuQuestion::Stats { row } => {
            let point = point_of_row(workspace, row)?;
            look_around(workspace)?;
            let counted = stats::count_between(workspace, Some(point.seq), None, None)?;
            stats::print(&counted, &workspace.store.sessions()?, &mut screen)?;
        }
        MenuQuestion::Bisect { row } => {
            let point = point_of_row(workspace, row)?;
            return Ok(MenuAnswer { text: how_to_bisect(&point), file_lines: 0 });
        }
    }
    screen.out.flush()?;
    let text = text.text().trim_end().lines().map(str::to_owned).collect();
    Ok(MenuAnswer { text, file_lines })
}

/// Bytes of a file on the page; `takeback cat` prints all of it.
const CONTENTS_MAX: usize = 1 << 20;

/// The lines of a file at a point.
fn contents(
    workspace: &Workspace,
    point: &Point,
    path: &WorkPath,
) -> Result<Vec<String>, CommandError> {
    let bytes = cat::contents_at(workspace, point, path)?;
    let part = cat::FilePart { most: Some(CONTENTS_MAX), ..cat::FilePart::default() };
    let part = cat::part_answer(point, path, &bytes, &part)?;
    let whole = format!("takeback cat {}:{}", short_id(point), name(path));
    let Some(text) = part.text.filter(|text| !text.contains('\0')) else {
        return Ok(vec![format!(
            "It is not text: {} bytes. `{whole} > FILE` saves it.",
            part.size
        )]);
    };
    let mut lines: Vec<String> = text.lines().map(str::to_owned).collect();
    if lines.is_empty() {
        lines.push("The file is empty.".to_owned());
    }
    if part.cut {
        lines.push(format!("… only the beginning is here. `{whole}` prints all of it."));
    }
    Ok(lines)
}

fn how_to_bisect(point: &Point) -> Vec<String> {
    let id = short_id(point);
    let files = match point.kind {
        PointKind::Prompt => "the files before this prompt",
        _ => "the files of this point",
    };
    [
        "Finds the prompt, and then the tool call, after which a command fails.",
        "The command runs in a scratch copy; your files are not changed.",
        "",
        "Run in a shell, with your test as COMMAND:",
        "",
        &format!("  takeback bisect --good {id} -- COMMAND"),
        "",
        &format!("COMMAND must succeed with {files}, and fail now."),
        "For example:",
        "",
        &format!("  takeback bisect --good {id} -- npm test"),
        &format!("  takeback bisect --good {id} -- sh -c 'cargo build && ./check'"),
    ]
    .map(str::to_owned)
    .to_vec()
}

fn short_id(point: &Point) -> String {
    point.id.to_string()[..8].to_owned()
}

/// The point of a row; of an execution, the one that its last success goes back to.
fn point_of_row(workspace: &Workspace, row: &RowId) -> Result<Point, CommandError> {
    let points = workspace.store.points()?;
    let id = match row {
        RowId::Point(id) => id.clone(),
        RowId::Execution(name) => {
            let (record, _) = execution_request(workspace, name)?;
            let point = record.point.ok_or_else(|| {
                CommandError::new(Kind::Error, format!("{name} was saved without files"))
            })?;
            point.to_string()
        }
    };
    let found = points.into_iter().find(|point| point.id.to_string() == id);
    found.ok_or_else(|| CommandError::new(Kind::Error, "the point is gone"))
}

/// The path that is shown by this name.
fn path_of(workspace: &Workspace, shown: &str) -> Result<WorkPath, CommandError> {
    let store = &*workspace.store;
    if let Ok(path) = WorkPath::new(shown)
        && name(&path) == shown
        && !store.changes_of(&path)?.is_empty()
    {
        return Ok(path);
    }
    let paths = store.changes_after(Seq(0))?.into_iter().map(|change| change.path);
    paths
        .into_iter()
        .find(|path| name(path) == shown)
        .ok_or_else(|| CommandError::new(Kind::Error, format!("{shown} was never recorded")))
}
