//! What was asked for, and whether it was reached.

use serde::{Deserialize, Serialize};
use takeback_bench::measure::{Cost, median};

use crate::corpus::Extent;
use crate::rounds::{Case, Measured};
use crate::tool::Who;

#[derive(Debug, Serialize, Deserialize)]
pub(crate) struct Row {
    pub(crate) corpus: Extent,
    pub(crate) case: Case,
    /// Among the goals of all cases.
    pub(crate) place: usize,
    pub(crate) what: String,
    /// None where the peer is not there.
    pub(crate) reached: Option<f64>,
    /// The same with Takeback's other form, which is not judged: the library or the command.
    pub(crate) other: Option<f64>,
    pub(crate) goal: Goal,
    pub(crate) met: Option<bool>,
}

#[derive(Debug, Clone, Copy, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub(crate) enum Goal {
    TimesFaster(f64),
    AtMostTimes(f64),
    AtMostMs(f64),
    UnderMb(f64),
}

impl Goal {
    fn met_by(self, reached: f64) -> bool {
        match self {
            Self::TimesFaster(goal) => reached >= goal,
            Self::AtMostTimes(goal) | Self::AtMostMs(goal) => reached <= goal,
            Self::UnderMb(goal) => reached < goal,
        }
    }

    pub(crate) fn text(self) -> String {
        match self {
            Self::TimesFaster(goal) => format!("≥ {goal}×"),
            Self::AtMostTimes(goal) => format!("≤ {goal}×"),
            Self::AtMostMs(goal) => format!("≤ {goal} ms"),
            Self::UnderMb(goal) => format!("< {goal} MB"),
        }
    }

    pub(crate) fn show(self, value: f64) -> String {
        match self {
            Self::TimesFaster(_) | Self::AtMostTimes(_) => format!("{value:.2}×"),
            Self::AtMostMs(_) => format!("{value:.1} ms"),
            Self::UnderMb(_) => format!("{value:.0} MB"),
        }
    }
}

/// Every goal that the measured cases can say something about.
pub(crate) fn rows(measured: &Measured) -> Vec<Row> {
    use Who::{Command, Git, Jj, Library, Opencode, Restic};
    let sheet = Sheet { measured };
    let rewind_git = match measured.corpus {
        Extent::Small => None,
        Extent::Medium => Some(30.0),
        Extent::Large => Some(80.0),
    };
    let restic = measured.sizes.contains_key(&Restic);
    let faster = |case, who, than, goal| Some(sheet.faster(case, who, than, goal));
    let large = measured.corpus == Extent::Large;
    let goals = [
        Some(sheet.floor("wall", |cost| cost.wall_ms)),
        Some(sheet.floor("processor time", |cost| cost.cpu_ms)),
        faster(Case::Unchanged, Command, Git, 4.0),
        faster(Case::Unchanged, Command, Jj, 2.5),
        faster(Case::Few, Command, Git, 4.0),
        faster(Case::Few, Command, Jj, 2.5),
        faster(Case::Many, Command, Git, 7.0),
        faster(Case::Many, Command, Jj, 4.0),
        faster(Case::First, Command, Git, 10.0),
        restic.then(|| sheet.faster(Case::First, Command, Restic, 4.0)),
        rewind_git.map(|goal| sheet.faster(Case::RewindFew, Library, Git, goal)),
        faster(Case::RewindFew, Library, Opencode, 5.0),
        Some(sheet.beyond_the_scan()),
        faster(Case::RewindMany, Library, Git, 4.0),
        large.then(|| sheet.memory(Case::Unchanged, 60.0)),
        large.then(|| sheet.memory(Case::First, 120.0)),
    ];
    let placed =
        goals.into_iter().enumerate().filter_map(|(place, row)| Some(Row { place, ..row? }));
    placed.filter(|row| measured.cases.contains_key(&row.case)).collect()
}

struct Sheet<'a> {
    measured: &'a Measured,
}

