//! Takeback as an MCP server: what a model may look at and ask for, as tools.
//!
//! Opens no store. Every tool call becomes calls of `takeback serve --stdio`, a child of this process,
//! so that the same rules, receipts and errors hold as for any other client. What a model must not
//! decide alone (to rewind) is asked of the user through the protocol, unless they have allowed it.

pub mod backend;
mod consent;
mod inputs;
mod outputs;
mod schema;
mod server;
mod text;
mod tools;

pub use self::backend::{Backend, BackendOptions, CallError};
pub use self::server::Server;
