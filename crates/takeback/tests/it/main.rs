//! The binary as a user drives it.

#![expect(clippy::disallowed_methods, reason = "tests lay out their own trees")]

mod demo;
mod errors;
mod exchange;
mod home;
mod look;
mod record;
mod reference;
mod direction;
mod rewind;
mod run;
mod terminal;
