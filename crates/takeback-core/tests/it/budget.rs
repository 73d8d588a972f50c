//! Scans without enough time: unread files are reported and read later while they are unchanged; if
//! the tree cannot even be walked, the event is late.

use std::fs;
use std::time::Duration;

use takeback_core::rewind::{RewindRequest, Target, preview};
use takeback_core::{AgentEvent, RecordOutcome, checkpoint, look_around};
use takeback_store::disk::{self, CrashPoint};
use takeback_store::{Author, Digest, Entry, NotCapturedReason, PointId, SessionId};
use takeback_testkit::{Sandbox, path};

use crate::recording::settle;
use crate::text::{assert_consistent, authors, history, log, report};

const UNREAD: Entry = Entry::NotCaptured { reason: NotCapturedReason::Deadline };

/// Time for names, and none for contents.
fn no_time_to_read(sandbox: &mut Sandbox) {
    sandbox.workspace.limits.scan_budget = Some(Duration::ZERO);
    sandbox.workspace.limits.scan_overrun = Duration::from_secs(3600);
}

/// No time for names either.
fn no_time_at_all(sandbox: &mut Sandbox) {
    sandbox.workspace.limits.scan_budget = Some(Duration::ZERO);
    sandbox.workspace.limits.scan_overrun = Duration::ZERO;
}

fn time_enough(sandbox: &mut Sandbox) {
    sandbox.workspace.limits.scan_budget = None;
}

fn file(text: &str) -> Entry {
    let digest = Digest::of(text.as_bytes());
    Entry::File { digest, size: text.len() as u64, mode: 0o644 }
}

fn prompt(sandbox: &mut Sandbox) -> RecordOutcome {
    let session = SessionId::from("s");
    sandbox.tell(&AgentEvent::Prompt { session, message: None, text: "go".to_owned(), model: None })
}

fn steps(sandbox: &Sandbox, of: &str) -> Vec<(Entry, Entry)> {
    history(sandbox, of).into_iter().map(|change| (change.before, change.after)).collect()
}

/// A few files, an ignored one among them.
fn lay_out() -> Sandbox {
    let sandbox = Sandbox::new();
    sandbox.write(".gitignore", "*.local\n");
    sandbox.write("a.txt", "one\n");
    sandbox.write("env.local", "secret\n");
    sandbox.write("lib/b.txt", "b\n");
    std::os::unix::fs::symlink("a.txt", sandbox.at("link")).unwrap();
    settle();
    sandbox
}

#[test]
fn without_time_every_unread_file_is_reported() {
    let mut sandbox = lay_out();
    no_time_to_read(&mut sandbox);
    let recorded = prompt(&mut sandbox);
    let unread = [".gitignore", "a.txt", "env.local", "lib/b.txt"];
    let missing: Vec<_> =
        unread.into_iter().map(|of| (path(of), NotCapturedReason::Deadline)).collect();
    assert_eq!((recorded.not_captured, recorded.late, recorded.stats.read), (missing, false, 1));
    let point = recorded.point.expect("the prompt is in the log");
    assert!(unread.iter().all(|of| steps(&sandbox, of) == [(Entry::Unknown, UNREAD)]));
    assert_eq!(steps(&sandbox, "link")[0].1, Entry::Symlink { target: b"a.txt".to_vec() });

    // Again without time: nothing new to report.
    let again = sandbox.tell(&AgentEvent::TurnEnd { session: SessionId::from("s"), model: None });
    assert_eq!((again.changes, again.not_captured), (0, Vec::new()));

    time_enough(&mut sandbox);
    let caught_up = look_around(&mut sandbox.workspace).unwrap().recorded;
    assert_eq!((caught_up.changes, caught_up.stats.read), (0, 4), "nothing has changed");
    assert_eq!(steps(&sandbox, "a.txt"), [(Entry::Unknown, file("one\n"))]);
    assert_consistent(&sandbox);
    assert_eq!(look_around(&mut sandbox.workspace).unwrap().recorded.stats.read, 0);
    assert!(log(&sandbox).iter().all(|change| change.author == Author::Human));
    assert_eq!(report(&sandbox.rewind_to(point)), ["success"]);
}

