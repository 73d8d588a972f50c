//! One client and its open workspaces: each is opened at first use and kept open.

use std::collections::HashMap;
use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::time::{Duration, Instant};

use serde::Serialize;
use takeback_ipc::{Call, Fault, NamedParams, Outcome, Outlet};

use super::idle_work::IdleTracker;
use super::methods::{Run, find};
use super::watch::Watch;
use crate::args::Options;
use crate::commands::cleanup::clean_up_if_due;
use crate::commands::record::Recording;
use crate::error::CommandError;
use crate::log_file::{Level, LogFile};
use crate::place::{self, Location, Place, Store, environment};
use crate::settings::Settings;
use crate::stores;
use crate::time::now;
use crate::watchlist::{Watchlist, database_inode};

/// Handles kept open by one client.
const MOST: usize = 8;

/// How often expired points are cleaned up for a client that stays connected.
const AGAIN: Duration = Duration::from_secs(3600);

pub(super) struct Client {
    from: Start,
    /// Most recently used last.
    open: Vec<Handle>,
    /// Recordings of workspaces that are closed.
    recordings: HashMap<PathBuf, Recording>,
    pub(super) watches: Vec<Watch>,
}

/// How the server was started.
#[derive(Clone)]
pub(super) struct Start {
    /// The server's options, without prompts and messages.
    options: Options,
    folder: PathBuf,
    home: PathBuf,
    pub(super) idle: Arc<IdleTracker>,
    pub(super) watchlist: Option<Arc<Watchlist>>,
}

impl Start {
    pub(super) fn new(options: &Options, watch: bool) -> Result<Self, CommandError> {
        let (folder, home) = (place::start(options)?, place::home(options)?);
        let options = Options {
            home: Some(home.clone()),
            json: true,
            quiet: true,
            no_pager: true,
            ..options.clone()
        };
        let idle = Arc::new(IdleTracker::new(Instant::now()));
        let watchlist = watch.then(Watchlist::start);
        Ok(Self { options, folder, home, idle, watchlist })
    }

    /// Where it was started.
    pub(super) fn folder(&self) -> &Path {
        &self.folder
    }

    pub(super) fn home(&self) -> &Path {
        &self.home
    }
}

/// An open workspace.
pub(super) struct Handle {
    pub(super) place: Place,
    pub(super) recording: Recording,
    root: PathBuf,
    /// When expired points were last cleaned up.
    seen_to: Instant,
    /// The database's device and inode: distinguishes a recreated store from the open one.
    database: Option<(u64, u64)>,
}

/// An open workspace, with options that name the client's folder in it.
pub(super) struct ClientWorkspace<'c> {
    pub(super) options: Options,
    pub(super) handle: &'c mut Handle,
}

impl Client {
    pub(super) fn new(from: Start) -> Self {
        Self { from, open: Vec::new(), recordings: HashMap::new(), watches: Vec::new() }
    }

    pub(super) fn start(&self) -> &Path {
        &self.from.folder
    }

    pub(super) fn home(&self) -> &Path {
        &self.from.home
    }

    pub(super) fn folder(&self) -> &Path {
        &self.from.folder
    }

    pub(super) fn watchlist(&self) -> Option<&Arc<Watchlist>> {
        self.from.watchlist.as_ref()
    }

    pub(super) fn answer(&mut self, call: &Call, outlet: &Outlet) -> Outcome {
        self.from.idle.asked(Instant::now());
        let method = find(&call.method).ok_or_else(|| Fault::no_method(&call.method))?;
        match method.run {
            Run::Named(run) => run(self, &call.params.named(method.params)?, outlet),
            Run::Event(run) => run(self, &call.params),
        }
    }

    /// Options for the folder `workspace`, or else for the folder in which the server was started.
    pub(super) fn options_at(&self, workspace: Option<&Path>) -> Options {
        let directory = match workspace {
            Some(folder) => self.start().join(folder),
            None => self.start().to_owned(),
        };
        Options { directory: Some(directory), ..self.from.options.clone() }
    }

    /// Like [`Self::options_at`], for the workspace that a call names.
    pub(super) fn options_for(&self, params: &NamedParams) -> Result<Options, Fault> {
        Ok(self.options_at(params.optional::<PathBuf>("workspace")?.as_deref()))
    }

