//! Compacts the stores that clients have used while the server is idle, one piece at a time.

use std::collections::BTreeSet;
use std::path::{Path, PathBuf};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::thread;
use std::time::{Duration, Instant};

use takeback_core::retention::repack_some;

use crate::error::CommandError;
use crate::place::{self, Store};

/// How long the server must have been idle.
const QUIET: Duration = Duration::from_secs(20);
/// How often to check whether the server is idle.
const OFTEN: Duration = Duration::from_secs(5);
/// Bytes to read at a time; at least one segment, which takes some seconds. No client waits for it.
const PIECE: u64 = 8 << 20;

/// The time of the last request, and the workspaces that were used but not compacted since.
#[derive(Debug)]
pub(super) struct IdleTracker(Mutex<State>);

#[derive(Debug)]
struct State {
    asked: Instant,
    roots: BTreeSet<PathBuf>,
}

impl IdleTracker {
    pub(super) fn new(now: Instant) -> Self {
        Self(Mutex::new(State { asked: now, roots: BTreeSet::new() }))
    }

    /// A client sent a request.
    pub(super) fn asked(&self, now: Instant) {
        self.state().asked = now;
    }

    /// A request was about this workspace.
    pub(super) fn asked_about(&self, root: &Path) {
        self.state().roots.insert(root.to_owned());
    }

    /// A workspace to compact, if the server is idle.
    fn next(&self, now: Instant) -> Option<PathBuf> {
        let state = self.state();
        let is_quiet = now.saturating_duration_since(state.asked) >= QUIET;
        state.roots.first().filter(|_| is_quiet).cloned()
    }

    fn finish(&self, root: &Path) {
        self.state().roots.remove(root);
    }

    fn state(&self) -> MutexGuard<'_, State> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

/// Runs until the process ends, which may interrupt it.
pub(super) fn work_when_idle(idle: Arc<IdleTracker>, home: PathBuf) {
    let work = move || {
        loop {
            thread::sleep(OFTEN);
            while let Some(root) = idle.next(Instant::now()) {
                // A store that cannot be used is reported to the next client that asks about it.
                if !matches!(a_piece(&root, &home), Ok(true)) {
                    idle.finish(&root);
                }
            }
        }
    };
    // Without a thread, the next server or a hook does it.
    drop(thread::Builder::new().spawn(work));
}

/// Whether there is more.
fn a_piece(root: &Path, home: &Path) -> Result<bool, CommandError> {
    let mut place = place::open_at(root, home, Store::MustExist)?;
    Ok(repack_some(&mut place.workspace, PIECE)?.more)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn each_workspace_is_seen_to_once_when_it_is_quiet() {
        let begun = Instant::now();
        let after = |seconds| begun + Duration::from_secs(seconds);
        let idle = IdleTracker::new(begun);
        assert_eq!(idle.next(after(60)), None, "no client asked about any");
        for root in ["/b", "/a", "/b"] {
            idle.asked(after(60));
            idle.asked_about(Path::new(root));
        }
        assert_eq!(idle.next(after(79)), None, "an agent may be at work");
        assert_eq!(idle.next(after(80)), Some("/a".into()));
        idle.asked(after(81));
        assert_eq!(idle.next(after(90)), None);
        assert_eq!(idle.next(after(101)), Some("/a".into()), "it was not finished");
        idle.finish(Path::new("/a"));
        assert_eq!(idle.next(after(101)), Some("/b".into()));
        idle.finish(Path::new("/b"));
        assert_eq!(idle.next(after(101)), None);
    }
}
