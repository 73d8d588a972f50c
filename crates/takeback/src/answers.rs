//! The JSON answers, and how they are made from the library's values.
//!
//! The types live in the crate `takeback-answers`, so that clients such as the MCP server can read answers
//! without building what this program needs.

pub(crate) use takeback_answers::*;

use std::collections::BTreeSet;
use std::path::Path;

use base64::Engine as _;
use base64::engine::general_purpose::STANDARD;
use takeback_agents::{Cut, HookScope};
use takeback_core::record::{self, UnreadableKind as CoreUnreadable};
use takeback_core::rewind::{self, FirstSighting as CoreFirstSighting};
use takeback_store::{
    Author as StoreAuthor, Change as StoreChange, Correction as StoreCorrection,
    Entry as StoreEntry, Evidence as StoreEvidence, NotCapturedReason as StoreReason, SessionId,
    Timestamp, WorkPath,
};

use crate::time::iso;

pub(crate) fn path(path: &WorkPath) -> FilePath {
    let bytes = path.as_bytes();
    let exact = std::str::from_utf8(bytes).is_ok();
    FilePath {
        file_path: String::from_utf8_lossy(bytes).into_owned(),
        file_path_base64: (!exact).then(|| STANDARD.encode(bytes)),
    }
}

/// A path on disk, as text.
pub(crate) fn place(path: &Path) -> String {
    path.to_string_lossy().into_owned()
}

pub(crate) fn time(time: Timestamp) -> Time {
    Time(iso(time))
}

pub(crate) fn note(at: &WorkPath, reason: &str) -> Note {
    Note { path: path(at), reason: reason.to_owned() }
}

/// Paths whose contents were not captured.
pub(crate) fn not_captured(paths: &[(WorkPath, StoreReason)]) -> Vec<Note> {
    paths.iter().map(|(path, reason)| note(path, reason.describe())).collect()
}

pub(crate) fn first_seen(seen: &[CoreFirstSighting]) -> Vec<FirstSighting> {
    seen.iter().map(|one| FirstSighting { path: path(&one.path), names: one.names }).collect()
}

pub(crate) fn unreadable(paths: &[record::Unreadable]) -> Vec<Unreadable> {
    let one = |one: &record::Unreadable| {
        let (kind, known) = match one.kind {
            CoreUnreadable::File => (UnreadableKind::File, 0),
            CoreUnreadable::Folder { known } => (UnreadableKind::Folder, known),
        };
        Unreadable { path: path(&one.path), kind, known }
    };
    paths.iter().map(one).collect()
}

pub(crate) fn entry(entry: &StoreEntry) -> Entry {
    match entry {
        StoreEntry::Absent => Entry::Absent,
        StoreEntry::File { digest, size, mode } => {
            Entry::File { digest: digest.to_string(), size: *size, mode: *mode }
        }
        StoreEntry::Symlink { target } => Entry::Symlink { target: STANDARD.encode(target) },
        StoreEntry::Dir { mode } => Entry::Dir { mode: *mode },
        StoreEntry::NotCaptured { reason } => Entry::NotCaptured { lack: lack(*reason) },
        StoreEntry::Unknown => Entry::Unknown,
    }
}

fn lack(reason: StoreReason) -> NotCapturedReason {
    match reason {
        StoreReason::TooLarge => NotCapturedReason::TooLarge,
        StoreReason::Deadline => NotCapturedReason::Deadline,
        StoreReason::Unreadable => NotCapturedReason::Unreadable,
        StoreReason::Unstable => NotCapturedReason::Unstable,
        StoreReason::Purged => NotCapturedReason::Purged,
        StoreReason::Special => NotCapturedReason::Special,
        StoreReason::Derived => NotCapturedReason::Derived,
        StoreReason::TooMany => NotCapturedReason::TooMany,
        StoreReason::Reserved => NotCapturedReason::Reserved,
        StoreReason::Damaged => NotCapturedReason::Damaged,
    }
}

pub(crate) fn change(change: &StoreChange) -> Change {
    let is_agents = !change.author.sessions().is_empty();
    Change {
        seq: change.seq.0,
        path: path(&change.path),
        before: entry(&change.before),
        after: entry(&change.after),
        author: author(&change.author),
        evidence: is_agents.then(|| evidence(change.evidence)),
        correction: change.correction.as_ref().map(correction),
        time: time(change.time),
    }
}

pub(crate) fn author(author: &StoreAuthor) -> Author {
    match author {
        StoreAuthor::Agent { session, turn, call, tool } => Author::Agent {
            session: session.0.clone(),
            turn: Id::new(turn),
            call: call.0.clone(),
            tool: tool.clone(),
        },
        StoreAuthor::Human => Author::Human,
        StoreAuthor::Ambiguous { sessions } => Author::Ambiguous { sessions: names(sessions) },
        StoreAuthor::Rewind { id } => Author::Rewind { id: Id::new(id) },
        StoreAuthor::Deleted => Author::Deleted,
        StoreAuthor::Import => Author::Import,
    }
}

pub(crate) fn evidence(evidence: StoreEvidence) -> Evidence {
    match evidence {
        StoreEvidence::Named => Evidence::Named,
        StoreEvidence::AfterEdit => Evidence::AfterEdit,
        StoreEvidence::Window => Evidence::Window,
        StoreEvidence::OpenWindow => Evidence::OpenWindow,
    }
}

