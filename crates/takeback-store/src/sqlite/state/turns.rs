//! One writer, many who write: whoever comes while another commits waits, and the next to write does
//! all that wait in one transaction. So eight writers pay for one wait for the disk, and one alone
//! pays for nothing but its own.

use std::collections::HashMap;
use std::sync::{Arc, Condvar, Mutex, MutexGuard, PoisonError};
use std::time::{Duration, Instant};

use rusqlite::Connection;

use super::facts::Facts;
use crate::disk::{CrashPoint, crash_point};
use crate::state::{ExecutionId, StateError};

/// The one connection that writes, and what it knows without asking.
pub(super) struct Writer {
    pub(super) db: Connection,
    facts: HashMap<ExecutionId, Facts>,
    /// As SQLite counts what other connections commit.
    version: i64,
}

impl Writer {
    pub(super) fn new(db: Connection) -> Self {
        Self { db, facts: HashMap::new(), version: 0 }
    }

    pub(super) fn facts(&self, execution: &ExecutionId) -> Option<&Facts> {
        self.facts.get(execution)
    }

    /// What is known of an execution from here on.
    pub(super) fn know(&mut self, execution: &ExecutionId, facts: Facts) {
        /// What many executions leave behind in memory has an end.
        const MOST: usize = 1024;
        if self.facts.len() >= MOST {
            self.facts.clear();
        }
        self.facts.insert(execution.clone(), facts);
    }

    pub(super) fn forget(&mut self, execution: &ExecutionId) {
        self.facts.remove(execution);
    }

    pub(super) fn forget_all(&mut self) {
        self.facts.clear();
    }

    fn begin(&mut self) -> rusqlite::Result<()> {
        self.db.prepare_cached("BEGIN IMMEDIATE")?.execute([])?;
        let version =
            self.db.prepare_cached("PRAGMA data_version")?.query_row([], |row| row.get(0))?;
        if version != self.version {
            self.version = version;
            self.facts.clear();
        }
        Ok(())
    }

    fn commit(&mut self) -> rusqlite::Result<()> {
        crash_point(CrashPoint::Commit);
        self.db.prepare_cached("COMMIT")?.execute([])?;
        crash_point(CrashPoint::Committed);
        Ok(())
    }

    /// Undoes what an open transaction did, if one is open.
    fn roll_back(&mut self) {
        self.facts.clear();
        if !self.db.is_autocommit() {
            // If even that fails, the next beginning says so.
            drop(self.db.execute_batch("ROLLBACK"));
        }
    }
}

/// Something to be done in a transaction. If it refuses, it must not have written anything.
type Work = Box<dyn FnOnce(&mut Writer) -> Result<(), Refusal> + Send>;

/// Why something is not done.
pub(super) enum Refusal {
    /// For a reason of its own: others are not touched by it.
    Refused(StateError),
    /// The database fails, and with it all that share the transaction.
    Failed(rusqlite::Error),
}

struct Job {
    work: Work,
    ticket: Arc<Ticket>,
}

#[derive(Default)]
struct Ticket {
    call: Mutex<Call>,
    called: Condvar,
}

#[derive(Default)]
enum Call {
    #[default]
    Wait,
    /// It is this one's turn to write for all that wait.
    Lead,
    Done(Outcome),
}

type Outcome = Result<(), StateError>;

impl Ticket {
    fn call(&self, call: Call) {
        *lock(&self.call) = call;
        self.called.notify_one();
    }
}

#[derive(Default)]
struct Queue {
    waiting: Vec<Job>,
    /// Whether somebody leads.
    is_led: bool,
    /// How many shared the last transaction.
    last: usize,
}

/// How many jobs share one transaction at most, so that none waits for ever.
const MOST_AT_ONCE: usize = 256;
/// How long a leader waits for those who were there last time. Less than a disk takes.
const PATIENCE: Duration = Duration::from_micros(100);

#[derive(Default)]
pub(super) struct Turns {
    queue: Mutex<Queue>,
    writer: Mutex<Option<Writer>>,
}

impl std::fmt::Debug for Turns {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("Turns").finish_non_exhaustive()
    }
}

