//! The three comparisons that matter most, as a picture.
//!
//! Colours follow the reader's light or dark theme. The background is part of the picture, because a
//! site's theme may differ from that of the reader's system. No font is loaded.

use std::fmt::Write as _;

use super::Measurements;
use super::rounds::{Case, TreeCosts};
use crate::driver::Tool;

const WIDTH: f64 = 760.0;
/// X of the first pixel of a bar.
const LEFT: f64 = 170.0;
/// Space for a number after the longest bar.
const RIGHT: f64 = 90.0;
const STEP: f64 = 26.0;
const BAR: f64 = 18.0;

const STYLE: &str = "
text{font-family:ui-sans-serif,system-ui,-apple-system,'Segoe UI',Helvetica,Arial,sans-serif;font-size:14px;fill:#1f2328}
.page{fill:#ffffff}
.title{font-weight:600;font-size:15px}
.quiet{fill:#59636e}
.peer{fill:#afb8c1}
.ours{fill:#1a7f37}
@media (prefers-color-scheme:dark){.page{fill:#0d1117}text{fill:#e6edf3}.quiet{fill:#9198a1}.peer{fill:#57606a}.ours{fill:#3fb950}}
";

pub(super) fn chart(measured: &Measurements) -> String {
    let mut picture = Picture { body: String::new(), y: 0.0 };
    for case in [Case::Unchanged, Case::RewindFew, Case::First] {
        // The tree with the most peers, and of those the largest.
        let of_case = measured.trees.iter().filter(|costs| costs.cases.contains_key(&case));
        if let Some(costs) = of_case.max_by_key(|m| (bars(m, case).len(), m.files)) {
            picture.panel(costs, case).expect("text can be written to memory");
        }
    }
    let Picture { body, y } = picture;
    let height = y + 10.0;
    format!(
        "<svg xmlns=\"http://www.w3.org/2000/svg\" viewBox=\"0 0 {WIDTH} {height}\" width=\"{WIDTH}\" height=\"{height}\" role=\"img\" aria-label=\"Takeback compared with its peers\">\n<style>{STYLE}</style>\n<rect class=\"page\" width=\"{WIDTH}\" height=\"{height}\" rx=\"10\"/>\n{body}</svg>\n"
    )
}

struct Picture {
    body: String,
    /// Y of the next line.
    y: f64,
}

impl Picture {
    fn panel(&mut self, costs: &TreeCosts, case: Case) -> std::fmt::Result {
        let bars = bars(costs, case);
        let longest = bars.iter().map(|(_, ms)| *ms).fold(0.0, f64::max);
        self.y += 30.0;
        writeln!(
            self.body,
            "<text class=\"title\" x=\"10\" y=\"{}\">{}<tspan class=\"quiet\" font-weight=\"400\">, {} files</tspan></text>",
            self.y,
            title(case),
            thousands(costs.files)
        )?;
        self.y += 10.0;
        for (tool, ms) in bars {
            let class = if tool.is_ours() { "ours" } else { "peer" };
            let width = (ms / longest * (WIDTH - LEFT - RIGHT)).max(1.0);
            let base = self.y + 14.0;
            writeln!(
                self.body,
                "<text x=\"{}\" y=\"{base}\" text-anchor=\"end\">{}</text><rect class=\"{class}\" x=\"{LEFT}\" y=\"{}\" width=\"{width:.1}\" height=\"{BAR}\" rx=\"2\"/><text class=\"quiet\" x=\"{:.1}\" y=\"{base}\">{}</text>",
                LEFT - 10.0,
                label(tool),
                self.y,
                LEFT + width + 8.0,
                time(ms)
            )?;
            self.y += STEP;
        }
        Ok(())
    }
}

/// Shortest first.
fn bars(costs: &TreeCosts, case: Case) -> Vec<(Tool, f64)> {
    let wall = |tool| Some((tool, costs.median(case, tool, |cost| cost.wall_ms)?));
    let mut bars: Vec<_> = Tool::ALL.into_iter().filter_map(wall).collect();
    bars.sort_by(|a, b| a.1.total_cmp(&b.1));
    bars
}

fn title(case: Case) -> &'static str {
    match case {
        Case::Unchanged => "A point when nothing changed",
        Case::RewindFew => "Taking back an agent's 13 edits",
        Case::First => "The first point",
        _ => case.title(),
    }
}

fn label(tool: Tool) -> &'static str {
    match tool {
        Tool::Command => "takeback",
        Tool::Library => "takeback, library",
        Tool::Floor => "stat of every file",
        _ => tool.title(),
    }
}

fn time(ms: f64) -> String {
    match ms {
        ms if ms >= 10_000.0 => format!("{:.0} s", ms / 1000.0),
        ms if ms >= 1000.0 => format!("{:.1} s", ms / 1000.0),
        ms if ms >= 10.0 => format!("{ms:.0} ms"),
        ms => format!("{ms:.1} ms"),
    }
}

fn thousands(number: usize) -> String {
    match number {
        0..1000 => number.to_string(),
        _ => format!("{},{:03}", number / 1000, number % 1000),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn numbers_are_short() {
        assert_eq!([9.46, 94.6, 9460.0, 94_600.0].map(time), ["9.5 ms", "95 ms", "9.5 s", "95 s"]);
        assert_eq!([261, 30_004, 100_000].map(thousands), ["261", "30,004", "100,000"]);
    }
}
