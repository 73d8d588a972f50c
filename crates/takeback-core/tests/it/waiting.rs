//! Several at once: a workspace that is locked, and processes that record side by side.

use std::fs;
use std::thread;
use std::time::{Duration, Instant};

use serde_json::json;
use takeback_core::lock::{Hold, Lock, lock};
use takeback_core::middleware::{Middleware, ToolCall};
use takeback_core::rewind::{RewindError, RewindRequest, Target};
use takeback_core::spool::{self, Spooled};
use takeback_core::{AgentEvent, CallReport, Outcome, Tools, Touches, look_around, record};
use takeback_store::{CallId, Entry, Lack, SessionId, Timestamp};
use takeback_testkit::{Sandbox, path};

use crate::shown::{assert_consistent, history, log, said, who};

fn impatient() -> Sandbox {
    let mut sandbox = Sandbox::new();
    sandbox.workspace.limits.recorder_patience = Duration::from_millis(20);
    sandbox.workspace.limits.rewind_patience = Duration::from_millis(20);
    sandbox
}

/// As a rewind holds it.
fn locked(sandbox: &Sandbox) -> Lock {
    let file = sandbox.workspace.store_dir.join("lock");
    lock(&file, Hold::Exclusive, Duration::ZERO).unwrap().expect("nobody has it")
}

fn edit(sandbox: &Sandbox, call: &str, of: &str) -> AgentEvent {
    AgentEvent::BeforeTool {
        session: SessionId::from("s"),
        call: CallId::from(call),
        tool: "Edit".to_owned(),
        touches: Touches::Paths(vec![sandbox.at(of)]),
    }
}

#[test]
fn an_agent_does_not_wait_for_a_locked_workspace() {
    let mut sandbox = impatient();
    sandbox.write("a.txt", "one\n");
    let point = sandbox.prompt("s", "go");
    let held = locked(&sandbox);
    let began = Instant::now();
    let answer = sandbox.tell(&edit(&sandbox, "c", "a.txt"));
    assert!(began.elapsed() < Duration::from_secs(1), "{:?}", began.elapsed());
    assert!(answer.spooled);
    assert_eq!(answer.not_captured, [(path("a.txt"), Lack::Deadline)]);
    assert_eq!(log(&sandbox).len(), 1, "nothing is recorded yet");
    sandbox.write("a.txt", "two\n");
    drop(held);

    // Whoever is next records it: what stood before the edit was not read in time.
    sandbox.after("s", "c");
    let deadline = Entry::NotCaptured { lack: Lack::Deadline };
    let chain: Vec<_> =
        history(&sandbox, "a.txt").into_iter().skip(1).map(|c| (c.before, c.after)).collect();
    assert_eq!(chain.len(), 2);
    assert_eq!((&chain[0].1, &chain[1].0), (&deadline, &deadline));
    assert_eq!(who(&sandbox, "a.txt")[1..], ["s c Edit named"]);
    sandbox.turn_end("s");
    assert_eq!(
        said(&sandbox.rewind_to(point)),
        ["not all", "not captured a.txt: the agent went on before it could be read"]
    );
    assert_eq!(sandbox.read("a.txt"), "two\n");
}

#[test]
fn what_waited_is_recorded_once_and_in_order() {
    let mut sandbox = impatient();
    let held = locked(&sandbox);
    for text in ["first", "second"] {
        let session = SessionId::from("s");
        let event = AgentEvent::Prompt { session, message: None, text: text.to_owned() };
        assert!(sandbox.tell(&event).spooled);
    }
    drop(held);
    sandbox.prompt("s", "third");
    sandbox.prompt("s", "fourth");
    let points = sandbox.workspace.store.points().unwrap();
    let told: Vec<&str> = points.iter().map(|point| point.description.as_str()).collect();
    assert_eq!(told, ["first", "second", "third", "fourth"]);
}

#[test]
fn a_look_around_and_a_rewind_record_what_waited_first() {
    type Next = fn(&mut Sandbox);
    let nexts: [(&str, Next); 2] = [
        ("look around", |sandbox| drop(look_around(&mut sandbox.workspace).unwrap())),
        ("undo", |sandbox| {
            let undone = sandbox.rewind(&RewindRequest::new(Target::Undo));
            assert!(matches!(undone, Err(RewindError::NothingToUndo)), "{undone:?}");
        }),
    ];
    for (next, run) in nexts {
        let mut sandbox = impatient();
        let held = locked(&sandbox);
        let session = SessionId::from("s");
        sandbox.tell(&AgentEvent::Prompt { session, message: None, text: "waits".to_owned() });
        drop(held);
        run(&mut sandbox);
        assert_eq!(sandbox.workspace.store.points().unwrap().len(), 1, "{next}");
    }
}

#[test]
fn commands_do_not_wait_for_ever_either() {
    let mut sandbox = impatient();
    let point = sandbox.prompt("s", "go");
    let _held = locked(&sandbox);
    let refused = sandbox.rewind(&RewindRequest::new(Target::Point(point)));
    assert!(matches!(refused, Err(RewindError::Locked)), "{refused:?}");
    assert_eq!(
        look_around(&mut sandbox.workspace).unwrap_err().to_string(),
        "another command has the workspace locked"
    );
}

