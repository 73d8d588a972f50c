//! What tools answer as JSON: the answers of `takeback serve`, cut to what a model needs.
//!
//! Some agents show their model only this JSON and not the text, so everything that a model needs is here,
//! too. Lists have at most [`MOST`] entries, and `leftOut` counts the others; digests and modes are left out.

pub(crate) mod questions;

use std::collections::BTreeMap;

use schemars::JsonSchema;
use serde::Serialize;
use takeback_answers::{
    Author, Call, Change, Correction, Entry, Evidence, FileDiff, FilePath, GitState, Point,
    Receipt, ShowAnswer, Time,
};

/// Entries of a list that a model is given.
const MOST: usize = 200;

/// How many entries of each list were left out.
pub(crate) type OmittedCounts = BTreeMap<&'static str, usize>;

#[derive(Debug, Serialize, JsonSchema)]
pub(crate) struct Points {
    /// Newest first.
    pub(crate) points: Vec<Point>,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub(crate) hint: Option<String>,
}

#[derive(Debug, Serialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub(crate) struct PointDetails {
    #[serde(flatten)]
    pub(crate) point: Point,
    pub(crate) prompt: Option<String>,
    pub(crate) model: Option<String>,
    pub(crate) git: Option<GitState>,
    /// The tool calls of its turn, and those that the changes name.
    pub(crate) calls: Vec<Call>,
    /// What changed after it, until the next point.
    pub(crate) changes: Vec<ChangeSummary>,
    #[serde(skip_serializing_if = "BTreeMap::is_empty")]
    pub(crate) left_out: OmittedCounts,
}

#[derive(Debug, Serialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub(crate) struct ChangeSummary {
    #[serde(flatten)]
    pub(crate) path: FilePath,
    pub(crate) change: ChangeKind,
    pub(crate) author: Author,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub(crate) evidence: Option<Evidence>,
    #[serde(skip_serializing_if = "Option::is_none")]
    correction: Option<Correction>,
    time: Time,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, JsonSchema)]
pub(crate) enum ChangeKind {
    #[serde(rename = "created")]
    Created,
    #[serde(rename = "changed")]
    Changed,
    #[serde(rename = "deleted")]
    Deleted,
    #[serde(rename = "first seen")]
    FirstSeen,
}

#[derive(Debug, Serialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub(crate) struct Diff {
    pub(crate) files: Vec<FileLines>,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub(crate) note: Option<String>,
    #[serde(skip_serializing_if = "BTreeMap::is_empty")]
    left_out: OmittedCounts,
}

#[derive(Debug, Serialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub(crate) struct FileLines {
    #[serde(flatten)]
    pub(crate) path: FilePath,
    /// `null`: not text.
    pub(crate) insertions: Option<usize>,
    pub(crate) deletions: Option<usize>,
    #[serde(skip_serializing_if = "std::ops::Not::not")]
    damaged: bool,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub(crate) renamed_from: Option<String>,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub(crate) patch: Option<String>,
}

/// A preview or a receipt.
#[derive(Debug, Serialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub(crate) struct RewindReceipt {
    #[serde(flatten)]
    pub(crate) receipt: Receipt,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub(crate) note: Option<&'static str>,
    #[serde(skip_serializing_if = "BTreeMap::is_empty")]
    pub(crate) left_out: OmittedCounts,
}

