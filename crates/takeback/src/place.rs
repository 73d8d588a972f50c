//! Finds and opens the workspace of a command: its root, Takeback's home, and the store. Only this file and
//! [`crate::settings`] read the environment.

use std::ffi::OsString;
use std::io::{self, Write as _};
use std::os::unix::fs::MetadataExt as _;
use std::path::{Path, PathBuf};

use takeback_core::check_root;
use takeback_core::rewind::needs_recovery;
use takeback_core::rewind::{Receipt, recover};
use takeback_core::{Ambient, Workspace, WorkspaceOptions, process, record_late_events};
use takeback_store::{Durability, Process, StoreError};

use crate::args::Options;
use crate::error::{CommandError, Kind, no_store};
use crate::marker::{ACKNOWLEDGE, LostHistory, Markers};
use crate::missed_events;
use crate::screen::{HINT, WARNING, name, plain};
use crate::settings::{Settings, table};
use crate::stores;
use crate::time::zone_warning;
use crate::witness::TranscriptWitness;

/// An open workspace with its settings.
pub(crate) struct Place {
    pub(crate) workspace: Workspace,
    pub(crate) settings: Settings,
    /// Takeback's home.
    pub(crate) home: PathBuf,
    /// The history that was lost with a deleted store.
    pub(crate) gone: Option<LostHistory>,
    /// A report of events that could not be recorded earlier.
    pub(crate) missed: Option<String>,
}

impl Place {
    /// Checks once for events that could not be recorded. Must not run before an interrupted rewind is
    /// finished.
    pub(crate) fn check_missed_events(&mut self) {
        self.missed = self.missed.take().or_else(|| missed_events::catch_up(&mut self.workspace));
    }
}

/// Whether a workspace without a store gets one.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Store {
    Create,
    /// Creates one without a marker: deleting it with its home is not reported as a loss.
    Temporary,
    MustExist,
}

/// Opens the workspace for a command that reads or changes files. First finishes a rewind that a crash
/// interrupted, and reports that.
pub(crate) fn open_recovered(options: &Options, store: Store) -> Result<Place, CommandError> {
    let mut place = open(options, store)?;
    finish_rewind(&mut place.workspace)?;
    place.check_missed_events();
    warn_of_gaps(options, &place)?;
    catch_up(options, &mut place.workspace)?;
    Ok(place)
}

/// Opens the workspace for a command that reads points. First records waiting events.
pub(crate) fn open_caught_up(options: &Options, store: Store) -> Result<Place, CommandError> {
    let mut place = open(options, store)?;
    warn_of_gaps(options, &place)?;
    catch_up(options, &mut place.workspace)?;
    Ok(place)
}

fn warn_of_gaps(options: &Options, place: &Place) -> Result<(), CommandError> {
    let gone = place.gone.as_ref().map(|gone| format!("{}. {ACKNOWLEDGE}", gone.what()));
    let warnings = gone.into_iter().chain(place.missed.clone()).chain(zone_warning());
    let warnings: Vec<String> = warnings.collect();
    print_warnings(options, &warnings)
}

/// Records late events, and warns of those that are left. Errors do not stop a command that only reads.
fn catch_up(options: &Options, workspace: &mut Workspace) -> Result<(), CommandError> {
    let text = match record_late_events(workspace) {
        Ok(0) => return Ok(()),
        Ok(1) => {
            "1 event is waiting to be recorded: another command has the workspace locked".to_owned()
        }
        Ok(number) => {
            format!(
                "{number} events are waiting to be recorded: another command has the workspace locked"
            )
        }
        Err(error) => {
            format!("waiting events cannot be recorded: {}", CommandError::from(error).line())
        }
    };
    print_warnings(options, &[text])
}

/// Finishes a rewind that a crash interrupted, and reports it.
pub(crate) fn finish_rewind(workspace: &mut Workspace) -> Result<(), CommandError> {
    if needs_recovery(workspace)? {
        for receipt in recover(workspace)?.finished {
            // Standard error is closed; there is nowhere left to report this.
            drop(say_finished(&receipt));
        }
    }
    Ok(())
}

