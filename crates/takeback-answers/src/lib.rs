//! What Takeback answers as JSON: one type for each `--json` answer and each JSON-RPC result.
//!
//! A crate of its own, of plain data: the MCP server and other clients read answers with these types
//! and build none of what the program needs. The program writes its answers with them, and
//! `docs/schema.json` and the TypeScript types are generated from them, so that all agree.
//!
//! Keys are camelCase, but an agent's own checkpoints keep the snake_case names it saved them with.
//! Absent and `null` differ: a key that can be absent is marked `skip_serializing_if`.
//!
//! ```
//! let printed = r#"{"ok":true,"damage":[]}"#; // by `takeback verify --json`
//! let answer: takeback_answers::VerifyAnswer = serde_json::from_str(printed)?;
//! assert!(answer.ok && answer.damage.is_empty());
//! # Ok::<(), serde_json::Error>(())
//! ```

#![warn(missing_docs)]

mod agent;
mod attribution;
mod exchange;
mod file;
mod follow_up;
mod fork;
mod history;
mod point;
mod rewind;
mod rpc;
#[cfg(feature = "schema")]
pub mod schema;
mod session;
mod state;
mod store;

use std::fmt::{self, Display};

use serde::{Deserialize, Serialize};

pub use self::agent::{
    AgentCheckup, Check, DoctorAnswer, Health, HookFile, HookFileState, HookSession, InitAgent,
    InitAnswer, InitChange, InitScope, LastSession,
};
pub use self::attribution::{
    CommitNote, NoteOutcome, NotesShowAnswer, NotesWriteAnswer, TraceExportAnswer,
};
pub use self::exchange::{
    ExportAnswer, ImportAnswer, ImportSkips, ImportedPoint, ImportedSession, SeriesExportAnswer,
};
pub use self::file::{
    Author, Change, Correction, Entry, Evidence, FileDiff, FilePath, FirstSighting,
    NotCapturedReason, Note, PathEvidence, Problem, Unreadable, UnreadableKind,
};
pub use self::follow_up::{CrossedCommit, FollowUp, GitFollowUp, GitStatus, HeadMove, InstallHint};
pub use self::fork::{
    CommandResult, CompareAnswer, ComparedFork, ForkAnswer, ForkOrigin, ForkSession,
    ForkedConversation, ForkedFile, SharedFile,
};
pub use self::history::{
    BisectAnswer, BlameAnswer, BlameReport, BlamedLine, CatAnswer, Contribution, FileRow,
    HistoryAnswer, LineAuthor, LineSource, LineWriter, ModelStats, PromptStats, SessionStats,
    StatsAnswer, WhyAnswer,
};
pub use self::point::{
    ByAuthor, Call, ChangeCount, CheckpointAnswer, DiffAnswer, GitState, LogAnswer, Point,
    PointBasis, PointKind, RunAnswer, ShowAnswer, TakenBack,
};
pub use self::rewind::{
    ActionAnswer, ActiveSession, Conflict, ConflictLines, Conversation, Coverage, Covered,
    OpenConflict, PreviewAnswer, Receipt, RecoverAnswer, RecoverPreview, StateReceipt, Window,
};
pub use self::rpc::{
    FileCheckpoint, FileCopies, FileCopy, HookAnswer, PointCreated, RecordAnswer, RecordedEvent,
    RecordedStep, RefusedEvent, ServerInfo, ServerLimits, ServerStatus, SubscribeAnswer,
    WatchState,
};
pub use self::session::{ArchiveAnswer, Session, SessionDeletePreview, SessionsAnswer};
pub use self::state::{
    Branch, Checkpoint, CheckpointRecord, CheckpointStatus, Effect, EffectAnswer, Execution,
    ResumeAnswer, SaveAnswer, StateDeleteAnswer, StateDiffAnswer, StateDifference, StateExport,
    StateExportAnswer, StateExportHead, StateForkAnswer, StateListAnswer, WithdrawAnswer,
};
pub use self::store::{
    BackgroundScan, CleanupAnswer, CleanupPreview, ConfigAnswer, ConfigFileAnswer, ConfigSetAnswer,
    CoverageGap, CoverageGapReason, DuAnswer, DuPath, ErrorAnswer, ForgetAnswer, HomeCleanup,
    HomeCleanupWorkspace, IgnoredFolder, LastPoint, LostHistory, OverLimit, PreciousFiles,
    PurgeAnswer, RefusedSetting, RelocateAnswer, ServeAnswer, Setting, SettingValue, StatusAnswer,
    StatusLineAnswer, VerifyAnswer, VersionMismatch, WorkingSession, WorkspaceAnswer,
    WorkspacesAnswer, WriteFailure,
};

/// 16 hexadecimal digits: the id of a point, a turn, a rewind or a copy of a file.
#[derive(Debug, Clone, PartialEq, Eq, Hash, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
#[serde(transparent)]
pub struct Id(#[cfg_attr(feature = "schema", schemars(length(equal = 16)))] pub String);

/// A moment in ISO 8601, UTC.
#[derive(Debug, Clone, PartialEq, Eq, Hash, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
#[cfg_attr(feature = "schema", schemars(extend("format" = "date-time")))]
#[serde(transparent)]
pub struct Time(pub String);

impl Id {
    /// The id with this text.
    pub fn new(id: impl Display) -> Self {
        Self(id.to_string())
    }
}

impl Display for Id {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.0)
    }
}

impl Display for Time {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.0)
    }
}
