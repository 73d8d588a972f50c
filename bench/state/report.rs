//! The table for people and the numbers for later.

use std::fmt::Write as _;

use serde::Serialize;
use takeback_bench::Result;
use takeback_bench::machine::{self, load_average};
use takeback_bench::measure::median;

use crate::peer::Facts;
use crate::rounds::{Appended, Conversation, ENDS, Grown, Measured, Moves, Static};

#[derive(Serialize)]
pub(crate) struct Report {
    date: String,
    machine: Machine,
    peer: Peer,
    rows: Vec<Row>,
    measured: Measured,
}

#[derive(Serialize)]
#[serde(rename_all = "snake_case")]
enum Peer {
    Measured(Facts),
    /// And why.
    NotMeasured(String),
}

#[derive(Serialize)]
struct Machine {
    #[serde(flatten)]
    machine: machine::Machine,
    fsync_ms: f64,
    sqlite: &'static str,
    takeback: &'static str,
    load_before: String,
    load_after: String,
}

/// One case: medians of its rounds.
#[derive(Serialize)]
struct Row {
    name: String,
    unit: &'static str,
    takeback: f64,
    beside: Beside,
    /// What is judged: round by round where there is something to divide by, otherwise what Takeback
    /// has alone. `None`: not measured.
    reached: Option<f64>,
    goal: Option<Goal>,
}

#[derive(Serialize, Clone, Copy)]
struct Goal {
    bound: Bound,
    /// `None`: not measured.
    met: Option<bool>,
}

#[derive(Serialize, Clone, Copy)]
#[serde(rename_all = "snake_case")]
enum Bound {
    AtLeast(f64),
    AtMost(f64),
    Under(f64),
}

/// What Takeback is seen beside.
#[derive(Serialize, Clone)]
#[serde(rename_all = "snake_case")]
enum Beside {
    Peer(Option<f64>),
    RawSqlite(f64),
    /// Itself, when it took longest.
    Worst(f64),
}

impl Report {
    pub(crate) fn new(
        date: String,
        peer: std::result::Result<Facts, String>,
        measured: Measured,
        load_before: String,
    ) -> Result<Self> {
        let mut rows = conversation_rows(&measured.prose);
        rows.extend(small_rows(&measured));
        rows.extend(latest_rows(&measured));
        let what = "100 KB that stay, in 100 steps";
        let [grown, whole] = static_rows(what, &measured.static_prose);
        rows.extend([grown.goal(Bound::AtMost(1.5)), whole]);
        rows.extend(measured.moves.iter().rev().flat_map(move_rows));
        rows.extend(random_rows(&measured.random));
        let what = "100 KB that stay, and do not pack, in 100 steps";
        rows.extend(static_rows(what, &measured.static_random));
        let machine = Machine {
            machine: machine::Machine::this()?,
            fsync_ms: median(measured.fsync_ms.iter().copied()),
            sqlite: rusqlite::version(),
            takeback: env!("CARGO_PKG_VERSION"),
            load_before,
            load_after: load_average()?,
        };
        let peer = match peer {
            Ok(facts) => Peer::Measured(facts),
            Err(why) => Peer::NotMeasured(why),
        };
        Ok(Self { date, machine, peer, rows, measured })
    }

    pub(crate) fn file_name(&self) -> String {
        format!("{}-state.json", self.date)
    }

    pub(crate) fn json(&self) -> Result<String> {
        Ok(serde_json::to_string_pretty(self)? + "\n")
    }

    pub(crate) fn table(&self) -> String {
        let mut out = String::new();
        self.write(&mut out).expect("text can be written to memory");
        out
    }

    fn write(&self, out: &mut String) -> std::fmt::Result {
        let Machine { machine, fsync_ms, sqlite, load_before, load_after, .. } = &self.machine;
        let machine::Machine { cores, kernel, .. } = machine;
        writeln!(
            out,
            "{cores} cores, {kernel}; an fsync takes {fsync_ms:.2} ms; load {load_before} before, {load_after} after."
        )?;
        match &self.peer {
            Peer::Measured(Facts { package, base, python, sqlite, journal, synchronous }) => {
                let weaker = if *synchronous >= 2 { "FULL" } else { "which is weaker than FULL" };
                writeln!(
                    out,
                    "Peer: langgraph-checkpoint-sqlite {package} (langgraph-checkpoint {base}), Python {python}, SQLite {sqlite}; as it comes: journal {journal}, synchronous {synchronous}, {weaker}."
                )?;
            }
            Peer::NotMeasured(why) => writeln!(out, "Peer: not measured: {why}.")?,
        }
        let [alone, whole] = self.measured.prose_packs;
        writeln!(
            out,
            "Raw: SQLite {sqlite}, WAL, synchronous FULL. Text: zstd makes it {alone:.2} times smaller message by message, {whole:.2} times at once.\n"
        )?;
        writeln!(out, "| case | Takeback | beside | ratio | goal | |")?;
        writeln!(out, "|---|--:|--:|--:|---|---|")?;
        self.rows.iter().try_for_each(|row| self.write_row(out, row))
    }