#[derive(Debug, Serialize, JsonSchema)]
pub(crate) struct Rewind {
    pub(crate) outcome: RewindOutcome,
    pub(crate) message: String,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub(crate) receipt: Option<RewindReceipt>,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub(crate) enum RewindOutcome {
    Done,
    NothingToDo,
    Declined,
    Cancelled,
}

impl From<ShowAnswer> for PointDetails {
    fn from(answer: ShowAnswer) -> Self {
        let ShowAnswer { point, prompt, model, git, changes, mut calls } = answer;
        let mut changes: Vec<ChangeSummary> = changes.into_iter().map(Into::into).collect();
        let mut left_out = OmittedCounts::new();
        cut(&mut left_out, "changes", &mut changes);
        cut(&mut left_out, "calls", &mut calls);
        Self { point, prompt, model, git, calls, changes, left_out }
    }
}

impl From<Change> for ChangeSummary {
    fn from(change: Change) -> Self {
        let Change { path, before, after, author, evidence, correction, time, seq: _ } = change;
        let change = match (before, after) {
            (Entry::Unknown, _) => ChangeKind::FirstSeen,
            (Entry::Absent, _) => ChangeKind::Created,
            (_, Entry::Absent) => ChangeKind::Deleted,
            _ => ChangeKind::Changed,
        };
        Self { path, change, author, evidence, correction, time }
    }
}

impl From<FileDiff> for FileLines {
    fn from(diff: FileDiff) -> Self {
        let FileDiff { path, insertions, deletions, damaged, renamed_from, patch, .. } = diff;
        Self { path, insertions, deletions, damaged, renamed_from, patch }
    }
}

impl Diff {
    pub(crate) fn new(mut files: Vec<FileLines>, note: Option<String>) -> Self {
        let mut left_out = OmittedCounts::new();
        cut(&mut left_out, "files", &mut files);
        Self { files, note, left_out }
    }
}

impl From<Receipt> for RewindReceipt {
    /// Reasons address the user as "you"; this says so to the model.
    fn from(mut receipt: Receipt) -> Self {
        let notes = [
            &receipt.merged_files,
            &receipt.kept_files,
            &receipt.ambiguous,
            &receipt.not_captured,
            &receipt.notes,
        ];
        let in_conflict = receipt.conflicts.iter().map(|conflict| &conflict.note);
        let notes = notes.into_iter().flatten().chain(in_conflict);
        let says_you = { notes }.any(|note| note.reason.contains("you"));
        let mut left_out = OmittedCounts::new();
        cut(&mut left_out, "restoredFiles", &mut receipt.restored_files);
        cut(&mut left_out, "deletedFiles", &mut receipt.deleted_files);
        cut(&mut left_out, "mergedFiles", &mut receipt.merged_files);
        cut(&mut left_out, "keptFiles", &mut receipt.kept_files);
        cut(&mut left_out, "firstSeen", &mut receipt.first_seen);
        cut(&mut left_out, "conflicts", &mut receipt.conflicts);
        cut(&mut left_out, "ambiguous", &mut receipt.ambiguous);
        cut(&mut left_out, "notCaptured", &mut receipt.not_captured);
        cut(&mut left_out, "evidence", &mut receipt.evidence);
        cut(&mut left_out, "notes", &mut receipt.notes);
        cut(&mut left_out, "errors", &mut receipt.errors);
        cut(&mut left_out, "windows", receipt.windows.get_or_insert_default());
        cut(&mut left_out, "hints", &mut receipt.follow_up.hints);
        let note = says_you.then_some("“You” in a reason is the user.");
        Self { receipt, note, left_out }
    }
}

fn cut<T>(left_out: &mut OmittedCounts, key: &'static str, list: &mut Vec<T>) {
    if list.len() > MOST {
        left_out.insert(key, list.len() - MOST);
        list.truncate(MOST);
    }
}

#[cfg(test)]
mod tests {
    use takeback_answers::Note;

    use super::*;

    #[test]
    fn a_change_is_one_word() {
        let file = || Entry::Dir { mode: 0o755 };
        for (before, after, expected) in [
            (Entry::Absent, file(), ChangeKind::Created),
            (file(), Entry::Absent, ChangeKind::Deleted),
            (file(), file(), ChangeKind::Changed),
            (Entry::Unknown, file(), ChangeKind::FirstSeen),
        ] {
            let path = FilePath { file_path: "a".to_owned(), file_path_base64: None };
            let (time, author) = (Time(String::new()), Author::Human);
            let change = Change {
                seq: 1,
                path,
                before,
                after,
                author,
                evidence: None,
                correction: None,
                time,
            };
            assert_eq!(ChangeSummary::from(change).change, expected);
        }
    }

    #[test]
    fn a_reason_that_says_you_comes_with_who_that_is() {
        let note = |reason: &str| Note {
            path: FilePath { file_path: "you".to_owned(), file_path_base64: None },
            reason: reason.to_owned(),
        };
        let kept = |reason| Receipt { kept_files: vec![note(reason)], ..Receipt::default() };
        assert_eq!(RewindReceipt::from(kept("changed by s1")).note, None);
        let note = RewindReceipt::from(kept("changed by you")).note;
        assert_eq!(note, Some("“You” in a reason is the user."));
    }

    #[test]
    fn long_lists_are_cut_and_counted() {
        let restored_files = (0..MOST + 7).map(|n| n.to_string()).collect();
        let receipt = RewindReceipt::from(Receipt { restored_files, ..Receipt::default() });
        assert_eq!(receipt.receipt.restored_files.len(), MOST);
        assert_eq!(receipt.left_out, OmittedCounts::from([("restoredFiles", 7)]));
        let short = Receipt { deleted_files: vec!["a".to_owned()], ..Receipt::default() };
        assert_eq!(RewindReceipt::from(short).left_out, OmittedCounts::new());
    }
}