fn say_finished(receipt: &Receipt) -> io::Result<()> {
    let mut err = anstream::stderr().lock();
    writeln!(err, "{WARNING}takeback:{WARNING:#} finished a rewind that had been interrupted")?;
    for note in receipt.conflicts.iter().chain(&receipt.not_captured) {
        writeln!(err, "  left  {}  {HINT}{}{HINT:#}", name(&note.path), note.reason)?;
    }
    for problem in &receipt.errors {
        writeln!(err, "  error  {}  {HINT}{}{HINT:#}", name(&problem.path), problem.error)?;
    }
    Ok(())
}

/// A workspace whose store is not open yet.
pub(crate) struct PreparedWorkspace {
    location: Location,
    settings: Settings,
}

pub(crate) fn prepare(options: &Options) -> Result<PreparedWorkspace, CommandError> {
    let Location { root, home } = locate(options)?;
    prepare_at(root, home)
}

/// Like [`prepare`], for the workspace with exactly this root.
pub(crate) fn prepare_at(root: PathBuf, home: PathBuf) -> Result<PreparedWorkspace, CommandError> {
    let settings = Settings::load(&root, &home)?;
    Ok(PreparedWorkspace { location: Location { root, home }, settings })
}

impl PreparedWorkspace {
    /// The error to return if recording is off.
    pub(crate) fn refusal(&self) -> Option<CommandError> {
        if self.settings.is_enabled() {
            return None;
        }
        let origin = &self.settings.setting(table::ENABLED).origin;
        let hint =
            format!("{} is false ({origin}); set it to true to record again.", table::ENABLED);
        Some(CommandError::new(Kind::Usage, DisabledFeature).hint(hint))
    }

    /// Opens the workspace and prints nothing.
    pub(crate) fn open(self, store: Store) -> Result<Place, CommandError> {
        open_with(&self.location.root, &self.location.home, self.settings, store)
    }
}

pub(crate) fn open(options: &Options, store: Store) -> Result<Place, CommandError> {
    open_prepared(options, prepare(options)?, store)
}

pub(crate) fn open_prepared(
    options: &Options,
    PreparedWorkspace { location, settings }: PreparedWorkspace,
    store: Store,
) -> Result<Place, CommandError> {
    if store == Store::Create
        && !stores::is_protected(&location.root, &location.home)
        && let Some((old, command)) = relocation(options, &location)
    {
        let text = format!(
            "creating a new store; if {} was moved here, run `takeback forget`, then `{command}` \
             to bring its points",
            old.display()
        );
        print_warnings(options, &[text])?;
    }
    let place =
        open_with(&location.root, &location.home, settings, store).map_err(
            |error| match error.kind {
                Kind::NoStore => hint_if_lost(hint_if_moved(error, options, &location), &location),
                _ => error,
            },
        )?;
    warn(options, &place.settings)?;
    warn_of_loss(options, &place.workspace)?;
    Ok(place)
}

/// Warns of lost commits, until the next commit. After that, `status`, `doctor` and `verify` report them.
fn warn_of_loss(options: &Options, workspace: &Workspace) -> Result<(), CommandError> {
    let losses = workspace.store.losses()?;
    let head = workspace.store.head()?;
    match losses.last().filter(|loss| loss.kept == head) {
        Some(loss) => print_warnings(options, &[format!("history is damaged: {loss}; {LOSS}")]),
        None => Ok(()),
    }
}

/// What lost commits mean, and what to do.
pub(crate) const LOSS: &str = "the end of the store's log is cut off or damaged. What is left is intact \
     and recording goes on; a backup of the store's folder has the rest";

/// Adds a hint in case the workspace was moved.
fn hint_if_moved(error: CommandError, options: &Options, location: &Location) -> CommandError {
    match relocation(options, location) {
        Some((old, command)) => {
            error.hint(format!("If {} has moved here: `{command}`.", old.display()))
        }
        None => error,
    }
}

/// Adds a hint if the store was deleted.
fn hint_if_lost(error: CommandError, location: &Location) -> CommandError {
    let store = stores::store_of(&location.root, &location.home);
    match Markers::of_user().and_then(|markers| markers.lost_history(&store)) {
        Some(gone) => error.hint(format!("{}.", sentence(&gone.what()))).hint(ACKNOWLEDGE),
        None => error,
    }
}

