//! A preview or a receipt, for people.

use std::io::{self, Write};

use anstyle::Style;
use takeback_core::rewind::Receipt;
use takeback_core::rewind::journal::Window;
use takeback_store::WorkPath;

use crate::error::Kind;
use crate::screen::{BAD, CARE, GOOD, HINT, count, fit, plain, shorten, width};

/// Whether it tells of the future or the past.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Tense {
    Would,
    Did,
}

/// Lines shown of each kind before the rest is only counted.
const MOST: usize = 20;

struct Row<'a> {
    verb: &'static str,
    style: Style,
    path: &'a WorkPath,
    reason: &'a str,
}

pub(crate) fn print(
    out: &mut dyn Write,
    receipt: &Receipt,
    windows: &[Window],
    tense: Tense,
    all: bool,
) -> io::Result<()> {
    let did = tense == Tense::Did;
    let made = if receipt.point.is_some() { "was not there then" } else { "was not there before" };
    let verb = |would, done| if did { done } else { would };
    let mut rows = Vec::new();
    for path in &receipt.restored_files {
        rows.push(Row { verb: verb("restore", "restored"), style: GOOD, path, reason: "" });
    }
    for path in &receipt.deleted_files {
        rows.push(Row { verb: verb("delete", "deleted"), style: GOOD, path, reason: made });
    }
    let groups = [
        (verb("merge", "merged"), GOOD, &receipt.merged_files),
        (verb("keep", "kept"), HINT, &receipt.kept_files),
        ("conflict", BAD, &receipt.conflicts),
        ("unclear", CARE, &receipt.ambiguous),
        ("missing", CARE, &receipt.not_captured),
    ];
    for (verb, style, notes) in groups {
        rows.extend(notes.iter().map(|note| Row { verb, style, path: &note.path, reason: &note.reason }));
    }
    rows.extend(
        receipt.errors.iter().map(|p| Row { verb: "error", style: BAD, path: &p.path, reason: &p.error }),
    );
    print_rows(out, &rows, all)?;
    if !did {
        for window in windows {
            let what = window.command.as_deref().unwrap_or(&window.tool);
            writeln!(
                out,
                "\n{CARE}{} changed while `{}` ran; may include yours.{CARE:#}",
                count(window.paths, "path"),
                shorten(&plain(what), 60)
            )?;
        }
    }
    writeln!(out, "\n{}", summary(receipt, did))
}

fn print_rows(out: &mut dyn Write, rows: &[Row<'_>], all: bool) -> io::Result<()> {
    let names: Vec<String> = rows.iter().map(|row| row.path.display()).collect();
    let longest = names.iter().map(|name| name.chars().count()).max().unwrap_or(0);
    let column = longest.min(width().saturating_sub(30).max(20));
    let mut shown = 0;
    let mut last = "";
    for (row, name) in rows.iter().zip(&names) {
        shown = if row.verb == last { shown + 1 } else { 1 };
        last = row.verb;
        if shown > MOST && !all {
            continue;
        }
        let Row { verb, style, reason, .. } = row;
        match *reason {
            "" => writeln!(out, "  {style}{verb:<9}{style:#} {}", shorten(name, column))?,
            reason => {
                let name = fit(name, column);
                writeln!(out, "  {style}{verb:<9}{style:#} {name}  {HINT}{reason}{HINT:#}")?;
            }
        }
        let same = rows.iter().filter(|other| other.verb == row.verb).count();
        if shown == MOST && !all && same > MOST {
            writeln!(out, "  {HINT}{:<9} … and {} more (-v shows all){HINT:#}", "", same - MOST)?;
        }
    }
    Ok(())
}

/// `3 restored, 1 deleted · 2 kept · 1 conflict`
fn summary(receipt: &Receipt, did: bool) -> String {
    let mut done = Vec::new();
    for (n, past, future) in [
        (receipt.restored_files.len(), "restored", "to restore"),
        (receipt.deleted_files.len(), "deleted", "to delete"),
        (receipt.merged_files.len(), "merged", "to merge"),
    ] {
        if n > 0 {
            done.push(format!("{n} {}", if did { past } else { future }));
        }
    }
    let mut parts = vec![if done.is_empty() { "nothing to take back".to_owned() } else { done.join(", ") }];
    if !receipt.kept_files.is_empty() {
        parts.push(format!("{} kept", receipt.kept_files.len()));
    }
    for (n, noun) in [
        (receipt.conflicts.len(), "conflict"),
        (receipt.errors.len(), "error"),
    ] {
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

/// The exit code that a receipt stands for.
pub(crate) fn exit_code(receipt: &Receipt) -> u8 {
    if !receipt.errors.is_empty() {
        Kind::Error as u8
    } else if !(receipt.conflicts.is_empty() && receipt.ambiguous.is_empty() && receipt.not_captured.is_empty()) {
        Kind::Conflicts as u8
    } else if !receipt.success {
        Kind::Partly as u8
    } else if !receipt.changed_something() {
        Kind::Nothing as u8
    } else {
        0
    }
}
