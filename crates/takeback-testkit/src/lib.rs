//! What tests share: a workspace in a temporary folder, a fixed clock, and short words for what
//! agents and people do.

#![expect(clippy::disallowed_methods, reason = "tests lay out their own trees")]
#![expect(clippy::missing_panics_doc, reason = "a test that cannot go on panics")]

pub mod mapped;
pub mod model;

use std::collections::BTreeMap;
use std::fs;
use std::os::unix::ffi::OsStrExt as _;
use std::os::unix::fs::PermissionsExt as _;
use std::path::{Path, PathBuf};
use std::sync::atomic::{AtomicI64, AtomicU64, Ordering};
use std::sync::{Arc, Mutex};
use std::time::{Duration, SystemTime, UNIX_EPOCH};

use takeback_core::rewind::{Receipt, RewindError, RewindRequest, Target, rewind};
use takeback_core::worktree::scope::ScopeOptions;
use takeback_core::{
    AgentEvent, Ambient, CallReport, Limits, Outcome, Recorded, Touches, Workspace,
    WorkspaceOptions, record,
};
use takeback_store::{
    CallId, MemoryStore, PointId, SessionId, SqliteStates, SqliteStore, Store, Timestamp, WorkPath,
};
use tempfile::TempDir;

/// A workspace with its store, both in a temporary folder that goes when this is dropped.
pub struct Sandbox {
    pub workspace: Workspace,
    calls: u64,
    clock: Arc<Clock>,
    ids: Arc<AtomicU64>,
    dates: Dates,
    memory: Option<MemoryStore>,
    folder: TempDir,
}

/// The time that every look at the clock moves.
struct Clock {
    now: AtomicI64,
    step: AtomicI64,
}

impl Clock {
    fn at(now: i64, step: i64) -> Arc<Self> {
        Arc::new(Self { now: AtomicI64::new(now), step: AtomicI64::new(step) })
    }

    fn moved(&self, milliseconds: i64) -> i64 {
        self.now.fetch_add(milliseconds, Ordering::Relaxed)
    }

    fn copy(&self) -> Arc<Self> {
        Self::at(self.now.load(Ordering::Relaxed), self.step.load(Ordering::Relaxed))
    }
}

/// Which times the clock gave out, and when. Empty: files have no dates.
type Dates = Arc<Mutex<Vec<(SystemTime, i64)>>>;

/// What stands at a path: enough to compare trees.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Thing {
    File { bytes: Vec<u8>, mode: u32 },
    Link(PathBuf),
    Folder { mode: u32 },
}

impl Sandbox {
    /// With the store on disk.
    #[must_use]
    pub fn new() -> Self {
        Self::build(None)
    }

    /// With the store in memory: for tests that do very much.
    #[must_use]
    pub fn in_memory() -> Self {
        Self::build(Some(MemoryStore::new()))
    }

    fn build(memory: Option<MemoryStore>) -> Self {
        let folder = tempfile::tempdir().expect("a temporary folder");
        fs::create_dir(folder.path().join("work")).expect("a folder to work in");
        let clock = Clock::at(1_700_000_000_000, 1000);
        let ids = Arc::new(AtomicU64::new(0));
        let dates = Dates::default();
        let workspace = open(folder.path(), memory.as_ref(), &clock, &ids, &dates);
        Self { workspace, calls: 0, clock, ids, dates, memory, folder }
    }

    /// From now on files are dated by the sandbox's clock: what is written now, as of the last time
    /// that was given out.
    pub fn date_files(&self) {
        self.milliseconds_pass(0);
    }

    /// Time passes: what is written from now on is dated this much later.
    pub fn milliseconds_pass(&self, milliseconds: i64) {
        let now = self.clock.moved(milliseconds) + milliseconds;
        date_from_now_on(&self.dates, now);
    }

    /// From now on, each look at the clock moves it by this much. It begins with a second.
    pub fn slow_the_clock(&self, milliseconds: i64) {
        self.clock.step.store(milliseconds, Ordering::Relaxed);
    }

