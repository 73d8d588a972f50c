//! What a store grows by, beside a shadow git and restic, in one run: a first snapshot of a large tree,
//! then points of three small edits each.
//!
//! `growth [FOLDER] [FILES]`: works in FOLDER (made, and removed again if nothing is named). Sizes are
//! blocks on disk, as `du` counts them: a file of ten bytes takes a whole one.

#![expect(
    clippy::print_stdout,
    clippy::print_stderr,
    reason = "a benchmark prints what it measured, and how far it is"
)]
#![expect(clippy::disallowed_methods, reason = "a benchmark lays out its own folders")]

mod peers;
mod takeback;
mod tree;

use std::fs;
use std::os::unix::fs::MetadataExt as _;
use std::path::{Path, PathBuf};

use serde_json::json;
use takeback_bench::results::save;
use takeback_bench::{Result, machine};

use crate::peers::{Restic, ShadowGit};
use crate::takeback::{Manner, Takeback};
use crate::tree::Tree;

/// Sizes are taken after so many points.
const POINTS: [usize; 3] = [1, 10, 100];

/// Something that keeps versions of a tree.
trait Keeper {
    fn name(&self) -> &'static str;
    fn folder(&self) -> &Path;
    fn first(&mut self) -> Result<()>;
    /// Three small edits are made and kept.
    fn point(&mut self, tree: &Tree, round: usize) -> Result<()>;
    /// Whatever it does about its size when there is time; whether it does anything.
    fn tidy(&mut self) -> Result<bool>;
}

fn main() -> Result<()> {
    let mut args = std::env::args_os().skip(1);
    let named = args.next().map(PathBuf::from);
    let least = args.next().and_then(|n| n.to_str()?.parse().ok()).unwrap_or(30_000);
    let folder = named.clone().unwrap_or_else(|| {
        std::env::temp_dir().join(format!("takeback-growth-{}", std::process::id()))
    });
    let measured = measure(&folder, least);
    if named.is_none() {
        fs::remove_dir_all(&folder)?;
    }
    let measured = measured?;
    println!("{}", serde_json::to_string_pretty(&measured)?);
    save("growth", &measured)
}

fn measure(folder: &Path, least: usize) -> Result<serde_json::Value> {
    let tree = Tree::make(&folder.join("tree"), least)?;
    eprintln!("{} files, {} bytes", tree.paths.len(), tree.bytes);
    let states = folder.join("states");
    let mut keepers: Vec<Box<dyn Keeper>> = vec![
        Box::new(Takeback::new(&tree, &states, Manner::Checkpoints)?),
        Box::new(Takeback::new(&tree, &states, Manner::Agent)?),
        Box::new(ShadowGit::new(&tree, &states)?),
    ];
    match Restic::new(&tree, &states) {
        Ok(restic) => keepers.push(Box::new(restic)),
        Err(error) => eprintln!("restic is left out: {error}"),
    }
    let mut told = Vec::new();
    for keeper in &mut keepers {
        told.push(follow(keeper.as_mut(), &tree)?);
    }
    let git = told[2]["points100"].as_f64().unwrap_or(f64::NAN);
    for one in &mut told {
        for (size, of_git) in [("points100", "ofGitBeforeGc"), ("tidied", "tidiedOfGitBeforeGc")] {
            one[of_git] = json!(one[size].as_f64().map(|size| size / git));
        }
        eprintln!("{one}");
    }
    Ok(json!({
        "machine": machine::Machine::this()?,
        "files": tree.paths.len(),
        "bytes": tree.bytes,
        "tools": told,
    }))
}

fn follow(keeper: &mut dyn Keeper, tree: &Tree) -> Result<serde_json::Value> {
    keeper.first()?;
    let first = parts(keeper.folder())?;
    let mut told = json!({ "tool": keeper.name(), "first": sum(&first), "firstParts": first });
    for round in 1..=POINTS[POINTS.len() - 1] {
        keeper.point(tree, round)?;
        if POINTS.contains(&round) {
            told[format!("points{round}")] = json!(sum(&parts(keeper.folder())?));
        }
    }
    let after = parts(keeper.folder())?;
    let grown = lasting(&after).saturating_sub(lasting(&first));
    told["growthPerPoint"] = json!(grown / POINTS[POINTS.len() - 1] as u64);
    told["parts"] = json!(after);
    if keeper.tidy()? {
        let tidied = parts(keeper.folder())?;
        told["tidied"] = json!(sum(&tidied));
        told["tidiedParts"] = json!(tidied);
    }
    tree.restore()?;
    Ok(told)
}

/// Bytes on disk of each file, or folder, right below.
fn parts(folder: &Path) -> Result<std::collections::BTreeMap<String, u64>> {
    let mut parts = std::collections::BTreeMap::new();
    for entry in fs::read_dir(folder)? {
        let entry = entry?;
        parts.insert(entry.file_name().to_string_lossy().into_owned(), on_disk(&entry.path())?);
    }
    Ok(parts)
}

fn on_disk(path: &Path) -> Result<u64> {
    let metadata = fs::symlink_metadata(path)?;
    let mut bytes = metadata.blocks() * 512;
    if metadata.is_dir() {
        for entry in fs::read_dir(path)? {
            bytes += on_disk(&entry?.path())?;
        }
    }
    Ok(bytes)
}

/// What stays: the journal of Takeback's database is written over again and again, and its index is one
/// of the tree.
fn lasting(parts: &std::collections::BTreeMap<String, u64>) -> u64 {
    let passing: &[&str] = match parts.contains_key("timeline.db") {
        true => &["index", "timeline.db-wal", "timeline.db-shm"],
        false => &[],
    };
    parts.iter().filter(|(name, _)| !passing.contains(&name.as_str())).map(|(_, size)| size).sum()
}

fn sum(parts: &std::collections::BTreeMap<String, u64>) -> u64 {
    parts.values().sum()
}
