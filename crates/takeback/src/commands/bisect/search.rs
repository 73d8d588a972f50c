//! The search: which step of the log made a command fail.
//!
//! The command runs in a scratch copy of the recorded files. First the stretches between points are searched,
//! then the steps within the one that was found: neighbouring changes by one author.

use std::ffi::OsString;
use std::path::{Path, PathBuf};
use std::sync::atomic::AtomicBool;

use takeback_core::history::{Bisection, Verdict, point_of, settle};
use takeback_core::record::ScanReport;
use takeback_core::rewind::RewindError;
use takeback_core::{Workspace, look_around};
use takeback_store::{
    Author, Call, CallKind, Change, Point, PointFilter, PointId, Seq, Store, WorkPath,
};

use super::scratch::{Position, Scratch, words};
use crate::error::{CommandError, Kind};
use crate::screen::plain;

/// What [`Takeback::bisect`](crate::Takeback::bisect) searches, and the command that it runs.
#[derive(Debug, Clone)]
pub struct BisectQuery {
    /// A point at which the command succeeds; `None`: the oldest.
    pub good: Option<PointId>,
    /// A point at which it fails; `None`: the files as they are.
    pub bad: Option<PointId>,
    /// Files and folders to copy into the scratch folder first: those that are not recorded, such as
    /// `node_modules`.
    pub with: Vec<PathBuf>,
    /// The program and its arguments. Exit code 0 is good, 125 skips, any other is bad.
    pub command: Vec<OsString>,
}

impl BisectQuery {
    /// A search through the whole log.
    pub fn of(command: impl IntoIterator<Item = impl Into<OsString>>) -> Self {
        let command = command.into_iter().map(Into::into).collect();
        Self { good: None, bad: None, with: Vec::new(), command }
    }
}

/// The step that made the command fail.
#[derive(Debug, Clone)]
pub struct BisectResult {
    /// The steps of which one made the command fail, oldest first: one, or several where those between could
    /// not be tested.
    pub steps: Vec<BisectStep>,
    /// The last point at which the command was good.
    pub good: Option<Point>,
    /// The point of the newest step's prompt; `None`: it belongs to no prompt.
    pub turn: Option<Point>,
    /// The newest step's tool call; `None`: no agent made it.
    pub call: Option<Call>,
    /// How often the command ran.
    pub runs: usize,
    /// How often it could not be tested.
    pub skipped: usize,
}

impl BisectResult {
    /// The newest of the steps: without it the command was good or could not be tested.
    #[must_use]
    pub fn newest(&self) -> &BisectStep {
        self.steps.last().expect("something changed between two positions")
    }

    pub(super) fn shell_command(&self) -> Option<&str> {
        match &self.call.as_ref()?.kind {
            CallKind::Shell { command, .. } => command.as_deref(),
            CallKind::Edit { .. } => None,
        }
    }
}

/// Neighbouring changes by one author.
#[derive(Debug, Clone)]
pub struct BisectStep {
    /// The changes, oldest first; at least one.
    pub changes: Vec<Change>,
}

impl BisectStep {
    /// The position of the log after it.
    fn end(&self) -> Seq {
        self.changes.last().expect("a step has a change").seq
    }

    /// The paths that it changed, sorted.
    #[must_use]
    pub fn files(&self) -> Vec<&WorkPath> {
        let mut paths: Vec<&WorkPath> = self.changes.iter().map(|change| &change.path).collect();
        paths.sort();
        paths.dedup();
        paths
    }
}

/// What to search, and how the command runs.
pub(crate) struct BisectRequest<'a> {
    pub(crate) query: &'a BisectQuery,
    /// Where the user is; the command runs in the same folder of the copy.
    pub(crate) folder: &'a Path,
    pub(crate) output: CommandOutput,
    pub(crate) interrupted: &'a AtomicBool,
}

/// What happens to what the command prints.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum CommandOutput {
    Shown,
    Hidden,
}