#[test]
fn what_a_command_did_while_nobody_could_look_is_not_taken_for_a_persons() {
    let mut sandbox = impatient();
    sandbox.write("a.txt", "one\n");
    sandbox.write("b.txt", "one\n");
    let point = sandbox.prompt("s", "go");
    let held = locked(&sandbox);
    sandbox.before_shell("s", "rm a.txt; sed -i b.txt");
    sandbox.remove("a.txt");
    sandbox.write("b.txt", "two\n");
    drop(held);
    sandbox.after("s", "call-1");
    sandbox.turn_end("s");
    assert_eq!(who(&sandbox, "a.txt"), ["ambiguous s"]);
    assert_eq!(who(&sandbox, "b.txt"), ["ambiguous s"]);
    sandbox.rewind_to(point);
    assert_eq!(sandbox.read("a.txt"), "one\n", "what is missing comes back");
}

#[test]
fn a_point_that_waited_is_not_later_than_what_the_agent_did_meanwhile() {
    let mut sandbox = impatient();
    sandbox.write("a.txt", "one\n");
    sandbox.prompt("s", "before");
    sandbox.turn_end("s");
    let held = locked(&sandbox);
    let session = SessionId::from("s");
    sandbox.tell(&AgentEvent::Prompt { session, message: None, text: "waits".to_owned() });
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
fn the_middleware_tells_what_was_overwritten_unseen() {
    let mut sandbox = impatient();
    sandbox.write("a.txt", "one\n");
    sandbox.prompt("s", "go");
    let held = locked(&sandbox);
    let input = json!({ "path": "a.txt" });
    let mut lacks = Vec::new();
    let mut middleware = Middleware {
        workspace: &mut sandbox.workspace,
        session: SessionId::from("s"),
        tools: Tools::default(),
        on_unrecorded: Box::new(|what| lacks.push(format!("{what:?}"))),
    };
    middleware.around(ToolCall { id: "c", tool: "write_file", input: &input }, |_| {});
    drop(middleware);
    drop(held);
    assert_eq!(lacks, [r#"Bytes { call: "c", path: "a.txt", lack: Deadline }"#]);
}

#[test]
fn a_line_cut_short_by_a_crash_takes_no_other_with_it() {
    let mut sandbox = impatient();
    fs::write(sandbox.workspace.store_dir.join("spool"), r#"{"time":1,"event":"pro"#).unwrap();
    let session = SessionId::from("s");
    let event = AgentEvent::Prompt { session, message: None, text: "kept".to_owned() };
    spool::push(&sandbox.workspace.store_dir, &Spooled { time: Timestamp(2), event }).unwrap();
    look_around(&mut sandbox.workspace).unwrap();
    let points = sandbox.workspace.store.points().unwrap();
    assert_eq!(points.iter().map(|point| point.description.as_str()).collect::<Vec<_>>(), ["kept"]);
}

#[test]
fn events_wait_with_every_byte_of_their_paths() {
    use std::ffi::OsStr;
    use std::os::unix::ffi::OsStrExt as _;
    let sandbox = Sandbox::new();
    let event = AgentEvent::BeforeTool {
        session: SessionId::from("s"),
        call: CallId::from("c"),
        tool: "Edit".to_owned(),
        touches: Touches::Paths(vec![OsStr::from_bytes(b"caf\xe9").into(), "new\nline".into()]),
    };
    let spooled = Spooled { time: Timestamp(7), event };
    spool::push(&sandbox.workspace.store_dir, &spooled).unwrap();
    let mut drained = Vec::new();
    spool::drain(&sandbox.workspace.store_dir, Duration::ZERO, |event| {
        drained.push(event);
        Ok::<(), std::io::Error>(())
    })
    .unwrap();
    assert_eq!(drained, [spooled]);
}

#[test]
fn several_processes_record_into_one_consistent_log() {
    const PROCESSES: usize = 4;
    const ROUNDS: usize = 8;
    let mut sandbox = Sandbox::new();
    sandbox.write("shared.txt", "start\n");
    sandbox.prompt("s0", "go");
    thread::scope(|scope| {
        for number in 0..PROCESSES {
            let mut workspace = sandbox.another_process();
            let root = sandbox.root();
            scope.spawn(move || {
                let session = SessionId(format!("s{number}"));
                let mut tell = |event| {
                    let recorded = record(&mut workspace, &event).expect("it is recorded");
                    assert!(!recorded.spooled);
                };
                for round in 0..ROUNDS {
                    let call = CallId(format!("{round}"));
                    let shell = round % 2 == 1;
                    let own = root.join(format!("own-{number}.txt"));
                    let touches = if shell {
                        Touches::anything(None)
                    } else {
                        Touches::Paths(vec![own.clone()])
                    };
                    tell(AgentEvent::BeforeTool {
                        session: session.clone(),
                        call: call.clone(),
                        tool: "tool".to_owned(),
                        touches,
                    });
                    fs::write(own, format!("{number} {round}\n")).unwrap();
                    if shell {
                        fs::write(root.join("shared.txt"), format!("{number} {round}\n")).unwrap();
                    }
                    tell(AgentEvent::AfterTool {
                        session: session.clone(),
                        call,
                        outcome: Outcome::Done,
                        report: CallReport::default(),
                    });
                }
                tell(AgentEvent::TurnEnd { session });
            });
        }
    });
    assert_consistent(&sandbox);
    let head = log(&sandbox).len();
    assert_eq!(look_around(&mut sandbox.workspace).unwrap().recorded.changes, 0);
    assert_eq!(log(&sandbox).len(), head, "the log already tells what is on disk");
    for number in 0..PROCESSES {
        let authors = who(&sandbox, &format!("own-{number}.txt"));
        let me = format!("s{number}");
        let sure = authors.iter().all(|author| author.contains(&me));
        assert!(sure, "nobody else alone wrote own-{number}.txt: {authors:?}");
    }
}
