//! Scans record what a full re-hash would find, whatever happened to the files between them.
//!
//! Random runs of everything that could deceive a cache of file times, with scans in between. After
//! every scan the log's latest entry of each path is compared with an oracle that reads the whole tree
//! with `std::fs` and hashes it. `TAKEBACK_TEST_RUNS` sets the number of runs.
//!
//! Kernels since 6.13 date two writes with a look between them differently on most file systems, so
//! nothing can go wrong within a tick there. `TMPDIR` on a ramfs tests the other case.

mod operations;

use std::collections::BTreeMap;
use std::ffi::OsStr;
use std::fs;
use std::os::unix::ffi::OsStrExt as _;
use std::os::unix::fs::PermissionsExt as _;
use std::path::Path;
use std::sync::Arc;
use std::time::Duration;

use proptest::collection::vec;
use proptest::test_runner::{Config, TestCaseError, TestRunner};
use takeback_core::watch::{TreeWatch, Trust};
use takeback_core::{checkpoint, look_around};
use takeback_store::{Digest, Entry, PointId};
use takeback_testkit::Sandbox;

use self::operations::any_operation;
use crate::recording::settle;

const RUNS: u32 = 80;
/// A run mostly waits for the clock to tick.
const THREADS: u32 = 4;

#[test]
fn scans_find_what_a_full_rehash_finds() {
    check_all(Run::new);
}

#[test]
fn a_watcher_finds_what_a_full_rehash_finds() {
    check_all(Run::watched);
}

fn check_all(begin: fn() -> Run) {
    let runs = std::env::var("TAKEBACK_TEST_RUNS")
        .map_or(RUNS, |runs| runs.parse().expect("TAKEBACK_TEST_RUNS is a number"));
    std::thread::scope(|scope| {
        let checks: Vec<_> =
            (0..THREADS).map(|_| scope.spawn(move || check(runs / THREADS, begin))).collect();
        for check in checks {
            if let Err(failure) = check.join().expect("failures are values") {
                panic!("{failure}");
            }
        }
    });
}

fn check(cases: u32, begin: fn() -> Run) -> Result<(), String> {
    let config = Config { cases, failure_persistence: None, ..Config::default() };
    TestRunner::new(config)
        .run(&vec(any_operation(), 1..14), |operations| {
            let mut run = begin();
            for (at, operation) in operations.iter().enumerate() {
                run.act(operation).map_err(|why| {
                    TestCaseError::fail(format!("at operation {}, {operation:?}: {why}", at + 1))
                })?;
            }
            run.rest().map_err(TestCaseError::fail)
        })
        .map_err(|failure| failure.to_string())
}

struct Run {
    sandbox: Sandbox,
    first: PointId,
    /// Counts the writes, so that no two write the same bytes.
    writes: u8,
}

impl Run {
    fn new() -> Self {
        let mut sandbox = Sandbox::in_memory();
        for path in ["f", "a/f", "a/x/f", "b/g", "tmp/f", "tmp/deep/g"] {
            sandbox.write(path, path);
        }
        settle();
        let first = sandbox.prompt("s", "begin");
        Self { sandbox, first, writes: 0 }
    }

    /// Points rely on a watcher.
    fn watched() -> Self {
        let mut run = Self::new();
        let watched = TreeWatch::new(Trust::WithScans { every: Duration::MAX });
        run.sandbox.workspace.watched = Some(Arc::new(watched));
        checkpoint(&mut run.sandbox.workspace, None).expect("a point is made");
        run
    }

    fn look(&mut self) -> Result<(), String> {
        if self.sandbox.workspace.watched.is_none() {
            return self.look_at_all();
        }
        checkpoint(&mut self.sandbox.workspace, None).map_err(|error| error.to_string())?;
        self.compare()
    }

    fn look_at_all(&mut self) -> Result<(), String> {
        look_around(&mut self.sandbox.workspace).map_err(|error| error.to_string())?;
        self.compare()
    }

    /// Once nothing changes any more, nothing is read: so the scans before did rely on the cache.
    fn rest(&mut self) -> Result<(), String> {
        settle();
        self.look()?;
        self.look_at_all()?;
        settle();
        let surveyed = look_around(&mut self.sandbox.workspace).expect("the tree can be scanned");
        match surveyed.recorded.stats.read {
            0 => self.compare(),
            read => Err(format!("{read} files were read though nothing changed")),
        }
    }

