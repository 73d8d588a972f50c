//! Events that are not in the log yet: late ones are recorded once and in order, claimed ones hold up what comes
//! next, and files that were left are read later.

use std::fs::{self, File};
use std::path::Path;
use std::thread;
use std::time::{Duration, Instant};

use serde_json::json;
use takeback_core::lock::{Hold, Lock, lock};
use takeback_core::middleware::{Middleware, ToolCall};
use takeback_core::rewind::{RewindError, RewindRequest, Target};
use takeback_core::{
    Admission, AgentEvent, CallTargets, Inbox, InboxEvent, QueuedEvent, ScanProgress, Tools,
    bytes_left_to_read, finish_scan, look_around, record_late_events, record_or_queue,
    record_queued,
};
use takeback_store::{CallId, Entry, NotCapturedReason, SessionId, StoreError, Timestamp};
use takeback_testkit::{Sandbox, path};

use crate::events::{after, edit, prompt};
use crate::text::{assert_consistent, authors, history, log, report};

// --- the folder: push and drain ------------------------------------------------------------------

fn push(inbox: &Inbox, text: &str) {
    inbox.push(InboxEvent { time: Timestamp(1), event: prompt("s", text) }).unwrap();
}

fn text(event: InboxEvent) -> String {
    match event.event {
        AgentEvent::Prompt { text, .. } => text,
        other => panic!("{other:?}"),
    }
}

/// Drains all events; the one named `fails` cannot be taken.
fn taken(inbox: &Inbox, fails: &str) -> (Vec<String>, Result<Option<usize>, StoreError>) {
    let mut taken = Vec::new();
    let drained = inbox.drain(Duration::ZERO, |event| {
        let text = text(event);
        if text == fails {
            return Err(StoreError::Moved);
        }
        taken.push(text);
        Ok(())
    });
    (taken, drained)
}

fn files(dir: &Path) -> Vec<String> {
    let names = fs::read_dir(dir).unwrap().map(|entry| entry.unwrap().file_name());
    let mut names: Vec<String> = names.map(|name| name.into_string().unwrap()).collect();
    names.sort();
    names
}

#[test]
fn a_push_during_a_drain_does_not_wait() {
    let dir = tempfile::tempdir().unwrap();
    let inbox = Inbox::of(dir.path());
    assert_eq!(taken(&inbox, "").1.unwrap(), Some(0));
    assert_eq!(files(dir.path()), [""; 0], "an empty inbox takes no place");
    push(&inbox, "first");
    let mut taken = Vec::new();
    let drained = inbox.drain(Duration::ZERO, |event| {
        let text = text(event);
        if text == "first" {
            push(&inbox, "second");
            push(&inbox, "third");
        }
        taken.push(text);
        Ok::<(), StoreError>(())
    });
    assert_eq!(drained.unwrap(), Some(3));
    assert_eq!(taken, ["first", "second", "third"]);
    assert_eq!(files(dir.path()), ["inbox", "inbox.lock"]);
    assert_eq!(files(&dir.path().join("inbox")), [""; 0]);
}

#[test]
fn no_event_is_lost_between_concurrent_pushes_and_drains() {
    const EACH: usize = 25;
    let dir = tempfile::tempdir().unwrap();
    let inbox = &Inbox::of(dir.path());
    let mut taken = Vec::new();
    thread::scope(|scope| {
        let pushing: Vec<_> = ["a", "b", "c"]
            .map(|who| {
                scope.spawn(move || {
                    (0..EACH).for_each(|n| push(inbox, &format!("{who} {n:02}")));
                })
            })
            .into();
        loop {
            let is_last = pushing.iter().all(thread::ScopedJoinHandle::is_finished);
            taken.extend(self::taken(inbox, "").0);
            if is_last {
                break;
            }
        }
    });
    for who in ["a", "b", "c"] {
        let of_one: Vec<&String> = taken.iter().filter(|text| text.starts_with(who)).collect();
        let pushed: Vec<String> = (0..EACH).map(|n| format!("{who} {n:02}")).collect();
        assert_eq!(of_one, pushed.iter().collect::<Vec<_>>());
    }
}

#[test]
fn a_failed_drain_keeps_the_remaining_events() {
    let dir = tempfile::tempdir().unwrap();
    let inbox = Inbox::of(dir.path());
    ["first", "second", "third"].iter().for_each(|text| push(&inbox, text));
    let (first, failed) = taken(&inbox, "second");
    assert_eq!((first, failed.is_err()), (vec!["first".to_owned()], true));
    push(&inbox, "fourth");
    let (rest, drained) = taken(&inbox, "");
    assert_eq!((rest.join(" "), drained.unwrap()), ("second third fourth".to_owned(), Some(3)));
    let (nothing, drained) = taken(&inbox, "");
    assert_eq!((nothing.len(), drained.unwrap()), (0, Some(0)));
}

