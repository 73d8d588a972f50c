//! Rows of a comparison: Takeback's numbers next to another's, their ratio, and the goal.

use std::fmt::{self, Write as _};

use serde::{Deserialize, Serialize};

use crate::rounds::{median, quantile};

/// One comparison. Values are one per round, in the same order on both sides.
#[derive(Debug, Serialize)]
pub(crate) struct Row {
    pub(crate) name: String,
    pub(crate) unit: Unit,
    pub(crate) ours: Vec<f64>,
    /// Empty where the other side was not measured.
    pub(crate) theirs: Vec<f64>,
    /// The other side.
    pub(crate) peer: String,
    pub(crate) judged: Metric,
    pub(crate) goal: Option<Goal>,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub(crate) enum Unit {
    Times,
    Ms,
    Mb,
    Kb,
    PerSecond,
    Count,
}

/// What a goal is about.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize)]
#[serde(rename_all = "snake_case")]
pub(crate) enum Metric {
    /// Our value divided by theirs.
    Ratio,
    /// Their value divided by ours: how many times faster we are.
    Speedup,
    /// Our value alone.
    Ours,
}

#[derive(Debug, Clone, Copy, PartialEq, Serialize)]
#[serde(rename_all = "snake_case")]
pub(crate) enum Goal {
    AtLeast(f64),
    AtMost(f64),
    Below(f64),
}

impl Row {
    /// Milliseconds, judged by our value divided by theirs.
    pub(crate) fn new(name: impl Into<String>, ours: &[f64], peer: &str, theirs: &[f64]) -> Self {
        Self {
            name: name.into(),
            unit: Unit::Ms,
            ours: ours.to_vec(),
            theirs: theirs.to_vec(),
            peer: peer.to_owned(),
            judged: Metric::Ratio,
            goal: None,
        }
    }

    /// Judged by our value alone.
    pub(crate) fn alone(name: impl Into<String>, ours: &[f64], unit: Unit) -> Self {
        Self { unit, judged: Metric::Ours, ..Self::new(name, ours, "", &[]) }
    }

    pub(crate) fn unit(self, unit: Unit) -> Self {
        Self { unit, ..self }
    }

    pub(crate) fn judged(self, judged: Metric) -> Self {
        Self { judged, ..self }
    }

    pub(crate) fn goal(self, goal: Goal) -> Self {
        Self { goal: Some(goal), ..self }
    }

    /// The value that the goal is about in each round.
    fn values(&self) -> Vec<f64> {
        let both = self.ours.iter().zip(&self.theirs);
        match self.judged {
            Metric::Ratio => both.map(|(ours, theirs)| ours / theirs).collect(),
            Metric::Speedup => both.map(|(ours, theirs)| theirs / ours).collect(),
            Metric::Ours => self.ours.clone(),
        }
    }

    /// The median of what is judged; `None`: not measured.
    pub(crate) fn value(&self) -> Option<f64> {
        Some(median(self.values())).filter(|value| !value.is_nan())
    }

    pub(crate) fn judged_unit(&self) -> Unit {
        if self.judged == Metric::Ours { self.unit } else { Unit::Times }
    }

    pub(crate) fn is_met(&self) -> bool {
        self.goal.zip(self.value()).is_some_and(|(goal, value)| goal.is_met_by(value))
    }

    pub(crate) fn goal_text(&self) -> String {
        self.goal.map_or(String::new(), |goal| goal.text(self.judged_unit()))
    }

