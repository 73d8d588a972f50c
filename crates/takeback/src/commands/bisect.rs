//! `bisect -- COMMAND`: the prompt, and then the tool call, after which a command fails.
//!
//! The command runs in a scratch copy of the recorded files. First the stretches between points are searched,
//! then the steps within the one that was found: neighbouring changes by one author.

mod scratch;

use std::io::Write as _;
use std::path::Path;
use std::sync::Arc;
use std::sync::atomic::AtomicBool;

use signal_hook::consts::{SIGHUP, SIGINT, SIGTERM};
use takeback_core::history::{Bisection, Verdict, point_of, settle};
use takeback_core::record::ScanReport;
use takeback_core::{Workspace, look_around};
use takeback_store::{
    Author, CallKind, Change, Point, PointFilter, Seq, Store as LogStore, WorkPath,
};

use self::scratch::{Position, Scratch, words};
use super::log::described;
use super::show;
use crate::answers;
use crate::args::{BisectArgs, Options};
use crate::error::{CommandError, Kind};
use crate::place::{self, Store};
use crate::point::find;
use crate::screen::{HEADING, HINT, NAME, Screen, name, plain};
use crate::session_name::SessionNames;
use crate::time::{ago, now};

pub(crate) fn bisect(
    options: &Options,
    args: &BisectArgs,
    screen: &mut Screen,
) -> Result<u8, CommandError> {
    let mut place = place::open_recovered(options, Store::MustExist)?;
    let interrupted = Arc::new(AtomicBool::new(false));
    for signal in [SIGINT, SIGTERM, SIGHUP] {
        signal_hook::flag::register(signal, interrupted.clone())?;
    }
    let folder = place::start(options)?;
    let is_silent = screen.json || screen.quiet;
    let mut report = |text: &str| {
        if !is_silent {
            // Progress is not the answer.
            drop(writeln!(anstream::stderr().lock(), "{text}"));
        }
    };
    let output = if screen.verbose { Output::Shown } else { Output::Hidden };
    let request = BisectRequest { args, folder: &folder, output, interrupted: &interrupted };
    let found = search(&mut place.workspace, &request, &mut report)?;
    if screen.json {
        screen.json(&answer(&*place.workspace.store, &found)?)?;
    } else {
        print(&*place.workspace.store, &found, screen)?;
    }
    Ok(if found.steps.len() == 1 { 0 } else { Kind::Partly as u8 })
}

/// What to search, and how the command runs.
pub(crate) struct BisectRequest<'a> {
    pub(crate) args: &'a BisectArgs,
    /// Where the user is; the command runs in the same folder of the copy.
    pub(crate) folder: &'a Path,
    pub(crate) output: Output,
    pub(crate) interrupted: &'a AtomicBool,
}

/// What happens to what the command prints.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Output {
    Shown,
    Hidden,
}

/// The steps of which one made the command fail; several only where some could not be tested.
pub(crate) struct BisectResult {
    pub(crate) steps: Vec<LogStep>,
    /// The last point at which the command was good.
    good: Option<Point>,
    runs: usize,
    skipped: usize,
}

/// Neighbouring changes by one author.
pub(crate) struct LogStep {
    /// The position after it.
    end: Seq,
    changes: Vec<Change>,
}

/// Searches the log. `report`: called with a line of progress for each run.
pub(crate) fn search(
    workspace: &mut Workspace,
    request: &BisectRequest<'_>,
    report: &mut dyn FnMut(&str),
) -> Result<BisectResult, CommandError> {
    let ScanReport { skipped: out, .. } = look_around(workspace)?;
    let store = &*workspace.store;
    let points = store.points()?;
    let (good, bad) = ends(store, &points, request.args)?;
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
        let position = Position { seq: steps[at - 1].end, point: None, is_now: false };
        let verdict = scratch.test(store, &position, Some(bisection.tests_left()))?;
        bisection.note(at, verdict);
    }
    let range = bisection.found();
    let steps = steps.drain(range).collect();
    Ok(BisectResult { steps, good, runs: scratch.runs, skipped: scratch.skipped })
}