fn correction(correction: &StoreCorrection) -> Correction {
    match correction {
        StoreCorrection::Mine => Correction::Mine,
        StoreCorrection::Agent { session } => Correction::Agent { session: session.0.clone() },
    }
}

pub(crate) fn names(sessions: &[SessionId]) -> Vec<String> {
    sessions.iter().map(|session| session.0.clone()).collect()
}

pub(crate) fn receipt(receipt: &rewind::Receipt) -> Receipt {
    let plain = |paths: &[WorkPath]| paths.iter().map(|one| path(one).file_path).collect();
    let notes = |notes: &[rewind::Note]| -> Vec<Note> {
        notes.iter().map(|one| note(&one.path, &one.reason)).collect()
    };
    let evidence = receipt.evidence.iter();
    let errors = receipt.errors.iter();
    Receipt {
        success: receipt.success,
        rewind: receipt.rewind.map(Id::new),
        point: receipt.point.map(Id::new),
        safety_point: receipt.safety_point.map(Id::new),
        restored_files: plain(&receipt.restored_files),
        deleted_files: plain(&receipt.deleted_files),
        paths_base64: receipt.paths_base64(),
        merged_files: notes(&receipt.merged_files),
        kept_files: notes(&receipt.kept_files),
        first_seen: first_seen(&receipt.first_seen),
        conflicts: conflicts(receipt),
        ambiguous: notes(&receipt.ambiguous),
        not_captured: notes(&receipt.not_captured),
        evidence: evidence
            .map(|one| PathEvidence {
                path: path(&one.path),
                evidence: self::evidence(one.evidence),
            })
            .collect(),
        notes: notes(&receipt.notes),
        errors: errors
            .map(|one| Problem { path: path(&one.path), error: one.error.clone() })
            .collect(),
        state: receipt.state.as_ref().map(state_receipt),
        ..Receipt::default()
    }
}

fn conflicts(receipt: &rewind::Receipt) -> Vec<Conflict> {
    let of = |path: &WorkPath| receipt.conflict_lines.iter().find(|file| file.path == *path);
    let conflict = |one: &rewind::Note| Conflict {
        note: note(&one.path, &one.reason),
        lines: of(&one.path)
            .map(|file| file.lines.iter().map(conflict_lines).collect())
            .unwrap_or_default(),
    };
    receipt.conflicts.iter().map(conflict).collect()
}

pub(crate) fn open_conflict(conflict: &rewind::OpenConflict) -> OpenConflict {
    OpenConflict {
        operation: Id::new(conflict.operation),
        conflict: Conflict {
            note: note(&conflict.path, &conflict.reason),
            lines: conflict.lines.iter().map(conflict_lines).collect(),
        },
    }
}

fn conflict_lines(one: &rewind::LineConflict) -> ConflictLines {
    let text = |text: &rewind::LineText| String::from_utf8_lossy(&text.0).into_owned();
    ConflictLines {
        line: one.line,
        count: one.count,
        mine: text(&one.mine),
        before: text(&one.before),
    }
}

/// `None`: it covers what an operation did.
pub(crate) fn coverage(coverage: &rewind::Coverage) -> Option<Coverage> {
    let (whose, sessions) = match &coverage.covers {
        rewind::Covered::Sessions(sessions) => (Covered::Sessions, session_names(sessions)),
        rewind::Covered::Chosen(sessions) => (Covered::Chosen, session_names(sessions)),
        rewind::Covered::AllAgents => (Covered::AllAgents, Vec::new()),
        rewind::Covered::Everyone => (Covered::Everyone, Vec::new()),
        rewind::Covered::Operation => return None,
    };
    let other_sessions = session_names(&coverage.others);
    Some(Coverage { whose, sessions, other_sessions, yours: coverage.yours })
}

fn session_names(sessions: &BTreeSet<SessionId>) -> Vec<String> {
    sessions.iter().map(|session| session.0.clone()).collect()
}

fn state_receipt(state: &rewind::StateReceipt) -> StateReceipt {
    StateReceipt {
        execution: state.execution.to_string(),
        branch: state.branch.to_string(),
        checkpoint: state.checkpoint.clone(),
        moved: state.moved,
        stays: state.stays,
        error: state.error.clone(),
    }
}

pub(crate) fn windows(windows: &[rewind::Window]) -> Vec<Window> {
    let one = |one: &rewind::Window| Window {
        session: one.session.0.clone(),
        call: one.call.0.clone(),
        tool: one.tool.clone(),
        command: one.command.clone(),
        paths: one.paths,
    };
    windows.iter().map(one).collect()
}

pub(crate) fn conversation(cut: &Cut) -> Conversation {
    Conversation {
        agent: cut.agent.to_owned(),
        session: cut.session.clone(),
        message_id: cut.message_id.clone(),
        how: cut.how.clone(),
        command: cut.command.clone(),
    }
}

pub(crate) fn scope(scope: HookScope) -> InitScope {
    match scope {
        HookScope::User => InitScope::User,
        HookScope::Project => InitScope::Project,
    }
}
