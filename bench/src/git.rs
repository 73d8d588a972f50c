//! A shadow git repository, as most agents keep their checkpoints: its own `GIT_DIR`, the user's
//! folder as work tree.

use std::collections::BTreeMap;
use std::fs;
use std::path::{Path, PathBuf};

use takeback_bench::Result;
use takeback_bench::measure::Commands;

use crate::corpus::Corpus;

pub(crate) struct ShadowGit {
    tree: PathBuf,
    runner: PathBuf,
    pub(crate) state: PathBuf,
}

impl ShadowGit {
    /// An empty repository; what was there before is removed.
    pub(crate) fn new(corpus: &Corpus) -> Result<Self> {
        let state = corpus.states.join("git");
        if state.exists() {
            fs::remove_dir_all(&state)?;
        }
        fs::create_dir_all(&state)?;
        let git = Self { tree: corpus.tree.clone(), runner: corpus.runner(), state };
        git.commands(&[
            &["init", "-q"],
            // In the background it would disturb whoever is measured next.
            &["config", "gc.auto", "0"],
            &["config", "maintenance.auto", "false"],
        ])
        .answer()?;
        Ok(git)
    }

    pub(crate) fn snapshot(&self) -> Commands {
        self.commands(&[
            &["add", "-A"],
            &["commit", "-q", "--no-verify", "--allow-empty", "-m", "point"],
        ])
    }

    /// Back to the last snapshot.
    pub(crate) fn restore(&self) -> Commands {
        self.commands(&[&["clean", "-fdq"], &["reset", "-q", "--hard"]])
    }

    /// Files in the last snapshot.
    pub(crate) fn files(&self) -> Result<usize> {
        let names = self.commands(&[&["ls-tree", "-r", "-z", "--name-only", "HEAD"]]).answer()?;
        Ok(names.matches('\0').count())
    }

    /// Nothing of the user's own git settings has a say.
    fn commands(&self, runs: &[&[&str]]) -> Commands {
        let text = |path: &Path| path.to_string_lossy().into_owned();
        let mut environment = BTreeMap::from([
            ("GIT_DIR", text(&self.state)),
            ("GIT_WORK_TREE", text(&self.tree)),
            ("HOME", text(&self.state)),
            ("GIT_CONFIG_GLOBAL", "/dev/null".to_owned()),
            ("GIT_CONFIG_NOSYSTEM", "1".to_owned()),
        ]);
        for name in ["GIT_AUTHOR_NAME", "GIT_COMMITTER_NAME"] {
            environment.insert(name, "bench".to_owned());
        }
        for name in ["GIT_AUTHOR_EMAIL", "GIT_COMMITTER_EMAIL"] {
            environment.insert(name, "bench@localhost".to_owned());
        }
        Commands {
            runner: self.runner.clone(),
            program: PathBuf::from("git"),
            runs: runs
                .iter()
                .map(|run| run.iter().map(|&word| word.to_owned()).collect())
                .collect(),
            folder: self.tree.clone(),
            environment: environment
                .into_iter()
                .map(|(name, value)| (name.to_owned(), value))
                .collect(),
        }
    }
}