/// The positions between which the command begins to fail.
fn ends<'a>(
    store: &dyn LogStore,
    points: &'a [Point],
    args: &BisectArgs,
) -> Result<(Point, Position<'a>), CommandError> {
    let good = match &args.good {
        Some(name) => find(points, name)?.clone(),
        None => {
            let oldest = points.iter().find(|point| PointFilter::WithoutSafety.includes(point));
            oldest.cloned().ok_or_else(|| {
                CommandError::new(Kind::Error, "there is no point yet")
                    .hint("`takeback checkpoint` makes one; every prompt does, too.")
            })?
        }
    };
    let bad = match &args.bad {
        Some(name) => {
            let point = find(points, name)?;
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
    let command = plain(&words(&request.args.command));
    CommandError::new(Kind::Error, format!("`{command}` {why}: there is nothing to find")).hint(
        "It runs in a copy of the recorded files, without build output and .git. -v shows what it prints.",
    )
}

/// Groups the changes of a stretch of the log by author.
fn steps(store: &dyn LogStore, from: Seq, to: Seq) -> Result<Vec<LogStep>, CommandError> {
    let mut changes = store.changes_between(from, to)?;
    settle(store, &mut changes)?;
    let same = |a: &Change, b: &Change| match (&a.author, &b.author) {
        (
            Author::Agent { session, call, .. },
            Author::Agent { session: other, call: other_call, .. },
        ) => (session, call) == (other, other_call),
        (a, b) => a == b,
    };
    let steps = changes.chunk_by(same).map(|changes| {
        let end = changes.last().map_or(from, |change| change.seq);
        LogStep { end, changes: changes.to_vec() }
    });
    Ok(steps.collect())
}

/// The step, if there is only one, and the point of its turn.
struct Culprit<'a> {
    step: &'a LogStep,
    turn: Option<Point>,
    call: Option<takeback_store::Call>,
}

impl<'a> Culprit<'a> {
    fn of(store: &dyn LogStore, result: &'a BisectResult) -> Result<Self, CommandError> {
        // The newest one: without it the command was good or could not be tested.
        let step = result.steps.last().expect("something changed between two positions");
        let change = &step.changes[0];
        let (mut turn, mut call) = (None, None);
        if let Author::Agent { session, turn: id, call: call_id, .. } = &change.author {
            call = store.call(session, call_id)?;
            turn = match store.turn(*id)? {
                Some(record) => point_of(store, &record, change)?,
                None => None,
            };
        }
        Ok(Self { step, turn, call })
    }

    fn command(&self) -> Option<&str> {
        match &self.call.as_ref()?.kind {
            CallKind::Shell { command, .. } => command.as_deref(),
            CallKind::Edit { .. } => None,
        }
    }

    fn files(&self) -> Vec<&WorkPath> {
        let mut paths: Vec<&WorkPath> =
            self.step.changes.iter().map(|change| &change.path).collect();
        paths.sort();
        paths.dedup();
        paths
    }
}

pub(crate) fn answer(
    store: &dyn LogStore,
    result: &BisectResult,
) -> Result<answers::BisectAnswer, CommandError> {
    let culprit = Culprit::of(store, result)?;
    Ok(answers::BisectAnswer {
        turn: culprit.turn.as_ref().map(|point| answers::Id::new(point.id)),
        call: culprit.call.as_ref().map(|call| call.id.0.clone()),
        prompt: culprit.turn.as_ref().map(|point| point.description.clone()),
        author: answers::author(&culprit.step.changes[0].author),
        command: culprit.command().map(str::to_owned),
        good: result.good.as_ref().map(|point| answers::Id::new(point.id)),
        files: culprit.files().into_iter().map(answers::path).collect(),
        candidates: result.steps.len(),
        runs: result.runs,
        skipped: result.skipped,
    })
}

fn print(
    store: &dyn LogStore,
    result: &BisectResult,
    screen: &mut Screen,
) -> Result<(), CommandError> {
    let culprit = Culprit::of(store, result)?;
    let names = SessionNames::of(&store.sessions()?);
    let out = &mut screen.out;
    match result.steps.len() {
        1 => writeln!(out, "{HEADING}The first failure came with this step{HEADING:#}")?,
        steps => writeln!(
            out,
            "{HEADING}The first failure came with one of {steps} steps{HEADING:#}  {HINT}the others could not \
             be tested; the newest:{HINT:#}"
        )?,
    }
    let who = show::author(&culprit.step.changes[0], &names);
    show::detail(out, "by", show::PLAIN, &who)?;
    if let Some(point) = &culprit.turn {
        let title = plain(&described(point));
        let id = &point.id.to_string()[..8];
        show::detail(out, "prompt", show::PLAIN, &format!("{id} {title}"))?;
        show::detail(out, "when", show::PLAIN, &ago(point.created_at, now()))?;
    }
    if let Some(command) = culprit.command() {
        for (at, line) in command.lines().enumerate() {
            show::detail(out, if at == 0 { "command" } else { "" }, show::PLAIN, &plain(line))?;
        }
    }
    let files = culprit.files();
    for (at, path) in files.iter().take(10).enumerate() {
        show::detail(out, if at == 0 { "files" } else { "" }, show::PLAIN, &name(path))?;
    }
    if files.len() > 10 {
        show::detail(out, "", HINT, &format!("… and {} more", files.len() - 10))?;
    }
    writeln!(out)?;
    match (&culprit.turn, &result.good) {
        (Some(point), _) => {
            let id = &point.id.to_string()[..8];
            writeln!(
                out,
                "{NAME}takeback diff {id}!{NAME:#}    {HINT}what the prompt changed{HINT:#}"
            )?;
            writeln!(
                out,
                "{NAME}takeback rewind {id}{NAME:#}   {HINT}take it back, with all that its session did later{HINT:#}"
            )?;
        }
        (None, Some(point)) => {
            let id = &point.id.to_string()[..8];
            writeln!(
                out,
                "{NAME}takeback diff {id}{NAME:#}    {HINT}what changed since it was good{HINT:#}"
            )?;
        }
        (None, None) => {}
    }
    Ok(())
}
