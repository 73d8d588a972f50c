//! The cases, in rounds: all tools in turn from the same state.

use std::collections::BTreeMap;
use std::time::Duration;

use clap::ValueEnum;
use serde::{Deserialize, Serialize};

use super::digest::{Depth, digest};
use crate::Result;
use crate::corpus::{Corpus, TreeSize};
use crate::driver::{Driver, EditSource, Tool};
use crate::edits::Edits;
use crate::floor::Floor;
use crate::measure::{Cost, flush_disk};
use crate::rounds::{in_turn, median};

#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Serialize, Deserialize, ValueEnum)]
#[serde(rename_all = "snake_case")]
pub(super) enum Case {
    /// First point
    First,
    /// Point of an unchanged tree
    Unchanged,
    /// Point with ten files changed, two created, one deleted
    Few,
    /// Point with a thousand files changed
    Many,
    /// Rewind of the few edits
    RewindFew,
    /// Rewind of edits that were not announced: the whole tree must be scanned
    RewindFewExact,
    /// Rewind of a thousand edits
    RewindMany,
}

impl Case {
    pub(super) const ALL: [Self; 7] = [
        Self::First,
        Self::Unchanged,
        Self::Few,
        Self::Many,
        Self::RewindFew,
        Self::RewindFewExact,
        Self::RewindMany,
    ];

    pub(super) fn title(self) -> &'static str {
        match self {
            Self::First => "first point",
            Self::Unchanged => "nothing changed",
            Self::Few => "10 changed, 2 created, 1 deleted",
            Self::Many => "1,000 changed",
            Self::RewindFew => "rewind of those 13",
            Self::RewindFewExact => "the same, not announced (`--exact`)",
            Self::RewindMany => "rewind of 1,000",
        }
    }
}

/// What one round of a case cost each tool.
pub(super) type Round = BTreeMap<Tool, Cost>;

#[derive(Debug, Serialize, Deserialize)]
pub(super) struct TreeCosts {
    pub(super) tree: TreeSize,
    pub(super) files: usize,
    pub(super) folders: usize,
    pub(super) bytes: u64,
    pub(super) cases: BTreeMap<Case, Vec<Round>>,
    /// Bytes on disk after the first point.
    pub(super) sizes: BTreeMap<Tool, u64>,
}

impl TreeCosts {
    pub(super) fn median(&self, case: Case, tool: Tool, of: fn(&Cost) -> f64) -> Option<f64> {
        let rounds = self.cases.get(&case)?.iter().filter_map(|round| round.get(&tool));
        Some(median(rounds.map(of))).filter(|median| !median.is_nan())
    }

    /// The largest peak of all rounds, in MB.
    pub(super) fn peak(&self, case: Case, tool: Tool) -> Option<f64> {
        let rounds = self.cases.get(&case).into_iter().flatten();
        rounds.filter_map(|round| round.get(&tool)?.peak_mb).reduce(f64::max)
    }
}

/// Rounds of the first point, and of every other case.
#[derive(Debug, Clone, Copy)]
pub(super) struct RoundCounts {
    pub(super) first: usize,
    pub(super) other: usize,
}

/// Measurements per round: the shortest case varies most.
const UNCHANGED: usize = 3;

struct Bench<'a> {
    corpus: &'a Corpus,
    drivers: Vec<Box<dyn Driver>>,
    costs: TreeCosts,
    shape: blake3::Hash,
}

/// Takes `corpus` through `cases`. Wrong results are errors: a tool that misses files or edits, a tree
/// that differs after a rewind.
pub(super) fn run(
    corpus: &Corpus,
    drivers: Vec<Box<dyn Driver>>,
    cases: &[Case],
    repeats: RoundCounts,
) -> Result<TreeCosts> {
    // Also reads every file into memory before the first measurement.
    let contents = digest(&corpus.tree, Depth::Contents)?;
    let costs = TreeCosts {
        tree: corpus.size,
        files: corpus.paths.len(),
        folders: corpus.folders,
        bytes: corpus.bytes,
        cases: BTreeMap::new(),
        sizes: BTreeMap::new(),
    };
    let shape = digest(&corpus.tree, Depth::Shape)?;
    let mut bench = Bench { corpus, drivers, costs, shape };
    bench.first_points(repeats.first)?;
    if !cases.contains(&Case::First) {
        bench.costs.cases.clear();
    }
    // Only the first point of restic is measured.
    bench.drivers.retain(|driver| driver.tool() != Tool::Restic);
    let floor = Floor::new(corpus)?;
    for round in 0..repeats.other {
        for &case in cases.iter().filter(|&&case| case != Case::First) {
            let (tree, rounds) = (corpus.size.name(), repeats.other);
            eprintln!("{tree}: {}, round {} of {rounds}", case.title(), round + 1);
            bench.measure(case, round, &floor)?;
        }
    }
    if digest(&corpus.tree, Depth::Contents)? != contents {
        return Err("the tree differs from what it was before the rounds".into());
    }
    Ok(bench.costs)
}

