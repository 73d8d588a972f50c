//! Answers as text, for models that read text alone. Names and reasons come from files and prompts: each
//! stays on its line.

use std::fmt::Write as _;

use serde_json::Value;

/// Lines of a list, before the rest is only counted.
const MOST: usize = 50;
/// Characters of a patch.
const PATCH_MOST: usize = 30_000;

pub(crate) fn points(points: &[Value]) -> String {
    if points.is_empty() {
        return "No points.".to_owned();
    }
    let mut text = String::from("Points, newest first:\n");
    for point in points {
        writeln!(text, "- {}", point_line(point)).expect("text can always be longer");
    }
    text
}

/// `717fc7c81e8ac477  2026-11-15T22:29:32Z  prompt “Make it better”  (session s1)  2 files, +2 -1`
fn point_line(point: &Value) -> String {
    let mut line =
        format!("{}  {}  {}", word(&point["id"]), word(&point["createdAt"]), word(&point["kind"]));
    let named = point["label"].as_str().or_else(|| point["description"].as_str());
    if let Some(named) = named.filter(|named| !named.is_empty()) {
        line += &format!(" “{}”", one_line(named, 120));
    }
    if let Some(session) = point["session"].as_str() {
        line += &format!("  (session {})", one_line(session, 80));
    }
    match (&point["filesChanged"], &point["insertions"], &point["deletions"]) {
        (Value::Number(files), insertions, deletions) if files.as_u64() != Some(0) => {
            let noun = if files.as_u64() == Some(1) { "file" } else { "files" };
            line += &format!("  {files} {noun} changed after it, +{insertions} -{deletions}");
        }
        _ => {}
    }
    if let Some(lacking) = point["notCaptured"].as_u64().filter(|lacking| *lacking > 0) {
        line += &format!("  {lacking} not captured");
    }
    line
}

pub(crate) fn one_point(point: &Value) -> String {
    let mut text = point_line(point);
    text.push('\n');
    let changes = list(point, "changes");
    if changes.is_empty() {
        text += "Nothing was changed between it and the next point.\n";
        return text;
    }
    text += "Changed after it, until the next point:\n";
    let rows = changes.iter().map(|change| {
        let (before, after) = (&change["before"]["kind"], &change["after"]["kind"]);
        let what = match (before.as_str(), after.as_str()) {
            (Some("absent"), Some(_)) => "created",
            (Some(_), Some("absent")) => "deleted",
            (Some("unknown"), _) => "first seen",
            _ => "changed",
        };
        format!("{what} {} by {}", name(change), author(change))
    });
    rest(&mut text, rows, changes.len() + counted(point, "changes"));
    text
}

fn author(change: &Value) -> String {
    let author = &change["author"];
    let session = || one_line(word(&author["session"]), 80);
    match word(&author["kind"]) {
        "agent" => {
            let tool = one_line(word(&author["tool"]), 40);
            let how = if change["evidence"] == "tool" { "with" } else { "while running" };
            format!("session {} {how} {tool}", session())
        }
        "human" => "the user".to_owned(),
        "ambiguous" => "the user or an agent (unclear)".to_owned(),
        "rewind" => "a rewind".to_owned(),
        other => other.to_owned(),
    }
}

pub(crate) struct DiffText {
    pub(crate) text: String,
    /// Whether a part of the patch is missing.
    pub(crate) cut: bool,
}

/// The numbers of each file, then the patch as far as it fits.
pub(crate) fn diff(files: &[Value]) -> DiffText {
    if files.is_empty() {
        return DiffText { text: "Nothing differs.".to_owned(), cut: false };
    }
    let noun = if files.len() == 1 { "file differs" } else { "files differ" };
    let mut text = format!("{} {noun}:\n", files.len());
    let rows =
        files.iter().map(|file| match (file["insertions"].as_u64(), file["deletions"].as_u64()) {
            (Some(more), Some(less)) => format!("{}  +{more} -{less}", name(file)),
            _ => format!("{}  not text", name(file)),
        });
    rest(&mut text, rows, files.len());
    let mut cut = Vec::new();
    let mut room = PATCH_MOST;
    for file in files {
        let Some(patch) = file["patch"].as_str() else { continue };
        if patch.len() > room {
            cut.push(name(file));
            continue;
        }
        room -= patch.len();
        text.push('\n');
        text += patch;
    }
    if !cut.is_empty() {
        text += "\nThe patch is too long; left out:\n";
        rest(&mut text, cut.iter().cloned(), cut.len());
        text += "Ask again with `paths` for some of them, or read the files.\n";
    }
    DiffText { text, cut: !cut.is_empty() }
}