    fn cells(&self) -> [String; 6] {
        const NOT_MEASURED: &str = "not measured";
        let show = |values: &[f64]| match median(values.iter().copied()) {
            median if median.is_nan() => NOT_MEASURED.to_owned(),
            median => self.unit.show(median),
        };
        let compared_with = match &*self.peer {
            "" => String::new(),
            peer => format!("{peer} {}", show(&self.theirs)),
        };
        let ratio = match self.value() {
            _ if self.judged == Metric::Ours => String::new(),
            None => NOT_MEASURED.to_owned(),
            Some(value) => format!("**{}**{}", Unit::Times.show(value), spread(&self.values())),
        };
        let verdict = match (self.goal, self.value()) {
            (None, _) => "",
            (_, None) => NOT_MEASURED,
            _ if self.is_met() => "met",
            _ => "**missed**",
        };
        let (name, goal) = (self.name.clone(), self.goal_text());
        [name, show(&self.ours), compared_with, ratio, goal, verdict.to_owned()]
    }
}

/// The middle half of the rounds, where there are enough to speak of one.
fn spread(values: &[f64]) -> String {
    if values.len() < 5 {
        return String::new();
    }
    let [low, high] = [0.25, 0.75].map(|part| quantile(values.iter().copied(), part));
    format!(" ({low:.2}–{high:.2})")
}

impl Unit {
    pub(crate) fn show(self, value: f64) -> String {
        let digits = match (self, value) {
            (Self::Times, _) => 2,
            (Self::Ms, ..1.0) => 3,
            (Self::Ms, ..10.0) => 2,
            (Self::Ms | Self::Kb, _) => 1,
            (Self::Mb | Self::PerSecond | Self::Count, _) => 0,
        };
        format!("{value:.digits$}{}", self.suffix())
    }

    fn suffix(self) -> &'static str {
        match self {
            Self::Times => "×",
            Self::Ms => " ms",
            Self::Mb => " MB",
            Self::Kb => " KB",
            Self::PerSecond => "/s",
            Self::Count => "",
        }
    }
}

impl Goal {
    fn is_met_by(self, value: f64) -> bool {
        match self {
            Self::AtLeast(bound) => value >= bound,
            Self::AtMost(bound) => value <= bound,
            Self::Below(bound) => value < bound,
        }
    }

    fn text(self, unit: Unit) -> String {
        let (sign, bound) = match self {
            Self::AtLeast(bound) => ("≥", bound),
            Self::AtMost(bound) => ("≤", bound),
            Self::Below(bound) => ("<", bound),
        };
        format!("{sign} {bound}{}", unit.suffix())
    }
}

/// The rows as a table; `title` is the head of the first column.
pub(crate) fn comparison(title: &str, rows: &[Row]) -> Table {
    let head = [title, "Takeback:", "compared with:", "ratio (middle half):", "goal", ""];
    rows.iter().fold(Table::new(head), |table, row| table.row(row.cells()))
}

/// A table in Markdown.
pub(crate) struct Table {
    text: String,
}

impl Table {
    /// A title that ends with a colon is that of a column aligned to the right.
    pub(crate) fn new<'a>(titles: impl IntoIterator<Item = &'a str>) -> Self {
        let titles: Vec<&str> = titles.into_iter().collect();
        let table =
            Self { text: String::new() }.row(titles.iter().map(|t| t.trim_end_matches(':')));
        let lines = titles.iter().map(|title| if title.ends_with(':') { "--:|" } else { "---|" });
        Self { text: format!("{}|{}\n", table.text, lines.collect::<String>()) }
    }

    pub(crate) fn row<T: fmt::Display>(mut self, cells: impl IntoIterator<Item = T>) -> Self {
        self.add(cells);
        self
    }

    pub(crate) fn add<T: fmt::Display>(&mut self, cells: impl IntoIterator<Item = T>) {
        for cell in cells {
            write!(self.text, "| {cell} ").expect("text can be written to memory");
        }
        self.text.push_str("|\n");
    }
}

impl fmt::Display for Table {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.text)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_ratio_is_the_median_of_the_ratios_of_rounds() {
        // Another program ran during the second round. The ratio of the medians would be 6.
        let rows = [
            Row::new("edit", &[10.0, 100.0, 12.0], "git", &[50.0, 400.0, 72.0])
                .judged(Metric::Speedup)
                .goal(Goal::AtLeast(5.5)),
            Row::new("fork", &[0.1], "worst", &[0.3]).judged(Metric::Ours).goal(Goal::Below(5.0)),
            Row::new("read", &[2.0], "peer", &[]).goal(Goal::AtMost(1.0)),
        ];
        assert_eq!(
            comparison("case", &rows).to_string(),
            "| case | Takeback | compared with | ratio (middle half) | goal |  |\n\
             |---|--:|--:|--:|---|---|\n\
             | edit | 12.0 ms | git 72.0 ms | **5.00×** | ≥ 5.5× | **missed** |\n\
             | fork | 0.100 ms | worst 0.300 ms |  | < 5 ms | met |\n\
             | read | 2.00 ms | peer not measured | not measured | ≤ 1× | not measured |\n"
        );
    }
}