    /// The workspace that a call names.
    pub(super) fn at(
        &mut self,
        params: &NamedParams,
        store: Store,
    ) -> Result<ClientWorkspace<'_>, Fault> {
        let options = self.options_for(params)?;
        Ok(self.opened(options, store)?)
    }

    /// Like [`Self::at`]; first finishes a rewind that a crash interrupted.
    pub(super) fn mended(
        &mut self,
        params: &NamedParams,
        store: Store,
    ) -> Result<ClientWorkspace<'_>, Fault> {
        let at = self.at(params, store)?;
        place::finish_rewind(&mut at.handle.place.workspace)?;
        Ok(at)
    }

    pub(super) fn opened(
        &mut self,
        options: Options,
        store: Store,
    ) -> Result<ClientWorkspace<'_>, CommandError> {
        let location = place::locate(&options)?;
        self.from.idle.asked_about(&location.root);
        let known = self.open.iter().position(|handle| handle.root == location.root);
        let is_current = known.map(|at| self.open[at].is_current(&location)).transpose()?;
        let known = known.map(|at| self.open.remove(at));
        let mut handle = match known {
            Some(handle) if is_current == Some(true) => handle,
            known => {
                self.recordings.extend(known.map(Handle::into_recording));
                let mut place = place::open(&options, store)?;
                if let Some(list) = &self.from.watchlist {
                    list.watch(&mut place, &location.home);
                }
                let database = database_inode(&location.root, &location.home);
                let recording = self.recordings.remove(&location.root).unwrap_or_default();
                let mut handle = Handle {
                    place,
                    recording,
                    root: location.root,
                    seen_to: Instant::now(),
                    database,
                };
                handle.clean_up(&options, store);
                handle
            }
        };
        if handle.seen_to.elapsed() > AGAIN {
            handle.clean_up(&options, store);
        }
        if self.open.len() == MOST {
            self.recordings.extend([self.open.remove(0).into_recording()]);
        }
        self.open.push(handle);
        let last = self.open.len() - 1;
        Ok(ClientWorkspace { options, handle: &mut self.open[last] })
    }
}

/// The client has disconnected: closes the calls that it opened with `event:record`.
impl Drop for Client {
    fn drop(&mut self) {
        let parted = std::mem::take(&mut self.recordings);
        let mut ended: Vec<Result<(), CommandError>> = self
            .open
            .iter_mut()
            .map(|handle| Ok(handle.recording.end(&mut handle.place.workspace)?))
            .collect();
        for (root, mut recording) in parted.into_iter().filter(|(_, one)| !one.is_over()) {
            let place = place::open(&self.options_at(Some(&root)), Store::MustExist);
            ended.push(place.and_then(|mut place| Ok(recording.end(&mut place.workspace)?)));
        }
        // There is no client left to report errors to.
        let log = LogFile::of_hooks(self.home(), |name| environment(name)?.into_string().ok());
        for error in ended.into_iter().filter_map(Result::err) {
            log.add(now(), Level::Error, &format!("serve: {}", error.line()));
        }
    }
}

impl Handle {
    fn into_recording(self) -> (PathBuf, Recording) {
        (self.root, self.recording)
    }

    /// Cleans up before recording, as commands that record do when they start.
    fn clean_up(&mut self, options: &Options, store: Store) {
        if store == Store::Create {
            self.seen_to = Instant::now();
            clean_up_if_due(&mut self.place, options);
        }
    }

    /// Whether the store is still the one that was opened, and the settings are what they were.
    fn is_current(&self, location: &Location) -> Result<bool, CommandError> {
        let settings = Settings::load(&location.root, &location.home)?;
        let nested = stores::nested(&location.root, &location.home);
        Ok(self.database.is_some()
            && self.database == database_inode(&location.root, &location.home)
            && settings.all == self.place.settings.all
            && nested == self.place.workspace.scope.nested_workspaces)
    }
}

/// The result of a call.
pub(super) fn result(value: &impl Serialize) -> Outcome {
    serde_json::value::to_raw_value(value).map_err(|error| Fault::internal(error.to_string()))
}