/// The text with a capital first letter.
pub(crate) fn sentence(text: &str) -> String {
    let mut rest = text.chars();
    rest.next().map_or_else(String::new, |first| first.to_uppercase().chain(rest).collect())
}

/// Where the workspace may have been before, and the command that reconnects its store.
fn relocation(options: &Options, location: &Location) -> Option<(PathBuf, String)> {
    let old = stores::moved_here(&location.root, &location.home)?;
    let mut command = format!("takeback relocate {}", quoted(&old));
    if start(options).is_ok_and(|start| start != location.root) {
        command = format!("{command} {}", quoted(&location.root));
    }
    Some((old, command))
}

/// A path for display: `~` replaces the user's home.
pub(crate) fn tilde_path(path: &Path) -> String {
    let below = user_home().and_then(|home| path.strip_prefix(home).ok().map(Path::to_owned));
    plain(
        &below.map_or_else(|| path.display().to_string(), |below| format!("~/{}", below.display())),
    )
}

/// A path quoted for a shell.
pub(crate) fn quoted(path: &Path) -> String {
    quoted_text(&path.display().to_string())
}

/// Like [`quoted`], for any text.
pub(crate) fn quoted_text(text: &str) -> String {
    let plain = |c: char| c.is_alphanumeric() || "/._-+,:@%=".contains(c);
    if text.chars().all(plain) {
        text.to_owned()
    } else {
        format!("'{}'", text.replace('\'', r"'\''"))
    }
}

/// Where a command runs: the root of its workspace, protected or not, and Takeback's home.
pub(crate) struct Location {
    pub(crate) root: PathBuf,
    pub(crate) home: PathBuf,
}

pub(crate) fn locate(options: &Options) -> Result<Location, CommandError> {
    let home = home(options)?;
    Ok(Location { root: root_of(&start(options)?, &home), home })
}

/// The current folder, or the one that `-C` names.
pub(crate) fn start(options: &Options) -> Result<PathBuf, CommandError> {
    let start = match &options.directory {
        Some(directory) => directory.clone(),
        None => std::env::current_dir().map_err(|error| {
            CommandError::new(Kind::Usage, format!("the current folder cannot be used: {error}"))
                .hint("Change to a folder that exists, or name one with -C DIR.")
        })?,
    };
    existing_folder(&start)
}

/// The folder's canonical path.
pub(crate) fn existing_folder(folder: &Path) -> Result<PathBuf, CommandError> {
    std::fs::canonicalize(folder).map_err(|error| {
        CommandError::new(Kind::Usage, format!("cannot open {}: {error}", folder.display()))
            .hint("Name a folder that exists.")
    })
}

/// Warns about the settings on standard error, in one line.
pub(crate) fn warn(options: &Options, settings: &Settings) -> Result<(), CommandError> {
    // An attempt to disable recording is more important than a misspelled key.
    let mut all = settings.refusals.iter().chain(&settings.warnings);
    let Some(first) = all.next() else { return Ok(()) };
    let text = match all.count() {
        0 => first.clone(),
        more => format!("{first} ({more} more: `takeback config`)"),
    };
    print_warnings(options, &[text])
}

pub(crate) fn print_warnings(options: &Options, warnings: &[String]) -> Result<(), CommandError> {
    if options.quiet {
        return Ok(());
    }
    let mut err = anstream::stderr().lock();
    for warning in warnings {
        if options.json {
            writeln!(err, "{}", serde_json::json!({ "warning": warning }))?;
        } else {
            writeln!(err, "{WARNING}takeback:{WARNING:#} {}", plain(warning))?;
        }
    }
    Ok(())
}

/// The error to return if recording is off.
pub(crate) fn not_enabled(options: &Options) -> Result<Option<CommandError>, CommandError> {
    Ok(prepare(options)?.refusal())
}

#[derive(Debug, thiserror::Error)]
#[error("Checkpoint feature not enabled")]
pub(crate) struct DisabledFeature;

/// Opens the workspace with exactly this root.
pub(crate) fn open_at(root: &Path, home: &Path, store: Store) -> Result<Place, CommandError> {
    open_with(root, home, Settings::load(root, home)?, store)
}

