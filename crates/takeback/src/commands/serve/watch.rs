//! `point:subscribe`: notifies a client of new points made by any process.
//!
//! A thread polls the head of the log. That costs reading one row, and recorders do not need to know their
//! subscribers.

use std::collections::HashSet;
use std::path::{Path, PathBuf};
use std::sync::mpsc::{Receiver, RecvTimeoutError, Sender, channel};
use std::thread::JoinHandle;
use std::time::Duration;

use takeback_ipc::{DisconnectedError, Fault, NamedParams, Outcome, Outlet};
use takeback_store::{Head, PointId, PointKind};

use super::client::{Client, result};
use crate::answers::{self, LogAnswer, PointCreated, SubscribeAnswer};
use crate::commands::log::point_answer;
use crate::error::CommandError;
use crate::place::{self, Location, Place, Store};
use crate::watchlist::database_inode;

/// The longest delay of a notification.
const TICK: Duration = Duration::from_millis(100);

/// A subscription; dropping it ends it.
pub(super) struct Watch {
    root: PathBuf,
    thread: Option<JoinHandle<()>>,
    over: Option<Sender<()>>,
}

impl Drop for Watch {
    fn drop(&mut self) {
        self.over = None;
        // A thread that panicked sends nothing more.
        drop(self.thread.take().map(JoinHandle::join));
    }
}

/// Whether to include safety points and other points that Takeback makes itself.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum PointSelection {
    Listed,
    All,
}

pub(super) fn subscribe(client: &mut Client, params: &NamedParams, outlet: &Outlet) -> Outcome {
    let selection =
        if params.or_default("all")? { PointSelection::All } else { PointSelection::Listed };
    let location = place::locate(&client.options_for(params)?)?;
    let root = location.root.clone();
    client.watches.retain(|watch| watch.root != root);
    let mut sight = WatchedWorkspace::new(location, selection);
    // Existing points are not news.
    sight.look()?;
    let (over, wait) = channel();
    let outlet = outlet.clone();
    let thread = std::thread::Builder::new()
        .name("watch".to_owned())
        .spawn(move || sight.watch(&outlet, &wait))
        .map_err(|error| Fault::internal(format!("cannot watch: {error}")))?;
    client.watches.push(Watch { root: root.clone(), thread: Some(thread), over: Some(over) });
    result(&SubscribeAnswer { workspace: answers::place(&root) })
}

pub(super) fn unsubscribe(client: &mut Client, params: &NamedParams, _: &Outlet) -> Outcome {
    let root = place::locate(&client.options_for(params)?)?.root;
    let before = client.watches.len();
    client.watches.retain(|watch| watch.root != root);
    result(&(client.watches.len() < before))
}

/// A watched workspace and the last known state of its log.
struct WatchedWorkspace {
    location: Location,
    selection: PointSelection,
    /// The store's database inode: distinguishes it from a recreated store.
    open: Option<(Place, (u64, u64))>,
    head: Option<Head>,
    known: HashSet<PointId>,
}

impl WatchedWorkspace {
    fn new(location: Location, selection: PointSelection) -> Self {
        Self { location, selection, open: None, head: None, known: HashSet::new() }
    }

    fn watch(mut self, outlet: &Outlet, over: &Receiver<()>) {
        loop {
            match over.recv_timeout(TICK) {
                Err(RecvTimeoutError::Timeout) => {}
                Ok(()) | Err(RecvTimeoutError::Disconnected) => return,
            }
            // A store that cannot be read now may be readable later; a direct request reports the error.
            let new = self.look().unwrap_or_default();
            for point in new {
                let created =
                    PointCreated { workspace: answers::place(&self.location.root), point };
                if let Err(DisconnectedError) = outlet.notify("point:created", &created) {
                    return;
                }
            }
        }
    }

    /// The new points, oldest first.
    fn look(&mut self) -> Result<LogAnswer, CommandError> {
        let number = database_inode(&self.location.root, &self.location.home);
        if self.open.as_ref().map(|(_, open)| *open) != number {
            (self.open, self.head) = (None, None);
            if let Some(number) = number {
                self.open = Some((reopened(&self.location.root, &self.location.home)?, number));
            }
        }
        let Some((place, _)) = &self.open else { return Ok(Vec::new()) };
        let store = &*place.workspace.store;
        let head = store.head()?;
        if self.head == Some(head) {
            return Ok(Vec::new());
        }
        let points = store.points()?;
        let mut new = Vec::new();
        for point in points.iter().filter(|point| !self.known.contains(&point.id)) {
            if self.selection == PointSelection::All || point.kind != PointKind::Safety {
                new.push(point_answer(&place.workspace, point.clone())?);
            }
        }
        self.known = points.iter().map(|point| point.id).collect();
        self.head = Some(head);
        Ok(new)
    }
}

fn reopened(root: &Path, home: &Path) -> Result<Place, CommandError> {
    place::open_at(root, home, Store::MustExist)
}
