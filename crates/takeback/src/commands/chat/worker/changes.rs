//! What changed: since the last prompt, and by one tool call.

use std::time::Duration;

use takeback_core::look_around;
use takeback_store::{Point, PointKind, Seq};
use takeback_tui::{DiffLine, LineKind, ToolEnd};

use super::{JobResult, Worker};
use crate::commands::filediff::{Contents, FileDiff, path_name};
use crate::commands::menu::{changed_between, diff_lines, is_listed};
use crate::error::CommandError;

/// How many lines of a diff are added to the transcript.
const DIFF_MAX: usize = 400;

/// How long lines are counted for the status line.
const COUNT_TIME: Duration = Duration::from_millis(100);

impl Worker {
    pub(super) fn count(&mut self) -> Result<JobResult, CommandError> {
        let diffs = self.since_last_prompt()?.unwrap_or_default();
        let store = &*self.place.workspace.store;
        let lines = self.counts.total(&diffs, store, COUNT_TIME);
        let files = diffs.iter().filter(|diff| !diff.is_folder()).count();
        let is_own = |point: &&Point| {
            is_listed(point) && point.session.as_ref().is_none_or(|of| *of == self.session)
        };
        let all = store.points()?;
        let points = all.iter().filter(is_own).count();
        let can_rewind = all.iter().any(is_listed) || self.has_other_executions()?;
        Ok(JobResult::Counts { points, can_rewind, files, lines })
    }

    /// Whether the menu has a row even without points.
    fn has_other_executions(&self) -> Result<bool, CommandError> {
        let listed = self.place.workspace.states.executions()?.executions;
        Ok(listed.iter().any(|one| one.head.is_some() && one.id.to_string() != self.session.0))
    }

    pub(super) fn tool_end(&self, ok: bool, line: String, changes: Option<(Seq, Seq)>) -> ToolEnd {
        let mut end = ToolEnd { ok, line, insertions: 0, deletions: 0, diff: Vec::new() };
        let store = &*self.place.workspace.store;
        let Some((from, to)) = changes else { return end };
        let Ok(mut diffs) = changed_between(store, from, to) else { return end };
        diffs.retain(|diff| !diff.is_folder());
        for diff in &diffs {
            // Files that cannot be compared are not counted.
            let lines = diff.lines(store).ok().flatten().unwrap_or_default();
            end.insertions += lines.insertions;
            end.deletions += lines.deletions;
            if diffs.len() > 1 {
                let text = format!("{} {}", path_name(diff), diff.what());
                end.diff.push(DiffLine { kind: LineKind::Heading, text });
            }
            let room = DIFF_MAX.saturating_sub(end.diff.len());
            end.diff.extend(diff_lines(diff, Contents::of(store), room).unwrap_or_default());
        }
        end
    }

    /// `None`: the session has no prompt yet.
    pub(super) fn diff(&mut self) -> Result<Option<Vec<DiffLine>>, CommandError> {
        look_around(&mut self.place.workspace)?;
        let Some(diffs) = self.since_last_prompt()? else { return Ok(None) };
        let store = &*self.place.workspace.store;
        let mut lines = Vec::new();
        for diff in &diffs {
            let text = format!("{}  {}", path_name(diff), diff.what());
            lines.push(DiffLine { kind: LineKind::Heading, text });
            let room = DIFF_MAX.saturating_sub(lines.len());
            lines.extend(diff_lines(diff, Contents::of(store), room)?);
        }
        Ok(Some(lines))
    }

    /// `None`: the session has no prompt yet.
    fn since_last_prompt(&self) -> Result<Option<Vec<FileDiff>>, CommandError> {
        let store = &*self.place.workspace.store;
        let points = store.points()?;
        let is_prompt = |point: &&Point| {
            point.kind == PointKind::Prompt && point.session.as_ref() == Some(&self.session)
        };
        let Some(last) = points.iter().rev().find(is_prompt) else { return Ok(None) };
        Ok(Some(changed_between(store, last.seq, Seq(u64::MAX >> 1))?))
    }
}
