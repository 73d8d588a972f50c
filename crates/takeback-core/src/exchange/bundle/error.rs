//! Why a file is not taken for a bundle.

use std::io;

use takeback_store::{Digest, PointId, SessionId};

/// Why a bundle is refused. Nothing of it has been kept then.
///
/// Up to [`Self::Damaged`]: not what was exported. From there on the checksum is right, so that
/// somebody made the file like this on purpose. Paths are as people are shown them.
#[derive(Debug, thiserror::Error)]
pub enum BundleError {
    #[error("it cannot be read")]
    Io { source: io::Error },
    #[error("it is not a Takeback bundle")]
    Foreign,
    #[error("it has version {found}; this Takeback knows versions up to {known}")]
    Newer { found: u32, known: u32 },
    #[error("it is cut short: its end is missing")]
    Cut,
    #[error("it is damaged: its checksum is wrong")]
    Damaged,
    #[error("it changed while it was read")]
    Changed,

    #[error("its record at byte {at} is not one: {why}")]
    Record { at: u64, why: &'static str },
    #[error("it has more {what} than {limit}")]
    TooMany { what: &'static str, limit: u64 },
    #[error("its contents are larger than {limit} bytes")]
    TooLarge { limit: u64 },
    #[error("its last record counts other records than it has")]
    Counts,
    #[error("{what} is at a time that no clock shows")]
    Time { what: String },

    #[error("its path {path:?} is not a plain path: {why}")]
    Path { path: String, why: &'static str },
    #[error("its path {path} lies outside the workspace")]
    Outside { path: String },
    #[error("its path {path} belongs to version control or to Takeback")]
    Internal { path: String },
    #[error("its path {path} lies below {above}, which is no folder then")]
    Blocked { path: String, above: String },
    #[error("its path {path} stands twice in one tree")]
    Twice { path: String },
    #[error("its link {path} leads to no name")]
    Link { path: String },

    #[error("its change {change} of {path} does not begin where the one before ended")]
    OutOfOrder { change: u64, path: String },
    #[error("its change {change} of {path} changes nothing")]
    NoChange { change: u64, path: String },
    #[error("its change {change} of {path} takes back something else than an earlier change of it")]
    Cancels { change: u64, path: String },
    #[error("it names the session {session}, which it does not have")]
    NoSession { session: SessionId },
    #[error("its session {session} stands there twice")]
    SessionTwice { session: SessionId },
    #[error("its turn {turn} stands there twice")]
    TurnTwice { turn: takeback_store::TurnId },
    #[error("it has no points")]
    NoPoints,
    #[error("its point {point} lies behind its last change, or before an earlier point")]
    PointOutside { point: PointId },
    #[error("its point {point} stands there twice")]
    PointTwice { point: PointId },
    #[error("its point {point} has the label {label:?}, which is none")]
    Label { point: PointId, label: String },

    #[error("the contents of {path} are missing in it")]
    NoBlob { path: String },
    #[error("the contents of {path} have another size in it than it says")]
    BlobSize { path: String },
    #[error("its contents {digest} are not what they are called")]
    WrongBlob { digest: Digest },
    #[error("its contents {digest} are packed into more bytes than they need")]
    Padded { digest: Digest },
    #[error("its contents {digest} lack a part")]
    NoPart { digest: Digest },
    #[error("its contents {digest} stand there twice")]
    BlobTwice { digest: Digest },
    #[error("nothing in it needs its contents {digest}")]
    BlobUnneeded { digest: Digest },
}
