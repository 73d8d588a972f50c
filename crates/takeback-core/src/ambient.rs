//! What the caller provides: the clock, a source of unique ids, and optionally a progress listener.

use std::time::{SystemTime, UNIX_EPOCH};

use takeback_store::Timestamp;

use crate::progress::{ProgressListener, Work, WorkGuard};

/// What a workspace takes from its surroundings. [`Ambient::system`] is the default; a test gives its
/// own clock and ids.
pub struct Ambient {
    /// The clock of everything that is recorded.
    pub now: Box<dyn Fn() -> Timestamp + Send>,
    /// Converts a file's change time, in nanoseconds since 1970, to the clock above. `None`: the two
    /// are not related.
    pub file_time: Box<dyn Fn(i64) -> Option<Timestamp> + Send>,
    /// Numbers for new ids. No number may come twice.
    pub random: Box<dyn Fn() -> u64 + Send>,
    /// Is told what is being done and how far it is.
    pub watch: Option<ProgressListener>,
}

/// A number from the kernel's source of randomness.
#[must_use]
#[expect(
    clippy::expect_used,
    reason = "without randomness ids would clash; there is no way to go on"
)]
pub fn system_random() -> u64 {
    getrandom::u64().expect("the kernel gives random bytes")
}

#[expect(
    clippy::disallowed_methods,
    reason = "the default, for callers without a clock of their own"
)]
fn system_time() -> Timestamp {
    let since_1970 = SystemTime::now().duration_since(UNIX_EPOCH).unwrap_or_default();
    Timestamp(i64::try_from(since_1970.as_millis()).unwrap_or(i64::MAX))
}

impl Ambient {
    /// The system's clock and randomness, and no progress listener.
    #[must_use]
    pub fn system() -> Self {
        Self {
            now: Box::new(system_time),
            file_time: Box::new(|nanos| Some(Timestamp(nanos.div_euclid(1_000_000)))),
            random: Box::new(system_random),
            watch: None,
        }
    }

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
