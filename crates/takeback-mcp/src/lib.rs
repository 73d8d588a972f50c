//! Takeback as an MCP server: the tools that a model may call.
//!
//! Opens no store. Every tool call becomes calls of `takeback serve --stdio`, a child of this process, so
//! that the same rules, receipts and errors apply as for any other client. A model must not change files on
//! its own: the server asks the user through the protocol, unless they have allowed it. `bisect`, which runs a
//! command, is a tool only where they have allowed that.
//!
//! ```
//! use std::sync::Arc;
//! use takeback_mcp::{Backend, BackendOptions, Commands, Server};
//!
//! let options = BackendOptions { program: "takeback".into(), arguments: Vec::new() };
//! let backend = Backend::new(options, Arc::new(|line| eprintln!("{line}")));
//! // `rmcp::ServiceExt::serve` then runs it on a transport.
//! let server = Server::new(Arc::new(backend), Commands::Refused);
//! ```

#![warn(missing_docs)]

mod action;
mod backend;
mod consent;
mod inputs;
mod outputs;
mod schema;
mod server;
mod text;
mod tools;

pub use self::backend::{Backend, BackendOptions, CallError, CallKind, Fault, FaultData, Log};
pub use self::server::{Commands, Server};