#[test]
fn damaged_events_are_reported_and_truncated_ones_are_not() {
    let dir = tempfile::tempdir().unwrap();
    let inbox = Inbox::of(dir.path());
    let newest = || dir.path().join("inbox").join(files(&dir.path().join("inbox")).pop().unwrap());
    push(&inbox, "first");
    let whole = fs::read(newest()).unwrap();
    fs::write(newest(), &whole[..whole.len() / 2]).unwrap();
    push(&inbox, "second");
    assert_eq!(inbox.damaged().unwrap(), 0, "it was cut short");
    push(&inbox, "third");
    let third = String::from_utf8(fs::read(newest()).unwrap()).unwrap();
    fs::write(newest(), third.replace("\"third", "xthird")).unwrap();
    push(&inbox, "fourth");
    assert_eq!(inbox.damaged().unwrap(), 1);
    let (texts, drained) = taken(&inbox, "");
    assert_eq!((texts, drained.unwrap()), (vec!["second".into(), "fourth".into()], Some(2)));
    assert_eq!(inbox.damaged().unwrap(), 1, "also when the others are recorded");
    assert_eq!(files(&dir.path().join("inbox")), ["0000000000000003.damaged"]);
    push(&inbox, "fifth");
    assert_eq!(files(&dir.path().join("inbox"))[1], "0000000000000004", "no number comes twice");
    drop(taken(&inbox, ""));
    assert_eq!((inbox.damaged().unwrap(), inbox.len().unwrap()), (1, 0));
}

#[test]
fn events_keep_their_form_and_every_byte_of_their_paths() {
    use std::ffi::OsStr;
    use std::os::unix::ffi::OsStrExt as _;
    let dir = tempfile::tempdir().unwrap();
    let inbox = Inbox::of(dir.path());
    let before = |touches| InboxEvent {
        time: Timestamp(7),
        event: AgentEvent::BeforeTool {
            session: SessionId::from("s"),
            call: CallId::from("c"),
            tool: "Bash".to_owned(),
            touches,
        },
    };
    let shell = before(CallTargets::anything(Some("make".to_owned())));
    let odd = vec![OsStr::from_bytes(b"caf\xe9").into(), "new\nline".into()];
    let events = [shell, before(CallTargets::Paths(odd))];
    events.iter().for_each(|event| inbox.push(event.clone()).unwrap());
    let written = concat!(
        r#"{"time":7,"event":"before_tool","session":"s","call":"c","tool":"Bash","#,
        r#""touches":{"anything":{"command":"make"}}}"#
    );
    let first = fs::read(dir.path().join("inbox/0000000000000001")).unwrap();
    assert_eq!(String::from_utf8(first).unwrap(), written);
    let mut read = Vec::new();
    let drained = inbox.drain(Duration::ZERO, |event| {
        read.push(event);
        Ok::<(), StoreError>(())
    });
    assert_eq!((drained.unwrap(), read), (Some(2), events.to_vec()));
}

// --- late events ---------------------------------------------------------------------------------

fn impatient() -> Sandbox {
    let mut sandbox = Sandbox::new();
    sandbox.workspace.limits.recorder_patience = Duration::from_millis(20);
    sandbox.workspace.limits.rewind_patience = Duration::from_millis(20);
    sandbox
}

/// `lock`: as a rewind holds it; `inbox.lock`: as a process that records late events.
fn held(sandbox: &Sandbox, name: &str) -> Lock {
    let file = sandbox.workspace.store_dir.join(name);
    lock(&file, Hold::Exclusive, Duration::ZERO).unwrap().expect("no other process has it")
}

fn points(sandbox: &Sandbox) -> Vec<String> {
    let points = sandbox.workspace.store.points().unwrap();
    points.into_iter().map(|point| point.description).collect()
}

