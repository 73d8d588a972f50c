//! restic, a backup program.

use std::path::{Path, PathBuf};

use super::{Driver, EditSource, Tool, WorkFolders};
use crate::Result;
use crate::edits::Edits;
use crate::measure::{Commands, Cost};
use crate::scratch::make_empty;

pub(crate) struct Restic {
    tree: PathBuf,
    state: PathBuf,
    repository: PathBuf,
}

const ONLY_BACKUPS: &str = "only backups of restic are measured";

impl Restic {
    pub(crate) fn new(site: &WorkFolders) -> Self {
        let state = site.states.join("restic");
        Self { tree: site.tree.clone(), repository: state.join("repository"), state }
    }

    pub(crate) fn restic(&self, words: &[&str]) -> Commands {
        let environment = [
            ("HOME", self.state.clone()),
            ("RESTIC_REPOSITORY", self.repository.clone()),
            ("RESTIC_CACHE_DIR", self.state.join("cache")),
            ("RESTIC_PASSWORD", PathBuf::from("bench")),
        ];
        Commands::new(Path::new("restic"), &self.tree, environment).run(words)
    }
}

impl Driver for Restic {
    fn tool(&self) -> Tool {
        Tool::Restic
    }

    fn reset(&mut self) -> Result<()> {
        make_empty(&self.state)?;
        self.restic(&["init", "-q"]).output().map(drop)
    }

    fn make_point(&mut self) -> Result<Cost> {
        self.restic(&["backup", "-q", "--exclude", ".git", "--exclude", ".jj", "."]).measure()
    }

    fn files(&mut self) -> Result<usize> {
        let entries = self.restic(&["ls", "--json", "latest"]).text()?;
        Ok(entries.lines().filter(|line| line.contains(r#""type":"file""#)).count())
    }

    fn changed(&mut self) -> Result<usize> {
        Err(ONLY_BACKUPS.into())
    }

    fn rewind(&mut self, _: &Edits, _: EditSource) -> Result<Cost> {
        Err(ONLY_BACKUPS.into())
    }

    fn clean_up(&mut self) -> Result<()> {
        self.restic(&["-q", "prune"]).output().map(drop)
    }

    fn store(&self) -> &Path {
        &self.repository
    }
}
