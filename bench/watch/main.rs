//! A snapshot of a tree in which nothing happened, with a watcher: inside of a process that has the
//! workspace open, and asked of a running `takeback serve --watch`. Beside them, in the same rounds, the
//! least that it takes without one: `stat` of every file whose name is known, on all cores.
//!
//! `watch --corpus DIR [--rounds N] [--takeback PROGRAM]`: the tree is only read; the store lies in a
//! temporary folder. A table is printed, and everything measured goes to `bench/results/`.

#![expect(clippy::print_stdout, reason = "a benchmark prints what it measured")]
#![expect(clippy::disallowed_methods, reason = "the bench plays the user and the agent")]

use std::cell::Cell;
use std::fs;
use std::io::{BufRead as _, BufReader, Write as _};
use std::path::{Path, PathBuf};
use std::process::{Child, ChildStdin, ChildStdout, Command, Stdio};
use std::sync::Arc;
use std::time::{Instant, SystemTime, UNIX_EPOCH};

use serde::Serialize;
use takeback_bench::Result;
use takeback_bench::floor::Floor;
use takeback_bench::measure::{median, millis};
use takeback_bench::results::save;
use takeback_core::watch::{EVERY, Trust, Watched};
use takeback_core::worktree::scope::ScopeOptions;
use takeback_core::{Ambient, Limits, Workspace, WorkspaceOptions, checkpoint};
use takeback_store::{SqliteStates, SqliteStore, Store, Timestamp, Vouched};

/// A watched snapshot takes less than this part of the floor.
const GOAL: f64 = 0.1;

struct Wish {
    corpus: PathBuf,
    rounds: usize,
    takeback: PathBuf,
}

#[derive(Debug, Serialize)]
struct Report {
    files: usize,
    folders: usize,
    rounds: usize,
    rows: Vec<Row>,
}

#[derive(Debug, Serialize)]
struct Row {
    name: &'static str,
    ms: f64,
    /// Median of those against the floor of the same round.
    ratio: f64,
    goal: Option<f64>,
    all_ms: Vec<f64>,
}

fn main() -> Result<()> {
    let wish = wish()?;
    let tree = fs::canonicalize(&wish.corpus)?;
    let mut found = Found::default();
    found.look(&tree, Path::new(""))?;
    let floor = Floor::new(&tree, &found.files)?;
    let desk = std::env::temp_dir().join(format!("takeback-bench-watch-{}", std::process::id()));
    fs::create_dir(&desk)?;
    let measured = rounds(&wish, &tree, &desk, &floor);
    fs::remove_dir_all(&desk)?;
    let [floor, scanned, inside, served] = measured?;
    let row = |name, ms: Vec<f64>, goal| {
        let ratio = median(ms.iter().zip(&floor).map(|(ms, floor)| ms / floor));
        Row { name, ms: median(ms.iter().copied()), ratio, goal, all_ms: ms }
    };
    let report = Report {
        files: found.files.len(),
        folders: found.folders,
        rounds: wish.rounds,
        rows: vec![
            row("stat of every file, all cores", floor.clone(), None),
            row("snapshot without a watcher, in process", scanned, None),
            row("snapshot with a watcher, in process", inside, Some(GOAL)),
            row("checkpoint:create of serve --watch, round trip", served, Some(GOAL)),
        ],
    };
    println!("{} files, {} folders, {} rounds", report.files, report.folders, report.rounds);
    for row in &report.rows {
        let goal = row.goal.map_or(String::new(), |goal| format!("  goal below {goal}"));
        println!("{:<48} {:>9.3} ms  {:>7.4} of the floor{goal}", row.name, row.ms, row.ratio);
    }
    save("watch", &report)
}

fn wish() -> Result<Wish> {
    let mut wish = Wish {
        corpus: PathBuf::new(),
        rounds: 21,
        takeback: PathBuf::from(env!("CARGO_MANIFEST_DIR")).join("../target/release/takeback"),
    };
    let mut arguments = std::env::args().skip(1);
    while let Some(name) = arguments.next() {
        let value = arguments.next().ok_or_else(|| format!("{name} needs a value"))?;
        match name.as_str() {
            "--corpus" => wish.corpus = value.into(),
            "--rounds" => wish.rounds = value.parse()?,
            "--takeback" => wish.takeback = value.into(),
            _ => return Err(format!("{name} means nothing").into()),
        }
    }
    if wish.corpus.as_os_str().is_empty() {
        return Err("--corpus DIR names the tree".into());
    }
    Ok(wish)
}

/// Every file of a tree, from its root.
#[derive(Default)]
struct Found {
    files: Vec<PathBuf>,
    folders: usize,
}