    fn write_row(&self, out: &mut String, row: &Row) -> std::fmt::Result {
        let why = match &self.peer {
            Peer::Measured(_) => "not in this case",
            Peer::NotMeasured(why) => why,
        };
        let amount = |value: f64| match row.unit {
            "puts/s" => format!("{value:.0} puts/s"),
            unit => format!("{value:.2}{unit}"),
        };
        let beside = match row.beside {
            Beside::Peer(Some(value)) => format!("peer {}", amount(value)),
            Beside::Peer(None) => format!("not measured: {why}"),
            Beside::RawSqlite(value) => format!("raw {}", amount(value)),
            Beside::Worst(value) => format!("worst {}", amount(value)),
        };
        let is_ratio = !matches!(row.beside, Beside::Worst(_));
        let reached = match row.reached {
            Some(reached) if is_ratio => format!("**{reached:.2}×**"),
            Some(_) => "–".to_owned(),
            None => "not measured".to_owned(),
        };
        let unit = if is_ratio { "×" } else { " ms" };
        let (goal, met) = match row.goal {
            Some(Goal { bound, met }) => {
                let goal = match bound {
                    Bound::AtLeast(bound) => format!("≥ {bound}{unit}"),
                    Bound::AtMost(bound) => format!("≤ {bound}{unit}"),
                    Bound::Under(bound) => format!("< {bound}{unit}"),
                };
                let met = match met {
                    Some(true) => "met",
                    Some(false) => "**missed**",
                    None => "not measured",
                };
                (goal, met)
            }
            None => ("–".to_owned(), "–"),
        };
        let takeback = amount(row.takeback);
        writeln!(out, "| {} | {takeback} | {beside} | {reached} | {goal} | {met} |", row.name)
    }
}

impl Row {
    fn new(
        name: impl Into<String>,
        unit: &'static str,
        takeback: f64,
        beside: Beside,
        reached: Option<f64>,
    ) -> Self {
        Self { name: name.into(), unit, takeback, beside, reached, goal: None }
    }

    fn goal(mut self, bound: Bound) -> Self {
        let met = self.reached.map(|reached| match bound {
            Bound::AtLeast(bound) => reached >= bound,
            Bound::AtMost(bound) => reached <= bound,
            Bound::Under(bound) => reached < bound,
        });
        self.goal = Some(Goal { bound, met });
        self
    }
}

fn conversation_rows(rounds: &[Conversation]) -> Vec<Row> {
    let (name, growth) = ("1,000 steps of 2 KB", |side: &Appended| side.last_ms / side.first_ms);
    let takeback =
        |of: &dyn Fn(&Appended) -> f64| middle(rounds, |round| Some(of(&round.takeback)));
    let peer = |of: &dyn Fn(&Appended) -> f64| middle(rounds, |round| round.peer.as_ref().map(of));
    let mut rows = vec![disk_row(name, rounds).goal(Bound::AtMost(1.0))];
    let own = takeback(&growth);
    rows.push(
        Row::new(
            format!("{name}: last {ENDS} puts over the first {ENDS}"),
            "×",
            own.unwrap_or(f64::NAN),
            Beside::Peer(peer(&growth)),
            own,
        )
        .goal(Bound::AtMost(2.0)),
    );
    rows.push(rate_row(name, rounds, |round| round.peer.as_ref()).goal(Bound::AtLeast(3.0)));
    if rounds.iter().any(|round| round.peer_full.is_some()) {
        let name = format!("{name}, the peer set to FULL");
        rows.push(rate_row(&name, rounds, |round| round.peer_full.as_ref()));
    }
    rows
}

fn random_rows(rounds: &[Conversation]) -> Vec<Row> {
    let name = "1,000 steps of 2 KB that do not pack";
    vec![disk_row(name, rounds), rate_row(name, rounds, |round| round.peer.as_ref())]
}

fn disk_row(name: &str, rounds: &[Conversation]) -> Row {
    let over = |side: &Appended, round: &Conversation| times(side.disk_bytes, round.unique_bytes);
    let own = middle(rounds, |round| Some(over(&round.takeback, round)));
    let peer = middle(rounds, |round| round.peer.as_ref().map(|peer| over(peer, round)));
    let name = format!("{name}: disk over unique bytes");
    Row::new(name, "×", own.unwrap_or(f64::NAN), Beside::Peer(peer), own)
}

