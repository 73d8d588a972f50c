//! The cases, each in rounds: all tools in turn from the same state, another one first every time.

use std::collections::BTreeMap;
use std::time::Duration;

use serde::{Deserialize, Serialize};
use takeback_bench::Result;
use takeback_bench::floor::Floor;
use takeback_bench::measure::{Cost, settle_disk};

use crate::corpus::{Corpus, Extent};
use crate::edits::Edits;
use crate::tool::{Told, Tool, Who};
use crate::tree::{Look, digest};

#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub(crate) enum Case {
    First,
    Unchanged,
    /// Ten changed, two made, one deleted.
    Few,
    /// A thousand changed.
    Many,
    RewindFew,
    /// Of what nobody announced: everything must be looked at.
    RewindFewExact,
    RewindMany,
}

impl Case {
    pub(crate) const ALL: [Self; 7] = [
        Self::First,
        Self::Unchanged,
        Self::Few,
        Self::Many,
        Self::RewindFew,
        Self::RewindFewExact,
        Self::RewindMany,
    ];

    /// On the command line.
    pub(crate) fn word(self) -> &'static str {
        match self {
            Self::First => "first",
            Self::Unchanged => "unchanged",
            Self::Few => "few",
            Self::Many => "many",
            Self::RewindFew => "rewind-few",
            Self::RewindFewExact => "rewind-few-exact",
            Self::RewindMany => "rewind-many",
        }
    }

    pub(crate) fn title(self) -> &'static str {
        match self {
            Self::First => "first snapshot",
            Self::Unchanged => "nothing changed",
            Self::Few => "10 changed, 2 made, 1 deleted",
            Self::Many => "1,000 changed",
            Self::RewindFew => "rewind of those 13",
            Self::RewindFewExact => "the same, announced by nobody (`--exact`)",
            Self::RewindMany => "rewind of 1,000",
        }
    }
}

/// What one round of a case cost each of them.
pub(crate) type Round = BTreeMap<Who, Cost>;

#[derive(Debug, Serialize, Deserialize)]
pub(crate) struct Measured {
    pub(crate) corpus: Extent,
    pub(crate) files: usize,
    pub(crate) folders: usize,
    pub(crate) bytes: u64,
    pub(crate) cases: BTreeMap<Case, Vec<Round>>,
    /// Bytes on disk after the first snapshot.
    pub(crate) sizes: BTreeMap<Who, u64>,
}

/// How often.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Rounds {
    pub(crate) first: usize,
    pub(crate) all: usize,
}

/// In every round this often: the shortest case varies most.
const UNCHANGED: usize = 3;

struct Bench<'a> {
    corpus: &'a Corpus,
    tools: Vec<Box<dyn Tool + 'a>>,
    measured: Measured,
    shape: blake3::Hash,
}

/// Takes `corpus` through `cases`. Wrong results are errors: a tool that overlooks files or edits,
/// a tree that is not what it was.
pub(crate) fn run<'a>(
    corpus: &'a Corpus,
    tools: Vec<Box<dyn Tool + 'a>>,
    cases: &[Case],
    rounds: Rounds,
) -> Result<Measured> {
    // Also brings every file into memory before anybody is measured.
    let contents = digest(&corpus.tree, Look::Contents)?;
    let measured = Measured {
        corpus: corpus.extent,
        files: corpus.paths.len(),
        folders: corpus.folders,
        bytes: corpus.bytes,
        cases: BTreeMap::new(),
        sizes: BTreeMap::new(),
    };
    let shape = digest(&corpus.tree, Look::Shape)?;
    let mut bench = Bench { corpus, tools, measured, shape };
    bench.first(rounds.first)?;
    if !cases.contains(&Case::First) {
        bench.measured.cases.clear();
    }
    // The backup program has shown what it was asked for.
    bench.tools.retain(|tool| tool.who() != Who::Restic);
    let floor = Floor::new(&corpus.tree, &corpus.paths)?;
    for round in 0..rounds.all {
        for &case in cases.iter().filter(|&&case| case != Case::First) {
            eprintln!(
                "{}: {}, round {} of {}",
                corpus.extent.name(),
                case.word(),
                round + 1,
                rounds.all
            );
            bench.case(case, round, &floor)?;
        }
    }
    if digest(&corpus.tree, Look::Contents)? != contents {
        return Err("the tree is not what it was before the rounds".into());
    }
    Ok(bench.measured)
}

