//! The goals, and whether they are met.

use super::rounds::{Case, TreeCosts};
use crate::corpus::TreeSize;
use crate::driver::Tool;
use crate::measure::Cost;
use crate::report::{Goal, Metric, Row, Unit};

pub(super) struct GoalRow {
    pub(super) case: Case,
    pub(super) row: Row,
    /// The value of Takeback's other form, library or command, which is not judged.
    other: Option<f64>,
}

impl GoalRow {
    /// The value and the verdict, with Takeback's other form in brackets.
    pub(super) fn cell(&self) -> String {
        let show = |value| self.row.judged_unit().show(value);
        let other = self.other.map_or(String::new(), |other| format!(" ({})", show(other)));
        match self.row.value().map(show) {
            None => "not measured".to_owned(),
            Some(value) if self.row.is_met() => format!("**{value}**{other} met"),
            Some(value) => format!("{value}{other} **missed**"),
        }
    }
}

/// All goals in a fixed order, so that trees can be compared; `None` where a goal does not apply to
/// this tree, or its case was not measured.
pub(super) fn goals(costs: &TreeCosts) -> Vec<Option<GoalRow>> {
    use Tool::{Command, Git, Jj, Library, Opencode, Restic};
    let rewind_git = match costs.tree {
        TreeSize::Small => None,
        TreeSize::Medium => Some(30.0),
        TreeSize::Large => Some(80.0),
    };
    let has_restic = costs.sizes.contains_key(&Restic);
    let is_large = costs.tree == TreeSize::Large;
    let faster = |case, ours, peer, goal| Some(costs.faster(case, ours, peer, goal));
    let rows = [
        Some(costs.above_floor("wall", |cost| cost.wall_ms)),
        Some(costs.above_floor("processor time", |cost| cost.cpu_ms)),
        faster(Case::Unchanged, Command, Git, 4.0),
        faster(Case::Unchanged, Command, Jj, 2.5),
        faster(Case::Few, Command, Git, 4.0),
        faster(Case::Few, Command, Jj, 2.5),
        faster(Case::Many, Command, Git, 7.0),
        faster(Case::Many, Command, Jj, 4.0),
        faster(Case::First, Command, Git, 10.0),
        has_restic.then(|| costs.faster(Case::First, Command, Restic, 4.0)),
        rewind_git.map(|goal| costs.faster(Case::RewindFew, Library, Git, goal)),
        faster(Case::RewindFew, Library, Opencode, 5.0),
        Some(costs.beyond_the_scan()),
        faster(Case::RewindMany, Library, Git, 4.0),
        is_large.then(|| costs.memory(Case::Unchanged, 60.0)),
        is_large.then(|| costs.memory(Case::First, 120.0)),
    ];
    let is_measured = |row: &GoalRow| costs.cases.contains_key(&row.case);
    rows.into_iter().map(|row| row.filter(is_measured)).collect()
}

impl TreeCosts {
    fn faster(&self, case: Case, ours: Tool, peer: Tool, goal: f64) -> GoalRow {
        let other = if ours == Tool::Command { Tool::Library } else { Tool::Command };
        let row = |ours| self.row(case, [ours, peer], |cost| cost.wall_ms).judged(Metric::Speedup);
        GoalRow { case, row: row(ours).goal(Goal::AtLeast(goal)), other: row(other).value() }
    }

    fn above_floor(&self, name: &str, of: fn(&Cost) -> f64) -> GoalRow {
        let case = Case::Unchanged;
        let mut row = self.row(case, [Tool::Library, Tool::Floor], of).goal(Goal::AtMost(1.2));
        row.name = format!("library, {name}, compared with the floor");
        GoalRow { case, row, other: self.row(case, [Tool::Command, Tool::Floor], of).value() }
    }

