//! `takeback chat`, as somebody sits before it.

mod messages;
mod seat;
mod story;