impl Turns {
    /// Does `work` in a transaction, perhaps together with others', and answers when it is durable.
    /// If it is refused, what others do is done all the same.
    pub(super) fn commit<T: Send + 'static>(
        &self,
        connect: &dyn Fn() -> Result<Connection, StateError>,
        failed: &dyn Fn(rusqlite::Error) -> StateError,
        work: impl FnOnce(&mut Writer) -> Result<T, Refusal> + Send + 'static,
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
            let mut call = lock(&ticket.call);
            while matches!(*call, Call::Wait) {
                call = ticket.called.wait(call).unwrap_or_else(PoisonError::into_inner);
            }
            if let Call::Done(outcome) = std::mem::take(&mut *call) {
                outcome?;
                return Ok(lock(&answer).take().expect("what is done has an answer"));
            }
        }
        self.lead(connect, failed);
        let outcome = std::mem::take(&mut *lock(&ticket.call));
        match outcome {
            Call::Done(outcome) => outcome?,
            Call::Wait | Call::Lead => unreachable!("a leader does its own job too"),
        }
        Ok(lock(&answer).take().expect("what is done has an answer"))
    }

    /// Does all that wait, and hands the lead on to one who came meanwhile.
    fn lead(
        &self,
        connect: &dyn Fn() -> Result<Connection, StateError>,
        failed: &dyn Fn(rusqlite::Error) -> StateError,
    ) {
        // However this ends, somebody else must be able to lead.
        let _handed_on = HandOn(self);
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
        match together(writer, works) {
            Ok(outcomes) => tickets.done(outcomes),
            Err(error) => {
                writer.roll_back();
                tickets.fail(failed(error));
            }
        }
    }

    /// Those who shared the last transaction are likely to be on their way.
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

struct HandOn<'a>(&'a Turns);

impl Drop for HandOn<'_> {
    fn drop(&mut self) {
        let mut queue = lock(&self.0.queue);
        match queue.waiting.first() {
            Some(next) => next.ticket.call(Call::Lead),
            None => queue.is_led = false,
        }
    }
}

/// Those whose jobs were taken along: each is told what became of its own, whatever happens.
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
            ticket.call(Call::Done(outcome));
        }
    }

    fn fail(mut self, error: StateError) {
        // The error itself can be given to one only: the others get all that it says.
        let mut why = error.to_string();
        let mut source = std::error::Error::source(&error);
        while let Some(cause) = source {
            why = format!("{why}: {cause}");
            source = cause.source();
        }
        let mut tickets = std::mem::take(&mut self.0).into_iter();
        if let Some(first) = tickets.next() {
            first.call(Call::Done(Err(error)));
        }
        for ticket in tickets {
            let error = StateError::NotCommitted { why: why.clone() };
            ticket.call(Call::Done(Err(error)));
        }
    }
}

impl Drop for Tickets {
    /// Only a panic leaves any.
    fn drop(&mut self) {
        for ticket in self.0.drain(..) {
            let why = "the one who wrote was stopped".to_owned();
            ticket.call(Call::Done(Err(StateError::NotCommitted { why })));
        }
    }
}

fn together(writer: &mut Writer, works: Vec<Work>) -> rusqlite::Result<Vec<Outcome>> {
    // A panic of an earlier leader may have left one open.
    writer.roll_back_if_open();
    writer.begin()?;
    let before = writer.db.total_changes();
    let mut outcomes = Vec::with_capacity(works.len());
    for work in works {
        let changes = writer.db.total_changes();
        match work(writer) {
            Ok(()) => outcomes.push(Ok(())),
            Err(Refusal::Refused(error)) => {
                debug_assert_eq!(writer.db.total_changes(), changes, "refused after writing");
                outcomes.push(Err(error));
            }
            Err(Refusal::Failed(error)) => return Err(error),
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

/// A thread that panicked left nothing half done: its transaction was never committed.
pub(super) fn lock<T>(mutex: &Mutex<T>) -> MutexGuard<'_, T> {
    mutex.lock().unwrap_or_else(PoisonError::into_inner)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn who_shares_a_failure_hears_its_cause() {
        let tickets: [Arc<Ticket>; 2] = Default::default();
        let error = StateError::Io {
            path: "timeline.db".into(),
            doing: "saving a checkpoint",
            source: std::io::Error::other("the disk is full"),
        };
        Tickets(tickets.to_vec()).fail(error);
        let [first, second] =
            tickets.map(|ticket| match std::mem::take(&mut *lock(&ticket.call)) {
                Call::Done(Err(error)) => error,
                _ => panic!("it was not told of the failure"),
            });
        assert!(matches!(first, StateError::Io { .. }));
        assert_eq!(
            second.to_string(),
            "it was not committed with others: \
             timeline.db cannot be used (saving a checkpoint): the disk is full"
        );
    }
}
