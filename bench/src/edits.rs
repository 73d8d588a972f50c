//! Edits that can be made, checked and undone.

use std::fs;
use std::path::{Path, PathBuf};

use crate::Result;
use crate::corpus::Corpus;

pub(crate) struct Edits {
    files: Vec<Edit>,
}

/// Bytes of a file before and after; `None`: the file does not exist.
struct Edit {
    path: PathBuf,
    before: Option<Vec<u8>>,
    after: Option<Vec<u8>>,
}

impl Edits {
    /// Ten changed, two created, one deleted: spread over the whole tree, others in every round.
    pub(crate) fn few(corpus: &Corpus, round: usize) -> Result<Self> {
        const CHANGED: usize = 10;
        let mut files = Vec::new();
        for (n, path) in corpus.spread(CHANGED + 1, round).enumerate() {
            if n < 2 {
                let path = path.with_file_name(format!("made-in-round-{round}.rs"));
                let text = format!("//! Made in round {round}.\n\nfn main() {{}}\n");
                files.push(Edit { path, before: None, after: Some(text.into_bytes()) });
            }
            let mut edit = Edit::insert_line(path, round)?;
            if n == CHANGED {
                edit.after = None;
            }
            files.push(edit);
        }
        Ok(Self { files })
    }

    /// A thousand changed, or every file of a smaller tree.
    pub(crate) fn many(corpus: &Corpus, round: usize) -> Result<Self> {
        Self::of(corpus.spread(corpus.paths.len().min(1000), round), round)
    }

    /// One more line in each of these files.
    pub(crate) fn of(paths: impl IntoIterator<Item = PathBuf>, round: usize) -> Result<Self> {
        let edits = paths.into_iter().map(|path| Edit::insert_line(path, round));
        Ok(Self { files: edits.collect::<Result<_>>()? })
    }

    pub(crate) fn count(&self) -> usize {
        self.files.len()
    }

    pub(crate) fn paths(&self) -> impl Iterator<Item = &Path> {
        self.files.iter().map(|edit| edit.path.as_path())
    }

    pub(crate) fn make(&self) -> Result<()> {
        self.files.iter().try_for_each(|edit| write(&edit.path, edit.after.as_deref()))
    }

    pub(crate) fn make_one(&self, path: &Path) -> Result<()> {
        let mut edits = self.files.iter().filter(|edit| edit.path == path);
        edits.try_for_each(|edit| write(&edit.path, edit.after.as_deref()))
    }

    pub(crate) fn undo(&self) -> Result<()> {
        self.files.iter().try_for_each(|edit| write(&edit.path, edit.before.as_deref()))
    }

    /// Fails unless every file is as it was before.
    pub(crate) fn check_undone(&self) -> Result<()> {
        for Edit { path, before, .. } in &self.files {
            let present = if path.exists() { Some(fs::read(path)?) } else { None };
            if present != *before {
                return Err(format!("{} was not restored", path.display()).into());
            }
        }
        Ok(())
    }
}

impl Edit {
    /// In the middle of the file.
    fn insert_line(path: PathBuf, round: usize) -> Result<Self> {
        let before = fs::read(&path)?;
        let middle = before.len() / 2;
        let mut after = before.clone();
        after.splice(middle..middle, format!("\n// edit {round}\n").into_bytes());
        Ok(Self { path, before: Some(before), after: Some(after) })
    }
}

fn write(path: &Path, contents: Option<&[u8]>) -> Result<()> {
    match contents {
        Some(contents) => fs::write(path, contents)?,
        None => fs::remove_file(path)?,
    }
    Ok(())
}
