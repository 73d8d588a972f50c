//! Where things are: Takeback's home, the workspace's root, its store. The one reader of the
//! environment, together with [`crate::settings`].

use std::ffi::OsString;
use std::io::{self, Write as _};
use std::os::unix::fs::MetadataExt as _;
use std::path::{Path, PathBuf};

use takeback_core::rewind::needs_recovery;
use takeback_core::rewind::{Receipt, recover};
use takeback_core::workspace::check_root;
use takeback_core::{Ambient, Workspace, WorkspaceOptions, process, record_late_events};
use takeback_store::{Durability, Process, StoreError};

use crate::args::Options;
use crate::error::{CommandError, Kind, no_store};
use crate::marker::{ACKNOWLEDGE, Gone, Markers};
use crate::missed;
use crate::screen::{HINT, WARNING, name, plain};
use crate::settings::{Settings, table};
use crate::stores;
use crate::time::{now, zone_warning};
use crate::witness::TranscriptWitness;

/// A workspace as a command needs it.
pub(crate) struct Place {
    pub(crate) workspace: Workspace,
    pub(crate) settings: Settings,
    /// The folder that all stores are in.
    pub(crate) home: PathBuf,
    /// The history that the workspace had in a store that was deleted.
    pub(crate) gone: Option<Gone>,
    /// What could not be recorded before, and what became of it.
    pub(crate) missed: Option<String>,
}

impl Place {
    /// Looks for what could not be recorded, unless that is done: not before a rewind is finished.
    pub(crate) fn look_for_missed(&mut self) {
        self.missed = self.missed.take().or_else(|| missed::catch_up(&mut self.workspace));
    }
}

/// Whether a workspace without a store gets one.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Store {
    Create,
    /// It gets one that goes with its home: a loss is none.
    Temporary,
    MustExist,
}

/// Opens the workspace for a command that looks at files or changes them: a rewind that a crash
/// interrupted is finished first, and that is said.
pub(crate) fn open_mended(options: &Options, store: Store) -> Result<Place, CommandError> {
    let mut place = open(options, store)?;
    mend(&mut place.workspace)?;
    place.look_for_missed();
    warn_of_gaps(options, &place)?;
    catch_up(options, &mut place.workspace)?;
    Ok(place)
}

/// Opens the workspace for a command that looks at points: those that wait are recorded first.
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
    say_warnings(options, &warnings)
}

/// Records late events, and warns of those that are left. A command that only reads goes on all the same.
fn catch_up(options: &Options, workspace: &mut Workspace) -> Result<(), CommandError> {
    let text = match record_late_events(workspace) {
        Ok(0) => return Ok(()),
        Ok(1) => {
            "1 event waits to be recorded: another command has the workspace locked".to_owned()
        }
        Ok(number) => {
            format!("{number} events wait to be recorded: another command has the workspace locked")
        }
        Err(error) => {
            format!("events wait and cannot be recorded: {}", CommandError::from(error).line())
        }
    };
    say_warnings(options, &[text])
}