impl Bench<'_> {
    fn first_points(&mut self, rounds: usize) -> Result<()> {
        for round in 0..rounds {
            let mut costs = Round::new();
            for turn in in_turn(self.drivers.len(), round) {
                let driver = &mut self.drivers[turn];
                let (tree, tool) = (self.corpus.size.name(), driver.tool());
                eprintln!("{tree}: first point, {}, round {} of {rounds}", tool.title(), round + 1);
                driver.reset()?;
                flush_disk()?;
                costs.insert(tool, driver.make_point()?);
            }
            self.costs.cases.entry(Case::First).or_default().push(costs);
        }
        for driver in &mut self.drivers {
            check_count(driver.tool(), "files", self.corpus.paths.len(), driver.files()?)?;
            self.costs.sizes.insert(driver.tool(), driver.size()?);
        }
        Ok(())
    }

    fn measure(&mut self, case: Case, round: usize, floor: &Floor) -> Result<()> {
        let edits = match case {
            Case::Many | Case::RewindMany => Edits::many(self.corpus, round)?,
            _ => Edits::few(self.corpus, round)?,
        };
        match case {
            Case::First => Ok(()),
            Case::Unchanged => {
                self.settle()?;
                for again in 0..UNCHANGED {
                    let before = if again % 2 == 0 { Some(floor.measure()?) } else { None };
                    let mut costs = self.points(round + again)?;
                    let floor = before.map_or_else(|| floor.measure(), Ok)?;
                    costs.insert(Tool::Floor, floor);
                    self.costs.cases.entry(case).or_default().push(costs);
                }
                Ok(())
            }
            Case::Few | Case::Many => {
                self.settle()?;
                edits.make()?;
                let costs = self.points(round)?;
                self.costs.cases.entry(case).or_default().push(costs);
                for driver in &mut self.drivers {
                    check_count(driver.tool(), "edits", edits.count(), driver.changed()?)?;
                }
                edits.undo()
            }
            Case::RewindFew | Case::RewindMany => {
                self.rewinds(case, round, &edits, EditSource::Agent)
            }
            Case::RewindFewExact => self.rewinds(case, round, &edits, EditSource::Unannounced),
        }
    }

    fn points(&mut self, round: usize) -> Result<Round> {
        let mut costs = Round::new();
        for turn in in_turn(self.drivers.len(), round) {
            let driver = &mut self.drivers[turn];
            costs.insert(driver.tool(), driver.make_point()?);
        }
        Ok(costs)
    }

    fn rewinds(
        &mut self,
        case: Case,
        round: usize,
        edits: &Edits,
        source: EditSource,
    ) -> Result<()> {
        let mut costs = Round::new();
        for turn in in_turn(self.drivers.len(), round) {
            let driver = &mut self.drivers[turn];
            // For peers, announced or not makes no difference.
            let tool = driver.tool();
            if source == EditSource::Unannounced && !tool.is_ours() {
                continue;
            }
            let_files_age();
            driver.make_point()?;
            flush_disk()?;
            costs.insert(tool, driver.rewind(edits, source)?);
            edits.check_undone()?;
            if digest(&self.corpus.tree, Depth::Shape)? != self.shape {
                return Err(format!("{} left another tree", tool.title()).into());
            }
        }
        self.costs.cases.entry(case).or_default().push(costs);
        Ok(())
    }

    /// Every tool scans the tree as it is.
    fn settle(&mut self) -> Result<()> {
        let_files_age();
        self.points(0)?;
        flush_disk()
    }
}

fn check_count(tool: Tool, what: &str, expected: usize, found: usize) -> Result<()> {
    if found == expected {
        return Ok(());
    }
    Err(format!("{} found {found} of {expected} {what}", tool.title()).into())
}

/// git reads files again that are younger than a second, Takeback for some milliseconds.
fn let_files_age() {
    std::thread::sleep(Duration::from_millis(1100));
}
