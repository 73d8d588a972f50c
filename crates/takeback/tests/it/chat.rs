//! `takeback chat`, as somebody sits before it.

mod claude;
mod commands;
mod messages;
mod screen;
mod seat;
mod sessions;
mod story;
mod typing;
