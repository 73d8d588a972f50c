//! Pieces of work in a tree: ten files changed, two made and one deleted, or a thousand changed.

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
    /// Ten changed, two made, one deleted: spread over the whole tree, others in every round.
    pub(crate) fn few(corpus: &Corpus, round: usize) -> Result<Self> {
        const MODIFIED: usize = 10;
        let mut files = Vec::new();
        for (n, path) in spread(corpus, MODIFIED + 1, round).enumerate() {
            if n < 2 {
                let path = path.with_file_name(format!("made-in-round-{round}.rs"));
                let text = format!("//! Made in round {round}.\n\nfn main() {{}}\n");
                files.push(Edit { path, before: None, after: Some(text.into_bytes()) });
            }
            let mut edit = Edit::inside(path, round)?;
            if n == MODIFIED {
                edit.after = None;
            }
            files.push(edit);
        }
        Ok(Self { files })
    }

    /// A thousand changed, or all where there are fewer.
    pub(crate) fn many(corpus: &Corpus, round: usize) -> Result<Self> {
        let paths = spread(corpus, corpus.paths.len().min(1000), round);
        Ok(Self { files: paths.map(|path| Edit::inside(path, round)).collect::<Result<_>>()? })
    }

    pub(crate) fn count(&self) -> usize {
        self.files.len()
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

impl Edit {
    /// A new line in the middle.
    fn inside(path: PathBuf, round: usize) -> Result<Self> {
        let before = fs::read(&path)?;
        let middle = before.len() / 2;
        let mut after = before.clone();
        after.splice(middle..middle, format!("\n// edit {round}\n").into_bytes());
        Ok(Self { path, before: Some(before), after: Some(after) })
    }
}

/// Paths at equal distances in the sorted list.
fn spread(corpus: &Corpus, count: usize, round: usize) -> impl Iterator<Item = PathBuf> {
    let step = corpus.paths.len() / count;
    (0..count).map(move |n| corpus.tree.join(&corpus.paths[n * step + (round * 137) % step]))
}

fn put(path: &Path, contents: Option<&[u8]>) -> Result<()> {
    match contents {
        Some(contents) => fs::write(path, contents)?,
        None => fs::remove_file(path)?,
    }
    Ok(())
}
