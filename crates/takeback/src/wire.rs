//! JSON answers, and paths as they stand in them.

use base64::Engine as _;
use base64::engine::general_purpose::STANDARD;
use serde::Serialize;
use serde_json::value::RawValue;
use takeback_core::rewind::FirstSeen;
use takeback_store::WorkPath;

/// An answer, whoever asked: a command prints it, `serve` passes it on.
pub(crate) type Json = Box<RawValue>;

pub(crate) fn json(value: &impl Serialize) -> Result<Json, serde_json::Error> {
    serde_json::value::to_raw_value(value)
}

/// To be flattened into an object. Text that is not exact comes with the bytes.
#[derive(Debug, Serialize)]
#[serde(rename_all = "camelCase")]
pub(crate) struct WirePath {
    file_path: String,
    #[serde(skip_serializing_if = "Option::is_none")]
    file_path_base64: Option<String>,
}

impl From<&WorkPath> for WirePath {
    fn from(path: &WorkPath) -> Self {
        let bytes = path.as_bytes();
        let exact = std::str::from_utf8(bytes).is_ok();
        Self {
            file_path: String::from_utf8_lossy(bytes).into_owned(),
            file_path_base64: (!exact).then(|| STANDARD.encode(bytes)),
        }
    }
}

/// A path and why.
#[derive(Debug, Serialize)]
pub(crate) struct WireNote<R> {
    #[serde(flatten)]
    path: WirePath,
    reason: R,
}

impl<R> WireNote<R> {
    pub(crate) fn new(path: &WorkPath, reason: R) -> Self {
        Self { path: path.into(), reason }
    }
}

/// Names that were first seen after a moment, by folder.
#[derive(Debug, Serialize)]
pub(crate) struct WireFirstSeen {
    #[serde(flatten)]
    path: WirePath,
    names: usize,
}

impl WireFirstSeen {
    pub(crate) fn new(seen: &FirstSeen) -> Self {
        Self { path: (&seen.path).into(), names: seen.names }
    }
}
