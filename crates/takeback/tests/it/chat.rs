//! `takeback chat`, as somebody sits before it.

mod seat;
mod story;
