//! Answers as text, for models that read only text. Names and reasons come from files and prompts, so each is
//! kept on its own line.

pub(crate) mod questions;

use std::fmt::Write as _;

use takeback_answers::{
    Author, ByAuthor, Call, ChangeCount, Coverage, Covered, Evidence, Note, Point, PointKind,
    Receipt, TakenBack,
};

use crate::outputs::{ChangeKind, FileLines, OmittedCounts, PointDetails, RewindReceipt};

/// Rows of a list; the rest is only counted.
const MOST: usize = 50;

pub(crate) fn points(points: &[Point]) -> String {
    if points.is_empty() {
        return "No points.".to_owned();
    }
    let rows: String = points.iter().map(|point| format!("- {}\n", point_line(point))).collect();
    format!("Points, newest first:\n{rows}")
}

/// `717fc7c81e8ac477 of 2026-11-15T22:29:32Z`: nothing that an agent chose.
pub(crate) fn title(point: &Point) -> String {
    format!("{} of {}", point.id, point.created_at)
}

/// The label or the prompt of a point.
pub(crate) fn name_of(point: &Point) -> Option<&str> {
    let name = point.label.as_deref().unwrap_or(&point.description);
    (!name.is_empty()).then_some(name)
}

/// `717fc7c81e8ac477  2026-11-15T22:29:32Z  prompt “Make it better”  (session s1)  2 files, +2 -1`
fn point_line(point: &Point) -> String {
    let mut line = format!("{}  {}  {}", point.id, point.created_at, point.kind.name());
    if let Some(name) = name_of(point) {
        line += &format!(" {}", quoted(name, 120));
    }
    if let Some(session) = &point.session {
        line += &format!("  (session {})", one_line(session, 80));
    }
    let counts = author_counts(&point.by_author);
    let is_operation = matches!(point.kind, PointKind::Rewind | PointKind::Undo | PointKind::Redo);
    if !counts.is_empty() {
        line += &format!("  changed after it: {counts}");
    } else if is_operation {
        let Point { insertions, deletions, .. } = point;
        let files = count(point.files_changed, "file");
        line += &format!("  changed {files}, +{insertions} -{deletions}");
    } else if point.files_changed > 0 {
        let Point { insertions, deletions, .. } = point;
        let files = count(point.files_changed, "file");
        line += &format!("  {files} changed after it, +{insertions} -{deletions}");
    }
    line += match point.taken_back {
        TakenBack::Partly if is_operation => "  (partly undone)",
        TakenBack::Yes if is_operation => "  (undone)",
        other => taken_back(other),
    };
    if let Some(git) = &point.git_moved {
        line += &format!("  git: {}", one_line(&git.describe(), 200));
    }
    if point.not_captured > 0 {
        line += &format!("  {} not captured", point.not_captured);
    }
    line
}

/// `agent 2 files, +5 -0; user 1 file, +3 -0`; empty if there is nothing to count.
fn author_counts(by_author: &ByAuthor) -> String {
    let ByAuthor { agent, you, others, unclear } = *by_author;
    let parties =
        [("agent", agent), ("user", you), ("other sessions", others), ("unclear", unclear)];
    let parties = parties.into_iter().filter(|(_, counted)| counted.files > 0);
    let counts: Vec<String> = parties
        .map(|(who, counted)| {
            let ChangeCount { files, insertions, deletions } = counted;
            format!("{who} {}, +{insertions} -{deletions}", count(files, "file"))
        })
        .collect();
    counts.join("; ")
}

fn taken_back(taken_back: TakenBack) -> &'static str {
    match taken_back {
        TakenBack::No => "",
        TakenBack::Partly => "  (partly taken back)",
        TakenBack::Yes => "  (taken back)",
    }
}

fn count(n: usize, noun: &str) -> String {
    format!("{n} {noun}{}", if n == 1 { "" } else { "s" })
}

