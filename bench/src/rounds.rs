//! The cases, each in rounds: all tools in turn from the same state, another one first every time.

use std::path::Path;
use std::time::{Duration, Instant};

use serde::Serialize;
use takeback_bench::Result;
use takeback_bench::measure::{Cost, disk_usage, inside, millis, settle_disk};
use takeback_core::rewind::journal::Exactness;

use crate::corpus::Corpus;
use crate::edits::Edits;
use crate::git::ShadowGit;
use crate::takeback::{TakebackCommand, TakebackLibrary};

/// What one round of a case cost each of them.
#[derive(Debug, Clone, Copy, Serialize)]
pub(crate) struct Round {
    pub(crate) git: Cost,
    pub(crate) command: Cost,
    pub(crate) library: Cost,
}

#[derive(Debug, Serialize)]
pub(crate) struct Measured {
    pub(crate) first: Vec<Round>,
    pub(crate) unchanged: Vec<Round>,
    pub(crate) changed: Vec<Round>,
    /// Of what an agent announced and did.
    pub(crate) rewind: Vec<Round>,
    /// Of what nobody announced: everything must be looked at.
    pub(crate) rewind_exact: Vec<Round>,
    /// Recording the agent's edit: before and after it, in the library.
    pub(crate) recording: Vec<Cost>,
    /// `lstat` of every known file on two threads: less than this no scan without a daemon can take.
    pub(crate) floor_ms: Vec<f64>,
    pub(crate) git_size: Size,
    pub(crate) takeback_size: Size,
}

/// What a tool keeps on disk.
#[derive(Debug, Default, Serialize)]
pub(crate) struct Size {
    pub(crate) first: u64,
    /// By each snapshot of ten changed files.
    pub(crate) growth: Vec<u64>,
}

struct Tools<'a> {
    corpus: &'a Corpus,
    git: ShadowGit,
    command: TakebackCommand,
    library: TakebackLibrary,
}

pub(crate) fn run(corpus: &Corpus, first_rounds: usize, rounds: usize) -> Result<Measured> {
    let mut measured = Measured {
        first: Vec::new(),
        unchanged: Vec::new(),
        changed: Vec::new(),
        rewind: Vec::new(),
        rewind_exact: Vec::new(),
        recording: Vec::new(),
        floor_ms: Vec::new(),
        git_size: Size::default(),
        takeback_size: Size::default(),
    };
    // Every file comes into memory before anybody is measured.
    corpus.paths.iter().try_for_each(|path| std::fs::read(corpus.tree.join(path)).map(drop))?;
    let mut tools = Tools {
        corpus,
        git: ShadowGit::new(corpus)?,
        command: TakebackCommand::new(corpus)?,
        library: TakebackLibrary::open(corpus)?,
    };
    for round in 0..first_rounds {
        eprintln!("first snapshot, round {} of {first_rounds}", round + 1);
        measured.first.push(tools.first(round)?);
    }
    tools.check_equal_cover()?;
    measured.git_size.first = disk_usage(&tools.git.state)?;
    measured.takeback_size.first = disk_usage(&tools.command.state)?;
    for round in 0..rounds {
        eprintln!("round {} of {rounds}", round + 1);
        tools.settle()?;
        measured.floor_ms.push(floor(corpus)?);
        measured.unchanged.push(tools.snapshot(round)?);
        let edits = Edits::pick(corpus, round)?;
        let before = (disk_usage(&tools.git.state)?, disk_usage(&tools.command.state)?);
        edits.make()?;
        measured.changed.push(tools.snapshot(round)?);
        measured.git_size.growth.push(disk_usage(&tools.git.state)?.saturating_sub(before.0));
        measured
            .takeback_size
            .growth
            .push(disk_usage(&tools.command.state)?.saturating_sub(before.1));
        edits.undo()?;
        tools.settle()?;
        measured.rewind.push(tools.rewind(round, &edits, &mut measured.recording)?);
        tools.settle()?;
        measured.rewind_exact.push(tools.rewind_exact(round, &edits)?);
    }
    Ok(measured)
}

