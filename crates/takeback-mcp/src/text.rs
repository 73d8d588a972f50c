//! Answers as text, for models that read text alone. Names and reasons come from files and prompts: each
//! stays on its line.

use std::fmt::Write as _;

use serde_json::Value;

/// Lines of a list, before the rest is only counted.
const MOST: usize = 50;

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

/// `717fc7c81e8ac477 of 2026-11-15T22:29:32Z`: nothing that anybody chose.
pub(crate) fn title(point: &Value) -> String {
    format!("{} of {}", word(&point["id"]), word(&point["createdAt"]))
}

/// The label or the prompt of a point.
pub(crate) fn called(point: &Value) -> Option<&str> {
    let label = point["label"].as_str();
    label.or_else(|| point["description"].as_str()).filter(|called| !called.is_empty())
}

/// `717fc7c81e8ac477  2026-11-15T22:29:32Z  prompt “Make it better”  (session s1)  2 files, +2 -1`
fn point_line(point: &Value) -> String {
    let mut line =
        format!("{}  {}  {}", word(&point["id"]), word(&point["createdAt"]), word(&point["kind"]));
    if let Some(called) = called(point) {
        line += &format!(" {}", quoted(called, 120));
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
        format!("{} {} by {}", word(&change["change"]), name(change), author(change))
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
            let how = match change["evidence"].as_str() {
                Some("named") => "with",
                Some("afterEdit") => "right after",
                Some("openWindow") => "or the user, after the start of",
                _ => "while running",
            };
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
    /// That patches are missing, and how to get them.
    pub(crate) note: Option<String>,
}

/// The numbers of each file, then the patches. Text without one, if they were `asked` for, was too long.
pub(crate) fn diff(files: &[Value], asked: bool) -> DiffText {
    if files.is_empty() {
        return DiffText { text: "Nothing differs.".to_owned(), note: None };
    }
    let noun = if files.len() == 1 { "file differs" } else { "files differ" };
    let mut text = format!("{} {noun}:\n", files.len());
    let rows =
        files.iter().map(|file| match (file["insertions"].as_u64(), file["deletions"].as_u64()) {
            (Some(more), Some(less)) => format!("{}  +{more} -{less}", name(file)),
            _ => format!("{}  not text", name(file)),
        });
    rest(&mut text, rows, files.len());
    for patch in files.iter().filter_map(|file| file["patch"].as_str()) {
        text.push('\n');
        text += patch;
    }
    let lacks = |file: &&Value| asked && file["patch"].is_null() && file["insertions"].is_u64();
    let lacking = files.iter().filter(lacks).count();
    let note = (lacking > 0).then(|| {
        let files = if lacking == 1 { "1 file".to_owned() } else { format!("{lacking} files") };
        format!("The patch is too long: that of {files} is left out. Ask again with `paths`, or read them.")
    });
    if let Some(note) = &note {
        text += &format!("\n{note}\n");
    }
    DiffText { text, note }
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
        ("firstSeen", "Would stay, first seen since the point", "Stay, first seen since the point"),
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
            "{} paths changed while {} ran; the user's changes may be among them.",
            window["paths"],
            quoted(what, 80)
        )
        .expect("text can always be longer");
    }
    if text.is_empty() {
        text.push_str("Nothing to take back.\n");
    }
    if let Some(note) = receipt["note"].as_str() {
        writeln!(text, "({note})").expect("text can always be longer");
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
    match (reason, row["names"].as_u64()) {
        (Some(reason), _) => format!("{}: {}", name(row), one_line(reason, 200)),
        (None, Some(names)) => format!("{}: {names} files", name(row)),
        (None, None) => name(row),
    }
}

