//! Questions about a workspace with many points, next to plain `log`, to `git blame` of the same history, and
//! to the same questions about a workspace with few points. Each is a process of its own.

mod bisection;
mod history;

use std::path::PathBuf;

use self::bisection::count_runs;
use self::history::{FEW, History, LONG, MINE, OLD, RECENT, TOGETHER};
use crate::Result;
use crate::driver::takeback::build;
use crate::measure::Commands;
use crate::report::{Goal, Row, Unit, comparison};
use crate::results::Results;
use crate::rounds::Rounds;
use crate::scratch::Scratch;

#[derive(clap::Args)]
pub(crate) struct Args {
    #[arg(long, default_value_t = 15)]
    rounds: usize,
    #[arg(long, default_value_t = 30_000)]
    files: usize,
    /// Points in the larger of the two workspaces
    #[arg(long, default_value_t = 10_000)]
    points: usize,
    /// Folder to make the workspaces in, or to use them again from
    #[arg(long, value_name = "DIR")]
    keep: Option<PathBuf>,
}

const LIKE_LOG: Goal = Goal::AtMost(2.0);
const LIKE_GIT: Goal = Goal::AtMost(3.0);
const LIKE_FEW: Goal = Goal::AtMost(2.0);
const BISECTED: usize = 1_000;
const MOST_RUNS: Goal = Goal::AtMost(11.0);

/// Questions whose answer does not grow with the number of points.
const BOUNDED: [&[&str]; 15] = [
    &["log"],
    &["log", "--json"],
    &["log", RECENT],
    &["log", OLD],
    &["log", "src"],
    &["history", RECENT],
    &["history", OLD],
    &["blame", RECENT],
    &["blame", OLD],
    &["why", "src/old.txt:10"],
    &["show", "@"],
    &["show", "@~50"],
    &["show", "@~50", "-p"],
    &["diff", "@~50!"],
    &["cat", "@~50:src/recent.txt"],
];

/// One comparison.
struct Case {
    name: String,
    ours: Commands,
    theirs: Commands,
    peer: &'static str,
    goal: Option<Goal>,
}

pub(crate) fn run(args: &Args, results: &Results) -> Result<()> {
    let programs = Scratch::new()?;
    let program = build(programs.path())?;
    let scratch = |points: usize| match &args.keep {
        Some(folder) => Scratch::kept(&folder.join(format!("{}-{points}", args.files))),
        None => Scratch::new(),
    };
    let many = History::open_or_make(scratch(args.points)?, &program, args.files, args.points)?;
    let few = History::open_or_make(scratch(FEW)?, &program, args.files, FEW)?;
    let cases = cases(&many, &few);
    let rounds = Rounds { count: args.rounds, warm_up: 1, group: 2 };
    let times = rounds.run(2 * cases.len(), |number, _| {
        let case = &cases[number / 2];
        let commands = if number % 2 == 0 { &case.ours } else { &case.theirs };
        Ok(commands.time("")?.wall_ms)
    })?;
    let mut rows: Vec<Row> = cases
        .into_iter()
        .zip(times.chunks(2))
        .map(|(case, times)| Row {
            goal: case.goal,
            ..Row::new(case.name, &times[0], case.peer, &times[1])
        })
        .collect();
    let runs = count_runs(&program, BISECTED)?;
    let name = format!("`bisect` over {BISECTED} points: runs of the command");
    rows.push(Row::alone(name, &[runs], Unit::Count).goal(MOST_RUNS));
    let title = format!("{} files, {} points, {} rounds", args.files, args.points, args.rounds);
    println!("{}", comparison(&title, &rows));
    results.finish("questions", rows).map(drop)
}

fn cases(many: &History, few: &History) -> Vec<Case> {
    let case = |words: &[&str], theirs: Commands, peer, goal| Case {
        name: format!("`takeback {}`", words.join(" ")),
        ours: many.takeback.run(words),
        theirs,
        peer,
        goal,
    };
    let (log, git) = (many.takeback.run(&["log"]), many.git());
    let plain = git.clone().run(&["blame", LONG]);
    let copies = git.clone().run(&["blame", "-M", "-C", LONG]);
    let one_line = git.clone().run(&["blame", "-L", "1000,1000", LONG]);
    let mut cases = vec![
        case(&["blame", LONG], plain.clone(), "`git blame`", Some(LIKE_GIT)),
        case(&["blame", LONG], copies, "`git blame -M -C`", None),
        case(&["blame", "--json", LONG], plain, "`git blame`", None),
        case(&["why", "src/long.txt:1000"], one_line, "`git blame -L`", None),
        case(&["blame", MINE], git.run(&["blame", MINE]), "`git blame`", None),
        case(&["blame", TOGETHER], many.takeback.run(&["blame", LONG]), "that of long.txt", None),
    ];
    for path in [LONG, OLD] {
        for question in ["log", "history"] {
            cases.push(case(&[question, path], log.clone(), "`log`", Some(LIKE_LOG)));
        }
    }
    for words in BOUNDED {
        cases.push(case(words, few.takeback.run(words), "100 points", Some(LIKE_FEW)));
    }
    let stats = ["stats", "@~20..@"];
    cases.push(case(&stats, few.takeback.run(&stats), "100 points", None));
    cases
}
