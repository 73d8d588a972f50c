//! How far long work is: counted by those who do it, looked at by whoever wants to show it.
//!
//! Core shows nothing. Who sets [`crate::Ambient::watch`] is told of every piece of work when it
//! begins, and may read its counts from another thread as long as it lasts. Nothing is counted
//! otherwise.

use std::any::Any;
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};

/// Work that may take long.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Work {
    /// Looking at names, to tell how much there is to read.
    Count,
    /// Reading the tree. After the first time nobody knows how much it is.
    Scan,
    /// Making files ready in the stage.
    Stage,
    /// Putting them in their places, then checking each.
    Apply,
}

/// Called when work begins; what it answers is dropped when the work ends, however it ends.
pub type Watch = Box<dyn Fn(Work, &Arc<Progress>) -> Box<dyn Any> + Send>;

#[derive(Debug, Default)]
pub struct Progress {
    files: AtomicU64,
    bytes: AtomicU64,
    of: u64,
    of_bytes: u64,
}

impl Progress {
    #[must_use]
    pub fn files(&self) -> u64 {
        self.files.load(Ordering::Relaxed)
    }

    /// Bytes of contents that were read to be kept.
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

/// Work under way, until it is dropped.
pub(crate) struct Ongoing {
    progress: Option<Arc<Progress>>,
    _shown: Option<Box<dyn Any>>,
}

impl Ongoing {
    pub(crate) fn begin(watch: Option<&Watch>, work: Work, of: u64, of_bytes: u64) -> Self {
        let progress = watch.map(|_| Arc::new(Progress { of, of_bytes, ..Progress::default() }));
        let shown = watch.zip(progress.as_ref()).map(|(watch, progress)| watch(work, progress));
        Self { progress, _shown: shown }
    }

    pub(crate) fn counter(&self) -> Counter<'_> {
        Counter(self.progress.as_deref())
    }
}

/// For those who work; any number of threads.
#[derive(Debug, Clone, Copy)]
pub struct Counter<'a>(Option<&'a Progress>);

impl Counter<'_> {
    /// For work that nobody is told of.
    pub(crate) fn nobodys() -> Self {
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
