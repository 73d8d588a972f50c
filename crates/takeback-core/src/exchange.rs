//! Moves history from one workspace to another: one writes a bundle, the other reads it.
//!
//! [`export`](mod@export) writes points, the changes between them and all contents they need into one
//! file. [`import`](mod@import) appends them to this workspace's log as a detour, which begins and ends
//! at the files on disk, and touches no file. Only [`bundle`] knows the file format; [`check`] decides
//! which contents are valid before anything is stored. An agent's own file history becomes a bundle too
//! ([`agent_history`]).

mod bundle;
mod check;
mod export;
mod file;
mod git_export;
mod import;
pub(crate) mod imported;
mod export_filter;
mod series;
mod states;
mod agent_history;

pub use agent_history::{
    AgentHistory, AgentHistoryError, Edit, HistoryBundle, HistoryPrompt, HistorySession, SavedFile,
};
pub use bundle::{BundleError, BundleFile, BundleLimits, OutsidePolicy};
pub(crate) use export::left_out as paths_left_out;
pub use export::{ExportError, ExportOptions, ExportReport, IgnoredPaths, Selection, export};
pub use file::{FileError, Overwrite, write_file};
pub use git_export::{CommitNames, SeriesError, SeriesReport, export_branch, export_patches};
pub use import::{
    ImportError, ImportMode, ImportReport, ImportedPoint, ImportedSession, import, would_import,
};
pub use imported::{is_detour, original_name, same_timeline};
pub use series::SeriesOptions;
pub use states::OmittedStates;
