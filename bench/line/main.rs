//! `takeback status --line` beside a process that does nothing, in one run: the rounds go through all
//! cases in turn, and the medians are compared.
//!
//! The program that does nothing is this one, started with a word.

#![expect(clippy::print_stdout, reason = "a benchmark prints what it measured")]
#![expect(clippy::disallowed_methods, reason = "a benchmark lays out its own folders")]

use std::fs;
use std::io::Write as _;
use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};
use std::time::Instant;

use takeback_bench::measure::{median, millis};

const EMPTY: &str = "do-nothing";
const ROUNDS: usize = 300;
const FILES: usize = 5_000;
const POINTS: usize = 300;

type Failure = Box<dyn std::error::Error>;

fn main() -> Result<(), Failure> {
    if std::env::args().nth(1).as_deref() == Some(EMPTY) {
        return Ok(());
    }
    let own = std::env::current_exe()?;
    let takeback = own.with_file_name("takeback");
    if !takeback.exists() {
        return Err(format!("{} is not there: build takeback first", takeback.display()).into());
    }
    let folder = std::env::temp_dir().join(format!("takeback-line-{}", std::process::id()));
    let measured = laid_out(&folder, &takeback).and_then(|work| measured(&own, &takeback, &work));
    fs::remove_dir_all(&folder)?;
    let measured = measured?;
    let empty = measured[0].1;
    println!("Median of {ROUNDS} rounds, {FILES} files, {POINTS} points:");
    for (name, took) in measured {
        println!("  {name:<44} {took:>6.2} ms   {:>5.2}×", took / empty);
    }
    Ok(())
}

/// A workspace with a history, and a folder without one; answers the first.
fn laid_out(folder: &Path, takeback: &Path) -> Result<PathBuf, Failure> {
    let work = folder.join("work");
    fs::create_dir_all(work.join("deep/er"))?;
    fs::create_dir_all(folder.join("bare"))?;
    fs::create_dir_all(folder.join("home"))?;
    for n in 0..FILES {
        fs::write(work.join(format!("file-{n}.txt")), format!("{n}\n"))?;
    }
    let mut record = command(takeback, &["record"], &work)
        .stdin(Stdio::piped())
        .stdout(Stdio::null())
        .spawn()?;
    let mut input = record.stdin.take().ok_or("no input")?;
    for n in 0..POINTS {
        // The newest 50 of a session stay.
        let session = n % 10;
        writeln!(input, r#"{{"event":"prompt","session":"s{session}","text":"prompt {n}"}}"#)?;
        writeln!(input, r#"{{"event":"turn_end","session":"s{session}"}}"#)?;
    }
    drop(input);
    if !record.wait()?.success() {
        return Err("the points were not recorded".into());
    }
    Ok(work)
}

fn command(program: &Path, args: &[&str], folder: &Path) -> Command {
    let mut command = Command::new(program);
    command.args(args).current_dir(folder).env_clear();
    let home = folder.ancestors().find(|above| above.join("home").is_dir());
    command.env("HOME", home.unwrap_or(folder).join("home"));
    command
}

fn measured(own: &Path, takeback: &Path, work: &Path) -> Result<Vec<(&'static str, f64)>, Failure> {
    let bare = work.with_file_name("bare");
    let below = work.join("deep/er");
    let cases: [(&str, &Path, &[&str], &Path); 5] = [
        ("a process that does nothing", own, &[EMPTY], work),
        ("takeback --version", takeback, &["--version"], work),
        ("status --line, no store", takeback, &["status", "--line"], &bare),
        ("status --line", takeback, &["status", "--line"], work),
        ("status --line, two folders below the root", takeback, &["status", "--line"], &below),
    ];
    let mut took = vec![Vec::with_capacity(ROUNDS); cases.len()];
    for _ in 0..ROUNDS {
        for (times, (_, program, args, folder)) in took.iter_mut().zip(cases) {
            let mut command = command(program, args, folder);
            command.stdin(Stdio::null()).stdout(Stdio::null());
            let began = Instant::now();
            let status = command.status()?;
            times.push(millis(began.elapsed()));
            if !status.success() {
                return Err(format!("{} failed", program.display()).into());
            }
        }
    }
    Ok(cases.iter().zip(took).map(|((name, ..), times)| (*name, median(times))).collect())
}
