//! Trees that are too large to be pleasant: what a snapshot of them costs, above all in memory.
//!
//! Half a million files, a hundred thousand in one folder, a file of 2 GB with a hole in it, one of
//! 300 MB without, a tree that changes while it is read; and the preview of a rewind of ten times as
//! many files. Each is a `takeback` command in a process of its own. `TAKEBACK_SCALE=0.01` makes all
//! of it a hundred times smaller. Says what came out; nothing is judged but by whoever reads it.

#![expect(clippy::print_stdout, reason = "a benchmark prints what it measured")]
#![expect(clippy::disallowed_methods, reason = "the bench plays the user and the agent")]

mod place;

use std::fs::{self, File};
use std::io::Write as _;
use std::os::unix::fs::FileExt as _;
use std::sync::atomic::{AtomicBool, Ordering};

use serde_json::{Value, json};
use takeback_bench::Result;
use takeback_bench::machine::load_average;
use takeback_bench::measure::{Cost, RUNNER, run_commands};
use takeback_bench::results::save;

use self::place::Place;

fn main() -> Result<()> {
    if std::env::args().nth(1).as_deref() == Some(RUNNER) {
        return run_commands();
    }
    let scale: f64 = match std::env::var("TAKEBACK_SCALE") {
        Ok(text) => text.parse()?,
        Err(_) => 1.0,
    };
    #[expect(
        clippy::cast_possible_truncation,
        clippy::cast_sign_loss,
        reason = "a scale is a small positive number"
    )]
    let scaled = |number: u32| ((f64::from(number) * scale) as u64).max(1);
    println!("Scale {scale} (load {}):\n", load_average()?);
    println!("| | time | peak memory | again, unchanged | peak memory |");
    println!("|---|---|---|---|---|");
    let mut rows = Vec::new();
    rows.push(snapshots("files in folders of 50", scaled(500_000), |place, files| {
        place.fill(files, 50)
    })?);
    rows.push(snapshots("files in one folder", scaled(100_000), |place, files| {
        place.fill(files, files)
    })?);
    rows.push(snapshots(
        "MB in one file, all but its ends a hole",
        scaled(2_000),
        |place, megabytes| {
            let file = File::create(place.project().join("large"))?;
            file.write_all_at(b"begin", 0)?;
            Ok(file.write_all_at(b"end", megabytes << 20)?)
        },
    )?);
    rows.push(snapshots(
        "MB in one file that does not compress",
        scaled(300),
        |place, megabytes| {
            let mut file = File::create(place.project().join("dense"))?;
            let mut noise = Noise(7);
            for _ in 0..megabytes {
                file.write_all(&noise.megabyte())?;
            }
            Ok(())
        },
    )?);
    rows.push(changing(scaled(20_000))?);
    rows.push(previews(scaled(10_000))?);
    save("scale", &rows)
}

fn snapshots(what: &str, size: u64, fill: impl FnOnce(&Place, u64) -> Result<()>) -> Result<Value> {
    let place = Place::new()?;
    fill(&place, size)?;
    let first = place.command(&["checkpoint"]).measure()?;
    let again = place.command(&["checkpoint"]).measure()?;
    println!("| {size} {what} | {} | {} |", told(&first), told(&again));
    Ok(json!({ "what": format!("{size} {what}"), "first": first, "again": again }))
}

/// Somebody writes all the time; once they stop, the next snapshot has all of it.
fn changing(files: u64) -> Result<Value> {
    let place = Place::new()?;
    place.fill(files, 50)?;
    let stop = AtomicBool::new(false);
    let (during, writes) = std::thread::scope(|scope| {
        let writer = scope.spawn(|| {
            let mut writes = 0_u64;
            while !stop.load(Ordering::Relaxed) {
                let n = writes * 7 % files;
                fs::write(place.file(n, 50), format!("written anew: {writes}\n"))?;
                fs::write(place.file(n, 50).with_extension("new"), "new\n")?;
                writes += 1;
            }
            Ok::<u64, std::io::Error>(writes)
        });
        let during = place.command(&["checkpoint"]).measure();
        stop.store(true, Ordering::Relaxed);
        (during, writer.join().expect("it does not panic"))
    });
    let (during, writes) = (during?, writes?);
    let after = place.command(&["checkpoint"]).measure()?;
    println!(
        "| {files} files, {writes} of them written while they are read | {} | {} |",
        told(&during),
        told(&after)
    );
    place.is_whole()?;
    let what = format!("{files} files, {writes} of them written meanwhile");
    Ok(json!({ "what": what, "first": during, "again": after }))
}

fn previews(files: u64) -> Result<Value> {
    println!("\n| `rewind @ --dry-run -v` of | time | peak memory |\n|---|---|---|");
    let mut took = Vec::new();
    for files in [files, 10 * files] {
        let place = Place::new()?;
        place.agent_makes(files)?;
        let cost = place.command(&["rewind", "@", "--dry-run", "-v"]).measure()?;
        println!("| {files} files | {} |", told(&cost));
        took.push(cost);
    }
    let ratio = took[1].wall_ms / took[0].wall_ms;
    println!("\nTen times as many take {ratio:.1} times as long.");
    Ok(
        json!({ "what": format!("preview of {files} files, and of ten times as many"), "took": took }),
    )
}

fn told(cost: &Cost) -> String {
    format!("{:.2} s | {:.0} MB", cost.wall_ms / 1000.0, cost.peak_mb.unwrap_or(f64::NAN))
}

/// Bytes in which nothing repeats.
struct Noise(u64);

impl Noise {
    fn megabyte(&mut self) -> Vec<u8> {
        let mut bytes = Vec::with_capacity(1 << 20);
        while bytes.len() < 1 << 20 {
            self.0 ^= self.0 << 13;
            self.0 ^= self.0 >> 7;
            self.0 ^= self.0 << 17;
            bytes.extend_from_slice(&self.0.to_le_bytes());
        }
        bytes
    }
}
