//! The tables of `docs/performance.md`: goals by tree, then times by tool.

use super::Measurements;
use super::goals::goals;
use super::rounds::{Case, TreeCosts};
use crate::driver::Tool;
use crate::report::Table;

pub(super) fn tables(measured: &Measurements) -> String {
    let versions: Vec<&str> = measured.versions.values().map(String::as_str).collect();
    let times: Vec<String> = measured.trees.iter().map(times_table).collect();
    format!("{}.\n\n{}\n{}", versions.join(", "), goals_table(&measured.trees), times.join("\n"))
}

/// A row per goal, a column per tree.
fn goals_table(trees: &[TreeCosts]) -> Table {
    let titles: Vec<String> = trees.iter().map(|costs| format!("{}:", costs.tree.name())).collect();
    let head = ["case", "what is compared", "goal"].into_iter();
    let mut table = Table::new(head.chain(titles.iter().map(String::as_str)));
    let columns: Vec<_> = trees.iter().map(goals).collect();
    let mut rows: Vec<Vec<_>> = (0..columns.first().map_or(0, Vec::len))
        .map(|n| columns.iter().map(|column| column[n].as_ref()).collect())
        .collect();
    rows.sort_by_key(|row| row.iter().flatten().next().map(|row| row.case));
    for row in rows {
        let Some(first) = row.iter().flatten().next() else { continue };
        let mut goals: Vec<String> =
            row.iter().flatten().map(|goal| goal.row.goal_text()).collect();
        goals.dedup();
        let cells = row.iter().map(|row| row.map_or(String::new(), |row| row.cell()));
        let head = [first.case.title().to_owned(), first.row.name.clone(), goals.join(", ")];
        table.add(head.into_iter().chain(cells));
    }
    table
}

fn times_table(costs: &TreeCosts) -> String {
    let TreeCosts { tree, files, folders, bytes, cases, sizes } = costs;
    let is_measured = |tool: &Tool| cases.values().flatten().any(|round| round.contains_key(tool));
    let tools: Vec<Tool> = Tool::ALL.into_iter().filter(is_measured).collect();
    let titles: Vec<String> = tools.iter().map(|tool| format!("{}:", tool.title())).collect();
    let head = ["case", "rounds:"].into_iter();
    let mut table = Table::new(head.chain(titles.iter().map(String::as_str)));
    let mut add = |name: &str, rounds: String, cell: &dyn Fn(Tool) -> Option<String>| {
        let cells = tools.iter().map(|&tool| cell(tool).unwrap_or_default());
        table.add([name.to_owned(), rounds].into_iter().chain(cells));
    };
    for (&case, rounds) in cases {
        add(case.title(), rounds.len().to_string(), &|tool| times(costs, case, tool));
    }
    let size = |tool| Some(format!("{:.1}", megabytes(*sizes.get(&tool)?)));
    add("on disk after the first point, MB", String::new(), &size);
    for case in [Case::First, Case::Unchanged] {
        let peak = |tool| Some(format!("{:.0}", costs.peak(case, tool)?));
        add(&format!("peak memory, {}, MB", case.title()), String::new(), &peak);
    }
    format!(
        "**{}**: {files} files in {folders} folders, {:.0} MB. Milliseconds: wall / processor time.\n\n{table}",
        tree.name(),
        megabytes(*bytes)
    )
}

fn times(costs: &TreeCosts, case: Case, tool: Tool) -> Option<String> {
    let short = |ms: f64| if ms < 10.0 { format!("{ms:.1}") } else { format!("{ms:.0}") };
    let wall = costs.median(case, tool, |cost| cost.wall_ms)?;
    let cpu = costs.median(case, tool, |cost| cost.cpu_ms)?;
    Some(format!("{} / {}", short(wall), short(cpu)))
}

#[expect(clippy::cast_precision_loss, reason = "sizes on a disk are far below 2^52")]
fn megabytes(bytes: u64) -> f64 {
    bytes as f64 / 1e6
}
