//! A rewind as the store records it: first promised, then done.

use std::fmt;
use std::io::{self, BufRead, BufReader, BufWriter, Read as _, Write as _};
use std::sync::Arc;

use serde::{Deserialize, Serialize};

use crate::id::{PointId, RewindId, Seq, Timestamp};

/// One rewind. While it is [`RewindState::Open`] it is the journal: a promise that must be finished
/// or discarded before the next rewind.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct RewindRecord {
    /// Its id.
    pub id: RewindId,
    /// What it does.
    pub kind: RewindKind,
    /// Whether it is done.
    pub state: RewindState,
    /// The head of the log when it began; its own changes come after.
    pub began_at: Seq,
    /// The safety point that was made before it.
    pub safety_point: PointId,
    /// When it was promised.
    pub created_at: Timestamp,
    /// The plan, which the store does not interpret.
    pub plan: StoredPlan,
    /// The receipt as JSON, once the rewind is done.
    pub receipt: Option<String>,
}

/// A [`RewindRecord`] without its plan and receipt, which can be large.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct RewindHeader {
    /// Its id.
    pub id: RewindId,
    /// What it does.
    pub kind: RewindKind,
    /// Whether it is done.
    pub state: RewindState,
    /// The head of the log when it began.
    pub began_at: Seq,
    /// The safety point that was made before it.
    pub safety_point: PointId,
    /// When it was promised.
    pub created_at: Timestamp,
}

impl RewindRecord {
    /// All but the plan and the receipt.
    #[must_use]
    pub fn header(&self) -> RewindHeader {
        let Self { id, kind, state, began_at, safety_point, created_at, .. } = *self;
        RewindHeader { id, kind, state, began_at, safety_point, created_at }
    }
}

/// The text of a plan, compressed: half a million steps are 200 MB of JSON, written and read as a
/// stream.
#[derive(Clone, PartialEq, Eq, Default)]
pub struct StoredPlan(Arc<[u8]>);

impl StoredPlan {
    /// Plans repeat themselves: higher levels take longer and save little.
    const LEVEL: i32 = 1;

    /// The text that `write` writes.
    pub fn write(write: impl FnOnce(&mut dyn io::Write) -> io::Result<()>) -> io::Result<Self> {
        // Serializers write a few bytes at a time.
        let mut buffer = BufWriter::new(zstd::Encoder::new(Vec::new(), Self::LEVEL)?);
        write(&mut buffer)?;
        buffer.flush()?;
        let encoder = buffer.into_inner().map_err(io::IntoInnerError::into_error)?;
        Ok(Self(encoder.finish()?.into()))
    }

    /// This text.
    pub fn of_text(text: &str) -> io::Result<Self> {
        Self::write(|plan| plan.write_all(text.as_bytes()))
    }

    /// Reads the text from its beginning.
    pub fn reader(&self) -> io::Result<impl BufRead + '_> {
        Ok(BufReader::new(zstd::Decoder::with_buffer(&*self.0)?))
    }

    /// The whole text.
    pub fn text(&self) -> io::Result<String> {
        let mut text = String::new();
        self.reader()?.read_to_string(&mut text)?;
        Ok(text)
    }

    /// Whether there is no plan: it was damaged, or deleted with a session.
    #[must_use]
    pub fn is_empty(&self) -> bool {
        self.0.is_empty()
    }

    #[cfg(feature = "sqlite")]
    pub(crate) fn from_bytes(bytes: Vec<u8>) -> Self {
        Self(bytes.into())
    }

    pub(crate) fn as_bytes(&self) -> &[u8] {
        &self.0
    }
}

impl fmt::Debug for StoredPlan {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "StoredPlan({} bytes)", self.0.len())
    }
}

/// What a rewind does.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, Serialize, Deserialize)]
#[serde(tag = "kind", rename_all = "camelCase")]
pub enum RewindKind {
    /// Back to a point.
    Rewind {
        /// The target.
        point: PointId,
    },
    /// Undoes a rewind.
    Undo {
        /// The rewind that is undone.
        of: RewindId,
    },
    /// Undoes an undo.
    Redo {
        /// The undo that is undone.
        of: RewindId,
    },
    /// Takes back a turn, a call or a range, and keeps what came later.
    Revert {
        /// The point of the turn, or where the range begins.
        point: PointId,
    },
    /// Brings paths back as they were, whoever changed them since.
    Restore {
        /// The moment they come from.
        point: PointId,
    },
    /// Merges what happened in a fork.
    Adopt {
        /// Where it was forked.
        point: PointId,
    },
    /// Settles the conflicts of an operation.
    Resolve {
        /// The operation.
        of: RewindId,
    },
}

impl RewindKind {
    /// Whether `undo` takes it back; an undo or redo is taken back by its opposite.
    #[must_use]
    pub fn is_undoable(self) -> bool {
        !matches!(self, Self::Undo { .. } | Self::Redo { .. })
    }

    /// The point that it leads to, or is about.
    #[must_use]
    pub fn point(self) -> Option<PointId> {
        match self {
            Self::Rewind { point }
            | Self::Revert { point }
            | Self::Restore { point }
            | Self::Adopt { point } => Some(point),
            Self::Undo { .. } | Self::Redo { .. } | Self::Resolve { .. } => None,
        }
    }

    /// The operation that it is about.
    #[must_use]
    pub fn operation(self) -> Option<RewindId> {
        match self {
            Self::Undo { of } | Self::Redo { of } | Self::Resolve { of } => Some(of),
            _ => None,
        }
    }

    /// Its number in a store, and that of what it is about.
    pub(crate) fn numbers(self) -> (u8, u64) {
        match self {
            Self::Rewind { point } => (0, point.0),
            Self::Undo { of } => (1, of.0),
            Self::Redo { of } => (2, of.0),
            Self::Revert { point } => (3, point.0),
            Self::Restore { point } => (4, point.0),
            Self::Adopt { point } => (5, point.0),
            Self::Resolve { of } => (6, of.0),
        }
    }

    /// The kind with these [`numbers`](Self::numbers).
    #[cfg(feature = "sqlite")]
    pub(crate) fn from_numbers(kind: i64, about: u64) -> Option<Self> {
        let (point, of) = (PointId(about), RewindId(about));
        Some(match kind {
            0 => Self::Rewind { point },
            1 => Self::Undo { of },
            2 => Self::Redo { of },
            3 => Self::Revert { point },
            4 => Self::Restore { point },
            5 => Self::Adopt { point },
            6 => Self::Resolve { of },
            _ => return None,
        })
    }
}

/// How far a rewind is.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub enum RewindState {
    /// Promised, and not done.
    Open,
    /// Done; the receipt is recorded.
    Done,
}