/// Finishes a rewind that a crash interrupted, and says so.
pub(crate) fn mend(workspace: &mut Workspace) -> Result<(), CommandError> {
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

/// What is known of a workspace before its store is opened.
pub(crate) struct Prepared {
    here: Here,
    settings: Settings,
}

pub(crate) fn prepare(options: &Options) -> Result<Prepared, CommandError> {
    let Here { root, home } = here(options)?;
    prepare_at(root, home)
}

/// As [`prepare`], for the workspace with exactly this root.
pub(crate) fn prepare_at(root: PathBuf, home: PathBuf) -> Result<Prepared, CommandError> {
    let settings = Settings::load(&root, &home)?;
    Ok(Prepared { here: Here { root, home }, settings })
}

impl Prepared {
    /// What to answer if the user has switched recording off.
    pub(crate) fn refusal(&self) -> Option<CommandError> {
        if self.settings.is_enabled() {
            return None;
        }
        let origin = &self.settings.setting(table::ENABLED).origin;
        let hint =
            format!("{} is false ({origin}); set it to true to record again.", table::ENABLED);
        Some(CommandError::new(Kind::Usage, NotEnabled).hint(hint))
    }

    /// Opens the workspace and prints nothing.
    pub(crate) fn open(self, store: Store) -> Result<Place, CommandError> {
        open_with(&self.here.root, &self.here.home, self.settings, store)
    }
}

pub(crate) fn open(options: &Options, store: Store) -> Result<Place, CommandError> {
    open_prepared(options, prepare(options)?, store)
}

pub(crate) fn open_prepared(
    options: &Options,
    Prepared { here, settings }: Prepared,
    store: Store,
) -> Result<Place, CommandError> {
    if store == Store::Create
        && !stores::is_protected(&here.root, &here.home)
        && let Some((old, command)) = relocation(options, &here)
    {
        let text = format!(
            "a new store is made; if {} has moved here, `takeback forget`, then `{command}` bring its \
             points",
            old.display()
        );
        say_warnings(options, &[text])?;
    }
    let place =
        open_with(&here.root, &here.home, settings, store).map_err(|error| match error.kind {
            Kind::NoStore => perhaps_lost(perhaps_moved(error, options, &here), &here),
            _ => error,
        })?;
    warn(options, &place.settings)?;
    warn_of_loss(options, &place.workspace)?;
    Ok(place)
}

/// Says what the store has lost, until the next commit. From then on `status`, `doctor` and `verify` do.
fn warn_of_loss(options: &Options, workspace: &Workspace) -> Result<(), CommandError> {
    let losses = workspace.store.losses()?;
    let head = workspace.store.head()?;
    match losses.last().filter(|loss| loss.kept == head) {
        Some(loss) => say_warnings(options, &[format!("history is damaged: {loss}; {LOSS}")]),
        None => Ok(()),
    }
}

/// What it means that commits are lost, and what to do.
pub(crate) const LOSS: &str = "the end of the store's log is cut off or damaged. What is left is intact \
     and recording goes on; a backup of the store's folder has the rest";

/// Adds what to do if the workspace has only moved.
fn perhaps_moved(error: CommandError, options: &Options, here: &Here) -> CommandError {
    match relocation(options, here) {
        Some((old, command)) => {
            error.hint(format!("If {} has moved here: `{command}`.", old.display()))
        }
        None => error,
    }
}

/// Adds that there was a store, if it was deleted.
fn perhaps_lost(error: CommandError, here: &Here) -> CommandError {
    let store = stores::store_of(&here.root, &here.home);
    match Markers::of_user().and_then(|markers| markers.gone(&store)) {
        Some(gone) => error.hint(format!("{}.", sentence(&gone.what()))).hint(ACKNOWLEDGE),
        None => error,
    }
}

/// With a capital letter.
pub(crate) fn sentence(text: &str) -> String {
    let mut rest = text.chars();
    rest.next().map_or_else(String::new, |first| first.to_uppercase().chain(rest).collect())
}

/// Where the workspace may have been before, and the command that takes its store along.
fn relocation(options: &Options, here: &Here) -> Option<(PathBuf, String)> {
    let old = stores::moved_here(&here.root, &here.home)?;
    let mut command = format!("takeback relocate {}", quoted(&old));
    if start(options).is_ok_and(|start| start != here.root) {
        command = format!("{command} {}", quoted(&here.root));
    }
    Some((old, command))
}

/// A path for people: what is in their home begins with `~`.
pub(crate) fn shown(path: &Path) -> String {
    let below = user_home().and_then(|home| path.strip_prefix(home).ok().map(Path::to_owned));
    plain(
        &below.map_or_else(|| path.display().to_string(), |below| format!("~/{}", below.display())),
    )
}

/// As a shell reads it.
pub(crate) fn quoted(path: &Path) -> String {
    quoted_text(&path.display().to_string())
}

/// As [`quoted`], for any word.
pub(crate) fn quoted_text(text: &str) -> String {
    let plain = |c: char| c.is_alphanumeric() || "/._-+,:@%=".contains(c);
    if text.chars().all(plain) {
        text.to_owned()
    } else {
        format!("'{}'", text.replace('\'', r"'\''"))
    }
}

/// Where a command is: the root of its workspace, protected or not, and Takeback's home.
pub(crate) struct Here {
    pub(crate) root: PathBuf,
    pub(crate) home: PathBuf,
}

pub(crate) fn here(options: &Options) -> Result<Here, CommandError> {
    let home = home(options)?;
    Ok(Here { root: root_of(&start(options)?, &home), home })
}

/// The folder that the user is in, or names with `-C`.
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

/// The folder's real path.
pub(crate) fn existing_folder(folder: &Path) -> Result<PathBuf, CommandError> {
    std::fs::canonicalize(folder).map_err(|error| {
        CommandError::new(Kind::Usage, format!("cannot open {}: {error}", folder.display()))
            .hint("Name a folder that exists.")
    })
}

/// Says on standard error, in one line, what is odd about the settings.
pub(crate) fn warn(options: &Options, settings: &Settings) -> Result<(), CommandError> {
    // What was meant to disarm goes before what is merely misspelt.
    let mut all = settings.refusals.iter().chain(&settings.warnings);
    let Some(first) = all.next() else { return Ok(()) };
    let said = match all.count() {
        0 => first.clone(),
        more => format!("{first} ({more} more: `takeback config`)"),
    };
    say_warnings(options, &[said])
}

pub(crate) fn say_warnings(options: &Options, warnings: &[String]) -> Result<(), CommandError> {
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

/// What to answer if the user has switched recording off.
pub(crate) fn not_enabled(options: &Options) -> Result<Option<CommandError>, CommandError> {
    Ok(prepare(options)?.refusal())
}

#[derive(Debug, thiserror::Error)]
#[error("Checkpoint feature not enabled")]
pub(crate) struct NotEnabled;

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
        // Recording goes on without a marker; `doctor` reports that it cannot be written.
        Store::Create => {
            markers.and_then(|it| it.check(&store_dir, root, home).unwrap_or_default())
        }
        Store::MustExist => markers.and_then(|it| it.gone(&store_dir)),
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
    workspace.witness = Some(Box::new(TranscriptWitness { home: home.clone(), root }));
    let mut place = Place { workspace, settings, home, gone, missed: None };
    place.look_for_missed();
    Ok(place)
}

pub(crate) fn ambient() -> Ambient {
    Ambient {
        now: Box::new(now),
        file_time: Box::new(takeback_core::system_file_time),
        random: Box::new(random),
        watch: crate::progress::watch(),
    }
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

/// The user's own, not Takeback's.
pub(crate) fn user_home() -> Option<PathBuf> {
    environment("HOME").map(PathBuf::from)
}

/// `$XDG_RUNTIME_DIR`, if it is a folder of the user's own.
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

/// The nearest folder upwards that has a store; else the nearest that looks like a project's; else
/// the folder itself.
pub(crate) fn root_of(start: &Path, home: &Path) -> PathBuf {
    let ancestors = || start.ancestors();
    let protected = ancestors().find(|folder| stores::is_protected(folder, home));
    let is_project = |folder: &&Path| {
        let own = folder.join(".takeback");
        folder.join(".git").exists() || folder.join(".jj").exists() || (own.is_dir() && own != home)
    };
    protected.or_else(|| ancestors().find(is_project)).unwrap_or(start).to_owned()
}
