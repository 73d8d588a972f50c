//! A protected folder: its root, its store, its settings.

use std::io;
use std::os::unix::ffi::{OsStrExt as _, OsStringExt as _};
use std::path::{Component, Path, PathBuf};
use std::sync::{Arc, Mutex, PoisonError};
use std::time::Duration;

use takeback_store::{States, Store, StoreError, WorkPath, disk};

use crate::ambient::Ambient;
use crate::ends::CallEndSource;
use crate::inbox::{Inbox, WaitFor};
use crate::lock::{Hold, Lock, Patience, lock};
use crate::rewind::closed_folders::OpenedFolders;
use crate::watch::TreeWatch;
use crate::worktree::Root;
use crate::worktree::budget::Budget;
use crate::worktree::index::Index;
use crate::worktree::scope::{ScopeOptions, is_version_controls, stage_of};
use crate::worktree::write::Mark;

/// How to open a workspace.
pub struct WorkspaceOptions {
    /// The root, as the user entered it.
    pub root: PathBuf,
    /// Where the index, the lock and the inbox are; with the SQLite store, its folder.
    pub store_dir: PathBuf,
    /// Its history.
    pub store: Box<dyn Store>,
    /// The states of the agents that work here.
    pub states: Arc<dyn States>,
    /// The user's home, which is never a workspace.
    pub home: Option<PathBuf>,
    /// What belongs to the workspace.
    pub scope: ScopeOptions,
    /// Limits for recording and scanning.
    pub limits: Limits,
    /// The clock, the source of ids and the progress listener.
    pub ambient: Ambient,
}

/// Limits for recording and scanning.
#[derive(Debug, Clone)]
pub struct Limits {
    /// A larger file is not copied before an edit; the copy of the last scan counts.
    pub edit_capture_max: u64,
    /// How long an agent waits for a busy store.
    pub recorder_patience: Duration,
    /// How long an agent waits for a scan that its session has under way.
    pub barrier_patience: Duration,
    /// How long files are read for an event; the rest is not captured. None: no limit.
    pub scan_budget: Option<Duration>,
    /// How much longer names are compared after that; then the event goes into the inbox.
    pub scan_overrun: Duration,
    /// How long a rewind waits for recorders to finish.
    pub rewind_patience: Duration,
    /// Threads that read files. 0: as many as there are processors, up to 8.
    pub threads: usize,
}

impl Default for Limits {
    fn default() -> Self {
        Self {
            edit_capture_max: 1 << 20,
            recorder_patience: Duration::from_secs(1),
            barrier_patience: Duration::from_secs(10),
            scan_budget: None,
            scan_overrun: Duration::from_secs(5),
            rewind_patience: Duration::from_secs(5),
            threads: 0,
        }
    }
}

impl Limits {
    // Computed only when a tree is read: it takes about twenty system calls.
    pub(crate) fn threads(&self) -> usize {
        match self.threads {
            0 => std::thread::available_parallelism().map_or(1, usize::from).min(8),
            threads => threads,
        }
    }

    /// The budget of an event that arrives now.
    pub(crate) fn budget(&self) -> Budget {
        match self.scan_budget {
            Some(budget) => Budget::starting_now(budget, self.scan_overrun),
            None => Budget::UNLIMITED,
        }
    }

    /// The same for a tree that was never scanned: half of the time; the rest is for writing the log.
    pub(crate) fn first_budget(&self) -> Budget {
        match self.scan_budget {
            Some(budget) => Budget::starting_now(budget / 2, self.scan_overrun / 2),
            None => Budget::UNLIMITED,
        }
    }
}

