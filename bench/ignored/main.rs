//! What covering an ignored folder costs when nothing changed, in one run: the same files in a plain folder, in
//! an ignored one, and in one that is kept out. Rounds are interleaved.

#![expect(clippy::print_stdout, reason = "a benchmark prints what it measured")]
#![expect(clippy::disallowed_methods, reason = "the bench plays the user")]

use std::fs;
use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};
use std::time::Instant;

use takeback_bench::Result;
use takeback_bench::machine::load_average;
use takeback_bench::measure::{median, millis};

const ROUNDS: usize = 60;
const FILES: usize = 10_000;
const IN_FOLDER: usize = 2_000;

fn main() -> Result<()> {
    let takeback = std::env::current_exe()?.with_file_name("takeback");
    let mut cargo = Command::new(env!("CARGO"));
    cargo.args(["build", "--quiet", "--release", "-p", "takeback", "--bin", "takeback"]);
    if !cargo.status()?.success() {
        return Err("takeback cannot be built".into());
    }
    let name = format!("takeback-bench-ignored-{}", std::process::id());
    let folder = std::env::temp_dir().join(name);
    let measured = measure(&takeback, &folder);
    fs::remove_dir_all(&folder)?;
    measured
}

fn measure(takeback: &Path, folder: &Path) -> Result<()> {
    let trees =
        [("plain", None), ("ignored", Some(".gitignore")), ("out", Some(".takebackignore"))];
    let trees = trees.map(|(name, rules)| lay_out(&folder.join(name), rules));
    let trees: Vec<PathBuf> = trees.into_iter().collect::<Result<_>>()?;
    let mut took = vec![Vec::new(); trees.len()];
    for round in 0..ROUNDS + 3 {
        for (tree, took) in trees.iter().zip(&mut took) {
            let one = checkpoint(takeback, tree)?;
            if round >= 3 {
                took.push(one);
            }
        }
    }
    let [plain, ignored, out] = [0, 1, 2].map(|at| took[at].as_slice());
    println!(
        "`checkpoint`, nothing changed, {FILES} files and {IN_FOLDER} in `data/`, medians of {ROUNDS} rounds (load {}):\n",
        load_average()?
    );
    println!("| `data/` is | ms | beside plain | goal |\n|---|--:|--:|--:|");
    println!("| plain | {:.1} | 1.00x | |", median(plain.iter().copied()));
    println!(
        "| ignored, and covered | {:.1} | {:.2}x | 1.1x |",
        median(ignored.iter().copied()),
        ratio(ignored, plain)
    );
    println!(
        "| kept out by `.takebackignore` | {:.1} | {:.2}x | |",
        median(out.iter().copied()),
        ratio(out, plain)
    );
    Ok(())
}

/// Round by round: a machine that is slow for a while is slow for both.
fn ratio(ours: &[f64], other: &[f64]) -> f64 {
    median(ours.iter().zip(other).map(|(ours, other)| ours / other))
}

fn lay_out(tree: &Path, rules: Option<&str>) -> Result<PathBuf> {
    let project = tree.join("project");
    for n in 0..FILES + IN_FOLDER {
        let top = if n < FILES { "src" } else { "data" };
        let folder = project.join(top).join(format!("folder-{}", n / 50));
        fs::create_dir_all(&folder)?;
        fs::write(folder.join(format!("{n}.txt")), format!("file {n}\n").repeat(20))?;
    }
    if let Some(rules) = rules {
        fs::write(project.join(rules), "data/\n")?;
    }
    fs::create_dir(tree.join("home"))?;
    Ok(project)
}

fn checkpoint(takeback: &Path, project: &Path) -> Result<f64> {
    let began = Instant::now();
    let status = Command::new(takeback)
        .args(["checkpoint", "--quiet"])
        .current_dir(project)
        .env("HOME", project.with_file_name("home"))
        .env_remove("TAKEBACK_HOME")
        .stdout(Stdio::null())
        .status()?;
    let took = millis(began.elapsed());
    if status.success() { Ok(took) } else { Err(format!("checkpoint: {status}").into()) }
}