    /// Another handle on the same workspace and store, as another process has it.
    #[must_use]
    pub fn another_process(&self) -> Workspace {
        open(self.folder.path(), self.memory.as_ref(), &self.clock, &self.ids, &self.dates)
    }

    /// Opens everything anew, as after a crash.
    pub fn reopen(&mut self) {
        self.workspace = self.another_process();
    }

    /// Closes everything and keeps it as it is.
    #[must_use]
    pub fn freeze(self) -> Frozen {
        assert!(self.memory.is_none(), "a store in memory cannot be kept");
        drop(self.workspace);
        Frozen { calls: self.calls, clock: self.clock, ids: self.ids, folder: self.folder }
    }

    /// Time passes; back, too.
    pub fn days_pass(&self, days: f64) {
        const DAY: f64 = 86_400_000.0;
        #[expect(
            clippy::cast_possible_truncation,
            reason = "tests do not wait for millions of years"
        )]
        self.clock.moved((days * DAY) as i64);
    }

    /// The folder that is protected.
    #[must_use]
    pub fn root(&self) -> PathBuf {
        self.folder.path().join("work")
    }

    /// A folder that is not.
    #[must_use]
    pub fn outside(&self) -> PathBuf {
        self.folder.path().to_owned()
    }

    #[must_use]
    pub fn at(&self, path: &str) -> PathBuf {
        self.root().join(path)
    }

    // --- a person at work: files are changed and nobody is told -------------------------------

    /// Writes a file, its folders made.
    pub fn write(&self, path: &str, text: impl AsRef<[u8]>) {
        let path = self.at(path);
        fs::create_dir_all(path.parent().expect("it is below the root")).expect("folders");
        fs::write(path, text).expect("a file is written");
    }

    #[must_use]
    pub fn read(&self, path: &str) -> String {
        fs::read_to_string(self.at(path)).unwrap_or_else(|error| panic!("{path}: {error}"))
    }

    #[must_use]
    pub fn exists(&self, path: &str) -> bool {
        fs::symlink_metadata(self.at(path)).is_ok()
    }

    pub fn remove(&self, path: &str) {
        let path = self.at(path);
        if path.is_dir() { fs::remove_dir_all(path) } else { fs::remove_file(path) }
            .expect("it goes");
    }

    pub fn set_mode(&self, path: &str, mode: u32) {
        fs::set_permissions(self.at(path), fs::Permissions::from_mode(mode))
            .expect("a mode is set");
    }

    /// Everything in the workspace, by path from its root.
    #[must_use]
    pub fn tree(&self) -> BTreeMap<PathBuf, Thing> {
        tree(&self.root())
    }

    // --- agents -------------------------------------------------------------------------------

    pub fn tell(&mut self, event: &AgentEvent) -> Recorded {
        record(&mut self.workspace, event).expect("the event is recorded")
    }

    pub fn start(&mut self, session: &str) {
        self.tell(&AgentEvent::SessionStart {
            session: SessionId::from(session),
            agent: Some("agent".to_owned()),
            parent: None,
            owner: None,
        });
    }

    /// A prompt, and the point it makes.
    pub fn prompt(&mut self, session: &str, text: &str) -> PointId {
        let session = SessionId::from(session);
        let mut message = format!("message {text}");
        // The same words twice in a row are two prompts, the same id would be one.
        let points = self.workspace.store.points().expect("the store can be read");
        let last = points.iter().rev().find(|point| point.session.as_ref() == Some(&session));
        while last.is_some_and(|last| last.message_ids.contains(&message)) {
            message.push_str(" again");
        }
        let event = AgentEvent::Prompt { session, message: Some(message), text: text.to_owned() };
        self.tell(&event).point.expect("a prompt makes a point")
    }

    /// Opens a call that edits `paths`; the call's id.
    pub fn before_edit(&mut self, session: &str, paths: &[&str]) -> String {
        let touches = Touches::Paths(paths.iter().map(|path| self.at(path)).collect());
        self.before(session, "Edit", touches)
    }

    /// Opens a call that may write anything.
    pub fn before_shell(&mut self, session: &str, command: &str) -> String {
        self.before(session, "Bash", Touches::anything(Some(command.to_owned())))
    }

    fn before(&mut self, session: &str, tool: &str, touches: Touches) -> String {
        self.calls += 1;
        let call = format!("call-{}", self.calls);
        self.tell(&AgentEvent::BeforeTool {
            session: SessionId::from(session),
            call: CallId::from(call.as_str()),
            tool: tool.to_owned(),
            touches,
        });
        call
    }

    pub fn after(&mut self, session: &str, call: &str) -> Recorded {
        self.after_as(session, call, Outcome::Done)
    }

    pub fn after_as(&mut self, session: &str, call: &str, outcome: Outcome) -> Recorded {
        self.after_with(session, call, outcome, CallReport::default())
    }

    pub fn after_with(
        &mut self,
        session: &str,
        call: &str,
        outcome: Outcome,
        report: CallReport,
    ) -> Recorded {
        let (session, call) = (SessionId::from(session), CallId::from(call));
        self.tell(&AgentEvent::AfterTool { session, call, outcome, report })
    }

    /// An agent writes a file with its edit tool.
    pub fn agent_writes(&mut self, session: &str, path: &str, text: impl AsRef<[u8]>) {
        let call = self.before_edit(session, &[path]);
        self.write(path, text);
        self.after(session, &call);
    }

    /// An agent's shell command does something.
    pub fn agent_runs(&mut self, session: &str, command: &str, does: impl FnOnce(&Self)) {
        let call = self.before_shell(session, command);
        does(self);
        self.after(session, &call);
    }

    pub fn turn_end(&mut self, session: &str) {
        self.tell(&AgentEvent::TurnEnd { session: SessionId::from(session) });
    }

    pub fn session_end(&mut self, session: &str) {
        self.tell(&AgentEvent::SessionEnd { session: SessionId::from(session) });
    }

    // --- taking back --------------------------------------------------------------------------

    pub fn rewind_to(&mut self, point: PointId) -> Receipt {
        self.rewind(&RewindRequest::new(Target::Point(point))).expect("the rewind runs")
    }

    pub fn undo(&mut self) -> Receipt {
        self.rewind(&RewindRequest::new(Target::Undo)).expect("the undo runs")
    }

    pub fn redo(&mut self) -> Receipt {
        self.rewind(&RewindRequest::new(Target::Redo)).expect("the redo runs")
    }

    pub fn rewind(&mut self, request: &RewindRequest) -> Result<Receipt, RewindError> {
        rewind(&mut self.workspace, request, None)
    }
}

