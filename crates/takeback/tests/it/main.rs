//! The binary as a user drives it.

#![expect(clippy::disallowed_methods, reason = "tests lay out their own trees")]

mod home;
mod demo;
mod run;
mod record;
mod rewind;
mod look;
mod errors;
mod reference;
mod terminal;
