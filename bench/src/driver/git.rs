//! A shadow git repository, as most agents store their checkpoints: its own `GIT_DIR`, the user's
//! folder as work tree.

use std::ffi::OsStr;
use std::fs;
use std::os::unix::ffi::OsStrExt as _;
use std::path::{Path, PathBuf};

use super::{Driver, EditSource, Tool, WorkFolders};
use crate::Result;
use crate::edits::Edits;
use crate::measure::{Commands, Cost};
use crate::scratch::make_empty;

pub(crate) struct ShadowGit {
    tree: PathBuf,
    store: PathBuf,
}

impl ShadowGit {
    pub(crate) fn new(site: &WorkFolders) -> Self {
        Self { tree: site.tree.clone(), store: site.states.join("git") }
    }

    fn git(&self) -> Commands {
        shadow(&self.store, &self.tree)
    }

    /// A tree without a commit, which some agents prefer; its id.
    pub(crate) fn write_tree(&self) -> Result<String> {
        let add = ["-c", "advice.addEmbeddedRepo=false", "add", "-A"];
        Ok(self.git().run(&add).run(&["write-tree"]).text()?.trim().to_owned())
    }

    /// Deletes files that `tree` does not have, and writes those it has.
    pub(crate) fn restore_tree(&self, tree: &str) -> Result<()> {
        self.write_tree()?;
        let new = ["diff-index", "--cached", "-z", "--name-only", "--diff-filter=A", tree];
        let new = self.git().run(&new).output()?;
        for name in new.split(|byte| *byte == 0).filter(|name| !name.is_empty()) {
            fs::remove_file(self.tree.join(OsStr::from_bytes(name)))?;
        }
        self.git().run(&["read-tree", tree]).run(&["checkout-index", "-a", "-f"]).output().map(drop)
    }
}

impl Driver for ShadowGit {
    fn tool(&self) -> Tool {
        Tool::Git
    }

    fn reset(&mut self) -> Result<()> {
        create(&self.store, &self.tree)
    }

    fn make_point(&mut self) -> Result<Cost> {
        let commit = ["commit", "-q", "--no-verify", "--allow-empty", "-m", "point"];
        self.git().run(&["add", "-A"]).run(&commit).measure()
    }

    fn files(&mut self) -> Result<usize> {
        count_names(&self.git().run(&["ls-tree", "-r", "-z", "--name-only", "HEAD"]))
    }

    fn changed(&mut self) -> Result<usize> {
        let words = ["diff", "-z", "--name-only", "--no-renames", "HEAD~1", "HEAD"];
        count_names(&self.git().run(&words))
    }

    fn rewind(&mut self, edits: &Edits, _: EditSource) -> Result<Cost> {
        edits.make()?;
        self.git().run(&["clean", "-fdq"]).run(&["reset", "-q", "--hard"]).measure()
    }

    fn clean_up(&mut self) -> Result<()> {
        self.git().run(&["gc", "-q"]).output().map(drop)
    }

    fn store(&self) -> &Path {
        &self.store
    }
}

/// git without any of the user's settings.
pub(crate) fn plain(folder: &Path) -> Commands {
    let mut git = Commands::new(Path::new("git"), folder, [])
        .with("GIT_CONFIG_GLOBAL", "/dev/null")
        .with("GIT_CONFIG_NOSYSTEM", "1");
    for of in ["AUTHOR", "COMMITTER"] {
        git = git.with(&format!("GIT_{of}_NAME"), "bench");
        git = git.with(&format!("GIT_{of}_EMAIL"), "bench@localhost");
    }
    git
}

/// git with its repository in `store`.
pub(super) fn shadow(store: &Path, tree: &Path) -> Commands {
    let text = store.to_string_lossy();
    let git = plain(tree).with("GIT_DIR", &text).with("HOME", &text);
    git.with("GIT_WORK_TREE", &tree.to_string_lossy())
}

/// An empty repository in `store`.
pub(super) fn create(store: &Path, tree: &Path) -> Result<()> {
    make_empty(store)?;
    // Maintenance in the background would disturb the next measurement.
    shadow(store, tree)
        .run(&["init", "-q"])
        .run(&["config", "gc.auto", "0"])
        .run(&["config", "maintenance.auto", "false"])
        .output()?;
    // jj stores a part of its data in the tree.
    fs::create_dir_all(store.join("info"))?;
    Ok(fs::write(store.join("info/exclude"), "/.jj/\n")?)
}

/// The number of printed names, each with a zero byte after it.
pub(super) fn count_names(commands: &Commands) -> Result<usize> {
    Ok(commands.output()?.iter().filter(|byte| **byte == 0).count())
}
