//! The real `claude` program, driven against a scripted model.
//!
//! The program is looked up in `TAKEBACK_CLAUDE`, then where `scripts/install-claude` installs it. Without
//! it these tests are skipped with a message; with `TAKEBACK_E2E=require` they fail.

#![expect(clippy::disallowed_methods, reason = "tests lay out their own trees")]
#![expect(clippy::unwrap_used, reason = "a failing test panics")]

mod capture;
mod conversation;
mod history;
mod lab;
mod native_files;
mod replay;
mod seed_001;
mod turns;
