//! The inputs of tools. A model reads the comments on the fields.

pub(crate) mod questions;

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
    /// Only points after which one of these paths, or something below it, changed; globs are allowed.
    #[serde(default)]
    pub(crate) paths: Vec<String>,
    /// Only points after which this author changed something: `you` (the user), `agent`, an agent's name,
    /// or a session.
    #[serde(default)]
    pub(crate) by: Option<String>,
    /// Only what is not older: `10m`, `2h`, `14:00` or `2026-11-19`.
    #[serde(default)]
    pub(crate) since: Option<String>,
    /// Only what is not newer.
    #[serde(default)]
    pub(crate) until: Option<String>,
    /// Only points with this text in the prompt or label.
    #[serde(default)]
    pub(crate) grep: Option<String>,
    /// Only points after which a file got or lost this text.
    #[serde(default)]
    pub(crate) text: Option<String>,
    /// Only points after which this tool changed something: `Edit`, `Bash`.
    #[serde(default)]
    pub(crate) tool: Option<String>,
    /// Rewinds, undos and redos instead of points. Not together with `session_id`, `by` and `tool`.
    #[serde(default)]
    pub(crate) ops: bool,
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
    /// The point to compare from: an id, a label, `@` (the newest; the default), `@~2`, or a time. With `!`
    /// after it (`@!`): what the prompt of that point changed, also if it was taken back later.
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
    /// Only what this author changed: `you` (the user), `agent`, an agent's name, or a session.
    #[serde(default)]
    pub(crate) by: Option<String>,
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

// For a revert and its preview.
#[derive(Debug, Deserialize, Serialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub(crate) struct Revert {
    /// One turn, by its point (an id, a label, `@~2`); one tool call of it (`POINT.N`, as `show_point`
    /// counts them, from 1); or what agents did from one point to another (`A..B`) or to now (`A..`).
    pub(crate) what: String,
    /// Only these paths and what is below them, relative to the workspace; globs are allowed.
    #[serde(default)]
    pub(crate) paths: Vec<String>,
}

#[derive(Debug, Deserialize, Serialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub(crate) struct Restore {
    /// The files, folders or globs, relative to the workspace; also of what is deleted now.
    pub(crate) paths: Vec<String>,
    /// The point: an id, a label, `@` (the newest; the default), `@~2`, or a time.
    #[serde(default = "newest")]
    pub(crate) from: String,
}

fn newest() -> String {
    "@".to_owned()
}

#[derive(Debug, Deserialize, Serialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub(crate) struct Checkpoint {
    /// A short name for the point, by which it can be found again.
    #[serde(default)]
    pub(crate) label: Option<String>,
}