fn rate_row(
    name: &str,
    rounds: &[Conversation],
    beside: impl Fn(&Conversation) -> Option<&Appended>,
) -> Row {
    let own = middle(rounds, |round| Some(round.takeback.puts_per_second));
    let peer = middle(rounds, |round| beside(round).map(|peer| peer.puts_per_second));
    let ratio = middle(rounds, |round| {
        beside(round).map(|peer| round.takeback.puts_per_second / peer.puts_per_second)
    });
    let name = format!("{name}: puts");
    Row::new(name, "puts/s", own.unwrap_or(f64::NAN), Beside::Peer(peer), ratio)
}

fn small_rows(measured: &Measured) -> [Row; 4] {
    use crate::rounds::Small;
    let rounds = &measured.small;
    type Of = fn(&Small) -> f64;
    let row = |name: &str, of: Of, raw: Of| {
        let beside = Beside::RawSqlite(median(rounds.iter().map(raw)));
        let ratio = median(rounds.iter().map(|round| of(round) / raw(round)));
        Row::new(name, "puts/s", median(rounds.iter().map(of)), beside, Some(ratio))
    };
    let (one, eight): (Of, Of) = (|round| round.one_writer, |round| round.eight_writers);
    let (keyed, bare): (Of, Of) = (|round| round.raw, |round| round.bare);
    [
        row("1 KB states, one writer", one, keyed).goal(Bound::AtLeast(0.9)),
        row("1 KB states, 8 writers", eight, keyed).goal(Bound::AtLeast(4.0)),
        row("1 KB states, one writer, beside rows without a key", one, bare),
        row("1 KB states, 8 writers, beside rows without a key", eight, bare),
    ]
}

fn latest_rows(measured: &Measured) -> [Row; 2] {
    let rounds = &measured.latest;
    let row = |name: &str,
               own: &dyn Fn(&crate::rounds::Latest) -> f64,
               peer: &dyn Fn(&crate::rounds::Latest) -> Option<f64>| {
        let ratio = middle(rounds, |round| Some(peer(round)? / own(round)));
        let beside = Beside::Peer(middle(rounds, peer));
        Row::new(name, " ms", median(rounds.iter().map(own)), beside, ratio)
            .goal(Bound::AtLeast(1.0))
    };
    [
        row(
            "newest state after 1,000 steps of 2 KB, opened for it",
            &|round| round.takeback_fresh,
            &|round| round.peer_fresh,
        ),
        row(
            "newest state after 1,000 steps of 2 KB, read again",
            &|round| round.takeback_warm,
            &|round| round.peer_warm,
        ),
    ]
}

/// What the steps add to a store, and the whole of it: the tables of one that is empty take as much as
/// the value.
fn static_rows(name: &str, rounds: &[Static]) -> [Row; 2] {
    let row = |what: &str, of: &dyn Fn(&Grown) -> u64| {
        let own = middle(rounds, |round| Some(times(of(&round.takeback), round.unique_bytes)));
        let peer = middle(rounds, |round| {
            round.peer.as_ref().map(|peer| times(of(peer), round.unique_bytes))
        });
        let name = format!("{name}: {what} over unique bytes");
        Row::new(name, "×", own.unwrap_or(f64::NAN), Beside::Peer(peer), own)
    };
    [
        row("what they add on disk", &|side| side.bytes.saturating_sub(side.empty_bytes)),
        row("all of the store", &|side| side.bytes),
    ]
}

/// Judged at the most steps; at fewer, to see that the time is constant.
fn move_rows(moves: &Moves) -> Vec<Row> {
    let goal = (moves.steps >= 10_000).then_some(Bound::Under(5.0));
    let Moves { fork, rollback, undo, .. } = moves;
    [("fork", fork, goal), ("rollback", rollback, goal), ("undo of a rollback", undo, None)]
        .into_iter()
        .map(|(what, times, goal)| {
            let middle = median(times.iter().copied());
            let most = times.iter().copied().fold(0.0, f64::max);
            let name = format!("{what} at {} steps", moves.steps);
            let row = Row::new(name, " ms", middle, Beside::Worst(most), Some(middle));
            match goal {
                Some(bound) => row.goal(bound),
                None => row,
            }
        })
        .collect()
}

/// The median of the rounds in which it was measured, if there are any.
fn middle<T>(rounds: &[T], of: impl Fn(&T) -> Option<f64>) -> Option<f64> {
    let values: Vec<f64> = rounds.iter().filter_map(of).collect();
    (!values.is_empty()).then(|| median(values))
}

#[expect(clippy::cast_precision_loss, reason = "sizes on a disk are far below 2^52")]
fn times(disk: u64, unique: usize) -> f64 {
    disk as f64 / unique as f64
}
