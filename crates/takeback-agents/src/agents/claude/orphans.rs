//! Commands that outlive a killed program. Its shells have their own sessions, so killing its group
//! does not end them; a mark in their environment identifies them.
//!
//! Only where the system shows the environment of processes; elsewhere none is found.

use std::collections::BTreeSet;
use std::sync::atomic::{AtomicU64, Ordering};
use std::thread;
use std::time::{Duration, Instant};

use rustix::process::{Pid, Signal, kill_process};
use takeback_core::process;

/// How long to wait for killed processes to end.
const TIMEOUT: Duration = Duration::from_secs(5);

/// An environment variable that the program and all of its children inherit.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) struct Mark(String);

/// What is known about the commands of a program that has ended.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum OrphanState {
    /// The program ended by itself, after its commands.
    None,
    /// All of them were killed.
    Killed,
    /// A command may still run and write.
    Unknown,
}

impl Mark {
    pub(super) const NAME: &str = "TAKEBACK_CLAUDE";

    /// A mark that no other running program has.
    pub(super) fn new() -> Self {
        static STARTED: AtomicU64 = AtomicU64::new(0);
        let number = STARTED.fetch_add(1, Ordering::Relaxed);
        Self(format!("{}-{number}", std::process::id()))
    }

    pub(super) fn value(&self) -> &str {
        &self.0
    }

    /// Kills the commands that the program was running, after the program itself has died.
    ///
    /// Spares what an earlier command left running on purpose: the shell that led its session has
    /// ended. [`OrphanState::Killed`] only if commands were found and none is left.
    pub(super) fn end_commands(&self) -> OrphanState {
        let deadline = Instant::now() + TIMEOUT;
        let mut sessions = BTreeSet::new();
        loop {
            let marked = self.marked();
            let leads = |(pid, session): &&(u32, u32)| pid == session;
            sessions.extend(marked.iter().filter(leads).map(|(pid, _)| *pid));
            let found: Vec<u32> = marked
                .into_iter()
                .filter(|(_, session)| sessions.contains(session))
                .map(|(pid, _)| pid)
                .collect();
            if found.is_empty() {
                return if sessions.is_empty() {
                    OrphanState::Unknown
                } else {
                    OrphanState::Killed
                };
            }
            if Instant::now() > deadline {
                return OrphanState::Unknown;
            }
            for pid in found.into_iter().filter_map(|pid| Pid::from_raw(pid.cast_signed())) {
                // Fails if it has ended by itself.
                kill_process(pid, Signal::KILL).ok();
            }
            thread::sleep(Duration::from_millis(5));
        }
    }

    /// The processes with the mark, and their sessions. A process that has ended has none.
    fn marked(&self) -> Vec<(u32, u32)> {
        process::with_variable(&format!("{}={}", Self::NAME, self.0))
    }
}
