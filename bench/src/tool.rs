//! What every tool that is measured can do.

pub(crate) mod git;
pub(crate) mod jj;
pub(crate) mod opencode;
pub(crate) mod restic;
pub(crate) mod takeback;

use serde::{Deserialize, Serialize};
use takeback_bench::Result;
use takeback_bench::measure::Cost;

use crate::edits::Edits;

/// Who is measured.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub(crate) enum Who {
    /// The `takeback` command, a process like the peers'.
    Command,
    /// Takeback in a process that holds the workspace open.
    Library,
    Git,
    Opencode,
    Jj,
    Restic,
    /// `stat` of every known file on all cores: less than this no scan can take.
    Floor,
}

impl Who {
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
}

/// How a piece of work comes about that is to be taken back.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Told {
    /// An agent announces what it changes; peers do not listen.
    Announced,
    /// Nobody says anything: the whole tree must be looked at.
    Nothing,
}

pub(crate) trait Tool {
    fn who(&self) -> Who;

    /// Forgets all it has kept.
    fn empty(&mut self) -> Result<()>;

    /// Keeps the tree as it is. The first time after [`Tool::empty`] also makes what it keeps it in.
    fn snapshot(&mut self) -> Result<Cost>;

    /// Files in the last snapshot, which must be the first.
    fn files(&mut self) -> Result<usize>;

    /// Paths in which the last snapshot differs from the one before.
    fn changed(&mut self) -> Result<usize>;

    /// Makes the edits after the last snapshot, and goes back to it; only going back counts.
    fn take_back(&mut self, edits: &Edits, told: Told) -> Result<Cost>;

    /// Bytes on disk.
    fn size(&self) -> Result<u64>;
}
