//! What an idle server does for the stores that clients have asked about: it makes
//! them smaller, a piece at a time.

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
/// How often it is looked whether it is quiet.
const OFTEN: Duration = Duration::from_secs(5);
/// Read at a time; at least a segment, which takes some seconds. No client waits for it.
const PIECE: u64 = 8 << 20;

/// When a server was last asked, and which stores have not been seen to since.
#[derive(Debug)]
pub(super) struct Quiet(Mutex<State>);

#[derive(Debug)]
struct State {
    asked: Instant,
    roots: BTreeSet<PathBuf>,
}

impl Quiet {
    pub(super) fn new(now: Instant) -> Self {
        Self(Mutex::new(State { asked: now, roots: BTreeSet::new() }))
    }

    /// A client sent a request.
    pub(super) fn asked(&self, now: Instant) {
        self.state().asked = now;
    }

    /// … that concerns this workspace.
    pub(super) fn asked_about(&self, root: &Path) {
        self.state().roots.insert(root.to_owned());
    }

    /// A workspace to see to, if it is quiet.
    fn next(&self, now: Instant) -> Option<PathBuf> {
        let state = self.state();
        let is_quiet = now.saturating_duration_since(state.asked) >= QUIET;
        state.roots.first().filter(|_| is_quiet).cloned()
    }

    fn seen_to(&self, root: &Path) {
        self.state().roots.remove(root);
    }

    fn state(&self) -> MutexGuard<'_, State> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

/// Works until the process ends, which may be in the middle of it.
pub(super) fn work_when_quiet(quiet: Arc<Quiet>, home: PathBuf) {
    let work = move || {
        loop {
            thread::sleep(OFTEN);
            while let Some(root) = quiet.next(Instant::now()) {
                // A store that cannot be used is reported to the next client that asks about it.
                if !matches!(a_piece(&root, &home), Ok(true)) {
                    quiet.seen_to(&root);
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
        let quiet = Quiet::new(begun);
        assert_eq!(quiet.next(after(60)), None, "no client asked about any");
        for root in ["/b", "/a", "/b"] {
            quiet.asked(after(60));
            quiet.asked_about(Path::new(root));
        }
        assert_eq!(quiet.next(after(79)), None, "an agent may be at work");
        assert_eq!(quiet.next(after(80)), Some("/a".into()));
        quiet.asked(after(81));
        assert_eq!(quiet.next(after(90)), None);
        assert_eq!(quiet.next(after(101)), Some("/a".into()), "it was not finished");
        quiet.seen_to(Path::new("/a"));
        assert_eq!(quiet.next(after(101)), Some("/b".into()));
        quiet.seen_to(Path::new("/b"));
        assert_eq!(quiet.next(after(101)), None);
    }
}
