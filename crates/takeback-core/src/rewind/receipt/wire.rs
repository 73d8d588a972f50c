//! A receipt as JSON, as it is kept in the log.
//!
//! Paths are text, so that people and programs can read them. Those that are not UTF-8 are exact in a field
//! of their own (`filePathBase64`, `pathsBase64`): reading a receipt back gives the same receipt.

use std::borrow::Cow;
use std::collections::{BTreeMap, HashMap, HashSet};

use base64::Engine as _;
use base64::engine::general_purpose::STANDARD;
use serde::{Deserialize, Deserializer, Serialize, Serializer};
use takeback_store::{PointId, RewindId, WorkPath};

use super::{FileConflicts, Note, PathEvidence, Problem, Receipt, StateReceipt};
use crate::rewind::plan::first_seen::FirstSighting;

impl Receipt {
    /// The exact bytes, as base64, of the restored and deleted paths that are not UTF-8, by their lossy
    /// text: one for each time that the text occurs in `restored_files` and then in `deleted_files`.
    #[must_use]
    pub fn paths_base64(&self) -> BTreeMap<String, Vec<String>> {
        let paths = || self.restored_files.iter().chain(&self.deleted_files);
        let odd = paths().filter(|path| std::str::from_utf8(path.as_bytes()).is_err());
        let odd: HashSet<Cow<'_, str>> = odd.map(text).collect();
        let mut exact: BTreeMap<String, Vec<String>> = BTreeMap::new();
        if odd.is_empty() {
            return exact;
        }
        // A name that really contains U+FFFD may have the same text as an odd one.
        for path in paths().filter(|path| odd.contains(&text(path))) {
            let encoded = STANDARD.encode(path.as_bytes());
            exact.entry(text(path).into_owned()).or_default().push(encoded);
        }
        exact
    }
}

#[derive(Default, Serialize, Deserialize)]
#[serde(rename_all = "camelCase", default)]
struct WireReceipt<'a> {
    success: bool,
    rewind: Option<RewindId>,
    point: Option<PointId>,
    #[serde(skip_serializing_if = "std::ops::Not::not")]
    adopts: bool,
    safety_point: Option<PointId>,
    restored_files: Vec<Cow<'a, str>>,
    deleted_files: Vec<Cow<'a, str>>,
    #[serde(skip_serializing_if = "BTreeMap::is_empty")]
    paths_base64: BTreeMap<String, Vec<String>>,
    merged_files: Cow<'a, [Note]>,
    kept_files: Cow<'a, [Note]>,
    first_seen: Vec<WireSighting>,
    conflicts: Cow<'a, [Note]>,
    #[serde(skip_serializing_if = "<[FileConflicts]>::is_empty")]
    conflict_lines: Cow<'a, [FileConflicts]>,
    ambiguous: Cow<'a, [Note]>,
    not_captured: Cow<'a, [Note]>,
    evidence: Cow<'a, [PathEvidence]>,
    notes: Cow<'a, [Note]>,
    errors: Cow<'a, [Problem]>,
    #[serde(skip_serializing_if = "Option::is_none")]
    state: Option<Cow<'a, StateReceipt>>,
}

#[derive(Serialize, Deserialize)]
struct WireSighting {
    #[serde(flatten, with = "file_path")]
    path: WorkPath,
    #[serde(default, skip_serializing_if = "std::ops::Not::not")]
    folder: bool,
    names: usize,
}

impl Serialize for Receipt {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        let sighting = |one: &FirstSighting| WireSighting {
            path: one.path.clone(),
            folder: one.folder,
            names: one.names,
        };
        let wire = WireReceipt {
            success: self.success,
            rewind: self.rewind,
            point: self.point,
            adopts: self.adopts,
            safety_point: self.safety_point,
            restored_files: self.restored_files.iter().map(text).collect(),
            deleted_files: self.deleted_files.iter().map(text).collect(),
            paths_base64: self.paths_base64(),
            merged_files: Cow::from(&self.merged_files),
            kept_files: Cow::from(&self.kept_files),
            first_seen: self.first_seen.iter().map(sighting).collect(),
            conflicts: Cow::from(&self.conflicts),
            conflict_lines: Cow::from(&self.conflict_lines),
            ambiguous: Cow::from(&self.ambiguous),
            not_captured: Cow::from(&self.not_captured),
            evidence: Cow::from(&self.evidence),
            notes: Cow::from(&self.notes),
            errors: Cow::from(&self.errors),
            state: self.state.as_ref().map(Cow::Borrowed),
        };
        wire.serialize(serializer)
    }
}

impl<'de> Deserialize<'de> for Receipt {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        let wire = WireReceipt::deserialize(deserializer)?;
        let mut exact: HashMap<String, std::vec::IntoIter<String>> =
            wire.paths_base64.into_iter().map(|(text, all)| (text, all.into_iter())).collect();
        let mut paths = |texts: Vec<Cow<'_, str>>| -> Result<Vec<WorkPath>, D::Error> {
            let path = |text: Cow<'_, str>| {
                let encoded = exact.get_mut(text.as_ref()).and_then(Iterator::next);
                read_path(text.into_owned(), encoded)
            };
            texts.into_iter().map(path).collect()
        };
        let sighting = |one: WireSighting| FirstSighting {
            path: one.path,
            folder: one.folder,
            names: one.names,
        };
        Ok(Self {
            success: wire.success,
            rewind: wire.rewind,
            point: wire.point,
            adopts: wire.adopts,
            safety_point: wire.safety_point,
            restored_files: paths(wire.restored_files)?,
            deleted_files: paths(wire.deleted_files)?,
            merged_files: wire.merged_files.into_owned(),
            kept_files: wire.kept_files.into_owned(),
            first_seen: wire.first_seen.into_iter().map(sighting).collect(),
            conflicts: wire.conflicts.into_owned(),
            conflict_lines: wire.conflict_lines.into_owned(),
            ambiguous: wire.ambiguous.into_owned(),
            not_captured: wire.not_captured.into_owned(),
            evidence: wire.evidence.into_owned(),
            notes: wire.notes.into_owned(),
            errors: wire.errors.into_owned(),
            state: wire.state.map(Cow::into_owned),
        })
    }
}

