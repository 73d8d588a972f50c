//! `takeback chat`, as somebody sits before it.

mod claude;
mod commands;
mod messages;
mod seat;
mod story;