/// What is written from now on is of this time.
fn date_from_now_on(dates: &Dates, time: i64) {
    // File times come from a clock that ticks every ten milliseconds at most.
    let tick = || std::thread::sleep(Duration::from_millis(12));
    tick();
    dates.lock().expect("nothing panics").push((SystemTime::now(), time));
    tick();
}

/// A sandbox at rest, for a test that needs the same beginning many times.
pub struct Frozen {
    calls: u64,
    clock: Arc<Clock>,
    ids: Arc<AtomicU64>,
    folder: TempDir,
}

impl Frozen {
    /// A sandbox like the one that was frozen, with the same clock and the same next id.
    #[must_use]
    pub fn thaw(&self) -> Sandbox {
        // Where there are hundreds of copies, waiting for the disk is most of the time.
        let folder = tempfile::tempdir_in(IN_MEMORY).or_else(|_| tempfile::tempdir());
        let folder = folder.expect("a temporary folder");
        copy_below(self.folder.path(), folder.path());
        let clock = self.clock.copy();
        let ids = Arc::new(AtomicU64::new(self.ids.load(Ordering::Relaxed)));
        let dates = Dates::default();
        let workspace = open(folder.path(), None, &clock, &ids, &dates);
        Sandbox { workspace, calls: self.calls, clock, ids, dates, memory: None, folder }
    }
}

