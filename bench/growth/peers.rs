//! A shadow git repository and a restic repository beside the tree.

use std::fs;
use std::path::{Path, PathBuf};
use std::process::Command;

use takeback_bench::Result;

use crate::Keeper;
use crate::tree::Tree;

pub(crate) struct ShadowGit {
    tree: PathBuf,
    folder: PathBuf,
}

impl ShadowGit {
    pub(crate) fn new(tree: &Tree, states: &Path) -> Result<Self> {
        let folder = emptied(states.join("git"))?;
        let git = Self { tree: tree.root.clone(), folder };
        git.run(&["init", "-q"])?;
        git.run(&["config", "gc.auto", "0"])?;
        git.run(&["config", "maintenance.auto", "false"])?;
        Ok(git)
    }

    fn run(&self, args: &[&str]) -> Result<()> {
        let mut git = Command::new("git");
        git.args(args).current_dir(&self.tree);
        git.env("GIT_DIR", &self.folder).env("GIT_WORK_TREE", &self.tree);
        git.env("GIT_CONFIG_GLOBAL", "/dev/null").env("GIT_CONFIG_NOSYSTEM", "1");
        for name in
            ["GIT_AUTHOR_NAME", "GIT_COMMITTER_NAME", "GIT_AUTHOR_EMAIL", "GIT_COMMITTER_EMAIL"]
        {
            git.env(name, "bench@localhost");
        }
        done(git)
    }

    fn snapshot(&self) -> Result<()> {
        self.run(&["add", "-A"])?;
        self.run(&["commit", "-q", "--no-verify", "--allow-empty", "-m", "point"])
    }
}

impl Keeper for ShadowGit {
    fn name(&self) -> &'static str {
        "shadow git"
    }

    fn folder(&self) -> &Path {
        &self.folder
    }

    fn first(&mut self) -> Result<()> {
        self.snapshot()
    }

    fn point(&mut self, tree: &Tree, round: usize) -> Result<()> {
        tree.edited(round).try_for_each(|path| tree.edit(path, round))?;
        self.snapshot()
    }

    fn tidy(&mut self) -> Result<bool> {
        self.run(&["gc", "-q"])?;
        Ok(true)
    }
}

pub(crate) struct Restic {
    tree: PathBuf,
    folder: PathBuf,
    cache: PathBuf,
}

impl Restic {
    pub(crate) fn new(tree: &Tree, states: &Path) -> Result<Self> {
        let folder = emptied(states.join("restic"))?;
        let cache = emptied(states.join("restic-cache"))?;
        let restic = Self { tree: tree.root.clone(), folder, cache };
        restic.run(&["init", "--repository-version", "2"])?;
        Ok(restic)
    }

    fn run(&self, args: &[&str]) -> Result<()> {
        let mut restic = Command::new("restic");
        restic.arg("-q").args(args).current_dir(&self.tree);
        restic.env("RESTIC_REPOSITORY", &self.folder).env("RESTIC_PASSWORD", "bench");
        restic.env("RESTIC_CACHE_DIR", &self.cache);
        done(restic)
    }
}

impl Keeper for Restic {
    fn name(&self) -> &'static str {
        "restic"
    }

    fn folder(&self) -> &Path {
        &self.folder
    }

    fn first(&mut self) -> Result<()> {
        self.run(&["backup", "."])
    }

    fn point(&mut self, tree: &Tree, round: usize) -> Result<()> {
        tree.edited(round).try_for_each(|path| tree.edit(path, round))?;
        self.run(&["backup", "."])
    }

    fn tidy(&mut self) -> Result<bool> {
        self.run(&["prune"])?;
        Ok(true)
    }
}

fn done(mut command: Command) -> Result<()> {
    let output = command.output()?;
    if output.status.success() {
        return Ok(());
    }
    Err(String::from_utf8_lossy(&output.stderr).into_owned().into())
}

pub(crate) fn emptied(folder: PathBuf) -> Result<PathBuf> {
    if folder.exists() {
        fs::remove_dir_all(&folder)?;
    }
    fs::create_dir_all(&folder)?;
    Ok(folder)
}