impl Sheet<'_> {
    fn faster(&self, case: Case, who: Who, than: Who, goal: f64) -> Row {
        let wall = |cost: &Cost| cost.wall_ms;
        let what = format!("{}, beside {}", who.title(), than.title());
        let other = other(who).and_then(|other| self.ratio(case, than, other, wall));
        let reached = self.ratio(case, than, who, wall);
        self.row(case, what, reached, other, Goal::TimesFaster(goal))
    }

    fn floor(&self, name: &str, of: fn(&Cost) -> f64) -> Row {
        let case = Case::Unchanged;
        let reached = self.ratio(case, Who::Library, Who::Floor, of);
        let other = self.ratio(case, Who::Command, Who::Floor, of);
        let what = format!("library, {name}, beside the floor");
        self.row(case, what, reached, other, Goal::AtMostTimes(1.2))
    }

    /// What a rewind with a scan takes longer than a checkpoint that finds nothing.
    fn beyond_the_scan(&self) -> Row {
        let case = Case::RewindFewExact;
        let beyond = |who| Some(self.wall(case, who)? - self.wall(Case::Unchanged, who)?);
        let what = "`takeback`, above its checkpoint of nothing changed".to_owned();
        let (reached, other) = (beyond(Who::Command), beyond(Who::Library));
        self.row(case, what, reached, other, Goal::AtMostMs(20.0))
    }

    fn memory(&self, case: Case, goal: f64) -> Row {
        let rounds = self.measured.cases.get(&case).into_iter().flatten();
        let peaks = rounds.filter_map(|round| round.get(&Who::Command)?.peak_mb);
        let reached = peaks.reduce(f64::max);
        let what = "`takeback`, peak memory".to_owned();
        self.row(case, what, reached, None, Goal::UnderMb(goal))
    }

    /// The median of the ratios of every round in which both were measured.
    fn ratio(&self, case: Case, above: Who, below: Who, of: fn(&Cost) -> f64) -> Option<f64> {
        let rounds = self.measured.cases.get(&case)?;
        let ratios: Vec<f64> = rounds
            .iter()
            .filter_map(|round| Some(of(round.get(&above)?) / of(round.get(&below)?)))
            .collect();
        (!ratios.is_empty()).then(|| median(ratios))
    }

    fn wall(&self, case: Case, who: Who) -> Option<f64> {
        self.measured.median(case, who, |cost| cost.wall_ms)
    }

    fn row(
        &self,
        case: Case,
        what: String,
        reached: Option<f64>,
        other: Option<f64>,
        goal: Goal,
    ) -> Row {
        let met = reached.map(|reached| goal.met_by(reached));
        Row { corpus: self.measured.corpus, case, place: 0, what, reached, other, goal, met }
    }
}

fn other(who: Who) -> Option<Who> {
    match who {
        Who::Command => Some(Who::Library),
        Who::Library => Some(Who::Command),
        _ => None,
    }
}

impl Measured {
    pub(crate) fn median(&self, case: Case, who: Who, of: fn(&Cost) -> f64) -> Option<f64> {
        let rounds = self.cases.get(&case)?;
        let values: Vec<f64> = rounds.iter().filter_map(|round| round.get(&who)).map(of).collect();
        (!values.is_empty()).then(|| median(values))
    }
}

#[cfg(test)]
mod tests {
    use std::collections::BTreeMap;

    use super::*;
    use crate::rounds::Round;

    fn cost(wall_ms: f64) -> Cost {
        Cost { wall_ms, cpu_ms: wall_ms, peak_mb: Some(wall_ms) }
    }

    fn measured(case: Case, rounds: Vec<Round>) -> Measured {
        Measured {
            corpus: Extent::Large,
            files: 100_000,
            folders: 1,
            bytes: 1,
            cases: BTreeMap::from([(case, rounds)]),
            sizes: BTreeMap::new(),
        }
    }

    #[test]
    fn a_ratio_is_the_median_of_the_ratios_of_rounds() {
        // Something else ran during the second. The ratio of the medians would be 6.
        let rounds = [(10.0, 50.0), (100.0, 400.0), (12.0, 72.0)].map(|(ours, git)| {
            Round::from([
                (Who::Command, cost(ours)),
                (Who::Library, cost(ours / 2.0)),
                (Who::Git, cost(git)),
            ])
        });
        let rows = rows(&measured(Case::Few, rounds.into()));
        let short: Vec<_> =
            rows.iter().map(|row| (&*row.what, row.reached, row.other, row.met)).collect();
        assert_eq!(
            short,
            [
                ("`takeback`, beside shadow git", Some(5.0), Some(10.0), Some(true)),
                ("`takeback`, beside jj", None, None, None),
            ]
        );
    }

    #[test]
    fn the_worst_round_counts_for_memory_and_a_slow_scan_is_seen() {
        let rounds = [30.0, 61.0].map(|ours| {
            Round::from([
                (Who::Command, cost(ours)),
                (Who::Library, cost(ours)),
                (Who::Floor, cost(20.0)),
            ])
        });
        let rows = rows(&measured(Case::Unchanged, rounds.into()));
        let judged: Vec<_> = rows
            .iter()
            .filter(|row| row.met.is_some())
            .map(|row| (&*row.what, row.goal.show(row.reached.unwrap()), row.met))
            .collect();
        assert_eq!(
            judged,
            [
                ("library, wall, beside the floor", "2.27×".to_owned(), Some(false)),
                ("library, processor time, beside the floor", "2.27×".to_owned(), Some(false)),
                ("`takeback`, peak memory", "61 MB".to_owned(), Some(false)),
            ]
        );
    }
}
