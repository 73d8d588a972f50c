//! Very large trees and files: how long a point takes, and above all how much memory.
//!
//! Half a million files, a hundred thousand in one folder, a file of 2 GB with a hole in it, one of
//! 300 MB without, a tree that changes while it is read, and previews of large rewinds. There are no
//! goals.

use std::fs::{self, File};
use std::io::Write as _;
use std::os::unix::fs::FileExt as _;
use std::path::Path;
use std::sync::atomic::{AtomicBool, Ordering};

use serde_json::{Value, json};
use takeback_core::{CallTargets, Workspace, look_around};

use crate::Result;
use crate::driver::library::{Agent, only_store, open_workspace};
use crate::driver::takeback::{Takeback, build};
use crate::measure::{Commands, Cost};
use crate::report::Table;
use crate::results::Results;
use crate::scratch::{Scratch, file_path, fill};
use crate::text::noise;

#[derive(clap::Args)]
pub(crate) struct Args {
    /// Factor for all sizes
    #[arg(long, default_value_t = 1.0)]
    scale: f64,
}

const PER_FOLDER: usize = 50;

pub(crate) fn run(args: &Args, results: &Results) -> Result<()> {
    #[expect(
        clippy::cast_possible_truncation,
        clippy::cast_sign_loss,
        reason = "a scale is a small positive number"
    )]
    let scaled = |number: u32| ((f64::from(number) * args.scale) as usize).max(1);
    let programs = Scratch::new()?;
    let bench = Scale { takeback: build(programs.path())? };
    let points = [
        bench.points("files in folders of 50", scaled(500_000), |root, files| {
            fill(root, files, PER_FOLDER)
        })?,
        bench.points("files in one folder", scaled(100_000), |root, files| {
            fill(root, files, files)
        })?,
        bench.points("MB in one file, a hole except its ends", scaled(2_000), |root, mb| {
            let file = File::create(root.join("large"))?;
            file.write_all_at(b"begin", 0)?;
            Ok(file.write_all_at(b"end", u64::try_from(mb)? << 20)?)
        })?,
        bench.points("MB in one file that does not compress", scaled(300), |root, mb| {
            let mut file = File::create(root.join("dense"))?;
            (0..mb).try_for_each(|n| Ok(file.write_all(&noise(1 << 20, u64::try_from(n)?))?))
        })?,
        bench.changing_tree(scaled(20_000))?,
    ];
    let head = ["", "first point:", "peak memory:", "again, unchanged:", "peak memory:"];
    let mut table = Table::new(head);
    for (name, [first, again]) in &points {
        table.add([name.clone(), seconds(first), peak(first), seconds(again), peak(again)]);
    }
    println!("{table}");
    let previews = [scaled(10_000), scaled(100_000)];
    let previews = previews.map(|files| Ok((files, bench.preview(files)?)));
    let previews = previews.into_iter().collect::<Result<Vec<(usize, Cost)>>>()?;
    let mut table = Table::new(["`rewind @ --dry-run -v` of", "time:", "peak memory:"]);
    for (files, cost) in &previews {
        table.add([format!("{files} files"), seconds(cost), peak(cost)]);
    }
    println!("{table}");
    let measured: Value = json!({ "points": points, "previews": previews });
    results.finish("scale", measured).map(drop)
}

struct Scale {
    takeback: std::path::PathBuf,
}

impl Scale {
    fn points(
        &self,
        what: &str,
        size: usize,
        write: impl FnOnce(&Path, usize) -> Result<()>,
    ) -> Result<(String, [Cost; 2])> {
        let scratch = Scratch::new()?;
        write(&scratch.project(), size)?;
        let checkpoint = self.command(&scratch, &["checkpoint"]);
        Ok((format!("{size} {what}"), [checkpoint.measure()?, checkpoint.measure()?]))
    }

    /// Another thread writes all the time. Once it stops, the next point must have everything.
    fn changing_tree(&self, files: usize) -> Result<(String, [Cost; 2])> {
        let scratch = Scratch::new()?;
        let root = scratch.project();
        fill(&root, files, PER_FOLDER)?;
        let checkpoint = self.command(&scratch, &["checkpoint"]);
        let stop = AtomicBool::new(false);
        let (during, writes) = std::thread::scope(|scope| {
            let writer = scope.spawn(|| {
                let mut writes = 0;
                while !stop.load(Ordering::Relaxed) {
                    let file = file_path(&root, writes * 7 % files, PER_FOLDER);
                    fs::write(&file, format!("written anew: {writes}\n"))?;
                    fs::write(file.with_extension("new"), "new\n")?;
                    writes += 1;
                }
                Ok::<usize, std::io::Error>(writes)
            });
            let during = checkpoint.measure();
            stop.store(true, Ordering::Relaxed);
            (during, writer.join().expect("the writer does not panic"))
        });
        let costs = [during?, checkpoint.measure()?];
        match look_around(&mut open(&scratch)?)?.recorded.changes {
            0 => Ok((format!("{files} files, {} written during the scan", writes?), costs)),
            missed => Err(format!("the point missed {missed} changes").into()),
        }
    }

    /// Of a rewind that deletes all files which a shell command of an agent made.
    fn preview(&self, files: usize) -> Result<Cost> {
        let scratch = Scratch::new()?;
        self.command(&scratch, &["checkpoint"]).measure()?;
        let mut workspace = open(&scratch)?;
        let mut agent = Agent::of(&mut workspace);
        agent.prompt(None, "Make many files")?;
        let make = || fill(&scratch.project(), files, PER_FOLDER);
        agent.call("make", CallTargets::anything(Some("make".to_owned())), make)?;
        agent.end_turn()?;
        drop(agent);
        drop(workspace);
        self.command(&scratch, &["rewind", "@", "--dry-run", "-v"]).measure()
    }

    fn command(&self, scratch: &Scratch, words: &[&str]) -> Commands {
        Takeback::in_scratch(&self.takeback, scratch).run(words)
    }
}

fn open(scratch: &Scratch) -> Result<Workspace> {
    open_workspace(&scratch.project(), &only_store(&scratch.home())?)
}

fn seconds(cost: &Cost) -> String {
    format!("{:.2} s", cost.wall_ms / 1000.0)
}

fn peak(cost: &Cost) -> String {
    format!("{:.0} MB", cost.peak_mb.unwrap_or(f64::NAN))
}
