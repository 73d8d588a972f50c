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
