//! The `takeback` command with a home of its own.

use std::fs;
use std::path::{Path, PathBuf};
use std::process::Command;

use serde::Deserialize;

use super::library::{Agent, only_store, open_workspace};
use super::{Driver, EditSource, Tool};
use crate::Result;
use crate::edits::Edits;
use crate::measure::{Commands, Cost, output_of};
use crate::scratch::{Scratch, make_empty};

pub(crate) struct Takeback {
    program: PathBuf,
    tree: PathBuf,
    home: PathBuf,
    last: Option<CheckpointAnswer>,
    /// Folders of the tree, which count as changes in the first point.
    pub(crate) folders: usize,
}

#[derive(Deserialize)]
struct CheckpointAnswer {
    id: String,
    changes: usize,
}

const NO_POINT: &str = "there is no point yet";

/// Builds `takeback` from the same sources as this program, and copies it to where no later build
/// replaces it.
pub(crate) fn build(folder: &Path) -> Result<PathBuf> {
    let cargo = std::env::var_os("CARGO").unwrap_or_else(|| "cargo".into());
    let mut build = Command::new(cargo);
    build.args(["build", "-q", "-p", "takeback"]).current_dir(env!("CARGO_MANIFEST_DIR"));
    if !cfg!(debug_assertions) {
        build.arg("--release");
    }
    output_of(&mut build)?;
    copy_program(&std::env::current_exe()?.with_file_name("takeback"), folder)
}

/// Copies of programs take equally long to start, wherever the originals are.
pub(crate) fn copy_program(program: &Path, folder: &Path) -> Result<PathBuf> {
    let copy = folder.join("takeback");
    fs::create_dir_all(folder)?;
    fs::copy(program, &copy).map_err(|error| format!("{}: {error}", program.display()))?;
    Ok(copy)
}

impl Takeback {
    pub(crate) fn new(program: &Path, tree: &Path, home: &Path) -> Self {
        let (program, tree, home) = (program.to_owned(), tree.to_owned(), home.to_owned());
        Self { program, tree, home, last: None, folders: 0 }
    }

    pub(crate) fn in_scratch(program: &Path, scratch: &Scratch) -> Self {
        Self::new(program, &scratch.project(), &scratch.home())
    }

    /// The command with these arguments, in the tree.
    pub(crate) fn run(&self, words: &[&str]) -> Commands {
        self.program(&self.program).run(words)
    }

    /// The same, started by a shell, as agents start hooks.
    pub(crate) fn run_by_shell(&self, program: &Path, words: &str) -> Commands {
        let line = format!("{} {words}", program.display());
        self.program(Path::new("/bin/sh")).run(&["-c", &line])
    }

    pub(crate) fn hook(&self, agent: &str) -> Commands {
        self.run_by_shell(&self.program, &format!("hook --agent {agent}"))
    }

    fn program(&self, program: &Path) -> Commands {
        let environment = [("TAKEBACK_HOME", self.home.clone()), ("HOME", self.home.clone())];
        Commands::new(program, &self.tree, environment)
    }
}

impl Driver for Takeback {
    fn tool(&self) -> Tool {
        Tool::Command
    }

    fn reset(&mut self) -> Result<()> {
        self.last = None;
        make_empty(&self.home)
    }

    fn make_point(&mut self) -> Result<Cost> {
        let (cost, answer) = self.run(&["checkpoint", "--json"]).measure_output()?;
        self.last = Some(serde_json::from_str(&answer)?);
        Ok(cost)
    }

    /// From the answer: a process in the background may still be saving its index.
    fn files(&mut self) -> Result<usize> {
        Ok(self.changed()?.saturating_sub(self.folders))
    }

    fn changed(&mut self) -> Result<usize> {
        Ok(self.last.as_ref().ok_or(NO_POINT)?.changes)
    }

    fn rewind(&mut self, edits: &Edits, source: EditSource) -> Result<Cost> {
        match source {
            EditSource::Agent => {
                let mut workspace = open_workspace(&self.tree, &only_store(&self.home)?)?;
                let point = Agent::of(&mut workspace).make(edits)?.to_string();
                drop(workspace);
                self.run(&["rewind", &point, "-y", "--json"]).measure()
            }
            EditSource::Unannounced => {
                edits.make()?;
                let point = &self.last.as_ref().ok_or(NO_POINT)?.id;
                self.run(&["rewind", point, "-y", "--exact", "--json"]).measure()
            }
        }
    }

    fn store(&self) -> &Path {
        &self.home
    }
}
