//! A small piece of work in a large tree: ten files changed, two made, one deleted.

use std::fs;
use std::path::{Path, PathBuf};

use takeback_bench::Result;

use crate::corpus::Corpus;

pub(crate) struct Edits {
    files: Vec<Edit>,
}

/// What a file holds before and after; `None`: there is none.
struct Edit {
    path: PathBuf,
    before: Option<Vec<u8>>,
    after: Option<Vec<u8>>,
}

impl Edits {
    /// Files spread over the whole tree, others in every round.
    pub(crate) fn pick(corpus: &Corpus, round: usize) -> Result<Self> {
        const MODIFIED: usize = 10;
        const SPREAD: usize = MODIFIED + 1;
        let mut files = Vec::new();
        for n in 0..SPREAD {
            let step = corpus.paths.len() / SPREAD;
            let path = corpus.tree.join(&corpus.paths[n * step + (round * 137) % step]);
            let before = fs::read(&path)?;
            let after = (n < MODIFIED).then(|| {
                let middle = before.len() / 2;
                let mut after = before.clone();
                after.splice(middle..middle, format!("\n// edit {round}\n").into_bytes());
                after
            });
            if n < 2 {
                let path = path.with_file_name(format!("made-in-round-{round}.rs"));
                let text = format!("//! Made in round {round}.\n\nfn main() {{}}\n");
                files.push(Edit { path, before: None, after: Some(text.into_bytes()) });
            }
            files.push(Edit { path, before: Some(before), after });
        }
        Ok(Self { files })
    }

    pub(crate) fn paths(&self) -> impl Iterator<Item = &Path> {
        self.files.iter().map(|edit| edit.path.as_path())
    }

    pub(crate) fn make(&self) -> Result<()> {
        self.files.iter().try_for_each(|edit| put(&edit.path, edit.after.as_deref()))
    }

    pub(crate) fn undo(&self) -> Result<()> {
        self.files.iter().try_for_each(|edit| put(&edit.path, edit.before.as_deref()))
    }

    /// Fails unless every file is as it was before.
    pub(crate) fn check_undone(&self) -> Result<()> {
        for Edit { path, before, .. } in &self.files {
            let present = if path.exists() { Some(fs::read(path)?) } else { None };
            if present != *before {
                return Err(format!("{} was not taken back", path.display()).into());
            }
        }
        Ok(())
    }
}

fn put(path: &Path, contents: Option<&[u8]>) -> Result<()> {
    match contents {
        Some(contents) => fs::write(path, contents)?,
        None => fs::remove_file(path)?,
    }
    Ok(())
}
