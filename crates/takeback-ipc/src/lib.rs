//! JSON-RPC 2.0 for other programs, as specified in `docs/design/protocol.md`.
//!
//! Bytes become frames ([`FrameReader`]), frames become calls ([`Call`], [`Params`]), and a function of
//! the caller answers them ([`serve`]). Answers wait in a bounded queue until the client reads
//! them ([`Outlet`]). [`Socket`] serves many clients at once, all of them processes of the same
//! user. This crate knows no methods.
//!
//! ```
//! use takeback_ipc::{Limits, RawValue, serve};
//!
//! let (request, mut answer) = (br#"{"jsonrpc":"2.0","id":1,"method":"hello"}"#, Vec::new());
//! serve(&request[..], &mut answer, &Limits::default(), || {}, &mut |call, _| {
//!     Ok(RawValue::from_string(format!("{:?}", call.method)).expect("a JSON string"))
//! })?;
//! assert_eq!(answer, b"{\"jsonrpc\":\"2.0\",\"id\":1,\"result\":\"hello\"}\n");
//! # Ok::<(), takeback_ipc::FrameError>(())
//! ```

#![warn(missing_docs)]

mod id_scanner;
mod frame;
mod rpc;
mod params;
mod outlet;
mod platform;
mod connection;
mod socket;

use std::time::Duration;

pub use connection::{Outcome, serve};
pub use frame::{Frame, FrameError, FrameReader, Framing};
pub use outlet::{DisconnectedError, Outlet};
pub use params::{NamedParams, Params};
pub use rpc::{Call, Fault};
pub use serde_json::value::RawValue;
pub use socket::{IdlePolicy, Socket, SocketError, TOO_MANY_CLIENTS, answers, serve_all};

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
