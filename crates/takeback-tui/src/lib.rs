//! What Takeback shows in a terminal: the rewind menu and the interactive session.
//!
//! Everything here is a value: keys and time come in, what to do comes out, and a view is drawn from
//! what is known. Only [`terminal`] touches the terminal. Nothing here knows a store or an agent.

mod clean;
mod fit;
mod wrap;
pub mod keys;
pub mod editor;
pub mod theme;
pub mod menu;
pub mod slash;
pub mod transcript;
pub mod chat;
pub mod view;
pub mod terminal;

pub use clean::clean;
pub use fit::{fit, fit_end};
pub use wrap::wrap;
