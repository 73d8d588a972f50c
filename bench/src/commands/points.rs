//! What many points cost: a workspace with many points, next to one with 100, over the same paths.
//!
//! Every point is a prompt after which an agent makes three small edits. Before each rewind,
//! everything is restored to what it was after the last point.

use std::fs;
use std::path::{Path, PathBuf};

use takeback_core::rewind::{RewindRequest, RewindScope, Target, rewind};
use takeback_core::{CallTargets, Workspace, look_around};
use takeback_store::{PointId, SessionId};

use crate::Result;
use crate::driver::library::{Agent, only_store, open_workspace, random_id};
use crate::driver::takeback::{Takeback, build};
use crate::measure::{flush_disk, text_of, timed};
use crate::report::{Goal, Row, comparison};
use crate::results::Results;
use crate::rounds::Rounds;
use crate::scratch::{Scratch, make_empty};

#[derive(clap::Args)]
pub(crate) struct Args {
    #[arg(long, default_value_t = 9)]
    rounds: usize,
    /// Points in the larger of the two workspaces
    #[arg(long, default_value_t = 10_000)]
    points: usize,
}

const FEW: usize = 100;
const FILES: usize = 50;
const EDITS: usize = 3;
/// The default number of points that retention keeps of a session.
const POINTS_PER_SESSION: usize = 50;
const GOAL: Goal = Goal::AtMost(2.0);

type Measure = (&'static str, fn(&History) -> Result<f64>, Option<Goal>);

const MEASURES: [Measure; 8] = [
    ("`takeback log`", |history| history.command(&["log"]), Some(GOAL)),
    ("`takeback log --json -n 1`", |history| history.command(&["log", "--json", "-n", "1"]), None),
    ("`takeback show @`", |history| history.command(&["show", "@"]), Some(GOAL)),
    ("a prompt, as an event", History::prompt, None),
    ("an edit, as two events", History::edit, None),
    ("rewind to the oldest, library", History::rewind, Some(GOAL)),
    ("rewind to the oldest, command", |history| history.rewind_command("-y"), Some(GOAL)),
    ("the same with `--dry-run`", |history| history.rewind_command("--dry-run"), None),
];

pub(crate) fn run(args: &Args, results: &Results) -> Result<()> {
    let programs = Scratch::new()?;
    let program = build(programs.path())?;
    let histories = [History::new(&program, FEW)?, History::new(&program, args.points)?];
    let rounds = Rounds { count: args.rounds, warm_up: 0, group: 2 };
    let times =
        rounds.run(2 * MEASURES.len(), |case, _| MEASURES[case / 2].1(&histories[case % 2]))?;
    let rows: Vec<Row> = MEASURES
        .iter()
        .zip(times.chunks(2))
        .map(|((name, _, goal), times)| Row {
            goal: *goal,
            ..Row::new(*name, &times[1], "100 points", &times[0])
        })
        .collect();
    let title = format!("{} points, {} rounds", args.points, args.rounds);
    println!("{}", comparison(&title, &rows));
    results.finish("points", rows).map(drop)
}

/// A workspace with many points.
struct History {
    scratch: Scratch,
    takeback: Takeback,
    oldest: PointId,
    sessions: usize,
}

impl History {
    fn new(program: &Path, points: usize) -> Result<Self> {
        let scratch = Scratch::new()?;
        let takeback = Takeback::in_scratch(program, &scratch);
        let mut history = Self { scratch, takeback, oldest: PointId(0), sessions: 0 };
        fs::create_dir(history.scratch.project().join("src"))?;
        for n in 0..FILES {
            fs::write(history.file(n), format!("file {n}\n").repeat(100))?;
        }
        history.command(&["checkpoint"])?;
        let mut workspace = history.open()?;
        for point in 0..points {
            if point.is_multiple_of(POINTS_PER_SESSION) {
                history.sessions += 1;
            }
            let (message, text) = (format!("message-{point}"), format!("Do task number {point}"));
            let made = Agent { session: history.session(), ..Agent::of(&mut workspace) }
                .prompt(Some(message), &text)?;
            if point == 0 {
                history.oldest = made;
            }
            let files: Vec<usize> = (0..EDITS).map(|at| (point * EDITS + at) % FILES).collect();
            history.edit_files(&mut workspace, &format!("call-{point}"), &files)?;
        }
        Agent { session: history.session(), ..Agent::of(&mut workspace) }.end_turn()?;
        drop(workspace);
        copy_parts(history.scratch.path(), &history.saved())?;
        Ok(history)
    }

    fn command(&self, words: &[&str]) -> Result<f64> {
        Ok(self.takeback.run(words).time("")?.wall_ms)
    }

    fn prompt(&self) -> Result<f64> {
        let mut workspace = self.open()?;
        let mut agent = Agent { session: self.session(), ..Agent::of(&mut workspace) };
        Ok(timed(|| agent.prompt(Some(random_id()), "And now?"))?.1)
    }

    fn edit(&self) -> Result<f64> {
        let mut workspace = self.open()?;
        Ok(timed(|| self.edit_files(&mut workspace, &random_id(), &[7]))?.1)
    }

    /// Of every session, as a user who wants the files of that day.
    fn rewind(&self) -> Result<f64> {
        self.restore_saved()?;
        let mut workspace = self.open()?;
        let mut request = RewindRequest::new(Target::Point(self.oldest));
        request.scope = Some(RewindScope::AllAgents);
        let (receipt, ms) = timed(|| Ok(rewind(&mut workspace, &request, None)?))?;
        if receipt.restored_files.len() != FILES || !receipt.success {
            return Err(format!("{} files were restored", receipt.restored_files.len()).into());
        }
        Ok(ms)
    }

    fn rewind_command(&self, option: &str) -> Result<f64> {
        self.restore_saved()?;
        self.command(&["rewind", &self.oldest.to_string(), "--all-agents", option])
    }

    /// The project and its store as they were after the last point.
    fn restore_saved(&self) -> Result<()> {
        copy_parts(&self.saved(), self.scratch.path())?;
        look_around(&mut self.open()?)?;
        flush_disk()
    }

    /// An agent changes the first line of these files in one call.
    fn edit_files(&self, workspace: &mut Workspace, call: &str, files: &[usize]) -> Result<()> {
        let paths: Vec<PathBuf> = files.iter().map(|n| self.file(*n)).collect();
        let mut agent = Agent { session: self.session(), ..Agent::of(workspace) };
        let write = || {
            for path in &paths {
                let text = fs::read_to_string(path)?;
                let rest = text.split_once('\n').map_or("", |(_, rest)| rest);
                fs::write(path, format!("{call} was here\n{rest}"))?;
            }
            Ok(())
        };
        agent.call(call, CallTargets::Paths(paths.clone()), write).map(drop)
    }

    fn session(&self) -> SessionId {
        SessionId(format!("session-{:04}", self.sessions))
    }

    fn file(&self, n: usize) -> PathBuf {
        self.scratch.project().join(format!("src/{n}.txt"))
    }

    fn saved(&self) -> PathBuf {
        self.scratch.path().join("saved")
    }

    fn open(&self) -> Result<Workspace> {
        open_workspace(&self.scratch.project(), &only_store(&self.scratch.home())?)
    }
}

/// Replaces the project and its store by copies of those in `from`.
fn copy_parts(from: &Path, to: &Path) -> Result<()> {
    for part in ["home", "project"] {
        make_empty(&to.join(part))?;
        let from = format!("{}/.", from.join(part).display());
        text_of("cp", &["-a", "--", &from, &to.join(part).to_string_lossy()])?;
    }
    Ok(())
}
