//! Forks of [`Takeback`]: the workspace as it was at a point, in new folders, and what happened in them.

use std::path::{Path, PathBuf};

pub use takeback_core::fork::{ForkExtent, ForkReport, Origin};
use takeback_core::history::Lines;
use takeback_store::{Entry, PointId, WorkPath};

use crate::commands::compare::compared;
use crate::commands::fork::{fork_into, point_with};
use crate::place;
use crate::takeback::{OpenError, Takeback};

/// A fork that [`Takeback::compare`] looked at.
#[derive(Debug, Clone)]
pub struct ForkComparison {
    /// The fork's folder.
    pub root: PathBuf,
    /// Where it comes from.
    pub origin: Origin,
    /// Files and links that differ from what the fork got, by path.
    pub files: Vec<ForkedFile>,
}

/// A file of a fork that changed.
#[derive(Debug, Clone)]
pub struct ForkedFile {
    /// The path.
    pub path: WorkPath,
    /// What the fork got.
    pub before: Entry,
    /// What is there now.
    pub after: Entry,
    /// Lines added and removed; `None`: it is not text, or its earlier contents are not at hand.
    pub lines: Option<Lines>,
}

impl Takeback {
    /// Copies the workspace as it was at a point into each of these folders, which must be new or empty. Every
    /// file is read once. Pins the point. Paths are absolute, or relative to the root.
    pub fn fork(
        &self,
        point: PointId,
        folders: &[impl AsRef<Path>],
        extent: ForkExtent,
    ) -> Result<ForkReport, OpenError> {
        let mut shared = self.lock();
        let place = shared.place_mut();
        let root = place.workspace.root.path().to_owned();
        let folders: Vec<PathBuf> = folders.iter().map(|folder| root.join(folder)).collect();
        let point = point_with(place, point)?;
        Ok(fork_into(place, &point, &folders, extent)?.report)
    }

    /// What happened in forks since they were made. Paths are absolute, or relative to the root.
    pub fn compare(&self, folders: &[impl AsRef<Path>]) -> Result<Vec<ForkComparison>, OpenError> {
        let mut shared = self.lock();
        let place = shared.place_mut();
        let root = place.workspace.root.path();
        let folders: Vec<PathBuf> = folders.iter().map(|folder| root.join(folder)).collect();
        let home = place::home_of(Some(&place.home))?;
        let forks = compared(&folders, &home)?.into_iter().map(|fork| ForkComparison {
            root: fork.root,
            origin: fork.origin,
            files: fork
                .changed
                .into_iter()
                .map(|file| ForkedFile {
                    path: file.diff.path,
                    before: file.diff.before,
                    after: file.diff.after,
                    lines: file.lines,
                })
                .collect(),
        });
        Ok(forks.collect())
    }
}