/// A file system of Linux that keeps nothing on disk.
const IN_MEMORY: &str = "/dev/shm";

fn copy_below(from: &Path, to: &Path) {
    for entry in fs::read_dir(from).expect("the folder can be read") {
        let from = entry.expect("it has a name").path();
        let to = to.join(from.file_name().expect("it has a name"));
        let metadata = fs::symlink_metadata(&from).expect("it is there");
        if metadata.is_dir() {
            fs::create_dir(&to).expect("a folder is made");
            copy_below(&from, &to);
            fs::set_permissions(&to, metadata.permissions()).expect("a mode is set");
        } else if metadata.is_symlink() {
            let target = fs::read_link(&from).expect("it is a link");
            std::os::unix::fs::symlink(target, &to).expect("a link is made");
        } else {
            fs::copy(&from, &to).expect("a file is copied");
        }
    }
}

impl Default for Sandbox {
    fn default() -> Self {
        Self::new()
    }
}

fn open(
    folder: &Path,
    memory: Option<&MemoryStore>,
    clock: &Arc<Clock>,
    ids: &Arc<AtomicU64>,
    dates: &Dates,
) -> Workspace {
    let store_dir = folder.join("store");
    let store: Box<dyn Store> = match memory {
        Some(memory) => Box::new(memory.clone()),
        None => Box::new(SqliteStore::create(&store_dir).expect("a store is made")),
    };
    let (clock, ids, dates) = (Arc::clone(clock), Arc::clone(ids), Arc::clone(dates));
    let given_out = Arc::clone(&dates);
    let now = move || {
        let now = clock.moved(clock.step.load(Ordering::Relaxed));
        if !given_out.lock().expect("nothing panics").is_empty() {
            date_from_now_on(&given_out, now);
        }
        Timestamp(now)
    };
    let date = move |nanos: i64| {
        let changed = UNIX_EPOCH + Duration::from_nanos(nanos.unsigned_abs());
        let dates = dates.lock().expect("nothing panics");
        let since = dates.iter().rev().find(|(since, _)| *since <= changed);
        since.or(dates.first()).map(|(_, time)| Timestamp(*time))
    };
    Workspace::open(WorkspaceOptions {
        root: folder.join("work"),
        states: Arc::new(SqliteStates::at(&store_dir)),
        store_dir,
        store,
        home: None,
        scope: ScopeOptions::default(),
        limits: Limits::default(),
        ambient: Ambient {
            now: Box::new(now),
            file_time: Box::new(date),
            random: Box::new(move || ids.fetch_add(1, Ordering::Relaxed) + 1),
            watch: None,
        },
    })
    .expect("the workspace opens")
}

/// A path as the log has it.
#[must_use]
pub fn path(text: &str) -> WorkPath {
    WorkPath::new(text).expect("a plain path")
}

/// Everything below a folder, by path from it; `.takeback` and `.git` are left out.
#[must_use]
pub fn tree(root: &Path) -> BTreeMap<PathBuf, Thing> {
    let mut things = BTreeMap::new();
    let mut open = vec![root.to_owned()];
    while let Some(folder) = open.pop() {
        for entry in fs::read_dir(&folder).expect("the folder can be read") {
            let path = entry.expect("it has a name").path();
            if matches!(path.file_name().map(|name| name.as_bytes()), Some(b".takeback" | b".git"))
            {
                continue;
            }
            let metadata = fs::symlink_metadata(&path).expect("it is there");
            let mode = metadata.permissions().mode() & 0o777;
            let thing = if metadata.is_dir() {
                open.push(path.clone());
                Thing::Folder { mode }
            } else if metadata.is_symlink() {
                Thing::Link(fs::read_link(&path).expect("it is a link"))
            } else {
                Thing::File { bytes: fs::read(&path).expect("it can be read"), mode }
            };
            let inside = path.strip_prefix(root).expect("it is below").to_owned();
            things.insert(inside, thing);
        }
    }
    things
}