impl Found {
    fn look(&mut self, tree: &Path, folder: &Path) -> Result<()> {
        self.folders += 1;
        for entry in fs::read_dir(tree.join(folder))? {
            let entry = entry?;
            let path = folder.join(entry.file_name());
            if !entry.file_type()?.is_dir() {
                self.files.push(path);
            } else if entry.file_name() != ".git" {
                self.look(tree, &path)?;
            }
        }
        Ok(())
    }
}

/// Floor, without a watcher, with one inside, with one asked: milliseconds, round by round.
fn rounds(wish: &Wish, tree: &Path, desk: &Path, floor: &Floor) -> Result<[Vec<f64>; 4]> {
    let mut plain = open(tree, &desk.join("plain"))?;
    let mut watched = open(tree, &desk.join("watched"))?;
    watched.watched = Some(Arc::new(Watched::new(Trust::WithScans { every: EVERY })));
    let mut server = Server::start(&wish.takeback, tree, &desk.join("home"))?;
    // First everything is read, then looked at until all times are old enough to be trusted.
    for _ in 0..3 {
        checkpoint(&mut plain, None)?;
        checkpoint(&mut watched, None)?;
        server.snapshot()?;
    }
    let mut all: [Vec<f64>; 4] = Default::default();
    for _ in 0..wish.rounds {
        all[0].push(floor.measure()?.wall_ms);
        all[1].push(timed(|| Ok(checkpoint(&mut plain, None).map(drop)?))?);
        all[2].push(timed(|| Ok(checkpoint(&mut watched, None).map(drop)?))?);
        all[3].push(timed(|| server.snapshot())?);
    }
    let on_its_word = |point: &takeback_store::Point| point.vouched == Vouched::Watch;
    let made = watched.store.points()?.iter().filter(|point| on_its_word(point)).count();
    if made < wish.rounds {
        return Err("the watcher was not believed: not what was to be measured".into());
    }
    server.expect_watched()?;
    Ok(all)
}

fn timed(work: impl FnOnce() -> Result<()>) -> Result<f64> {
    let began = Instant::now();
    work()?;
    Ok(millis(began.elapsed()))
}

fn open(tree: &Path, store_dir: &Path) -> Result<Workspace> {
    let store: Box<dyn Store> = Box::new(SqliteStore::create(store_dir)?);
    let ids = Cell::new(1);
    Ok(Workspace::open(WorkspaceOptions {
        root: tree.to_owned(),
        states: Arc::new(SqliteStates::at(store_dir)),
        store_dir: store_dir.to_owned(),
        store,
        home: None,
        scope: ScopeOptions::default(),
        limits: Limits::default(),
        ambient: Ambient {
            now: Box::new(|| {
                let since = SystemTime::now().duration_since(UNIX_EPOCH).unwrap_or_default();
                Timestamp(i64::try_from(since.as_millis()).unwrap_or(i64::MAX))
            }),
            file_time: Box::new(takeback_core::system_file_time),
            random: Box::new(move || ids.replace(ids.get() + 1)),
            watch: None,
        },
    })?)
}

/// `takeback serve --stdio --watch`, until it is dropped.
struct Server {
    child: Child,
    input: ChildStdin,
    output: BufReader<ChildStdout>,
}

impl Server {
    fn start(program: &Path, tree: &Path, home: &Path) -> Result<Self> {
        let mut child = Command::new(program)
            .args(["serve", "--stdio", "--watch", "--home"])
            .arg(home)
            .arg("-C")
            .arg(tree)
            .stdin(Stdio::piped())
            .stdout(Stdio::piped())
            .spawn()
            .map_err(|error| format!("{}: {error}", program.display()))?;
        let input = child.stdin.take().ok_or("no standard input")?;
        let output = BufReader::new(child.stdout.take().ok_or("no standard output")?);
        Ok(Self { child, input, output })
    }

    fn call(&mut self, method: &str) -> Result<serde_json::Value> {
        writeln!(self.input, r#"{{"jsonrpc":"2.0","id":1,"method":"{method}"}}"#)?;
        self.input.flush()?;
        let mut line = String::new();
        self.output.read_line(&mut line)?;
        let mut answer: serde_json::Value = serde_json::from_str(&line)?;
        match answer.get("error") {
            Some(error) => Err(error.to_string().into()),
            None => Ok(answer["result"].take()),
        }
    }

    fn snapshot(&mut self) -> Result<()> {
        self.call("checkpoint:create").map(drop)
    }

    fn expect_watched(&mut self) -> Result<()> {
        match self.call("status")?["point"]["vouchedBy"].as_str() {
            Some("watch") => Ok(()),
            other => Err(format!("the last point is vouched for by {other:?}").into()),
        }
    }
}

impl Drop for Server {
    fn drop(&mut self) {
        // It may have ended already.
        drop(self.child.kill());
        drop(self.child.wait());
    }
}