#[test]
fn each_scan_gets_further() {
    let mut sandbox = lay_out();
    prompt(&mut sandbox);
    sandbox.write("c.txt", "c\n");
    sandbox.write("lib/b.txt", "b, changed\n");
    settle();
    no_time_to_read(&mut sandbox);
    let recorded =
        sandbox.tell(&AgentEvent::TurnEnd { session: SessionId::from("s"), model: None });
    let missing = ["c.txt", "lib/b.txt"].map(|of| (path(of), NotCapturedReason::Deadline));
    assert_eq!(recorded.not_captured, missing);
    time_enough(&mut sandbox);
    let caught_up =
        sandbox.tell(&AgentEvent::TurnEnd { session: SessionId::from("s"), model: None });
    assert_eq!((caught_up.changes, caught_up.stats.read), (0, 2), "and nothing else is read");
    assert_eq!(steps(&sandbox, "c.txt"), [(Entry::Absent, file("c\n"))]);
}

#[test]
fn a_command_does_not_run_out_of_time() {
    let mut sandbox = lay_out();
    no_time_at_all(&mut sandbox);
    let recorded = checkpoint(&mut sandbox.workspace, Some("by hand")).unwrap();
    assert_eq!((recorded.not_captured, recorded.late), (Vec::new(), false));
    sandbox.write("a.txt", "two\n");
    let surveyed = look_around(&mut sandbox.workspace).unwrap().recorded;
    assert_eq!((surveyed.changes, surveyed.not_captured), (1, Vec::new()));
    let request = RewindRequest::new(Target::Point(recorded.point.unwrap()));
    assert_eq!(preview(&mut sandbox.workspace, &request).unwrap().plan.steps.len(), 1);
}

/// A command whose changes there is no time to read; the point of its prompt.
fn a_command_without_time(sandbox: &mut Sandbox) -> PointId {
    no_time_to_read(sandbox);
    let point = sandbox.prompt("s", "go");
    let call = sandbox.before_shell("s", "sed -i a.txt; echo > new.txt");
    settle();
    sandbox.write("a.txt", "the agent's\n");
    sandbox.write("new.txt", "new\n");
    settle();
    sandbox.after("s", &call);
    point
}

#[test]
fn unread_changes_keep_their_author() {
    let mut sandbox = lay_out();
    let point = a_command_without_time(&mut sandbox);
    assert_eq!(authors(&sandbox, "a.txt"), ["s call-1 Bash window"]);
    time_enough(&mut sandbox);
    sandbox.turn_end("s");
    let first_sight = (Entry::Unknown, UNREAD);
    assert_eq!(steps(&sandbox, "a.txt"), [first_sight, (UNREAD, file("the agent's\n"))]);
    assert_eq!(authors(&sandbox, "a.txt"), ["s call-1 Bash window"]);
    assert_eq!(steps(&sandbox, "new.txt"), [(Entry::Absent, file("new\n"))]);
    assert_eq!(authors(&sandbox, "new.txt"), ["s call-1 Bash window"]);
    assert_consistent(&sandbox);
    // An unread file cannot be restored; a new one is deleted.
    assert_eq!(
        report(&sandbox.rewind_to(point)),
        [
            "not all",
            "deleted new.txt",
            "not captured a.txt: the agent continued before it could be read"
        ]
    );
    assert_eq!(sandbox.read("a.txt"), "the agent's\n");
    assert!(!sandbox.exists("new.txt"));
}

#[test]
fn a_rewind_reads_unread_files_first() {
    let mut sandbox = lay_out();
    sandbox.prompt("s", "read everything");
    let point = a_command_without_time(&mut sandbox);
    sandbox.turn_end("s");
    assert_eq!(report(&sandbox.rewind_to(point)), ["success", "restored a.txt", "deleted new.txt"]);
    assert_eq!(sandbox.read("a.txt"), "one\n");
    assert!(!sandbox.exists("new.txt"));
    sandbox.undo();
    assert_eq!(sandbox.read("a.txt"), "the agent's\n");
}