pub(crate) fn point_details(details: &PointDetails) -> String {
    let mut text = point_line(&details.point);
    text.push('\n');
    if !details.calls.is_empty() {
        text += "Tool calls:\n";
        let all = details.calls.len() + left_out(&details.left_out, "calls");
        push_rows(&mut text, details.calls.iter().map(call), all);
    }
    if details.changes.is_empty() {
        text += "Nothing was changed between it and the next point.\n";
        return text;
    }
    text += "Changed after it, until the next point:\n";
    let rows = details.changes.iter().map(|change| {
        let kind = match change.change {
            ChangeKind::Created => "created",
            ChangeKind::Changed => "changed",
            ChangeKind::Deleted => "deleted",
            ChangeKind::FirstSeen => "first seen",
        };
        format!(
            "{kind} {} by {}",
            path(&change.path.file_path),
            author(&change.author, change.evidence)
        )
    });
    let all = details.changes.len() + left_out(&details.left_out, "changes");
    push_rows(&mut text, rows, all);
    text
}

/// `Bash “cargo fmt”  2 files`
fn call(call: &Call) -> String {
    let command = call.command.as_ref().map(|command| format!(" {}", quoted(command, 200)));
    let command = command.unwrap_or_default();
    format!("{}{command}  {}", one_line(&call.tool, 40), count(call.files, "file"))
}

fn author(author: &Author, evidence: Option<Evidence>) -> String {
    match author {
        Author::Agent { session, tool, .. } => {
            let how = match evidence {
                Some(Evidence::Named) => "with",
                Some(Evidence::AfterEdit) => "right after",
                Some(Evidence::OpenWindow) => "or the user, after the start of",
                _ => "while running",
            };
            format!("session {} {how} {}", one_line(session, 80), one_line(tool, 40))
        }
        Author::Human => "the user".to_owned(),
        Author::Ambiguous { .. } => "the user or an agent (unclear)".to_owned(),
        Author::Rewind { .. } => "a rewind".to_owned(),
        Author::Deleted => "a deleted session".to_owned(),
        Author::Import => "an import".to_owned(),
    }
}

pub(crate) struct DiffText {
    pub(crate) text: String,
    /// A note that patches are missing, and how to get them.
    pub(crate) note: Option<String>,
}

fn file_name(file: &FileLines) -> String {
    let new = path(&file.path.file_path);
    match &file.renamed_from {
        Some(old) => format!("{} => {new}", path(old)),
        None => new,
    }
}