#[test]
fn an_agent_does_not_wait_for_a_locked_workspace() {
    let mut sandbox = impatient();
    sandbox.write("a.txt", "one\n");
    let point = sandbox.prompt("s", "go");
    let held = held(&sandbox, "lock");
    let began = Instant::now();
    let answer = sandbox.tell(&edit("s", "c", "a.txt"));
    assert!(began.elapsed() < Duration::from_secs(1), "{:?}", began.elapsed());
    assert!(answer.late);
    assert_eq!(answer.not_captured, [(path("a.txt"), NotCapturedReason::Deadline)]);
    assert_eq!(log(&sandbox).len(), 1, "nothing is recorded yet");
    sandbox.write("a.txt", "two\n");
    drop(held);

    // The next event records it; the version before the edit was not read in time.
    sandbox.after("s", "c");
    let deadline = Entry::NotCaptured { reason: NotCapturedReason::Deadline };
    let chain: Vec<_> =
        history(&sandbox, "a.txt").into_iter().skip(1).map(|c| (c.before, c.after)).collect();
    assert_eq!(chain.len(), 2);
    assert_eq!((&chain[0].1, &chain[1].0), (&deadline, &deadline));
    assert_eq!(authors(&sandbox, "a.txt")[1..], ["s c Edit named"]);
    sandbox.turn_end("s");
    assert_eq!(
        report(&sandbox.rewind_to(point)),
        ["not all", "not captured a.txt: the agent continued before it could be read"]
    );
    assert_eq!(sandbox.read("a.txt"), "two\n");
}

#[test]
fn an_agent_does_not_wait_for_a_store_that_is_busy() {
    let mut sandbox = impatient();
    sandbox.write("a.txt", "one\n");
    sandbox.prompt("s", "go");
    let other = rusqlite::Connection::open(sandbox.workspace.store_dir.join("timeline.db"));
    let other = other.unwrap();
    other.execute_batch("BEGIN IMMEDIATE").unwrap();
    let began = Instant::now();
    let recorded = sandbox.tell(&edit("s", "c", "a.txt"));
    // By default, a store waits five seconds.
    assert!(began.elapsed() < Duration::from_secs(4), "{:?}", began.elapsed());
    assert!(recorded.late);
    assert_eq!(recorded.not_captured, [(path("a.txt"), NotCapturedReason::Deadline)]);
    assert_eq!(history(&sandbox, "a.txt").len(), 1);
    other.execute_batch("ROLLBACK").unwrap();
    sandbox.write("a.txt", "two\n");
    sandbox.after("s", "c");
    assert_eq!(authors(&sandbox, "a.txt")[1..], ["s c Edit named"]);
    assert_consistent(&sandbox);
}

#[test]
fn late_events_are_recorded_once_and_in_order() {
    for name in ["lock", "inbox.lock"] {
        let mut sandbox = impatient();
        push(&sandbox.workspace.inbox(), "first");
        let held = held(&sandbox, name);
        assert!(sandbox.tell(&prompt("s", "second")).late, "{name}");
        let refused = look_around(&mut sandbox.workspace).unwrap_err();
        assert_eq!(refused.to_string(), "another command has the workspace locked", "{name}");
        drop(held);
        assert!(!sandbox.tell(&prompt("s", "third")).late, "{name}");
        sandbox.prompt("s", "fourth");
        assert_eq!(points(&sandbox), ["first", "second", "third", "fourth"], "{name}");
    }
}

#[test]
fn a_look_around_and_a_rewind_record_late_events_first() {
    type Event = fn(&mut Sandbox);
    let events: [(&str, Event); 2] = [
        ("look around", |sandbox| drop(look_around(&mut sandbox.workspace).unwrap())),
        ("undo", |sandbox| {
            let undone = sandbox.rewind(&RewindRequest::new(Target::Undo));
            assert!(matches!(undone, Err(RewindError::NothingToUndo)), "{undone:?}");
        }),
    ];
    for (next, run) in events {
        let mut sandbox = impatient();
        let held = held(&sandbox, "lock");
        sandbox.tell(&prompt("s", "waits"));
        drop(held);
        run(&mut sandbox);
        assert_eq!(points(&sandbox), ["waits"], "{next}");
    }
}

#[test]
fn commands_do_not_wait_forever() {
    let mut sandbox = impatient();
    let point = sandbox.prompt("s", "go");
    let _held = held(&sandbox, "lock");
    let refused = sandbox.rewind(&RewindRequest::new(Target::Point(point)));
    assert!(matches!(refused, Err(RewindError::Locked)), "{refused:?}");
    assert_eq!(
        look_around(&mut sandbox.workspace).unwrap_err().to_string(),
        "another command has the workspace locked"
    );
}

