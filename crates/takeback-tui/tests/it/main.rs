//! The screen: keys in, outcomes and drawn cells out; and the terminal, in a real pseudo-terminal.

mod chat_view;
mod editor;
mod keys;
mod menu_actions;
mod menu_coverage;
mod menu_detail_keys;
mod menu_keys;
mod menu_questions;
mod menu_view;
mod sample;
mod terminal;