impl Bench<'_> {
    fn first(&mut self, rounds: usize) -> Result<()> {
        for round in 0..rounds {
            let mut costs = Round::new();
            for turn in 0..self.tools.len() {
                let tool = self.in_turn(round, turn);
                let (name, title) = (self.corpus.extent.name(), self.tools[tool].who().title());
                eprintln!("{name}: first, {title}, round {} of {rounds}", round + 1);
                let tool = &mut self.tools[tool];
                tool.empty()?;
                settle_disk()?;
                costs.insert(tool.who(), tool.snapshot()?);
            }
            self.measured.cases.entry(Case::First).or_default().push(costs);
        }
        for tool in &mut self.tools {
            let (files, seen) = (self.corpus.paths.len(), tool.files()?);
            if seen != files {
                let title = tool.who().title();
                return Err(format!("of {files} files {title} sees {seen}").into());
            }
            self.measured.sizes.insert(tool.who(), tool.size()?);
        }
        Ok(())
    }

    fn case(&mut self, case: Case, round: usize, floor: &Floor) -> Result<()> {
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
                    let mut costs = self.snapshots(round + again)?;
                    let floor = before.map_or_else(|| floor.measure(), Ok)?;
                    costs.insert(Who::Floor, floor);
                    self.measured.cases.entry(case).or_default().push(costs);
                }
                Ok(())
            }
            Case::Few | Case::Many => {
                self.settle()?;
                edits.make()?;
                let costs = self.snapshots(round)?;
                self.measured.cases.entry(case).or_default().push(costs);
                for tool in &mut self.tools {
                    let (made, seen) = (edits.count(), tool.changed()?);
                    if seen != made {
                        let title = tool.who().title();
                        return Err(format!("of {made} edits {title} sees {seen}").into());
                    }
                }
                edits.undo()
            }
            Case::RewindFew | Case::RewindMany => {
                self.rewinds(case, round, &edits, Told::Announced)
            }
            Case::RewindFewExact => self.rewinds(case, round, &edits, Told::Nothing),
        }
    }

    /// Every tool keeps the tree as it is.
    fn snapshots(&mut self, round: usize) -> Result<Round> {
        let mut costs = Round::new();
        for turn in 0..self.tools.len() {
            let tool = self.in_turn(round, turn);
            costs.insert(self.tools[tool].who(), self.tools[tool].snapshot()?);
        }
        Ok(costs)
    }

    fn rewinds(&mut self, case: Case, round: usize, edits: &Edits, told: Told) -> Result<()> {
        let mut costs = Round::new();
        for turn in 0..self.tools.len() {
            let tool = self.in_turn(round, turn);
            // The peers' way back is the same, told or not.
            let who = self.tools[tool].who();
            if told == Told::Nothing && !matches!(who, Who::Command | Who::Library) {
                continue;
            }
            let tool = &mut self.tools[tool];
            pass_a_second();
            tool.snapshot()?;
            settle_disk()?;
            costs.insert(who, tool.take_back(edits, told)?);
            edits.check_undone()?;
            if digest(&self.corpus.tree, Look::Shape)? != self.shape {
                return Err(format!("{} left another tree", who.title()).into());
            }
        }
        self.measured.cases.entry(case).or_default().push(costs);
        Ok(())
    }

    /// Lets all of them see the tree as it is.
    fn settle(&mut self) -> Result<()> {
        pass_a_second();
        self.snapshots(0)?;
        settle_disk()
    }

    fn in_turn(&self, round: usize, turn: usize) -> usize {
        (round + turn) % self.tools.len()
    }
}

/// In which nothing is written: younger files are read again by git, and for some milliseconds by
/// Takeback.
fn pass_a_second() {
    std::thread::sleep(Duration::from_millis(1100));
}
