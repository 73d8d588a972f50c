//! A checkpoint: a position in the log that can be gone back to.

use serde::{Deserialize, Serialize};

use crate::id::{PointId, Seq, SessionId, Timestamp};

#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct Point {
    pub id: PointId,
    /// Every change up to and including this one lies before the point.
    pub seq: Seq,
    /// `None`: made by hand; it stands for all agents.
    pub session: Option<SessionId>,
    pub kind: PointKind,
    pub description: String,
    pub label: Option<String>,
    pub pinned: bool,
    pub created_at: Timestamp,
    /// Other ids it is known by: message uuid, prompt id. In the order in which they were learned.
    pub message_ids: Vec<String>,
    pub git: Option<GitState>,
    #[serde(rename = "vouchedBy")]
    pub basis: PointBasis,
}

impl Point {
    /// Whether it goes when there are too many: it is one of the list, with neither label nor pin.
    #[must_use]
    pub fn may_expire(&self) -> bool {
        self.kind != PointKind::Safety && !self.pinned && self.label.is_none()
    }
}

#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub enum PointKind {
    Prompt,
    Manual,
    Step,
    /// Made by Takeback itself before a rewind.
    Safety,
}

/// On whose word the tree was as the point has it.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, Default, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub enum PointBasis {
    /// Everything the point speaks of was looked at when it was made.
    #[default]
    Scan,
    /// Only folders of which the kernel had told were looked at, since the scan before it. A store
    /// through a memory map is not told, and shows at the next scan.
    Watch,
}

/// Where the user's repository stood. For people; never restored.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct GitState {
    pub head: Option<String>,
    pub branch: Option<String>,
}

/// Which points are asked for. Answers are oldest first.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum PointQuery<'a> {
    Id(PointId),
    /// All of one moment of the log.
    At(Seq),
    /// Of this moment or later, as many as this, those first that come first.
    From {
        seq: Seq,
        most: usize,
    },
    /// As many as this, the newest.
    Newest {
        filter: PointFilter,
        most: usize,
    },
    /// The newest of a session's prompts.
    LastPromptOf(&'a SessionId),
    /// Those that somebody may mean by this: with this id or label, with an id that begins like
    /// this (at least four hex digits), with a message id that this is, or that ends it after a colon.
    Name(&'a str),
}

/// Whether the points that Takeback makes before rewinds are meant too.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum PointFilter {
    All,
    WithoutSafety,
}

impl PointQuery<'_> {
    /// What it asks for, of all points (oldest first).
    #[must_use]
    pub fn select(self, mut points: Vec<Point>) -> Vec<Point> {
        match self {
            Self::Id(id) => points.retain(|point| point.id == id),
            Self::At(seq) => points.retain(|point| point.seq == seq),
            Self::From { seq, most } => {
                points.retain(|point| point.seq >= seq);
                points.truncate(most);
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
    #[must_use]
    pub fn includes(self, point: &Point) -> bool {
        self == Self::All || point.kind != PointKind::Safety
    }
}

/// The message ids that a name may stand for: itself, and what follows a colon in it.
pub(crate) fn messages_in(name: &str) -> Vec<&str> {
    let colons = name.match_indices(':').map(|(at, _)| &name[at + 1..]);
    std::iter::once(name).chain(colons).collect()
}

/// The first and the last id that begin like this.
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
