//! What many points cost: the same workspace with 100 points and with 10,000, over the same paths.
//!
//! Every point is a prompt after which an agent makes three small edits, recorded as agents record.
//! Measured is what people and agents wait for: `log` and `show` as commands, a prompt and an edit as
//! events, and the rewind to the oldest point, in the library and as a command. Rounds are
//! interleaved; before each rewind everything is as it was. Peers and floors are in the other benchmarks.
//! A table is printed, and everything measured goes to `bench/results/`.

#![expect(clippy::print_stdout, reason = "a benchmark prints what it measured")]
#![expect(clippy::disallowed_methods, reason = "the bench plays the user and the agent")]

mod desk;

use serde_json::json;
use takeback_bench::Result;
use takeback_bench::machine::load_average;
use takeback_bench::measure::median;
use takeback_bench::results::save;

use self::desk::Desk;

const ROUNDS: usize = 9;
const SIZES: [usize; 2] = [100, 10_000];

/// A thing that is measured, by name.
type Measure = (&'static str, fn(&Desk) -> Result<f64>);

const MEASURES: [Measure; 8] = [
    ("`takeback log`", |desk| desk.command(&["log"])),
    ("`takeback log --json -n 1`", |desk| desk.command(&["log", "--json", "-n", "1"])),
    ("`takeback show @`", |desk| desk.command(&["show", "@"])),
    ("a prompt, as an event", Desk::prompt),
    ("an edit, as two events", Desk::edit),
    ("rewind to the oldest, library", Desk::rewind),
    ("rewind to the oldest, command", |desk| desk.rewind_command(&["-y"])),
    ("the same with `--dry-run`", |desk| desk.rewind_command(&["--dry-run"])),
];

fn main() -> Result<()> {
    let (few, many) = (Desk::with_points(SIZES[0])?, Desk::with_points(SIZES[1])?);
    let mut took = vec![(Vec::new(), Vec::new()); MEASURES.len()];
    for _ in 0..ROUNDS {
        for ((_, measure), took) in MEASURES.iter().zip(&mut took) {
            took.0.push(measure(&few)?);
            took.1.push(measure(&many)?);
        }
    }
    println!("Medians of {ROUNDS} rounds (load {}):\n", load_average()?);
    println!("| | {} points | {} points | ratio |", SIZES[0], SIZES[1]);
    println!("|---|---|---|---|");
    let mut rows = Vec::new();
    for ((name, _), (few, many)) in MEASURES.iter().zip(took) {
        let ratio = median(many.iter().zip(&few).map(|(many, few)| many / few));
        rows.push(json!({ "name": name, "few": few, "many": many, "ratio": ratio }));
        println!("| {name} | {:.1} ms | {:.1} ms | {ratio:.2} |", median(few), median(many));
    }
    save("points", &rows)
}
