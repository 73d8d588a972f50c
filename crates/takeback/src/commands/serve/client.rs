//! One client: the workspaces that it works in, each with a handle of its own, opened when first
//! asked for and kept.

use std::collections::HashMap;
use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::time::{Duration, Instant};

use serde::Serialize;
use takeback_ipc::params::Named;
use takeback_ipc::{Call, Fault, Outcome, Outlet};

use super::methods::{Run, find};
use super::quiet::Quiet;
use super::watch::Watch;
use crate::args::Options;
use crate::commands::cleanup::when_due;
use crate::commands::record::Recording;
use crate::error::CommandError;
use crate::log_file::{Level, LogFile};
use crate::place::{self, Here, Place, Store, environment};
use crate::settings::Settings;
use crate::stores;
use crate::time::now;
use crate::watchlist::{Watchlist, number_of};

/// Handles kept open by one client.
const MOST: usize = 8;

/// After how long it is looked again, for a client that stays, for what is no longer to be kept.
const AGAIN: Duration = Duration::from_secs(3600);

pub(super) struct Client {
    from: Start,
    /// The one used last is last.
    open: Vec<Handle>,
    /// What was recorded in workspaces that are not open any more.
    recordings: HashMap<PathBuf, Recording>,
    pub(super) watches: Vec<Watch>,
}

/// How the server was started.
#[derive(Clone)]
pub(super) struct Start {
    /// The same, but without a user to ask.
    options: Options,
    folder: PathBuf,
    home: PathBuf,
    pub(super) quiet: Arc<Quiet>,
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
        let quiet = Arc::new(Quiet::new(Instant::now()));
        let watchlist = watch.then(Watchlist::kept);
        Ok(Self { options, folder, home, quiet, watchlist })
    }

    /// Where it was started.
    pub(super) fn folder(&self) -> &Path {
        &self.folder
    }

    pub(super) fn home(&self) -> &Path {
        &self.home
    }
}

/// A workspace that is open.
pub(super) struct Handle {
    pub(super) place: Place,
    pub(super) recording: Recording,
    root: PathBuf,
    /// When it was last seen to that nothing is kept too long.
    seen_to: Instant,
    /// By which a store that was made anew is told from the one that is open.
    database: Option<(u64, u64)>,
}

/// A workspace, and where in it the client means to be.
pub(super) struct At<'c> {
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
        self.from.quiet.asked(Instant::now());
        let method = find(&call.method).ok_or_else(|| Fault::no_method(&call.method))?;
        match method.run {
            Run::Named(run) => run(self, &call.params.named(method.params)?, outlet),
            Run::Event(run) => run(self, &call.params),
        }
    }

    /// Where `workspace` leads; without it, where the server was started.
    pub(super) fn options_at(&self, workspace: Option<&Path>) -> Options {
        let directory = match workspace {
            Some(folder) => self.start().join(folder),
            None => self.start().to_owned(),
        };
        Options { directory: Some(directory), ..self.from.options.clone() }
    }

    /// As [`Self::options_at`], for the workspace that a call names.
    pub(super) fn options_for(&self, params: &Named) -> Result<Options, Fault> {
        Ok(self.options_at(params.optional::<PathBuf>("workspace")?.as_deref()))
    }

    /// The workspace that a call names.
    pub(super) fn at(&mut self, params: &Named, store: Store) -> Result<At<'_>, Fault> {
        let options = self.options_for(params)?;
        Ok(self.opened(options, store)?)
    }

    /// As [`Self::at`]; a rewind that a crash interrupted is finished first.
    pub(super) fn mended(&mut self, params: &Named, store: Store) -> Result<At<'_>, Fault> {
        let at = self.at(params, store)?;
        place::mend(&mut at.handle.place.workspace)?;
        Ok(at)
    }

    pub(super) fn opened(
        &mut self,
        options: Options,
        store: Store,
    ) -> Result<At<'_>, CommandError> {
        let here = place::here(&options)?;
        self.from.quiet.asked_about(&here.root);
        let known = self.open.iter().position(|handle| handle.root == here.root);
        let is_current = known.map(|at| self.open[at].is_current(&here)).transpose()?;
        let known = known.map(|at| self.open.remove(at));
        let mut handle = match known {
            Some(handle) if is_current == Some(true) => handle,
            known => {
                self.recordings.extend(known.map(Handle::into_recording));
                let mut place = place::open(&options, store)?;
                if let Some(list) = &self.from.watchlist {
                    list.watch(&mut place, &here.home);
                }
                let database = number_of(&here.root, &here.home);
                let recording = self.recordings.remove(&here.root).unwrap_or_default();
                let mut handle =
                    Handle { place, recording, root: here.root, seen_to: Instant::now(), database };
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
        Ok(At { options, handle: &mut self.open[last] })
    }
}

/// The client has gone: the calls that it opened by `event:record` are over.
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
        // No client is left to answer to.
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

    /// Who records sees to it, as commands that record do when they begin.
    fn clean_up(&mut self, options: &Options, store: Store) {
        if store == Store::Create {
            self.seen_to = Instant::now();
            when_due(&mut self.place, options);
        }
    }

    /// Whether the store is still the one that was opened, and the settings are what they were.
    fn is_current(&self, here: &Here) -> Result<bool, CommandError> {
        let settings = Settings::load(&here.root, &here.home)?;
        let nested = stores::nested(&here.root, &here.home);
        Ok(self.database.is_some()
            && self.database == number_of(&here.root, &here.home)
            && settings.all == self.place.settings.all
            && nested == self.place.workspace.scope.nested_workspaces)
    }
}

/// The result of a call.
pub(super) fn result(value: &impl Serialize) -> Outcome {
    serde_json::value::to_raw_value(value).map_err(|error| Fault::internal(error.to_string()))
}
