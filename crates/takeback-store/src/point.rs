//! Points: positions in the log that a rewind can go back to.

use serde::{Deserialize, Serialize};

use crate::id::{PointId, Seq, SessionId, Timestamp};

/// A position in the log that a rewind can go back to.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct Point {
    /// Its id.
    pub id: PointId,
    /// The last change before the point.
    pub seq: Seq,
    /// The session it belongs to. `None` if the user made it; then it counts for all agents.
    pub session: Option<SessionId>,
    /// Why it was made.
    pub kind: PointKind,
    /// A description for display, such as the prompt.
    pub description: String,
    /// The user's own name for it. A point with a label never expires.
    pub label: Option<String>,
    /// Whether the user pinned it. A pinned point never expires.
    pub pinned: bool,
    /// When it was made.
    pub created_at: Timestamp,
    /// Other ids of the point (message uuid, prompt id), in the order in which Takeback learned
    /// them.
    pub message_ids: Vec<String>,
    /// The state of the user's Git repository at that time, if there is one.
    pub git: Option<GitState>,
    /// How the state of the tree was known.
    #[serde(rename = "vouchedBy")]
    pub basis: PointBasis,
}

impl Point {
    /// Whether it may be dropped when there are too many points: it is not a safety point and has
    /// neither label nor pin.
    #[must_use]
    pub fn may_expire(&self) -> bool {
        self.kind != PointKind::Safety && !self.pinned && self.label.is_none()
    }
}

/// Why a point was made.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub enum PointKind {
    /// Before a prompt.
    Prompt,
    /// By the user, with `takeback checkpoint`.
    Manual,
    /// At a step of an agent's execution.
    Step,
    /// Made by Takeback before a rewind.
    Safety,
}

/// How Takeback knew the state of the tree when it made the point.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, Default, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub enum PointBasis {
    /// A scan read everything when the point was made.
    #[default]
    Scan,
    /// Takeback read only the folders for which the kernel had reported events since the last scan.
    /// Writes through a memory map are not reported; the next scan finds them.
    Watch,
}

/// The state of the user's Git repository, for display; never restored.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct GitState {
    /// The commit that is checked out; `None` before the first commit.
    pub head: Option<String>,
    /// The branch that is checked out; `None` if HEAD is detached.
    pub branch: Option<String>,
}

/// Selects points. Results are oldest first.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum PointQuery<'a> {
    /// The point with this id.
    Id(PointId),
    /// All points at one position of the log.
    At(Seq),
    /// The first `most` points at this position or later.
    From {
        /// The lowest position.
        seq: Seq,
        /// The limit.
        most: usize,
    },
    /// The newest `most` points before this position.
    Before {
        /// The position.
        seq: Seq,
        /// Which points count.
        filter: PointFilter,
        /// The limit.
        most: usize,
    },
    /// The newest `most` points.
    Newest {
        /// Which points count.
        filter: PointFilter,
        /// The limit.
        most: usize,
    },
    /// The newest prompt point of a session.
    LastPromptOf(&'a SessionId),
    /// The points that a user may mean by this text: its id or label, the start of its id (at least
    /// four hex digits), one of its message ids, or text that ends with a colon and a message id.
    Name(&'a str),
}

/// Whether to include the safety points that Takeback makes before rewinds.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum PointFilter {
    /// All points.
    All,
    /// All points except safety points.
    WithoutSafety,
}

impl PointQuery<'_> {
    /// The selected ones of `points`, which must be all points, oldest first.
    #[must_use]
    pub fn select(self, mut points: Vec<Point>) -> Vec<Point> {
        match self {
            Self::Id(id) => points.retain(|point| point.id == id),
            Self::At(seq) => points.retain(|point| point.seq == seq),
            Self::From { seq, most } => {
                points.retain(|point| point.seq >= seq);
                points.truncate(most);
            }
            Self::Before { seq, filter, most } => {
                points.retain(|point| point.seq < seq && filter.includes(point));
                points.drain(..points.len().saturating_sub(most));
            }
            Self::Newest { filter, most } => {
                points.retain(|point| filter.includes(point));
                points.drain(..points.len().saturating_sub(most));
            }
            Self::LastPromptOf(session) => {
                points.retain(|point| {
                    point.session.as_ref() == Some(session) && point.kind == PointKind::Prompt
                });
                points.drain(..points.len().saturating_sub(1));
            }
            Self::Name(name) => {
                let messages = messages_in(name);
                let prefix = id_prefix(name);
                points.retain(|point| {
                    prefix.is_some_and(|(first, last)| (first..=last).contains(&point.id.0))
                        || point.label.as_deref() == Some(name)
                        || point.message_ids.iter().any(|message| messages.contains(&&**message))
                });
            }
        }
        points
    }
}

impl PointFilter {
    /// Whether `point` passes the filter.
    #[must_use]
    pub fn includes(self, point: &Point) -> bool {
        self == Self::All || point.kind != PointKind::Safety
    }
}

/// The message ids that a name may mean: the whole name, and the part after each colon.
pub(crate) fn messages_in(name: &str) -> Vec<&str> {
    let colons = name.match_indices(':').map(|(at, _)| &name[at + 1..]);
    std::iter::once(name).chain(colons).collect()
}

/// The lowest and the highest id that start with these hex digits.
pub(crate) fn id_prefix(name: &str) -> Option<(u64, u64)> {
    const DIGITS: usize = 16;
    if !(4..=DIGITS).contains(&name.len()) || !name.bytes().all(|b| b.is_ascii_hexdigit()) {
        return None;
    }
    let number = u64::from_str_radix(name, 16).ok()?;
    let open = 4 * (DIGITS - name.len());
    let first = number << open;
    Some((first, first | ((1 << open) - 1)))
}
