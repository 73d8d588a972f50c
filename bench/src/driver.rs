//! The tools that are measured, one file each.

pub(crate) mod empty_program;
pub(crate) mod git;
pub(crate) mod jj;
pub(crate) mod langgraph;
pub(crate) mod library;
pub(crate) mod opencode;
pub(crate) mod restic;
pub(crate) mod sqlite;
pub(crate) mod takeback;

use std::path::{Path, PathBuf};

use serde::{Deserialize, Serialize};

use crate::Result;
use crate::edits::Edits;
use crate::measure::{Cost, disk_usage, text_of};

#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub(crate) enum Tool {
    /// The `takeback` command, a process like the peers'.
    Command,
    /// Takeback in a process that keeps the workspace open.
    Library,
    Git,
    Opencode,
    Jj,
    Restic,
    /// `stat` of every known file on all cores: no scan can take less.
    Floor,
}

impl Tool {
    pub(crate) const ALL: [Self; 7] = [
        Self::Command,
        Self::Library,
        Self::Git,
        Self::Opencode,
        Self::Jj,
        Self::Restic,
        Self::Floor,
    ];

    pub(crate) fn title(self) -> &'static str {
        match self {
            Self::Command => "`takeback`",
            Self::Library => "library",
            Self::Git => "shadow git",
            Self::Opencode => "opencode",
            Self::Jj => "jj",
            Self::Restic => "restic",
            Self::Floor => "floor",
        }
    }

    pub(crate) fn is_ours(self) -> bool {
        matches!(self, Self::Command | Self::Library)
    }
}

/// How Takeback learns of edits. Its peers never do.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum EditSource {
    /// An agent announces its edits through hooks.
    Agent,
    /// Edits are not announced: the whole tree must be scanned.
    Unannounced,
}

/// A tool that stores states of a tree and restores them.
pub(crate) trait Driver {
    fn tool(&self) -> Tool;

    /// Removes everything that was stored.
    fn reset(&mut self) -> Result<()>;

    /// Stores the tree as it is. The first time after [`Driver::reset`] also creates the store.
    fn make_point(&mut self) -> Result<Cost>;

    /// Files in the last point, which must be the first.
    fn files(&mut self) -> Result<usize>;

    /// Paths in which the last point differs from the one before.
    fn changed(&mut self) -> Result<usize>;

    /// Makes the edits and stores them.
    fn store_edits(&mut self, edits: &Edits) -> Result<()> {
        edits.make()?;
        self.make_point().map(drop)
    }

    /// Makes the edits after the last point and goes back to it. Only going back is measured.
    fn rewind(&mut self, edits: &Edits, source: EditSource) -> Result<Cost>;

    /// Reclaims space, as the tool does when it has time.
    fn clean_up(&mut self) -> Result<()> {
        Err(format!("{} is not measured with this", self.tool().title()).into())
    }

    /// The folder of the store.
    fn store(&self) -> &Path;

    /// Bytes on disk.
    fn size(&self) -> Result<u64> {
        disk_usage(self.store())
    }
}

/// The tree that tools work on, and a folder for their own data.
#[derive(Debug, Clone)]
pub(crate) struct WorkFolders {
    pub(crate) tree: PathBuf,
    pub(crate) states: PathBuf,
}

/// What a program prints about its version: its first line; `None` if it is not installed.
pub(crate) fn version(program: &str, word: &str) -> Option<String> {
    Some(text_of(program, &[word]).ok()?.lines().next()?.to_owned())
}
