//! Trees of thousands of nested folders, whose paths are longer than the kernel takes in one call.

use std::fs::File;
use std::io::Write as _;
use std::os::fd::OwnedFd;

use rustix::fs::{CWD, Mode, OFlags};
use takeback_core::look_around;
use takeback_testkit::{Sandbox, path};

const DEPTH: usize = 3_000;

/// `d/d/d/…/leaf`.
fn nest(sandbox: &Sandbox) {
    let flags = OFlags::DIRECTORY | OFlags::RDONLY | OFlags::CLOEXEC;
    let mut at: OwnedFd = rustix::fs::openat(CWD, sandbox.root(), flags, Mode::empty()).unwrap();
    for _ in 0..DEPTH {
        rustix::fs::mkdirat(&at, "d", Mode::RWXU).unwrap();
        at = rustix::fs::openat(&at, "d", flags, Mode::empty()).unwrap();
    }
    let flags = OFlags::CREATE | OFlags::WRONLY | OFlags::CLOEXEC;
    let leaf = rustix::fs::openat(&at, "leaf", flags, Mode::RWXU).unwrap();
    File::from(leaf).write_all(b"x\n").unwrap();
}

/// A thread has little stack: nothing may go down the tree by recursion.
#[test]
fn nested_folders_are_recorded_and_taken_back() {
    let mut sandbox = Sandbox::in_memory();
    sandbox.write("a.txt", "a\n");
    let point = sandbox.prompt("s", "go");
    sandbox.agent_runs("s", "nest", nest);
    let leaf = path(&format!("{}leaf", "d/".repeat(DEPTH)));
    let latest = sandbox.workspace.store.latest_of(&[leaf]).unwrap();
    assert!(latest[0].is_some(), "the innermost file is recorded");
    assert_eq!(look_around(&mut sandbox.workspace).unwrap().skipped, []);
    sandbox.turn_end("s");
    let receipt = sandbox.rewind_to(point);
    assert!(receipt.success, "{:?}", receipt.errors);
    assert_eq!(receipt.deleted_files.len(), DEPTH + 1);
    assert!(!sandbox.exists("d"));
}
