//! A week of three agents and a person in one folder: the store stays within its limits, and every
//! point that is kept is exactly what it was.
//!
//! 2,000 prompts in 30 sessions; `TAKEBACK_TEST_PROMPTS` sets another number.

#![expect(clippy::disallowed_methods, reason = "the test plays the person who changes files")]
#![expect(clippy::unwrap_used, reason = "a test that cannot go on has failed")]

use std::collections::{BTreeMap, HashMap, HashSet};
use std::ffi::OsStr;
use std::os::unix::ffi::OsStrExt as _;
use std::path::{Path, PathBuf};

use takeback_core::retention::{
    Clock, Occasion, Policy, archive_session, clean_up, delete_session, is_due,
};
use takeback_core::rewind::Exactness;
use takeback_core::rewind::{RewindRequest, Target};
use takeback_core::{Mark, mark};
use takeback_store::{Digest, Entry, Point, PointId, PointKind, Seq, SessionId, Store};
use takeback_testkit::{Sandbox, Thing};

const AGENTS: [&str; 3] = ["claude", "codex", "gemini"];
const SESSIONS: usize = 30;
const DAYS: f64 = 7.0;
const PATHS: u64 = 60;

/// A tree with digests for contents, so that a week of trees fits in memory.
type Tree = BTreeMap<PathBuf, Entry>;

/// Splitmix64.
struct Dice(u64);

impl Dice {
    fn next(&mut self) -> u64 {
        self.0 = self.0.wrapping_add(0x9E37_79B9_7F4A_7C15);
        let mut z = self.0;
        z = (z ^ (z >> 30)).wrapping_mul(0xBF58_476D_1CE4_E5B9);
        z = (z ^ (z >> 27)).wrapping_mul(0x94D0_49BB_1331_11EB);
        z ^ (z >> 31)
    }

    fn below(&mut self, n: u64) -> u64 {
        self.next() % n
    }

    fn one_in(&mut self, n: u64) -> bool {
        self.below(n) == 0
    }

    fn path(&mut self) -> String {
        let number = self.below(PATHS);
        format!("part-{}/file-{number}", number % 7)
    }

    /// Bytes that compress about as well as sources do.
    fn contents(&mut self) -> Vec<u8> {
        let lines = 10 + self.below(400);
        (0..lines)
            .flat_map(|_| format!("line {:016x} of some file\n", self.next()).into_bytes())
            .collect()
    }
}

struct Week {
    sandbox: Sandbox,
    dice: Dice,
    /// Every point that was ever made, with the tree as it was.
    trees: HashMap<PointId, Tree>,
    marked: HashSet<PointId>,
    deleted: HashSet<SessionId>,
    written: u64,
}

#[test]
fn a_week_of_use_stays_within_limits_and_every_kept_point_is_exact() {
    let prompts = std::env::var("TAKEBACK_TEST_PROMPTS");
    let prompts: u64 = prompts.map_or(2000, |text| text.parse().expect("a number"));
    // On a disk the week would mostly wait for it.
    if Path::new("/dev/shm").is_dir() {
        drop(tempfile::env::override_temp_dir(Path::new("/dev/shm")));
    }
    let mut week = Week {
        sandbox: Sandbox::new(),
        dice: Dice(7),
        trees: HashMap::new(),
        marked: HashSet::new(),
        deleted: HashSet::new(),
        written: 0,
    };
    let mut clean_ups = 0;
    for number in 0..prompts {
        week.prompt(number, prompts);
        week.sandbox.days_pass(DAYS / prompts as f64);
        if is_due(&week.sandbox.workspace).unwrap() {
            week.clean_up(Occasion::AtStart);
            week.everything_kept_is_exact();
            clean_ups += 1;
        }
    }
    assert!((7..=8).contains(&clean_ups), "once a day: {clean_ups}");
    week.clean_up(Occasion::OnDemand);
    week.everything_kept_is_exact();
    week.store_is_within_limits();
    week.kept_points_can_be_restored();
}

impl Week {
    fn prompt(&mut self, number: u64, prompts: u64) {
        // Sessions begin one after the other, and a few are at work at any time.
        let newest = (number * SESSIONS as u64 / prompts) as i64;
        let session = (newest - self.dice.below(3).cast_signed()).max(0);
        let agent = AGENTS[session as usize % AGENTS.len()];
        let session = format!("{agent}-{session}");
        if self.dice.one_in(3) {
            let (path, contents) = (self.dice.path(), self.dice.contents());
            self.sandbox.write(&path, contents);
        }
        let point = self.sandbox.prompt(&session, &format!("prompt {number}"));
        self.trees.insert(point, digested(self.sandbox.tree()));
        for _ in 0..=self.dice.below(2) {
            let (path, contents) = (self.dice.path(), self.dice.contents());
            self.written += contents.len() as u64;
            self.sandbox.agent_writes(&session, &path, contents);
        }
        if self.dice.one_in(4) {
            let (gone, scratch) = (self.dice.path(), format!("scratch-{number}"));
            self.sandbox.agent_runs(&session, "make", |sandbox| {
                if sandbox.exists(&gone) {
                    sandbox.remove(&gone);
                }
                sandbox.write(&scratch, "for a moment\n");
            });
            self.sandbox.agent_runs(&session, "rm", |sandbox| sandbox.remove(&scratch));
        }
        self.sandbox.turn_end(&session);
        match self.dice.below(60) {
            0 => drop(self.sandbox.rewind_to(point)),
            1 => {
                self.sandbox.rewind_to(point);
                self.sandbox.undo();
            }
            2 => self.mark(point, Mark::Pin),
            3 => self.mark(point, Mark::Label(&format!("label {number}"))),
            4 => {
                let old = format!("{agent}-{}", (newest - 5).max(0));
                self.sandbox.session_end(&old);
                archive_session(&mut self.sandbox.workspace, &old.as_str().into()).unwrap();
            }
            5 if number > prompts / 2 => {
                let sessions = self.sandbox.workspace.store.sessions().unwrap();
                let oldest = &sessions[0].id;
                self.deleted.insert(oldest.clone());
                delete_session(&mut self.sandbox.workspace, oldest).unwrap();
            }
            _ => {}
        }
    }

