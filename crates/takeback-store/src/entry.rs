//! What stands at a path.

use serde::{Deserialize, Serialize};

use crate::blob::Digest;

/// What stood at a path when it was looked at.
#[derive(Debug, Clone, PartialEq, Eq, Hash, Serialize, Deserialize)]
#[serde(tag = "kind", rename_all = "camelCase")]
pub enum Entry {
    /// Looked at, and nothing stood there.
    Absent,
    /// A regular file. Its bytes are in the store.
    File {
        digest: Digest,
        size: u64,
        mode: u32,
    },
    Symlink {
        #[serde(with = "target_bytes")]
        target: Vec<u8>,
    },
    Dir {
        mode: u32,
    },
    /// Something stood there whose bytes are not in the store.
    NotCaptured {
        #[serde(rename = "lack")]
        reason: NotCapturedReason,
    },
    /// Nobody looked.
    Unknown,
}

/// Why bytes are not in the store. The numbers are part of the store's format.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
#[repr(u8)]
pub enum NotCapturedReason {
    /// Over the limit for a copy before an edit, and no snapshot held it; or ignored, and over the budget
    /// for such files.
    TooLarge = 1,
    /// The agent could not be kept waiting any longer.
    Deadline = 2,
    /// No permission to read it, or the disk failed.
    Unreadable = 3,
    /// It kept changing while it was read.
    Unstable = 4,
    /// Removed from the store on the user's word.
    Purged = 5,
    /// A device, socket or pipe.
    Special = 6,
    /// A folder whose contents can be made again, beside a manifest that an agent made.
    Derived = 7,
    /// A folder with more new names in it than are copied.
    TooMany = 8,
    /// It has the name of a stage, and no stage of this store has it.
    Reserved = 9,
    /// The record of it is not what was written: nothing it says can be relied on.
    Damaged = 10,
}

impl NotCapturedReason {
    /// All reasons, by number.
    pub const ALL: [Self; 10] = [
        Self::TooLarge,
        Self::Deadline,
        Self::Unreadable,
        Self::Unstable,
        Self::Purged,
        Self::Special,
        Self::Derived,
        Self::TooMany,
        Self::Reserved,
        Self::Damaged,
    ];

    /// The reason with this number.
    #[must_use]
    pub fn from_byte(byte: u8) -> Option<Self> {
        Self::ALL.into_iter().find(|reason| *reason as u8 == byte)
    }

    /// Whether the same file can be kept the next time it is looked at.
    #[must_use]
    pub fn may_be_captured_later(self) -> bool {
        matches!(
            self,
            Self::TooLarge | Self::Deadline | Self::Unreadable | Self::Unstable | Self::Damaged
        )
    }

    /// Whether it stands for a folder and all that is in it: nothing below was looked at.
    #[must_use]
    pub fn covers_folder(self) -> bool {
        matches!(self, Self::Derived | Self::TooMany | Self::Reserved)
    }

    #[must_use]
    pub fn describe(self) -> &'static str {
        match self {
            Self::TooLarge => "too large to be copied, or over the budget",
            Self::Deadline => "the agent went on before it could be read",
            Self::Unreadable => "it could not be read",
            Self::Unstable => "it kept changing while it was read",
            Self::Purged => "purged from the store",
            Self::Special => "not a regular file",
            Self::Derived => "build output, not recorded",
            Self::TooMany => "an ignored folder with more than 20,000 new names, not recorded",
            Self::Reserved => {
                "its name is reserved for stages of Takeback, which are never touched"
            }
            Self::Damaged => "damaged in the store",
        }
    }
}

impl Entry {
    /// Whether the store can bring exactly this back.
    #[must_use]
    pub fn is_restorable(&self) -> bool {
        !matches!(self, Self::NotCaptured { .. } | Self::Unknown)
    }

    #[must_use]
    pub fn is_dir(&self) -> bool {
        matches!(self, Self::Dir { .. })
    }

    /// Whether something stood there, or may have, that could not be read.
    #[must_use]
    pub fn is_unreadable(&self) -> bool {
        *self == Self::NotCaptured { reason: NotCapturedReason::Unreadable }
    }

    #[must_use]
    pub fn digest(&self) -> Option<Digest> {
        match self {
            Self::File { digest, .. } => Some(*digest),
            _ => None,
        }
    }

    #[must_use]
    pub fn mode(&self) -> Option<u32> {
        match self {
            Self::File { mode, .. } | Self::Dir { mode } => Some(*mode),
            _ => None,
        }
    }
}

mod target_bytes {
    use base64::Engine as _;
    use base64::engine::general_purpose::STANDARD;
    use serde::{Deserialize, Deserializer, Serializer};

    pub(super) fn serialize<S: Serializer>(bytes: &[u8], serializer: S) -> Result<S::Ok, S::Error> {
        serializer.serialize_str(&STANDARD.encode(bytes))
    }

    pub(super) fn deserialize<'de, D: Deserializer<'de>>(
        deserializer: D,
    ) -> Result<Vec<u8>, D::Error> {
        STANDARD.decode(String::deserialize(deserializer)?).map_err(serde::de::Error::custom)
    }
}