    /// Values of the rounds in which both were measured.
    fn row(&self, case: Case, [ours, peer]: [Tool; 2], of: fn(&Cost) -> f64) -> Row {
        let rounds = self.cases.get(&case).into_iter().flatten();
        let (ours_ms, theirs_ms): (Vec<f64>, Vec<f64>) =
            rounds.filter_map(|round| Some((of(round.get(&ours)?), of(round.get(&peer)?)))).unzip();
        let name = format!("{}, compared with {}", ours.title(), peer.title());
        Row::new(name, &ours_ms, peer.title(), &theirs_ms)
    }

    /// How much longer a rewind with a scan takes than a point that finds no change.
    fn beyond_the_scan(&self) -> GoalRow {
        let wall = |case, tool| self.median(case, tool, |cost| cost.wall_ms);
        let beyond = |tool| Some(wall(Case::RewindFewExact, tool)? - wall(Case::Unchanged, tool)?);
        let name = "`takeback`, beyond its unchanged point";
        let row = Row::alone(name, beyond(Tool::Command).as_slice(), Unit::Ms);
        let (row, other) = (row.goal(Goal::AtMost(20.0)), beyond(Tool::Library));
        GoalRow { case: Case::RewindFewExact, row, other }
    }

    fn memory(&self, case: Case, goal: f64) -> GoalRow {
        let peak = self.peak(case, Tool::Command);
        let row = Row::alone("`takeback`, peak memory", peak.as_slice(), Unit::Mb);
        GoalRow { case, row: row.goal(Goal::Below(goal)), other: None }
    }
}

#[cfg(test)]
mod tests {
    use std::collections::BTreeMap;

    use super::super::rounds::Round;
    use super::*;

    /// The goals that apply to these rounds of the large tree.
    fn judge(case: Case, rounds: Vec<Round>) -> Vec<(String, String)> {
        let costs = TreeCosts {
            tree: TreeSize::Large,
            files: 100_000,
            folders: 1,
            bytes: 1,
            cases: BTreeMap::from([(case, rounds)]),
            sizes: BTreeMap::new(),
        };
        goals(&costs)
            .into_iter()
            .flatten()
            .map(|goal| (goal.row.name.clone(), goal.cell()))
            .collect()
    }

    fn cost(ms: f64) -> Cost {
        Cost { wall_ms: ms, cpu_ms: ms, peak_mb: Some(ms) }
    }

    fn pairs<const N: usize>(rows: [(&str, &str); N]) -> [(String, String); N] {
        rows.map(|(what, cell)| (what.to_owned(), cell.to_owned()))
    }

    #[test]
    fn a_ratio_is_the_median_of_the_ratios_of_rounds() {
        // Another program ran during the second round. The ratio of the medians would be 6.
        let rounds = [(10.0, 50.0), (100.0, 400.0), (12.0, 72.0)].map(|(ours, git)| {
            Round::from([
                (Tool::Command, cost(ours)),
                (Tool::Library, cost(ours / 2.0)),
                (Tool::Git, cost(git)),
            ])
        });
        assert_eq!(
            judge(Case::Few, rounds.into()),
            pairs([
                ("`takeback`, compared with shadow git", "**5.00×** (10.00×) met"),
                ("`takeback`, compared with jj", "not measured"),
            ])
        );
    }

    #[test]
    fn the_worst_round_counts_for_memory_and_a_slow_scan_is_seen() {
        let rounds = [30.0, 61.0].map(|ours| {
            Round::from([
                (Tool::Command, cost(ours)),
                (Tool::Library, cost(ours)),
                (Tool::Floor, cost(20.0)),
            ])
        });
        let mut judged = judge(Case::Unchanged, rounds.into());
        judged.retain(|(_, cell)| cell != "not measured");
        assert_eq!(
            judged,
            pairs([
                ("library, wall, compared with the floor", "2.27× (2.27×) **missed**"),
                ("library, processor time, compared with the floor", "2.27× (2.27×) **missed**"),
                ("`takeback`, peak memory", "61 MB **missed**"),
            ])
        );
    }
}
