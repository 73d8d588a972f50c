//! A queue of writers that share commits. A job that arrives during a commit waits; then one of the
//! waiting threads leads and runs all waiting jobs in one transaction. Eight writers pay for one
//! wait for the disk, and a single writer pays nothing extra.

use std::collections::HashMap;
use std::sync::{Arc, Condvar, Mutex, MutexGuard, PoisonError};
use std::time::{Duration, Instant};

use rusqlite::Connection;

use super::cached_head::CachedHead;
use crate::disk::{CrashPoint, crash_point};
use crate::state::{ExecutionId, StateError};

/// The only connection that writes, with a cache of what it knows.
pub(super) struct Writer {
    pub(super) db: Connection,
    cached_head: HashMap<ExecutionId, CachedHead>,
    /// SQLite's `data_version`, which changes when another connection commits.
    version: i64,
}

impl Writer {
    pub(super) fn new(db: Connection) -> Self {
        Self { db, cached_head: HashMap::new(), version: 0 }
    }

    pub(super) fn cached_head(&self, execution: &ExecutionId) -> Option<&CachedHead> {
        self.cached_head.get(execution)
    }

    /// Caches the head of an execution.
    pub(super) fn cache_head(&mut self, execution: &ExecutionId, cached_head: CachedHead) {
        /// The cache is emptied at this size, so that it does not grow without limit.
        const MOST: usize = 1024;
        if self.cached_head.len() >= MOST {
            self.cached_head.clear();
        }
        self.cached_head.insert(execution.clone(), cached_head);
    }

    pub(super) fn forget(&mut self, execution: &ExecutionId) {
        self.cached_head.remove(execution);
    }

    pub(super) fn forget_all(&mut self) {
        self.cached_head.clear();
    }

    fn begin(&mut self) -> rusqlite::Result<()> {
        self.db.prepare_cached("BEGIN IMMEDIATE")?.execute([])?;
        let version =
            self.db.prepare_cached("PRAGMA data_version")?.query_row([], |row| row.get(0))?;
        // Another connection committed: nothing cached can be trusted. Compared inside the transaction,
        // so no commit can follow unnoticed.
        if version != self.version {
            self.version = version;
            self.cached_head.clear();
        }
        Ok(())
    }

    fn commit(&mut self) -> rusqlite::Result<()> {
        crash_point(CrashPoint::Commit);
        self.db.prepare_cached("COMMIT")?.execute([])?;
        crash_point(CrashPoint::Committed);
        Ok(())
    }

    /// Rolls back, if a transaction is open.
    fn roll_back(&mut self) {
        self.cached_head.clear();
        if !self.db.is_autocommit() {
            // If this fails, the next BEGIN fails and reports it.
            drop(self.db.execute_batch("ROLLBACK"));
        }
    }
}

/// A job in a transaction. It must not return [`JobError::Refused`] after writing, because the
/// transaction still commits.
type Work = Box<dyn FnOnce(&mut Writer) -> Result<(), JobError> + Send>;

/// Why a job was not done.
pub(super) enum JobError {
    /// The job refused; other jobs in the transaction are not affected.
    Refused(StateError),
    /// The database failed, and with it all jobs in the transaction.
    Failed(rusqlite::Error),
}

struct Job {
    work: Work,
    ticket: Arc<Ticket>,
}

#[derive(Default)]
struct Ticket {
    signal: Mutex<Signal>,
    changed: Condvar,
}

#[derive(Default)]
enum Signal {
    #[default]
    Wait,
    /// This thread must lead: it writes for all that wait.
    Lead,
    Done(Outcome),
}

type Outcome = Result<(), StateError>;

impl Ticket {
    fn send(&self, signal: Signal) {
        *lock(&self.signal) = signal;
        self.changed.notify_one();
    }
}

#[derive(Default)]
struct JobQueue {
    waiting: Vec<Job>,
    /// Whether a thread leads.
    is_led: bool,
    /// The number of jobs in the last transaction.
    last: usize,
}

