//! What a killed program leaves running. Its shells have sessions of their own, so the end of its
//! group is not theirs; they are known by a mark in their environment.
//!
//! Only where `/proc` shows the environment of processes; elsewhere nothing is found.

use std::collections::BTreeSet;
use std::path::Path;
use std::sync::atomic::{AtomicU64, Ordering};
use std::thread;
use std::time::{Duration, Instant};

use rustix::process::{Pid, Signal, kill_process};

/// How long the end of what was killed is waited for.
const PATIENCE: Duration = Duration::from_secs(5);

/// What a started program and all that it starts carry in their environment.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) struct Mark(String);

/// What is known of the shells of a program that has ended.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Left {
    /// It ended by itself, and with it what it did not leave running on purpose.
    AsTold,
    Nothing,
    /// One may go on, and write.
    Unknown,
}

impl Mark {
    pub(super) const NAME: &str = "TAKEBACK_CLAUDE";

    /// One that no other running program has.
    pub(super) fn new() -> Self {
        static STARTED: AtomicU64 = AtomicU64::new(0);
        let number = STARTED.fetch_add(1, Ordering::Relaxed);
        Self(format!("{}-{number}", std::process::id()))
    }

    pub(super) fn value(&self) -> &str {
        &self.0
    }

    /// Ends the commands that the program was running, once it has died itself.
    ///
    /// Something that an earlier command left running on purpose is spared: the shell that led its
    /// session has ended. [`Left::Nothing`] only if something was found, and nothing of it is left.
    pub(super) fn end_commands(&self) -> Left {
        let deadline = Instant::now() + PATIENCE;
        let mut sessions = BTreeSet::new();
        loop {
            let marked = self.marked();
            let leads = |(pid, session): &&(i32, i32)| pid == session;
            sessions.extend(marked.iter().filter(leads).map(|(pid, _)| *pid));
            let found: Vec<i32> = marked
                .into_iter()
                .filter(|(_, session)| sessions.contains(session))
                .map(|(pid, _)| pid)
                .collect();
            if found.is_empty() {
                return if sessions.is_empty() { Left::Unknown } else { Left::Nothing };
            }
            if Instant::now() > deadline {
                return Left::Unknown;
            }
            for pid in found.into_iter().filter_map(Pid::from_raw) {
                // It may have ended by itself.
                kill_process(pid, Signal::KILL).ok();
            }
            thread::sleep(Duration::from_millis(5));
        }
    }

    /// Processes with the mark, and the sessions they are in. One that has ended has none.
    fn marked(&self) -> Vec<(i32, i32)> {
        let wanted = format!("{}={}", Self::NAME, self.0);
        let Ok(processes) = std::fs::read_dir("/proc") else { return Vec::new() };
        let marked = processes.filter_map(|entry| {
            let folder = entry.ok()?.path();
            let pid = folder.file_name()?.to_str()?.parse().ok()?;
            let environment = std::fs::read(folder.join("environ")).ok()?;
            let has = environment.split(|byte| *byte == 0).any(|one| one == wanted.as_bytes());
            if has { Some((pid, session_of(&folder)?)) } else { None }
        });
        marked.collect()
    }
}

fn session_of(process: &Path) -> Option<i32> {
    let stat = std::fs::read_to_string(process.join("stat")).ok()?;
    // After the name, which may hold anything: state, parent, group, session.
    stat.rsplit_once(')')?.1.split_whitespace().nth(3)?.parse().ok()
}