#[test]
fn a_users_edit_of_an_unread_file_is_not_the_agents() {
    for read_between in [false, true] {
        let mut sandbox = lay_out();
        sandbox.prompt("s", "read everything");
        let point = a_command_without_time(&mut sandbox);
        sandbox.turn_end("s");
        sandbox.write("a.txt", "a person's\n");
        settle();
        if read_between {
            sandbox.prompt("s", "still no time");
        }
        time_enough(&mut sandbox);
        look_around(&mut sandbox.workspace).unwrap();
        let last = authors(&sandbox, "a.txt").pop();
        assert_eq!(last.as_deref(), Some("human"), "read between: {read_between}");
        let receipt = sandbox.rewind_to(point);
        assert!(!receipt.success, "{receipt:?}");
        assert_eq!(sandbox.read("a.txt"), "a person's\n");
    }
}

#[test]
fn an_edits_own_paths_are_always_read() {
    let mut sandbox = lay_out();
    no_time_to_read(&mut sandbox);
    let point = sandbox.prompt("s", "go");
    // An open command makes the edit scan the tree.
    sandbox.before_shell("s", "true");
    sandbox.agent_writes("s", "a.txt", "two\n");
    sandbox.turn_end("s");
    assert_eq!(
        steps(&sandbox, "a.txt"),
        [(Entry::Unknown, file("one\n")), (file("one\n"), file("two\n"))]
    );
    assert_eq!(report(&sandbox.rewind_to(point)), ["success", "restored a.txt"]);
    assert_eq!(sandbox.read("a.txt"), "one\n");
}

#[test]
fn an_event_is_late_if_the_tree_cannot_be_walked_in_time() {
    let mut sandbox = lay_out();
    let before = sandbox.prompt("s", "before");
    sandbox.turn_end("s");
    no_time_at_all(&mut sandbox);
    let recorded = prompt(&mut sandbox);
    assert_eq!((recorded.late, recorded.point, recorded.changes), (true, None, 0));
    let call = sandbox.before_shell("s", "rm a.txt");
    fs::remove_file(sandbox.at("a.txt")).unwrap();
    sandbox.write("lib/b.txt", "changed\n");
    sandbox.after("s", &call);
    sandbox.turn_end("s");
    assert_eq!(sandbox.workspace.store.points().unwrap().len(), 1, "nothing is recorded yet");

    time_enough(&mut sandbox);
    look_around(&mut sandbox.workspace).unwrap();
    let points = sandbox.workspace.store.points().unwrap();
    assert_eq!(
        points.iter().map(|point| &*point.description).collect::<Vec<_>>(),
        ["before", "go"]
    );
    assert_eq!(points[0].id, before);
    assert_eq!(points[1].seq, points[0].seq, "what was found came after the prompt");
    assert_eq!(authors(&sandbox, "a.txt"), ["ambiguous s"]);
    assert_eq!(authors(&sandbox, "lib/b.txt"), ["ambiguous s"]);
    assert_consistent(&sandbox);
    sandbox.rewind_to(points[1].id);
    assert_eq!(sandbox.read("a.txt"), "one\n", "what is missing comes back");
    assert_eq!(sandbox.read("lib/b.txt"), "changed\n", "nothing is overwritten in doubt");
}

#[test]
fn two_concurrent_first_scans_record_one() {
    let mut sandbox = lay_out();
    let mut other = Some(sandbox.another_process());
    // Just before the first one commits, the other one does.
    disk::watch(Some(Box::new(move |point| {
        if point == CrashPoint::Sync
            && let Some(mut other) = other.take()
        {
            let recorded = look_around(&mut other).unwrap().recorded;
            assert_eq!(recorded.changes, 6);
        }
    })));
    let recorded = prompt(&mut sandbox);
    disk::watch(None);
    assert_eq!((recorded.changes, recorded.not_captured), (0, Vec::new()));
    assert_eq!(log(&sandbox).len(), 6);
    let again = look_around(&mut sandbox.workspace).unwrap().recorded;
    assert_eq!((again.changes, again.stats.read), (0, 0));
}
