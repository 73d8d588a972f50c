//! A workspace in a temporary folder, and short words for what agents and users do in it.

use std::collections::BTreeMap;
use std::fs;
use std::os::unix::fs::PermissionsExt as _;
use std::path::{Path, PathBuf};
use std::sync::atomic::{AtomicI64, AtomicU64, Ordering};
use std::sync::{Arc, Mutex};
use std::time::{Duration, SystemTime, UNIX_EPOCH};

use takeback_core::rewind::{Receipt, RewindError, RewindRequest, Target, rewind};
use takeback_core::worktree::ScopeOptions;
use takeback_core::{
    AgentEvent, Ambient, CallReport, CallTargets, Limits, Outcome, RecordOutcome, Workspace,
    WorkspaceOptions, record,
};
use takeback_store::{
    CallId, MemoryStore, PointId, SessionId, SqliteStates, SqliteStore, Store, Timestamp,
};
use tempfile::TempDir;

use crate::tree::{Thing, copy_tree, tree};

/// A workspace and its store in a temporary folder, which is deleted when this is dropped.
pub struct Sandbox {
    /// The workspace, for calls that the sandbox has no word for.
    pub workspace: Workspace,
    calls: u64,
    clock: Arc<Clock>,
    ids: Arc<AtomicU64>,
    dates: Dates,
    memory: Option<MemoryStore>,
    folder: TempDir,
}

/// A clock that advances whenever it is read.
struct Clock {
    now: AtomicI64,
    step: AtomicI64,
}

impl Clock {
    fn at(now: i64, step: i64) -> Arc<Self> {
        Arc::new(Self { now: AtomicI64::new(now), step: AtomicI64::new(step) })
    }

    /// Advances it; the time before.
    fn advance(&self, milliseconds: i64) -> i64 {
        self.now.fetch_add(milliseconds, Ordering::Relaxed)
    }

    fn copy(&self) -> Arc<Self> {
        Self::at(self.now.load(Ordering::Relaxed), self.step.load(Ordering::Relaxed))
    }
}

/// Which time the clock showed, and when. Empty: files have no dates.
type Dates = Arc<Mutex<Vec<(SystemTime, i64)>>>;

impl Sandbox {
    /// A sandbox with its store on disk.
    #[must_use]
    pub fn new() -> Self {
        Self::build(None)
    }

    /// A sandbox with its store in memory, for long tests.
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

    /// From now on, files are dated by the sandbox's clock: the last time it showed.
    pub fn date_files(&self) {
        self.milliseconds_pass(0);
    }

    /// Advances the clock; files written from now on are dated accordingly.
    pub fn milliseconds_pass(&self, milliseconds: i64) {
        let now = self.clock.advance(milliseconds) + milliseconds;
        date_from_now_on(&self.dates, now);
    }

    /// Sets how far the clock advances when it is read; one second by default.
    pub fn slow_the_clock(&self, milliseconds: i64) {
        self.clock.step.store(milliseconds, Ordering::Relaxed);
    }

    /// A second handle on the same workspace and store, like another process.
    #[must_use]
    pub fn another_process(&self) -> Workspace {
        open(self.folder.path(), self.memory.as_ref(), &self.clock, &self.ids, &self.dates)
    }

    /// Opens everything again, like the next process after a crash.
    pub fn reopen(&mut self) {
        self.workspace = self.another_process();
    }

    /// Closes the sandbox, for copies of it.
    #[must_use]
    pub fn freeze(self) -> SandboxImage {
        assert!(self.memory.is_none(), "a store in memory cannot be copied");
        drop(self.workspace);
        SandboxImage { calls: self.calls, clock: self.clock, ids: self.ids, folder: self.folder }
    }

