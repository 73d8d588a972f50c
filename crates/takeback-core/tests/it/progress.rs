//! A progress callback learns when work begins, how far it is, and when it has ended.

use std::any::Any;
use std::sync::{Arc, Mutex};

use takeback_core::look_around;
use takeback_core::rewind::{RewindError, RewindRequest, Target};
use takeback_core::{Progress, Work};
use takeback_testkit::Sandbox;

use crate::recording::settle;

type Messages = Arc<Mutex<Vec<String>>>;

/// Adds a message with the counts when it is dropped.
struct EndGuard(Messages, Work, Arc<Progress>);

impl Drop for EndGuard {
    fn drop(&mut self) {
        let Self(messages, work, progress) = self;
        let (files, bytes, of) = (progress.files(), progress.bytes(), progress.of());
        messages
            .lock()
            .expect("the lock is not poisoned")
            .push(format!("{work:?} {files}/{of} {bytes} B"));
    }
}

fn watched(sandbox: &mut Sandbox) -> Messages {
    let messages = Messages::default();
    let shared = Arc::clone(&messages);
    sandbox.workspace.ambient.watch = Some(Box::new(move |work, progress| -> Box<dyn Any> {
        assert_eq!((progress.files(), progress.bytes()), (0, 0), "nothing is done yet");
        Box::new(EndGuard(Arc::clone(&shared), work, Arc::clone(progress)))
    }));
    messages
}

fn take(messages: &Messages) -> Vec<String> {
    std::mem::take(&mut messages.lock().expect("the lock is not poisoned"))
}

#[test]
fn a_scan_counts_files_and_the_bytes_it_keeps() {
    let mut sandbox = Sandbox::new();
    sandbox.write("a", "12345");
    sandbox.write("sub/b", "678");
    // Over 4 MiB: kept in chunks, and each byte counted once.
    sandbox.write("large", vec![7; 5 << 20]);
    settle();
    let messages = watched(&mut sandbox);
    look_around(&mut sandbox.workspace).expect("it is scanned");
    let bytes = 8 + (5 << 20);
    assert_eq!(take(&messages), ["Count 3/0 0 B".to_owned(), format!("Scan 3/3 {bytes} B")]);
    sandbox.write("a", "1234");
    look_around(&mut sandbox.workspace).expect("it is scanned");
    assert_eq!(take(&messages), ["Scan 3/0 4 B"], "the count is not repeated");
}

#[test]
fn a_rewind_counts_to_the_end() {
    let mut sandbox = Sandbox::new();
    for n in 0..5 {
        sandbox.write(&format!("old/{n}"), "before");
    }
    let point = sandbox.prompt("s", "go");
    sandbox.agent_runs("s", "rm -r old; make new", |sandbox| {
        sandbox.remove("old");
        sandbox.write("new/a", "a");
        sandbox.write("new/b", "b");
    });
    sandbox.turn_end("s");
    let messages = watched(&mut sandbox);
    assert!(sandbox.rewind_to(point).success);
    assert_eq!(
        take(&messages),
        ["Stage 5/5 0 B", "Apply 14/14 0 B"],
        "put or removed, then checked"
    );
}

#[test]
fn failed_work_ends_its_progress() {
    let mut sandbox = Sandbox::new();
    sandbox.write("a", "kept");
    let point = sandbox.prompt("s", "go");
    sandbox.agent_runs("s", "rm a", |sandbox| sandbox.remove("a"));
    sandbox.turn_end("s");
    sandbox.write(".takeback", "in the way of every stage");
    let messages = watched(&mut sandbox);
    let request = RewindRequest::new(Target::Point(point));
    assert!(matches!(sandbox.rewind(&request), Err(RewindError::Stage(_))));
    assert_eq!(take(&messages), ["Stage 0/1 0 B"]);
}