#[test]
fn work_during_a_lock_is_not_attributed_to_the_user() {
    let mut sandbox = impatient();
    sandbox.write("a.txt", "one\n");
    sandbox.write("b.txt", "one\n");
    let point = sandbox.prompt("s", "go");
    let held = held(&sandbox, "lock");
    sandbox.before_shell("s", "rm a.txt; sed -i b.txt");
    sandbox.remove("a.txt");
    sandbox.write("b.txt", "two\n");
    drop(held);
    sandbox.after("s", "call-1");
    sandbox.turn_end("s");
    assert_eq!(authors(&sandbox, "a.txt"), ["ambiguous s"]);
    assert_eq!(authors(&sandbox, "b.txt"), ["ambiguous s"]);
    sandbox.rewind_to(point);
    assert_eq!(sandbox.read("a.txt"), "one\n", "what is missing comes back");
}

#[test]
fn a_late_point_excludes_the_agents_later_work() {
    let mut sandbox = impatient();
    sandbox.write("a.txt", "one\n");
    sandbox.prompt("s", "before");
    sandbox.turn_end("s");
    let held = held(&sandbox, "lock");
    sandbox.tell(&prompt("s", "waits"));
    sandbox.before_shell("s", "rm a.txt");
    sandbox.remove("a.txt");
    drop(held);
    sandbox.after("s", "call-1");
    sandbox.turn_end("s");
    let point = sandbox.workspace.store.points().unwrap().pop().expect("it was made");
    assert_eq!(point.description, "waits");
    sandbox.rewind_to(point.id);
    assert_eq!(sandbox.read("a.txt"), "one\n");
}

