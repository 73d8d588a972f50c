//! What a rewind does with each path and what it reports, rule by rule.

mod created_paths;
mod merges;
mod preview_and_receipt;
mod selection;
mod unclear_authors;

use std::cell::RefCell;
use std::collections::BTreeSet;
use std::fs;
use std::os::unix::fs::{PermissionsExt as _, symlink};
use std::rc::Rc;

use takeback_core::rewind::UnlockedFolder;
use takeback_core::rewind::{
    AmbiguousPolicy, Receipt, RewindError, RewindRequest, RewindScope, Step, Target, Verdict,
    preview, rewind,
};
use takeback_core::rewind::{Exactness, Preview, Window};
use takeback_core::{AgentEvent, checkpoint};
use takeback_store::disk::{self, CrashPoint};
use takeback_store::{
    Attribution, Author, CallId, Digest, Entry, Evidence, PointId, RewindKind, SessionId,
};
use takeback_testkit::{Sandbox, path};

use crate::text::{history, report};

const TEN: &str = "1\n2\n3\n4\n5\n6\n7\n8\n9\n10\n";

/// [`TEN`] with some lines replaced.
fn ten(replaced: &[(&str, &str)]) -> String {
    let line = |line: &str| {
        replaced.iter().find(|(from, _)| *from == line).map_or(line.to_owned(), |r| r.1.to_owned())
    };
    TEN.lines().map(|l| line(l) + "\n").collect()
}

fn request(point: PointId) -> RewindRequest {
    RewindRequest::new(Target::Point(point))
}

/// A workspace with `a.txt`, and the point before the agent of session `s` begins.
fn begun(text: impl AsRef<[u8]>) -> (Sandbox, PointId) {
    let mut sandbox = Sandbox::in_memory();
    sandbox.write("a.txt", text);
    let point = sandbox.prompt("s", "go");
    (sandbox, point)
}

// --- one author ---------------------------------------------------------------------------------

#[test]
fn the_agents_changes_are_taken_back() {
    let (mut sandbox, _) = begun("one\n");
    sandbox.write("gone.txt", "still here\n");
    sandbox.write("mode.txt", "same\n");
    let point = sandbox.prompt("s", "again");
    let before = sandbox.tree();
    sandbox.agent_writes("s", "a.txt", "two\n");
    sandbox.agent_writes("s", "a.txt", "three\n");
    sandbox.agent_runs("s", "rm gone.txt; chmod +x mode.txt", |sandbox| {
        sandbox.remove("gone.txt");
        sandbox.set_mode("mode.txt", 0o755);
    });
    sandbox.turn_end("s");
    let receipt = sandbox.rewind_to(point);
    assert_eq!(
        report(&receipt),
        ["success", "restored a.txt", "restored gone.txt", "restored mode.txt"]
    );
    assert_eq!(sandbox.tree(), before);
}

#[test]
fn changes_of_others_stay() {
    let (mut sandbox, _) = begun("one\n");
    sandbox.write("b.txt", "one\n");
    sandbox.write("c.txt", "one\n");
    let point = sandbox.prompt("s", "again");
    sandbox.write("a.txt", "mine\n");
    sandbox.prompt("t", "go");
    sandbox.agent_writes("t", "b.txt", "the other session's\n");
    sandbox.agent_writes("t", "c.txt", "the other session's\n");
    sandbox.turn_end("t");
    sandbox.write("c.txt", "and mine\n");
    sandbox.write("d.txt", "made by me\n");
    sandbox.turn_end("s");
    let receipt = sandbox.rewind_to(point);
    assert_eq!(
        report(&receipt),
        [
            "success",
            "kept a.txt: changed by you",
            "kept b.txt: changed by session t",
            "kept c.txt: changed by you and by session t",
            "kept d.txt: changed by you"
        ]
    );
    assert!(!receipt.changed_something());
    assert_eq!(sandbox.read("a.txt"), "mine\n");
    assert_eq!(sandbox.read("b.txt"), "the other session's\n");
    assert_eq!(sandbox.read("c.txt"), "and mine\n");
}

/// The entry of a path, by a scan.
fn entry_at(sandbox: &mut Sandbox, of: &str) -> Entry {
    takeback_core::look_around(&mut sandbox.workspace).expect("the tree is scanned");
    history(sandbox, of).pop().expect("it is known").after
}
