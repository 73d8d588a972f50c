//! Prints a preview or a receipt.

use std::borrow::Cow;
use std::collections::BTreeMap;
use std::io::{self, Write};

use anstyle::Style;
use takeback_core::rewind::Window;
use takeback_core::rewind::{FirstSighting, LineConflict, Note, Receipt, StateReceipt};
use takeback_store::{Evidence, OuterFolders, WorkPath};

use crate::error::Kind;
use crate::screen::{
    FAILURE, HINT, SUCCESS, WARNING, columns, count, fit_path, name, plain, shorten, shorten_path,
    width, wrap,
};

/// Whether the text is about a plan or about what happened.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Tense {
    Would,
    /// State and files must be restored together, but not all of them can be: nothing would change.
    WouldNot,
    Did,
}

/// Lines printed of each kind; the rest is only counted.
const MOST: usize = 20;

struct Row<'a> {
    verb: &'static str,
    style: Style,
    name: String,
    reason: Cow<'a, str>,
    /// Printed below it.
    lines: &'a [LineConflict],
    /// What the other version of these lines is called.
    other: &'static str,
}

pub(crate) fn print(
    out: &mut dyn Write,
    receipt: &Receipt,
    windows: &[Window],
    tense: Tense,
    all: bool,
) -> io::Result<()> {
    let did = tense == Tense::Did;
    let made = if receipt.point.is_some() { "did not exist then" } else { "did not exist before" };
    let verb = |would, done| if did { done } else { would };
    let known = known(receipt, all);
    let state = receipt.state.iter();
    let mut rows: Vec<Row<'_>> = state.map(|state| state_row(state, receipt, tense)).collect();
    // First: they need a decision.
    rows.extend(receipt.conflicts.iter().map(|note| Row {
        verb: "conflict",
        style: FAILURE,
        name: name(&note.path),
        reason: with_evidence(&note.reason, known.get(&note.path)),
        lines: conflict_lines(receipt, &note.path),
        other: if receipt.adopts { "fork  " } else { "before" },
    }));
    let made = if receipt.adopts { "deleted in the fork" } else { made };
    let restored = match receipt.adopts {
        true => verb("adopt", "adopted"),
        false => verb("restore", "restored"),
    };
    for (verb, style, paths, reason) in [
        (restored, SUCCESS, &receipt.restored_files, ""),
        (verb("delete", "deleted"), FAILURE, &receipt.deleted_files, made),
    ] {
        for (path, inside) in if all { each(paths) } else { by_folder(paths) } {
            let row = match inside {
                0 => {
                    let reason = with_evidence(reason, known.get(path));
                    Row { verb, style, name: name(path), reason, lines: &[], other: "" }
                }
                inside => {
                    let name = format!("{}/", name(path));
                    let reason = format!("and {inside} in it").into();
                    Row { verb, style, name, reason, lines: &[], other: "" }
                }
            };
            rows.push(row);
        }
    }
    let (kept, folded) = if all { (receipt.kept_files.clone(), Vec::new()) } else { fold(receipt) };
    let groups = [
        (verb("merge", "merged"), SUCCESS, &receipt.merged_files),
        (verb("keep", "kept"), HINT, &kept),
        ("unclear", WARNING, &receipt.ambiguous),
        ("missing", WARNING, &receipt.not_captured),
        ("note", WARNING, &receipt.notes),
    ];
    for (verb, style, notes) in groups {
        // A note is about a file that also has its own row.
        let evidence = |path: &WorkPath| known.get(path).filter(|_| verb != "note");
        rows.extend(notes.iter().map(|note| Row {
            verb,
            style,
            name: name(&note.path),
            reason: with_evidence(&note.reason, evidence(&note.path)),
            lines: &[],
            other: "",
        }));
    }
    rows.extend(folded.iter().map(|(folder, reason)| Row {
        verb: verb("keep", "kept"),
        style: HINT,
        name: folder.clone(),
        reason: reason.as_str().into(),
        lines: &[],
        other: "",
    }));
    rows.extend(receipt.first_seen.iter().map(|seen| Row {
        verb: verb("keep", "kept"),
        style: HINT,
        name: first_seen_name(seen),
        reason: first_seen_reason(seen).into(),
        lines: &[],
        other: "",
    }));
    rows.extend(receipt.errors.iter().map(|problem| Row {
        verb: "error",
        style: FAILURE,
        name: name(&problem.path),
        reason: problem.error.as_str().into(),
        lines: &[],
        other: "",
    }));
    print_rows(out, &rows, all)?;
    for window in windows {
        let what = window.command.as_deref().unwrap_or(&window.tool);
        let text = format!(
            "{} changed while `{}` ran; may include yours.",
            window_paths(window),
            shorten(&plain(what), 60)
        );
        writeln!(out)?;
        for line in wrap(&text, width()) {
            writeln!(out, "{WARNING}{line}{WARNING:#}")?;
        }
    }
    writeln!(out, "\n{}", summary(receipt, tense))
}

