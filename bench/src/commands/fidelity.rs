//! What each tool restores exactly: Takeback next to a shadow git repository and restic.
//!
//! Each tool gets the same tree and saves it, the same script damages the tree, and the tool
//! restores it. Fails if Takeback does not restore everything.

mod tree;

use std::fs;
use std::path::Path;
use std::process::Command;

use self::tree::{DAMAGE, PROPERTIES, UntouchedState, lay_out};
use crate::Result;
use crate::driver::git::ShadowGit;
use crate::driver::restic::Restic;
use crate::driver::takeback::{Takeback, build};
use crate::driver::{Driver, WorkFolders, version};
use crate::measure::output_of;
use crate::report::Table;
use crate::scratch::Scratch;

/// What one tool restored.
struct Column {
    title: String,
    holds: Vec<bool>,
    error: Option<String>,
}

pub(crate) fn run() -> Result<()> {
    let programs = Scratch::new()?;
    let program = build(programs.path())?;
    let mut columns = vec![
        measure("takeback", &program.to_string_lossy(), "--version", |site| {
            let takeback = Takeback::new(&program, &site.tree, &site.states.join("home"));
            takeback.run(&["run", "--", "sh", "-ec", DAMAGE]).output()?;
            Ok(Box::new(move || takeback.run(&["rewind", "@", "-y"]).output().map(drop)))
        })?,
        measure("git", "git", "--version", |site| {
            let mut git = ShadowGit::new(site);
            git.reset()?;
            let tree = git.write_tree()?;
            damage(&site.tree)?;
            Ok(Box::new(move || git.restore_tree(&tree)))
        })?,
    ];
    if version("restic", "version").is_some() {
        columns.push(measure("restic", "restic", "version", |site| {
            let mut restic = Restic::new(site);
            restic.reset()?;
            restic.restic(&["-q", "backup", "."]).output()?;
            damage(&site.tree)?;
            let restore = restic.restic(&["-q", "restore", "latest", "--target", "."]);
            Ok(Box::new(move || restore.output().map(drop)))
        })?);
    } else {
        println!("restic is not installed (apt-get install restic) and is skipped.\n");
    }
    print_table(&columns);
    match columns[0].holds.iter().filter(|holds| !**holds).count() {
        0 => Ok(()),
        missing => Err(format!("takeback did not restore {missing} properties").into()),
    }
}

type Restore = Box<dyn FnOnce() -> Result<()>>;

/// `work` saves the tree and damages it; what it answers restores the tree.
fn measure(
    name: &str,
    program: &str,
    version_word: &str,
    work: impl FnOnce(&WorkFolders) -> Result<Restore>,
) -> Result<Column> {
    let scratch = Scratch::new()?;
    let site = WorkFolders { tree: scratch.project(), states: scratch.path().join("states") };
    fs::create_dir(&site.states)?;
    lay_out(&site.tree)?;
    let before = UntouchedState::read(&site.tree)?;
    let restore = work(&site)?;
    let here = site.tree.display().to_string();
    let error = restore().err().map(|error| error.to_string().replace(&here, "."));
    let holds = PROPERTIES.iter().map(|(_, holds)| holds(&site.tree, &before)).collect();
    let version = version(program, version_word).unwrap_or_default();
    // `git version 2.47.3` and `restic 0.14.0 compiled with …`.
    let is_number = |word: &&str| word.starts_with(|first: char| first.is_ascii_digit());
    let number = version.split_whitespace().find(is_number).unwrap_or_default();
    Ok(Column { title: format!("{name} {number}"), holds, error })
}

fn damage(root: &Path) -> Result<()> {
    output_of(Command::new("sh").args(["-ec", DAMAGE]).current_dir(root)).map(drop)
}

fn print_table(columns: &[Column]) {
    let titles = columns.iter().map(|column| column.title.as_str());
    let mut table = Table::new(["after the restore"].into_iter().chain(titles));
    for (at, (name, _)) in PROPERTIES.iter().enumerate() {
        let cells = columns.iter().map(|column| if column.holds[at] { "ok" } else { "**NO**" });
        table.add([*name].into_iter().chain(cells));
    }
    print!("{table}");
    for Column { title, error, .. } in columns {
        if let Some(error) = error {
            println!("\n{title} reported: {error}");
        }
    }
}