impl Tools<'_> {
    fn first(&mut self, round: usize) -> Result<Round> {
        let corpus = self.corpus;
        in_turn(
            round,
            || {
                self.git = ShadowGit::new(corpus)?;
                settle_disk()?;
                self.git.snapshot().measure()
            },
            || {
                self.command = TakebackCommand::new(corpus)?;
                settle_disk()?;
                self.command.checkpoint().measure()
            },
            || {
                TakebackLibrary::remove(corpus)?;
                settle_disk()?;
                let (library, cost) = inside(|| {
                    let mut library = TakebackLibrary::open(corpus)?;
                    library.checkpoint()?;
                    Ok(library)
                })?;
                self.library = library;
                Ok(cost)
            },
        )
    }

    fn snapshot(&mut self, round: usize) -> Result<Round> {
        in_turn(
            round,
            || self.git.snapshot().measure(),
            || self.command.checkpoint().measure(),
            || inside(|| self.library.checkpoint()).map(|(_, cost)| cost),
        )
    }

    fn rewind(&mut self, round: usize, edits: &Edits, recording: &mut Vec<Cost>) -> Result<Round> {
        in_turn(
            round,
            || git_restores(&self.git, edits),
            || {
                let (point, _) = self.command.library()?.agent_makes(edits)?;
                let cost = self.command.rewind(point, Exactness::AgentsOnly).measure()?;
                edits.check_undone()?;
                Ok(cost)
            },
            || {
                let (point, recorded) = self.library.agent_makes(edits)?;
                recording.push(recorded);
                let (receipt, cost) = self.library.rewind(point, Exactness::AgentsOnly)?;
                if !receipt.success {
                    return Err(format!("the rewind had problems: {receipt:?}").into());
                }
                edits.check_undone()?;
                Ok(cost)
            },
        )
    }

    fn rewind_exact(&mut self, round: usize, edits: &Edits) -> Result<Round> {
        const NO_POINT: &str = "a checkpoint makes a point";
        in_turn(
            round,
            || git_restores(&self.git, edits),
            || {
                let point = self.command.library()?.checkpoint()?.point.ok_or(NO_POINT)?;
                edits.make()?;
                let cost = self.command.rewind(point, Exactness::Exact).measure()?;
                edits.check_undone()?;
                Ok(cost)
            },
            || {
                let point = self.library.checkpoint()?.point.ok_or(NO_POINT)?;
                edits.make()?;
                let (_, cost) = self.library.rewind(point, Exactness::Exact)?;
                edits.check_undone()?;
                Ok(cost)
            },
        )
    }

    /// Lets all of them see the tree as it is. After a second in which nothing was written: younger
    /// files are read again by git, and for some milliseconds by Takeback.
    fn settle(&mut self) -> Result<()> {
        std::thread::sleep(Duration::from_millis(1100));
        self.git.snapshot().answer()?;
        self.command.checkpoint().answer()?;
        self.library.checkpoint()?;
        settle_disk()
    }

    /// A tool that sees fewer files is not faster.
    fn check_equal_cover(&mut self) -> Result<()> {
        let seen = usize::try_from(self.library.checkpoint()?.stats.files)?;
        let (git, files) = (self.git.files()?, self.corpus.files);
        if git != files || seen != files {
            return Err(format!("of {files} files git sees {git} and takeback {seen}").into());
        }
        Ok(())
    }
}

fn git_restores(git: &ShadowGit, edits: &Edits) -> Result<Cost> {
    edits.make()?;
    let cost = git.restore().measure()?;
    edits.check_undone()?;
    Ok(cost)
}

fn in_turn(
    round: usize,
    mut git: impl FnMut() -> Result<Cost>,
    mut command: impl FnMut() -> Result<Cost>,
    mut library: impl FnMut() -> Result<Cost>,
) -> Result<Round> {
    let mut costs = [None; 3];
    for turn in 0..3 {
        let tool = (round + turn) % 3;
        costs[tool] = Some(match tool {
            0 => git()?,
            1 => command()?,
            _ => library()?,
        });
    }
    let [Some(git), Some(command), Some(library)] = costs else {
        unreachable!("each had its turn")
    };
    Ok(Round { git, command, library })
}

fn floor(corpus: &Corpus) -> Result<f64> {
    let paths: Vec<_> = corpus.paths.iter().map(|path| corpus.tree.join(path)).collect();
    let (left, right) = paths.split_at(paths.len() / 2);
    let look = |paths: &[std::path::PathBuf]| {
        paths.iter().filter(|path| Path::symlink_metadata(path).is_ok()).count()
    };
    let began = Instant::now();
    let seen = std::thread::scope(|scope| {
        let left = scope.spawn(|| look(left));
        look(right) + left.join().unwrap_or_default()
    });
    let wall = began.elapsed();
    if seen == paths.len() { Ok(millis(wall)) } else { Err("files vanished".into()) }
}