/// The most jobs in one transaction, so that none waits for ever.
const MOST_AT_ONCE: usize = 256;
/// How long a leader waits for the threads of the last transaction. Shorter than a wait for the
/// disk.
const PATIENCE: Duration = Duration::from_micros(100);

#[derive(Default)]
pub(super) struct WriteQueue {
    queue: Mutex<JobQueue>,
    writer: Mutex<Option<Writer>>,
}

impl std::fmt::Debug for WriteQueue {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("WriteQueue").finish_non_exhaustive()
    }
}

impl WriteQueue {
    /// Runs `work` in a transaction, perhaps together with other jobs, and returns when it is
    /// durable. A job that is refused does not affect the others.
    pub(super) fn commit<T: Send + 'static>(
        &self,
        connect: &dyn Fn() -> Result<Connection, StateError>,
        failed: &dyn Fn(rusqlite::Error) -> StateError,
        work: impl FnOnce(&mut Writer) -> Result<T, JobError> + Send + 'static,
    ) -> Result<T, StateError> {
        let answer: Arc<Mutex<Option<T>>> = Arc::default();
        let put = Arc::clone(&answer);
        let work: Work = Box::new(move |writer| {
            *lock(&put) = Some(work(writer)?);
            Ok(())
        });
        let ticket = Arc::new(Ticket::default());
        let leads = {
            let mut queue = lock(&self.queue);
            queue.waiting.push(Job { work, ticket: Arc::clone(&ticket) });
            !std::mem::replace(&mut queue.is_led, true)
        };
        if !leads {
            let mut signal = lock(&ticket.signal);
            while matches!(*signal, Signal::Wait) {
                signal = ticket.changed.wait(signal).unwrap_or_else(PoisonError::into_inner);
            }
            if let Signal::Done(outcome) = std::mem::take(&mut *signal) {
                outcome?;
                return Ok(lock(&answer).take().expect("a job that is done has an answer"));
            }
        }
        self.lead(connect, failed);
        let outcome = std::mem::take(&mut *lock(&ticket.signal));
        match outcome {
            Signal::Done(outcome) => outcome?,
            Signal::Wait | Signal::Lead => unreachable!("a leader does its own job too"),
        }
        Ok(lock(&answer).take().expect("a job that is done has an answer"))
    }

    /// Runs all waiting jobs, then passes the lead to a thread that arrived in the meantime.
    fn lead(
        &self,
        connect: &dyn Fn() -> Result<Connection, StateError>,
        failed: &dyn Fn(rusqlite::Error) -> StateError,
    ) {
        // Even after a panic another thread must be able to lead.
        let _handed_on = LeadHandover(self);
        self.wait_for_others();
        let jobs = {
            let mut queue = lock(&self.queue);
            let most = queue.waiting.len().min(MOST_AT_ONCE);
            queue.last = most;
            queue.waiting.drain(..most).collect::<Vec<_>>()
        };
        let (works, tickets): (Vec<Work>, Tickets) =
            jobs.into_iter().map(|job| (job.work, job.ticket)).unzip();
        let mut writer = lock(&self.writer);
        if writer.is_none() {
            match connect() {
                Ok(db) => *writer = Some(Writer::new(db)),
                Err(error) => return tickets.fail(error),
            }
        }
        let writer = writer.as_mut().expect("it was just connected");
        match commit_together(writer, works) {
            Ok(outcomes) => tickets.done(outcomes),
            Err(error) => {
                writer.roll_back();
                tickets.fail(failed(error));
            }
        }
    }

    /// Waits briefly: the threads of the last transaction are likely to come again.
    fn wait_for_others(&self) {
        let expected = lock(&self.queue).last;
        if expected <= 1 {
            return;
        }
        let began = Instant::now();
        while lock(&self.queue).waiting.len() < expected && began.elapsed() < PATIENCE {
            std::thread::yield_now();
        }
    }
}

struct LeadHandover<'a>(&'a WriteQueue);

