//! What comes back, and what does not: Takeback beside a shadow git repository and restic.
//!
//! Each tool gets the same tree in a temporary folder, takes its snapshot, the same script damages the
//! tree, and the tool restores it. Every property is then looked at. Out: a table on standard output;
//! the exit code is 1 if Takeback misses anything.

#![expect(
    clippy::disallowed_methods,
    reason = "the bench plays the user: it lays out trees and reads the environment"
)]
#![expect(
    clippy::print_stdout,
    clippy::print_stderr,
    reason = "the table is the answer, what went wrong goes beside it"
)]

mod tools;
mod tree;

use std::error::Error;
use std::fs;
use std::path::{Path, PathBuf};
use std::process::ExitCode;

use crate::tools::{Git, Restic, Takeback, Tool};
use crate::tree::{PROPERTIES, Seen};

pub(crate) type Result<T> = std::result::Result<T, Box<dyn Error>>;

fn main() -> ExitCode {
    match compare() {
        Ok(true) => ExitCode::SUCCESS,
        Ok(false) => ExitCode::FAILURE,
        Err(error) => {
            eprintln!("error: {error}");
            ExitCode::FAILURE
        }
    }
}

/// Whether Takeback brought back everything.
fn compare() -> Result<bool> {
    let scratch = Scratch::new()?;
    let mut columns = vec![
        measure(&scratch, "takeback", |place| Ok(Box::new(Takeback::new(place)?)))?,
        measure(&scratch, "git", |place| Ok(Box::new(Git::new(place)?)))?,
    ];
    if Restic::is_installed() {
        columns.push(measure(&scratch, "restic", |place| Ok(Box::new(Restic::new(place)?)))?);
    } else {
        println!("restic is not installed (apt-get install restic), so it has no column.\n");
    }
    print_table(&columns);
    Ok(columns[0].kept.iter().all(|kept| *kept))
}

/// What one tool brought back.
struct Column {
    title: String,
    kept: Vec<bool>,
    trouble: Option<String>,
}

fn measure(
    scratch: &Scratch,
    name: &str,
    tool: impl FnOnce(&Path) -> Result<Box<dyn Tool>>,
) -> Result<Column> {
    let place = scratch.0.join(name);
    let root = place.join("work");
    fs::create_dir_all(&root)?;
    tree::lay_out(&root)?;
    let before = Seen::of(&root)?;
    let mut tool = tool(&place)?;
    tool.damage_with(&root, tree::DAMAGE)?;
    let here = root.display().to_string();
    let trouble = tool.restore(&root).err().map(|error| error.to_string().replace(&here, "."));
    let kept = PROPERTIES.iter().map(|property| (property.holds)(&root, &before)).collect();
    Ok(Column { title: tool.title(), kept, trouble })
}

fn print_table(columns: &[Column]) {
    let titles: Vec<&str> = columns.iter().map(|column| column.title.as_str()).collect();
    println!("| after the restore | {} |", titles.join(" | "));
    println!("|---|{}", "---|".repeat(columns.len()));
    for (at, property) in PROPERTIES.iter().enumerate() {
        let kept: Vec<&str> =
            columns.iter().map(|column| if column.kept[at] { "ok" } else { "**NO**" }).collect();
        println!("| {} | {} |", property.name, kept.join(" | "));
    }
    for column in columns {
        if let Some(trouble) = &column.trouble {
            println!("\n{} said: {}", column.title, trouble.trim());
        }
    }
}

/// A folder that goes when this is dropped.
struct Scratch(PathBuf);

impl Scratch {
    fn new() -> Result<Self> {
        let path = std::env::temp_dir().join(format!("takeback-fidelity-{}", std::process::id()));
        fs::create_dir(&path)?;
        Ok(Self(path.canonicalize()?))
    }
}

impl Drop for Scratch {
    fn drop(&mut self) {
        tree::unlock(&self.0);
        if let Err(error) = fs::remove_dir_all(&self.0) {
            eprintln!("{} is left: {error}", self.0.display());
        }
    }
}
