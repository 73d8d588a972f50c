//! What the world outside gives: the time, and ids that nobody else makes.

use takeback_store::Timestamp;

pub struct Ambient {
    pub now: Box<dyn Fn() -> Timestamp + Send>,
    pub random: Box<dyn Fn() -> u64 + Send>,
}

impl std::fmt::Debug for Ambient {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.write_str("Ambient")
    }
}
