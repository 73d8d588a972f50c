//! A shadow git repository, as most agents keep their checkpoints: its own `GIT_DIR`, the user's
//! folder as work tree.

use std::collections::BTreeMap;
use std::fs;
use std::path::{Path, PathBuf};

use takeback_bench::Result;
use takeback_bench::measure::{Commands, Cost, disk_usage};

use super::{Told, Tool, Who};
use crate::corpus::Corpus;
use crate::edits::Edits;

pub(crate) struct ShadowGit<'a> {
    corpus: &'a Corpus,
    state: PathBuf,
}

impl<'a> ShadowGit<'a> {
    pub(crate) fn new(corpus: &'a Corpus) -> Self {
        Self { corpus, state: corpus.states.join("git") }
    }

    fn commands(&self, runs: &[&[&str]]) -> Commands {
        Commands {
            runner: self.corpus.runner(),
            program: PathBuf::from("git"),
            runs: runs
                .iter()
                .map(|run| run.iter().map(|&word| word.to_owned()).collect())
                .collect(),
            folder: self.corpus.tree.clone(),
            environment: environment(&self.state, &self.corpus.tree),
        }
    }
}

impl Tool for ShadowGit<'_> {
    fn who(&self) -> Who {
        Who::Git
    }

    fn empty(&mut self) -> Result<()> {
        self.corpus.empty_state("git")?;
        self.commands(&[
            &["init", "-q"],
            // In the background it would disturb whoever is measured next.
            &["config", "gc.auto", "0"],
            &["config", "maintenance.auto", "false"],
        ])
        .answer()?;
        exclude_jj(&self.state)
    }

    fn snapshot(&mut self) -> Result<Cost> {
        self.commands(&[
            &["add", "-A"],
            &["commit", "-q", "--no-verify", "--allow-empty", "-m", "point"],
        ])
        .measure()
    }

    fn files(&mut self) -> Result<usize> {
        names(&self.commands(&[&["ls-tree", "-r", "-z", "--name-only", "HEAD"]]))
    }

    fn changed(&mut self) -> Result<usize> {
        names(&self.commands(&[&["diff", "-z", "--name-only", "--no-renames", "HEAD~1", "HEAD"]]))
    }

    fn take_back(&mut self, edits: &Edits, _: Told) -> Result<Cost> {
        edits.make()?;
        self.commands(&[&["clean", "-fdq"], &["reset", "-q", "--hard"]]).measure()
    }

    fn size(&self) -> Result<u64> {
        disk_usage(&self.state)
    }
}

/// Nothing of the user's own git settings has a say.
pub(super) fn environment(state: &Path, tree: &Path) -> BTreeMap<String, String> {
    let text = |path: &Path| path.to_string_lossy().into_owned();
    let mut environment = BTreeMap::from([
        ("GIT_DIR", text(state)),
        ("GIT_WORK_TREE", text(tree)),
        ("HOME", text(state)),
        ("GIT_CONFIG_GLOBAL", "/dev/null".to_owned()),
        ("GIT_CONFIG_NOSYSTEM", "1".to_owned()),
    ]);
    for name in ["GIT_AUTHOR_NAME", "GIT_COMMITTER_NAME"] {
        environment.insert(name, "bench".to_owned());
    }
    for name in ["GIT_AUTHOR_EMAIL", "GIT_COMMITTER_EMAIL"] {
        environment.insert(name, "bench@localhost".to_owned());
    }
    environment.into_iter().map(|(name, value)| (name.to_owned(), value)).collect()
}

/// jj keeps part of its state in the tree.
pub(super) fn exclude_jj(git_dir: &Path) -> Result<()> {
    fs::create_dir_all(git_dir.join("info"))?;
    fs::write(git_dir.join("info/exclude"), "/.jj/\n")?;
    Ok(())
}

/// How many names are printed, each with a zero byte after it.
pub(super) fn names(commands: &Commands) -> Result<usize> {
    Ok(commands.answer()?.matches('\0').count())
}
