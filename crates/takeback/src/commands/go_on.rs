//! `go-on`: the look at the tree that `hook` left to another process.
//!
//! With an event, standard input is the event's file, locked: whoever waits for it is let through when
//! this process is done with it, however it ends. Then, and without an event, what there was no
//! time to read is read. Nobody reads what this says; what went wrong is where `hook` would have put
//! it.

use std::any::Any;
use std::fs::File;
use std::io;
use std::os::fd::AsFd as _;
use std::path::Path;
use std::sync::mpsc::{RecvTimeoutError, Sender, channel};
use std::sync::{Arc, Mutex, PoisonError};
use std::thread::JoinHandle;
use std::time::Duration;

use takeback_core::deferred::Deferred;
use takeback_core::going_on::{Going, GoingOn};
use takeback_core::progress::{Progress, Watch};
use takeback_core::{left_to_read, look_at_rest, record_deferred};

use super::hook::{lacking, whole};
use crate::args::{GoOnArgs, Options};
use crate::heartbeat::{Beat, leave};
use crate::log_file::{Level, LogFile};
use crate::place::{self, Place, Store, environment};
use crate::progress;
use crate::time::now;

/// How much others come first.
const NICE: i32 = 10;
const TICK: Duration = Duration::from_millis(500);

pub(crate) fn go_on(options: &Options, args: &GoOnArgs) -> u8 {
    progress::hide();
    let Ok(home) = place::home(options) else { return 1 };
    let event = match args.event.as_deref() {
        Some(event) => recorded(options, &home, event),
        None => Ok(None),
    };
    let rest = rest(options, &home).map(|()| None);
    let mut code = 0;
    for problem in [event, rest].into_iter().filter_map(|done| done.unwrap_or_else(Some)) {
        let log = LogFile::of_hooks(&home, |name| environment(name)?.into_string().ok());
        let agent = args.agent.as_deref().unwrap_or("go-on");
        log.add(now(), Level::Error, &format!("{agent}: {problem}"));
        if let (Some(agent), Some(session)) = (&args.agent, &args.session) {
            let beat = Beat { problem: Some(problem), ..Beat::default() };
            leave(&home, agent, session, now(), &beat);
        }
        code = 1;
    }
    code
}

fn open(options: &Options, home: &Path) -> Result<Place, String> {
    let root = place::start(options).map_err(|error| error.line())?;
    place::open_at(&root, home, Store::MustExist).map_err(|error| error.line())
}

/// What is not in the log as it should be.
fn recorded(options: &Options, home: &Path, event: &str) -> Result<Option<String>, String> {
    let mut place = open(options, home)?;
    let workspace = &mut place.workspace;
    workspace.limits = place.settings.agent_limits();
    let file = io::stdin().as_fd().try_clone_to_owned().map(File::from);
    let deferred = file
        .and_then(|file| Deferred::taken_over(&workspace.store_dir, event, file))
        .map_err(|error| format!("{event}: {error}"))?;
    let Some(deferred) = deferred else { return Ok(None) };
    let time = deferred.spooled.time;
    workspace.ambient.now = Box::new(move || time);
    let recorded = record_deferred(workspace, deferred).map_err(|error| whole(&error))?;
    Ok(lacking(&recorded))
}

/// Reads what there was no time for, unless somebody is at it.
fn rest(options: &Options, home: &Path) -> Result<(), String> {
    let mut place = open(options, home)?;
    let workspace = &mut place.workspace;
    let failed = |error: io::Error| format!("{}: {error}", home.display());
    let Some(going_on) = GoingOn::begin(&workspace.store_dir).map_err(failed)? else {
        return Ok(());
    };
    rustix::process::nice(NICE).map_err(|error| failed(error.into()))?;
    let of = left_to_read(workspace).map_err(|error| whole(&error))?;
    let going_on = Arc::new(Mutex::new(going_on));
    workspace.ambient.watch = Some(told_of(Arc::clone(&going_on), of));
    look_at_rest(workspace).map_err(|error| whole(&error))?;
    workspace.ambient.watch = None;
    let going_on = Arc::into_inner(going_on).ok_or("somebody still tells how far it is")?;
    going_on.into_inner().unwrap_or_else(PoisonError::into_inner).done().map_err(failed)
}

/// Whoever asks can read how far it is.
fn told_of(going_on: Arc<Mutex<GoingOn>>, of: u64) -> Watch {
    Box::new(move |_, progress| -> Box<dyn Any> {
        Box::new(Told::new(Arc::clone(&going_on), Arc::clone(progress), of))
    })
}

/// Tells how far it is, until it is dropped.
struct Told {
    thread: Option<JoinHandle<()>>,
    done: Option<Sender<()>>,
}

impl Told {
    fn new(going_on: Arc<Mutex<GoingOn>>, progress: Arc<Progress>, of: u64) -> Self {
        let (done, wait) = channel();
        let tell = move || {
            loop {
                let of = if of == 0 { progress.of_bytes() } else { of };
                let going = Going { read: progress.bytes(), of };
                // Nothing hangs on it.
                drop(going_on.lock().unwrap_or_else(PoisonError::into_inner).tell(going));
                if wait.recv_timeout(TICK) != Err(RecvTimeoutError::Timeout) {
                    return;
                }
            }
        };
        Self { thread: std::thread::Builder::new().spawn(tell).ok(), done: Some(done) }
    }
}

impl Drop for Told {
    fn drop(&mut self) {
        self.done = None;
        // One that panicked has told all that it will tell.
        drop(self.thread.take().map(JoinHandle::join));
    }
}
