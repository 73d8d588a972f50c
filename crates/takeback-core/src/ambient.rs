//! What the caller provides: the clock, a source of unique ids, and optionally a progress listener.

use takeback_store::Timestamp;

use crate::progress::{ProgressListener, Work, WorkGuard};

pub struct Ambient {
    pub now: Box<dyn Fn() -> Timestamp + Send>,
    /// Converts a file's change time, in nanoseconds since 1970, to the clock above. `None`: the two
    /// are not related.
    pub file_time: Box<dyn Fn(i64) -> Option<Timestamp> + Send>,
    pub random: Box<dyn Fn() -> u64 + Send>,
    pub watch: Option<ProgressListener>,
}

/// File times by the system's clock.
#[must_use]
pub fn system_file_time(nanos: i64) -> Option<Timestamp> {
    Some(Timestamp(nanos.div_euclid(1_000_000)))
}

impl Ambient {
    /// `of`: how many files there will be; 0: unknown.
    pub(crate) fn begin(&self, work: Work, of: usize) -> WorkGuard {
        WorkGuard::begin(self.watch.as_ref(), work, of as u64, 0)
    }

    /// A scan that will read this many files and bytes; 0: unknown.
    pub(crate) fn begin_reading(&self, files: u64, bytes: u64) -> WorkGuard {
        WorkGuard::begin(self.watch.as_ref(), Work::Scan, files, bytes)
    }
}

impl std::fmt::Debug for Ambient {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.write_str("Ambient")
    }
}
