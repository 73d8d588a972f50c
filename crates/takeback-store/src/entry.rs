//! What is at a path: a file, a link, a folder, nothing, or something that was not captured.

use serde::{Deserialize, Serialize};

use crate::blob::Digest;

/// What was at a path when Takeback looked.
#[derive(Debug, Clone, PartialEq, Eq, Hash, Serialize, Deserialize)]
#[serde(tag = "kind", rename_all = "camelCase")]
pub enum Entry {
    /// Nothing was there.
    Absent,
    /// A regular file. Its bytes are in the store.
    File {
        /// The digest of its contents.
        digest: Digest,
        /// Its size in bytes.
        size: u64,
        /// Its permission bits.
        mode: u32,
    },
    /// A symlink.
    Symlink {
        /// Where it points, byte for byte; never followed.
        #[serde(with = "target_bytes")]
        target: Vec<u8>,
    },
    /// A folder.
    Dir {
        /// Its permission bits.
        mode: u32,
    },
    /// Something was there, but its bytes are not in the store.
    NotCaptured {
        /// Why not.
        #[serde(rename = "lack")]
        reason: NotCapturedReason,
    },
    /// Takeback did not look.
    Unknown,
}

/// Why bytes are not in the store. The numbers are part of the store's format.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
#[repr(u8)]
pub enum NotCapturedReason {
    /// Over the size limit for a copy before an edit, and no scan had saved it; or ignored, and
    /// over the budget for such files.
    TooLarge = 1,
    /// The agent could not be kept waiting any longer.
    Deadline = 2,
    /// No permission to read it, or the disk failed.
    Unreadable = 3,
    /// It kept changing while it was read.
    Unstable = 4,
    /// The user had it removed from the store.
    Purged = 5,
    /// A device, socket or pipe.
    Special = 6,
    /// A derived folder (build output) next to a manifest that an agent created.
    Derived = 7,
    /// A folder with more new files than Takeback copies.
    TooMany = 8,
    /// It is named like a stage but is not a stage of this store.
    Reserved = 9,
    /// Its record in the store is damaged and cannot be trusted.
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

    /// Whether the next scan may be able to capture the same file.
    #[must_use]
    pub fn may_be_captured_later(self) -> bool {
        matches!(
            self,
            Self::TooLarge | Self::Deadline | Self::Unreadable | Self::Unstable | Self::Damaged
        )
    }

    /// Whether the entry represents a folder with everything in it: nothing below was read.
    #[must_use]
    pub fn covers_folder(self) -> bool {
        matches!(self, Self::Derived | Self::TooMany | Self::Reserved)
    }

    /// The reason as a fragment for messages, such as "it could not be read".
    #[must_use]
    pub fn describe(self) -> &'static str {
        match self {
            Self::TooLarge => "too large to be copied, or over the budget",
            Self::Deadline => "the agent continued before it could be read",
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
    /// Whether the store has everything needed to restore exactly this.
    #[must_use]
    pub fn is_restorable(&self) -> bool {
        !matches!(self, Self::NotCaptured { .. } | Self::Unknown)
    }

    /// Whether it is a folder whose entry was captured.
    #[must_use]
    pub fn is_dir(&self) -> bool {
        matches!(self, Self::Dir { .. })
    }

    /// Whether something was there, or may have been, that could not be read.
    #[must_use]
    pub fn is_unreadable(&self) -> bool {
        *self == Self::NotCaptured { reason: NotCapturedReason::Unreadable }
    }

    /// The digest of a file's contents; `None` for anything else.
    #[must_use]
    pub fn digest(&self) -> Option<Digest> {
        match self {
            Self::File { digest, .. } => Some(*digest),
            _ => None,
        }
    }

    /// The permission bits of a file or folder; `None` for anything else.
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