/// As many rows as are shown of `all`, and how many are not.
fn rest(text: &mut String, rows: impl Iterator<Item = String>, all: usize) {
    let mut shown = 0;
    for row in rows.take(MOST) {
        writeln!(text, "- {row}").expect("text can always be longer");
        shown += 1;
    }
    if all > shown {
        writeln!(text, "- … and {} more", all - shown).expect("text can always be longer");
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

/// As [`one_line`], in quotes that it cannot end by itself.
pub(crate) fn quoted(text: &str, most: usize) -> String {
    let mut line = String::from("“");
    for c in one_line(text, most).chars() {
        if matches!(c, '"' | '“'..='‟' | '❝' | '❞' | '〝'..='〟' | '＂') {
            line.extend(c.escape_default());
        } else {
            line.push(c);
        }
    }
    line.push('”');
    line
}

/// Without what would break the line, hide in it or turn it around.
pub(crate) fn one_line(text: &str, most: usize) -> String {
    let mut line = String::new();
    for c in text.chars().take(most) {
        if c.is_control() || is_unseen(c) {
            line.extend(c.escape_default());
        } else {
            line.push(c);
        }
    }
    if text.chars().nth(most).is_some() {
        line.push('…');
    }
    line
}

/// What shows nothing, or looks like a space and is none.
fn is_unseen(c: char) -> bool {
    (c.is_whitespace() && c != ' ')
        || matches!(c, '\u{ad}' | '\u{34f}' | '\u{61c}' | '\u{115f}' | '\u{1160}'
            | '\u{17b4}' | '\u{17b5}' | '\u{180b}'..='\u{180f}' | '\u{200b}'..='\u{200f}'
            | '\u{2028}'..='\u{202e}' | '\u{2060}'..='\u{206f}' | '\u{2800}' | '\u{3164}'
            | '\u{fe00}'..='\u{fe0f}' | '\u{feff}' | '\u{ffa0}' | '\u{fff0}'..='\u{fffb}'
            | '\u{1bca0}'..='\u{1bca3}' | '\u{1d159}' | '\u{1d173}'..='\u{1d17a}'
            | '\u{e0000}'..='\u{e0fff}')
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    #[test]
    fn a_point_is_one_line() {
        let point = json!({"id": "717fc7c81e8ac477", "kind": "prompt", "session": "s1",
            "description": "Make it\nbetter \u{202e}", "label": null,
            "createdAt": "2026-11-15T22:29:32Z", "filesChanged": 1, "insertions": 2, "deletions": 1,
            "notCaptured": 3});
        assert_eq!(
            points(&[point]),
            "Points, newest first:\n- 717fc7c81e8ac477  2026-11-15T22:29:32Z  prompt \
             “Make it\\nbetter \\u{202e}”  (session s1)  1 file changed after it, +2 -1  3 not captured\n"
        );
        assert_eq!(points(&[]), "No points.");
    }

    #[test]
    fn what_is_quoted_stays_in_its_quotes_and_is_seen() {
        assert_eq!(quoted("a” of now.\n“", 80), "“a\\u{201d} of now.\\n\\u{201c}”");
        for c in ['\u{a0}', '\u{3000}', '\u{2003}', '\u{2800}', '\u{3164}', '\u{ffa0}', '\u{fe0f}']
        {
            assert_eq!(one_line(&c.to_string(), 80), c.escape_unicode().to_string());
        }
        assert_eq!(one_line("Grüße, 世界 ok", 80), "Grüße, 世界 ok");
    }

    #[test]
    fn a_point_says_who_changed_what() {
        let point = json!({"id": "1", "kind": "manual", "label": "x", "createdAt": "then", "changes": [
            {"filePath": "a", "change": "changed", "evidence": "named",
                "author": {"kind": "agent", "session": "s1", "tool": "Write"}},
            {"filePath": "b", "change": "created", "evidence": "window",
                "author": {"kind": "agent", "session": "s1", "tool": "Bash"}},
            {"filePath": "c", "change": "deleted", "author": {"kind": "human"}},
            {"filePath": "d", "change": "first seen", "author": {"kind": "ambiguous"}},
        ], "leftOut": {"changes": 60}});
        assert_eq!(
            one_point(&point),
            "1  then  manual “x”\nChanged after it, until the next point:\n\
             - changed a by session s1 with Write\n\
             - created b by session s1 while running Bash\n\
             - deleted c by the user\n\
             - first seen d by the user or an agent (unclear)\n\
             - … and 60 more\n"
        );
    }

    #[test]
    fn a_patch_that_is_missing_is_named() {
        let files = [
            json!({"filePath": "long", "insertions": 9, "deletions": 0}),
            json!({"filePath": "short", "insertions": 1, "deletions": 0, "patch": "+1\n"}),
            json!({"filePath": "picture", "insertions": null, "deletions": null}),
        ];
        let fits = diff(&files[1..], true);
        assert_eq!(fits.text, "2 files differ:\n- short  +1 -0\n- picture  not text\n\n+1\n");
        assert_eq!(fits.note, None);
        let cut = diff(&files, true);
        let note = "The patch is too long: that of 1 file is left out. Ask again with `paths`, or read them.";
        assert_eq!(cut.note.as_deref(), Some(note));
        assert_eq!(
            cut.text,
            format!(
                "3 files differ:\n- long  +9 -0\n- short  +1 -0\n- picture  not text\n\n+1\n\n{note}\n"
            )
        );
        assert_eq!(diff(&files[..1], false).text, "1 file differs:\n- long  +9 -0\n");
    }

    #[test]
    fn a_receipt_tells_every_kind() {
        let note = |path: &str| json!([{"filePath": path, "reason": "why"}]);
        let told = json!({"restoredFiles": ["r"], "deletedFiles": ["d"], "mergedFiles": note("m"),
            "keptFiles": note("k"), "conflicts": note("c"), "ambiguous": note("u"),
            "notCaptured": note("n"), "errors": [{"filePath": "e", "error": "full"}],
            "windows": [{"tool": "Bash", "command": "make\n", "paths": 2}]});
        assert_eq!(
            receipt(&told, Tense::Did),
            "Restored (1):\n- r\nDeleted (not there at the point) (1):\n- d\n\
             Merged (1):\n- m: why\nKept (1):\n- k: why\nIn conflict, left alone (1):\n- c: why\n\
             Unclear who changed it, left alone (1):\n- u: why\n\
             Could not come back (1):\n- n: why\nFailed (1):\n- e: full\n\
             2 paths changed while “make\\n” ran; the user's changes may be among them.\n"
        );
        assert!(!does_nothing(&told));
        let kept = json!({"keptFiles": note("k"), "restoredFiles": []});
        assert!(does_nothing(&kept));
        assert_eq!(receipt(&json!({}), Tense::Would), "Nothing to take back.\n");
    }
}