#[test]
fn the_middleware_reports_overwritten_uncaptured_bytes() {
    let mut sandbox = impatient();
    sandbox.write("a.txt", "one\n");
    sandbox.prompt("s", "go");
    let held = held(&sandbox, "lock");
    let input = json!({ "path": "a.txt" });
    let mut lacks = Vec::new();
    let mut middleware = Middleware {
        workspace: &mut sandbox.workspace,
        session: SessionId::from("s"),
        tools: Tools::new(&["write_file"], &["bash"], &["read_file"]),
        on_unrecorded: Box::new(|what| lacks.push(format!("{what:?}"))),
    };
    middleware.around(ToolCall { id: "c", tool: "write_file", input: &input }, |_| {});
    drop(middleware);
    drop(held);
    assert_eq!(lacks, [r#"Bytes { call: "c", path: "a.txt", reason: Deadline }"#]);
}

// --- claimed events ------------------------------------------------------------------------------

/// A workspace in which one scan was made, and no process waits for another.
fn scanned() -> Sandbox {
    let mut sandbox = Sandbox::new();
    let limits = &mut sandbox.workspace.limits;
    limits.recorder_patience = Duration::ZERO;
    limits.barrier_patience = Duration::ZERO;
    limits.rewind_patience = Duration::ZERO;
    sandbox.write("a.txt", "one\n");
    sandbox.prompt("s", "first");
    sandbox.prompt("t", "first of another");
    sandbox
}

fn queued(sandbox: &mut Sandbox, event: &AgentEvent) -> QueuedEvent {
    match record_or_queue(&mut sandbox.workspace, event, 0).unwrap() {
        Admission::Queued(queued) => queued,
        Admission::Recorded(recorded) => panic!("{event:?}: {recorded:?}"),
    }
}

fn left(sandbox: &Sandbox) -> usize {
    sandbox.workspace.inbox().len().unwrap()
}

#[test]
fn a_claimed_event_holds_up_only_its_own_session() {
    let mut sandbox = scanned();
    sandbox.write("a.txt", "mine\n");
    let second = queued(&mut sandbox, &prompt("s", "second"));
    assert!(sandbox.workspace.inbox().has_claimed().unwrap());
    assert_eq!(points(&sandbox), ["first", "first of another"]);
    for session in ["s", "s/part"] {
        let answer = sandbox.tell(&edit(session, &format!("c-{session}"), "b.txt"));
        assert!(answer.late, "{session}");
        assert_eq!(
            answer.not_captured,
            [(path("b.txt"), NotCapturedReason::Deadline)],
            "{session}"
        );
        let folder = sandbox.workspace.store_dir.join("inbox");
        fs::remove_file(folder.join(files(&folder).pop().unwrap())).unwrap();
    }
    assert!(!sandbox.tell(&edit("t", "c", "c.txt")).late, "another session");
    let first = sandbox.workspace.store.points().unwrap()[0].id;
    let refused = sandbox.rewind(&RewindRequest::new(Target::Point(first)));
    assert!(matches!(refused, Err(RewindError::Locked)), "{refused:?}");
    let recorded = record_queued(&mut sandbox.another_process(), second).unwrap();
    assert!(recorded.point.is_some());
    assert_eq!((points(&sandbox).pop().unwrap().as_str(), left(&sandbox)), ("second", 0));
    assert_eq!(authors(&sandbox, "a.txt"), ["human"]);
    assert!(!sandbox.tell(&edit("s", "d", "a.txt")).late);
    sandbox.write("a.txt", "agent\n");
    sandbox.after("s", "d");
    assert_eq!(authors(&sandbox, "a.txt"), ["human", "s d Edit named"]);
    assert_consistent(&sandbox);
}

#[test]
fn only_events_without_later_writes_are_queued() {
    let mut sandbox = scanned();
    let shell = sandbox.before_shell("s", "make");
    sandbox.write("made.txt", "made\n");
    let ends = queued(&mut sandbox, &after("s", &shell));
    record_queued(&mut sandbox.workspace, ends).unwrap();
    assert_eq!(authors(&sandbox, "made.txt"), [format!("s {shell} Bash window")]);
    let call = sandbox.before_edit("s", &["a.txt"]);
    let session = SessionId::from("s");
    let (agent, parent, owner) = (None, None, None);
    let start = AgentEvent::SessionStart {
        session: SessionId::from("u"),
        agent,
        parent,
        owner,
        model: None,
    };
    let at_once = [
        after("s", &call),
        edit("s", "e", "a.txt"),
        after("s", "e"),
        AgentEvent::Step { session: session.clone(), name: "step".to_owned() },
        start,
    ];
    let recorded = |sandbox: &mut Sandbox, event: &AgentEvent, from_files| {
        let admission = record_or_queue(&mut sandbox.workspace, event, from_files).unwrap();
        assert!(matches!(admission, Admission::Recorded(_)), "{event:?}: {admission:?}");
    };
    for event in at_once {
        recorded(&mut sandbox, &event, 0);
    }
    let ends = [
        AgentEvent::TurnEnd { session: session.clone(), model: None },
        AgentEvent::SessionEnd { session, model: None },
    ];
    for event in ends {
        let queued = queued(&mut sandbox, &event);
        record_queued(&mut sandbox.workspace, queued).unwrap();
    }
    // A small tree, and a late event in front.
    recorded(&mut sandbox, &prompt("s", "again"), 20_000);
    push(&sandbox.workspace.inbox(), "waits");
    recorded(&mut sandbox, &prompt("t", "comes after"), 0);
    assert_eq!(points(&sandbox)[4..], ["waits", "comes after"]);
}

#[test]
fn changes_behind_a_claimed_event_are_ambiguous() {
    let mut sandbox = scanned();
    let second = queued(&mut sandbox, &prompt("s", "second"));
    assert!(sandbox.tell(&edit("s", "c", "a.txt")).late);
    sandbox.write("a.txt", "agent\n");
    record_queued(&mut sandbox.another_process(), second).unwrap();
    sandbox.after("s", "c");
    assert_eq!(authors(&sandbox, "a.txt"), ["ambiguous s", "ambiguous s", "s c Edit named"]);
    assert_consistent(&sandbox);
}

#[test]
fn events_of_a_dead_process_come_before_later_ones() {
    let mut sandbox = scanned();
    let second = queued(&mut sandbox, &prompt("s", "second"));
    assert!(sandbox.tell(&prompt("s", "third")).late);
    assert_eq!(record_late_events(&mut sandbox.another_process()).unwrap(), 2, "one is claimed");
    assert!(sandbox.tell(&prompt("t", "behind what waits")).late);
    drop(second);
    assert_eq!(record_late_events(&mut sandbox.another_process()).unwrap(), 0);
    let all = ["first", "first of another", "second", "third", "behind what waits"];
    assert_eq!((points(&sandbox), left(&sandbox)), (all.map(str::to_owned).to_vec(), 0));
    assert_consistent(&sandbox);
}

#[test]
fn a_claim_is_handed_over_with_the_open_file() {
    let mut sandbox = scanned();
    let inbox = sandbox.workspace.inbox();
    let second = queued(&mut sandbox, &prompt("s", "second"));
    let (name, file) = (second.name(), second.file().unwrap());
    assert!(inbox.take_over("../lock", second.file().unwrap()).is_err());
    drop(second);
    assert!(inbox.has_claimed().unwrap(), "the other process has it");
    let again = file.try_clone().unwrap();
    let taken = inbox.take_over(&name, file).unwrap().expect("it is not recorded yet");
    record_queued(&mut sandbox.workspace, taken).unwrap();
    assert_eq!(points(&sandbox)[2..], ["second"]);
    assert!(inbox.take_over(&name, again).unwrap().is_none(), "it is recorded");
}

#[test]
fn truncated_files_of_a_crash_are_cleared() {
    let mut sandbox = scanned();
    drop(queued(&mut sandbox, &prompt("s", "second")));
    let folder = sandbox.workspace.store_dir.join("inbox");
    for (name, text) in [("0000000000000002", ""), ("0000000000000003", "{\"time\":")] {
        fs::write(folder.join(name), text).unwrap();
    }
    sandbox.prompt("t", "next");
    assert_eq!(left(&sandbox), 0);
    assert_eq!(points(&sandbox)[2..], ["second", "next"]);
}

// --- files left to read --------------------------------------------------------------------------

/// A workspace where there is time for names alone. A file must be older than a clock tick to be known again.
fn hurried() -> Sandbox {
    let mut sandbox = Sandbox::new();
    for (path, text) in [("a.txt", "one\n"), ("sub/b.txt", "two\n")] {
        sandbox.write(path, text);
        let old = std::time::SystemTime::UNIX_EPOCH + Duration::from_secs(1_000_000);
        File::options().write(true).open(sandbox.at(path)).unwrap().set_modified(old).unwrap();
    }
    thread::sleep(Duration::from_millis(30));
    sandbox.workspace.limits.scan_budget = Some(Duration::ZERO);
    sandbox.workspace.limits.scan_overrun = Duration::from_secs(600);
    sandbox
}

#[test]
fn unread_files_are_read_later() {
    let mut sandbox = hurried();
    let before = sandbox.tree();
    let inbox = sandbox.workspace.inbox();
    let scan = |inbox: &Inbox| (inbox.wants_scan().unwrap(), inbox.scan_progress().unwrap());
    assert_eq!(scan(&inbox), (false, None));
    let point = sandbox.prompt("s", "go");
    let unread = Entry::NotCaptured { reason: NotCapturedReason::Deadline };
    assert_eq!(history(&sandbox, "a.txt")[0].after, unread);
    assert_eq!((scan(&inbox), inbox.len().unwrap()), ((true, None), 0));
    assert_eq!(bytes_left_to_read(&sandbox.workspace).unwrap(), 8);

    let mut claimed = inbox.claim_scan().unwrap().expect("no other process has it");
    assert_eq!(scan(&inbox), (false, Some(ScanProgress::default())));
    assert!(inbox.claim_scan().unwrap().is_none(), "there is one at most");
    for read in [2, 4] {
        claimed.report(ScanProgress { read, of: 8 }).unwrap();
        assert_eq!(inbox.scan_progress().unwrap(), Some(ScanProgress { read, of: 8 }));
    }
    // An agent that works meanwhile.
    sandbox.workspace.limits.scan_budget = None;
    sandbox.agent_writes("s", "sub/b.txt", "agent\n");
    let recorded = finish_scan(&mut sandbox.another_process()).unwrap();
    assert_eq!(recorded.changes, 0, "nothing has changed but what is known");
    claimed.done().unwrap();
    assert_eq!(scan(&inbox), (false, None));
    assert_eq!(bytes_left_to_read(&sandbox.workspace).unwrap(), 0);
    assert!(
        matches!(history(&sandbox, "a.txt")[..], [ref first] if first.after.digest().is_some())
    );
    assert!(sandbox.rewind_to(point).success);
    assert_eq!(sandbox.tree(), before);
    assert_consistent(&sandbox);
}

#[test]
fn an_event_without_a_complete_scan_comes_after_the_next_scan() {
    let mut sandbox = hurried();
    sandbox.prompt("s", "first");
    sandbox.workspace.limits.scan_overrun = Duration::ZERO;
    let recorded = sandbox.tell(&prompt("s", "go"));
    let inbox = sandbox.workspace.inbox();
    assert!(recorded.late && recorded.unfinished && inbox.wants_scan().unwrap());
    sandbox.write("new.txt", "by whom?\n");
    sandbox.workspace.limits.scan_budget = None;
    finish_scan(&mut sandbox.workspace).unwrap();
    assert_eq!(points(&sandbox), ["first", "go"]);
    assert!(inbox.is_empty().unwrap());
    assert_eq!(authors(&sandbox, "new.txt"), ["ambiguous s"], "the session's, or a person's");
    assert_consistent(&sandbox);
}
