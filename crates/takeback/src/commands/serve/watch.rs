//! `point:subscribe`: a client is told of points that anybody makes, in whatever process.
//!
//! A thread looks at the head of the log again and again: that costs a read of one row, and nobody
//! who records has to know who listens.

use std::collections::HashSet;
use std::path::{Path, PathBuf};
use std::sync::mpsc::{Receiver, RecvTimeoutError, Sender, channel};
use std::thread::JoinHandle;
use std::time::Duration;

use takeback_ipc::Outlet;
use takeback_ipc::outlet::Gone;
use takeback_ipc::params::Named;
use takeback_ipc::{Fault, Outcome};
use takeback_store::{Head, PointId, PointKind};

use super::client::{Client, result};
use crate::answers::{self, LogAnswer, PointCreated, SubscribeAnswer};
use crate::commands::log::point_answer;
use crate::error::CommandError;
use crate::place::{self, Here, Place, Store};
use crate::watchlist::number_of;

/// How late a point may be told.
const TICK: Duration = Duration::from_millis(100);

/// A workspace that is watched, until it is dropped.
pub(super) struct Watch {
    root: PathBuf,
    thread: Option<JoinHandle<()>>,
    over: Option<Sender<()>>,
}

impl Drop for Watch {
    fn drop(&mut self) {
        self.over = None;
        // One that panicked has said all that it will say.
        drop(self.thread.take().map(JoinHandle::join));
    }
}

/// Whether the points that Takeback makes itself are told too.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Which {
    Listed,
    All,
}

pub(super) fn subscribe(client: &mut Client, params: &Named, outlet: &Outlet) -> Outcome {
    let which = if params.or_default("all")? { Which::All } else { Which::Listed };
    let here = place::here(&client.options_for(params)?)?;
    let root = here.root.clone();
    client.watches.retain(|watch| watch.root != root);
    let mut sight = Sight::new(here, which);
    // What is there already is no news.
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

pub(super) fn unsubscribe(client: &mut Client, params: &Named, _: &Outlet) -> Outcome {
    let root = place::here(&client.options_for(params)?)?.root;
    let before = client.watches.len();
    client.watches.retain(|watch| watch.root != root);
    result(&(client.watches.len() < before))
}

/// What was last seen of a workspace.
struct Sight {
    here: Here,
    which: Which,
    /// With what tells this store from one that was made anew.
    open: Option<(Place, (u64, u64))>,
    head: Option<Head>,
    known: HashSet<PointId>,
}

impl Sight {
    fn new(here: Here, which: Which) -> Self {
        Self { here, which, open: None, head: None, known: HashSet::new() }
    }

    fn watch(mut self, outlet: &Outlet, over: &Receiver<()>) {
        loop {
            match over.recv_timeout(TICK) {
                Err(RecvTimeoutError::Timeout) => {}
                Ok(()) | Err(RecvTimeoutError::Disconnected) => return,
            }
            // A store that cannot be read now may be readable later; who asks it is told why not.
            let new = self.look().unwrap_or_default();
            for point in new {
                let created = PointCreated { workspace: answers::place(&self.here.root), point };
                if let Err(Gone) = outlet.notify("point:created", &created) {
                    return;
                }
            }
        }
    }

    /// The points that were not there before, oldest first.
    fn look(&mut self) -> Result<LogAnswer, CommandError> {
        let number = number_of(&self.here.root, &self.here.home);
        if self.open.as_ref().map(|(_, open)| *open) != number {
            (self.open, self.head) = (None, None);
            if let Some(number) = number {
                self.open = Some((reopened(&self.here.root, &self.here.home)?, number));
            }
        }
        let Some((place, _)) = &self.open else { return Ok(Vec::new()) };
        let store = &*place.workspace.store;
        let head = store.head()?;
        if self.head == Some(head) {
            return Ok(Vec::new());
        }
        let points = store.points()?;
        let with_state = place.workspace.states.points()?;
        let mut new = Vec::new();
        for point in points.iter().filter(|point| !self.known.contains(&point.id)) {
            if self.which == Which::All || point.kind != PointKind::Safety {
                new.push(point_answer(store, point, &[], &with_state)?);
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
