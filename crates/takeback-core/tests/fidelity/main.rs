//! Exact fidelity: after a rewind, a folder is as it was before the agent.
//!
//! One table: each row lays out a tree, damages it in an agent's shell call, and takes that back. The
//! tree is listed before and after by code of its own (`listing`): bytes, modes, kinds, targets, which
//! names are one file, and the times of untouched files.

#![expect(clippy::disallowed_methods, reason = "tests lay out their own trees")]
#![expect(clippy::unwrap_used, reason = "a test that cannot go on panics")]
#![expect(clippy::print_stdout, reason = "one test asks a process of its own for its memory")]

#[path = "../crash/abilities.rs"]
mod abilities;
mod large_file;
mod listing;
mod rows;

use takeback_core::rewind::Note;
use takeback_core::rewind::{Receipt, RewindRequest, Target, preview};
use takeback_testkit::Sandbox;

use crate::abilities::Abilities;
use crate::listing::{Listing, list};
use crate::rows::Row;

#[test]
fn everything_comes_back_as_it_was() {
    let every_row = |abilities: Abilities| -> Vec<String> {
        let message = |row: &Row, wrong: &str| format!("{} ({abilities:?}): {wrong}", row.name);
        rows::all()
            .iter()
            .flat_map(|row| run(row, abilities).into_iter().map(|wrong| message(row, &wrong)))
            .collect()
    };
    // Most of the time each of them waits for the disk.
    let failed: Vec<String> = std::thread::scope(|scope| {
        let threads = Abilities::EACH.map(|abilities| scope.spawn(move || every_row(abilities)));
        threads.into_iter().flat_map(|thread| thread.join().unwrap()).collect()
    });
    assert!(failed.is_empty(), "{} things are wrong:\n{}", failed.len(), failed.join("\n"));
}

/// Plays a row; every difference from the expected result.
fn run(row: &Row, abilities: Abilities) -> Vec<String> {
    let mut sandbox = match abilities {
        Abilities::All => Sandbox::new(),
        _ => Sandbox::in_memory(),
    };
    let root = sandbox.root();
    (row.before)(&sandbox);
    let point = sandbox.prompt("s", "go");
    let before = list(&root);
    sandbox.agent_runs("s", row.name, row.damage);
    sandbox.turn_end("s");
    (row.user_work)(&sandbox);
    let damaged = list(&root);
    abilities.limit(&sandbox);

    let mut wrong = Vec::new();
    let request = RewindRequest::new(Target::Point(point));
    let shown = match preview(&mut sandbox.workspace, &request) {
        Ok(shown) => shown.receipt(),
        Err(error) => return vec![format!("the preview failed: {error:?}")],
    };
    let receipt = match sandbox.rewind(&request) {
        Ok(receipt) => receipt,
        Err(error) => return vec![format!("the rewind failed: {error:?}")],
    };
    if remarks(&receipt) != row.remarks {
        wrong.push(format!("the receipt has {:#?}, not {:#?}", remarks(&receipt), row.remarks));
    }
    if remarks(&shown) != remarks(&receipt) {
        wrong.push(format!("the preview has {:#?}", remarks(&shown)));
    }
    let after = list(&root);
    let mut expected = before.clone();
    (row.expect)(&mut expected, &damaged);
    wrong.extend(expected.differences(&after).into_iter().map(|d| format!("after it, {d}")));
    wrong.extend(untouched(&before, &damaged, &after).map(|d| format!("after it, {d}")));

    match sandbox.rewind(&RewindRequest::new(Target::Undo)) {
        Ok(_) => {
            let mut expected = damaged.clone();
            (row.expect_undone)(&mut expected);
            let undone = list(&root);
            wrong.extend(expected.differences(&undone).into_iter().map(|d| format!("undone, {d}")));
            wrong.extend(untouched(&before, &damaged, &undone).map(|d| format!("undone, {d}")));
        }
        Err(error) => wrong.push(format!("the undo failed: {error:?}")),
    }
    (row.clean_up)(&sandbox);
    wrong
}

/// Files that were not touched are the same files, with the same times.
fn untouched<'a>(
    before: &'a Listing,
    damaged: &'a Listing,
    after: &'a Listing,
) -> impl Iterator<Item = String> + 'a {
    let same = damaged.stamps().filter(|(path, stamp)| before.stamp(path) == Some(*stamp));
    same.filter(|(path, stamp)| after.stamp(path) != Some(*stamp))
        .map(|(path, _)| format!("{} was touched", path.escape_ascii()))
}

/// Everything in a receipt except restored and deleted paths.
fn remarks(receipt: &Receipt) -> Vec<String> {
    let noted = |what: &'static str, notes: &[Note]| -> Vec<String> {
        notes.iter().map(|n| format!("{what} {}: {}", n.path.display(), n.reason)).collect()
    };
    let mut lines = noted("note", &receipt.notes);
    lines.extend(noted("merged", &receipt.merged_files));
    lines.extend(noted("kept", &receipt.kept_files));
    lines.extend(noted("conflict", &receipt.conflicts));
    lines.extend(noted("ambiguous", &receipt.ambiguous));
    lines.extend(noted("not captured", &receipt.not_captured));
    let errors = receipt.errors.iter();
    lines.extend(errors.map(|p| format!("error {}: {}", p.path.display(), p.error)));
    let quiet = lines.iter().all(|line| line.starts_with("note") || line.starts_with("kept"));
    if receipt.success != quiet {
        lines.push(format!("success: {}", receipt.success));
    }
    lines
}