/// The counts of each file, then the patches. Text without one, if patches were asked for, was too long.
pub(crate) fn diff(files: &[FileLines], with_patches: bool) -> DiffText {
    if files.is_empty() {
        return DiffText { text: "No differences.".to_owned(), note: None };
    }
    let noun = if files.len() == 1 { "file differs" } else { "files differ" };
    let mut text = format!("{} {noun}:\n", files.len());
    let rows = files.iter().map(|file| match (file.insertions, file.deletions) {
        (Some(more), Some(less)) => format!("{}  +{more} -{less}", file_name(file)),
        _ => format!("{}  not text", file_name(file)),
    });
    push_rows(&mut text, rows, files.len());
    for patch in files.iter().filter_map(|file| file.patch.as_ref()) {
        text.push('\n');
        text += patch;
    }
    let lacks = |file: &&FileLines| file.patch.is_none() && file.insertions.is_some();
    let lacking = files.iter().filter(lacks).count();
    let note = (with_patches && lacking > 0).then(|| {
        let files = count(lacking, "file");
        format!("The patch is too long: that of {files} is left out. Ask again with `paths`, or read them.")
    });
    if let Some(note) = &note {
        text += &format!("\n{note}\n");
    }
    DiffText { text, note }
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Tense {
    Would,
    Did,
}

/// What a rewind would do, or did, with notes for the model.
pub(crate) fn rewind_receipt(output: &RewindReceipt, tense: Tense) -> String {
    let mut text = receipt(&output.receipt, &output.left_out, tense);
    if let Some(note) = output.note {
        text += &format!("({note})\n");
    }
    text
}

/// What a rewind would do, or did.
pub(crate) fn receipt(receipt: &Receipt, cut: &OmittedCounts, tense: Tense) -> String {
    let paths = |paths: &[String]| -> Vec<String> { paths.iter().map(|one| path(one)).collect() };
    let with = |at: &str, reason: &str| format!("{}: {}", path(at), one_line(reason, 200));
    let notes = |notes: &[Note]| -> Vec<String> {
        notes.iter().map(|note| with(&note.path.file_path, &note.reason)).collect()
    };
    let conflicts = receipt.conflicts.iter().map(|conflict| {
        let lines: Vec<String> = conflict.lines.iter().map(|at| at.line.to_string()).collect();
        let lines = match lines.is_empty() {
            true => String::new(),
            false => format!(" (line {})", lines.join(", ")),
        };
        with(&conflict.note.path.file_path, &conflict.note.reason) + &lines
    });
    let seen = receipt.first_seen.iter();
    let seen = seen.map(|one| with(&one.path.file_path, &count(one.names, "file")));
    let errors = receipt.errors.iter();
    let errors = errors.map(|one| with(&one.path.file_path, &one.error));
    let (would_delete, deleted) = match receipt.point {
        Some(_) => ("Would delete (not there at the point)", "Deleted (not there at the point)"),
        None => ("Would delete (not there before)", "Deleted (not there before)"),
    };
    // The conflicts first: they need a decision.
    let groups = [
        ("conflicts", "In conflict, would stay", "In conflict, stays", conflicts.collect()),
        ("restoredFiles", "Would restore", "Restored", paths(&receipt.restored_files)),
        ("deletedFiles", would_delete, deleted, paths(&receipt.deleted_files)),
        ("mergedFiles", "Would merge", "Merged", notes(&receipt.merged_files)),
        ("keptFiles", "Would keep", "Kept", notes(&receipt.kept_files)),
        (
            "firstSeen",
            "Would stay, first seen since the point",
            "Stay, first seen since the point",
            seen.collect(),
        ),
        (
            "ambiguous",
            "Unclear who changed it, would be left alone",
            "Unclear who changed it, left alone",
            notes(&receipt.ambiguous),
        ),
        (
            "notCaptured",
            "Cannot be restored",
            "Could not be restored",
            notes(&receipt.not_captured),
        ),
        ("notes", "Note", "Note", notes(&receipt.notes)),
        ("errors", "Would fail", "Failed", errors.collect()),
    ];
    let mut text = String::new();
    if let Some(covers) = receipt.covers.as_ref().filter(|_| tense == Tense::Would) {
        text += &coverage(covers);
    }
    let begins = text.len();
    for (key, would, did, rows) in groups {
        if rows.is_empty() {
            continue;
        }
        let all = rows.len() + left_out(cut, key);
        let title = if tense == Tense::Would { would } else { did };
        text += &format!("{title} ({all}):\n");
        push_rows(&mut text, rows.into_iter(), all);
    }
    for window in receipt.windows.iter().flatten() {
        let (paths, command) =
            (count(window.paths, "path"), window.command.as_ref().unwrap_or(&window.tool));
        let ran = quoted(command, 80);
        text +=
            &format!("{paths} changed while {ran} ran; the user's changes may be among them.\n");
    }
    if text.len() == begins {
        text.push_str("Nothing to take back.\n");
    }
    for line in receipt.follow_up.lines() {
        text += &one_line(&line, 600);
        text.push('\n');
    }
    text
}

/// `Takes back what session s1 did; 2 other sessions and the user changed something since, which stays.`
fn coverage(covers: &Coverage) -> String {
    let Coverage { whose, sessions, other_sessions, yours } = covers;
    let named = sessions.iter().take(3).map(|one| one_line(one, 80)).collect::<Vec<_>>().join(", ");
    let more = sessions.len().checked_sub(3).filter(|more| *more > 0);
    let more = more.map(|more| format!(" and {more} more")).unwrap_or_default();
    let what = match whose {
        Covered::Sessions => format!("what {named}{more} did"),
        Covered::Chosen if sessions.is_empty() => return String::new(),
        Covered::Chosen => format!("some of what {named}{more} did"),
        Covered::AllAgents => "what all agents did".to_owned(),
        Covered::Everyone => "everyone's changes, the user's too".to_owned(),
    };
    let others = match other_sessions.len() {
        0 => None,
        n => Some(count(n, "other session")),
    };
    let others: Vec<String> =
        others.into_iter().chain(yours.then(|| "the user".to_owned())).collect();
    match others.is_empty() {
        true => format!("Takes back {what}.\n"),
        false => {
            let others = others.join(" and ");
            format!("Takes back {what}; {others} changed something since, which stays.\n")
        }
    }
}

/// Whether a preview says that no file would be touched.
pub(crate) fn does_nothing(receipt: &Receipt) -> bool {
    receipt.restored_files.is_empty()
        && receipt.deleted_files.is_empty()
        && receipt.merged_files.is_empty()
        && receipt.state.is_none()
}

/// Adds rows up to the limit, and the number of the others.
fn push_rows(text: &mut String, rows: impl Iterator<Item = String>, all: usize) {
    let mut shown = 0;
    for row in rows.take(MOST) {
        writeln!(text, "- {row}").expect("text can always be longer");
        shown += 1;
    }
    if all > shown {
        writeln!(text, "- … and {} more", all - shown).expect("text can always be longer");
    }
}

fn left_out(left_out: &OmittedCounts, key: &str) -> usize {
    left_out.get(key).copied().unwrap_or(0)
}

fn path(path: &str) -> String {
    one_line(path, 300)
}

/// Like [`one_line`], in quotes that the text cannot close.
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

/// The text on one line, with line breaks, invisible and direction-changing characters escaped.
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

/// Invisible characters, and characters that only look like a space.
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
    use takeback_answers::{FileDiff, ShowAnswer};

    use super::*;

    fn point(more: serde_json::Value) -> serde_json::Value {
        let none = json!({"files": 0, "insertions": 0, "deletions": 0});
        let mut point = json!({"id": "717fc7c81e8ac477", "seq": 1, "kind": "prompt", "session": null,
            "messageIds": [], "description": "", "label": null, "pinned": false,
            "createdAt": "2026-11-15T22:29:32Z", "filesChanged": 0, "insertions": 0, "deletions": 0,
            "notCaptured": 0, "hasState": false, "vouchedBy": "scan", "takenBack": "no",
            "byAuthor": {"agent": none, "you": none, "others": none, "unclear": none}});
        let serde_json::Value::Object(more) = more else { unreachable!("an object") };
        point.as_object_mut().unwrap().extend(more);
        point
    }

    #[test]
    fn a_point_is_one_line() {
        let of_session = point(json!({"session": "s1", "description": "Make it\nbetter \u{202e}",
            "filesChanged": 1, "insertions": 2, "deletions": 1, "notCaptured": 3}));
        assert_eq!(
            points(&[serde_json::from_value(of_session).unwrap()]),
            "Points, newest first:\n- 717fc7c81e8ac477  2026-11-15T22:29:32Z  prompt \
             “Make it\\nbetter \\u{202e}”  (session s1)  1 file changed after it, +2 -1  3 not captured\n"
        );
        let count =
            |files, insertions| json!({"files": files, "insertions": insertions, "deletions": 0});
        let by = json!({"agent": count(2, 5), "you": count(1, 3), "others": count(0, 0), "unclear": count(1, 0)});
        let by_author = point(json!({"filesChanged": 3, "byAuthor": by, "takenBack": "partly"}));
        assert_eq!(
            points(&[serde_json::from_value(by_author).unwrap()]),
            "Points, newest first:\n- 717fc7c81e8ac477  2026-11-15T22:29:32Z  prompt  changed after it: agent 2 \
             files, +5 -0; user 1 file, +3 -0; unclear 1 file, +0 -0  (partly taken back)\n"
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
        let agent = |tool| json!({"kind": "agent", "session": "s1", "turn": "1", "call": "c", "tool": tool});
        let change = |path, [before, after]: [&str; 2], author, evidence| {
            let entry = |kind| json!({"kind": kind, "mode": 0});
            json!({"seq": 1, "filePath": path, "before": entry(before), "after": entry(after),
                "author": author, "evidence": evidence, "time": "then"})
        };
        let shown = point(
            json!({"label": "x", "prompt": null, "git": null, "calls": [], "changes": [
                change("a", ["dir", "dir"], agent("Write"), json!("named")),
                change("b", ["absent", "dir"], agent("Bash"), json!("window")),
                change("c", ["dir", "absent"], json!({"kind": "human"}), json!(null)),
                change("d", ["unknown", "dir"], json!({"kind": "ambiguous", "sessions": []}), json!(null)),
            ]}),
        );
        let shown: ShowAnswer = serde_json::from_value(shown).unwrap();
        let left_out = OmittedCounts::from([("changes", 60)]);
        assert_eq!(
            point_details(&PointDetails { left_out, ..shown.into() }),
            "717fc7c81e8ac477  2026-11-15T22:29:32Z  prompt “x”\n\
             Changed after it, until the next point:\n\
             - changed a by session s1 with Write\n\
             - created b by session s1 while running Bash\n\
             - deleted c by the user\n\
             - first seen d by the user or an agent (unclear)\n\
             - … and 60 more\n"
        );
    }

    #[test]
    fn a_patch_that_is_missing_is_named() {
        let absent = json!({"kind": "absent"});
        let file = |path: &str, lines: Option<usize>, patch: Option<&str>| {
            let diff = json!({"filePath": path, "before": absent, "after": absent,
                "insertions": lines, "deletions": lines.map(|_| 0), "patch": patch});
            FileLines::from(serde_json::from_value::<FileDiff>(diff).unwrap())
        };
        let files = [
            file("long", Some(9), None),
            file("short", Some(1), Some("+1\n")),
            file("picture", None, None),
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
        let all: Receipt = serde_json::from_value(json!({"success": false, "rewind": null,
            "point": null, "safetyPoint": null, "restoredFiles": ["r"], "deletedFiles": ["d"],
            "mergedFiles": note("m"), "keptFiles": note("k"), "firstSeen": [], 
            "conflicts": [{"filePath": "c", "reason": "why", "lines": [
                {"line": 3, "count": 1, "mine": "", "before": ""},
                {"line": 9, "count": 1, "mine": "", "before": ""}]}],
            "ambiguous": note("u"), "notCaptured": note("n"), "evidence": [], "notes": [],
            "errors": [{"filePath": "e", "error": "full"}],
            "windows": [{"session": "s", "call": "c", "tool": "Bash", "command": "make\n", "paths": 2}],
            "hints": [{"command": "npm install", "directory": "web", "folder": {"filePath": "web/node_modules"},
                "file": {"filePath": "web/package-lock.json"}, "removedBy": null}]}))
        .unwrap();
        assert_eq!(
            receipt(&all, &OmittedCounts::new(), Tense::Did),
            "In conflict, stays (1):\n- c: why (line 3, 9)\n\
             Restored (1):\n- r\nDeleted (not there before) (1):\n- d\n\
             Merged (1):\n- m: why\nKept (1):\n- k: why\n\
             Unclear who changed it, left alone (1):\n- u: why\n\
             Could not be restored (1):\n- n: why\nFailed (1):\n- e: full\n\
             2 paths changed while “make\\n” ran; the user's changes may be among them.\n\
             web/node_modules is not recorded and may not match web/package-lock.json: run `npm install` in web/.\n"
        );
        assert!(!does_nothing(&all));
        let kept = Receipt { kept_files: all.kept_files, ..Receipt::default() };
        assert!(does_nothing(&kept));
        let nothing = receipt(&Receipt::default(), &OmittedCounts::new(), Tense::Would);
        assert_eq!(nothing, "Nothing to take back.\n");
    }
}
