//! Whose changes a restore takes back, and of which row a preview is.

use super::RowId;

/// Whose changes a restore of a point takes back.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Hash)]
pub enum MenuCoverage {
    /// Those of the point's session.
    #[default]
    Session,
    /// Those of every agent.
    AllAgents,
    /// Everyone's, yours too.
    Everyone,
    /// Those of the point's turn alone; what came later stays.
    Turn,
}

impl MenuCoverage {
    /// The next one for the key that cycles them.
    pub(super) fn next(self) -> Self {
        match self {
            Self::Session => Self::AllAgents,
            Self::AllAgents => Self::Everyone,
            Self::Everyone | Self::Turn => Self::Session,
        }
    }

    pub(super) fn title(self) -> &'static str {
        match self {
            Self::Session => "Takes back: the point's session",
            Self::AllAgents => "Takes back: all agents",
            Self::Everyone => "Takes back: everyone's changes, yours too",
            Self::Turn => "Takes back: this turn; later changes stay",
        }
    }

    /// Whether authors matter, so that files can be marked.
    pub(super) fn can_mark(self) -> bool {
        matches!(self, Self::Session | Self::AllAgents)
    }
}

/// Which preview is meant.
#[derive(Debug, Clone, PartialEq, Eq, Hash)]
pub struct PreviewRequest {
    /// The row.
    pub row: RowId,
    /// Whose changes, if the row is a point.
    pub coverage: MenuCoverage,
}

impl PreviewRequest {
    pub(super) fn new(row: RowId, coverage: MenuCoverage) -> Self {
        let coverage = match row {
            RowId::Point(_) => coverage,
            RowId::Execution(_) => MenuCoverage::default(),
        };
        Self { row, coverage }
    }
}

impl From<RowId> for PreviewRequest {
    fn from(row: RowId) -> Self {
        Self::new(row, MenuCoverage::default())
    }
}