impl Drop for LeadHandover<'_> {
    fn drop(&mut self) {
        let mut queue = lock(&self.0.queue);
        match queue.waiting.first() {
            Some(next) => next.ticket.send(Signal::Lead),
            None => queue.is_led = false,
        }
    }
}

/// The tickets of the jobs in a transaction. Each gets its outcome, even if the leader panics.
#[derive(Default)]
struct Tickets(Vec<Arc<Ticket>>);

impl Extend<Arc<Ticket>> for Tickets {
    fn extend<I: IntoIterator<Item = Arc<Ticket>>>(&mut self, tickets: I) {
        self.0.extend(tickets);
    }
}

impl Tickets {
    fn done(mut self, outcomes: Vec<Outcome>) {
        for (ticket, outcome) in std::mem::take(&mut self.0).into_iter().zip(outcomes) {
            ticket.send(Signal::Done(outcome));
        }
    }

    fn fail(mut self, error: StateError) {
        // An error cannot be cloned: the first job gets it, the others get its text.
        let mut why = error.to_string();
        let mut source = std::error::Error::source(&error);
        while let Some(cause) = source {
            why = format!("{why}: {cause}");
            source = cause.source();
        }
        let mut tickets = std::mem::take(&mut self.0).into_iter();
        if let Some(first) = tickets.next() {
            first.send(Signal::Done(Err(error)));
        }
        for ticket in tickets {
            let error = StateError::NotCommitted { why: why.clone() };
            ticket.send(Signal::Done(Err(error)));
        }
    }
}

impl Drop for Tickets {
    /// Tickets are left only after a panic.
    fn drop(&mut self) {
        for ticket in self.0.drain(..) {
            let why = "the thread that wrote it was stopped".to_owned();
            ticket.send(Signal::Done(Err(StateError::NotCommitted { why })));
        }
    }
}

fn commit_together(writer: &mut Writer, works: Vec<Work>) -> rusqlite::Result<Vec<Outcome>> {
    // A panic of an earlier leader may have left a transaction open.
    writer.roll_back_if_open();
    writer.begin()?;
    let before = writer.db.total_changes();
    let mut outcomes = Vec::with_capacity(works.len());
    for work in works {
        let changes = writer.db.total_changes();
        match work(writer) {
            Ok(()) => outcomes.push(Ok(())),
            Err(JobError::Refused(error)) => {
                debug_assert_eq!(writer.db.total_changes(), changes, "refused after writing");
                outcomes.push(Err(error));
            }
            Err(JobError::Failed(error)) => return Err(error),
        }
    }
    if writer.db.total_changes() == before {
        writer.db.execute_batch("ROLLBACK")?;
    } else {
        writer.commit()?;
    }
    Ok(outcomes)
}

impl Writer {
    fn roll_back_if_open(&mut self) {
        if !self.db.is_autocommit() {
            self.roll_back();
        }
    }
}

/// Locks a mutex. Poisoning is ignored: a thread that panicked never committed its transaction.
pub(super) fn lock<T>(mutex: &Mutex<T>) -> MutexGuard<'_, T> {
    mutex.lock().unwrap_or_else(PoisonError::into_inner)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_job_of_a_failed_transaction_gets_the_cause() {
        let tickets: [Arc<Ticket>; 2] = Default::default();
        let error = StateError::Io {
            path: "timeline.db".into(),
            doing: "saving a checkpoint",
            source: std::io::Error::other("the disk is full"),
        };
        Tickets(tickets.to_vec()).fail(error);
        let [first, second] =
            tickets.map(|ticket| match std::mem::take(&mut *lock(&ticket.signal)) {
                Signal::Done(Err(error)) => error,
                _ => panic!("it did not get the failure"),
            });
        assert!(matches!(first, StateError::Io { .. }));
        assert_eq!(
            second.to_string(),
            "not committed, because a shared transaction failed: \
             timeline.db cannot be used (saving a checkpoint): the disk is full"
        );
    }
}
