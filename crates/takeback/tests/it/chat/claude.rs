//! The same with the real `claude` program and a test server as its model.
//!
//! The program is the one that `TAKEBACK_CLAUDE` names or that `scripts/install-claude` installed. Without it
//! these tests are skipped with a message; with `TAKEBACK_E2E=require` they fail instead.

mod beyond_sdk;
mod killed_agent;
mod sdk_rewind;
pub(crate) mod setup;
mod turns;
mod two_prompts;

pub(crate) use setup::{environment, program};
