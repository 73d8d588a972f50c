//! `takeback chat`, as its user sees it.

pub(crate) mod claude;
mod commands;
mod messages;
mod repeated_rewinds;
mod rewind_menu;
mod screen;
mod seed_001;
mod sessions;
mod two_prompts;
mod input;