/// The kept files, those of one folder with one reason as one line: its name, and how many files.
pub(crate) fn fold(receipt: &Receipt) -> (Vec<Note>, Vec<(String, String)>) {
    let folder = |note: &Note| note.path.parent().map(|folder| name(&folder));
    let mut by_folder: BTreeMap<(Option<String>, &str), Vec<&Note>> = BTreeMap::new();
    for note in &receipt.kept_files {
        by_folder.entry((folder(note), note.reason.as_str())).or_default().push(note);
    }
    let mut single = Vec::new();
    let mut folded = Vec::new();
    for ((_, reason), notes) in by_folder {
        if notes.len() < FOLDED {
            single.extend(notes.into_iter().cloned());
        } else {
            let row = folder_row(&notes[0].path);
            folded.push((row, format!("{}, {reason}", count(notes.len(), "file"))));
        }
    }
    single.sort_by(|a, b| a.path.cmp(&b.path));
    (single, folded)
}

/// How a row names the folder of this path.
pub(crate) fn folder_row(path: &WorkPath) -> String {
    path.parent().map_or_else(|| "./".to_owned(), |folder| format!("{}/", name(&folder)))
}

/// Kept files of one folder from which on only their number is shown.
const FOLDED: usize = 3;

pub(crate) fn conflict_lines<'a>(receipt: &'a Receipt, path: &WorkPath) -> &'a [LineConflict] {
    let of = receipt.conflict_lines.iter().find(|file| file.path == *path);
    of.map_or(&[], |file| file.lines.as_slice())
}

/// The names of a window's paths, if they are few; else their number.
fn window_paths(window: &Window) -> String {
    let names = window.all_paths().unwrap_or_default().iter().map(name).collect::<Vec<_>>();
    match &names[..] {
        [] => count(window.paths, "path"),
        [one] => one.clone(),
        [first @ .., last] => format!("{} and {last}", first.join(", ")),
    }
}

/// The folder whose files were first seen, or the single file.
pub(crate) fn first_seen_name(seen: &FirstSighting) -> String {
    if seen.folder { format!("{}/", name(&seen.path)) } else { name(&seen.path) }
}

pub(crate) fn first_seen_reason(seen: &FirstSighting) -> String {
    match seen.names {
        0 => "first seen since then".to_owned(),
        names => format!("{} first seen since then", count(names, "file")),
    }
}

/// The evidence for the authors of paths, in words: for all paths, or only where no other line says it.
/// Changes during a command have their own line, and an unclear row says that it is.
fn known(receipt: &Receipt, all: bool) -> BTreeMap<&WorkPath, &'static str> {
    let words = |evidence| match evidence {
        Evidence::AfterEdit if !all => Some("formatted right after the edit"),
        _ if !all => None,
        Evidence::Named => Some("evidence: named"),
        Evidence::AfterEdit => Some("evidence: after edit"),
        Evidence::Window => Some("evidence: window"),
        Evidence::OpenWindow => Some("evidence: open window"),
    };
    receipt.evidence.iter().filter_map(|one| Some((&one.path, words(one.evidence)?))).collect()
}

fn with_evidence<'a>(reason: &'a str, known: Option<&&'static str>) -> Cow<'a, str> {
    match known {
        None => reason.into(),
        Some(known) if reason.is_empty() => (*known).into(),
        Some(known) => format!("{reason}; {known}").into(),
    }
}

