//! What a scan has no time for: files that are not read are said to be missing, and are caught up
//! with as long as they are the same; a tree that cannot even be walked makes the event wait.

use std::fs;
use std::time::Duration;

use takeback_core::rewind::{RewindRequest, Target, preview};
use takeback_core::{AgentEvent, RecordOutcome, checkpoint, look_around};
use takeback_store::disk::{self, CrashPoint};
use takeback_store::{Author, Digest, Entry, NotCapturedReason, PointId, SessionId};
use takeback_testkit::{Sandbox, path};

use crate::shown::{assert_consistent, history, log, said, who};

const UNREAD: Entry = Entry::NotCaptured { reason: NotCapturedReason::Deadline };

/// So much time passes that the times of files written now differ from those of files written then.
fn settle() {
    std::thread::sleep(Duration::from_millis(30));
}

/// There is time for names, and none for files.
fn no_time_to_read(sandbox: &mut Sandbox) {
    sandbox.workspace.limits.scan_budget = Some(Duration::ZERO);
    sandbox.workspace.limits.scan_overrun = Duration::from_secs(3600);
}

/// There is none for names either.
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
    sandbox.tell(&AgentEvent::Prompt { session, message: None, text: "go".to_owned() })
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
fn with_no_time_nothing_is_read_and_everything_is_said() {
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

    // Once more without time: nothing new to say.
    let again = sandbox.tell(&AgentEvent::TurnEnd { session: SessionId::from("s") });
    assert_eq!((again.changes, again.not_captured), (0, Vec::new()));

    time_enough(&mut sandbox);
    let caught_up = look_around(&mut sandbox.workspace).unwrap().recorded;
    assert_eq!((caught_up.changes, caught_up.stats.read), (0, 4), "nothing has changed");
    assert_eq!(steps(&sandbox, "a.txt"), [(Entry::Unknown, file("one\n"))]);
    assert_consistent(&sandbox);
    assert_eq!(look_around(&mut sandbox.workspace).unwrap().recorded.stats.read, 0);
    assert!(log(&sandbox).iter().all(|change| change.author == Author::Human));
    assert_eq!(said(&sandbox.rewind_to(point)), ["success"]);
}

#[test]
fn each_scan_gets_further() {
    let mut sandbox = lay_out();
    prompt(&mut sandbox);
    sandbox.write("c.txt", "c\n");
    sandbox.write("lib/b.txt", "b, changed\n");
    settle();
    no_time_to_read(&mut sandbox);
    let recorded = sandbox.tell(&AgentEvent::TurnEnd { session: SessionId::from("s") });
    let missing = ["c.txt", "lib/b.txt"].map(|of| (path(of), NotCapturedReason::Deadline));
    assert_eq!(recorded.not_captured, missing);
    time_enough(&mut sandbox);
    let caught_up = sandbox.tell(&AgentEvent::TurnEnd { session: SessionId::from("s") });
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

/// What a command did while there was no time to read it, from the prompt on.
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
fn what_was_written_while_there_was_no_time_is_still_its_authors() {
    let mut sandbox = lay_out();
    let point = a_command_without_time(&mut sandbox);
    assert_eq!(who(&sandbox, "a.txt"), ["s call-1 Bash window"]);
    time_enough(&mut sandbox);
    sandbox.turn_end("s");
    let first_sight = (Entry::Unknown, UNREAD);
    assert_eq!(steps(&sandbox, "a.txt"), [first_sight, (UNREAD, file("the agent's\n"))]);
    assert_eq!(who(&sandbox, "a.txt"), ["s call-1 Bash window"]);
    assert_eq!(steps(&sandbox, "new.txt"), [(Entry::Absent, file("new\n"))]);
    assert_eq!(who(&sandbox, "new.txt"), ["s call-1 Bash window"]);
    assert_consistent(&sandbox);
    // What nobody read cannot come back; what was not there, goes.
    assert_eq!(
        said(&sandbox.rewind_to(point)),
        [
            "not all",
            "deleted new.txt",
            "not captured a.txt: the agent went on before it could be read"
        ]
    );
    assert_eq!(sandbox.read("a.txt"), "the agent's\n");
    assert!(!sandbox.exists("new.txt"));
}

#[test]
fn a_rewind_catches_up_with_what_nobody_read() {
    let mut sandbox = lay_out();
    sandbox.prompt("s", "read everything");
    let point = a_command_without_time(&mut sandbox);
    sandbox.turn_end("s");
    assert_eq!(said(&sandbox.rewind_to(point)), ["success", "restored a.txt", "deleted new.txt"]);
    assert_eq!(sandbox.read("a.txt"), "one\n");
    assert!(!sandbox.exists("new.txt"));
    sandbox.undo();
    assert_eq!(sandbox.read("a.txt"), "the agent's\n");
}

#[test]
fn what_a_person_wrote_over_it_is_not_taken_for_the_agents() {
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
        let last = who(&sandbox, "a.txt").pop();
        assert_eq!(last.as_deref(), Some("human"), "read between: {read_between}");
        let receipt = sandbox.rewind_to(point);
        assert!(!receipt.success, "{receipt:?}");
        assert_eq!(sandbox.read("a.txt"), "a person's\n");
    }
}

#[test]
fn an_edits_own_paths_are_read_whatever_the_time() {
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
    assert_eq!(said(&sandbox.rewind_to(point)), ["success", "restored a.txt"]);
    assert_eq!(sandbox.read("a.txt"), "one\n");
}

#[test]
fn a_tree_that_cannot_be_walked_in_time_makes_the_event_wait() {
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
    assert_eq!(who(&sandbox, "a.txt"), ["ambiguous s"]);
    assert_eq!(who(&sandbox, "lib/b.txt"), ["ambiguous s"]);
    assert_consistent(&sandbox);
    sandbox.rewind_to(points[1].id);
    assert_eq!(sandbox.read("a.txt"), "one\n", "what is missing comes back");
    assert_eq!(sandbox.read("lib/b.txt"), "changed\n", "nothing is overwritten in doubt");
}

#[test]
fn a_first_scan_that_two_make_at_once_is_not_made_again() {
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
