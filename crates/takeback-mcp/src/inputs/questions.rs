//! The inputs of the questions about files over time. A model reads the comments on the fields.

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

/// The most rows of a file's history at once.
const ROWS_MOST: usize = 200;

#[derive(Debug, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub(crate) struct Blame {
    /// The file, relative to the workspace.
    pub(crate) path: String,
    /// Only these lines: `12` or `10-40`. Without it: the first 200.
    #[serde(default)]
    pub(crate) lines: Option<String>,
}

#[derive(Debug, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub(crate) struct Why {
    /// The file, relative to the workspace.
    pub(crate) path: String,
    /// The number of the line, from 1.
    #[schemars(range(min = 1))]
    pub(crate) line: u64,
}

#[derive(Debug, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub(crate) struct History {
    /// The file, relative to the workspace; also one that was deleted.
    pub(crate) path: String,
    /// How many rows at most, newest first.
    #[serde(default = "twenty")]
    #[schemars(range(min = 1, max = ROWS_MOST))]
    limit: usize,
}

fn twenty() -> usize {
    20
}

impl History {
    pub(crate) fn limit(&self) -> usize {
        self.limit.clamp(1, ROWS_MOST)
    }
}

#[derive(Debug, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub(crate) struct Stats {
    /// Only between two points: `A..B`, `A..` or `..B`, each by id, label, `@` or `@~2`.
    #[serde(default)]
    pub(crate) range: Option<String>,
    /// Only what was written since then: `2h`, `14:00` or `2026-11-19`.
    #[serde(default)]
    pub(crate) since: Option<String>,
}

#[derive(Debug, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub(crate) struct Cat {
    /// The point: its id or the beginning of it, its label, a message id, `@` (the newest), `@~2` (two
    /// before the newest), or a time (`10m`, `14:00`).
    pub(crate) point: String,
    /// The file, relative to the workspace; also one that was deleted since.
    pub(crate) path: String,
    /// Only these lines: `12` or `10-40`.
    #[serde(default)]
    pub(crate) lines: Option<String>,
}

#[derive(Debug, Deserialize, Serialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub(crate) struct Bisect {
    /// The program and its arguments: `["cargo", "test", "one_test"]`, or `["sh", "-c", "..."]` for shell
    /// syntax. Exit code 0 is good, 125 means that it cannot be tested, any other is bad.
    #[schemars(length(min = 1))]
    command: Vec<String>,
    /// A point at which the command succeeds. Without it: the oldest point.
    #[serde(default)]
    good: Option<String>,
    /// A point at which it fails. Without it: the files as they are now.
    #[serde(default)]
    bad: Option<String>,
    /// Paths to copy into the scratch folder first, relative to the workspace: those that are not recorded
    /// and that the command needs, such as `node_modules`.
    #[serde(default)]
    with: Vec<String>,
}