/// A protected folder, its history, and everything that works on it.
pub struct Workspace {
    /// The folder, open.
    pub root: Root,
    /// Its history.
    pub store: Box<dyn Store>,
    /// The states of the agents that work here.
    pub states: Arc<dyn States>,
    /// Where the index, the lock and the inbox are.
    pub store_dir: PathBuf,
    /// What belongs to the workspace.
    pub scope: ScopeOptions,
    /// Limits for recording and scanning.
    pub limits: Limits,
    /// The clock, the source of ids and the progress listener.
    pub ambient: Ambient,
    /// Set in a long-running process, which can watch the tree.
    pub watched: Option<Arc<TreeWatch>>,
    /// Finds ends of calls that no event reported.
    pub call_end_source: Option<Box<dyn CallEndSource>>,
    /// Folders that a rewind has made readable while it runs, with their usual modes.
    pub(crate) opened: OpenedFolders,
    /// The index of the last scan: a long-running process need not read it again.
    last_index: Mutex<Option<Index>>,
}

/// Why a workspace cannot be opened.
#[derive(Debug, thiserror::Error)]
#[expect(missing_docs, reason = "the messages say what the fields are")]
pub enum WorkspaceError {
    #[error("{path} cannot be protected: {why}")]
    Refused { path: PathBuf, why: &'static str },
    #[error("{path} cannot be opened")]
    Unreachable { path: PathBuf, source: io::Error },
    #[error(transparent)]
    Store(#[from] StoreError),
}

/// The canonical root, if it may be protected.
pub fn check_root(
    root: &Path,
    store_dir: &Path,
    home: Option<&Path>,
) -> Result<PathBuf, WorkspaceError> {
    let path = std::fs::canonicalize(root)
        .map_err(|source| WorkspaceError::Unreachable { path: root.to_owned(), source })?;
    let refused = |why| WorkspaceError::Refused { path: path.clone(), why };
    if !path.is_dir() {
        return Err(refused("it is not a folder"));
    }
    if path == Path::new("/") {
        return Err(refused("it is the whole file system; choose a project's folder"));
    }
    if home.is_some_and(|home| std::fs::canonicalize(home).is_ok_and(|home| home == path)) {
        return Err(refused("it is your home folder; choose a project's folder in it"));
    }
    if real_path(store_dir).starts_with(&path) {
        return Err(refused(
            "it contains Takeback's own store; set TAKEBACK_HOME to a folder elsewhere",
        ));
    }
    Ok(path)
}

/// The file where the index is cached. It may be removed to free space: it is rebuilt.
#[must_use]
pub fn index_in(store_dir: &Path) -> PathBuf {
    store_dir.join("index")
}

impl Workspace {
    /// Opens the root, and creates the store's folder if it is missing. Reads no file of the workspace.
    pub fn open(options: WorkspaceOptions) -> Result<Self, WorkspaceError> {
        let path = check_root(&options.root, &options.store_dir, options.home.as_deref())?;
        disk::make_private_folder(&options.store_dir).map_err(|source| {
            WorkspaceError::Unreachable { path: options.store_dir.clone(), source }
        })?;
        let root =
            Root::open(&path).map_err(|source| WorkspaceError::Unreachable { path, source })?;
        Ok(Self {
            root,
            store: options.store,
            states: options.states,
            store_dir: options.store_dir,
            scope: options.scope,
            limits: options.limits,
            ambient: options.ambient,
            watched: None,
            call_end_source: None,
            opened: OpenedFolders::default(),
            last_index: Mutex::default(),
        })
    }

    /// The file where the index is cached.
    #[must_use]
    pub fn index_file(&self) -> PathBuf {
        index_in(&self.store_dir)
    }

    /// The index as of the head of the log.
    pub(crate) fn index(&self) -> Result<Index, StoreError> {
        let file = self.index_file();
        let last = self.last_index.lock().unwrap_or_else(PoisonError::into_inner).take();
        match last.filter(|index| index.is_kept_in(&file)) {
            Some(index) => index.up_to_date(&*self.store),
            None => Index::load(&file, &*self.store),
        }
    }

    /// Keeps the index that a scan saved.
    pub(crate) fn keep_index(&self, index: Index) {
        *self.last_index.lock().unwrap_or_else(PoisonError::into_inner) = Some(index);
    }

    /// The mark of the stages that this store makes.
    pub(crate) fn mark(&self) -> Mark {
        Mark::of(&real_path(&self.store_dir))
    }

    /// The events that are not in the log yet.
    #[must_use]
    pub fn inbox(&self) -> Inbox {
        Inbox::of(&self.store_dir)
    }

    /// `None`: other processes held the workspace throughout `patience`. An exclusive lock also waits for the
    /// claimed events: they happened before, and recording them needs the lock.
    pub(crate) fn lock(&self, hold: Hold, patience: Duration) -> Result<Option<Lock>, StoreError> {
        let patience = Patience::starting_now(patience);
        if hold == Hold::Exclusive && !self.inbox().wait_for(WaitFor::All, patience.left())? {
            return Ok(None);
        }
        let path = self.store_dir.join("lock");
        lock(&path, hold, patience.left()).map_err(|source| StoreError::Io {
            path,
            doing: "locking the workspace",
            source,
        })
    }

    /// The path that writing to `path` really changes: links followed, relative to the root, or absolute
    /// if it is outside. `None` for paths that Takeback does not record: version control's own files,
    /// Takeback's store, the root itself.
    #[must_use]
    pub fn resolve(&self, path: &Path) -> Option<WorkPath> {
        let absolute =
            if path.is_absolute() { path.to_owned() } else { self.root.path().join(path) };
        let real = real_path(&absolute);
        if real.starts_with(&self.store_dir) || self.store_dir.starts_with(&real) {
            return None;
        }
        let bytes = match real.strip_prefix(self.root.path()) {
            Ok(inside) => inside.as_os_str().as_bytes().to_vec(),
            Err(_) => real.into_os_string().into_vec(),
        };
        let path = WorkPath::new(bytes).ok().filter(|path| !is_version_controls(path))?;
        // The contents of a stage are never looked at, only its existence.
        match stage_of(&path) {
            Some(stage) if self.is_own_stage(&stage) => None,
            Some(stage) => Some(stage),
            None => Some(path),
        }
    }

    /// Whether the stage at `path` belongs to a rewind of this store.
    fn is_own_stage(&self, path: &WorkPath) -> bool {
        let id = path.file_name().rsplit(|b| *b == b'-').next().unwrap_or_default();
        let id = std::str::from_utf8(id).ok().and_then(|id| id.parse().ok());
        id.is_some_and(|id| self.store.rewind(id).is_ok_and(|rewind| rewind.is_some()))
    }

    /// The absolute path of a path in the log.
    #[must_use]
    pub fn absolute(&self, path: &WorkPath) -> PathBuf {
        self.root.path().join(Path::new(std::ffi::OsStr::from_bytes(path.as_bytes())))
    }
}

/// As `canonicalize`, also for a path of which only the first part exists. A dangling link resolves to where
/// writing to it would create a file.
fn real_path(path: &Path) -> PathBuf {
    /// As many links as Linux follows.
    const MOST_LINKS: usize = 40;
    let mut path = path.to_owned();
    for _ in 0..MOST_LINKS {
        if let Ok(real) = std::fs::canonicalize(&path) {
            return real;
        }
        let plain = normalize(&path);
        let (Some(parent), Some(name)) = (plain.parent(), plain.file_name()) else { return plain };
        let parent = real_path(parent);
        let here = parent.join(name);
        match std::fs::read_link(&here) {
            Ok(target) => path = parent.join(target),
            Err(_) => return here,
        }
    }
    path
}

/// Without `.` and `..`, which here can only follow folders that do not exist yet.
fn normalize(path: &Path) -> PathBuf {
    let mut plain = PathBuf::new();
    for component in path.components() {
        match component {
            Component::CurDir => {}
            Component::ParentDir => {
                plain.pop();
            }
            other => plain.push(other),
        }
    }
    plain
}