    /// Whether the log matches the disk for every path.
    fn compare(&self) -> Result<(), String> {
        let root = self.sandbox.root();
        let disk = rehashed(&root);
        let rules = IgnoreRules::read(&root, &disk);
        let latest = self.sandbox.workspace.store.latest().expect("the store can be read");
        let log: BTreeMap<Vec<u8>, Entry> =
            latest.into_iter().map(|(path, entry)| (path.as_bytes().to_vec(), entry)).collect();
        for (path, entry) in &log {
            let is = disk.get(path).unwrap_or(&Entry::Absent);
            let passed_over = *entry == Entry::Absent && rules.may_pass_over(path, is);
            if is != entry && !passed_over {
                let path = String::from_utf8_lossy(path);
                return Err(format!("{path}: the log says {entry:?}, on disk is {is:?}"));
            }
        }
        let missed = disk
            .iter()
            .find(|(path, is)| !log.contains_key(*path) && !rules.may_pass_over(path, is));
        match missed {
            Some((path, entry)) => {
                let path = String::from_utf8_lossy(path);
                Err(format!("{path}: the log does not know it, on disk is {entry:?}"))
            }
            None => Ok(()),
        }
    }
}

/// Everything below the root, read and hashed without any code under test.
fn rehashed(root: &Path) -> BTreeMap<Vec<u8>, Entry> {
    let mut found = BTreeMap::new();
    let mut open = vec![root.to_owned()];
    while let Some(folder) = open.pop() {
        for entry in fs::read_dir(&folder).expect("the folder can be read") {
            let path = entry.expect("it has a name").path();
            let inside = path.strip_prefix(root).expect("it is below").as_os_str().as_bytes();
            if inside == b".takeback" {
                continue;
            }
            let metadata = fs::symlink_metadata(&path).expect("it is there");
            let mode = metadata.permissions().mode();
            let entry = if metadata.is_dir() {
                open.push(path.clone());
                Entry::Dir { mode: mode & 0o777 }
            } else if metadata.is_symlink() {
                let target = fs::read_link(&path).expect("it is a link");
                Entry::Symlink { target: target.into_os_string().as_bytes().to_vec() }
            } else {
                let bytes = fs::read(&path).expect("it can be read");
                let digest = Digest(*blake3::hash(&bytes).as_bytes());
                Entry::File { digest, size: bytes.len() as u64, mode: mode & 0o7777 }
            };
            found.insert(inside.to_vec(), entry);
        }
    }
    found
}

/// The current ignore rules: each a folder with its slash, and a line.
struct IgnoreRules(Vec<(Vec<u8>, String)>);

impl IgnoreRules {
    fn read(root: &Path, disk: &BTreeMap<Vec<u8>, Entry>) -> Self {
        let mut rules = Vec::new();
        for path in disk.keys() {
            let folder = path.iter().rposition(|byte| *byte == b'/').map_or(0, |slash| slash + 1);
            let is_rules = [&b".gitignore"[..], b".takebackignore"].contains(&&path[folder..]);
            if let (true, Ok(text)) =
                (is_rules, fs::read_to_string(root.join(OsStr::from_bytes(path))))
            {
                rules.extend(text.lines().map(|line| (path[..folder].to_vec(), line.to_owned())));
            }
        }
        Self(rules)
    }

    /// Whether a scan that first sees this path now may leave it out.
    fn may_pass_over(&self, path: &[u8], is: &Entry) -> bool {
        self.0.iter().any(|(folder, line)| {
            let Some(below) = path.strip_prefix(folder.as_slice()) else { return false };
            let parts: Vec<&[u8]> = below.split(|byte| *byte == b'/').collect();
            let folders = &parts[..parts.len() - usize::from(!is.is_dir())];
            match line.as_str() {
                "secret" => parts.contains(&&b"secret"[..]),
                // Small files are kept all the same.
                "*.log" => folders.iter().any(|part| part.ends_with(b".log")),
                line => folders.contains(&line.trim_end_matches('/').as_bytes()),
            }
        })
    }
}
