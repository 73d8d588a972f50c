//! The screen without a terminal: keys in, outcomes and drawn cells out.

mod editor;
mod keys;
mod menu_keys;
mod menu_view;
mod sample;
