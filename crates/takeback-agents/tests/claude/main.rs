//! The real `claude` program, driven against a scripted model.
//!
//! It is looked for in `TAKEBACK_CLAUDE`, then where `scripts/install-claude` puts it. Without it these
//! tests pass without having looked, and say so; with `TAKEBACK_E2E=require` they fail.

#![expect(clippy::disallowed_methods, reason = "tests lay out their own trees")]
#![expect(clippy::unwrap_used, reason = "a test that cannot go on panics")]

mod capture;
mod conversation;
mod history;
mod lab;
mod native_files;
mod replayed;
mod seed_001;
mod turns;
