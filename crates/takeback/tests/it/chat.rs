//! `takeback chat`, as its user sees it.

mod again;
pub(crate) mod claude;
mod commands;
mod messages;
mod rewind_menu;
mod screen;
pub(crate) mod seat;
mod seed_001;
mod sessions;
mod story;
mod typing;
