//! The inputs of tools. A model reads the comments on the fields.

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

/// The most points that are listed at once.
const POINTS_MOST: u64 = 200;

#[derive(Debug, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub(crate) struct ListPoints {
    /// How many points at most, newest first.
    #[serde(default = "twenty")]
    #[schemars(range(min = 1, max = POINTS_MOST))]
    limit: u64,
    /// Only the points of this session: its id, or the beginning of it.
    #[serde(default)]
    pub(crate) session_id: Option<String>,
}

fn twenty() -> u64 {
    20
}

impl ListPoints {
    pub(crate) fn limit(&self) -> u64 {
        self.limit.clamp(1, POINTS_MOST)
    }
}

#[derive(Debug, Deserialize, Serialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub(crate) struct ShowPoint {
    /// The point: its id or the beginning of it, its label, a message id, `@` (the newest), `@~2` (two
    /// before the newest), or a time (`10m`, `14:00`).
    pub(crate) point: String,
}

#[derive(Debug, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub(crate) struct Diff {
    /// The point to compare from: an id, a label, `@` (the newest; the default), `@~2`, or a time.
    #[serde(default)]
    pub(crate) from: Option<String>,
    /// The point to compare to. Without it: the files as they are now.
    #[serde(default)]
    pub(crate) to: Option<String>,
    /// Only these paths and what is below them, relative to the workspace; globs are allowed.
    #[serde(default)]
    pub(crate) paths: Vec<String>,
    /// Only how many lines changed in each file, without the lines themselves.
    #[serde(default)]
    pub(crate) stat: bool,
}

// For a rewind and its preview.
#[derive(Debug, Deserialize, Serialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub(crate) struct Rewind {
    /// The point: its id or the beginning of it, its label, a message id, `@` (the newest), `@~2` (two
    /// before the newest), or a time (`10m`, `14:00`).
    pub(crate) point: String,
    /// Only these paths and what is below them, relative to the workspace; globs are allowed.
    #[serde(default)]
    pub(crate) paths: Vec<String>,
    /// Also take back what the user and others changed since the point. Only if the user asked for
    /// exactly that.
    #[serde(default)]
    pub(crate) exact: bool,
}

#[derive(Debug, Deserialize, Serialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub(crate) struct Checkpoint {
    /// A short name for the point, by which it can be found again.
    #[serde(default)]
    pub(crate) label: Option<String>,
}
