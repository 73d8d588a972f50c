//! Why a file is not a valid bundle.

use std::io;

use takeback_store::{Digest, PointId, SessionId};

/// Why a bundle is refused. Nothing of it has been stored then.
///
/// Up to [`Self::Damaged`]: not what was exported. After that the checksum is right, so the file was made
/// like this on purpose. Paths are in display form.
#[derive(Debug, thiserror::Error)]
#[expect(missing_docs, reason = "the messages say what the fields are")]
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

    #[error("its record at byte {at} is invalid: {why}")]
    Record { at: u64, why: &'static str },
    #[error("it has more {what} than {limit}")]
    TooMany { what: &'static str, limit: u64 },
    #[error("its contents are larger than {limit} bytes")]
    TooLarge { limit: u64 },
    #[error("its last record counts other records than it has")]
    Counts,
    #[error("{what} has an impossible time")]
    Time { what: String },

    #[error("its path {path:?} is malformed: {why}")]
    Path { path: String, why: &'static str },
    #[error("its path {path} is outside the workspace")]
    Outside { path: String },
    #[error("its path {path} belongs to version control or to Takeback")]
    Internal { path: String },
    #[error("its path {path} is below {above}, which is not a folder at that point")]
    Blocked { path: String, above: String },
    #[error("its path {path} occurs twice in one tree")]
    Twice { path: String },
    #[error("its link {path} has an invalid target")]
    Link { path: String },

    #[error("its change {change} of {path} does not begin where the one before ended")]
    OutOfOrder { change: u64, path: String },
    #[error("its change {change} of {path} changes nothing")]
    NoChange { change: u64, path: String },
    #[error(
        "its change {change} of {path} takes back something other than an earlier change of that path"
    )]
    Cancels { change: u64, path: String },
    #[error("it refers to session {session}, which it does not contain")]
    NoSession { session: SessionId },
    #[error("its session {session} occurs twice")]
    SessionTwice { session: SessionId },
    #[error("its turn {turn} occurs twice")]
    TurnTwice { turn: takeback_store::TurnId },
    #[error("it has no points")]
    NoPoints,
    #[error("its point {point} is after its last change, or before an earlier point")]
    PointOutside { point: PointId },
    #[error("its point {point} occurs twice")]
    PointTwice { point: PointId },
    #[error("its point {point} has the invalid label {label:?}")]
    Label { point: PointId, label: String },

    #[error("the contents of {path} are missing")]
    NoBlob { path: String },
    #[error("the contents of {path} do not have the declared size")]
    BlobSize { path: String },
    #[error("its contents {digest} do not match their digest")]
    WrongBlob { digest: Digest },
    #[error("its contents {digest} are packed into more bytes than they need")]
    Padded { digest: Digest },
    #[error("its contents {digest} lack a part")]
    NoPart { digest: Digest },
    #[error("its contents {digest} occur twice")]
    BlobTwice { digest: Digest },
    #[error("nothing in it needs its contents {digest}")]
    BlobUnneeded { digest: Digest },
}
