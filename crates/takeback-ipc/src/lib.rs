//! JSON-RPC 2.0 for other programs, as specified in `docs/design/protocol.md`.
//!
//! Bytes become frames ([`frame`]), frames become calls ([`rpc`], [`params`]), and a function of
//! the caller answers them ([`connection`]). Answers wait in a bounded queue until the client reads
//! them ([`outlet`]). [`socket`] serves many clients at once, all of them processes of the same
//! user. This crate knows no methods.

mod id_scanner;
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

/// Bytes of one message on every surface: a call of `serve`, a line of `record`, the standard input
/// of a hook or `state save`.
pub const LARGEST_MESSAGE: usize = 64 << 20;

/// Limits for the clients of a server.
#[derive(Debug, Clone)]
pub struct Limits {
    /// Bytes of an incoming frame.
    pub frame: usize,
    /// Calls in one batch.
    pub batch: usize,
    /// Bytes of answers that the client has not read, beyond the one being written.
    pub unread: usize,
    /// How long a client may read nothing while an answer waits.
    pub stall: Duration,
    /// Concurrent clients.
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
