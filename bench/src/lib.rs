//! What every comparison needs: costs, and the machine they were measured on.

#![expect(
    clippy::disallowed_methods,
    reason = "the bench plays the user: programs get the search path of whoever runs it"
)]

pub mod floor;
pub mod held;
pub mod machine;
pub mod measure;
pub mod results;

use std::error::Error;

pub type Result<T> = std::result::Result<T, Box<dyn Error>>;