/// Searches the log. `report`: called with a line of progress for each run.
pub(crate) fn search(
    workspace: &mut Workspace,
    request: &BisectRequest<'_>,
    report: &mut dyn FnMut(&str),
) -> Result<BisectResult, CommandError> {
    if request.query.command.is_empty() {
        return Err(CommandError::new(Kind::Usage, "the command is empty"));
    }
    let ScanReport { skipped: out, .. } = look_around(workspace)?;
    let store = &*workspace.store;
    let points = store.points()?;
    let (good, bad) = ends(store, &points, request.query)?;
    let mut positions = vec![Position { seq: good.seq, point: Some(&good), is_now: false }];
    for point in points.iter().filter(|point| PointFilter::WithoutSafety.includes(point)) {
        if point.seq > good.seq && point.seq < bad.seq {
            positions.push(Position { seq: point.seq, point: Some(point), is_now: false });
        }
    }
    positions.dedup_by_key(|position| position.seq);
    positions.push(bad);
    let mut scratch = Scratch::make(workspace, request, &out, report)?;
    let first = positions.len() - 1;
    let now = "at the newest position";
    match scratch.test(store, &positions[first], None)? {
        Verdict::Bad => {}
        Verdict::Good => return Err(nothing_to_find(request, &format!("succeeds {now}"))),
        Verdict::Skip => return Err(nothing_to_find(request, &format!("cannot be tested {now}"))),
    }
    let mut bisection = Bisection::new(positions.len());
    while let Some(at) = bisection.next() {
        let verdict = scratch.test(store, &positions[at], Some(bisection.tests_left()))?;
        bisection.note(at, verdict);
    }
    let range = bisection.found();
    if range.start == 0 && scratch.test(store, &positions[0], None)? != Verdict::Good {
        let when = positions[0].title();
        return Err(nothing_to_find(request, &format!("does not succeed {when} either")));
    }
    let (from, to) = (positions[range.start].seq, positions[range.end].seq);
    let good = positions[range.start].point.cloned();
    let mut steps = steps(store, from, to)?;
    // The ends are known already, so one step needs no test.
    let mut bisection = Bisection::new(steps.len() + 1);
    while let Some(at) = bisection.next() {
        let position = Position { seq: steps[at - 1].end(), point: None, is_now: false };
        let verdict = scratch.test(store, &position, Some(bisection.tests_left()))?;
        bisection.note(at, verdict);
    }
    let range = bisection.found();
    let steps: Vec<BisectStep> = steps.drain(range).collect();
    let (runs, skipped) = (scratch.runs, scratch.skipped);
    let mut result = BisectResult { steps, good, turn: None, call: None, runs, skipped };
    let change = &result.newest().changes[0];
    if let Author::Agent { session, turn, call, .. } = &change.author {
        let call = store.call(session, call)?;
        let turn = match store.turn(*turn)? {
            Some(record) => point_of(store, &record, change)?,
            None => None,
        };
        (result.turn, result.call) = (turn, call);
    }
    Ok(result)
}

/// The positions between which the command begins to fail.
fn ends<'a>(
    store: &dyn Store,
    points: &'a [Point],
    query: &BisectQuery,
) -> Result<(Point, Position<'a>), CommandError> {
    let point = |id: PointId| {
        let found = points.iter().find(|point| point.id == id);
        found.ok_or_else(|| CommandError::from(RewindError::NoPoint(id)))
    };
    let good = match query.good {
        Some(id) => point(id)?.clone(),
        None => {
            let oldest = points.iter().find(|point| PointFilter::WithoutSafety.includes(point));
            oldest.cloned().ok_or_else(|| {
                CommandError::new(Kind::Error, "there is no point yet")
                    .hint("`takeback checkpoint` makes one; every prompt does, too.")
            })?
        }
    };
    let bad = match query.bad {
        Some(id) => {
            let point = point(id)?;
            Position { seq: point.seq, point: Some(point), is_now: false }
        }
        None => Position { seq: store.head()?.seq, point: None, is_now: true },
    };
    if good.seq >= bad.seq {
        return Err(CommandError::new(Kind::Usage, "nothing changed between the two points")
            .hint("--good must name an older point than --bad."));
    }
    Ok((good, bad))
}

fn nothing_to_find(request: &BisectRequest<'_>, why: &str) -> CommandError {
    let command = plain(&words(&request.query.command));
    CommandError::new(Kind::Error, format!("`{command}` {why}: there is nothing to find")).hint(
        "It runs in a copy of the recorded files, without build output and .git. -v shows what it prints.",
    )
}

/// Groups the changes of a stretch of the log by author.
fn steps(store: &dyn Store, from: Seq, to: Seq) -> Result<Vec<BisectStep>, CommandError> {
    let mut changes = store.changes_between(from, to)?;
    settle(store, &mut changes)?;
    let same = |a: &Change, b: &Change| match (&a.author, &b.author) {
        (
            Author::Agent { session, call, .. },
            Author::Agent { session: other, call: other_call, .. },
        ) => (session, call) == (other, other_call),
        (a, b) => a == b,
    };
    let steps = changes.chunk_by(same).map(|changes| BisectStep { changes: changes.to_vec() });
    Ok(steps.collect())
}
