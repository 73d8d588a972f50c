//! What the world outside gives: the time, ids that nobody else makes, and perhaps somebody who
//! watches.

use takeback_store::Timestamp;

use crate::progress::{Ongoing, Watch, Work};

pub struct Ambient {
    pub now: Box<dyn Fn() -> Timestamp + Send>,
    /// What a file's change time, in nanoseconds since 1970, is by the clock above. `None`: the two
    /// have nothing to do with each other.
    pub file_time: Box<dyn Fn(i64) -> Option<Timestamp> + Send>,
    pub random: Box<dyn Fn() -> u64 + Send>,
    pub watch: Option<Watch>,
}

/// File times by the system's clock.
#[must_use]
pub fn system_file_time(nanos: i64) -> Option<Timestamp> {
    Some(Timestamp(nanos.div_euclid(1_000_000)))
}

impl Ambient {
    /// `of`: how many files it will be; 0 if nobody knows.
    pub(crate) fn begin(&self, work: Work, of: usize) -> Ongoing {
        Ongoing::begin(self.watch.as_ref(), work, of as u64, 0)
    }

    /// A look at the tree, in which so many files and bytes will be read; 0 if nobody knows.
    pub(crate) fn begin_reading(&self, files: u64, bytes: u64) -> Ongoing {
        Ongoing::begin(self.watch.as_ref(), Work::Scan, files, bytes)
    }
}

impl std::fmt::Debug for Ambient {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.write_str("Ambient")
    }
}
