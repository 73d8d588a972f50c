//! The same with the real `claude` program, to which a server of the tests plays the model.
//!
//! The program is the one that `TAKEBACK_CLAUDE` names or that `scripts/install-claude` installed.
//! Without it these tests say that they are skipped; with `TAKEBACK_E2E=require` they fail instead.

mod alone;
mod better;
pub(crate) mod desk;
mod gone;
mod story;
mod turns;

pub(crate) use desk::{environment, program};
