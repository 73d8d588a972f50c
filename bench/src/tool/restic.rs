//! restic, a backup program: only how long the first snapshot takes, and how large it is.

use std::collections::BTreeMap;
use std::path::PathBuf;

use takeback_bench::Result;
use takeback_bench::measure::{Commands, Cost, disk_usage};

use super::{Told, Tool, Who};
use crate::corpus::Corpus;
use crate::edits::Edits;

pub(crate) struct Restic<'a> {
    corpus: &'a Corpus,
    state: PathBuf,
}

impl<'a> Restic<'a> {
    pub(crate) fn new(corpus: &'a Corpus) -> Self {
        Self { corpus, state: corpus.states.join("restic") }
    }

    fn commands(&self, words: &[&str]) -> Commands {
        let text = |path: PathBuf| path.to_string_lossy().into_owned();
        Commands {
            runner: self.corpus.runner(),
            program: PathBuf::from("restic"),
            runs: vec![words.iter().map(|&word| word.to_owned()).collect()],
            folder: self.corpus.tree.clone(),
            environment: BTreeMap::from([
                ("HOME".to_owned(), text(self.state.clone())),
                ("RESTIC_REPOSITORY".to_owned(), text(self.state.join("repository"))),
                ("RESTIC_CACHE_DIR".to_owned(), text(self.state.join("cache"))),
                ("RESTIC_PASSWORD".to_owned(), "bench".to_owned()),
            ]),
        }
    }
}

impl Tool for Restic<'_> {
    fn who(&self) -> Who {
        Who::Restic
    }

    fn empty(&mut self) -> Result<()> {
        self.corpus.empty_state("restic")?;
        self.commands(&["init", "-q"]).answer().map(drop)
    }

    fn snapshot(&mut self) -> Result<Cost> {
        self.commands(&["backup", "-q", "--exclude", ".git", "--exclude", ".jj", "."]).measure()
    }

    fn files(&mut self) -> Result<usize> {
        let entries = self.commands(&["ls", "--json", "latest"]).answer()?;
        Ok(entries.lines().filter(|line| line.contains(r#""type":"file""#)).count())
    }

    fn changed(&mut self) -> Result<usize> {
        Err("restic is measured with its first snapshot only".into())
    }

    fn take_back(&mut self, _: &Edits, _: Told) -> Result<Cost> {
        Err("restic is measured with its first snapshot only".into())
    }

    fn size(&self) -> Result<u64> {
        disk_usage(&self.state.join("repository"))
    }
}
