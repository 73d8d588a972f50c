//! jj with a repository of its own, not the user's: commits in a git repository next to the tree,
//! operations and the list of files in `.jj` inside the tree.

use std::fs;
use std::path::{Path, PathBuf};

use super::{Driver, EditSource, Tool, WorkFolders};
use crate::Result;
use crate::edits::Edits;
use crate::measure::{Commands, Cost, disk_usage, text_of};
use crate::scratch::make_empty;

pub(crate) struct Jj {
    program: PathBuf,
    tree: PathBuf,
    store: PathBuf,
    is_created: bool,
}

const CONFIG: &str = r#"
user.name = "bench"
user.email = "bench@localhost"
"#;

impl Jj {
    pub(crate) fn new(site: &WorkFolders, program: &Path) -> Self {
        let (tree, store) = (site.tree.clone(), site.states.join("jj"));
        Self { program: program.to_owned(), tree, store, is_created: false }
    }

    fn folder_in_tree(&self) -> PathBuf {
        self.tree.join(".jj")
    }

    fn jj(&self, words: &[&str]) -> Commands {
        let environment =
            [("HOME", self.store.clone()), ("JJ_CONFIG", self.store.join("config.toml"))];
        Commands::new(&self.program, &self.tree, environment).run(words)
    }
}

impl Driver for Jj {
    fn tool(&self) -> Tool {
        Tool::Jj
    }

    fn reset(&mut self) -> Result<()> {
        self.is_created = false;
        if self.folder_in_tree().exists() {
            fs::remove_dir_all(self.folder_in_tree())?;
        }
        make_empty(&self.store)?;
        fs::write(self.store.join("config.toml"), CONFIG)?;
        let commits = self.store.join("commits");
        text_of("git", &["init", "-q", "--bare", &commits.to_string_lossy()]).map(drop)
    }

    fn make_point(&mut self) -> Result<Cost> {
        if std::mem::replace(&mut self.is_created, true) {
            return self.jj(&["--quiet", "util", "snapshot"]).measure();
        }
        // Scans the tree at once.
        let commits = self.store.join("commits");
        self.jj(&["--quiet", "git", "init", "--git-repo", &commits.to_string_lossy()]).measure()
    }

    fn files(&mut self) -> Result<usize> {
        Ok(self.jj(&["--ignore-working-copy", "file", "list"]).text()?.lines().count())
    }

    fn changed(&mut self) -> Result<usize> {
        let words = ["--ignore-working-copy", "diff", "--name-only"];
        let between = ["--from", "at_operation(@-, @)", "--to", "@"];
        Ok(self.jj(&[&words[..], &between].concat()).text()?.lines().count())
    }

    fn rewind(&mut self, edits: &Edits, _: EditSource) -> Result<Cost> {
        let words = ["--ignore-working-copy", "op", "log", "--no-graph", "-n1", "-T", "id"];
        let operation = self.jj(&words).text()?;
        edits.make()?;
        self.jj(&["--quiet", "op", "restore", operation.trim()]).measure()
    }

    fn store(&self) -> &Path {
        &self.store
    }

    fn size(&self) -> Result<u64> {
        Ok(disk_usage(&self.store)? + disk_usage(&self.folder_in_tree())?)
    }
}