/// The row of an agent's state.
fn state_row<'a>(state: &'a StateReceipt, receipt: &Receipt, tense: Tense) -> Row<'a> {
    let stays = is_refused(receipt, tense);
    let name = match &state.checkpoint {
        Some(checkpoint) if !stays => plain(checkpoint),
        _ => plain(state.execution.as_str()),
    };
    let branch = shorten(&plain(state.branch.as_str()), 20);
    let (verb, style, reason) = match (&state.error, tense) {
        (Some(error), _) => ("error", FAILURE, plain(error)),
        (None, _) if state.stays => {
            ("stays", HINT, format!("branch {branch}: the agent has continued since"))
        }
        (None, _) if stays => ("stays", HINT, format!("the state of branch {branch}")),
        (None, Tense::Did) => {
            ("state", SUCCESS, format!("branch {branch} is now at this checkpoint"))
        }
        (None, _) if state.checkpoint.is_none() => {
            ("state", SUCCESS, format!("branch {branch} would return to where it was"))
        }
        (None, _) => ("state", SUCCESS, format!("branch {branch} would be at this checkpoint")),
    };
    Row { verb, style, name, reason: reason.into(), lines: &[], other: "" }
}

/// Whether state and files had to be restored together, and neither was.
pub(crate) fn is_refused(receipt: &Receipt, tense: Tense) -> bool {
    let stayed = receipt
        .state
        .as_ref()
        .is_some_and(|state| !(state.moved || state.stays) && state.error.is_none());
    match tense {
        Tense::Would => false,
        Tense::WouldNot => true,
        Tense::Did => stayed && !receipt.success,
    }
}

fn each(paths: &[WorkPath]) -> Vec<(&WorkPath, usize)> {
    paths.iter().map(|path| (path, 0)).collect()
}

/// A folder that is created or deleted as a whole represents its contents; the number counts them.
fn by_folder(paths: &[WorkPath]) -> Vec<(&WorkPath, usize)> {
    let mut outermost = OuterFolders::among(paths);
    let mut inside: BTreeMap<WorkPath, usize> = BTreeMap::new();
    let mut tops = Vec::new();
    for path in paths {
        match outermost.above(path) {
            Some(top) => *inside.entry(top).or_default() += 1,
            None => tops.push(path),
        }
    }
    tops.into_iter().map(|path| (path, inside.get(path).copied().unwrap_or(0))).collect()
}

/// Columns before a name: two spaces, the verb, one space.
const BEFORE: usize = 12;
/// The minimum width for a reason next to a name; a longer reason is printed below.
const BESIDE: usize = 24;

