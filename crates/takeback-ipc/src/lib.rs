//! JSON-RPC 2.0 for other programs, as `docs/design/protocol.md` specifies it.
//!
//! Bytes become frames ([`frame`]), frames become calls ([`rpc`], [`params`]), calls are answered by
//! one function that the caller brings ([`connection`]), and answers wait in a bounded queue for a
//! reader who may be slow ([`outlet`]). [`socket`] does the same for many clients at once, for the
//! user's own processes alone. What the methods do, nobody knows here.

mod found_id;
pub mod frame;
pub mod rpc;
pub mod params;
pub mod outlet;
pub mod connection;
pub mod socket;

use std::time::Duration;

pub use connection::{Outcome, serve};
pub use frame::Framing;
pub use outlet::Outlet;
pub use params::Params;
pub use rpc::{Call, Fault};
pub use serde_json::value::RawValue;

/// Bytes of one message, on every surface: a call of `serve`, a line of `record`, what a hook or `state
/// save` is given on standard input.
pub const LARGEST_MESSAGE: usize = 64 << 20;

/// What a client may ask of a server.
#[derive(Debug, Clone)]
pub struct Limits {
    /// Bytes of a frame that comes in.
    pub frame: usize,
    /// Calls in one batch.
    pub batch: usize,
    /// Bytes of answers that wait to be read, beyond the one that is being written.
    pub unread: usize,
    /// How long a client may read nothing while something waits for it.
    pub stall: Duration,
    /// Clients at once.
    pub clients: usize,
}

impl Default for Limits {
    fn default() -> Self {
        Self {
            frame: LARGEST_MESSAGE,
            batch: 1000,
            unread: 16 << 20,
            stall: Duration::from_secs(30),
            clients: 256,
        }
    }
}
