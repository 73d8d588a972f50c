//! The program, driven with lines of both eras of the protocol, against the real `takeback`.

#![expect(clippy::disallowed_methods, reason = "tests lay out their own trees")]

mod client;
mod tools;
mod consent;
mod lifetime;
mod questions;