fn print_rows(out: &mut dyn Write, rows: &[Row<'_>], all: bool) -> io::Result<()> {
    let reasoned = rows.iter().filter(|row| !row.reason.is_empty());
    let longest = reasoned.map(|row| columns(&row.name)).max().unwrap_or(0);
    let room = width().saturating_sub(BEFORE);
    let column = longest.min(room.saturating_sub(2 + BESIDE).max(16));
    let mut shown = 0;
    let mut last = "";
    for row in rows {
        shown = if row.verb == last { shown + 1 } else { 1 };
        last = row.verb;
        if shown > MOST && !all {
            continue;
        }
        let Row { verb, style, name, reason, .. } = row;
        let verb = format!("  {style}{verb:<9}{style:#} ");
        if reason.is_empty() {
            writeln!(out, "{verb}{}", shorten_path(name, room))?;
        } else if columns(reason) + 2 + column <= room {
            writeln!(out, "{verb}{}  {HINT}{reason}{HINT:#}", fit_path(name, column))?;
        } else {
            writeln!(out, "{verb}{}", shorten_path(name, room))?;
            for line in wrap(reason, room) {
                writeln!(out, "{:BEFORE$}{HINT}{line}{HINT:#}", "")?;
            }
        }
        print_lines(out, row, room, all)?;
        if shown == MOST && !all {
            let same = rows.iter().filter(|other| other.verb == row.verb).count();
            if same > MOST {
                let more = same - MOST;
                writeln!(out, "  {HINT}{:<9} … and {more} more (-v shows all){HINT:#}", "")?;
            }
        }
    }
    Ok(())
}

/// Places of a file that are printed, and lines of each.
const MOST_PLACES: usize = 3;
const MOST_LINES: usize = 4;

/// Prints the lines of conflicts, both versions.
fn print_lines(out: &mut dyn Write, row: &Row<'_>, room: usize, all: bool) -> io::Result<()> {
    let Row { lines: conflicts, other, .. } = row;
    let most = |most: usize| if all { usize::MAX } else { most };
    for conflict in conflicts.iter().take(most(MOST_PLACES)) {
        writeln!(out, "{:BEFORE$}{HINT}line {}{HINT:#}", "", conflict.line)?;
        let versions = [("now   ", SUCCESS, &conflict.mine), (other, FAILURE, &conflict.before)];
        for (version, style, text) in versions {
            let text = String::from_utf8_lossy(&text.0);
            let lines: Vec<&str> = text.lines().collect();
            if lines.is_empty() {
                writeln!(out, "{:BEFORE$}{HINT}{version}  (no line){HINT:#}", "")?;
            }
            for line in lines.iter().take(most(MOST_LINES)) {
                let line = shorten(&plain(line), room.saturating_sub(8));
                writeln!(out, "{:BEFORE$}{HINT}{version}{HINT:#}  {style}{line}{style:#}", "")?;
            }
            if lines.len() > most(MOST_LINES) {
                let more = count(lines.len() - MOST_LINES, "more line");
                writeln!(out, "{:BEFORE$}{HINT}{version}  … {more}{HINT:#}", "")?;
            }
        }
    }
    if conflicts.len() > most(MOST_PLACES) {
        let more = count(conflicts.len() - MOST_PLACES, "more place");
        writeln!(out, "{:BEFORE$}{HINT}… {more} (-v shows all){HINT:#}", "")?;
    }
    Ok(())
}

/// `3 restored, 1 deleted · 2 kept · 1 conflict`
fn summary(receipt: &Receipt, tense: Tense) -> String {
    let did = tense == Tense::Did;
    let mut done = Vec::new();
    match (&receipt.state, tense) {
        (Some(state), Tense::Did) if state.moved => done.push("state restored".to_owned()),
        (Some(state), Tense::Would) if !state.stays => done.push("state to restore".to_owned()),
        _ => {}
    }
    for (n, past, future) in [
        (
            receipt.restored_files.len(),
            if receipt.adopts { "adopted" } else { "restored" },
            if receipt.adopts { "to adopt" } else { "to restore" },
        ),
        (receipt.deleted_files.len(), "deleted", "to delete"),
        (receipt.merged_files.len(), "merged", "to merge"),
        (receipt.settled(), "settled", "to settle"),
        (receipt.reopened(), "conflict open again", "conflict to open again"),
    ] {
        if n > 0 {
            done.push(format!("{n} {}", if did { past } else { future }));
        }
    }
    let nothing = if is_refused(receipt, tense) { "nothing changed" } else { "nothing to change" };
    let mut parts = vec![if done.is_empty() { nothing.to_owned() } else { done.join(", ") }];
    let kept = receipt.kept_files.len() - receipt.settled() - receipt.reopened();
    if kept > 0 {
        let verb = if tense == Tense::Would { "to keep" } else { "kept" };
        parts.push(format!("{kept} {verb}"));
    }
    for (n, noun) in [(receipt.conflicts.len(), "conflict"), (receipt.errors.len(), "error")] {
        if n > 0 {
            parts.push(count(n, noun));
        }
    }
    if !receipt.ambiguous.is_empty() {
        parts.push(format!("{} unclear", receipt.ambiguous.len()));
    }
    if !receipt.not_captured.is_empty() {
        parts.push(format!("{} missing", receipt.not_captured.len()));
    }
    parts.join(" · ")
}

/// The exit code for a receipt.
pub(crate) fn exit_code(receipt: &Receipt, tense: Tense) -> u8 {
    let state = receipt.state.as_ref();
    let moves = tense == Tense::Would && state.is_some_and(|state| !state.stays);
    let left = !(receipt.conflicts.is_empty()
        && receipt.ambiguous.is_empty()
        && receipt.not_captured.is_empty());
    if !receipt.errors.is_empty() || state.is_some_and(|state| state.error.is_some()) {
        Kind::Error as u8
    } else if is_refused(receipt, tense) || left {
        Kind::Conflicts as u8
    } else if !receipt.success {
        Kind::Partly as u8
    } else if !(receipt.changed_something() || moves) {
        Kind::Nothing as u8
    } else {
        0
    }
}

#[cfg(test)]
mod tests {
    use takeback_core::rewind::{Note, PathEvidence};

    use super::*;

    fn printed(receipt: &Receipt, all: bool) -> String {
        let mut out = Vec::new();
        print(&mut out, receipt, &[], Tense::Would, all).expect("it is written");
        anstream::adapter::strip_str(&String::from_utf8(out).expect("text")).to_string()
    }

    #[test]
    fn evidence_that_no_other_line_tells_is_on_the_row() {
        let path = |name: &str| WorkPath::new(name).expect("a plain path");
        let note = |name, reason: &str| Note { path: path(name), reason: reason.to_owned() };
        let evidence = [
            ("formatted.js", Evidence::AfterEdit),
            ("made.js", Evidence::AfterEdit),
            ("built.js", Evidence::Window),
            ("edited.js", Evidence::Named),
            ("both.js", Evidence::AfterEdit),
            ("unclear.js", Evidence::OpenWindow),
        ];
        let known = |(name, evidence)| PathEvidence { path: path(name), evidence };
        let receipt = Receipt {
            restored_files: ["formatted.js", "built.js", "edited.js"].map(path).to_vec(),
            deleted_files: vec![path("made.js")],
            merged_files: vec![note("both.js", "only the agent's part is taken out")],
            kept_files: vec![note("mine.js", "changed by you")],
            ambiguous: vec![note("unclear.js", "it is not certain who wrote it")],
            notes: vec![note("edited.js", "comes back without its set-user-id bit")],
            evidence: evidence.map(known).to_vec(),
            ..Receipt::default()
        };
        insta::assert_snapshot!(printed(&receipt, false), @r"
          restore   formatted.js  formatted right after the edit
          restore   built.js
          restore   edited.js
          delete    made.js       did not exist before; formatted right after the edit
          merge     both.js       only the agent's part is taken out; formatted right after the edit
          keep      mine.js       changed by you
          unclear   unclear.js    it is not certain who wrote it
          note      edited.js     comes back without its set-user-id bit

        3 to restore, 1 to delete, 1 to merge · 1 to keep · 1 unclear
        ");
        insta::assert_snapshot!(printed(&receipt, true), @r"
          restore   formatted.js  evidence: after edit
          restore   built.js      evidence: window
          restore   edited.js     evidence: named
          delete    made.js       did not exist before; evidence: after edit
          merge     both.js       only the agent's part is taken out; evidence: after edit
          keep      mine.js       changed by you
          unclear   unclear.js    it is not certain who wrote it; evidence: open window
          note      edited.js     comes back without its set-user-id bit

        3 to restore, 1 to delete, 1 to merge · 1 to keep · 1 unclear
        ");
    }

    /// Quadratic work per row would not finish.
    #[test]
    fn every_path_of_a_large_receipt_is_printed() {
        const FILES: usize = 300_000;
        let path = |n| WorkPath::new(format!("folder-{}/file-{n}", n / 100)).expect("a plain path");
        let paths: Vec<WorkPath> = (0..FILES).map(path).collect();
        let receipt = Receipt {
            success: true,
            restored_files: paths[..FILES / 2].to_vec(),
            deleted_files: paths[FILES / 2..].to_vec(),
            ..Receipt::default()
        };
        for (all, lines) in [(true, FILES + 2), (false, 2 * (MOST + 1) + 2)] {
            let mut out = Vec::new();
            print(&mut out, &receipt, &[], Tense::Would, all).expect("it is written");
            assert_eq!(out.split(|byte| *byte == b'\n').count() - 1, lines);
        }
    }
}
