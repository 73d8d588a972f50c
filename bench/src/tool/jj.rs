//! jj with a repository of its own, not the user's: commits in a git repository beside the tree, its
//! operations and its list of files in `.jj` in the tree.

use std::collections::BTreeMap;
use std::fs;
use std::path::{Path, PathBuf};

use takeback_bench::Result;
use takeback_bench::measure::{Commands, Cost, answer_of, disk_usage};

use super::{Told, Tool, Who};
use crate::corpus::Corpus;
use crate::edits::Edits;

pub(crate) struct Jj<'a> {
    corpus: &'a Corpus,
    program: PathBuf,
    state: PathBuf,
    begun: bool,
}

impl<'a> Jj<'a> {
    pub(crate) fn new(corpus: &'a Corpus, program: &Path) -> Self {
        Self { corpus, program: program.to_owned(), state: corpus.states.join("jj"), begun: false }
    }

    /// Its part in the tree.
    fn inside(&self) -> PathBuf {
        self.corpus.tree.join(".jj")
    }

    fn commands(&self, words: &[&str]) -> Commands {
        let text = |path: PathBuf| path.to_string_lossy().into_owned();
        Commands {
            runner: self.corpus.runner(),
            program: self.program.clone(),
            runs: vec![words.iter().map(|&word| word.to_owned()).collect()],
            folder: self.corpus.tree.clone(),
            environment: BTreeMap::from([
                ("HOME".to_owned(), text(self.state.clone())),
                ("JJ_CONFIG".to_owned(), text(self.state.join("config.toml"))),
            ]),
        }
    }
}

const CONFIG: &str = r#"
user.name = "bench"
user.email = "bench@localhost"
"#;

impl Tool for Jj<'_> {
    fn who(&self) -> Who {
        Who::Jj
    }

    fn empty(&mut self) -> Result<()> {
        self.begun = false;
        if self.inside().exists() {
            fs::remove_dir_all(self.inside())?;
        }
        self.corpus.empty_state("jj")?;
        fs::write(self.state.join("config.toml"), CONFIG)?;
        let commits = self.state.join("commits");
        answer_of("git", &["init", "-q", "--bare", &commits.to_string_lossy()]).map(drop)
    }

    fn snapshot(&mut self) -> Result<Cost> {
        if std::mem::replace(&mut self.begun, true) {
            return self.commands(&["--quiet", "util", "snapshot"]).measure();
        }
        // Looks at the tree at once.
        let commits = self.state.join("commits");
        self.commands(&["--quiet", "git", "init", "--git-repo", &commits.to_string_lossy()])
            .measure()
    }

    fn files(&mut self) -> Result<usize> {
        let names = self.commands(&["--ignore-working-copy", "file", "list"]).answer()?;
        Ok(names.lines().count())
    }

    fn changed(&mut self) -> Result<usize> {
        let words = ["--ignore-working-copy", "diff", "--name-only"];
        let between = ["--from", "at_operation(@-, @)", "--to", "@"];
        let names = self.commands(&[&words[..], &between].concat()).answer()?;
        Ok(names.lines().count())
    }

    fn take_back(&mut self, edits: &Edits, _: Told) -> Result<Cost> {
        let words = ["--ignore-working-copy", "op", "log", "--no-graph", "-n1", "-T", "id"];
        let operation = self.commands(&words).answer()?;
        edits.make()?;
        self.commands(&["--quiet", "op", "restore", operation.trim()]).measure()
    }

    fn size(&self) -> Result<u64> {
        Ok(disk_usage(&self.state)? + disk_usage(&self.inside())?)
    }
}
