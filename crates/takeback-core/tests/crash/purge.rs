//! A purge stopped anywhere is finished by the next command: no purged byte is left.

use std::fs;
use std::path::Path;

use takeback_core::rewind::{needs_recovery, recover};
use takeback_core::{PurgeError, purge};
use takeback_testkit::{Sandbox, path};

use crate::at_every_stop;

/// Short, so that it is stored uncompressed.
const SECRET: &str = "q7!Zr2#kP9";

fn sandbox() -> Sandbox {
    let mut sandbox = Sandbox::new();
    sandbox.write("kept.txt", "kept\n");
    sandbox.prompt("s", "go");
    sandbox.agent_writes("s", "key.txt", SECRET);
    sandbox.agent_writes("s", "kept.txt", "changed\n");
    sandbox.turn_end("s");
    sandbox
}

/// Whether the bytes are anywhere in a folder.
fn holds(folder: &Path, bytes: &[u8]) -> bool {
    fs::read_dir(folder).unwrap().map(|entry| entry.unwrap().path()).any(|path| {
        let is_in = |file: Vec<u8>| file.windows(bytes.len()).any(|part| part == bytes);
        if path.is_dir() { holds(&path, bytes) } else { is_in(fs::read(path).unwrap()) }
    })
}

#[test]
fn a_stopped_purge_is_finished_by_the_next() {
    let mut between = 0;
    at_every_stop(|stop| {
        let mut sandbox = sandbox();
        let store = sandbox.workspace.store_dir.clone();
        assert!(holds(&store, SECRET.as_bytes()));
        let key = path("key.txt");
        stop.run(|| drop(purge(&mut sandbox.workspace, &key)));
        sandbox.reopen();
        if stop.n % 2 == 0 && needs_recovery(&sandbox.workspace).unwrap() {
            recover(&mut sandbox.workspace).unwrap();
        }
        match purge(&mut sandbox.workspace, &key) {
            // Nothing of it is recorded any more.
            Err(PurgeError::Unknown { .. }) => between += 1,
            purged => drop(purged.unwrap()),
        }
        assert!(!needs_recovery(&sandbox.workspace).unwrap(), "stopped at {stop:?}");
        sandbox.reopen();
        for bytes in [SECRET, "key.txt"] {
            assert!(!holds(&store, bytes.as_bytes()), "{bytes}, {stop:?}");
        }
        assert_eq!(sandbox.workspace.store.check().unwrap(), Vec::<String>::new());
    });
    assert!(between > 2, "stopped between the log and the packs only {between} times");
}