fn open_with(
    root: &Path,
    home: &Path,
    settings: Settings,
    store: Store,
) -> Result<Place, CommandError> {
    let store_dir = stores::store_of(root, home);
    let user_home = user_home();
    check_root(root, &store_dir, user_home.as_deref())?;
    let mut opened = match store {
        Store::Create | Store::Temporary => stores::create(&store_dir, root)?,
        Store::MustExist => match stores::open(&store_dir) {
            Err(StoreError::Missing { .. }) => {
                return Err(no_store(format!("{} is not protected", root.display())));
            }
            opened => opened?,
        },
    };
    if settings.durability() != Durability::default() {
        opened.set_durability(settings.durability())?;
    }
    let markers = Markers::of_user();
    let gone = match store {
        // Recording works without a marker; `doctor` reports that it cannot be written.
        Store::Create => {
            markers.and_then(|it| it.check(&store_dir, root, home).unwrap_or_default())
        }
        Store::MustExist => markers.and_then(|it| it.lost_history(&store_dir)),
        Store::Temporary => None,
    };
    let mut scope = settings.scope();
    scope.nested_workspaces = stores::nested(root, home);
    let mut workspace = Workspace::open(WorkspaceOptions {
        root: root.to_owned(),
        states: stores::open_states(&store_dir, home, &settings.states_medium()),
        store_dir,
        store: opened,
        home: user_home,
        scope,
        limits: settings.limits(),
        ambient: ambient(),
    })?;
    let (home, root) = (home.to_owned(), workspace.root.path().to_owned());
    workspace.call_end_source = Some(Box::new(TranscriptWitness { home: home.clone(), root }));
    let mut place = Place { workspace, settings, home, gone, missed: None };
    place.check_missed_events();
    Ok(place)
}

pub(crate) fn ambient() -> Ambient {
    Ambient { watch: crate::progress::watch(), ..Ambient::system() }
}

/// This process, as the owner of a session.
pub(crate) fn this_process() -> Option<Process> {
    process::current()
}

#[expect(clippy::disallowed_methods, reason = "the binary reads the environment, here alone")]
pub(crate) fn environment(name: &str) -> Option<OsString> {
    std::env::var_os(name).filter(|value| !value.is_empty())
}

/// The user's home folder, not Takeback's.
pub(crate) fn user_home() -> Option<PathBuf> {
    environment("HOME").map(PathBuf::from)
}

/// `$XDG_RUNTIME_DIR`, if the user owns it.
pub(crate) fn runtime_folder() -> Option<PathBuf> {
    let folder = PathBuf::from(environment("XDG_RUNTIME_DIR")?);
    let about = folder.metadata().ok()?;
    let is_own = about.is_dir() && about.uid() == rustix::process::geteuid().as_raw();
    (folder.is_absolute() && is_own).then_some(folder)
}

pub(crate) fn home(options: &Options) -> Result<PathBuf, CommandError> {
    home_of(options.home.as_deref())
}

/// Takeback's home: `chosen`, `TAKEBACK_HOME`, or `~/.takeback`.
pub(crate) fn home_of(chosen: Option<&Path>) -> Result<PathBuf, CommandError> {
    let home = match (chosen, environment("TAKEBACK_HOME"), environment("HOME")) {
        (Some(home), _, _) => home.to_owned(),
        (None, Some(home), _) => PathBuf::from(home),
        (None, None, Some(user)) => PathBuf::from(user).join(".takeback"),
        (None, None, None) => {
            return Err(CommandError::new(Kind::Usage, "there is no home folder")
                .hint("Set HOME or TAKEBACK_HOME, or use --home DIR."));
        }
    };
    Ok(std::path::absolute(home)?)
}

/// The nearest folder, from `start` upwards, that has a store; else the nearest that looks like a project;
/// else `start`.
pub(crate) fn root_of(start: &Path, home: &Path) -> PathBuf {
    let ancestors = || start.ancestors();
    let protected = ancestors().find(|folder| stores::is_protected(folder, home));
    let is_project = |folder: &&Path| {
        let own = folder.join(".takeback");
        folder.join(".git").exists() || folder.join(".jj").exists() || (own.is_dir() && own != home)
    };
    protected.or_else(|| ancestors().find(is_project)).unwrap_or(start).to_owned()
}
