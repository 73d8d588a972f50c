//! Answers the menu's questions about a file, with the printing of `blame`, `history` and `why`.

use takeback_core::{Workspace, look_around_if_changed};
use takeback_store::{Seq, WorkPath};
use takeback_tui::{MenuAnswer, MenuQuestion};

use crate::args::{LogArgs, Options};
use crate::commands::{blame, history, why};
use crate::error::{CommandError, Kind};
use crate::screen::{CapturedText, Screen, name};
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
        }
    }
    screen.out.flush()?;
    let text = text.text().trim_end().lines().map(str::to_owned).collect();
    Ok(MenuAnswer { text, file_lines })
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
