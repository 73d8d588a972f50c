//! Random turns, calls and ranges taken back in random order, undone in random order, and restored
//! hunk by hunk, each compared with a model that knows nothing but sections of text.
//!
//! `TAKEBACK_TEST_RUNS` sets the number of runs of each test, `TAKEBACK_TEST_SEED` picks one of them.

#![expect(clippy::disallowed_methods, reason = "the test plays the people and agents")]
#![expect(clippy::unwrap_used, reason = "a test that cannot go on has failed")]
#![expect(clippy::print_stdout, reason = "shown only when a test fails")]

#[path = "take_back/hunks.rs"]
mod hunks;
#[path = "take_back/order.rs"]
mod order;
#[path = "take_back/overlaps.rs"]
mod overlaps;
#[path = "take_back/script.rs"]
mod script;
#[path = "take_back/sections.rs"]
mod sections;

use std::panic::{AssertUnwindSafe, catch_unwind};
use std::path::Path;
use std::sync::Mutex;
use std::sync::atomic::{AtomicU64, Ordering};

/// Pseudo-random numbers, the same in every run.
struct Dice(u64);

impl Dice {
    fn new(seed: u64) -> Self {
        Self((seed + 1).wrapping_mul(0x9E37_79B9_7F4A_7C15) | 1)
    }

    fn below(&mut self, n: usize) -> usize {
        self.0 ^= self.0 << 13;
        self.0 ^= self.0 >> 7;
        self.0 ^= self.0 << 17;
        usize::try_from((self.0 >> 11) % n as u64).unwrap()
    }

    fn one_in(&mut self, n: usize) -> bool {
        self.below(n) == 0
    }

    fn shuffle<T>(&mut self, things: &mut [T]) {
        for at in (1..things.len()).rev() {
            things.swap(at, self.below(at + 1));
        }
    }
}

/// Plays every seed, on all processors. Reports the first seed that fails.
fn each_seed(default_runs: u64, play: impl Fn(u64) + Sync) {
    let number =
        |name: &str| std::env::var(name).ok().map(|text| text.parse::<u64>().expect("a number"));
    let seeds = match number("TAKEBACK_TEST_SEED") {
        Some(seed) => seed..seed + 1,
        None => 0..number("TAKEBACK_TEST_RUNS").unwrap_or(default_runs),
    };
    // On a disk the runs would mostly wait for I/O.
    let memory = Path::new("/dev/shm");
    if memory.is_dir() {
        drop(tempfile::env::override_temp_dir(memory));
    }
    let next = AtomicU64::new(seeds.start);
    let failed: Mutex<Vec<u64>> = Mutex::new(Vec::new());
    let threads = std::thread::available_parallelism().map_or(2, usize::from);
    std::thread::scope(|scope| {
        for _ in 0..threads {
            scope.spawn(|| {
                while failed.lock().unwrap().is_empty() {
                    let seed = next.fetch_add(1, Ordering::Relaxed);
                    if seed >= seeds.end {
                        break;
                    }
                    if catch_unwind(AssertUnwindSafe(|| play(seed))).is_err() {
                        failed.lock().unwrap().push(seed);
                    }
                }
            });
        }
    });
    let failed = failed.into_inner().unwrap();
    assert!(failed.is_empty(), "run with TAKEBACK_TEST_SEED: {failed:?}");
}