/// Whether what is told has happened.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Tense {
    Would,
    Did,
}

/// What a rewind would do, or did.
pub(crate) fn receipt(receipt: &Value, tense: Tense) -> String {
    let mut text = String::new();
    let groups = [
        ("restoredFiles", "Would restore", "Restored"),
        (
            "deletedFiles",
            "Would delete (not there at the point)",
            "Deleted (not there at the point)",
        ),
        ("mergedFiles", "Would merge", "Merged"),
        ("keptFiles", "Would keep", "Kept"),
        ("conflicts", "In conflict, would be left alone", "In conflict, left alone"),
        (
            "ambiguous",
            "Unclear who changed it, would be left alone",
            "Unclear who changed it, left alone",
        ),
        ("notCaptured", "Cannot come back", "Could not come back"),
        ("notes", "Note", "Note"),
        ("errors", "Would fail", "Failed"),
    ];
    for (key, would, did) in groups {
        let rows = list(receipt, key);
        if rows.is_empty() {
            continue;
        }
        let all = rows.len() + counted(receipt, key);
        let title = if tense == Tense::Would { would } else { did };
        writeln!(text, "{title} ({all}):").expect("text can always be longer");
        rest(&mut text, rows.iter().map(with_reason), all);
    }
    for window in list(receipt, "windows") {
        let what = window["command"].as_str().unwrap_or(word(&window["tool"]));
        writeln!(
            text,
            "{} paths changed while `{}` ran; the user's changes may be among them.",
            window["paths"],
            one_line(what, 80)
        )
        .expect("text can always be longer");
    }
    if text.is_empty() {
        text.push_str("Nothing to take back.\n");
    }
    text
}

/// Whether a preview says that no file would be touched.
pub(crate) fn does_nothing(receipt: &Value) -> bool {
    ["restoredFiles", "deletedFiles", "mergedFiles"].iter().all(|key| list(receipt, key).is_empty())
        && receipt["state"].is_null()
}

fn with_reason(row: &Value) -> String {
    let reason = row["reason"].as_str().or_else(|| row["error"].as_str());
    match reason {
        Some(reason) => format!("{}: {}", name(row), one_line(reason, 200)),
        None => name(row),
    }
}

fn rest(text: &mut String, rows: impl Iterator<Item = String>, all: usize) {
    for row in rows.take(MOST) {
        writeln!(text, "- {row}").expect("text can always be longer");
    }
    if all > MOST {
        writeln!(text, "- … and {} more", all - MOST).expect("text can always be longer");
    }
}

fn list<'a>(value: &'a Value, key: &str) -> &'a [Value] {
    value[key].as_array().map_or(&[], Vec::as_slice)
}

/// How many of a list were cut off before.
fn counted(value: &Value, key: &str) -> usize {
    value["leftOut"][key].as_u64().and_then(|n| usize::try_from(n).ok()).unwrap_or(0)
}

fn word(value: &Value) -> &str {
    value.as_str().unwrap_or_default()
}

/// A path, by itself or with more about it.
fn name(row: &Value) -> String {
    one_line(row.as_str().unwrap_or_else(|| word(&row["filePath"])), 300)
}

/// Without what would break the line or hide in it.
pub(crate) fn one_line(text: &str, most: usize) -> String {
    let plain = |c: char| if c.is_control() { '\u{fffd}' } else { c };
    let mut line: String = text.chars().take(most).map(plain).collect();
    if text.chars().nth(most).is_some() {
        line.push('…');
    }
    line
}
