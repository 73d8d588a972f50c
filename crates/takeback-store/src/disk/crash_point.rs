//! The numbered moments at which a crash can leave something half done.
//!
//! With the feature `crash-points`, a test can arm the current thread to stop at the n-th point
//! passed. From then on that thread writes nothing, as if the process had been killed there.

#[cfg(feature = "crash-points")]
pub(crate) use self::armed::crash_point;
#[cfg(feature = "crash-points")]
pub(super) use self::armed::{check_renames, pass};
#[cfg(feature = "crash-points")]
pub use self::armed::{only_plain_renames, stop_at, stopped, watch};

macro_rules! crash_points {
    ($($(#[$doc:meta])* $name:ident = $number:literal,)*) => {
        /// The operation that is about to happen. The documentation uses the numbers; they are
        /// never reused.
        #[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, PartialOrd, Ord)]
        #[cfg_attr(
            not(feature = "crash-points"),
            expect(unreachable_pub, reason = "only tests outside this crate name one")
        )]
        #[repr(u8)]
        pub enum CrashPoint {
            $($(#[$doc])* $name = $number,)*
        }

        #[cfg(feature = "crash-points")]
        impl CrashPoint {
            /// Every crash point, in the order of the numbers.
            pub const ALL: &[Self] = &[$(Self::$name,)*];
        }
    };
}

crash_points! {
    /// A folder of the store is created.
    MakeStoreFolder = 1,
    /// Bytes are appended to a pack segment or an event in the inbox.
    Append = 2,
    /// Appended bytes are made durable.
    Sync = 3,
    /// A transaction is committed.
    Commit = 4,
    /// A transaction has been committed.
    Committed = 5,
    /// A whole file of the store (the index) is written under a temporary name.
    WriteBeside = 6,
    /// The temporary file replaces the old one; or a file of the store is renamed.
    Replace = 7,
    /// A file of the store is removed.
    RemoveStoreFile = 8,
    /// An unreferenced end or part of a segment is freed.
    Empty = 9,
    /// An empty file of the store is created.
    MakeStoreFile = 10,
    /// The file that repeats the last commit is overwritten.
    Overwrite = 11,
    /// A folder is created in the workspace.
    MakeFolder = 20,
    /// A file is created in the stage.
    StageFile = 21,
    /// A symlink is created in the stage.
    StageLink = 22,
    /// A staged file or a folder is made durable.
    SyncStaged = 23,
    /// A staged file and the user's file swap places.
    Exchange = 24,
    /// Something is moved to an unused name.
    Place = 25,
    /// A mode is set.
    SetMode = 26,
    /// A file is removed (from the stage; never one of the user's).
    Unlink = 27,
    /// An empty folder is removed.
    RemoveFolder = 28,
    /// A file gets an unused second name.
    Link = 29,
    /// Something of the user's is moved into the stage.
    TakeAway = 30,
    /// Some files of a fork are created.
    CopyFiles = 31,
}

#[cfg(not(feature = "crash-points"))]
pub(crate) fn crash_point(_: CrashPoint) {}

#[cfg(not(feature = "crash-points"))]
#[expect(clippy::unnecessary_wraps, reason = "fails where a test stops the thread")]
pub(super) fn pass(_: CrashPoint) -> std::io::Result<()> {
    Ok(())
}

#[cfg(not(feature = "crash-points"))]
#[expect(clippy::unnecessary_wraps, reason = "fails where a test allows only plain renames")]
pub(super) fn check_renames() -> std::io::Result<()> {
    Ok(())
}

#[cfg(feature = "crash-points")]
mod armed {
    use std::cell::{Cell, RefCell};
    use std::io;
    use std::panic::{AssertUnwindSafe, catch_unwind, resume_unwind, set_hook, take_hook};
    use std::sync::Once;

    use super::CrashPoint;
    use crate::platform;

    thread_local! {
        static UNTIL_STOP: Cell<Option<u64>> = const { Cell::new(None) };
        static PASSED: Cell<u64> = const { Cell::new(0) };
        static PLAIN_RENAMES: Cell<bool> = const { Cell::new(false) };
        static WATCH: RefCell<Option<Watch>> = const { RefCell::new(None) };
    }

    /// Called with every crash point right before it is passed.
    type Watch = Box<dyn FnMut(CrashPoint)>;

    /// The panic payload of a thread that [`stop_at`] stopped.
    struct SimulatedCrash(CrashPoint);

    /// Makes this thread stop at the `n`-th crash point it passes (counted from 1) and at every one
    /// after it, by a panic. `None` disarms it. [`stopped`] does both.
    pub fn stop_at(n: Option<u64>) {
        UNTIL_STOP.set(n);
        PASSED.set(0);
    }

    /// Runs `work` and stops it at the `n`-th crash point that it passes. Returns that point; `None` if
    /// there are fewer. Any other panic goes on.
    pub fn stopped(n: u64, work: impl FnOnce()) -> Option<CrashPoint> {
        silence_simulated_crashes();
        stop_at(Some(n));
        let ended = catch_unwind(AssertUnwindSafe(work));
        stop_at(None);
        watch(None);
        match ended.err()?.downcast::<SimulatedCrash>() {
            Ok(crash) => Some(crash.0),
            Err(panic) => resume_unwind(panic),
        }
    }

    /// A test makes thousands of them.
    fn silence_simulated_crashes() {
        static ONCE: Once = Once::new();
        ONCE.call_once(|| {
            let usual = take_hook();
            set_hook(Box::new(move |panic| {
                if !panic.payload().is::<SimulatedCrash>() {
                    usual(panic);
                }
            }));
        });
    }

    /// Calls `watch` with every crash point of this thread, right before it is passed. A test can
    /// record them, or change a file at that moment as another process would.
    pub fn watch(watch: Option<Watch>) {
        WATCH.set(watch);
    }

    /// Makes this thread behave as on a file system that supports only plain renames.
    pub fn only_plain_renames(only: bool) {
        PLAIN_RENAMES.set(only);
    }

    /// Fails while a test allows only plain renames.
    pub(crate) fn check_renames() -> io::Result<()> {
        if PLAIN_RENAMES.get() { Err(platform::unsupported_rename()) } else { Ok(()) }
    }

    /// Passes a crash point for an operation that is not in [`disk`](crate::disk), such as a commit.
    /// Panics where [`stop_at`] says so.
    pub(crate) fn crash_point(point: CrashPoint) {
        // Taken out during the call, because the callback may pass crash points itself.
        if let Some(mut watch) = WATCH.take() {
            watch(point);
            WATCH.set(Some(watch));
        }
        PASSED.set(PASSED.get() + 1);
        if has_stopped() && !std::thread::panicking() {
            std::panic::panic_any(SimulatedCrash(point));
        }
    }

    /// Like [`crash_point`], and fails in a thread that has stopped and is unwinding.
    pub(crate) fn pass(point: CrashPoint) -> io::Result<()> {
        crash_point(point);
        if has_stopped() { Err(io::Error::other("stopped at a crash point")) } else { Ok(()) }
    }

    fn has_stopped() -> bool {
        UNTIL_STOP.get().is_some_and(|n| PASSED.get() >= n)
    }
}
