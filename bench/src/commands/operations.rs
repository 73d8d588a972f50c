//! `revert` of a turn and `adopt` of a fork, next to the rewind of as many files.

use std::fs;
use std::path::{Path, PathBuf};

use crate::Result;
use crate::driver::takeback::{Takeback, build};
use crate::report::{Goal, Row, comparison};
use crate::results::Results;
use crate::rounds::Rounds;
use crate::scratch::{Scratch, fill};

#[derive(clap::Args)]
pub(crate) struct Args {
    #[arg(long, default_value_t = 20)]
    rounds: usize,
    /// Files in the workspace
    #[arg(long, default_value_t = 30_000)]
    files: usize,
}

/// Files that the turn changes, and the fork.
const CHANGED: usize = 13;
const CASES: usize = 4;

pub(crate) fn run(args: &Args, results: &Results) -> Result<()> {
    let scratch = Scratch::new()?;
    let program = build(scratch.path())?;
    let work = Work::new(&program, &scratch, args.files)?;
    let rounds = Rounds { count: args.rounds, warm_up: 2, group: CASES };
    let times = rounds.run(CASES, |case, _| work.measure(case))?;
    let [rewind, revert, adopt, scan] = &times[..] else { return Err("four cases".into()) };
    let allowed: Vec<f64> = rewind.iter().zip(scan).map(|(one, scan)| 2.0 * one + scan).collect();
    let rows = [
        Row::new("`revert` of a turn", revert, "`rewind`", rewind).goal(Goal::AtMost(2.0)),
        Row::new("`adopt` of a fork", adopt, "two `rewind`s and a scan", &allowed)
            .goal(Goal::AtMost(1.0)),
    ];
    let (files, rounds) = (args.files, args.rounds);
    println!("{CHANGED} changed files of {files}, {rounds} rounds:\n");
    println!("{}", comparison("the same 13 files", &rows));
    results.finish("operations", rows).map(drop)
}

/// A workspace whose newest turn changed 13 files, and a fork from before it with 13 other changes.
struct Work {
    takeback: Takeback,
    fork: PathBuf,
}

impl Work {
    fn new(program: &Path, scratch: &Scratch, files: usize) -> Result<Self> {
        let src = scratch.project().join("src");
        fill(&src, files, 50)?;
        let takeback = Takeback::in_scratch(program, scratch);
        // The second one finds file times that are old enough to be trusted.
        for label in ["first", "start"] {
            takeback.run(&["checkpoint", label, "--quiet"]).time("")?;
        }
        let fork = scratch.path().join("fork");
        takeback.run(&["fork", "start", &fork.to_string_lossy(), "--quiet"]).time("")?;
        for path in some_files(&fork.join("src"))? {
            fs::write(path, "changed in the fork\n")?;
        }
        let edits = some_files(&src)?.iter().fold(String::new(), |edits, path| {
            format!("{edits}echo changed by the turn > '{}'\n", path.display())
        });
        takeback.run(&["run", "--quiet", "--", "sh", "-c", &edits]).time("")?;
        takeback.run(&["label", "@", "turn", "--quiet"]).time("")?;
        Ok(Self { takeback, fork })
    }

    fn measure(&self, case: usize) -> Result<f64> {
        let fork = self.fork.to_string_lossy();
        let words: &[&str] = match case {
            0 => &["rewind", "turn", "-y", "--quiet"],
            1 => &["revert", "turn", "-y", "--quiet"],
            // The same files: what the turn wrote there is in the way, so it goes.
            2 => &["adopt", &fork, "-y", "--conflicts", "take", "--quiet"],
            _ => &["checkpoint", "--quiet"],
        };
        let cost = self.takeback.run(words).time("")?;
        if case < 3 {
            self.takeback.run(&["undo", "-y", "--quiet"]).time("")?;
        }
        Ok(cost.wall_ms)
    }
}

/// The first 13 files below a folder, by path.
fn some_files(folder: &Path) -> Result<Vec<PathBuf>> {
    let mut files = Vec::new();
    let mut folders = vec![folder.to_owned()];
    while let Some(folder) = folders.pop() {
        for entry in fs::read_dir(folder)? {
            let path = entry?.path();
            if path.is_dir() {
                folders.push(path);
            } else {
                files.push(path);
            }
        }
    }
    files.sort();
    files.truncate(CHANGED);
    Ok(files)
}
