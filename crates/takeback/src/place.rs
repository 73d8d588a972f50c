//! Where things are: Takeback's home, the workspace's root, its store. The one reader of the
//! environment, together with [`crate::settings`].

use std::ffi::OsString;
use std::io::Write as _;
use std::os::unix::ffi::{OsStrExt as _, OsStringExt as _};
use std::path::{Path, PathBuf};

use takeback_core::rewind::recover;
use takeback_core::rewind::recover::needs_recovery;
use takeback_core::workspace::check_root;
use takeback_core::{Ambient, Workspace, WorkspaceOptions, process};
use takeback_store::{Process, SqliteStore, StoreError, WorkPath, disk};

use crate::args::Options;
use crate::error::{CommandError, Kind, no_store};
use crate::screen::{CARE, HINT};
use crate::settings::Settings;
use crate::time::now;

/// A workspace as a command needs it.
pub(crate) struct Place {
    pub(crate) workspace: Workspace,
    pub(crate) settings: Settings,
}

/// Whether a workspace without a store gets one.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Store {
    Create,
    MustExist,
}

/// Opens the workspace for a command that looks at files or changes them: a rewind that a crash
/// interrupted is finished first, and that is said.
pub(crate) fn open_mended(options: &Options, store: Store) -> Result<Place, CommandError> {
    let mut place = open(options, store)?;
    if needs_recovery(&place.workspace)? {
        for receipt in recover(&mut place.workspace)?.finished {
            let mut err = anstream::stderr().lock();
            writeln!(err, "{CARE}takeback:{CARE:#} finished a rewind that had been interrupted")?;
            for note in receipt.conflicts.iter().chain(&receipt.not_captured) {
                writeln!(err, "  left  {}  {HINT}{}{HINT:#}", note.path.display(), note.reason)?;
            }
            for problem in &receipt.errors {
                writeln!(
                    err,
                    "  error  {}  {HINT}{}{HINT:#}",
                    problem.path.display(),
                    problem.error
                )?;
            }
        }
    }
    Ok(place)
}

pub(crate) fn open(options: &Options, store: Store) -> Result<Place, CommandError> {
    let home = home(options)?;
    let start = match &options.directory {
        Some(directory) => directory.clone(),
        None => std::env::current_dir()?,
    };
    let start = std::fs::canonicalize(&start).map_err(|error| {
        CommandError::new(Kind::Usage, format!("{} cannot be opened: {error}", start.display()))
    })?;
    let root = root_of(&start, &home);
    open_at(&root, &home, store)
}

/// Opens the workspace with exactly this root.
pub(crate) fn open_at(root: &Path, home: &Path, store: Store) -> Result<Place, CommandError> {
    let store_dir = store_of(root, home);
    let user_home = environment("HOME").map(PathBuf::from);
    check_root(root, &store_dir, user_home.as_deref())?;
    let opened = match store {
        Store::Create => create(&store_dir, root)?,
        Store::MustExist => match SqliteStore::open(&store_dir) {
            Err(StoreError::Missing { .. }) => {
                return Err(no_store(format!("{} is not protected", root.display())));
            }
            opened => opened?,
        },
    };
    let settings = Settings::load(root, home)?;
    let mut scope = settings.scope();
    scope.nested_workspaces = nested(root, home);
    let workspace = Workspace::open(WorkspaceOptions {
        root: root.to_owned(),
        store_dir,
        store: Box::new(opened),
        home: user_home,
        scope,
        limits: settings.limits(),
        ambient: ambient(),
    })?;
    Ok(Place { workspace, settings })
}

pub(crate) fn ambient() -> Ambient {
    Ambient { now: Box::new(now), random: Box::new(random), watch: crate::progress::watch() }
}

#[expect(
    clippy::expect_used,
    reason = "without randomness ids would clash; there is no way to go on"
)]
pub(crate) fn random() -> u64 {
    getrandom::u64().expect("the kernel gives random bytes")
}

/// This process, as the owner of a session.
pub(crate) fn this_process() -> Option<Process> {
    process::current()
}

#[expect(clippy::disallowed_methods, reason = "the binary reads the environment, here alone")]
pub(crate) fn environment(name: &str) -> Option<OsString> {
    std::env::var_os(name).filter(|value| !value.is_empty())
}

pub(crate) fn home(options: &Options) -> Result<PathBuf, CommandError> {
    let home = match (&options.home, environment("TAKEBACK_HOME"), environment("HOME")) {
        (Some(home), _, _) => home.clone(),
        (None, Some(home), _) => PathBuf::from(home),
        (None, None, Some(user)) => PathBuf::from(user).join(".takeback"),
        (None, None, None) => {
            return Err(CommandError::new(Kind::Usage, "there is no home folder")
                .hint("Set HOME or TAKEBACK_HOME, or use --home DIR."));
        }
    };
    Ok(std::path::absolute(home)?)
}

/// The nearest folder upwards that has a store; else the nearest that looks like a project's; else
/// the folder itself.
fn root_of(start: &Path, home: &Path) -> PathBuf {
    let ancestors = || start.ancestors();
    let protected = ancestors().find(|folder| store_of(folder, home).join(DATABASE).exists());
    let is_project = |folder: &&Path| {
        let own = folder.join(".takeback");
        folder.join(".git").exists() || folder.join(".jj").exists() || (own.is_dir() && own != home)
    };
    protected.or_else(|| ancestors().find(is_project)).unwrap_or(start).to_owned()
}

const DATABASE: &str = "timeline.db";
/// Holds the root's path, so that the store can be traced back to its workspace.
const ROOT_FILE: &str = "root";

/// `<home>/workspaces/<folder name>-<16 hex of BLAKE3(canonical path)>`
fn store_of(root: &Path, home: &Path) -> PathBuf {
    let hash = blake3::hash(root.as_os_str().as_bytes()).to_hex();
    let mut name = root.file_name().map_or_else(Vec::new, |name| name.as_bytes().to_vec());
    name.truncate(200);
    name.push(b'-');
    name.extend_from_slice(&hash.as_bytes()[..16]);
    home.join("workspaces").join(OsString::from_vec(name))
}

fn create(store_dir: &Path, root: &Path) -> Result<SqliteStore, CommandError> {
    let store = SqliteStore::create(store_dir)?;
    let root_file = store_dir.join(ROOT_FILE);
    if !root_file.exists() {
        disk::replace_private_file(&root_file, root.as_os_str().as_bytes()).map_err(|source| {
            StoreError::Io { path: root_file, doing: "noting the workspace's root", source }
        })?;
    }
    Ok(store)
}

/// Workspaces below this one: they own their paths.
fn nested(root: &Path, home: &Path) -> Vec<WorkPath> {
    let Ok(stores) = std::fs::read_dir(home.join("workspaces")) else { return Vec::new() };
    stores
        .filter_map(|store| std::fs::read(store.ok()?.path().join(ROOT_FILE)).ok())
        .map(|path| PathBuf::from(OsString::from_vec(path)))
        .filter_map(|path| {
            let below = path.strip_prefix(root).ok()?;
            WorkPath::new(below.as_os_str().as_bytes()).ok()
        })
        .collect()
}