    fn mark(&mut self, point: PointId, what: Mark<'_>) {
        mark(&mut self.sandbox.workspace, point, what).unwrap();
        self.marked.insert(point);
    }

    fn clean_up(&mut self, occasion: Occasion) {
        let policy = Policy::default();
        let done =
            clean_up(&mut self.sandbox.workspace, &policy, occasion, Clock::Doubted).unwrap();
        assert_eq!(done.stopped, None);
    }

    fn listed(&self) -> Vec<Point> {
        let mut points = self.sandbox.workspace.store.points().unwrap();
        points.retain(|point| point.kind != PointKind::Safety);
        points
    }

    fn everything_kept_is_exact(&self) {
        let store = &*self.sandbox.workspace.store;
        assert_eq!(store.check().unwrap(), Vec::<String>::new());
        assert!(store.unreferenced().unwrap().digests.is_empty());
        let points = self.listed();
        for point in &points {
            assert_eq!(tree_at(store, point.seq), self.trees[&point.id], "{}", point.description);
        }
        let mut of_session: HashMap<&SessionId, usize> = HashMap::new();
        for point in points.iter().filter(|point| !self.marked.contains(&point.id)) {
            *of_session.entry(point.session.as_ref().unwrap()).or_default() += 1;
        }
        assert!(of_session.values().all(|points| *points <= 50), "{of_session:?}");
        let sessions = store.sessions().unwrap();
        for marked in &self.marked {
            let kept = points.iter().any(|point| point.id == *marked);
            assert!(
                kept || !self.deleted.is_empty(),
                "a marked point was dropped with nothing deleted"
            );
        }
        assert!(sessions.iter().all(|session| !self.deleted.contains(&session.id)));
    }

    fn store_is_within_limits(&self) {
        let store = &*self.sandbox.workspace.store;
        let usage = store.usage().unwrap();
        // Only contents of kept points and of changes between two of them.
        let mut needed: HashMap<Digest, u64> = HashMap::new();
        for change in store.changes_after(Seq(0)).unwrap() {
            for entry in [change.before, change.after] {
                if let Entry::File { digest, size, .. } = entry {
                    needed.insert(digest, size);
                }
            }
        }
        assert_eq!(usage.contents, needed.values().sum::<u64>());
        assert!(usage.packs <= 2 * usage.kept + (64 << 20), "{usage:?}");
        assert!(usage.contents < self.written, "{usage:?} of {}", self.written);
        let paths = store.latest().unwrap();
        let scratch = paths.iter().filter(|(path, _)| path.as_bytes().starts_with(b"scratch"));
        assert!(scratch.count() < 100, "temporary files are forgotten");
        assert!(usage.database < 4 << 20, "{usage:?}");
    }

    fn kept_points_can_be_restored(&mut self) {
        let points = self.listed();
        for point in points.iter().step_by(points.len().div_ceil(12)) {
            let mut request = RewindRequest::new(Target::Point(point.id));
            request.exactness = Exactness::Exact;
            let receipt = self.sandbox.rewind(&request).unwrap();
            assert!(receipt.success, "{receipt:?}");
            assert_eq!(digested(self.sandbox.tree()), self.trees[&point.id]);
        }
    }
}

fn digested(tree: BTreeMap<PathBuf, Thing>) -> Tree {
    let entry = |thing| match thing {
        Thing::File { bytes, mode } => {
            Entry::File { digest: Digest::of(&bytes), size: bytes.len() as u64, mode }
        }
        Thing::Link(target) => Entry::Symlink { target: target.as_os_str().as_bytes().to_vec() },
        Thing::Folder { mode } => Entry::Dir { mode },
    };
    tree.into_iter().map(|(path, thing)| (path, entry(thing))).collect()
}

/// The tree as it was when the log had grown to `seq`, from the log alone.
fn tree_at(store: &dyn Store, seq: Seq) -> Tree {
    let mut entries: BTreeMap<_, _> = store.latest().unwrap().into_iter().collect();
    for change in store.changes_after(seq).unwrap().into_iter().rev() {
        entries.insert(change.path, change.before);
    }
    let path = |bytes: &[u8]| PathBuf::from(OsStr::from_bytes(bytes));
    entries.retain(|_, entry| *entry != Entry::Absent);
    entries.into_iter().map(|(at, entry)| (path(at.as_bytes()), entry)).collect()
}
