//! Progress of long work: the workers count, a listener displays.
//!
//! Core displays nothing. The listener in [`crate::Ambient::watch`] is called when each piece of work
//! begins, and may read its counts from another thread while it lasts. Without a listener nothing is
//! counted.

use std::any::Any;
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};

/// Work that may take long.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Work {
    /// Listing names, to find out how much there is to read.
    Count,
    /// Reading the tree. Except for the first scan, the amount is unknown.
    Scan,
    /// Making files ready in the stage.
    Stage,
    /// Placing them, then verifying each.
    Apply,
    /// Writing the files of a fork.
    Fork,
}

/// Called when work begins; the returned value is dropped when the work ends, however it ends.
pub type ProgressListener = Box<dyn Fn(Work, &Arc<Progress>) -> Box<dyn Any> + Send>;

/// How far a piece of work is. Other threads read it while it runs.
#[derive(Debug, Default)]
pub struct Progress {
    files: AtomicU64,
    bytes: AtomicU64,
    of: u64,
    of_bytes: u64,
}

impl Progress {
    /// Files done so far.
    #[must_use]
    pub fn files(&self) -> u64 {
        self.files.load(Ordering::Relaxed)
    }

    /// Bytes of contents that were read and saved.
    #[must_use]
    pub fn bytes(&self) -> u64 {
        self.bytes.load(Ordering::Relaxed)
    }

    /// How many files there will be; 0: unknown.
    #[must_use]
    pub fn of(&self) -> u64 {
        self.of
    }

    /// How many bytes there will be, about; 0: unknown.
    #[must_use]
    pub fn of_bytes(&self) -> u64 {
        self.of_bytes
    }
}

/// Running work; it ends when this is dropped.
pub(crate) struct WorkGuard {
    progress: Option<Arc<Progress>>,
    _shown: Option<Box<dyn Any>>,
}

impl WorkGuard {
    pub(crate) fn begin(
        watch: Option<&ProgressListener>,
        work: Work,
        of: u64,
        of_bytes: u64,
    ) -> Self {
        let progress = watch.map(|_| Arc::new(Progress { of, of_bytes, ..Progress::default() }));
        let shown = watch.zip(progress.as_ref()).map(|(watch, progress)| watch(work, progress));
        Self { progress, _shown: shown }
    }

    pub(crate) fn counter(&self) -> Counter<'_> {
        Counter(self.progress.as_deref())
    }
}

/// Counts for the workers, from any number of threads.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Counter<'a>(Option<&'a Progress>);

impl Counter<'_> {
    /// For work without a listener.
    pub(crate) fn disabled() -> Self {
        Self(None)
    }

    pub(crate) fn files(self, n: u64) {
        if let Some(progress) = self.0 {
            progress.files.fetch_add(n, Ordering::Relaxed);
        }
    }

    pub(crate) fn bytes(self, n: u64) {
        if let Some(progress) = self.0 {
            progress.bytes.fetch_add(n, Ordering::Relaxed);
        }
    }
}
