//! `takeback chat`, as somebody sits before it.

mod commands;
mod messages;
mod seat;
mod sessions;
mod story;
