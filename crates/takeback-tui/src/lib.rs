//! What Takeback shows in a terminal: the rewind menu and the interactive session.
//!
//! Everything here is a value: keys and time come in, what to do comes out, and a view is drawn from
//! what is known. Only [`terminal`] touches the terminal. Nothing here knows a store or an agent.

pub mod keys;
pub mod wrap;
pub mod slash;
pub mod editor;
pub mod menu;
pub mod theme;
pub mod terminal;
pub mod transcript;
pub mod chat;
pub mod view;
