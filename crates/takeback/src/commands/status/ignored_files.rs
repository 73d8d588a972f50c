//! Ignored files that are recorded anyway, and their folders.

use std::collections::BTreeMap;
use std::io::{self, Write};

use takeback_core::Workspace;
use takeback_core::worktree::{Index, KnownName};
use takeback_store::{Entry, StoreError, WorkPath};

use crate::answers;
use crate::screen::{HINT, bytes, count, name};

/// The recorded part of the ignored files.
#[derive(Debug, Default)]
pub(super) struct IgnoredFiles {
    pub(super) files: usize,
    pub(super) bytes: u64,
    /// The outermost ignored folders, by path.
    folders: BTreeMap<WorkPath, FolderCoverage>,
}

#[derive(Debug, Default, Clone, Copy)]
struct FolderCoverage {
    files: usize,
    bytes: u64,
    /// Names in it that are not recorded.
    not_covered: usize,
}

impl IgnoredFiles {
    pub(super) fn of(workspace: &Workspace) -> Result<Self, StoreError> {
        let index = Index::load(&workspace.index_file(), &*workspace.store)?;
        let mut ignored = Self::default();
        for (path, folder) in index.folders() {
            let top = outermost(&index, path);
            for child in &folder.children {
                let (is_file, size) = match &child.known {
                    KnownName::Entry { entry, precious: true, .. } => match entry {
                        Entry::Dir { .. } => (false, 0),
                        Entry::File { size, .. } => (true, *size),
                        _ => (true, 0),
                    },
                    _ => (false, 0),
                };
                ignored.files += usize::from(is_file);
                ignored.bytes += size;
                if let Some(top) = &top {
                    let covered = ignored.folders.entry(top.clone()).or_default();
                    covered.files += usize::from(is_file);
                    covered.bytes += size;
                    covered.not_covered += usize::from(child.known.is_skipped());
                }
            }
        }
        Ok(ignored)
    }

    /// The number of files, and how much of `most` bytes they use.
    pub(super) fn line(&self, most: u64) -> Option<String> {
        let used = format!("{} of {} used", bytes(self.bytes), bytes(most));
        (self.files > 0).then(|| format!("{} of them ignored but recorded: {used}", self.files))
    }

    pub(super) fn answer(&self) -> Vec<answers::IgnoredFolder> {
        let answer = |(path, covered): (&WorkPath, &FolderCoverage)| answers::IgnoredFolder {
            path: answers::path(path),
            files: covered.files,
            bytes: covered.bytes,
            not_covered: covered.not_covered,
        };
        self.folders.iter().map(answer).collect()
    }

    /// Prints one line per folder.
    pub(super) fn print(&self, out: &mut dyn Write, all: bool) -> io::Result<()> {
        const MOST: usize = 10;
        if self.folders.is_empty() {
            return Ok(());
        }
        writeln!(out, "\nIgnored folders, recorded within the same budget:")?;
        let most = if all { self.folders.len() } else { MOST };
        for (path, covered) in self.folders.iter().take(most) {
            let files = count(covered.files, "file");
            let left = match covered.not_covered {
                0 => String::new(),
                left => format!(", {left} not covered"),
            };
            let size = bytes(covered.bytes);
            writeln!(out, "  {}/  {HINT}{files}, {size}{left}{HINT:#}", name(path))?;
        }
        if self.folders.len() > most {
            let more = self.folders.len() - most;
            writeln!(out, "  {HINT}and {more} more (-v shows all){HINT:#}")?;
        }
        Ok(())
    }
}

/// The outermost ignored folder that is or contains `folder`.
fn outermost(index: &Index, folder: &[u8]) -> Option<WorkPath> {
    let folder = WorkPath::new(folder).ok()?;
    let mut around: Vec<WorkPath> = folder.ancestors().collect();
    around.reverse();
    around.push(folder);
    let is_ignored = |path: &WorkPath| {
        matches!(index.known(path),
            Some(KnownName::Entry { entry, precious: true, .. })
                if entry.is_dir() || entry.is_unreadable())
    };
    around.into_iter().find(is_ignored)
}
