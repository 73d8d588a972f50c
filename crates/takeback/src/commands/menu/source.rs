//! What the menu of `rewind` shows: previews with the options of the command, and answers about files.

use takeback_core::Workspace;
use takeback_core::rewind::preview;
use takeback_store::Point;
use takeback_tui::{MenuAnswer, MenuQuestion, Preview, PreviewRequest, RowId};

use super::{answer, covered, execution_preview, preview_files};
use crate::args::{Options, RewindArgs};
use crate::commands::rewind::request;
use crate::error::{CommandError, Kind};

pub(crate) struct MenuSource<'a> {
    pub(crate) workspace: &'a mut Workspace,
    pub(crate) points: &'a [Point],
    pub(crate) options: &'a Options,
    pub(crate) args: &'a RewindArgs,
}

impl MenuSource<'_> {
    /// The point with this id.
    pub(crate) fn point(&self, id: &str) -> Result<&Point, CommandError> {
        let point = self.points.iter().find(|point| point.id.to_string() == id);
        point.ok_or_else(|| CommandError::new(Kind::Error, "the point is gone"))
    }

    pub(crate) fn preview(&mut self, wanted: &PreviewRequest) -> Result<Preview, CommandError> {
        let id = match &wanted.row {
            RowId::Point(id) => id,
            RowId::Execution(name) => return execution_preview(self.workspace, name),
        };
        let point = self.point(id)?.clone();
        let request = request(self.workspace, self.options, self.args, &point)?;
        let request = covered(self.workspace, request, &point, wanted.coverage)?.request;
        let shown = preview(self.workspace, &request)?;
        preview_files(self.workspace, &shown)
    }

    pub(crate) fn answer(&mut self, question: &MenuQuestion) -> Result<MenuAnswer, CommandError> {
        answer(self.workspace, self.options, question)
    }
}
