//! The clocks of the kernel that no test clock can replace.

use rustix::time::ClockId;

/// The longest tick of a kernel's clock (100 Hz), in nanoseconds.
pub(crate) const FILE_TIME_TICK: i64 = 10_000_000;

/// The time, in nanoseconds, that a file changed now would get from the kernel. File times move in ticks
/// of at most [`FILE_TIME_TICK`]: two writes within a tick leave the same times.
pub(crate) fn file_time_now() -> i64 {
    let now = rustix::time::clock_gettime(ClockId::RealtimeCoarse);
    now.tv_sec.saturating_mul(1_000_000_000).saturating_add(now.tv_nsec)
}

/// Converts the start time of a process to a time of day.
pub(crate) struct ProcessClock {
    pub(crate) now: i64,
    since_boot: i64,
    ticks_per_second: i64,
}

impl ProcessClock {
    pub(crate) fn read() -> Self {
        let milliseconds = |clock| {
            let time = rustix::time::clock_gettime(clock);
            time.tv_sec.saturating_mul(1000).saturating_add(time.tv_nsec / 1_000_000)
        };
        let ticks = rustix::param::clock_ticks_per_second();
        Self {
            now: milliseconds(ClockId::Realtime),
            since_boot: milliseconds(ClockId::Boottime),
            ticks_per_second: i64::try_from(ticks).unwrap_or(100).max(1),
        }
    }

    /// In milliseconds since 1970, to a hundredth of a second.
    pub(crate) fn time_of(&self, ticks: u64) -> i64 {
        let ticks = i64::try_from(ticks).unwrap_or(i64::MAX);
        self.now - self.since_boot + ticks.saturating_mul(1000) / self.ticks_per_second
    }
}
