//! Gemini CLI, used as it is: Takeback hears of it through its hooks.

pub(crate) mod ends;
pub mod hook;