    /// Advances the clock, or sets it back.
    pub fn days_pass(&self, days: f64) {
        const DAY: f64 = 86_400_000.0;
        #[expect(
            clippy::cast_possible_truncation,
            reason = "tests do not wait for millions of years"
        )]
        self.clock.advance((days * DAY) as i64);
    }

    /// The protected folder.
    #[must_use]
    pub fn root(&self) -> PathBuf {
        self.folder.path().join("work")
    }

    /// A folder outside the workspace.
    #[must_use]
    pub fn outside(&self) -> PathBuf {
        self.folder.path().to_owned()
    }

    /// The absolute path of a file in the workspace.
    #[must_use]
    pub fn at(&self, path: &str) -> PathBuf {
        self.root().join(path)
    }

    // --- the user: files change without an event ----------------------------------------------

    /// Writes a file and creates its folders.
    pub fn write(&self, path: &str, text: impl AsRef<[u8]>) {
        let path = self.at(path);
        fs::create_dir_all(path.parent().expect("it is below the root")).expect("folders");
        fs::write(path, text).expect("a file is written");
    }

    /// The text of a file.
    #[must_use]
    pub fn read(&self, path: &str) -> String {
        fs::read_to_string(self.at(path)).unwrap_or_else(|error| panic!("{path}: {error}"))
    }

    /// Whether there is a file, link or folder.
    #[must_use]
    pub fn exists(&self, path: &str) -> bool {
        fs::symlink_metadata(self.at(path)).is_ok()
    }

    /// Deletes a file or folder.
    pub fn remove(&self, path: &str) {
        let path = self.at(path);
        if path.is_dir() { fs::remove_dir_all(path) } else { fs::remove_file(path) }
            .expect("it goes");
    }

    /// Sets the permissions of a file.
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

    /// Records an event.
    pub fn tell(&mut self, event: &AgentEvent) -> RecordOutcome {
        record(&mut self.workspace, event).expect("the event is recorded")
    }

    /// Starts a session.
    pub fn start(&mut self, session: &str) {
        self.tell(&AgentEvent::SessionStart {
            session: SessionId::from(session),
            agent: Some("agent".to_owned()),
            parent: None,
            owner: None,
            model: None,
        });
    }

    /// Records a prompt; its point.
    pub fn prompt(&mut self, session: &str, text: &str) -> PointId {
        let session = SessionId::from(session);
        let mut message = format!("message {text}");
        // The same text twice is two prompts; the same id would be one.
        let points = self.workspace.store.points().expect("the store can be read");
        let last = points.iter().rev().find(|point| point.session.as_ref() == Some(&session));
        while last.is_some_and(|last| last.message_ids.contains(&message)) {
            message.push_str(" again");
        }
        let event = AgentEvent::Prompt {
            session,
            message: Some(message),
            text: text.to_owned(),
            model: None,
        };
        self.tell(&event).point.expect("a prompt makes a point")
    }

    /// Opens a call that edits `paths`; the call's id.
    pub fn before_edit(&mut self, session: &str, paths: &[&str]) -> String {
        let touches = CallTargets::Paths(paths.iter().map(|path| self.at(path)).collect());
        self.before(session, "Edit", touches)
    }

    /// Opens a call that may write anything.
    pub fn before_shell(&mut self, session: &str, command: &str) -> String {
        self.before(session, "Bash", CallTargets::anything(Some(command.to_owned())))
    }

    fn before(&mut self, session: &str, tool: &str, touches: CallTargets) -> String {
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

    /// Closes a call that succeeded.
    pub fn after(&mut self, session: &str, call: &str) -> RecordOutcome {
        self.after_as(session, call, Outcome::Done)
    }

    /// Closes a call with this outcome.
    pub fn after_as(&mut self, session: &str, call: &str, outcome: Outcome) -> RecordOutcome {
        self.after_with(session, call, outcome, CallReport::default())
    }

    /// Closes a call with this outcome and report.
    pub fn after_with(
        &mut self,
        session: &str,
        call: &str,
        outcome: Outcome,
        report: CallReport,
    ) -> RecordOutcome {
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

    /// Ends the session's turn.
    pub fn turn_end(&mut self, session: &str) {
        self.tell(&AgentEvent::TurnEnd { session: SessionId::from(session), model: None });
    }

    /// Ends the session's turn, in which this model answered.
    pub fn turn_end_by(&mut self, session: &str, model: &str) {
        let (session, model) = (SessionId::from(session), Some(model.to_owned()));
        self.tell(&AgentEvent::TurnEnd { session, model });
    }

    /// Ends the session.
    pub fn session_end(&mut self, session: &str) {
        self.tell(&AgentEvent::SessionEnd { session: SessionId::from(session), model: None });
    }

    // --- rewinding ----------------------------------------------------------------------------

    /// Rewinds to a point.
    pub fn rewind_to(&mut self, point: PointId) -> Receipt {
        self.rewind(&RewindRequest::new(Target::Point(point))).expect("the rewind runs")
    }

    /// Undoes the last rewind.
    pub fn undo(&mut self) -> Receipt {
        self.rewind(&RewindRequest::new(Target::Undo)).expect("the undo runs")
    }

    /// Undoes the last undo.
    pub fn redo(&mut self) -> Receipt {
        self.rewind(&RewindRequest::new(Target::Redo)).expect("the redo runs")
    }

    /// Carries out a rewind request.
    pub fn rewind(&mut self, request: &RewindRequest) -> Result<Receipt, RewindError> {
        rewind(&mut self.workspace, request, None)
    }
}

/// Dates files that are written from now on.
fn date_from_now_on(dates: &Dates, time: i64) {
    // The clock of file times ticks every ten milliseconds at most.
    let tick = || std::thread::sleep(Duration::from_millis(12));
    tick();
    dates.lock().expect("nothing panics").push((SystemTime::now(), time));
    tick();
}

/// A closed sandbox, for a test that needs the same start many times.
pub struct SandboxImage {
    calls: u64,
    clock: Arc<Clock>,
    ids: Arc<AtomicU64>,
    folder: TempDir,
}

impl SandboxImage {
    /// A copy of the sandbox, with the same clock and the same next id.
    #[must_use]
    pub fn thaw(&self) -> Sandbox {
        // Hundreds of copies would mostly wait for the disk.
        let folder = tempfile::tempdir_in(IN_MEMORY).or_else(|_| tempfile::tempdir());
        let folder = folder.expect("a temporary folder");
        copy_tree(self.folder.path(), folder.path());
        let clock = self.clock.copy();
        let ids = Arc::new(AtomicU64::new(self.ids.load(Ordering::Relaxed)));
        let dates = Dates::default();
        let workspace = open(folder.path(), None, &clock, &ids, &dates);
        Sandbox { workspace, calls: self.calls, clock, ids, dates, memory: None, folder }
    }
}

/// A file system in memory.
const IN_MEMORY: &str = "/dev/shm";

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
    let shown = Arc::clone(&dates);
    let now = move || {
        let now = clock.advance(clock.step.load(Ordering::Relaxed));
        if !shown.lock().expect("nothing panics").is_empty() {
            date_from_now_on(&shown, now);
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
