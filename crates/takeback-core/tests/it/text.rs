//! Log and receipts as lines of text, so that a test can compare all of them at once.

use std::collections::BTreeMap;

use takeback_core::rewind::{Note, Receipt};

use takeback_store::{
    Attribution, Author, Change, Entry, Evidence, NotCapturedReason, Seq, WorkPath,
};
use takeback_testkit::{Sandbox, path};

/// The whole log.
pub(crate) fn log(sandbox: &Sandbox) -> Vec<Change> {
    sandbox.workspace.store.changes_after(Seq(0)).expect("the log can be read")
}

/// The changes of one path.
pub(crate) fn history(sandbox: &Sandbox, of: &str) -> Vec<Change> {
    log(sandbox).into_iter().filter(|change| change.path == path(of)).collect()
}

/// The authors of a path's changes, oldest first, without its first sighting.
pub(crate) fn authors(sandbox: &Sandbox, of: &str) -> Vec<String> {
    let changes = history(sandbox, of).into_iter();
    let known = changes
        .filter(|change| change.before != Entry::Unknown)
        .map(|change| sandbox.workspace.store.attribution(&change).expect("the store can be read"));
    known.map(|known| author(&known)).collect()
}

fn author(known: &Attribution) -> String {
    let evidence = match known.evidence {
        Evidence::Named => "named",
        Evidence::Window => "window",
        Evidence::AfterEdit => "after edit",
        Evidence::OpenWindow => "open window",
    };
    match &known.author {
        Author::Agent { session, call, tool, .. } => format!("{session} {call} {tool} {evidence}"),
        Author::Human => "human".to_owned(),
        Author::Ambiguous { sessions } => {
            let sessions: Vec<&str> = sessions.iter().map(|session| session.0.as_str()).collect();
            format!("ambiguous {}", sessions.join("+"))
        }
        Author::Rewind { .. } => "rewind".to_owned(),
        Author::Import => "import".to_owned(),
        Author::Deleted => "deleted".to_owned(),
    }
}

/// A receipt as text: first whether it was a success, then a line for each path.
pub(crate) fn report(receipt: &Receipt) -> Vec<String> {
    let mut lines = vec![if receipt.success { "success" } else { "not all" }.to_owned()];
    let plain = |what: &str, paths: &[WorkPath]| -> Vec<String> {
        paths.iter().map(|path| format!("{what} {}", path.display())).collect()
    };
    let noted = |what: &str, notes: &[Note]| -> Vec<String> {
        notes
            .iter()
            .map(|note| format!("{what} {}: {}", note.path.display(), note.reason))
            .collect()
    };
    lines.extend(plain("restored", &receipt.restored_files));
    lines.extend(plain("deleted", &receipt.deleted_files));
    lines.extend(receipt.merged_files.iter().map(|note| format!("merged {}", note.path.display())));
    lines.extend(noted("kept", &receipt.kept_files));
    lines.extend(noted("conflict", &receipt.conflicts));
    lines.extend(noted("ambiguous", &receipt.ambiguous));
    lines.extend(noted("not captured", &receipt.not_captured));
    lines.extend(noted("note", &receipt.notes));
    let errors = receipt.errors.iter();
    lines.extend(
        errors.map(|problem| format!("error {}: {}", problem.path.display(), problem.error)),
    );
    lines
}

/// Sequence numbers have no gaps; each change of a path begins where the previous one ended.
pub(crate) fn assert_consistent(sandbox: &Sandbox) {
    let log = log(sandbox);
    let numbers: Vec<u64> = log.iter().map(|change| change.seq.0).collect();
    assert_eq!(numbers, (1..=log.len() as u64).collect::<Vec<_>>());
    let mut last: BTreeMap<&WorkPath, &Change> = BTreeMap::new();
    for change in &log {
        let unread = Entry::NotCaptured { reason: NotCapturedReason::Deadline };
        assert!(change.before != change.after || change.after == unread, "{change:?}: no change");
        if let Some(earlier) = last.insert(&change.path, change) {
            assert_eq!(earlier.after, change.before, "{earlier:?} and then {change:?}");
        }
    }
}
