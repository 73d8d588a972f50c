//! Growth of the store, next to a shadow git and restic: a first point of a real tree, then a hundred
//! points of three small edits each.
//!
//! Sizes are blocks on disk, as `du` counts them.

use std::collections::BTreeMap;
use std::fs;
use std::path::{Path, PathBuf};

use serde::Serialize;

use crate::Result;
use crate::corpus::{Corpus, CorpusArgs, TreeSize};
use crate::driver::git::ShadowGit;
use crate::driver::library::{Library, Mode};
use crate::driver::restic::Restic;
use crate::driver::{Driver, WorkFolders, version};
use crate::edits::Edits;
use crate::measure::blocks_of;
use crate::report::{Goal, Row, Unit, comparison};
use crate::results::Results;

#[derive(clap::Args)]
pub(crate) struct Args {
    #[arg(long, default_value_t = 100)]
    points: usize,
    /// Tree to measure with
    #[arg(long, value_enum, default_value = "medium")]
    tree: TreeSize,
    #[command(flatten)]
    corpus: CorpusArgs,
}

/// Files that are edited in turn.
const EDITED: usize = 300;
const EDITS_PER_POINT: usize = 3;

/// Bytes of each file, or folder, right below the store's folder.
type Parts = BTreeMap<String, u64>;

#[derive(Serialize)]
struct Growth {
    name: &'static str,
    first: Parts,
    after: Parts,
    /// After `cleanup`, `gc` or `prune`.
    cleaned: Parts,
}

pub(crate) fn run(args: &Args, results: &Results) -> Result<()> {
    let corpus = Corpus::open_or_make(&args.corpus, args.tree)?;
    let site = WorkFolders { tree: corpus.tree.clone(), states: corpus.states.clone() };
    let mut drivers: Vec<(&str, Box<dyn Driver>)> = vec![
        ("checkpoints", Box::new(Library::new(&site, Mode::Reopened))),
        ("an agent's turns", Box::new(Library::new(&site, Mode::AgentTurns))),
        ("shadow git", Box::new(ShadowGit::new(&site))),
    ];
    if version("restic", "version").is_some() {
        drivers.push(("restic", Box::new(Restic::new(&site))));
    } else {
        eprintln!("restic is not installed and is skipped: apt install restic");
    }
    let edited = edited_files(&corpus)?;
    let measure = |(name, mut driver): (&'static str, Box<dyn Driver>)| {
        eprintln!("{name} …");
        measure(name, &mut *driver, &edited, args.points)
    };
    let growths =
        corpus.change(|| drivers.into_iter().map(measure).collect::<Result<Vec<Growth>>>())?;
    let rows = rows(&growths, args.points);
    let (files, bytes) = (corpus.paths.len(), corpus.bytes);
    let title = format!("{files} files, {bytes} bytes, {} points", args.points);
    println!("{}", comparison(&title, &rows));
    results.finish("growth", (rows, growths)).map(drop)
}

/// Files of usual size, all over the tree, with their contents.
fn edited_files(corpus: &Corpus) -> Result<Vec<(PathBuf, Vec<u8>)>> {
    let is_usual =
        |path: &PathBuf| fs::metadata(path).is_ok_and(|file| (500..60_000).contains(&file.len()));
    let paths = corpus.spread(EDITED.min(corpus.paths.len()), 0).filter(is_usual);
    paths.map(|path| Ok((path.clone(), fs::read(path)?))).collect()
}

fn measure(
    name: &'static str,
    driver: &mut dyn Driver,
    edited: &[(PathBuf, Vec<u8>)],
    points: usize,
) -> Result<Growth> {
    driver.reset()?;
    driver.make_point()?;
    let first = parts(driver.store())?;
    for point in 1..=points {
        let at = |n| (point * EDITS_PER_POINT + n) * 7 % edited.len();
        let paths = (0..EDITS_PER_POINT).map(|n| edited[at(n)].0.clone());
        driver.store_edits(&Edits::of(paths, point)?)?;
    }
    let after = parts(driver.store())?;
    driver.clean_up()?;
    let cleaned = parts(driver.store())?;
    for (path, contents) in edited {
        fs::write(path, contents)?;
    }
    Ok(Growth { name, first, after, cleaned })
}

fn rows(growths: &[Growth], points: usize) -> Vec<Row> {
    let find = |name| growths.iter().find(|growth| growth.name == name);
    let mut rows = Vec::new();
    for growth in growths {
        let grown = lasting(&growth.after).saturating_sub(lasting(&growth.first));
        let per_point = [kilobytes(grown) / kilobytes(points as u64 * 1000)];
        let row = Row::alone(format!("growth per point, {}", growth.name), &per_point, Unit::Kb);
        rows.push(if growth.is_ours() { row.goal(Goal::AtMost(8.0)) } else { row });
    }
    let goals = [("shadow git", Goal::AtMost(0.45)), ("restic", Goal::Below(1.0))];
    for (peer, goal) in goals {
        let Some(theirs) = find(peer) else { continue };
        for ours in growths.iter().filter(|growth| growth.is_ours()) {
            let row = |what: &str, of: &Parts| {
                let (ours_mb, theirs_mb) = (megabytes(of), megabytes(&theirs.after));
                let name = format!("store after {points} points, {}{what}", ours.name);
                Row::new(name, &[ours_mb], &format!("{peer} before it cleans up"), &[theirs_mb])
                    .unit(Unit::Mb)
            };
            rows.push(row("", &ours.after).goal(goal));
            rows.push(row(", after cleanup", &ours.cleaned));
        }
    }
    rows
}

impl Growth {
    fn is_ours(&self) -> bool {
        self.after.contains_key("timeline.db")
    }
}

fn parts(store: &Path) -> Result<Parts> {
    let entries = fs::read_dir(store)?;
    let part = |entry: std::io::Result<fs::DirEntry>| {
        let entry = entry?;
        Ok((entry.file_name().to_string_lossy().into_owned(), blocks_of(&entry.path())?))
    };
    entries.map(part).collect()
}

/// Without Takeback's write-ahead log, which is overwritten again and again, and its index, which is
/// about the tree and not about points.
fn lasting(parts: &Parts) -> u64 {
    const PASSING: [&str; 3] = ["index", "timeline.db-wal", "timeline.db-shm"];
    let is_ours = parts.contains_key("timeline.db");
    let lasts = |name: &String| !(is_ours && PASSING.contains(&name.as_str()));
    parts.iter().filter(|(name, _)| lasts(name)).map(|(_, bytes)| bytes).sum()
}

fn megabytes(parts: &Parts) -> f64 {
    kilobytes(parts.values().sum()) / 1000.0
}

#[expect(clippy::cast_precision_loss, reason = "sizes on a disk are far below 2^52")]
fn kilobytes(bytes: u64) -> f64 {
    bytes as f64 / 1000.0
}
