//! The tree that is kept: sources of crates, as cargo unpacked them, and the edits made to it.

use std::fs;
use std::path::{Path, PathBuf};

use takeback_bench::Result;

pub(crate) struct Tree {
    pub(crate) root: PathBuf,
    /// From the root, sorted.
    pub(crate) paths: Vec<PathBuf>,
    pub(crate) bytes: u64,
    /// Files that are edited, as they were.
    originals: Vec<(PathBuf, Vec<u8>)>,
}

const EDITED: usize = 300;

impl Tree {
    /// Found again if it is there already.
    pub(crate) fn make(root: &Path, least: usize) -> Result<Self> {
        let mut paths = Vec::new();
        if !root.is_dir() {
            fs::create_dir_all(root)?;
            let mut copies = 0;
            while paths.len() < least {
                let before = paths.len();
                copy(&sources()?, root, &format!("copy-{copies}"), least, &mut paths)?;
                copies += 1;
                if paths.len() == before {
                    return Err("cargo has unpacked nothing here".into());
                }
            }
        }
        paths.clear();
        list(root, Path::new(""), &mut paths)?;
        paths.sort();
        let mut bytes = 0;
        for path in &paths {
            bytes += fs::metadata(root.join(path))?.len();
        }
        let step = (paths.len() / EDITED).max(1);
        let edited = paths.iter().step_by(step).filter(|path| {
            fs::metadata(root.join(path)).is_ok_and(|file| (500..60_000).contains(&file.len()))
        });
        let originals = edited
            .map(|path| Ok((path.clone(), fs::read(root.join(path))?)))
            .collect::<Result<_>>()?;
        Ok(Self { root: root.to_owned(), paths, bytes, originals })
    }

    /// The three files of a round.
    pub(crate) fn edited(&self, round: usize) -> impl Iterator<Item = &Path> {
        let count = self.originals.len();
        (0..3).map(move |n| self.originals[(round * 3 + n) * 7 % count].0.as_path())
    }

    /// Puts a line into the middle of a file.
    pub(crate) fn edit(&self, path: &Path, round: usize) -> Result<()> {
        let path = self.root.join(path);
        let mut text = fs::read(&path)?;
        let middle = text.len() / 2;
        text.splice(middle..middle, format!("\n// edit {round}\n").into_bytes());
        Ok(fs::write(path, text)?)
    }

    pub(crate) fn restore(&self) -> Result<()> {
        for (path, text) in &self.originals {
            fs::write(self.root.join(path), text)?;
        }
        Ok(())
    }
}

fn sources() -> Result<PathBuf> {
    let cargo = std::env::var_os("CARGO_HOME")
        .map(PathBuf::from)
        .or_else(|| Some(PathBuf::from(std::env::var_os("HOME")?).join(".cargo")))
        .ok_or("there is no home folder")?;
    Ok(cargo.join("registry/src"))
}

/// Every file gets a line of its own, so that keeping equal contents once gains nothing.
fn copy(from: &Path, to: &Path, under: &str, most: usize, paths: &mut Vec<PathBuf>) -> Result<()> {
    let mut names: Vec<_> = fs::read_dir(from)?.collect::<std::io::Result<_>>()?;
    names.sort_by_key(fs::DirEntry::file_name);
    let to = to.join(under);
    for entry in names {
        let name = entry.file_name();
        let shown = name.to_string_lossy();
        if paths.len() >= most {
            return Ok(());
        }
        if shown.starts_with('.') {
            continue;
        }
        let kind = entry.file_type()?;
        if kind.is_dir() {
            copy(&entry.path(), &to, &shown, most, paths)?;
        } else if kind.is_file() && entry.metadata()?.len() < 1 << 20 {
            let mut text = fs::read(entry.path())?;
            text.extend_from_slice(format!("\n// {}\n", paths.len()).as_bytes());
            fs::create_dir_all(&to)?;
            fs::write(to.join(&name), text)?;
            paths.push(to.join(&name));
        }
    }
    Ok(())
}

fn list(root: &Path, below: &Path, paths: &mut Vec<PathBuf>) -> Result<()> {
    for entry in fs::read_dir(root.join(below))? {
        let entry = entry?;
        let path = below.join(entry.file_name());
        if entry.file_type()?.is_dir() {
            list(root, &path, paths)?;
        } else {
            paths.push(path);
        }
    }
    Ok(())
}
