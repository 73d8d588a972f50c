//! Taking history from one workspace to another: a bundle is written there and read here.
//!
//! [`export`](mod@export) writes points, the changes between them and all contents they need into one file.
//! [`import`](mod@import) appends them to this workspace's log as a detour, which begins and ends at what
//! stands on disk, and touches no file. What a bundle looks like, [`bundle`] alone knows; what it
//! may say, [`check`] decides, before anything of it is kept. What another program kept of its own
//! work becomes a bundle too ([`story`]).

pub mod bundle;
mod check;
pub mod export;
mod file;
pub mod import;
pub(crate) mod imported;
mod left_out;
mod states;
pub mod story;

pub use bundle::{BundleError, BundleFile, BundleLimits, Outside};
pub use export::{ExportError, ExportOptions, Exported, Ignored, Selection, export};
pub use file::{FileError, Overwrite, write_file};
pub use import::{
    ImportError, Imported, ImportedPoint, ImportedSession, Trial, import, would_import,
};
pub use imported::{is_detour, name_there, same_story};
pub use states::StatesLeftOut;
pub use story::{Edit, Kept, Story, StoryError, StoryPrompt, StorySession, ToldStory};
