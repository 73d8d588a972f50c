//! `finish-event`: scans the tree in the background for a `hook` that has already returned to its agent.
//!
//! With an event, standard input is the event's file in the inbox, locked: the lock is released when this
//! process has recorded the event, or when it ends in any way. Then, or without an event, it reads the files
//! that earlier events had no time for. It prints nothing: problems go where `hook` reports its own.

use std::any::Any;
use std::fs::File;
use std::io;
use std::os::fd::AsFd as _;
use std::path::Path;
use std::sync::mpsc::{RecvTimeoutError, Sender, channel};
use std::sync::{Arc, Mutex, PoisonError};
use std::thread::JoinHandle;
use std::time::Duration;

use takeback_core::{
    BackgroundScan, Progress, ProgressListener, ScanProgress, bytes_left_to_read, finish_scan,
    record_queued,
};

use super::hook::{describe_gap, error_chain};
use crate::args::{FinishEventArgs, Options};
use crate::heartbeat::{Beat, leave};
use crate::log_file::{Level, LogFile};
use crate::place::{self, Place, Store, environment};
use crate::progress;
use crate::time::now;

/// Runs at low priority.
const NICE: i32 = 10;
const TICK: Duration = Duration::from_millis(500);

pub(crate) fn finish_event(options: &Options, args: &FinishEventArgs) -> u8 {
    progress::hide();
    let Ok(home) = place::home(options) else { return 1 };
    let event = match args.event.as_deref() {
        Some(event) => record_event(options, &home, event),
        None => Ok(None),
    };
    let scan = finish(options, &home).map(|()| None);
    let mut code = 0;
    for problem in [event, scan].into_iter().filter_map(|done| done.unwrap_or_else(Some)) {
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

/// Records the event. Returns what the log is missing, if anything.
fn record_event(options: &Options, home: &Path, event: &str) -> Result<Option<String>, String> {
    let mut place = open(options, home)?;
    let workspace = &mut place.workspace;
    workspace.limits = place.settings.agent_limits();
    let file = io::stdin().as_fd().try_clone_to_owned().map(File::from);
    let file = file.map_err(|error| format!("{event}: {error}"))?;
    let queued = workspace.inbox().take_over(event, file).map_err(|error| error_chain(&error))?;
    let Some(queued) = queued else { return Ok(None) };
    let time = queued.event.time;
    workspace.ambient.now = Box::new(move || time);
    let recorded = record_queued(workspace, queued).map_err(|error| error_chain(&error))?;
    Ok(describe_gap(&recorded))
}

/// Reads the remaining files, unless another process does.
fn finish(options: &Options, home: &Path) -> Result<(), String> {
    let mut place = open(options, home)?;
    let workspace = &mut place.workspace;
    let failed = |error: io::Error| format!("{}: {error}", home.display());
    let scan = workspace.inbox().claim_scan().map_err(|error| error_chain(&error))?;
    let Some(scan) = scan else { return Ok(()) };
    rustix::process::nice(NICE).map_err(|error| failed(error.into()))?;
    let of = bytes_left_to_read(workspace).map_err(|error| error_chain(&error))?;
    let scan = Arc::new(Mutex::new(scan));
    workspace.ambient.watch = Some(report_to(Arc::clone(&scan), of));
    finish_scan(workspace).map_err(|error| error_chain(&error))?;
    workspace.ambient.watch = None;
    let scan = Arc::into_inner(scan).ok_or("the scan's progress is still being reported")?;
    scan.into_inner().unwrap_or_else(PoisonError::into_inner).done().map_err(failed)
}

/// Writes the progress of the scan into its file, for `status`.
fn report_to(scan: Arc<Mutex<BackgroundScan>>, of: u64) -> ProgressListener {
    Box::new(move |_, progress| -> Box<dyn Any> {
        Box::new(Reporter::new(Arc::clone(&scan), Arc::clone(progress), of))
    })
}

/// Reports how far the scan is, until it is dropped.
struct Reporter {
    thread: Option<JoinHandle<()>>,
    done: Option<Sender<()>>,
}

impl Reporter {
    fn new(scan: Arc<Mutex<BackgroundScan>>, progress: Arc<Progress>, of: u64) -> Self {
        let (done, wait) = channel();
        let report = move || {
            loop {
                let of = if of == 0 { progress.of_bytes() } else { of };
                let so_far = ScanProgress { read: progress.bytes(), of };
                // Only `status` reads it.
                drop(scan.lock().unwrap_or_else(PoisonError::into_inner).report(so_far));
                if wait.recv_timeout(TICK) != Err(RecvTimeoutError::Timeout) {
                    return;
                }
            }
        };
        Self { thread: std::thread::Builder::new().spawn(report).ok(), done: Some(done) }
    }
}

impl Drop for Reporter {
    fn drop(&mut self) {
        self.done = None;
        // A thread that panicked has nothing more to report.
        drop(self.thread.take().map(JoinHandle::join));
    }
}