fn text(path: &WorkPath) -> Cow<'_, str> {
    String::from_utf8_lossy(path.as_bytes())
}

fn read_path<E: serde::de::Error>(text: String, encoded: Option<String>) -> Result<WorkPath, E> {
    let bytes = match encoded {
        Some(encoded) => STANDARD.decode(encoded).map_err(E::custom)?,
        None => text.into_bytes(),
    };
    WorkPath::new(bytes).map_err(E::custom)
}

/// `filePath` is text; bytes that are not UTF-8 are exact in `filePathBase64`.
pub(super) mod file_path {
    use base64::Engine as _;

    use super::{
        Cow, Deserialize, Deserializer, STANDARD, Serialize, Serializer, WorkPath, read_path, text,
    };

    #[derive(Serialize, Deserialize)]
    #[serde(rename_all = "camelCase")]
    struct WireFilePath<'a> {
        file_path: Cow<'a, str>,
        #[serde(default, skip_serializing_if = "Option::is_none")]
        file_path_base64: Option<String>,
    }

    pub(in super::super) fn serialize<S: Serializer>(
        path: &WorkPath,
        serializer: S,
    ) -> Result<S::Ok, S::Error> {
        let bytes = path.as_bytes();
        let is_text = std::str::from_utf8(bytes).is_ok();
        let file_path_base64 = (!is_text).then(|| STANDARD.encode(bytes));
        WireFilePath { file_path: text(path), file_path_base64 }.serialize(serializer)
    }

    pub(in super::super) fn deserialize<'de, D: Deserializer<'de>>(
        deserializer: D,
    ) -> Result<WorkPath, D::Error> {
        let wire = WireFilePath::deserialize(deserializer)?;
        read_path(wire.file_path.into_owned(), wire.file_path_base64)
    }
}

#[cfg(test)]
mod tests {
    use takeback_store::Evidence;
    use takeback_store::state::{BranchName, ExecutionId};

    use super::*;
    use crate::rewind::conflict::{LineConflict, LineText};

    fn path(bytes: impl AsRef<[u8]>) -> WorkPath {
        WorkPath::new(bytes.as_ref()).expect("a plain path")
    }

    fn odd() -> Receipt {
        let note = |bytes: &[u8]| Note { path: path(bytes), reason: "a \"reason\"\n".to_owned() };
        Receipt {
            success: true,
            rewind: Some(RewindId(1)),
            point: Some(PointId(2)),
            adopts: true,
            safety_point: Some(PointId(3)),
            restored_files: vec![
                path("plain"),
                path(b"a-\xff"),
                path("a-\u{fffd}"),
                path(b"a-\xfe"),
                path("/outside/\u{1f980}\n"),
            ],
            deleted_files: vec![path(b"a-\xff"), path("b-\u{fffd}"), path(b"dir-\xc3/x")],
            merged_files: vec![note(b"m-\x80"), note(b"m")],
            kept_files: vec![note(b"k")],
            first_seen: vec![
                FirstSighting { path: path(b"d-\xff"), folder: true, names: 2 },
                FirstSighting { path: path("file"), folder: false, names: 1 },
            ],
            conflicts: vec![note(b"c")],
            conflict_lines: vec![FileConflicts {
                path: path(b"c-\xff"),
                lines: vec![LineConflict {
                    line: 3,
                    count: 1,
                    mine: LineText(b"mine\n".to_vec()),
                    before: LineText(b"\xff\n".to_vec()),
                }],
            }],
            ambiguous: vec![note(b"u")],
            not_captured: vec![note(b"n")],
            evidence: vec![PathEvidence { path: path(b"a-\xff"), evidence: Evidence::AfterEdit }],
            notes: vec![note(b"s")],
            errors: vec![Problem { path: path(b"e-\xff"), error: "no space".to_owned() }],
            state: Some(StateReceipt {
                execution: ExecutionId::new("x").expect("a name"),
                branch: BranchName::new("main").expect("a name"),
                checkpoint: Some("x/1/1".to_owned()),
                moved: true,
                stays: false,
                error: None,
            }),
        }
    }

    #[test]
    fn a_receipt_is_read_back_as_it_was() {
        for receipt in [Receipt::default(), odd(), Receipt { state: None, ..odd() }] {
            let json = serde_json::to_string(&receipt).expect("JSON");
            assert_eq!(
                serde_json::from_str::<Receipt>(&json).expect("a receipt"),
                receipt,
                "{json}"
            );
        }
    }

    #[test]
    fn names_that_are_not_text_are_exact_beside_their_text() {
        let json = serde_json::to_value(odd()).expect("JSON");
        let lossy = "a-\u{fffd}";
        assert_eq!(
            json["restoredFiles"],
            serde_json::json!(["plain", lossy, lossy, lossy, "/outside/\u{1f980}\n"])
        );
        assert_eq!(
            json["pathsBase64"],
            serde_json::json!({
                lossy: ["YS3/", "YS3vv70=", "YS3+", "YS3/"],
                "dir-\u{fffd}/x": ["ZGlyLcMveA=="],
            })
        );
        let plain = Receipt { restored_files: vec![path("a")], ..Receipt::default() };
        let json = serde_json::to_value(plain).expect("JSON");
        assert_eq!(json.get("pathsBase64"), None);
    }
}
